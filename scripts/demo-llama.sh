#!/usr/bin/env bash
# `streamweld demo` in front of a real llama.cpp server with a 135M model. Everything is kept in target/llama.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
streamweld=${STREAMWELD:-target/release/streamweld}
source scripts/llama.sh
log=$folder/server.log

server=
end_server() {
  if [[ -n $server ]]; then
    # It would wait for answers that run, which nobody will read.
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
}
trap end_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

install_llama
echo "demo-llama: loading the model (its log is $log)" >&2
coproc SERVER { exec "$folder/venv/bin/python" scripts/llama_server.py "$model" "$alias" 2>"$log"; }
server=$SERVER_PID
# A copy: bash takes the original away when the server ends.
exec 3<&"${SERVER[0]}"
if ! read -r -t 180 url <&3; then
  tail -n 20 "$log" >&2
  echo "demo-llama: the server did not start" >&2
  exit 1
fi
"$streamweld" demo --backend "$url" --model "$alias"
