# shellcheck shell=bash
# Prometheus with the discovery of Kubernetes, which Debian's lacks, and no other.
go build -o "$BIN/prometheus-kubernetes" -ldflags "-s -w" -tags netgo,remove_all_sd,enable_kubernetes_sd \
  github.com/prometheus/prometheus/cmd/prometheus
