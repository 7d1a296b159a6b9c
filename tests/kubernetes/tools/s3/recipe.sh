# shellcheck shell=bash
# A server of the S3 protocol whose objects are files.
go build -o "$BIN/" -ldflags "-s -w" github.com/versity/versitygw/cmd/versitygw
