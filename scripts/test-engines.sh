#!/usr/bin/env bash
# Kills real llama.cpp servers in mid-answer, behind a Streamweld that has to go on exactly or to refuse.
# KILLS, CUTS, BATCHED, DRAWN, MESSAGES and SEED say how often and where; the run prints what they were.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/llama.sh
install_llama
# One thread each, so that the one that goes on is not slowed by the one that dies.
exec "${CARGO:-cargo}" run --quiet --locked -p streamweld-tests --bin engines -- \
  "llama.cpp ($engine), SmolLM2-135M-Instruct Q4_1 ($weights)" \
  "$folder/venv/bin/python" scripts/llama_server.py "$model" "$alias" 1
