# shellcheck shell=bash disable=SC2034
# JobSet's controller, with the webhooks that it serves; its definition is among those of definitions/.
packages=(sigs.k8s.io/jobset)
make() {
  program jobset sigs.k8s.io/jobset
  files jobset sigs.k8s.io/jobset config/components/webhook
}
