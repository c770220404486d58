#!/usr/bin/env python3
"""That the gates find what is wrong: each fault of faults.yaml is built into a manifest, and has to be found.

    faults.py FOLDER   where the manifests are that are well
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
from pathlib import Path

import kubernetes_validate
import yaml

import gate
from manifests import name, read

HERE = Path(__file__).parent
#: Any that the manifests are checked against.
KUBERNETES = "1.33"


def with_fault(manifest: list[dict], fault: dict) -> list[dict]:
    manifest = copy.deepcopy(manifest)
    target = next(each for each in manifest if name(each) == fault["of"])
    for path, value in fault["set"].items():
        put(target, path.split("."), value)
    return manifest


def put(target: dict, way: list[str], value: object) -> None:
    *way, last = way
    for step in way:
        target = target[int(step)] if isinstance(target, list) else target[step]
    if isinstance(target, list):
        target.insert(int(last), value)
    elif value is None:
        del target[last]
    else:
        target[last] = value


def by_gate(manifest: list[dict]) -> str:
    return "\n".join(gate.findings(manifest))


def by_schema(manifest: list[dict]) -> str:
    said = []
    for each in manifest:
        try:
            kubernetes_validate.validate(each, KUBERNETES, strict=True)
        except kubernetes_validate.SchemaNotFoundError:
            pass
        except kubernetes_validate.ValidationError as error:
            said.append(error.message)
    return "\n".join(said)


def by_crd(manifest: list[dict]) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        yaml.safe_dump_all(manifest, file)
        file.flush()
        ended = subprocess.run(["node", HERE / "crds.mjs", file.name], capture_output=True, text=True, check=False)
    return ended.stderr if ended.returncode else ""


def missed(fault: dict, folder: Path) -> str | None:
    look = {"gate": by_gate, "schema": by_schema, "crd": by_crd}[fault.get("by", "gate")]
    said = look(with_fault(read(folder / fault["in"]), fault))
    if fault["found"] in said:
        return None
    return f"not found: {fault['name']} ({fault['found']}); instead:\n{said}"


if __name__ == "__main__":
    listed = yaml.safe_load((HERE / "faults.yaml").read_text(encoding="utf-8"))
    texts = [text for fault in listed if (text := missed(fault, Path(sys.argv[1])))]
    for text in texts:
        print(f"faults: {text}", file=sys.stderr)
    print(f"faults: {len(listed)}, {len(texts)} of them missed")
    sys.exit(1 if texts else 0)
