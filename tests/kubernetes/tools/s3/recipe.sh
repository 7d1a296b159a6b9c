# shellcheck shell=bash
# A server of the S3 protocol whose objects are files.
packages=(github.com/versity/versitygw/cmd/versitygw)
make() { program versitygw "${packages[0]}"; }
