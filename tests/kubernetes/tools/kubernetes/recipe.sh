# shellcheck shell=bash
# Kubernetes 1.35 with its etcd, a small CoreDNS, and its own driver for tests of dynamic resource allocation. Run by
# build.sh in this folder; some ten minutes on two cores.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
at=k8s.io/component-base/version
IFS=. read -r major minor _ <<<"${version#v}"
go build -o "$BIN/" \
  -ldflags "-s -w -X $at.gitVersion=$version -X $at.gitMajor=$major -X $at.gitMinor=$minor" \
  k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kubelet} ./coredns
go build -o "$BIN/etcd" -ldflags "-s -w" go.etcd.io/etcd/server/v3
go build -o "$BIN/dra-test-driver" -ldflags "-s -w" k8s.io/kubernetes/test/e2e/dra/test-driver
