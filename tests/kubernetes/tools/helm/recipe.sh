# shellcheck shell=bash
# Helm, helm-unittest and kwok; kwok's stages say what its pods do. kwok names an annotation by a constant that Kubernetes
# 1.35 has no more.
kwok=sigs.k8s.io/kwok
packages=(helm.sh/helm/v4/cmd/helm github.com/helm-unittest/helm-unittest/cmd/helm-unittest "$kwok/cmd/kwok")
make() {
  local version constant=metav1.InitialEventsListBlueprintAnnotationKey
  version=$(go list -m -f '{{.Version}}' helm.sh/helm/v4)
  patched $kwok pkg/utils/informer/informer.go "s|$constant|\"kubernetes.io/initial-events-list-blueprint\"|"
  with_patches
  go build -o "$BIN/" -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$version" "${packages[@]}"
  files kwok $kwok kustomize/stage
}
