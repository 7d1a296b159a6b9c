# shellcheck shell=bash
# Kubernetes 1.35 with its etcd, a small CoreDNS, and its own driver for tests of dynamic resource allocation.
packages=(k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kubelet} ./coredns
  go.etcd.io/etcd/server/v3 k8s.io/kubernetes/test/e2e/dra/test-driver)
make() {
  local version at=k8s.io/component-base/version major minor
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  go build -o "$BIN/" -ldflags "-s -w -X $at.gitVersion=$version -X $at.gitMajor=$major -X $at.gitMinor=$minor" \
    "${packages[@]:0:6}"
  program etcd go.etcd.io/etcd/server/v3
  program dra-test-driver k8s.io/kubernetes/test/e2e/dra/test-driver
}
