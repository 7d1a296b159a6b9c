# shellcheck shell=bash
# Volcano's scheduler; its definitions are among those of definitions/.
go build -o "$BIN/volcano" -ldflags "-s -w" volcano.sh/volcano/cmd/scheduler
