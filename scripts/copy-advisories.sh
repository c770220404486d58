#!/usr/bin/env bash
# Copies from a checkout of the RustSec advisory database what is about the packages in our lock files:
# scripts/copy-advisories.sh DATABASE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
database=${1:?usage: scripts/copy-advisories.sh DATABASE}
to=advisories/advisory-db

rm -rf "$to/crates" "$to/packages.txt"
mkdir -p "$to/crates"
sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.lock fuzz/Cargo.lock advisories/Cargo.lock | LC_ALL=C sort -u |
  grep -v '^streamweld' >"$to/packages.txt"
while IFS= read -r name; do
  if [[ -d $database/crates/$name ]]; then cp -R "$database/crates/$name" "$to/crates/"; fi
done <"$to/packages.txt"
cp "$database/LICENSE.txt" "$to/"
