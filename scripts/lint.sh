#!/usr/bin/env bash
# Formatting and clippy. Debian's Rust comes without either tool: that is said and passed over, but not in CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo=${CARGO:-cargo}

# has TOOL COMMAND...: the tool is there; in CI it must be.
has() {
  local tool=$1
  shift
  if "$@" >/dev/null 2>&1; then return 0; fi
  if [[ ${CI:-} == true ]]; then
    echo "lint: $tool is missing (rustup component add $tool)" >&2
    exit 1
  fi
  echo "lint: $tool is missing, its check is left out (rustup component add $tool)" >&2
  return 1
}

if has rustfmt "$cargo" fmt --version; then
  "$cargo" fmt --all --check
  "$cargo" fmt --manifest-path fuzz/Cargo.toml --check
  "$cargo" fmt --manifest-path advisories/Cargo.toml --check
fi
if has clippy "$cargo" clippy --version; then
  "$cargo" clippy --workspace --all-targets --locked -- -D warnings
fi
