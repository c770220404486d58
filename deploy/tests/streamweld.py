"""What a pod with a Streamweld has to be, so that nothing is lost when it goes, and nobody gets in who should not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from manifests import Container, Pod, mebibytes, name, pods, seconds

#: Streamweld exits at most so long after its shutdown grace (README.md, "Operation").
SENDING_ENDS = 4
#: protocol.md 12.3
LONGEST_DRAIN = 600


def findings(objects: list[dict]) -> Iterator[str]:
    for pod in pods(objects):
        ours = pod.streamweld
        if ours is None:
            continue
        of = name(pod.owner)
        for rule in (termination, probes, restricted, resources, admin, secrets):
            yield from (f"{of}: {text}" for text in rule(pod, ours))
        yield from (f"{of}: {text}" for text in journal(pod, ours, objects))
        yield from (f"{of}: {text}" for text in relay(pod, ours, objects))


def termination(pod: Pod, ours: Container) -> Iterator[str]:
    """deploy/README.md, "How a pod ends"."""
    drain = drained(ours)
    if drain is None:
        yield "its preStop hook is not `streamweld drain --wait TIME`: SIGTERM comes too late in a sidecar"
        return
    if drain > LONGEST_DRAIN:
        yield f"drain --wait is above {LONGEST_DRAIN} s"
    hooks = drain
    engine_ends = 0
    for engine in pod.engines:
        waits = waited(engine)
        if waits is None:
            yield f"{engine.name} has no preStop hook that sleeps: it is told to end while its answers are handed over"
            continue
        if waits < drain:
            yield f"{engine.name} sleeps {waits:g} s in its preStop hook, which is shorter than the drain ({drain:g})"
        if "vllm" in engine.raw["image"] and engine.flag("--shutdown-timeout") is None:
            yield f"{engine.name} is a vLLM without --shutdown-timeout, and cuts everything when it is told to end"
        hooks = max(hooks, waits)
        engine_ends = max(engine_ends, float(engine.flag("--shutdown-timeout") or 0))
    tail = seconds(ours.env.get("STREAMWELD_SHUTDOWN_GRACE", "30s")) + SENDING_ENDS
    needed = hooks + engine_ends + tail
    if pod.grace <= needed:
        yield (
            f"terminationGracePeriodSeconds ({pod.grace}) is not above what it takes to end ({needed:g}: hooks {hooks:g}, "
            f"engine {engine_ends:g}, Streamweld {tail:g})"
        )


def drained(ours: Container) -> float | None:
    match ours.pre_stop().get("exec", {}).get("command"):
        # The wait begins with the command, so what it begins later is part of it.
        case [binary, "drain", "--wait", time] | [binary, "drain", "--after", _, "--wait", time] if binary.endswith(
            "/streamweld"
        ):
            return seconds(time)
    return None


def waited(engine: Container) -> float | None:
    hook = engine.pre_stop()
    if "sleep" in hook:
        return hook["sleep"]["seconds"]
    match hook.get("exec", {}).get("command"):
        case ["sleep", time]:
            return float(time)
    return None


def probes(pod: Pod, ours: Container) -> Iterator[str]:
    wanted = {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/livez"}
    scheme = {"scheme": "HTTPS"} if "STREAMWELD_ADMIN_TLS_CERT_FILE" in ours.env else {}
    for probe, path in wanted.items():
        asked = ours.raw.get(probe, {}).get("httpGet")
        if asked is None:
            why = ": the engine would start before it" if probe == "startupProbe" and ours.is_sidecar else ""
            yield f"there is no {probe}{why}"
        elif asked != {"path": path, "port": port_of(ours, "STREAMWELD_ADMIN_LISTEN"), **scheme}:
            yield f"its {probe} is not {path} of the admin listener, by number"
    if ours.is_init and not ours.is_sidecar:
        yield "as an init container it needs restartPolicy: Always"


def restricted(pod: Pod, ours: Container) -> Iterator[str]:
    """The profile `restricted`, and a root file system that is not written to."""
    own = ours.raw.get("securityContext", {})
    wanted = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    yield from (f"securityContext.{key} is not {value}" for key, value in wanted.items() if own.get(key) != value)
    if not isinstance(own.get("runAsUser"), int) or own["runAsUser"] == 0:
        yield "securityContext.runAsUser is no number of a user"
    if pod.spec.get("automountServiceAccountToken") is not False:
        yield "automountServiceAccountToken is not false"
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(key):
            yield f"{key} is set"


def resources(pod: Pod, ours: Container) -> Iterator[str]:
    amounts = ours.raw.get("resources", {})
    memory = amounts.get("limits", {}).get("memory")
    if memory is None or memory != amounts.get("requests", {}).get("memory"):
        yield "its memory has no limit, or another than is requested"
    elif mebibytes(memory) < 1.3 * mebibytes(ours.env.get("STREAMWELD_JOURNAL_TOTAL", "512MiB")):
        yield f"its memory ({memory}) is below 1.3 times its journal"
    if "cpu" in amounts.get("limits", {}):
        yield "its CPU is limited, which delays every token"


def admin(pod: Pod, ours: Container) -> Iterator[str]:
    told = ours.env.get("STREAMWELD_ADMIN", "http://127.0.0.1:9090")
    place = "https://localhost" if "STREAMWELD_ADMIN_TLS_CERT_FILE" in ours.env else "http://127.0.0.1"
    if told != f"{place}:{port_of(ours, 'STREAMWELD_ADMIN_LISTEN')}":
        yield f"`streamweld drain` would look for it at {told}, where it does not listen"
    named = {port["name"]: port["containerPort"] for port in ours.raw.get("ports", [])}
    wanted = {"sw-data": port_of(ours, "STREAMWELD_LISTEN"), "sw-admin": port_of(ours, "STREAMWELD_ADMIN_LISTEN")}
    if "STREAMWELD_RELAY_LISTEN" in ours.env:
        wanted["sw-relay"] = port_of(ours, "STREAMWELD_RELAY_LISTEN")
    if named != wanted:
        yield f"its ports are {named}, and it listens at {wanted}"


def secrets(pod: Pod, ours: Container) -> Iterator[str]:
    for variable, value in ours.env.items():
        if re.search(r"://[^/@\s]*:[^/@\s]*@", value):
            yield f"{variable} has a password in it; mount a file"
    mounts = [each["mountPath"] for each in ours.raw.get("volumeMounts", [])]
    for variable, value in ours.env.items():
        paths = [value] if variable.endswith(("_FILE", "_CA", "_CERT", "_KEY")) else []
        paths += re.findall(r"credential-file=([^,\s]+)", value)
        for path in paths:
            if not any(path.startswith(f"{mount}/") for mount in mounts):
                yield f"{variable} names {path}, where nothing is mounted"


def journal(pod: Pod, ours: Container, objects: list[dict]) -> Iterator[str]:
    """A journal in memory is found in its own pod only."""
    if "STREAMWELD_JOURNAL_FILE" in ours.env or ours.env.get("STREAMWELD_JOURNAL", "memory") != "memory":
        return
    scalers = [each["spec"] for each in objects if each["kind"] == "HorizontalPodAutoscaler"]
    own = pod.owner["metadata"]["name"]
    scaled = [each["maxReplicas"] for each in scalers if each["scaleTargetRef"]["name"] == own]
    if max([pod.owner["spec"].get("replicas", 1), *scaled]) == 1:
        return
    services = [each["spec"] for each in objects if each["kind"] == "Service"]
    kept = [each for each in services if each.get("selector", {}).items() <= pod.labels.items()]
    if not any(each.get("sessionAffinity") == "ClientIP" for each in kept):
        yield "several pods with a journal in memory, and clients are not led back to theirs"


def relay(pod: Pod, ours: Container, objects: list[dict]) -> Iterator[str]:
    """Replicas reach one another, and nobody else does."""
    if "STREAMWELD_RELAY_LISTEN" not in ours.env:
        return
    port = port_of(ours, "STREAMWELD_RELAY_LISTEN")
    for policy in (each["spec"] for each in objects if each["kind"] == "NetworkPolicy"):
        if not policy["podSelector"].get("matchLabels", {}).items() <= pod.labels.items():
            continue
        for way, peers in (("ingress", "from"), ("egress", "to")):
            rules = [rule for rule in policy.get(way, []) if port in [each["port"] for each in rule.get("ports", [])]]
            if way in policy and not rules:
                yield f"its relay's port {port} is shut by the {way} of a NetworkPolicy"
            for peer in (peer for rule in rules for peer in rule.get(peers, [{}])):
                wanted = peer.get("podSelector", {}).get("matchLabels")
                if not wanted or not wanted.items() <= pod.labels.items():
                    yield f"its relay's port {port} is open to others than replicas ({way})"


def port_of(ours: Container, variable: str) -> int:
    default = {"STREAMWELD_LISTEN": "127.0.0.1:8080", "STREAMWELD_ADMIN_LISTEN": "127.0.0.1:9090"}.get(variable, "")
    return int(ours.env.get(variable, default).rsplit(":", 1)[1])
