"""A verifier of a third party, in a package of its own, on a real server; and one that is bad."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.clients.testing import Case, Report, check_verifier

CASES = [
    Case("Never odd or even", "odd", "correct"),
    Case("Never odd or even", ["xyz", "EVEN"], "correct", reward=1.0),
    Case("Quite odd", "odd", "incorrect", reward=0.0),
    Case("level", "odd", "incorrect", reward=0.5),
    Case("aba", "b", "incorrect", parameters={"min_letters": 4}),
    Case("aba", "?!", fault="UNUSABLE_REFERENCE"),
]

# Each defect of it stands beside the failure that the kit must report for it.
BAD_PLUGIN = """
import os
from assay.reward_server.domain import (
    Candidate, Component, Judgement, ParameterSpec, Verifier, VerifierExample, VerifierItem,
    VerifierSpec,
)

SPEC = VerifierSpec(
    name="bad-one", version="1", description="judges anything", tasks=("Bad Task",),
    min_reward=0.0, max_reward=1.0, verdicts=("correct", "incorrect"),
    parameters=(ParameterSpec("Mode", "string", "x", "", allowed_values=("a", "b")),),
    isolation="process",
)


class BadVerifier(Verifier):
    spec = SPEC
    examples = (
        VerifierExample(
            VerifierItem(Candidate("4"), references=("4",), parameters={"Mode": "x"}), "correct"
        ),
    )

    def judge(self, item):
        text = item.response()
        if len(text) > 10_000:
            os._exit(1)
        if "\\x00" in text:
            raise ValueError("a surprise")
        right = bool(item.references) and (item.references[0] in text)
        score = float(right)
        if text == "sum":
            return Judgement(1.0, "correct", (Component("c", 0.25),), explanation="odd sum")
        if text == "verdict":
            return Judgement(1.0, "splendid", (Component("c", 1.0),), explanation="odd verdict")
        why = f"number {os.urandom(4).hex()}" if text == "random" else "because"
        return Judgement.composed(
            "correct" if right else "incorrect", (Component("c", score),), explanation=why
        )
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[str]:
    """A server whose path holds the example, installed by pip into a folder of its own."""
    pytest.importorskip("hatchling", reason="the plug-in is built with hatchling")
    folder = tmp_path_factory.mktemp("plugins")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--no-warn-conflicts"]
    command += ["--target", str(folder), str(_copy_of(repository, tmp_path_factory))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", _path_with(folder))
        flags = {"reward": ["--cache-entries", "0"]}
        with EmbeddedServices(["reward"], arguments=flags) as services:
            yield services.address


def _copy_of(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, so that what the build leaves behind is not left in the checkout."""
    copy = tmp_path_factory.mktemp("source")
    original = repository / "tests" / "plugin_example"
    for file in original.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            target = copy / file.relative_to(original)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    return copy


def _path_with(folder: Path) -> str:
    return os.pathsep.join(part for part in (str(folder), os.environ.get("PYTHONPATH")) if part)


def test_a_plugin_is_served_beside_our_own(address: str) -> None:
    with RewardClient(address) as client:
        info = client.list_verifiers()
        assert info.find("palindrome") is not None
        assert info.find("", "palindrome") == info.find("palindrome")
        assert info.find("exact") is not None
        by_task, by_name = client.score(
            [
                Item("Was it a car or a cat I saw?", reference="car", task="palindrome"),
                Item("nope", reference="car", verifier="palindrome"),
            ]
        )
    assert (by_task.reward, by_name.reward) == (1.0, 0.0)
    assert by_task.judgement is not None
    assert by_task.judgement.verifier == "palindrome"


def test_a_good_plugin_passes_the_kit(address: str) -> None:
    report = check_verifier("palindrome", CASES, target=address, hostile_chars=2**16)
    report.raise_for_failures()
    groups = {check.group for check in report.checks}
    assert {"serving", "spec", "cases", "determinism", "references", "parameters"} <= groups
    assert sum(check.group == "hostile" for check in report.checks) > 30


def test_a_case_that_is_wrong_fails_the_kit(address: str) -> None:
    wrong = [Case("level", "odd", "correct")]
    report = check_verifier("palindrome", wrong, target=address, hostile_chars=100)
    with pytest.raises(AssertionError, match="the verdict 'incorrect'"):
        report.raise_for_failures()


@pytest.fixture(scope="module")
def bad_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("bad")
    metadata = folder / "bad_one-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-one\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text("[assay.verifiers]\nbad = bad_one:BadVerifier\n")
    (folder / "bad_one.py").write_text(BAD_PLUGIN)
    cases = [
        Case("4", "4", "correct", parameters={"Mode": "a"}),
        Case("random", "4", "incorrect", parameters={"Mode": "a"}),
        Case("sum", "4", "correct", parameters={"Mode": "a"}),
        Case("verdict", "4", parameters={"Mode": "a"}),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", _path_with(folder))
        return check_verifier("bad-one", cases, hostile_chars=20_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "what", "problem"),
    [
        ("spec", "the description is one sentence", "does not start with a capital"),
        ("spec", "tasks are kebab-case and its own", "'Bad Task'"),
        ("spec", "the parameter 'Mode' is well-formed", "not snake_case"),
        ("cases", "case 3, 'sum', is correct", "components sum to 0.25"),
        ("cases", "case 4, 'verdict', is judged", "VERIFIER_FAILED"),
        ("determinism", "one by one the judgements are equal", "number"),
        ("references", "an empty reference is a fault", "the verdict 'correct'"),
        ("references", "a blank reference is a fault", "the verdict 'incorrect'"),
        ("hostile", "one long word", "WORKER_DIED"),
        ("hostile", "NUL", "VERIFIER_FAILED"),
    ],
)
def test_a_bad_plugin_fails_for_the_right_reasons(
    group: str, what: str, problem: str, bad_report: Report
) -> None:
    found = {(check.group, check.what): check.problem for check in bad_report.failures}
    assert problem in found[group, what], bad_report


def test_a_bad_plugin_brings_no_server_down(bad_report: Report) -> None:
    alive = [check for check in bad_report.checks if "lives on" in check.what]
    assert [check.ok for check in alive] == [True], bad_report


@pytest.mark.slow
def test_a_verifier_that_is_not_served_is_a_failure_and_no_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "broken_one-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-one\nVersion: 0.1\n")
    entries = "[assay.verifiers]\nbroken = broken_one:Nothing\ntorn = torn_one:Nothing\n"
    (metadata / "entry_points.txt").write_text(entries)
    (tmp_path / "torn_one.py").write_text("def nothing(:\n")
    monkeypatch.setenv("PYTHONPATH", _path_with(tmp_path))
    report = check_verifier("broken-one", [])
    assert [check.what for check in report.failures] == ["the server has it"]
    assert any("left out" in note for note in report.notes), report
    kinds = [note.partition(":")[0] for note in report.notes if "left out" not in note]
    assert kinds == ["ModuleNotFoundError", "SyntaxError"], report
    with pytest.raises(AssertionError, match="left out"):
        report.raise_for_failures()
