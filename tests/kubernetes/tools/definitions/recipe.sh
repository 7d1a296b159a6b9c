# shellcheck shell=bash
# Custom resource definitions, from the modules of those who define them: no program of theirs is built.

# definitions NAME MODULE[@VERSION] FILE...: files of a module as definitions/NAME.yaml in the cache.
definitions() {
  local name=$1 module=$2 folder
  [[ $module == *@* ]] || module=$(go list -m -f '{{.Path}}@{{.Version}}' "$module")
  folder=$(go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  shift 2
  (cd "$folder" && awk 'FNR == 1 {print "---"} 1' "$@") >"${cache:?}/definitions/$name.yaml"
}

make() {
  local groups runtimes monitors
  mkdir -p "${cache:?}/definitions"
  definitions mpi-operator github.com/kubeflow/mpi-operator manifests/base/kubeflow.org_mpijobs.yaml
  definitions jobset sigs.k8s.io/jobset config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml
  definitions coscheduling sigs.k8s.io/scheduler-plugins config/crd/bases/scheduling.x-k8s.io_podgroups.yaml
  groups=(nodeinfo.volcano.sh_numatopologies scheduling.volcano.sh_{podgroups,queues})
  groups=("${groups[@]/#/config/crd/volcano/bases/}")
  definitions volcano volcano.sh/volcano@v1.8.2 "${groups[@]/%/.yaml}"
  runtimes=(clustertrainingruntimes trainingruntimes trainjobs)
  runtimes=("${runtimes[@]/#/manifests/base/crds/trainer.kubeflow.org_}")
  definitions trainer github.com/kubeflow/trainer/v2 "${runtimes[@]/%/.yaml}"
  monitors=(podmonitors prometheusrules servicemonitors)
  monitors=("${monitors[@]/#/example/prometheus-operator-crd/monitoring.coreos.com_}")
  definitions prometheus-operator github.com/prometheus-operator/prometheus-operator "${monitors[@]/%/.yaml}"
}
