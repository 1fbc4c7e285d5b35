"""Audits of verifiers of ours: what must have no hole, and what is known to have some."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run
from assay.clients import EmbeddedServices
from assay.reward_server.domain import RemoteVerifier, Verifier
from assay.reward_server.registry import FAMILIES, plug_ins
from assay.reward_server.verifiers.runners import RunnerVerifier
from assay.reward_server.verifiers.sql import SqlVerifier
from assay.reward_server.verifiers.verilog import VerilogVerifier
from audit_support import PAIRS
from checkers_support import needs

NUMBERS = [
    ("A pen costs 3, a book 4. Both?", "7"), ("How many are 12 dozen?", "144"),
    ("What is left of it?", "-15"), ("Round it.", "3.14"), ("Which share?", "\\frac{1}{2}"),
    ("How far?", "1250"), ("How many stayed?", "0"), ("How long?", "\\frac{7}{12}"),
]  # fmt: skip
CHOICES = [(f"Pick.\nA) red\nB) blue\nC) green\nD) grey\n({n})", "ABCD"[n % 4]) for n in range(6)]
WORDS = [pair for pair in PAIRS if pair[1][0].isalpha() and len(pair[1]) > 3]
SOUND = [
    ("math", NUMBERS, []), ("math", PAIRS, ["5 km"]), ("exact", PAIRS, []), ("match", PAIRS, []),
    ("choice", CHOICES, []),
]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with EmbeddedServices() as services:
        yield services.address


def audited(
    folder: Path, server: str, name: str, pairs: list[tuple[str, str]]
) -> tuple[int, dict[str, Any]]:
    """The exit code, and the results by class."""
    data, out = folder / "rows.jsonl", folder / "report.json"
    rows = [{"prompt": prompt, "reference": right} for prompt, right in pairs]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["audit", name, "--target", server, "--data", str(data), "--json", str(out)]
    code = run(given)
    results = json.loads(out.read_text())["results"]
    return code, {one["measured"].get("class", ""): one for one in results}


@pytest.mark.parametrize(("name", "pairs", "without"), SOUND)
def test_no_hole_is_found(
    tmp_path: Path, server: str, name: str, pairs: list[tuple[str, str]], without: list[str]
) -> None:
    kept = [pair for pair in pairs if pair[1] not in without]
    code, results = audited(tmp_path, server, name, kept)
    found = {kind: one["evidence"] for kind, one in results.items() if one["status"] == "fail"}
    assert (code, found) == (0, {})
    assert results[""]["measured"]["asked"] > 300
    assert results["right-answer"]["measured"]["unwanted"] == 0


def test_an_overlap_of_words_is_paid_for_answers_that_are_wrong(
    tmp_path: Path, server: str
) -> None:
    """By its definition: half of the words are half of the reward."""
    code, results = audited(tmp_path, server, "token-f1", WORDS)
    assert code == 1
    failed = {kind for kind, one in results.items() if one["status"] == "fail"}
    assert {"enumeration", "denial"} <= failed
    assert not failed & {"empty", "refusal", "filler", "keyword", "injection", "searched"}


TABLE = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
CHAIN = {"path": [["aspirin", "inhibits", "COX-1"], ["COX-1", "produces", "thromboxane"]],
         "entities": ["heparin"]}  # fmt: skip
PLAN = "<plan>\n1. Add the numbers.\n2. Halve the sum.\n</plan>\n<execution>\n{}</execution>\n4"
SUBS = ["Who wrote Emma?", "Where was Jane Austen born?"]
MADE = '{{"question": "{}", "answer": "{}"}}'
TOLD = {"answers": ["Paris"] * 3, "guesses": ["Lyon", "Rome"]}
KNOWN = [
    ("structure", TABLE, ["| a | b |\n|---|---|\n| 1 | 2 |"],
     [TABLE.replace("2", "3"), "| a | b |\n|---|---|", TABLE + TABLE.replace("2", "3")]),
    ("path-coverage", CHAIN, ["Aspirin inhibits COX-1, which produces thromboxane."],
     ["Aspirin does not inhibit COX-1. COX-1 does not produce thromboxane.",
      "COX-1 inhibits aspirin.", "aspirin COX-1 thromboxane heparin inhibits produces",
      "Aspirin inhibits COX-1. Aspirin inhibits heparin. COX-1 produces thromboxane."]),
    ("plan-execute", None,
     [PLAN.format("1. Add the numbers: 3 and 5 make 8.\n2. Halve the sum: 8 / 2 is 4.\n")],
     [PLAN.format("1. Add the numbers.\n2. Halve the sum.\n"), PLAN.format(""),
      PLAN.format("1. Add the numbers, halve the sum, and it is 4 somehow.\n" * 2)]),
    ("decomposition", [[one] for one in SUBS], ["\n".join(SUBS)],
     [" ".join(SUBS), SUBS[0], "\n".join(SUBS * 2)]),
    ("question-item", TOLD, [MADE.format("Which city?", "Paris")],
     [MADE.format("Is it Paris?", "Paris"), MADE.format("Which city?", "Paris or Lyon"),
      MADE.format("Which city?", "Lyon"), MADE.format("", "Paris")]),
]  # fmt: skip


@pytest.mark.parametrize("known", KNOWN, ids=[one[0] for one in KNOWN])
def test_all_of_the_reward_is_for_what_is_right(
    tmp_path: Path, server: str, known: tuple[str, object, list[str], list[str]]
) -> None:
    name, reference, right, wrong = known
    data, out = tmp_path / "rows.jsonl", tmp_path / "report.json"
    row = {"prompt": "Do it.", "reference": reference, "right": right, "wrong": wrong}
    data.write_text(json.dumps({key: value for key, value in row.items() if value is not None}))
    given = ["audit", name, "--target", server, "--data", str(data), "--json", str(out)]
    assert run([*given, "--accept", "1"]) == 0
    asked = {
        one["measured"].get("class"): one["measured"]
        for one in json.loads(out.read_text())["results"]
    }
    assert asked["given-right"]["unwanted"] == asked["given-wrong"]["unwanted"] == 0
    assert asked["given-right"]["asked"] == len(right)
    assert asked["given-wrong"]["asked"] == len(wrong)


def own_rows(verifier: Verifier) -> list[dict[str, Any]]:
    """Rows of a verifier's own examples, with its defaults: a row for each reference."""
    defaults = {one.name: one.default for one in verifier.spec.parameters}
    rows: dict[str, dict[str, Any]] = {}
    for example in verifier.examples:
        item = example.item
        known = {"correct": "right", "incorrect": "wrong", "unparsed": "wrong"}.get(example.verdict)
        if known is None or (item.parameters and dict(item.parameters) != defaults):
            continue
        prompt = "\n".join(message.content for message in item.prompt) or "Answer."
        reference = item.data if item.data is not None else list(item.references)
        row = {"prompt": prompt} | ({"reference": reference} if reference not in ([], None) else {})
        row = rows.setdefault(json.dumps(row), row)
        row.setdefault(known, []).append(item.response())
    return list(rows.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [SqlVerifier, pytest.param(VerilogVerifier, marks=needs("yosys", "iverilog"))],
)
def test_those_that_run_something_have_none(tmp_path: Path, kind: type[RunnerVerifier]) -> None:
    """On their own examples, in services of their own with a sandbox; `code`: with the command."""
    verifier = kind(None)  # type: ignore[arg-type]
    data, out = tmp_path / "rows.jsonl", tmp_path / "report.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in own_rows(verifier)))
    given = ["audit", verifier.spec.name, "--data", str(data), "--json", str(out)]
    assert run(given) == 0
    results = {
        one["measured"].get("class"): one["measured"]
        for one in json.loads(out.read_text())["results"]
    }
    assert results["given-right"]["asked"] >= 1
    assert results["given-wrong"]["asked"] >= 2
    assert results["given-right"]["unwanted"] == 0
    assert not any(one.get("faults") for one in results.values())


