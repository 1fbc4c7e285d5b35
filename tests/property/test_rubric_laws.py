"""Laws of rubrics: the sum, the order of criteria, the gate, weights, and what is left out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.judging import read_rubric
from assay.clients.judging.rubrics import Criterion, RubricJudgement, RubricSettings
from assay.genrm.domain import CandidateRubric, JudgePanel, ResolvedJudgeSettings
from assay.genrm.engines.base import Answer, Choose, Chosen, EngineError, Request
from assay.genrm.judges import judge_rubric
from assay.genrm.judges.ensemble import combine, disagreement, opinion
from assay.genrm.judges.rubrics.compound import parts_of
from assay.genrm.judges.rubrics.judging import RubricJudges
from assay.genrm.judges.rubrics.layout import CLEARLY, cost, order_of
from assay.genrm.judges.rubrics.quoting import find_quotation, read_quotation
from assay.genrm.judges.rubrics.scoring import RubricTally
from assay.genrm.templates import load_templates
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason
from genrm_judging_support import GENERATIVE, QUESTION, TOKENS, drive_by, model, text_of

TEMPLATES = load_templates()
BENCH = RubricJudges(JudgePanel((GENERATIVE,)), ResolvedJudgeSettings(), TEMPLATES)

Verdicts = dict[str, float | None]
"""By the criterion's id, its score; None where it cannot be read."""

weights = st.one_of(
    st.sampled_from([1.0, 2.0, -1.0, -2.0, 0.5, 10.0]),
    st.floats(-1e6, 1e6).filter(lambda weight: abs(weight) >= 1e-2),
)
scores = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1, allow_subnormal=False))
gates = st.one_of(st.sampled_from([0.25, 0.5, 0.75, 1.0]), st.floats(1e-6, 1))


@st.composite
def rubrics(draw: st.DrawFn, *, unread: bool = True) -> tuple[tuple[Criterion, ...], Verdicts]:
    """A rubric of up to seven criteria, and what a judge would say of each."""
    sizes = draw(st.lists(weights, min_size=1, max_size=7))
    if max(sizes) <= 0:
        sizes[0] = -sizes[0]
    criteria = tuple(
        Criterion(f"c{n}", f"Has property number {n}.", weight) for n, weight in enumerate(sizes)
    )
    said = st.one_of(scores, st.none()) if unread else scores
    return criteria, {one.id: draw(said) for one in criteria}


def judge(
    criteria: Sequence[Criterion], verdicts: Verdicts, rules: RubricSettings
) -> tuple[RubricJudgement | Reason, list[int]]:
    """The judgement or the fault's reason, and how much was asked in each round."""

    def answer(request: Request, _: str) -> Answer:
        assert isinstance(request, Choose)
        text = text_of(request.prompt)
        [name] = [one.id for one in criteria if f"Criterion: {one.text}\n" in text]
        score = verdicts[name]
        if score is None:
            raise EngineError(Reason.ENGINE_DIED, "the law says so")
        yes = math.log(score) if score else -math.inf
        no = math.log1p(-score) if score < 1 else -math.inf
        return Chosen((yes, no, -math.inf, -math.inf), TOKENS)

    run = judge_rubric(CandidateRubric(QUESTION, "four", tuple(criteria)), rules, BENCH)
    try:
        found, rounds = drive_by(run, answer)
    except Unjudgeable as error:
        return Reason(error.reason), []
    return found, [len(asked) for asked in rounds]


def said(found: RubricJudgement) -> dict[str, float]:
    return {one.id: one.score for one in found.criteria if one.score is not None}


@given(rubrics(unread=False))
def test_the_score_is_the_formula(drawn: tuple[tuple[Criterion, ...], Verdicts]) -> None:
    criteria, verdicts = drawn
    found, rounds = judge(criteria, verdicts, RubricSettings())
    assert isinstance(found, RubricJudgement)
    assert rounds == [len(criteria)]
    whole = math.fsum(one.weight for one in criteria if one.weight > 0)
    read = said(found)
    raw = math.fsum(one.weight * read[one.id] for one in criteria) / whole
    assert found.score == pytest.approx(min(1.0, max(0.0, raw)), abs=1e-12)
    assert found.least == found.greatest == found.score


@given(
    rubrics(),
    st.randoms(use_true_random=False),
    st.sampled_from(["fault", "leave-out"]),
    st.none() | gates,
)
def test_the_order_of_criteria_changes_nothing(
    drawn: tuple[tuple[Criterion, ...], Verdicts],
    chance: object,
    missing: str,
    gate: float | None,
) -> None:
    criteria, verdicts = drawn
    shuffled = list(criteria)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    rules = RubricSettings(missing=missing, gate=gate)  # type: ignore[arg-type]
    one, rounds = judge(criteria, verdicts, rules)
    other, others = judge(shuffled, verdicts, rules)
    assert rounds == others
    if isinstance(one, Reason) or isinstance(other, Reason):
        assert one == other
        return
    assert (one.score, one.least, one.greatest) == (other.score, other.least, other.greatest)
    assert {found.id: found for found in one.criteria} == {
        found.id: found for found in other.criteria
    }


