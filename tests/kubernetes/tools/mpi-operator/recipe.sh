# shellcheck shell=bash
# Kubeflow's MPI Operator.
go build -o "$BIN/" -ldflags "-s -w" github.com/kubeflow/mpi-operator/cmd/mpi-operator
