#!/usr/bin/env python3
"""That the chart refuses what refused.yaml lists, with its reason.

    refused.py HELM...   each version of Helm
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

HERE = Path(__file__).parent
CHART = HERE.parent / "helm" / "streamweld"


def reasons(case: dict) -> list[str]:
    """What one of the versions says, each in its words."""
    if "unknown" in case:
        return [f"Additional property {case['unknown']} is", f"additional properties '{case['unknown']}' not"]
    if "at" in case:
        return [f"- {case['at']}:", f"at '/{case['at'].replace('.', '/')}'"]
    return [case["says"]]


def let_through(helm: str, case: dict) -> str | None:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as values:
        yaml.safe_dump(case["values"], values)
        values.flush()
        base = CHART / "ci" / f"{case['base']}.yaml"
        line = [helm, "template", "r", CHART, "--values", base, "--values", values.name]
        ended = subprocess.run(line, capture_output=True, text=True, check=False)
    if ended.returncode != 0 and any(reason in ended.stderr for reason in reasons(case)):
        return None
    what = "rendered" if ended.returncode == 0 else f"refused otherwise: {ended.stderr.strip()}"
    return f"{case['values']} on {case['base']}: {what}"


if __name__ == "__main__":
    cases = yaml.safe_load((HERE / "refused.yaml").read_text(encoding="utf-8"))
    runs = [(helm, case) for helm in sys.argv[1:] for case in cases]
    with ThreadPoolExecutor(max_workers=4) as pool:
        texts = [text for text in pool.map(lambda run: let_through(*run), runs) if text]
    for text in texts:
        print(f"refused: {text}", file=sys.stderr)
    print(f"refused: {len(runs)}, {len(texts)} of them let through")
    sys.exit(1 if texts else 0)
