# shellcheck shell=bash
# Kueue's controller, with the definitions and webhooks that it serves.
from=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kueue)
go build -o "$BIN/kueue" -ldflags "-s -w" sigs.k8s.io/kueue/cmd/kueue
rm -rf "$BIN/../kueue"
mkdir -p "$BIN/../kueue"
cp -r --no-preserve=mode "$from/config/components/crd" "$from/config/components/webhook" "$BIN/../kueue/"
