"""Labels from a client to the journal, the metrics and back, and a journal that is judged again."""

from __future__ import annotations

import http.client
import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.integration.test_metrics_wire import metrics_address
from tests.integration.test_server_wire import launch, ready
from tests.metrics_support import scrape, total

from assay.cli.main import cli
from assay.clients import Data, EmbeddedServices, Item, RewardClient, Turn
from assay.clients.rows.tests import read_tests
from assay.clients.testing import FakeRewardServer, exact_info
from assay.clients.types import Anchor
from assay.kit.errors import ConfigError
from assay.reward_server.counts import MAX_LABEL_VALUES
from assay.reward_server.journal.command import journal
from assay.viewer.journals.reader import Reader, Record

ODD = ['a"b\\c\nd', "\u4e2d\u6587", "", "other", "\x00\x1b[31m", "{}", "x" * 256]


def wait_until(holds: Callable[[], object]) -> None:
    ends_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends_s, "it did not come to hold"
        time.sleep(0.02)


def records(path: Path) -> list[Record]:
    with Reader(path) as reader:
        return list(reader.each())


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with launch(*arguments) as process:
        try:
            yield ready(process), process
        finally:
            process.terminate()
            process.wait(20)


def post(address: str, body: object) -> dict[str, Any]:
    host, port = address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        connection.request("POST", "/v1/score", json.dumps(body))
        found = json.loads(connection.getresponse().read())
        assert isinstance(found, dict)
        return found
    finally:
        connection.close()


@pytest.mark.slow
def test_labels_reach_journal_and_metrics_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    flags = ["--journal", str(path), "--metrics-port", "0", "--metric-labels", "run, model"]
    with serving(*flags, "--http-port", "0", "--workers", "1") as (address, process):
        metrics = metrics_address(process, "reward_server")
        assert process.stdout is not None
        web = process.stdout.readline().split()[-1]
        with RewardClient(address, labels={"run": "a", "model": "m"}) as client:
            results = client.score([
                Item("42", reference="42", verifier="exact", labels={"step": "1"}),
                Item("41", reference="42", verifier="exact", labels={"run": "b"}),
                Item("41", reference="42", verifier="nobody"),
                Item("42", reference="42", verifier="exact", labels={"a b": "wrong"}),
            ])  # fmt: skip
        said = [result.fault.reason if result.fault else result.reward for result in results]
        assert said == [1.0, 0.0, "UNKNOWN_VERIFIER", "INVALID_LABEL"]
        assert [dict(result.labels) for result in results] == [
            {"run": "a", "model": "m", "step": "1"}, {"run": "b", "model": "m"},
            {"run": "a", "model": "m"}, {"run": "a", "model": "m", "a b": "wrong"},
        ]  # fmt: skip
        short = {"verifier": "exact", "response": "42", "reference": "42"}
        answer = post(web, {"items": [{**short, "labels": {"run": "web", "step": 7}}]})
        assert answer["results"][0]["labels"] == {"run": "web", "step": "7"}
        exact = {"id": "x", "verifier": "exact", "response": "1", "reference": {"text": "2"}}
        told = [{**exact, "labels": {"run": "web"}}, {**exact, "id": "y", "labels": {"1": "x"}}]
        answer = post(web, {"items": told})
        assert answer["results"][0]["labels"] == {"run": "web"}
        assert answer["results"][1]["fault"]["details"][0]["reason"] == "INVALID_LABEL"
        assert answer["results"][1]["labels"] == {}
        answer = post(web, {"items": [{**short, "labels": {"run": ["a"]}}]})
        assert answer["reason"] == "MALFORMED_REQUEST"
        assert "items[0].labels.run" in answer["detail"]

        wait_until(lambda: len(records(path)) == 7)
        kept = [record["labels"] for record in records(path)]
        assert kept[:4] == [dict(result.labels) for result in results[:3]] + [{}]
        name = "assay_reward_labelled_items_total"
        wait_until(lambda: total(scrape(metrics), name, label="run") == 5)
        found = scrape(metrics)
        assert total(found, name, label="run", value="a", outcome="fault") == 1
        assert total(found, name, label="run", value="a", outcome="judgement") == 1
        assert total(found, name, label="model", value="m") == 3
        assert total(found, name, label="step") == 0, "the operator did not choose it"

        # A caller who sends a new value with each of 10,000 items, and odd ones.
        with RewardClient(address) as client:
            values = [*ODD, *(f"v{n}" for n in range(10_000))]
            batch = [Item("1", reference="1", verifier="exact", labels={"run": v}) for v in values]
            assert {result.reward for result in client.score(batch)} == {1.0}
        wait_until(lambda: total(scrape(metrics), name, label="run") == 5 + len(values))
        found = scrape(metrics)
        shown = [s.labels for family in found for s in family.samples if s.name == name]
        for label in ("run", "model"):
            assert len({s["value"] for s in shown if s["label"] == label}) <= MAX_LABEL_VALUES + 1
        assert total(found, name, label="run", value=ODD[0]) == 1, "odd values are escaped"
        assert total(found, name, label="run", value="other") > 9_800
        assert total(found, name, label="model") == 3, "another label is as it was"


