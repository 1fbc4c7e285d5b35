"""Laws of audits: what must be refused is wrong, faults never count, a resumed audit is whole."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.audit import AuditPlan, Probe, ProbeAsker, Ruling, Subject, carry_out
from assay.audit.answers.truth import is_certainly_wrong, mentions, read_number, read_truth
from assay.audit.answers.wrong import near_misses, plain_wrong
from assay.audit.dress import DRESSES, dresses_read
from assay.audit.probes import Scale
from assay.audit.running import Judged
from audit_support import accepted_classes, asked_of, audited, engines, rows

WHOLE = st.integers(-10_000, 10_000).map(str)
DECIMALS = st.decimals(-500, 500, places=2, allow_nan=False).map(str)
FRACTIONS = st.builds(lambda a, b: f"\\frac{{{a}}}{{{b}}}", st.integers(1, 60), st.integers(2, 60))
LETTERS = st.sampled_from("ABCD")
POLAR = st.sampled_from(["yes", "no", "True", "False", "Yes."])
WORDS = st.lists(st.from_regex(r"[A-Z][a-z]{2,9}", fullmatch=True), min_size=1, max_size=3).map(
    " ".join
)
LISTS = st.lists(st.integers(0, 99), min_size=2, max_size=5, unique=True).map(
    lambda parts: ", ".join(map(str, parts))
)
ANSWERS = st.one_of(WHOLE, DECIMALS, FRACTIONS, LETTERS, POLAR, WORDS, LISTS)


FEW = settings(max_examples=6)
"""Of laws whose examples are audits."""
SOME = rows()[::3]
PURE = engines()[:3]


def worth(text: str) -> Fraction | None:
    """The value of a text by a reader of this test's own: only digits, one point, one bar."""
    found = re.fullmatch(r"(-?)\s*\\frac\{(-?\d+)\}\{(\d+)\}|(-?\d+)/(\d+)|(-?\d*\.?\d+)", text)
    if found is None:
        return None
    if found[2]:
        return (-1 if found[1] else 1) * Fraction(int(found[2]), int(found[3]))
    if found[4]:
        return Fraction(int(found[4]), int(found[5])) if int(found[5]) else None
    return Fraction(found[6])


@given(st.one_of(WHOLE, DECIMALS, FRACTIONS))
def test_near_misses_of_numbers_are_other_numbers(right: str) -> None:
    truth = read_truth(right)
    assert truth.sort == "number"
    for kind, answer, note in near_misses(truth):
        value = worth(answer)
        assert value is None or value != truth.value, (kind, answer, note)


@given(ANSWERS)
def test_a_right_answer_is_never_certainly_wrong_and_is_always_mentioned(right: str) -> None:
    truth = read_truth(right)
    assert not is_certainly_wrong(right, truth)
    for dress in DRESSES:
        assert mentions(dress.wear(right), truth), dress.name
    for wrong in plain_wrong(truth):
        assert wrong.casefold() != right.casefold()
        assert not is_certainly_wrong(right, read_truth(right))


@given(ANSWERS, ANSWERS)
def test_certainly_wrong_goes_both_ways_within_a_sort(a: str, b: str) -> None:
    one, other = read_truth(a), read_truth(b)
    if one.sort == other.sort and one.sort != "list":
        assert is_certainly_wrong(a, other) == is_certainly_wrong(b, one)
    if is_certainly_wrong(a, other):
        assert a.casefold() != b.casefold()


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(ANSWERS, min_size=1, max_size=3), st.integers(0, 3))
def test_whatever_must_be_refused_is_refused_by_who_knows_the_answer(
    answers: list[str], seed: int
) -> None:
    """An exact reader of every form: it finds the one answer of a response, and compares."""
    some = rows([("A question without an answer in it?", answer) for answer in answers])
    subject = Subject(some, DRESSES[:3], seed=seed)
    for prober in engines()[:3]:
        asking = prober.ask(subject)
        for probes in asking:
            for probe in probes:
                if probe.wants == "refuse":
                    right = some[probe.row].truth.text
                    worn = {dress.wear(right) for dress in DRESSES}
                    assert probe.response not in worn, probe
            break


