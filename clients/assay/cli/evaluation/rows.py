"""The questions of a row to a judge, and its line of output. Pure.

Four kinds (`assay.clients.rows.preferences` documents the shapes of rows):

    pairs    which of two responses is better: asked in both orders
    points   a response by itself: {prompt, response, label, ground_truth?}, label 1 right, 0 wrong;
             or a preference pair, both responses by themselves (for scalar reward models)
    steps    which steps of a response are right
    best     which of several responses is the best: each rated by itself, or all ranked in pairs

A line of output has all that is counted, so that an interrupted run continues from its lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from assay.clients.judging import (
    GroupItem,
    GroupRanking,
    JudgeItem,
    ModelJudgement,
    PairItem,
    PairJudgement,
    StepItem,
    StepScores,
    Usage,
)
from assay.clients.rows.points import gold_of, point_of
from assay.clients.rows.preferences import (
    Said,
    Styles,
    best_of,
    is_best,
    is_pair,
    is_steps,
    pairs_of,
    steps_of,
)
from assay.clients.types import Fault

Kind = Literal["pairs", "points", "steps", "best"]
BestBy = Literal["ratings", "ranking"]
AnyItem = JudgeItem | PairItem | StepItem | GroupItem
AnyResult = ModelJudgement | PairJudgement | StepScores | GroupRanking | Fault


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One question to a judge.

    Attributes:
        line: of the file, from 1.
        id: the row's id, followed by a number where the row has several questions.
        items: one item, or responses by themselves, the better one or the right ones first.
        labels: of a response 1.0 or 0.0; of steps 1.0 right, -1.0 wrong, 0.0 or None for neither;
            of several responses one for each. Empty for a pair.
    """

    kind: Kind
    line: int
    id: str
    subset: str
    items: tuple[AnyItem, ...]
    labels: tuple[float | None, ...] = ()


def kind_of_row(row: Mapping[str, Any]) -> Kind:
    """The kind of a row's questions, by its keys."""
    if is_steps(row):
        return "steps"
    if is_best(row):
        return "best"
    return "pairs" if is_pair(row) else "points"


def questions_of(
    row: Mapping[str, Any],
    line: int,
    kind: Kind,
    styles: Styles = "same",
    *,
    with_truth: bool | None = None,
    best_by: BestBy = "ratings",
) -> list[JudgeQuestion]:
    """The questions of a row; `line` is the row's in the file, from 1.

    Of several styles `styles` chooses the pairs (`pairs_of`). With "cross", a subset's name ends
    with the difficulty of the pairs, as RM-Bench defines it: "easy" where the better response has
    the richer style, "hard" where the worse one has, else "normal". `with_truth` shows the judge
    the row's right answer; None: only for responses by themselves, as benchmarks of preferences and
    steps do not show it. `best_by` says how several responses are asked about.

    Raises:
        RowError: the row has no such question.
    """
    name = str(row.get("id") or line)
    gold = gold_of(row) if (kind == "points" if with_truth is None else with_truth) else None
    if kind == "steps":
        return [_steps(row, line, name, gold)]
    if kind == "best":
        return [_best(row, line, name, gold, best_by)]
    if kind == "points" and not is_pair(row):
        return [_point(row, line, name, gold)]
    pairs = pairs_of(row, styles)
    asked = []
    for number, pair in enumerate(pairs):
        items: tuple[AnyItem, ...]
        prompt = _messages(pair.prompt)
        if kind == "pairs":
            items = (PairItem(prompt, pair.chosen, pair.rejected, ground_truth=gold or ""),)
        else:
            both = (pair.chosen, pair.rejected)
            items = tuple(JudgeItem(prompt, text, ground_truth=gold) for text in both)
        subset = pair.subset
        if styles == "cross" and len(pairs) > 1:
            subset = f"{subset} {_hardness(*pair.styles)}".strip()
        own = f"{name}.{number}" if len(pairs) > 1 else name
        asked.append(JudgeQuestion(kind, line, own, subset, items))
    return asked


def _hardness(chosen_style: int, rejected_style: int) -> str:
    if chosen_style == rejected_style:
        return "normal"
    return "easy" if chosen_style > rejected_style else "hard"


def _steps(row: Mapping[str, Any], line: int, name: str, gold: str | None) -> JudgeQuestion:
    found = steps_of(row)
    item = StepItem(
        _messages(found.prompt),
        found.response,
        ground_truth=gold or "",
        steps=found.steps,
    )
    return JudgeQuestion("steps", line, name, found.subset, (item,), found.labels)


def _best(
    row: Mapping[str, Any], line: int, name: str, gold: str | None, best_by: BestBy
) -> JudgeQuestion:
    found = best_of(row)
    prompt = _messages(found.prompt)
    items: tuple[AnyItem, ...]
    if best_by == "ranking":
        items = (GroupItem(prompt, found.responses, ground_truth=gold or ""),)
    else:
        items = tuple(JudgeItem(prompt, text, ground_truth=gold) for text in found.responses)
    wrong = len(found.responses) - found.correct
    labels = (1.0,) * found.correct + (0.0,) * wrong
    return JudgeQuestion("best", line, name, found.subset, items, labels)