def test_a_wrong_name_in_the_flag_is_said() -> None:
    with launch("--metric-labels", "run,a b") as process:
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert "--metric-labels has 'a b'" in process.stderr.read()


TESTS = read_tests([{"stdin": "1\n", "stdout": "1\n"}])
KINDS = [
    Item("42", "42", "exact", prompt="6 * 7?", labels={"run": "a"}),
    Item("forty-two", ["42", "forty-two"], "exact", parameters={"strip": False}),
    Item(r"\boxed{42}", "42", "math", labels={"run": "a", "step": "2"}),
    Item(r"\boxed{41}", "42", task="math", prompt=[{"role": "system", "content": "x"}]),
    Item('{"a": 1}', Data({"type": "object"}), "json-schema"),
    Item("[1, 2]", Data([[1, 2]]), "json-schema"),
    Item("1 2", ["1", "2"], "nobody"),
    Item("print(input())", TESTS, "code"),
    Item("42", None, "exact"),
    Item("better", Anchor("worse"), "exact"),
    Item(turns=[Turn("assistant", "41", True), Turn("user", "?")], reference="1", verifier="math"),
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of items of each kind."""
    path = tmp_path_factory.mktemp("kinds") / "verdicts.sqlite"
    arguments = {"reward": ["--journal", str(path), "--workers", "1"]}
    with EmbeddedServices(arguments=arguments) as own, RewardClient(own.address) as client:
        client.score(KINDS)
        client.score([Item("x" * 40_000, reference="42", verifier="exact")])
    assert len(records(path)) == len(KINDS) + 1
    return path


def invoke(*arguments: str | Path, command: Any = journal) -> Result:
    words = [str(word) for word in arguments]
    result = CliRunner().invoke(command, words, standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_an_export_is_scored_as_it_is(kept: Path, tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    found = invoke("export", kept, "--whole", "-o", rows)
    assert "1 entries are left out" in found.stderr
    score = ["score", rows, "-o", out, "--keep-going", "--verifier", "exact"]
    invoke(*score, command=cli)
    for line in lines(out):
        recorded = [line[f"input_{key}"] for key in ("reward", "verdict", "components", "answer")]
        now = [line[key] for key in ("reward", "verdict", "components", "answer")]
        if "verifier" in line:
            assert now == recorded, line
            assert (line["fault"] or {}).get("reason") == (line["input_fault"] or {}).get("reason")
    assert len(lines(out)) == len(KINDS)


@pytest.mark.slow
def test_only_judgements_need_no_word_more(kept: Path, tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    invoke("export", kept, "--whole", "--only", "judgements", "-o", rows)
    invoke("score", rows, "-o", out, command=cli)
    scored = lines(out)
    assert len(scored) == 5
    assert [line["reward"] for line in scored] == [line["input_reward"] for line in scored]
    assert [line["labels"] for line in scored][:1] == [{"run": "a"}]
    everything = tmp_path / "everything.jsonl"
    invoke("export", kept, "-o", everything)
    with pytest.raises(ConfigError, match="the journal kept only the beginning"):
        invoke("score", everything, "-o", out, "--verifier", "exact", command=cli)


def test_a_label_chooses(kept: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    invoke("export", kept, "-o", rows, "--label", "run=a", "--label", "step=2")
    assert [line["labels"] for line in lines(rows)] == [{"run": "a", "step": "2"}]
    assert len(invoke("search", kept, "--label", "run=a").stdout.splitlines()) == 2
    [found] = invoke("search", kept, "--label", "run=a", "--label", "step=2").stdout.splitlines()
    assert "run=a, step=2" in invoke("show", kept, found.split()[0]).stdout
    assert invoke("stats", kept, "--label", "run=nobody").stdout.startswith("12 entries")
    with pytest.raises(ConfigError, match="write NAME=VALUE"):
        invoke("tail", kept, "--label", "run")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of one verifier, with a fault and a cut entry."""
    path = tmp_path_factory.mktemp("small") / "verdicts.sqlite"
    arguments = {"reward": ["--journal", str(path), "--workers", "1"]}
    with EmbeddedServices(arguments=arguments) as own, RewardClient(own.address) as client:
        client.score([
            Item("42", "42", "exact", labels={"run": "a"}),
            Item(r"it is \boxed{42}", "42", "exact", labels={"run": "a"}),
            Item("41", "42", "exact", labels={"run": "b"}),
            Item("41", None, "exact"),
            Item("x" * 40_000, "42", "exact"),
        ])  # fmt: skip
    return path


@pytest.mark.slow
def test_a_journal_is_judged_again(small: Path, tmp_path: Path) -> None:
    out, numbers = tmp_path / "out.jsonl", tmp_path / "numbers.json"
    said = invoke("rejudge", small, "--verifier", "math", "-o", out, "--json", numbers).stdout
    told = json.loads(numbers.read_text())
    rows = lines(out)
    assert [row["reward"] for row in rows] == [1.0, 1.0, 0.0, None, None]
    assert [row["input_reward"] for row in rows] == [1.0, 0.0, 0.0, None, 0.0]
    assert (told["judged_by_both"], told["same_reward"], told["without_both"]) == (3, 2, 2)
    assert told["mean_reward"] == {"recorded": 1 / 3, "now": 2 / 3}
    assert {(v["recorded"], v["now"]): v["rows"] for v in told["verdicts"]} == {
        ("correct", "correct"): 1, ("incorrect", "correct"): 1, ("incorrect", "incorrect"): 1,
    }  # fmt: skip
    assert told["faults"]["recorded"] == {"MISSING_REFERENCE": 1}
    assert told["faults"]["now"] == {"MISSING_REFERENCE": 1, "ITEM_TOO_LARGE": 1}
    for words in ("2 of 3", "recorded", "ITEM_TOO_LARGE", "whose reward changed"):
        assert words in said
    # Once more, from what came out: the last outcome is what is recorded.
    again = tmp_path / "again.json"
    invoke("rejudge", out, "--verifier", "math", "--json", again)
    told = json.loads(again.read_text())
    assert (told["same_reward"], told["judged_by_both"], told["without_both"]) == (3, 3, 2)


@pytest.mark.slow
def test_a_function_judges_again_and_a_label_chooses(small: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def long(response):\n    return float(len(response) > 2)\n")
    numbers = tmp_path / "numbers.json"
    invoke(
        "rejudge", small, "--verifier", f"{file}:long", "--label", "run=a", "--judged-by", "exact",
        "--json", numbers,
    )  # fmt: skip
    told = json.loads(numbers.read_text())
    assert (told["rows"], told["same_reward"], told["verifier"]) == (2, 0, "long")


@pytest.mark.slow
def test_what_is_judged_again_sends_nothing_to_the_terminal(tmp_path: Path) -> None:
    rows, numbers = tmp_path / "rows.jsonl", tmp_path / "numbers.json"
    row = {"id": "\x1b[31mred", "response": "42", "reference": "42"}
    said = {"reward": 0.0, "verdict": "odd\x1b]0;title\x07", "fault": None, "explanation": ""}
    lost = {"reward": None, "fault": {"reason": "A\x1b[2J", "message": ""}, "verdict": None}
    none = {"id": "none", "response": "42", "reference": "42"}
    told = [{**row, **said}, {**row, **lost, "id": "b"}, none]
    rows.write_text("".join(json.dumps(line) + "\n" for line in told))
    out = invoke("rejudge", rows, "--verifier", "exact", "--json", numbers).stdout
    assert "\x1b]" not in out
    assert "\x1b[31m" not in out
    assert "\x1b[2J" not in out
    found = json.loads(numbers.read_text())
    assert (found["judged_by_both"], found["same_reward"], found["without_both"]) == (1, 0, 2)
    assert found["faults"]["recorded"] == {"A\x1b[2J": 1, "(no outcome)": 1}
    assert found["faults"]["now"] == {}


@pytest.mark.slow
def test_what_cannot_be_judged_again_is_said(small: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    invoke("export", small, "-o", rows)
    for words, arguments in (
        ("no verifier has the name 'nobody'", [small, "--verifier", "nobody"]),
        ("is no journal", [rows, "--verifier", "math", "--label", "run=a"]),
        ("has no such entry", [small, "--verifier", "math", "--label", "run=z"]),
        ("would replace the input", [rows, "--verifier", "math", "-o", rows]),
        ("cannot be read", [tmp_path / "none", "--verifier", "math"]),
        ("not positive", [small, "--verifier", "math", "--timeout", "0"]),
        ("write FILE.py:FUNCTION", [small, "--verifier", "mine.py"]),
    ):
        with pytest.raises(ConfigError, match=words):
            invoke("rejudge", *arguments)
    compares = exact_info()
    compares.needs_group = True
    with FakeRewardServer(verifiers=[compares]) as server:
        for words, verifier in (("compares the samples of a group", "exact"),
                                ("is a file of this machine", "mine.py:judge")):  # fmt: skip
            with pytest.raises(ConfigError, match=words):
                invoke("rejudge", small, "--verifier", verifier, "--target", server.address)
        assert server.requests == [], "nothing is asked before"
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(small.read_bytes()[:5000])
    with pytest.raises((ConfigError, sqlite3.Error)):
        invoke("rejudge", broken, "--verifier", "math")
