#!/usr/bin/env bash
# The completion script that the program writes, asked as bash asks it.
set -euo pipefail
# shellcheck disable=SC1090
source <("${LOCKSTEP:?}" completion bash)

# offers WORD... : what is offered after these words (the last one half typed).
offers() {
  COMP_WORDS=(lockstep "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _lockstep
  echo "${COMPREPLY[*]}"
}

expect() {
  local expected=$1 found
  shift
  found=$(offers "$@")
  [ "$found" = "$expected" ] || { echo "after '$*': expected '$expected', found '$found'"; exit 1; }
}

expect 'train trace' tr
expect --ranks train --ran
expect --resume train --ranks 2 job.yaml --resu
expect '' train jo
expect '' train ''

