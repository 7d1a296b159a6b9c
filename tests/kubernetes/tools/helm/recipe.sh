# shellcheck shell=bash
# Helm, helm-unittest and kwok; kwok's stages say what its pods do.
version=$(go list -m -f '{{.Version}}' helm.sh/helm/v4)
go build -o "$BIN/" -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$version" \
  helm.sh/helm/v4/cmd/helm github.com/helm-unittest/helm-unittest/cmd/helm-unittest sigs.k8s.io/kwok/cmd/kwok
rm -rf "$BIN/../kwok-stages"
cp -r --no-preserve=mode "$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage" "$BIN/../kwok-stages"