def _point(row: Mapping[str, Any], line: int, name: str, gold: str | None) -> JudgeQuestion:
    found = point_of(row)
    item = JudgeItem(_messages(found.prompt), found.response, ground_truth=gold)
    return JudgeQuestion("points", line, name, found.subset, (item,), (float(found.right),))


def _messages(said: Sequence[Said]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in said]


def line_of(question: JudgeQuestion, results: Sequence[AnyResult]) -> dict[str, Any]:
    """The output for a question and the results of its items. A fault of one is the question's."""
    usage, execution_s = Usage(), 0.0
    judged = [result for result in results if not isinstance(result, Fault)]
    for result in judged:
        usage += result.usage
        execution_s += result.timings.execution_s
    fault = next((result for result in results if isinstance(result, Fault)), None)
    line: dict[str, Any] = {
        "id": question.id,
        "line": question.line,
        "subset": question.subset,
        "kind": question.kind,
        **_labels(question),
    }
    if fault is None:
        line |= _answer(question, judged)
    line |= {
        "judge": asdict(judged[0].judge) if judged else None,
        "usage": asdict(usage),
        "execution_s": round(execution_s, 6),
        "fault": fault and {"reason": fault.reason, "message": fault.message},
    }
    return line


def _labels(question: JudgeQuestion) -> dict[str, Any]:
    """What is known of the row, whether it is judged or not."""
    match question.kind:
        case "steps":
            return {"labels": list(question.labels)}
        case "best":
            return {"correct": sum(label == 1.0 for label in question.labels)}
        case "points" if question.labels:
            return {"label": question.labels[0]}
        case _:
            return {"longer_better": _longer_better(question)}


def _answer(question: JudgeQuestion, results: Sequence[AnyResult]) -> dict[str, Any]:
    if question.kind == "best":
        return _ratings(results)
    match results:
        case [PairJudgement() as pair]:
            return {
                "win_probability": pair.win_probability,
                "forward": pair.forward,
                "reverse": pair.reverse,
                "order_gap": pair.order_gap,
                "standard_error": pair.standard_error,
                "unparsed_votes": pair.unparsed_votes,
                "truncated": pair.truncated,
                "verdict_mass": pair.verdict_mass,
                "letter_gap": pair.letter_gap,
            }
        case [ModelJudgement() as chosen, ModelJudgement() as rejected]:
            return {
                "score_chosen": chosen.score,
                "score_rejected": rejected.score,
                "truncated": chosen.truncated or rejected.truncated,
                "verdict_mass": _least(chosen.verdict_mass, rejected.verdict_mass),
                "letter_gap": _greatest(chosen.letter_gap, rejected.letter_gap),
            }
        case [ModelJudgement() as judgement]:
            return {
                "score": judgement.score,
                "standard_error": judgement.standard_error,
                "unparsed_votes": judgement.unparsed_votes,
                "truncated": judgement.truncated,
                "verdict_mass": judgement.verdict_mass,
                "letter_gap": judgement.letter_gap,
            }
        case [StepScores() as steps]:
            return {
                "scores": [step.score for step in steps.steps],
                "error_threshold": steps.error_threshold,
                "aggregate": steps.aggregate,
                "passed": steps.passed,
                "first_error": steps.first_error,
                "unparsed_votes": steps.unparsed_votes,
            }
    raise TypeError(f"no line is written for {results!r}")


def _ratings(results: Sequence[AnyResult]) -> dict[str, Any]:
    """A score for each of several responses, the right ones first."""
    match results:
        case [GroupRanking() as ranking]:
            scores, truncated = ranking.scores, any(ranking.truncated)
            mass = ranking.verdict_mass
        case _:
            rated = [result for result in results if isinstance(result, ModelJudgement)]
            scores = tuple(result.score for result in rated)
            truncated = any(result.truncated for result in rated)
            mass = _least(*(result.verdict_mass for result in rated))
    return {
        "scores": list(scores),
        "truncated": truncated,
        "verdict_mass": mass,
    }


def _longer_better(question: JudgeQuestion) -> bool | None:
    """Whether the better response is the longer one; None where both are as long."""
    match question.items:
        case (PairItem(a=better, b=worse),):
            pass
        case (JudgeItem(response=better), JudgeItem(response=worse)):
            pass
        case _:
            return None
    return None if len(better) == len(worse) else len(better) > len(worse)


def _least(*masses: float | None) -> float | None:
    return min((mass for mass in masses if mass is not None), default=None)


def _greatest(*gaps: float | None) -> float | None:
    return max((gap for gap in gaps if gap is not None), default=None)
