"""`math-verify` on real pairs, in workers: the verdicts of the library called directly."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import reason_of
from math_support import rows, score

pytestmark = pytest.mark.data

SAMPLE = 150
TIMEOUT_S = 10.0
Direct = Callable[[str, str], bool | None]


def by_library(reference: str, response: str) -> bool | None:
    """`verify` and `parse` as they come, their alarms on; None for an unread reference."""
    from math_verify import parse, verify

    gold = parse(reference)
    return bool(verify(gold, parse(response))) if gold else None


def by_verl(reference: str, response: str) -> bool | None:
    """The library's metric with verl's targets."""
    from math_verify.metric import math_metric
    from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig

    metric = math_metric(
        gold_extraction_target=(LatexExtractionConfig(),),
        pred_extraction_target=(ExprExtractionConfig(), LatexExtractionConfig()),
    )
    try:
        return bool(metric([f"\\boxed{{{reference}}}"], [response])[0])
    except ValueError:
        return None  # nothing was found in the reference


def by_trl(reference: str, response: str) -> bool | None:
    """TRL's reward function itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from trl.rewards.accuracy_rewards import accuracy_reward

    reward = accuracy_reward([[{"role": "assistant", "content": response}]], [reference])[0]
    return None if reward is None else bool(reward)


def verdict(result: reward_pb2.Result) -> str:
    """The verdict, or the reason of the fault."""
    return reason_of(result.fault) if result.HasField("fault") else result.judgement.verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "direct"), [("library", by_library), ("verl", by_verl), ("trl", by_trl)]
)
async def test_verdicts_are_those_of_the_library_called_directly(
    shared_data: Path, setup: str, direct: Direct
) -> None:
    pairs = rows(shared_data / "math_equiv_dev.jsonl.gz")
    pairs = random.Random(setup).sample(pairs, SAMPLE)
    asked = [(row["response"], row["gold"]) for row in pairs]
    found = [verdict(one) for one in await score(asked, TIMEOUT_S, "math-verify", setup)]
    # What takes for ever is our fault; called directly it might take this test with it.
    judged = [(row, one) for row, one in zip(pairs, found, strict=True) if one != "ITEM_TIMEOUT"]
    wanted = [direct(row["gold"], row["response"]) for row, _ in judged]
    names = {True: {"correct"}, False: {"incorrect", "unparsed"}, None: {"UNUSABLE_REFERENCE"}}
    assert all(one in names[right] for (_, one), right in zip(judged, wanted, strict=True))
    assert len(judged) >= 0.95 * SAMPLE
    assert {"correct", "incorrect"} <= set(found)
