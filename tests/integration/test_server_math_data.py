"""`math` on real data, through the worker pool: GSM8K solutions, and labelled pairs of answers."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from assay.api.reward.v1 import reward_pb2
from assay.reward_server.config import ScorerConfig
from assay.reward_server.scorer import RewardScorer

pytestmark = pytest.mark.data

# All that math-verify 0.9.0 gets wrong in this way among 2,655 labelled pairs.
KNOWN_FALSE_POSITIVES = {
    "me-577",  # y=/=x taken for y=x
    "me-670",  # f(2)=f(3)+4 taken for f(5)=f(7)+4
    "me-4075",  # 0 taken for > 0
    "me-300000",  # 1/2004! taken for 1/2006!: both are below its precision
    "me-300001",  # 1/2^99 taken for 1/2^98: the same
    "me-300006",  # (2^2005 + 1) / (3 * 2^2006) without its first term
    "me-300010",  # 1, 2, ..., n taken for 1, 3, 5, ..., 2n-1
    "me-300014",  # 4 taken for 4 sqrt(2) written with parentheses
}


def rows(path: Path) -> list[dict[str, str]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.decode().split("\n") if line]


async def score(pairs: list[tuple[str, str]], timeout_s: float) -> list[reward_pb2.Result]:
    """Results of pairs of response and reference, in order."""
    scorer = RewardScorer(ScorerConfig(workers=2, item_timeout_s=timeout_s))
    request = reward_pb2.BatchScoreRequest()
    for index, (response, reference) in enumerate(pairs):
        item = request.items.add(id=str(index), task="math", response=response)
        item.reference.text = reference
    try:
        await scorer.start()
        return list((await scorer.batch_score(request, timeout_s=100)).results)
    finally:
        await scorer.close()


async def test_gsm8k_solutions_are_right_for_their_own_problem_only(shared_data: Path) -> None:
    picked = random.Random(0).sample(rows(shared_data / "gsm8k_train.jsonl.gz"), 200)
    solutions = [(row["solution"], row["answer"]) for row in picked]
    neighbours = solutions[1:] + solutions[:1]
    pairs = [(s, s) for s, _ in solutions] + [(a, s) for s, a in solutions]
    pairs += [(s, t) for (s, a), (t, b) in zip(solutions, neighbours, strict=True) if a != b]
    verdicts = [result.judgement.verdict for result in await score(pairs, 10.0)]
    assert verdicts[:400] == ["correct"] * 400
    assert set(verdicts[400:]) == {"incorrect"}
    assert len(verdicts) > 550


def judged(
    picked: list[dict[str, str]], results: list[reward_pb2.Result]
) -> tuple[set[str], int, int]:
    """Ids of the false positives, how many true positives there are, and how many faults."""
    pairs = list(zip(picked, results, strict=True))
    right = [row for row, result in pairs if result.judgement.verdict == "correct"]
    wrong = {row["id"] for row in right if not row["label"]}
    return wrong, len(right) - len(wrong), sum(r.HasField("fault") for r in results)


async def test_a_sample_of_labelled_pairs_has_no_new_false_positive(shared_data: Path) -> None:
    # Held against the known false positives and not against a ratio: only 80 % of the samples
    # of this size reach 99 % precision, so a ratio would say more about the seed than about us.
    picked = random.Random(0).sample(rows(shared_data / "math_equiv_dev.jsonl.gz"), 300)
    results = await score([(row["response"], row["gold"]) for row in picked], 10.0)
    wrong, right, faults = judged(picked, results)
    assert wrong <= KNOWN_FALSE_POSITIVES
    assert right >= 0.7 * sum(bool(row["label"]) for row in picked)
    assert faults <= 6


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_all_labelled_pairs_are_judged_precisely(shared_data: Path) -> None:
    picked = rows(shared_data / "math_equiv_dev.jsonl.gz")
    results: list[reward_pb2.Result] = []
    for start in range(0, len(picked), 500):
        part = picked[start : start + 500]
        results += await score([(row["response"], row["gold"]) for row in part], 10.0)
    wrong, right, faults = judged(picked, results)
    assert wrong <= KNOWN_FALSE_POSITIVES
    assert right / (right + len(wrong)) >= 0.99
    assert right >= 0.75 * sum(bool(row["label"]) for row in picked)
    assert faults <= 20


async def test_near_misses_are_never_right(shared_data: Path) -> None:
    picked = random.Random(0).sample(rows(shared_data / "math_equiv_adversarial_dev.jsonl"), 120)
    assert await wrongly_accepted(picked) == []


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_no_near_miss_is_right(shared_data: Path) -> None:
    assert await wrongly_accepted(rows(shared_data / "math_equiv_adversarial_dev.jsonl")) == []


async def wrongly_accepted(picked: list[dict[str, str]]) -> list[str]:
    """Ids of the pairs, none of which is equal, that got a reward."""
    results: list[reward_pb2.Result] = []
    for start in range(0, len(picked), 500):
        part = picked[start : start + 500]
        results += await score([(row["response"], row["gold"]) for row in part], 10.0)
    assert sum(r.HasField("judgement") for r in results) >= 0.98 * len(picked)
    return [row["id"] for row, r in zip(picked, results, strict=True) if r.judgement.reward]
