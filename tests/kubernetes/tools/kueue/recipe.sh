# shellcheck shell=bash disable=SC2034
# Kueue's controller, with the definitions and webhooks that it serves.
packages=(sigs.k8s.io/kueue/cmd/kueue)
make() {
  program kueue sigs.k8s.io/kueue/cmd/kueue
  files kueue sigs.k8s.io/kueue config/components/crd config/components/webhook
}
