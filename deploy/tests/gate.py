#!/usr/bin/env python3
"""What is wrong with manifests that their schemas allow.

    gate.py FILE...

Exits with 1 when there is something.
"""

from __future__ import annotations

import sys

import objects
import streamweld
from manifests import pods, read


def findings(of: list[dict]) -> list[str]:
    return [*objects.findings(of), *streamweld.findings(of)]


def check(paths: list[str]) -> int:
    wrong = 0
    seen = 0
    for path in paths:
        manifest = read(path)
        seen += len([pod for pod in pods(manifest) if pod.streamweld])
        for text in findings(manifest):
            wrong += 1
            print(f"{path}: {text}", file=sys.stderr)
    if seen == 0:
        print("gate: no pod with a Streamweld was found", file=sys.stderr)
        return 1
    print(f"gate: {len(paths)} files, {seen} pods with a Streamweld, {wrong} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(check(sys.argv[1:]))
