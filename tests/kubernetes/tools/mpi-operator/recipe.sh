# shellcheck shell=bash
# Kubeflow's MPI Operator. Its port for health checks is fixed to 8080, which two clusters of a machine cannot both have:
# 0 takes one that is free.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
module=github.com/kubeflow/mpi-operator
cp -r --no-preserve=mode "$(go list -m -f '{{.Dir}}' $module)" "$work/operator"
sed -i 's/healthCheckPort = 8080/healthCheckPort = 0/w '"$work/changed" "$work/operator/cmd/mpi-operator/app/server.go"
[ -s "$work/changed" ]
cp go.mod go.sum "$work/"
go mod edit -replace "$module=$work/operator" "$work/go.mod"
go build -modfile="$work/go.mod" -o "$BIN/" -ldflags "-s -w" $module/cmd/mpi-operator
