#!/usr/bin/env bash
# Runs each fuzz target, or those named as arguments, for FUZZ_SECONDS. What is found stays in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${FUZZ_SECONDS:-60}

if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "fuzz: needs a nightly toolchain: rustup toolchain install nightly" >&2
  exit 1
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
  echo "fuzz: needs cargo-fuzz: cargo install cargo-fuzz --locked" >&2
  exit 1
fi

targets=("$@")
if [[ ${#targets[@]} == 0 ]]; then
  mapfile -t targets < <(cargo +nightly fuzz list)
fi
for target in "${targets[@]}"; do
  echo "fuzz: $target for $seconds s"
  # What it grows by goes into the first folder; the committed corpus stays as small as it is.
  grown=fuzz/target/corpus/$target
  mkdir -p "$grown"
  cargo +nightly fuzz run "$target" "$grown" "fuzz/corpus/$target" -- -max_total_time="$seconds"
done
