#!/usr/bin/env python3
"""That every query of these rules and dashboards can be parsed, and asks for metrics that there are.

    queries.py METRICS FILE...   METRICS is the page that lists them, which a test holds to the code
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import promql_parser
import yaml

#: What Prometheus makes itself.
MADE = {"ALERTS"}
#: Grafana puts these in before it asks.
VARIABLES = [("$__rate_interval", "5m"), ("$job", "j"), ("$instance", "i")]


def documented(page: Path) -> set[str]:
    return set(re.findall(r"^\| `([a-z_]+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE))


def queries(file: Path) -> Iterator[tuple[str, str]]:
    """Each query of a file, and where it stands."""
    if file.suffix == ".json":
        yield from of_dashboard(json.loads(file.read_text(encoding="utf-8")))
        return
    told = yaml.safe_load(file.read_text(encoding="utf-8"))
    for group in told.get("groups", []):
        for rule in group["rules"]:
            yield rule.get("alert") or rule["record"], rule["expr"]
    for test in told.get("tests", []):
        for series in test["input_series"]:
            yield series["series"], series["series"]
        for asked in test.get("promql_expr_test", []):
            yield asked["expr"], asked["expr"]


def of_dashboard(dashboard: dict) -> Iterator[tuple[str, str]]:
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)), "two panels have one id"
    for panel in dashboard["panels"]:
        assert panel["type"] == "row" or panel["targets"], f"{panel['title']} asks for nothing"
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.*), *[a-z_]+\)", variable["query"]["query"])
            assert asked, f"the variable {variable['name']} is no label_values"
            yield variable["name"], asked[1]


def metrics(query: str) -> set[str]:
    """The names that a query asks for."""
    for variable, value in VARIABLES:
        query = query.replace(variable, value)
    found: set[str] = set()

    def visit(node: object) -> None:
        if isinstance(node, promql_parser.VectorSelector) and node.name:
            found.add(node.name)
        for part in ("expr", "lhs", "rhs", "vector_selector", "vs", "param"):
            below = getattr(node, part, None)
            if below is not None and not isinstance(below, str):
                visit(below)
        for argument in getattr(node, "args", None) or []:
            visit(argument)

    visit(promql_parser.parse(query))
    return found


def main(page: str, files: list[str]) -> int:
    known = documented(Path(page)) | MADE
    rules = [name for file in files for name, _ in queries(Path(file)) if ":" in name]
    wrong, count = [], 0
    for file in files:
        for place, query in queries(Path(file)):
            count += 1
            try:
                asked = metrics(query)
            except ValueError as error:
                wrong.append(f"{file}: {place}: {error}")
                continue
            if not asked:
                wrong.append(f"{file}: {place}: asks for no metric")
            wrong += [f"{file}: {place}: there is no {each}" for each in sorted(asked - known - set(rules))]
    print(f"queries: {count}, {len(wrong)} of them wrong")
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
