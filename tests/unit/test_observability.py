"""The dashboard, its provisioning and docs/observability.md, held to what the services export."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.metrics_support import rows, samples

PAGE = "docs/observability.md"
LABELS = {"job", "instance", "le"}


@pytest.fixture(scope="module")
def dashboard(repository: Path) -> dict[str, Any]:
    path = repository / "deploy" / "grafana" / "dashboards" / "assay.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def queries(dashboard: dict[str, Any]) -> list[tuple[str, str]]:
    """Each query and its legend."""
    return [
        (target["expr"], target["legendFormat"])
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
    ]


def test_each_metric_that_is_asked_for_is_exported(dashboard: dict[str, Any]) -> None:
    known = samples()
    asked = [re.findall(r"\b(?:assay|process)_\w+", query) for query, _ in queries(dashboard)]
    assert len(asked) > 30
    assert all(asked)
    assert {name for names in asked for name in names} <= known


def test_each_label_that_is_asked_for_is_exported(dashboard: dict[str, Any]) -> None:
    labels = {
        name.removesuffix("_total"): set(re.findall(r"`(\w+)`", of)) for name, _, of, _, _ in rows()
    }
    for query, legend in queries(dashboard):
        metrics = re.findall(r"\b(?:assay|process)_\w+", query)
        plain = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in metrics}
        known = LABELS.union(*(labels.get(name, set()) for name in plain))
        used = {name for by in re.findall(r"by \(([^)]*)\)", query) for name in by.split(", ")}
        assert used <= known, query
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= (used or known), query


def test_every_metric_of_ours_but_sums_is_on_the_dashboard(dashboard: dict[str, Any]) -> None:
    shown = " ".join(query for query, _ in queries(dashboard))
    left = {name for name, *_ in rows() if name not in shown}
    # Those that only say what the others add up to.
    assert left == {
        "assay_sandbox_items_total",
        "assay_genrm_items_total",
        "assay_genrm_engine_answers_total",
    }


def test_panels_have_places_of_their_own_and_the_provisioned_source(
    repository: Path, dashboard: dict[str, Any]
) -> None:
    folder = repository / "deploy" / "grafana" / "provisioning"
    [source] = yaml.safe_load(
        (folder / "datasources" / "prometheus.yml").read_text(encoding="utf-8")
    )["datasources"]
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] == source["uid"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    [provider] = yaml.safe_load((folder / "dashboards" / "assay.yml").read_text(encoding="utf-8"))[
        "providers"
    ]
    compose = yaml.safe_load((repository / "compose.yaml").read_text(encoding="utf-8"))
    mounts = compose["services"]["grafana"]["volumes"]
    assert f"./deploy/grafana/dashboards:{provider['options']['path']}:ro" in mounts


def test_the_page_lists_what_is_exported(repository: Path) -> None:
    page = (repository / PAGE).read_text(encoding="utf-8")
    table = page.partition("<!-- metrics")[2].partition("<!-- end of metrics")[0]
    expected = [
        f"| `{name}` | {kind} | {labels} | {service} | {meaning} |"
        for name, kind, labels, service, meaning in rows()
    ]
    assert [line for line in table.splitlines() if line.startswith("| `")] == expected
