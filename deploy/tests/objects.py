"""What an API server would refuse, or silently do nothing with, and what a schema does not see."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from manifests import WORKLOADS, Container, Pod, name, pods

QUANTITY = re.compile(r"\d+(\.\d+)?(m|[kMGTPE]|[KMGTPE]i)?")
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
HANDLERS = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}
SECCOMP = ("RuntimeDefault", "Localhost", "Unconfined")


def findings(objects: list[dict]) -> Iterator[str]:
    for pod in pods(objects):
        of = name(pod.owner)
        yield from (f"{of}: {text}" for text in of_pod(pod))
    for each in objects:
        rule = {"Service": of_service, "NetworkPolicy": of_policy, "PodDisruptionBudget": of_budget}.get(each["kind"])
        if rule:
            yield from (f"{name(each)}: {text}" for text in rule(each, pods(objects)))


def of_pod(pod: Pod) -> Iterator[str]:
    if pod.owner["kind"] in WORKLOADS:
        wanted = pod.owner["spec"]["selector"].get("matchLabels", {})
        if not wanted.items() <= pod.labels.items():
            yield "its selector does not match the labels of its pods"
    for container, count in Counter(each.name for each in pod.containers).items():
        if count > 1:
            yield f"there are {count} containers {container}"
    ports = Counter(port["containerPort"] for each in pod.containers for port in each.raw.get("ports", []))
    yield from (f"port {port} is used twice" for port, count in ports.items() if count > 1)
    volumes = {each["name"] for each in pod.spec.get("volumes", [])}
    volumes |= {each["metadata"]["name"] for each in pod.owner["spec"].get("volumeClaimTemplates", [])}
    for volume in pod.spec.get("volumes", []):
        sources = [source for each in volume.get("projected", {}).get("sources", []) for source in each.values()]
        paths = Counter(item["path"] for source in sources for item in source.get("items", []))
        yield from (f"the volume {volume['name']} has two files {path}" for path, count in paths.items() if count > 1)
    mounted = {each["name"] for container in pod.containers for each in container.raw.get("volumeMounts", [])}
    yield from (f"there is no volume {each}, which is mounted" for each in mounted - volumes)
    yield from (f"the volume {each} is mounted nowhere" for each in volumes - mounted)
    for each in pod.containers:
        yield from (f"{each.name}: {text}" for text in of_container(each))
    yield from seccomp(pod.spec.get("securityContext", {}))


def of_container(of: Container) -> Iterator[str]:
    raw = of.raw
    if not raw.get("image"):
        yield "no image"
    if "restartPolicy" in raw and not of.is_sidecar:
        yield "restartPolicy is Always, for an init container, or nothing"
    for probe in PROBES:
        if probe not in raw:
            continue
        if of.is_init and not of.is_sidecar:
            yield f"{probe} of an init container that ends"
        if len(HANDLERS & raw[probe].keys()) != 1:
            yield f"{probe} needs one handler"
        if probe != "readinessProbe" and raw[probe].get("successThreshold", 1) != 1:
            yield f"successThreshold of a {probe} is 1"
        scheme = raw[probe].get("httpGet", {}).get("scheme", "HTTP")
        if scheme not in ("HTTP", "HTTPS"):
            yield f"{probe}: there is no scheme {scheme}"
    for hook, handler in raw.get("lifecycle", {}).items():
        if of.is_init and not of.is_sidecar:
            yield f"{hook} of an init container that ends"
        if len(HANDLERS & (handler or {}).keys()) != 1:
            yield f"{hook} needs one handler"
    for port in raw.get("ports", []):
        port_name = port.get("name", "")
        if port_name and not (len(port_name) <= 15 and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", port_name)):
            yield f"port name {port_name!r} is no such name, or longer than 15"
    for variable, count in Counter(each["name"] for each in raw.get("env", [])).items():
        if count > 1:
            yield f"{variable} is set twice"
    requests = raw.get("resources", {}).get("requests", {})
    for which, amounts in raw.get("resources", {}).items():
        for resource, amount in amounts.items():
            if not QUANTITY.fullmatch(str(amount)):
                yield f"{which}.{resource} is no quantity: {amount!r}"
    for resource, limit in raw.get("resources", {}).get("limits", {}).items():
        if "/" in resource and requests.get(resource, limit) != limit:
            yield f"{resource} cannot be overcommitted"
    yield from seccomp(raw.get("securityContext", {}))


def seccomp(context: dict) -> Iterator[str]:
    kind = context.get("seccompProfile", {}).get("type", SECCOMP[0])
    if kind not in SECCOMP:
        yield f"there is no seccomp profile of type {kind}"


def selected(wanted: dict, among: list[Pod]) -> list[Pod]:
    return [pod for pod in among if wanted.items() <= pod.labels.items()]


def of_service(service: dict, among: list[Pod]) -> Iterator[str]:
    chosen = selected(service["spec"].get("selector", {}), among)
    if not chosen:
        yield "it selects no pod"
    for port in service["spec"]["ports"]:
        target = port.get("targetPort")
        if not isinstance(target, int):
            yield f"targetPort {target!r} is not a number: a named port of a native sidecar is not found by every version"
            continue
        open_ports = {
            each["containerPort"] for pod in chosen for of in pod.containers for each in of.raw.get("ports", [])
        }
        if chosen and target not in open_ports:
            yield f"nobody listens at targetPort {target}"


def of_policy(policy: dict, among: list[Pod]) -> Iterator[str]:
    if not selected(policy["spec"]["podSelector"].get("matchLabels", {}), among):
        yield "it selects no pod"
    rules = policy["spec"].get("ingress", []) + policy["spec"].get("egress", [])
    for port in (port for rule in rules for port in rule.get("ports", [])):
        if not isinstance(port.get("port"), int):
            yield f"port {port.get('port')!r} is not a number: a named port of a native sidecar is not found by every plugin"


def of_budget(budget: dict, among: list[Pod]) -> Iterator[str]:
    if not selected(budget["spec"]["selector"].get("matchLabels", {}), among):
        yield "it selects no pod"
    if "minAvailable" in budget["spec"]:
        yield "minAvailable keeps a node with the only replica from being drained; use maxUnavailable"