@FEW
@given(st.lists(ANSWERS, min_size=1, max_size=5))
def test_an_exact_grader_has_no_hole_and_a_constant_one_is_found_by_the_floor(
    answers: list[str],
) -> None:
    some = rows([("A question?", answer) for answer in answers])
    exact = audited(lambda response, right: response.strip() == right, some, probers=PURE)
    assert exact.found.exit_code == 0, exact.found.holes[:3]
    assert exact.false_positive.value == 0
    constant = audited(lambda response, right: 1.0, some, probers=PURE[:1])
    assert constant.found.exit_code == 1
    assert {"empty", "filler"} <= accepted_classes(constant)


@FEW
@given(st.floats(0.55, 1.0), st.integers(0, 5))
def test_a_fault_counts_neither_way_and_most_of_them_are_no_audit(share: float, seed: int) -> None:
    draws = random.Random(seed)

    def faulty(response: str, right: str) -> float:
        if draws.random() < share:
            raise ValueError
        return float(response.strip() == right)

    report = audited(faulty, SOME, probers=PURE)
    assert report.found.holes == []
    assert report.false_positive.value in (0, None)
    for one in report.classes:
        judged = [each for each in report.found.of(one.kind.name) if each.said.reward is not None]
        assert one.asked == one.faults + len(judged)
        assert one.unwanted <= len(judged)
    if share > 0.7:
        assert report.found.exit_code == 2


@pytest.mark.slow
@FEW
@given(st.integers(1, 1_500), st.integers(0, 3))
def test_a_resumed_audit_is_the_whole_one(stop: int, seed: int) -> None:
    some, plan = SOME, AuditPlan(seed=seed)
    ask = asked_of(lambda response, right: float(right in response), some)
    kept: dict[str, Ruling] = {}
    whole = carry_out(some, engines(), ProbeAsker(ask, plan), plan)

    def dying(probes: list[Probe]) -> list[Ruling]:
        if len(kept) >= stop:
            raise KeyboardInterrupt
        return list(ask(probes))

    def keep(probe: Probe, said: Ruling) -> None:
        kept[probe.key] = said

    try:
        carry_out(some, engines(), ProbeAsker(dying, plan, keep=keep), plan)
    except KeyboardInterrupt:
        again: list[Probe] = []

        def counted(probes: list[Probe]) -> list[Ruling]:
            again.extend(probes)
            return list(ask(probes))

        found = carry_out(some, engines(), ProbeAsker(counted, plan, known=kept), plan)
        assert not {probe.key for probe in again} & set(kept)
    else:
        found = carry_out(some, engines(), ProbeAsker(ask, plan, known=kept), plan)
    assert [(one.probe.key, one.said) for one in found.judged] == [
        (one.probe.key, one.said) for one in whole.judged
    ]


@FEW
@given(st.integers(1, 400))
def test_a_budget_of_calls_is_kept_and_said(calls: int) -> None:
    asked: list[Probe] = []
    some, plan = rows(), AuditPlan(calls=calls)
    inner = asked_of(lambda response, right: 0.0, some)

    def ask(probes: list[Probe]) -> list[Ruling]:
        asked.extend(probes)
        return list(inner(probes))

    found = carry_out(some, engines(), ProbeAsker(ask, plan), plan)
    assert len(asked) <= calls
    assert found.cut


@given(st.dictionaries(st.sampled_from([dress.name for dress in DRESSES]), st.floats(0, 1)))
def test_dresses_are_those_that_are_read(paid: dict[str, float]) -> None:
    chosen = dresses_read(paid)
    best = max(paid.values(), default=0)
    if best > 0:
        assert paid.get(chosen[0].name) == best
        assert all(paid.get(one.name, 0) >= best / 2 for one in chosen)
    assert 1 <= len(chosen) <= 3


@pytest.mark.slow
@FEW
@given(st.floats(0.1, 100), st.floats(0.05, 1))
def test_accepting_does_not_depend_on_the_unit_of_rewards(unit: float, share: float) -> None:
    plan = AuditPlan(Scale(0, 1, share))
    small = audited(lambda r, right: float(right in r), SOME, plan, PURE)
    plan = AuditPlan(Scale(0, unit, share))
    large = audited(lambda r, right: unit * (right in r), SOME, plan, PURE)
    assert accepted_classes(small) == accepted_classes(large)
    assert len(small.found.holes) == len(large.found.holes)


@pytest.mark.parametrize("text", ["1,234", "-3", "\\$5", "50%", "3.50", "5 km", "\\dfrac{3}{4}"])
def test_numbers_are_read(text: str) -> None:
    assert read_number(text) is not None
    assert Judged(Probe(0, "empty", "", "refuse"), Ruling(0.0)).said.reward == 0
