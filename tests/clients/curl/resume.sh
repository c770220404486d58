#!/usr/bin/env bash
# Reads an event stream to its end with curl, however often the connection is lost: `resume.sh CURL-ARGUMENTS`.
#
# Whole events go to standard output, each once. It comes back after WAIT seconds (1) with the id of the last one. It stops
# when there is nothing left (204), and fails when it is refused (4xx).
set -euo pipefail
last='' status=000
while [[ $status != 204 ]]; do
  block='' id=''
  while IFS= read -r line; do
    case $line in
      # What curl says at the end of an answer, wherever that broke off.
      *$'\036status '???)
        status=${line##*status }
        continue
        ;;
      'id: '*) id=${line#id: } ;;
    esac
    block+=$line$'\n'
    if [[ -z $line ]]; then
      printf '%s' "$block"
      last=${id:-$last} block='' id=''
    fi
  done < <(curl --silent --no-buffer --header "Last-Event-ID: $last" --write-out $'\036status %{http_code}\n' "$@" || true)
  if [[ $status == 4?? ]]; then
    echo "resume.sh: refused with status $status" >&2
    exit 1
  fi
  if [[ $status != 204 ]]; then sleep "${WAIT:-1}"; fi
done
