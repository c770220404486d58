# shellcheck shell=bash
# Processes that a demonstration starts and ends, for a script to `source`: each has a name, a log, and is ended with the
# script. Everything lies in a temporary folder, which is gone then. `demo` is what the script calls itself.
folder=$(mktemp -d)
declare -A pids=()

end() { # NAME SIGNAL: gives how it ended
  local pid=${pids[$1]}
  unset "pids[$1]"
  # The shell would say on standard error that a job was killed.
  { kill -s "$2" "$pid" && wait "$pid"; } 2>/dev/null
}

clean_up() {
  local name
  for name in "${!pids[@]}"; do end "$name" KILL || true; done
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fail() { # NAME WORDS: shows the end of its log
  tail -n 20 "$folder/$1.log" >&2 || true
  echo "${demo:?}: $2" >&2
  exit 1
}

start() { # NAME COMMAND...
  local name=$1
  shift
  "$@" >"$folder/$name.log" 2>&1 </dev/null &
  pids[$name]=$!
}

# Waits until a condition holds; not when the process has ended, and not for ever.
wait_for() { # NAME CONDITION...
  local name=$1 deadline=$((SECONDS + 20))
  shift
  until "$@"; do
    if ! kill -0 "${pids[$name]}" 2>/dev/null || ((SECONDS > deadline)); then return 1; fi
    sleep 0.05
  done
}

url_in_log() { # NAME WORDS: the address behind these words; sets `url`
  url=$(sed -n "s|.*$2 http://\([0-9.:]*\).*|\1|p" "$folder/$1.log" 2>/dev/null) || true
  [[ -n $url ]]
}
