"""The dashboard, its provisioning and docs/operate/observability.md match what is exported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.metrics_support import rows, samples

from assay.api.execution.v1 import execution_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.api.reward.v1 import reward_pb2
from assay.api.session.v1 import session_pb2

PAGE = "docs/operate/observability.md"
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
        plain = set(map(plain_name, metrics))
        known = LABELS.union(*(labels.get(name, set()) for name in plain))
        used = {name for by in re.findall(r"by \(([^)]*)\)", query) for name in by.split(", ")}
        assert used <= known, query
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= (used or known), query


def test_every_metric_of_ours_but_sums_is_on_the_dashboard(dashboard: dict[str, Any]) -> None:
    shown = " ".join(query for query, _ in queries(dashboard))
    left = {name for name, *_ in rows() if name not in shown}
    # One only says what the others add up to, and two are off unless they are asked for.
    assert left == {
        "assay_genrm_engine_answers_total",
        "assay_genrm_run_cost_total",
        "assay_reward_labelled_items_total",
    }


def plain_name(metric: str) -> str:
    """What the page calls it, without the end of a counter."""
    bare = metric.removesuffix("_total")
    listed = {name.removesuffix("_total") for name, *_ in rows()}
    return bare if bare in listed else re.sub(r"_(bucket|sum|count)$", "", bare)


def test_every_variable_is_defined_and_chooses(dashboard: dict[str, Any]) -> None:
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}
    assert list(variables) == ["service", "instance", "verifier", "tenant"]
    labels = {
        name.removesuffix("_total"): set(re.findall(r"`(\w+)`", of)) for name, _, of, _, _ in rows()
    }
    used: set[str] = set()
    for query, _ in queries(dashboard):
        selectors = re.findall(r"\b((?:assay|process)_\w+)(\{[^}]*\})", query)
        assert len(selectors) == len(re.findall(r"\b(?:assay|process)_\w+", query))
        shared = set.intersection(*(labels.get(plain_name(name), set()) for name, _ in selectors))
        wanted = {"service", "instance"} | shared & {"verifier", "tenant"}
        for _, selector in selectors:
            asked = dict(re.findall(r'(\w+)=~"\$(\w+)"', selector))
            assert set(asked.values()) == wanted, query
            assert {"job": "service"}.items() <= asked.items()
            assert all(label == name for label, name in asked.items() if label != "job")
        used |= wanted
    assert used == set(variables)
    for one in variables.values():
        # "All" is everything, series without the label among them.
        assert (one["allValue"], one["includeAll"], one["multi"]) == (".*", True, True)
        assert one["current"]["value"] == ["$__all"]
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", one["query"]["query"])
        assert asked is not None
        assert asked[2] == {"service": "job"}.get(one["name"], one["name"])
        for name in re.findall(r"\bassay_\w+(?=[,{])", asked[1]):
            assert name in samples()


def drawn(dashboard: dict[str, Any], *kinds: str) -> list[dict[str, Any]]:
    """The panels of these types; without any, all that ask for something."""
    return [
        panel
        for panel in dashboard["panels"]
        if "targets" in panel and (not kinds or panel["type"] in kinds)
    ]


def unit(query: str) -> str:
    """What the answers of a query are counted in."""
    if query.startswith("60 * "):
        return "count:/min"
    if "histogram_quantile" in query:
        shares = ("verdict_mass", "letter_gap", "disagreement")
        return "none" if any(share in query for share in shares) else "s"
    if " / " in query:
        return "none" if "batches" in query or "reward_given" in query else "percentunit"
    if "process_cpu" in query:
        return "suffix:cores"
    if "rate(" in query:
        return "count:/s"
    return "bytes" if "_bytes" in query else "none"


def test_numbers_have_their_unit(dashboard: dict[str, Any]) -> None:
    for panel in drawn(dashboard):
        units = {unit(target["expr"]) for target in panel["targets"]}
        assert units == {panel["fieldConfig"]["defaults"]["unit"]}, panel["title"]


def test_what_is_shown_as_now_is_asked_for_now(dashboard: dict[str, Any]) -> None:
    # The last value of a range outlives its server: one that died would go on to serve, in green.
    stats = drawn(dashboard, "stat")
    assert {panel["gridPos"]["y"] for panel in stats} == {1}
    for panel in stats:
        for target in panel["targets"]:
            assert target["instant"] is True, panel["title"]
            assert target["range"] is False, panel["title"]


def test_a_share_or_a_quantile_of_nothing_is_left_out(dashboard: dict[str, Any]) -> None:
    for query, _ in queries(dashboard):
        if "histogram_quantile" in query:
            assert ">= 0" in query
        if " / " in query:
            assert query.endswith(" > 0)")


def test_a_panel_without_an_answer_says_why(dashboard: dict[str, Any]) -> None:
    for panel in drawn(dashboard):
        assert panel["fieldConfig"]["defaults"]["noValue"], panel["title"]


def test_nothing_is_neither_green_nor_red(dashboard: dict[str, Any]) -> None:
    for panel in drawn(dashboard, "stat"):
        defaults = panel["fieldConfig"]["defaults"]
        [mapping] = defaults["mappings"]
        assert mapping["options"]["match"] == "null", panel["title"]
        steps = {step["color"] for step in defaults["thresholds"]["steps"]}
        assert mapping["options"]["result"]["color"] not in steps


def test_legends_begin_with_the_largest_and_have_room(dashboard: dict[str, Any]) -> None:
    # Beneath a panel there is room for three lines; a legend of two labels has more.
    for panel in drawn(dashboard, "timeseries"):
        legend = panel["options"]["legend"]
        assert (legend["sortBy"], legend["sortDesc"]) == ("Max", True), panel["title"]
        assert "max" in legend["calcs"]
        for target in panel["targets"]:
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) - LABELS
            if len(labels) > 1:
                assert legend["placement"] == "right", panel["title"]
                assert panel["gridPos"]["w"] >= 12, panel["title"]


def test_faults_by_reason_are_the_first_lines(dashboard: dict[str, Any]) -> None:
    first = min(
        drawn(dashboard, "timeseries"),
        key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"]),
    )
    assert "by (verifier, reason) (rate(assay_reward_faults_total" in first["targets"][0]["expr"]


def test_methods_are_called_by_short_names_that_differ(dashboard: dict[str, Any]) -> None:
    patterns = {
        found
        for query, _ in queries(dashboard)
        for found in re.findall(r'"method", "\$1", "method", "(.*?)"', query)
    }
    assert len(patterns) == 1
    pattern = re.compile(patterns.pop())
    contracts = (reward_pb2, execution_pb2, judge_pb2, process_pb2, session_pb2)
    methods = [
        f"/{service.full_name}/{method.name}"
        for contract in contracts
        for service in contract.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    found = [pattern.fullmatch(method) for method in methods]
    short = {match[1] for match in found if match}
    assert len(short) == len(methods) > 10
    # Two services have an Execute.
    assert {name.rpartition("/")[0] for name in short} == {"", "SessionService"}
    assert not pattern.fullmatch("/get_reward")


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


def rules(repository: Path) -> list[dict[str, Any]]:
    """The rules for alerts that are shipped."""
    found = yaml.safe_load((repository / "deploy" / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in found["groups"] for rule in group["rules"]]


def test_alerts_ask_for_what_is_exported(repository: Path) -> None:
    exported = {name for name, *_ in rows()}
    for rule in rules(repository):
        for name in re.findall(r"assay_[a-z_(|)]+", rule["expr"].replace("{__name__=~", "")):
            choices = re.search(r"\(([a-z|]+)\)", name)
            for each in choices[1].split("|") if choices else [""]:
                asked = name.replace(choices[0], each) if choices else name
                asked = re.sub(r"_(bucket|count)$", "", asked)
                assert asked in exported, (rule["alert"], asked)


def test_every_alert_is_tried_and_explained(repository: Path) -> None:
    named = [rule["alert"] for rule in rules(repository)]
    tried = yaml.safe_load((repository / "deploy" / "alerts_test.yml").read_text(encoding="utf-8"))
    fired = {
        case["alertname"]
        for test in tried["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert fired == set(named)
    text = (repository / "docs" / "operate" / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## Alerts")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == named
