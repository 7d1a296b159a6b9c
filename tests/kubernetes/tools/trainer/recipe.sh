# shellcheck shell=bash
# The controller of Kubeflow's Trainer, with the webhooks that it serves; its definitions are among those of definitions/.
from=$(go list -m -f '{{.Dir}}' github.com/kubeflow/trainer/v2)
go build -o "$BIN/trainer" -ldflags "-s -w" github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager
rm -rf "$BIN/../trainer"
mkdir -p "$BIN/../trainer"
cp -r --no-preserve=mode "$from/manifests/base/webhook" "$BIN/../trainer/"
