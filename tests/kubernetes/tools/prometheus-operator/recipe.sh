# shellcheck shell=bash
# The Prometheus Operator and its admission webhook, with all of its definitions.
module=github.com/prometheus-operator/prometheus-operator
go build -o "$BIN/prometheus-operator" -ldflags "-s -w" "$module/cmd/operator"
go build -o "$BIN/prometheus-admission" -ldflags "-s -w" "$module/cmd/admission-webhook"
rm -rf "$BIN/../prometheus-operator"
cp -r --no-preserve=mode "$(go list -m -f '{{.Dir}}' "$module")/example/prometheus-operator-crd" "$BIN/../prometheus-operator"
