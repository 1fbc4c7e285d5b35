"""Files of mathematics, and their pairs through the reward server's scorer and its workers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from assay.api.reward.v1 import reward_pb2
from assay.reward_server.config import ScorerConfig
from assay.reward_server.scorer import RewardScorer

Pair = tuple[str, str]  # response and reference

ITEMS_A_CALL = 512


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file of JSON lines, which may be gzipped."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.decode().split("\n") if line]


async def score(
    pairs: Sequence[Pair], item_timeout_s: float = 10.0, task: str = "math", setup: str = ""
) -> list[reward_pb2.Result]:
    """What the verifier of a task gives for pairs, in order, in calls of 512 items."""
    scorer = RewardScorer(ScorerConfig(workers=2, item_timeout_s=item_timeout_s))
    results: list[reward_pb2.Result] = []
    try:
        await scorer.start()
        for start in range(0, len(pairs), ITEMS_A_CALL):
            request = reward_pb2.BatchScoreRequest()
            for index, (response, reference) in enumerate(pairs[start : start + ITEMS_A_CALL]):
                item = request.items.add(id=str(index), task=task, response=response)
                item.reference.text = reference
                if setup:
                    item.parameters["setup"].string_value = setup
            results += (await scorer.batch_score(request, timeout_s=200)).results
    finally:
        await scorer.close()
    return results
