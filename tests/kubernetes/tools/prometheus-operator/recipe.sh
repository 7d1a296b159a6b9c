# shellcheck shell=bash
# The Prometheus Operator and its admission webhook, with all of its definitions.
module=github.com/prometheus-operator/prometheus-operator
packages=("$module/cmd/operator" "$module/cmd/admission-webhook")
make() {
  program prometheus-operator "${packages[0]}"
  program prometheus-admission "${packages[1]}"
  files prometheus-operator $module example/prometheus-operator-crd
}
