#!/usr/bin/env python3
"""That settings are those of the binary.

    settings.py names BINARY FILE...   every STREAMWELD_* in these files is one, and every one can be set by the chart
    settings.py taken BINARY FILE...   the binary takes what the manifests, and files of variables (*.env), give it

Both exit with 1 when it is not so.
"""

from __future__ import annotations

import functools
import json
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from manifests import pods, read

CHART = Path(__file__).parent.parent / "helm" / "streamweld"
NAME = re.compile(r"STREAMWELD_[A-Z0-9_]+")
COMMANDS = ("serve", "streams", "migrate", "drain", "backends", "mock", "doctor")
#: What the chart does not set: the name of a backend is part of `backends`, and variables win over a file of settings.
LEFT_OUT = {"STREAMWELD_BACKEND_NAME", "STREAMWELD_CONFIG"}


def of_command(binary: str, command: str) -> set[str]:
    shown = subprocess.run([binary, command, "--help"], capture_output=True, text=True, check=True)
    return set(NAME.findall(shown.stdout))


def names(binary: str, files: list[str]) -> list[str]:
    known = set().union(*(of_command(binary, command) for command in COMMANDS))
    wrong = []
    for file in files:
        told = set(NAME.findall(Path(file).read_text(encoding="utf-8")))
        wrong += [f"{file}: the binary has no {each}" for each in sorted(told - known)]
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    by_settings = {variable(each) for each in schema["properties"]["settings"]["properties"]}
    by_others = {each for file in (CHART / "templates").iterdir() for each in NAME.findall(file.read_text("utf-8"))}
    serve = of_command(binary, "serve")
    missing = serve - by_settings - by_others - LEFT_OUT
    wrong += [f"values.schema.json: settings lacks {each}" for each in sorted(missing)]
    wrong += [f"values.schema.json: the binary has no {each}" for each in sorted(by_settings - serve)]
    wrong += [f"values.schema.json: {each} has a value of its own" for each in sorted(by_settings & by_others)]
    print(f"settings: {len(known)} of the binary, {len(files)} files looked through")
    return wrong


def variable(setting: str) -> str:
    return "STREAMWELD_" + setting.upper().replace("-", "_")


def taken(binary: str, files: list[str]) -> list[str]:
    given = [(file, variables) for file in files for variables in given_by(Path(file))]
    wrong = [f"{file}: {text}" for file, variables in given if (text := refusal(binary, variables))]
    print(f"settings: {len(given)} sets of variables, {len(wrong)} of them refused")
    return wrong


def given_by(file: Path) -> list[dict[str, str]]:
    if file.suffix == ".env":
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
        return [dict((name, value.strip('"')) for name, value in (line.split("=", 1) for line in lines))]
    return [pod.streamweld.env for pod in pods(read(file)) if pod.streamweld is not None]


def refusal(binary: str, variables: dict[str, str]) -> str | None:
    """What the binary says to variables. It looks at all of them before it says anything else; then it is stopped. Its port is
    taken already, so that it never serves."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as other:
        env = {name: here(value, Path(folder)) for name, value in variables.items()}
        address = f"127.0.0.1:{other.getsockname()[1]}"
        line = [binary, "serve", "--listen", address, "--admin-listen", "127.0.0.1:0"]
        with subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            said = process.stderr.readline()
            if said.startswith("error:"):
                return said + process.stderr.read()
            process.kill()
    return None if said else "the binary says nothing"


def here(value: str, folder: Path) -> str:
    """The same on this machine: files that are there, and a Redis that is nowhere."""

    def local(path: re.Match) -> str:
        file = folder / path[0].lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content(file.name), encoding="utf-8")
        return str(file)

    value = re.sub(r"/etc/streamweld/[^,\s]+", local, value).replace("$(POD_IP)", "127.0.0.1")
    # The port of a relay is one that is free here.
    value = re.sub(r"^0\.0\.0\.0:7443$", "127.0.0.1:0", value)
    return re.sub(r"^(rediss?://)[^/]+", r"\g<1>127.0.0.1:1", value)


@functools.cache
def pair() -> tuple[str, str]:
    """A key, and a certificate that it belongs to."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout - -out -"
    made = subprocess.run(make.split(), capture_output=True, text=True, check=True).stdout
    begin = made.index("-----BEGIN CERTIFICATE-----")
    return made[:begin], made[begin:]


@functools.cache
def relay_files() -> dict[str, str]:
    """Those of docs/operations.md, by its own commands."""
    document = Path(__file__).parents[2] / "docs" / "operations.md"
    section = document.read_text(encoding="utf-8").split("### The relay's certificates")[1]
    commands = section.split("```sh\n")[1].split("```")[0]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["sh", "-euc", commands], cwd=folder, capture_output=True, check=True)
        files = {"relay-cert": "relay.pem", "relay-key": "relay.key", "relay-ca": "ca.pem"}
        return {name: (Path(folder) / file).read_text(encoding="utf-8") for name, file in files.items()}


def content(name: str) -> str:
    if name.startswith("relay-"):
        return relay_files()[name]
    if name.endswith("-ca"):
        system = Path("/etc/ssl/certs/ca-certificates.crt").read_text(encoding="utf-8")
        return system[: system.index("-----END") + len("-----END CERTIFICATE-----\n")]
    if name.endswith(("tls-cert", "tls-key")):
        return pair()[name.endswith("-cert")]
    if name == "journal-url":
        return "redis://:secret@127.0.0.1:1/0\n"
    # A token, a password, or a key of 32 characters at least.
    return "0123456789abcdef0123456789abcdef\n"


if __name__ == "__main__":
    found = {"names": names, "taken": taken}[sys.argv[1]](sys.argv[2], sys.argv[3:])
    for text in found:
        print(text, file=sys.stderr)
    sys.exit(1 if found else 0)
