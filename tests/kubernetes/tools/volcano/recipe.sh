# shellcheck shell=bash
# Volcano's scheduler; its definitions are among those of definitions/. Its module is of Kubernetes 1.27.
packages=(volcano.sh/volcano/cmd/scheduler)
make() { program volcano "${packages[0]}"; }
