# shellcheck shell=bash
# Custom resource definitions, from the modules of those who define them: no program of theirs is built.

# definitions NAME MODULE FILE...: files of a module as definitions/NAME.yaml in the cache.
definitions() {
  local name=$1 folder
  folder=$(go mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  shift 2
  (cd "$folder" && awk 'FNR == 1 {print "---"} 1' "$@") >"$BIN/../definitions/$name.yaml"
}

mkdir -p "$BIN/../definitions"
definitions mpi-operator github.com/kubeflow/mpi-operator@v0.8.0 manifests/base/kubeflow.org_mpijobs.yaml
definitions jobset sigs.k8s.io/jobset@v0.10.1 config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml
definitions coscheduling sigs.k8s.io/scheduler-plugins@v0.33.5 config/crd/bases/scheduling.x-k8s.io_podgroups.yaml
groups=(nodeinfo.volcano.sh_numatopologies scheduling.volcano.sh_{podgroups,queues})
groups=("${groups[@]/#/config/crd/volcano/bases/}")
definitions volcano volcano.sh/volcano@v1.8.2 "${groups[@]/%/.yaml}"
runtimes=(clustertrainingruntimes trainingruntimes trainjobs)
runtimes=("${runtimes[@]/#/manifests/base/crds/trainer.kubeflow.org_}")
definitions trainer github.com/kubeflow/trainer/v2@v2.1.0 "${runtimes[@]/%/.yaml}"
monitors=(podmonitors prometheusrules servicemonitors)
monitors=("${monitors[@]/#/example/prometheus-operator-crd/monitoring.coreos.com_}")
definitions prometheus-operator github.com/prometheus-operator/prometheus-operator@v0.85.0 \
  "${monitors[@]/%/.yaml}"
