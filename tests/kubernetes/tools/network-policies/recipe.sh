# shellcheck shell=bash
# kube-network-policies, which enforces NetworkPolicies.
go build -o "$BIN/kube-network-policies" -ldflags "-s -w" sigs.k8s.io/kube-network-policies/cmd
