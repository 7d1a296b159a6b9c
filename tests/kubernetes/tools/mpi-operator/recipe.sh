# shellcheck shell=bash
# Kubeflow's MPI Operator. Its port for health checks is fixed to 8080, which two clusters of a machine cannot both have:
# 0 takes one that is free.
packages=(github.com/kubeflow/mpi-operator/cmd/mpi-operator)
make() {
  patched github.com/kubeflow/mpi-operator cmd/mpi-operator/app/server.go 's/healthCheckPort = 8080/healthCheckPort = 0/'
  with_patches
  program mpi-operator "${packages[0]}"
}
