# shellcheck shell=bash
# Prometheus with the discovery of Kubernetes, which Debian's lacks, and no other.
packages=(github.com/prometheus/prometheus/cmd/prometheus)
make() { program prometheus-kubernetes "${packages[0]}" -tags netgo,remove_all_sd,enable_kubernetes_sd; }