@given(rubrics(), gates, st.sampled_from(["fault", "leave-out"]), st.floats(0, 1))
def test_early_exit_never_changes_the_outcome(
    drawn: tuple[tuple[Criterion, ...], Verdicts], gate: float, missing: str, share: float
) -> None:
    criteria, verdicts = drawn
    rules = RubricSettings(missing=missing, gate=gate, least_read=share)  # type: ignore[arg-type]
    found, rounds = judge(criteria, verdicts, rules)
    # All of it asked, by the same reading of each criterion.
    whole, _ = judge(
        criteria, {name: verdicts[name] for name in verdicts}, replace(rules, gate=None)
    )
    everything = RubricTally(
        {one.id: one.weight for one in criteria},
        {name: exact(score) for name, score in verdicts.items() if score is not None},
        frozenset(name for name, score in verdicts.items() if score is None),
        missing,  # type: ignore[arg-type]
        share,
    )
    if everything.settled(gate) and not isinstance(found, Reason):
        assert found.score == float(everything.bounds()[0] >= gate)
        assert sum(rounds) <= len(criteria)
    else:
        assert found == Reason.ENGINE_DIED
        assert whole == Reason.ENGINE_DIED
    assert isinstance(found, Reason) == (not everything.settled(gate))
    if isinstance(whole, RubricJudgement):
        assert isinstance(found, RubricJudgement)
        assert found.score == float(whole.score >= gate) or math.isclose(whole.score, gate)
        assert found.least <= whole.score <= found.greatest


def exact(score: float) -> float:
    """The score as the judge reads it back from its logarithms."""
    yes = math.log(score) if score else -math.inf
    no = math.log1p(-score) if score < 1 else -math.inf
    top = max(yes, no)
    first, second = math.exp(yes - top), math.exp(no - top)
    return min(1.0, max(0.0, math.fsum([first / math.fsum([first, second]), 0.0])))


