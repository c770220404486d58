#!/usr/bin/env python3
"""That what deploy/README.md says to install can be rendered: every `helm install` of it, and every block of values.

    documents.py HELM README PARENT   the last is a chart that depends on ours
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def values(text: str, member: str) -> str:
    """The block of values with this member."""
    return next(block for block in blocks(text, "yaml") if re.search(rf"^{member}:", block, re.MULTILINE))


def commands(text: str, parent: str) -> list[list[str | Path]]:
    lines = "\n".join(blocks(text, "sh")).replace("\\\n", " ").splitlines()
    found = [shlex.split(line, comments=True) for line in lines if line.startswith("helm install ")]
    told = [[name, ROOT / chart, *rest] for _, _, name, chart, *rest in found]
    return [*told, ["inference", parent, "--values", "parent.yaml"]] if told else []


if __name__ == "__main__":
    helm, readme = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8")
    listed = commands(readme, sys.argv[3])
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "values.yaml").write_text(values(readme, "backends"), encoding="utf-8")
        (Path(folder) / "parent.yaml").write_text(values(readme, "streamweld"), encoding="utf-8")
        for line in listed:
            ended = subprocess.run([helm, "template", *line], cwd=folder, capture_output=True, text=True, check=False)
            if ended.returncode:
                wrong += 1
                print(f"documents: {' '.join(map(str, line))}: {ended.stderr.strip()}", file=sys.stderr)
    print(f"documents: {len(listed)} ways to install, {wrong} of them wrong")
    sys.exit(1 if wrong or not listed else 0)
