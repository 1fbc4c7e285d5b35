"""`proof`: right proofs pass, wrong and forged ones do not, and what is missing is a fault."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.execution import Execution, Output
from assay.reward_server.domain import (
    Candidate,
    Fault,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.verifiers import proof_runner
from assay.reward_server.verifiers.commands import Clock, Late, StepFailed, run
from assay.reward_server.verifiers.proof import (
    _SPEC,
    MAX_PROOF_CHARS,
    ProofVerifier,
    outcome_of,
    reference_of,
)
from assay.reward_server.verifiers.proof_runner import (
    COQ_REFUSED,
    LEAN_REFUSED,
    as_text,
    read_terms,
    refused,
    steps_of,
)
from checkers_support import PROOFS, accepted, needs, prove
from waiting_support import exists, until

COQ = [row for row in PROOFS if row["system"] == "coq"]
SMT = [row for row in PROOFS if row["system"] == "smt"]
LEAN = [row for row in PROOFS if row["system"] == "lean"]
GOAL: dict[str, JsonValue] = {"system": "smt", "statement": "(> 1 0)"}


def by_case(row: dict[str, Any]) -> str:
    return str(row["case"])


def verdict_of(row: dict[str, Any]) -> bool:
    seconds = 2.0 if row["case"] == "coq: without end" else 30.0
    lines = prove(row, seconds=seconds)
    assert lines[0] == {"gold": {"step": "done"}}
    assert set(lines[1]) == {"candidate"}
    return accepted(lines)


def test_the_tables_hold_thirty_statements_and_every_kind() -> None:
    assert len({(row["system"], row["statement"]) for row in PROOFS}) >= 30
    kinds = {(row["system"], row["kind"]) for row in PROOFS}
    assert len(kinds) == 9


@pytest.mark.slow
@needs("coqc")
@pytest.mark.parametrize("row", COQ, ids=by_case)
def test_coq(row: dict[str, Any]) -> None:
    assert verdict_of(row) is (row["kind"] == "right")


@pytest.mark.slow
@needs("z3")
@pytest.mark.parametrize("row", SMT, ids=by_case)
def test_smt(row: dict[str, Any]) -> None:
    assert verdict_of(row) is (row["kind"] == "right")


@needs("lean")
@pytest.mark.parametrize("row", LEAN, ids=by_case)
def test_lean(row: dict[str, Any]) -> None:
    assert verdict_of(row) is (row["kind"] == "right")


def test_what_reaches_beyond_a_proof_is_refused_by_its_words() -> None:
    """Without a checker: of Lean's forgeries all but one that its kernel refuses by the type."""
    kept = [row["case"] for row in LEAN if not refused(row["proof"], LEAN_REFUSED)]
    right = [row["case"] for row in LEAN if row["kind"] != "forged"]
    assert sorted(kept) == sorted([*right, "lean: another Nat"])
    words = {refused(row["proof"], COQ_REFUSED) for row in COQ}
    assert words == {
        "", "Checking", "bypass_check", "ML", "Redirect", "Universes", "Extraction", "Load",
        "LoadPath",
    }  # fmt: skip
    assert not any(refused(row["proof"], COQ_REFUSED) for row in COQ if row["kind"] == "right")


