# shellcheck shell=bash
# A scheduler with the coscheduling plugin of the scheduler-plugins; its definition is among those of definitions/.
go build -o "$BIN/scheduler-plugins" -ldflags "-s -w" ./scheduler
