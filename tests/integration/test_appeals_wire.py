"""Appeals on a running server: second verifiers of a file, which disagree, fail and hang."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from assay.clients import Appeal, Fault, Item, Judgement, Result, RewardClient
from assay.viewer.journals.reader import Filter, Reader

FUNCTIONS = '''
import time

def contrary(response, reference):
    """Says the opposite of the truth."""
    return float(response.strip() != reference)

def fragile(response, reference):
    if "break" in response:
        raise ValueError("broken")
    if "hang" in response:
        time.sleep(60)
    if "die" in response:
        import os
        os._exit(1)
    return 1.0 if "really" in response else 0.0
'''
PROFILES = """
[[profile]]
name = "contrary-appeal"
description = "A second verifier that is always against it."
[[profile.component]]
name = "answer"
verifier = "match"
appeal = { verifier = "contrary", on = ["incorrect", "unparsed"], share = 0.3 }

[[profile]]
name = "fragile-appeal"
description = "A second verifier that fails."
[[profile.component]]
name = "answer"
verifier = "match"
appeal = { verifier = "fragile", on = "incorrect" }
"""


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[dict[str, str]]:
    """A server; gives its addresses, by "", "metrics" and "http"."""
    (folder / "rewards.py").write_text(FUNCTIONS)
    (folder / "profiles.toml").write_text(PROFILES)
    command = [sys.executable, "-m", "assay.reward_server", "--port", "0", "--workers", "2"]
    command += ["--profiles", str(folder / "profiles.toml"), "--metrics-port", "0"]
    command += ["--http-port", "0", "--journal", str(folder / "journal.sqlite")]
    for name in ("contrary", "fragile"):
        command += ["--verifier", f"{folder / 'rewards.py'}:{name}"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, stderr=log, text=True) as run,
    ):
        try:
            assert run.stdout is not None
            found: dict[str, str] = {}
            while len(found) < 3:
                line = run.stdout.readline()
                assert line, (folder / "log").read_text()
                kind = next((one for one in ("metrics", "http") if f" {one} on " in line), "")
                found[kind] = line.split()[-1]
            yield found
        finally:
            run.terminate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("appeals")


@pytest.fixture(scope="module")
def addresses(folder: Path) -> Iterator[dict[str, str]]:
    (folder / "key").write_text("the secret of the operator\n")
    with serving(folder, "--appeal-key-file", str(folder / "key")) as found:
        yield found


def items(verifier: str, responses: Sequence[str]) -> list[Item]:
    return [
        Item(text, "12", verifier=verifier, id=str(number)) for number, text in enumerate(responses)
    ]


def score(address: str, sent: list[Item]) -> list[Result]:
    with RewardClient(address) as client:
        found = client.score(sent)
    assert [result.id for result in found] == [item.id for item in sent], "one result an item"
    return found


def appeal_of(result: Result) -> Appeal:
    assert isinstance(result.outcome, Judgement), result.outcome
    assert result.outcome.appeal is not None
    return result.outcome.appeal


RIGHT = [f"12{' ' * number}" for number in range(200)]


def test_both_verdicts_are_said_and_the_second_counts(addresses: dict[str, str]) -> None:
    [wrong] = score(addresses[""], items("contrary-appeal", ["13"]))
    appeal = appeal_of(wrong)
    assert (appeal.first.verifier, appeal.first.verdict, appeal.first.reward) == (
        "match",
        "incorrect",
        0.0,
    )
    assert appeal.second is not None
    assert (appeal.second.verifier, appeal.second.reward) == ("contrary", 1.0)
    assert (appeal.drawn, appeal.probability) == (False, 1.0)
    assert wrong.reward == 1.0


@pytest.mark.slow
def test_draws_are_those_of_the_key_in_batches_streams_and_cached(
    addresses: dict[str, str], tmp_path: Path
) -> None:
    sent = items("contrary-appeal", RIGHT)
    first = score(addresses[""], sent)
    drawn = [result.outcome.appeal is not None for result in first]  # type: ignore[union-attr]
    assert 35 <= sum(drawn) <= 85  # 60, standard deviation 6.5
    assert [result.reward for result in first] == [0.0 if was else 1.0 for was in drawn]
    with RewardClient(addresses[""]) as client:
        streamed = {result.id: result for result in client.stream(sent)}
    for result in (*score(addresses[""], sent), *streamed.values()):
        again = result.outcome.appeal is not None  # type: ignore[union-attr]
        assert again == drawn[int(result.id)], "equal items get equal decisions"
    assert len(streamed) == len(sent)
    with serving(tmp_path) as other:
        told = score(other[""], sent)
    elsewhere = [result.outcome.appeal is not None for result in told]  # type: ignore[union-attr]
    assert elsewhere != drawn, "without the key nobody can tell them"


def test_a_second_that_fails_is_the_fault_of_its_item_alone(addresses: dict[str, str]) -> None:
    responses = ["12", "13", "really 13", "break", "die", "12 "]
    found = score(addresses[""], items("fragile-appeal", responses))
    assert [result.reward for result in found] == [1.0, 0.0, 1.0, None, None, 1.0]
    for result in found[3:5]:
        fault = result.fault
        assert fault is not None
        assert fault.metadata["component"] == "answer.appeal"
        assert fault.metadata["appeal"] == "called"
    assert found[3].fault is not None
    assert found[3].fault.reason == "VERIFIER_FAILED"


@pytest.mark.slow
def test_a_second_that_hangs_is_a_fault_in_time(addresses: dict[str, str]) -> None:
    sent = [Item("hang", "12", verifier="fragile-appeal", id="0", timeout_s=0.5)]
    sent += items("fragile-appeal", ["12", "13"])[1:]
    [hung, other] = score(addresses[""], sent)
    assert isinstance(hung.outcome, Fault)
    assert hung.outcome.reason == "ITEM_TIMEOUT"
    assert hung.outcome.metadata["appeal"] == "called"
    assert other.reward == 0.0


def test_a_call_that_ends_early_leaves_nothing_behind(addresses: dict[str, str]) -> None:
    with RewardClient(addresses[""]) as client:
        stream = client.stream(items("fragile-appeal", ["12", "hang on"]))
        with closing(stream):
            assert next(stream).reward == 1.0
    [again] = score(addresses[""], items("fragile-appeal", ["really 13"]))
    assert again.reward == 1.0


def test_http_says_it_too(addresses: dict[str, str]) -> None:
    body = json.dumps(
        {"items": [{"id": "a", "verifier": "contrary-appeal", "response": "13", "reference": "12"}]}
    )
    request = urllib.request.Request(
        f"http://{addresses['http']}/v1/score",
        body.encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        [result] = json.load(response)["results"]
    appeal = result["judgement"]["appeal"]
    assert appeal["first"]["verdict"] == "incorrect"
    assert appeal["second"]["verifier"]["name"] == "contrary"
    assert (appeal["probability"], appeal["drawn"], appeal["component"]) == (1.0, False, "answer")


def test_metrics_and_the_journal_have_both(addresses: dict[str, str], folder: Path) -> None:
    score(addresses[""], items("contrary-appeal", ["13", *RIGHT]))
    with urllib.request.urlopen(f"http://{addresses['metrics']}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    counted = [dict(re.findall(r'(\w+)="([^"]*)"', line)) for line in lines if line[0] != "#"]
    ours = [labels for labels in counted if labels.get("profile") == "contrary-appeal"]
    told = {(labels["why"], labels["first"]) for labels in ours if "why" in labels}
    assert told >= {("called", "incorrect"), ("drawn", "correct")}
    told = {(labels["kind"], labels["bound"]) for labels in ours if "bound" in labels}
    assert told >= {("false-positive", "low"), ("false-negative", "high")}
    ends_s = time.monotonic() + 20
    while time.monotonic() < ends_s:
        with Reader(folder / "journal.sqlite") as reader:
            changed = list(reader.each(Filter(appeal="changed", verifier="contrary-appeal")))
            every = list(reader.each(Filter(appeal="any", verifier="contrary-appeal")))
            judged = list(reader.each(Filter(verifier="contrary-appeal")))
        if any(record["appeal"]["drawn"] for record in every):
            break
        time.sleep(0.1)
    assert len(changed) == len(every) < len(judged)
    assert {record["appeal"]["second"]["verifier"] for record in every} == {"contrary"}
