# shellcheck shell=bash disable=SC2034
# A scheduler with the coscheduling plugin of the scheduler-plugins; its definition is among those of definitions/. What
# the plugin takes from the scheduler's framework has another package since Kubernetes 1.35.
packages=(./scheduler)
make() {
  local module=sigs.k8s.io/scheduler-plugins from=pkg/coscheduling
  patched $module $from/core/core.go 's/framework\.SharedLister/fwk.SharedLister/'
  patched $module $from/coscheduling.go 's/\bframework\./fwk./g; /pkg\/scheduler\/framework"/d'
  with_patches
  program scheduler-plugins ./scheduler
}
