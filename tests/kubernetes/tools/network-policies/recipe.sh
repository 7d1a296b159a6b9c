# shellcheck shell=bash
# kube-network-policies, which enforces NetworkPolicies.
packages=(sigs.k8s.io/kube-network-policies/cmd)
make() { program kube-network-policies "${packages[0]}"; }
