# shellcheck shell=bash
# JobSet's controller, with the webhooks that it serves; its definition is among those of definitions/.
from=$(go list -m -f '{{.Dir}}' sigs.k8s.io/jobset)
go build -o "$BIN/jobset" -ldflags "-s -w" sigs.k8s.io/jobset
rm -rf "$BIN/../jobset"
mkdir -p "$BIN/../jobset"
cp -r --no-preserve=mode "$from/config/components/webhook" "$BIN/../jobset/"
