"""Laws of the judging client and of what `assay eval-judge` counts."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.cli.evaluation.tallies import EvaluationTally
from assay.clients.config import ClientConfig, RetryPolicy
from assay.clients.judging import AsyncJudgeClient, GroupItem, GroupRanking, JudgeItem
from assay.clients.judging.convert import JUDGE_ITEM, write_item
from assay.clients.judging.types import ModelJudgement
from assay.kit.errors import refuse
from assay.kit.reasons import Reason
from assay.kit.runs.stats import auc

FATES = st.sampled_from(["judge", "twice", "fault", "nan", "empty", "drop", "wrong"])
CONFIG = ClientConfig(retry=RetryPolicy(base_s=0, cap_s=0))


class Scripted:
    """A judge service that does to each item what its ground truth says."""

    def __init__(self, seed: int, refusals: int, max_items: int) -> None:
        self._random = random.Random(seed)
        self._refusals = refusals
        self._limits = common_pb2.BatchLimits(max_items=max_items)
        self.largest = 0

    async def call(self, method: str, request: Any, *, timeout_s: float) -> Any:
        if method.endswith(".ListJudgeModels"):
            return judge_pb2.ListJudgeModelsResponse(limits=self._limits)
        if method.endswith(".ListProcessModels"):
            return process_pb2.ListProcessModelsResponse(limits=self._limits)
        self.largest = max(self.largest, len(request.items))
        if self._refusals:
            self._refusals -= 1
            raise refuse(Reason.DRAINING, "told to")
        groups = method.endswith(".JudgeGroups")
        answer = self._group if groups else self._judge
        results = [result for item in request.items for result in answer(item)]
        self._random.shuffle(results)
        kind = judge_pb2.JudgeGroupsResponse if groups else judge_pb2.JudgeResponsesResponse
        return kind(results=results)

    def _judge(self, item: judge_pb2.JudgeItem) -> list[judge_pb2.JudgeResult]:
        result, fate = judge_pb2.JudgeResult(id=item.id), item.ground_truth
        if fate == "fault":
            result.fault.message = "died"
        elif fate != "empty":
            result.judgement.score = float("nan") if fate == "nan" else float(item.response)
        if fate == "wrong":
            result.judgement.standard_error = float("inf")
        stray = judge_pb2.JudgeResult(id=f"stray-{item.id}")
        return {"drop": [stray], "twice": [result, result]}.get(fate, [result])

    def _group(self, item: judge_pb2.GroupItem) -> list[judge_pb2.GroupResult]:
        result, fate = judge_pb2.GroupResult(id=item.id), item.ground_truth
        count = len(item.responses) - (fate == "wrong")
        if fate == "fault":
            result.fault.message = "died"
        elif fate != "empty":
            score = float("nan") if fate == "nan" else 0.5
            result.ranking.scores.extend([score] * count)
            result.ranking.order_gaps.extend([0.0] * count)
        stray = judge_pb2.GroupResult(id=f"stray-{item.id}")
        return {"drop": [stray], "twice": [result, result]}.get(fate, [result])

    async def close(self) -> None:
        return


@given(st.lists(FATES, max_size=30), st.integers(0, 9), st.integers(0, 2), st.integers(1, 9))
def test_judgements_and_faults_are_the_items_in_order(
    fates: list[str], seed: int, refusals: int, max_items: int
) -> None:
    async def main() -> None:
        wire = Scripted(seed, refusals, max_items)
        items = [JudgeItem(f"{n % 4}", f"{n}", ground_truth=fate) for n, fate in enumerate(fates)]
        groups = [
            GroupItem(f"{n % 4}", ["a", "b"], ground_truth=fate) for n, fate in enumerate(fates)
        ]
        async with AsyncJudgeClient(transport=wire, config=CONFIG) as client:
            results = await client.judge_responses(items)
            rankings = await client.judge_groups(groups)
        good = [fate in ("judge", "twice") for fate in fates]
        scores = [r.score if isinstance(r, ModelJudgement) else None for r in results]
        assert scores == [float(n) if judged else None for n, judged in enumerate(good)]
        assert [isinstance(ranking, GroupRanking) for ranking in rankings] == good
        assert wire.largest <= max_items

    asyncio.run(main())


@given(st.text(), st.text(), st.sampled_from(["ground_truth", "anchor", "rubric"]), st.text())
def test_what_is_judged_reaches_the_wire_unchanged(
    prompt: str, response: str, field: str, against: str
) -> None:
    try:
        message = write_item(JUDGE_ITEM, JudgeItem(prompt, response, **{field: against}), "i")  # type: ignore[arg-type]
    except ValueError:
        texts = (prompt, response, against)
        assert any("\ud800" <= char <= "\udfff" for text in texts for char in text)
        return
    sent = judge_pb2.JudgeItem.FromString(message.SerializeToString())
    name = "anchor_response" if field == "anchor" else field
    assert (sent.response, sent.WhichOneof("against")) == (response, name)
    assert getattr(sent, name) == against
    assert [part.content for part in sent.prompt] == ([prompt] if prompt else [])


SCORES = st.integers(0, 4).map(lambda n: n / 4)
SCORED = st.lists(st.tuples(SCORES, st.booleans()), max_size=30)


@given(SCORED)
def test_auc_is_the_chance_that_a_right_one_scores_higher(scored: list[tuple[float, bool]]) -> None:
    right = [score for score, label in scored if label]
    wrong = [score for score, label in scored if not label]
    wins = [(r > w) + 0.5 * (r == w) for r in right for w in wrong]
    found = auc(scored)
    assert found == (sum(wins) / len(wins) if wins else None)
    mirrored = auc([(1 - score, not label) for score, label in scored])
    assert mirrored == found


def pair_line(forward: float, reverse: float, subset: str) -> dict[str, Any]:
    return {
        "subset": subset,
        "forward": forward,
        "reverse": reverse,
        "win_probability": (forward + reverse) / 2,
        "order_gap": abs(forward - reverse),
        "usage": {"prompt": 1, "cached": 0, "completion": 0},
        "judge": {"model": "m", "revision": "r", "template": "t"},
        "fault": None,
    }


PAIRS = st.lists(st.tuples(SCORES, SCORES, st.sampled_from("ab")), max_size=30)


@given(PAIRS, st.integers(0, 5), SCORES)
def test_subsets_add_up_and_a_mirrored_judge_is_as_wrong_as_the_judge_is_right(
    pairs: list[tuple[float, float, str]], faults: int, gap: float
) -> None:
    judge, mirror = EvaluationTally("pairs", gap), EvaluationTally("pairs", gap)
    for forward, reverse, subset in pairs:
        judge.add(pair_line(forward, reverse, subset))
        mirror.add(pair_line(1 - forward, 1 - reverse, subset))
    for _ in range(faults):
        judge.add({"subset": "a", "fault": {"reason": "ENGINE_DIED", "message": ""}})
    numbers, mirrored = judge.numbers(), mirror.numbers()["all"]
    whole, parts = numbers["all"], numbers["subsets"].values()
    assert judge.done == len(pairs) + faults == sum(part["items"] for part in parts)
    assert whole["judged"] + sum(whole["faults"].values()) == judge.done
    assert whole["abstained"] == sum(part["abstained"] for part in parts) == mirrored["abstained"]
    assert whole["order_consistency"] == mirrored["order_consistency"]
    if whole["accuracy"] is not None:
        assert abs(whole["accuracy"] + mirrored["accuracy"] - 1) < 1e-12
        low, high = whole["interval"]
        assert 0 <= low <= whole["accuracy"] + 1e-12
        assert whole["accuracy"] - 1e-12 <= high <= 1


STEPS = st.lists(
    st.tuples(st.sampled_from([1.0, -1.0, 0.0, None]), st.one_of(st.none(), SCORES)), min_size=1
)


@given(st.lists(STEPS, max_size=8))
def test_steps_are_counted_as_a_table_of_four_cells_says(
    rows: list[list[tuple[float | None, float | None]]],
) -> None:
    evaluation = EvaluationTally("steps")
    cells = []
    for row in rows:
        labels, scores = [label for label, _ in row], [score for _, score in row]
        below = [n for n, score in enumerate(scores) if score is not None and score < 0.5]
        evaluation.add(
            {
                **pair_line(0, 0, "a"),
                "labels": labels,
                "scores": scores,
                "error_threshold": 0.5,
                "passed": not below,
                "first_error": below[0] if below else None,
            }
        )
        cells += [(y < 0, x < 0.5) for y, x in row if y and x is not None]
    numbers = evaluation.numbers()["all"]
    assert numbers["steps"] == len(cells)
    if cells:
        assert numbers["step_accuracy"] == sum(y == x for y, x in cells) / len(cells)
    precision, recall, f1 = (numbers[f"error_{name}"] for name in ("precision", "recall", "f1"))
    if precision and recall:
        assert abs(f1 - 2 * precision * recall / (precision + recall)) < 1e-12