IN_PROCESS = {
    verifier.spec.name: verifier
    for verifier in (*itertools.chain(*FAMILIES.values()), *plug_ins())
    if own_rows(verifier) and not isinstance(verifier, RemoteVerifier)
}
WORDS_IN_COMMON = {"enumeration", "hedging", "retraction", "scratch", "denial", "other-name"}
BY_DEFINITION = {
    # Overlap with the reference is what they measure: more words have more of it.
    **dict.fromkeys(("bleu", "chrf", "rouge", "error-rate", "token-f1"), WORDS_IN_COMMON),
    "set-f1": {"enumeration", "retraction"},
    "similarity": {"denial", "digits", "stray", "searched"},
    # A table with one cell wrong is much like the right one, whoever says it.
    "structure": WORDS_IN_COMMON
    | {
        "component",
        "digits",
        "injection",
        "line",
        "order",
        "searched",
    },
    # The reference is a preference, and one of two words is right.
    "preference": {"other-row", "keyword", "searched"},
    # A puzzle is solved by whoever names each entity's value, in any dress.
    "assignment": WORDS_IN_COMMON | {"component", "injection", "line", "searched"},
}
ELSEWHERE = {"refusal", "math-verify"}
"""`refusal` takes whatever is no refusal for right where the question is harmless. Math-Verify is
slow, and its holes are those of the library (docs/use/audit.md)."""


@pytest.mark.parametrize("name", sorted(IN_PROCESS.keys() - ELSEWHERE))
def test_holes_are_those_that_follow_from_what_is_measured(
    tmp_path: Path, server: str, name: str
) -> None:
    """Every verifier that judges in the process, on its own examples."""
    data, out = tmp_path / "rows.jsonl", tmp_path / "report.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in own_rows(IN_PROCESS[name])))
    code = run(["audit", name, "--target", server, "--data", str(data), "--json", str(out)])
    results = json.loads(out.read_text())["results"]
    failed = {
        str(one["measured"]["class"]): one["evidence"]
        for one in results
        if one["status"] == "fail" and "class" in one["measured"]
    }
    assert code in (0, 1)
    assert failed.keys() - BY_DEFINITION.get(name, set()) == set(), failed
    assert sum(one["measured"].get("asked", 0) for one in results) > 0