@pytest.mark.slow
@needs("coqc")
def test_the_kernel_refuses_what_the_words_would_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are the second wall: without them no forgery passes either."""
    monkeypatch.setattr(proof_runner.Coq, "refused", "(?!)")
    words = [row for row in COQ if refused(row["proof"], COQ_REFUSED)]
    assert len(words) == 10
    assert not any(accepted(prove(row)) for row in words)


@needs("coqc")
def test_a_statement_that_is_none_is_the_references_fault() -> None:
    for statement in ("forall n, n =", "nat -> nat", "no_such_thing", "True. Axiom a : False"):
        [line] = prove({**COQ[0], "statement": statement})
        assert line["gold"]["step"] == "statement"


@needs("z3")
def test_premises_that_contradict_and_statements_that_need_no_proof_are_faults() -> None:
    row = {**SMT[0], "definitions": SMT[0]["definitions"] + "(assert false)"}
    assert "contradict" in prove(row)[0]["gold"]["trouble"]
    [line] = prove(SMT[0], refuse_trivial=True)
    assert "without a lemma" in line["gold"]["trouble"]


@needs("z3")
def test_lemmas_decide_what_z3_does_not_prove_alone() -> None:
    row = next(row for row in SMT if row["case"] == "smt: a product of neighbours is even")
    assert accepted(prove(row, refuse_trivial=True))
    assert not accepted(prove(row, proof="(assert true)"))


def test_a_checker_that_is_missing_is_a_fault_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for system, package in (("coq", "package coq"), ("smt", "package z3"), ("lean", "Lean 4")):
        [line] = prove({**SMT[0], "system": system})
        assert line["gold"]["step"] == "tool"
        outcome = outcome_of(executed(line), system, "")
        assert isinstance(outcome, Fault)
        assert outcome.reason == "UNSUPPORTED_INPUT"
        assert package in outcome.message


TERMS = st.recursive(
    st.sampled_from(["x", "y0", "12", "1.5", "#x1F", "+", "<=", ":pattern", '"a b"', "!"]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=30,
)


@given(st.lists(TERMS, max_size=5))
def test_terms_are_read_as_they_are_written(terms: list[Any]) -> None:
    assert read_terms(" ".join(map(as_text, terms))) == terms


@given(st.text(alphabet="()ab1 \n;|\"\\:#x{}'`\u0430\x00", max_size=60) | st.text(max_size=60))
def test_whatever_is_read_is_plain_and_balanced(text: str) -> None:
    try:
        terms = read_terms(text)
    except StepFailed:
        return
    written = " ".join(map(as_text, terms))
    assert read_terms(written) == terms
    bare = re.sub(r'"[^"]*"', "", written)
    assert bare.isascii()
    assert bare.count("(") == bare.count(")")
    assert not set(bare) & set("|;\\\n{}'`")


@pytest.mark.parametrize("row", SMT, ids=by_case)
def test_only_definitions_and_lemmas_reach_z3(row: dict[str, Any]) -> None:
    taken = f"{row.get('definitions', '')} {row['statement']}"
    try:
        steps = list(steps_of(row["proof"], taken))
    except StepFailed:
        assert row["kind"] != "right"
        return
    for kind, text in steps:
        assert kind in ("define", "lemma")
        if kind == "define":
            name = text.split()[1]
            assert name not in re.split(r"[\s()|]+", taken)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "an object"),
        ({"system": "agda", "statement": "x"}, "one of coq, lean, smt"),
        ({"system": "coq"}, "empty"),
        ({"system": "coq", "statement": " . "}, "empty"),
        ({"system": "coq", "statement": 3}, "texts"),
        ({"system": "coq", "statement": "x", "name": "a b"}, '"name"'),
        ({"system": "coq", "statement": "x", "axioms": "all"}, '"axioms"'),
    ],
)
def test_references_that_cannot_be_used_say_why(fields: JsonValue, words: str) -> None:
    with pytest.raises(Unjudgeable, match=re.escape(words)) as caught:
        reference_of(item("", fields))
    assert caught.value.reason == "UNUSABLE_REFERENCE"


def test_axioms_are_lean_s_usual_ones_unless_the_reference_names_them() -> None:
    lean: dict[str, JsonValue] = {"system": "lean", "statement": "True"}
    assert reference_of(item("", lean))["axioms"] == ["propext", "Classical.choice", "Quot.sound"]
    assert reference_of(item("", {**lean, "axioms": []}))["axioms"] == []
    assert reference_of(item("", {**lean, "system": "coq"}))["axioms"] == []


def test_tasks_differ_in_a_secret_and_long_or_missing_proofs_are_judged() -> None:
    verifier = ProofVerifier(None)  # type: ignore[arg-type]
    tasks = [verifier.task_of(item("```smt\n(assert true)\n```", GOAL)) for _ in range(2)]
    assert isinstance(tasks[0], dict)
    assert isinstance(tasks[1], dict)
    assert tasks[0].pop("nonce") != tasks[1].pop("nonce")
    assert tasks[0] == tasks[1]
    long = verifier.task_of(item(f"```smt\n{'a' * (MAX_PROOF_CHARS + 1)}\n```", GOAL))
    assert isinstance(long, Judgement)
    assert long.verdict == "incorrect"
    none = verifier.task_of(item("It is so.", GOAL))
    assert isinstance(none, Judgement)
    assert none.verdict == "unparsed"


@pytest.mark.parametrize(
    ("lines", "end", "expected"),
    [
        ([{"gold": {"step": "done"}}, {"candidate": {"trouble": ""}}], "exited", "correct"),
        ([{"gold": {"step": "done"}}, {"candidate": {"trouble": "no"}}], "exited", "incorrect"),
        ([{"gold": {"step": "done"}}], "wall-time-limit", "incorrect"),
        ([{"gold": {"step": "done"}}], "exited", "incorrect"),
        ([], "memory-limit", "UNUSABLE_REFERENCE"),
        ([], "exited", "VERIFIER_FAILED"),
        ([{"gold": {"step": "statement", "trouble": "no"}}], "exited", "UNUSABLE_REFERENCE"),
        ([{"candidate": {"trouble": ""}}], "exited", "VERIFIER_FAILED"),
    ],
)
def test_no_proof_can_choose_a_fault(lines: list[Any], end: str, expected: str) -> None:
    outcome = outcome_of(executed(*lines, end=end), "coq", "x")
    found = outcome.reason if isinstance(outcome, Fault) else outcome.verdict
    assert found == expected


def test_suspicions_say_how_a_proof_cheats() -> None:
    done = {"gold": {"step": "done"}}
    for key, name in (("assumes", "assumed-proof"), ("refused", "escaping-proof")):
        line = {"candidate": {"trouble": "no", key: True}}
        outcome = outcome_of(executed(done, line), "coq", "x")
        assert isinstance(outcome, Judgement)
        assert outcome.suspicions == (name,)


async def test_a_command_ends_with_its_children_at_its_time(tmp_path: Path) -> None:
    ran = run(["/bin/sh", "-c", "sleep 60 & sleep 60"], tmp_path, 0.2)
    assert ran.code is None
    ran = run(["/bin/sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], tmp_path, 10.0)
    assert ran.code == 0
    await until(lambda: not exists(int(ran.out)))
    with pytest.raises(Late):
        Clock(0.1).run(["/bin/sleep", "60"], tmp_path)


def item(response: str, reference: JsonValue) -> VerifierItem:
    return VerifierItem(Candidate(response), data=reference, parameters=_SPEC.complete({}))


def executed(*lines: Any, end: str = "exited") -> Execution:
    text = "\n".join(map(json.dumps, lines)).encode()
    return Execution(end, 0, stdout=Output(text, total_bytes=len(text)))