@given(rubrics(), gates, st.sampled_from(["fault", "leave-out"]), st.floats(0, 1))
def test_a_settled_gate_holds_for_whatever_else_is_read(
    drawn: tuple[tuple[Criterion, ...], Verdicts], gate: float, missing: str, share: float
) -> None:
    """By brute force: every open criterion met, not met, half met, or unread."""
    criteria, verdicts = drawn
    criteria = criteria[:4]
    sizes = {one.id: one.weight for one in criteria}
    if max(sizes.values()) <= 0:
        return
    half = [one.id for one in criteria][: len(criteria) // 2 + 1]
    read = {name: score for name in half if (score := verdicts[name]) is not None}
    unread = frozenset(name for name in half if verdicts[name] is None)
    tally = RubricTally(sizes, read, unread, missing, share)  # type: ignore[arg-type]
    if not tally.settled(gate):
        return
    passed = tally.bounds()[0] >= gate
    for rest in itertools.product((0.0, 0.5, 1.0, None), repeat=len(tally.open)):
        then = dict(zip(tally.open, rest, strict=True))
        end = replace(
            tally,
            read={**read, **{name: score for name, score in then.items() if score is not None}},
            unread=unread | {name for name, score in then.items() if score is None},
        )
        assert end.settled(gate)
        assert (end.bounds()[0] >= gate) == passed
        assert tally.bounds()[0] <= end.bounds()[0] <= end.bounds()[1] <= tally.bounds()[1]


@given(rubrics(unread=False), st.sampled_from([0.25, 0.5]))
def test_only_the_ratio_of_weights_counts(
    drawn: tuple[tuple[Criterion, ...], Verdicts], factor: float
) -> None:
    criteria, verdicts = drawn
    scaled = [replace(one, weight=one.weight * factor) for one in criteria]
    one, _ = judge(criteria, verdicts, RubricSettings())
    other, _ = judge(scaled, verdicts, RubricSettings())
    assert isinstance(one, RubricJudgement)
    assert isinstance(other, RubricJudgement)
    assert one.score == other.score


@given(rubrics())
def test_what_is_left_out_counts_as_if_it_were_not_there(
    drawn: tuple[tuple[Criterion, ...], Verdicts],
) -> None:
    criteria, verdicts = drawn
    rules = RubricSettings(missing="leave-out", least_read=0.0)
    found, _ = judge(criteria, verdicts, rules)
    read = [one for one in criteria if verdicts[one.id] is not None]
    if not any(one.weight > 0 for one in read):
        assert found == Reason.ENGINE_DIED
        return
    alone, _ = judge(read, verdicts, RubricSettings())
    assert isinstance(found, RubricJudgement)
    assert isinstance(alone, RubricJudgement)
    assert found.score == alone.score


@given(rubrics(unread=False), st.data())
def test_meeting_more_is_worth_no_less(
    drawn: tuple[tuple[Criterion, ...], Verdicts], data: st.DataObject
) -> None:
    criteria, verdicts = drawn
    chosen = data.draw(st.sampled_from(criteria))
    better = {**verdicts, chosen.id: 1.0 if chosen.weight > 0 else 0.0}
    before, _ = judge(criteria, verdicts, RubricSettings())
    after, _ = judge(criteria, better, RubricSettings())
    assert isinstance(before, RubricJudgement)
    assert isinstance(after, RubricJudgement)
    assert after.score >= before.score


@given(rubrics(unread=False), st.integers(2, 4))
def test_equal_parts_of_a_criterion_are_worth_the_whole(
    drawn: tuple[tuple[Criterion, ...], Verdicts], count: int
) -> None:
    criteria, verdicts = drawn
    first, *others = criteria
    parts = [
        Criterion(f"part-{n}", f"Has part number {n}.", first.weight / count) for n in range(count)
    ]
    same = {**verdicts, **{part.id: verdicts[first.id] for part in parts}}
    whole, _ = judge(criteria, verdicts, RubricSettings())
    split, _ = judge([*parts, *others], same, RubricSettings())
    assert isinstance(whole, RubricJudgement)
    assert isinstance(split, RubricJudgement)
    assert split.score == pytest.approx(whole.score, abs=1e-9)


MODELS = tuple(model("choose", name=f"m{n}") for n in range(5))


@given(
    st.lists(scores, min_size=1, max_size=5),
    st.sampled_from(["mean", "median", "majority", "min"]),
    st.randoms(use_true_random=False),
)
def test_ensembles_do_not_depend_on_their_order_and_stay_within_it(
    found: list[float], combination: str, chance: object
) -> None:
    panel = JudgePanel(MODELS[: len(found)], combination, 1)  # type: ignore[arg-type]
    opinions = [opinion(one, "", score) for one, score in zip(panel.models, found, strict=True)]
    shuffled = list(opinions)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    above = sum(score >= 0.5 for score in found)
    if combination == "majority" and 2 * above == len(found):
        with pytest.raises(Unjudgeable):
            combine(panel, opinions)
    else:
        one, other = combine(panel, opinions), combine(panel, shuffled)
        assert one == other
        if combination != "majority":
            assert min(found) <= one <= max(found) or one == pytest.approx(found[0])
    gap, again = disagreement(opinions), disagreement(shuffled)
    assert (gap is None) == (len(found) == 1)
    if gap is not None and again is not None:
        assert gap == pytest.approx(again)
        assert 0 <= gap <= max(found) - min(found) + 1e-12


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=20),
    st.lists(st.integers(1, 2000), min_size=1, max_size=12),
)
def test_the_order_costs_hardly_more_than_the_other(
    responses: list[int], criteria: list[int]
) -> None:
    chosen = cost(order_of(responses, criteria), responses, criteria)
    costs = [cost(order, responses, criteria) for order in ("response-first", "criterion-first")]
    assert chosen <= min(costs) / CLEARLY


@given(st.text(max_size=200), st.data())
def test_what_was_quoted_is_found(response: str, data: st.DataObject) -> None:
    words = [word for word in response.split() if word.isalnum()]
    if not words:
        return
    quoted = data.draw(st.sampled_from(words))
    span = find_quotation(response, quoted)
    if span is not None:
        assert response[slice(*span)].casefold() == quoted.casefold()
    elif response.isascii():
        pytest.fail(f"{quoted!r} stands in {response!r} between spaces")


@given(st.text(max_size=300), st.text(max_size=100))
def test_quotations_never_break(response: str, written: str) -> None:
    quoted = read_quotation(written)
    if quoted is not None:
        span = find_quotation(response, quoted)
        assert span is None or 0 <= span[0] < span[1] <= len(response)


@given(st.text(max_size=300))
def test_parts_never_break_and_are_never_blank(text: str) -> None:
    parts = parts_of(text)
    assert parts
    assert len(parts) == 1 or all(part.strip() for part in parts)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "criteria",
                    "text",
                    "weight",
                    "kind",
                    "evidence",
                    "id",
                    "criterion",
                    "points",
                    "title",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_rows_are_rubrics_or_say_why_not(value: object) -> None:
    try:
        found = read_rubric(value)
    except ValueError:
        return
    assert found.criteria
    assert all(isinstance(one, Criterion) for one in found.criteria)
