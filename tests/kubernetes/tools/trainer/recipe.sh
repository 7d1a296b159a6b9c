# shellcheck shell=bash
# The controller of Kubeflow's Trainer, with the webhooks that it serves; its definitions are among those of definitions/.
packages=(github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager)
make() {
  program trainer "${packages[0]}"
  files trainer github.com/kubeflow/trainer/v2 manifests/base/webhook
}
