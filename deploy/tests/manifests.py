"""Kubernetes objects as they are read from files, and the pods in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")


def read(path: str | Path) -> list[dict]:
    with open(path, encoding="utf-8") as file:
        return [each for each in yaml.safe_load_all(file) if each]


def name(of: dict) -> str:
    return f"{of.get('kind')}/{of.get('metadata', {}).get('name')}"


@dataclass
class Container:
    raw: dict
    is_init: bool

    @property
    def name(self) -> str:
        return str(self.raw.get("name"))

    @property
    def is_sidecar(self) -> bool:
        return self.is_init and self.raw.get("restartPolicy") == "Always"

    @property
    def is_streamweld(self) -> bool:
        """Whether it is the proxy. Its image may be called anything, and others serve too."""
        return self.raw.get("args", [])[:1] == ["serve"] and "STREAMWELD_BACKEND" in self.env

    @property
    def env(self) -> dict[str, str]:
        return {each["name"]: each.get("value", "") for each in self.raw.get("env", [])}

    def pre_stop(self) -> dict:
        return self.raw.get("lifecycle", {}).get("preStop") or {}

    def flag(self, flag: str) -> str | None:
        """The value of `--flag value` or `--flag=value` in its command line."""
        line = [str(word) for word in self.raw.get("command", []) + self.raw.get("args", [])]
        for word, after in zip(line, [*line[1:], ""], strict=True):
            if word == flag:
                return after
            if word.startswith(f"{flag}="):
                return word.split("=", 1)[1]
        return None


@dataclass
class Pod:
    owner: dict
    spec: dict
    labels: dict

    @property
    def containers(self) -> list[Container]:
        inits = [Container(each, True) for each in self.spec.get("initContainers", [])]
        return inits + [Container(each, False) for each in self.spec.get("containers", [])]

    @property
    def streamweld(self) -> Container | None:
        return next((each for each in self.containers if each.is_streamweld), None)

    @property
    def engines(self) -> list[Container]:
        """What is told to end before Streamweld, where that is a native sidecar."""
        ours = self.streamweld
        return [each for each in self.containers if ours and ours.is_sidecar and not each.is_init]

    @property
    def grace(self) -> int:
        return self.spec.get("terminationGracePeriodSeconds", 30)


def pods(objects: list[dict]) -> list[Pod]:
    found = []
    for each in objects:
        if each.get("kind") in WORKLOADS:
            template = each["spec"]["template"]
            labels = template.get("metadata", {}).get("labels", {})
            found.append(Pod(each, template.get("spec", {}), labels))
    return found


def seconds(text: str) -> float:
    """A time as Streamweld writes it, such as 30s, 1m 30s or 500ms."""
    units = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600}
    parts = re.findall(r"(\d+) ?([a-z]+)", text)
    if not parts or any(unit not in units for _, unit in parts):
        raise ValueError(f"{text!r} is no time")
    return sum(int(number) * units[unit] for number, unit in parts)


def mebibytes(text: str) -> float:
    """A size as Streamweld writes it (512MiB), or Kubernetes (512Mi)."""
    found = re.fullmatch(r"(\d+)([KMG])i(B?)", text)
    if not found:
        raise ValueError(f"{text!r} is no size")
    return int(found[1]) * {"K": 1 / 1024, "M": 1, "G": 1024}[found[2]]
