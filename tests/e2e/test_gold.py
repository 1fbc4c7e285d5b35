"""A run that a gold verifier watches: its numbers, its report, and that it changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows
from trainer_support import ExactTransport


class Watched(ExactTransport):
    """The verifier `exact` pays any response with a digit 1; `gold` the reference alone.

    Args:
        faulty: how many of gold's first judgements are faults.
    """

    def __init__(self, faulty: int = 0) -> None:
        super().__init__()
        self.left = faulty
        self.seen: list[tuple[str, str, Any]] = []

    async def list_verifiers(self, request: Any, *, timeout_s: float) -> Any:
        response = await super().list_verifiers(request, timeout_s=timeout_s)
        response.verifiers.add(name="gold")
        response.verifiers.add(name="ranked", needs_group=True)
        return response

    def _judge(self, item: Any, result: Any) -> None:
        from assay.kit.errors import make_status

        super()._judge(item, result)
        if item.verifier == "gold" and self.left:
            self.left -= 1
            result.fault.CopyFrom(make_status("WORKER_DIED", "told to"))
        elif item.verifier != "gold" and "1" in item.response:
            result.judgement.reward, result.judgement.verdict = 1.0, "correct"
        self.seen.append((item.labels["phase"], item.labels["step"], result))


def test_gold_is_counted_beside_the_reward_and_trains_nothing(
    tiny_config: Callable[..., Any], train: Any, tmp_path: Path
) -> None:
    gold = {"gold": {"verifier": "gold", "every": 2}}
    watched = Watched(faulty=5)
    rows = train(tiny_config(method=gold), "with", transport=lambda: watched)
    plain = train(tiny_config(), "without", transport=Watched)
    assert [row["loss"] for row in rows] == [row["loss"] for row in plain]
    for row in rows:
        told = [r for phase, step, r in watched.seen if (phase, step) == ("gold", str(row["step"]))]
        if row["step"] % 2 == 0:
            assert not told
            assert row["gold_gap"] is None
            continue
        judged = [r.judgement.reward for r in told if r.WhichOneof("outcome") == "judgement"]
        assert len(told) == 64
        assert row["gold_missing"] == pytest.approx(1 - len(judged) / 64)
        assert row["gold_reward"] == pytest.approx(sum(judged) / len(judged))
        assert row["gold_gap"] == pytest.approx(row["gold_proxy"] - row["gold_reward"])
        assert row["gold_gap"] > 0
        assert row["faults"] == {}
    assert rows[0]["gold_missing"] == 5 / 64
    folder = tmp_path / "with"
    told = json.loads((folder / "report.json").read_text())["gold"]
    assert told["first"]["gap"] == pytest.approx(rows[0]["gold_gap"])
    assert told["change"] == pytest.approx(rows[2]["gold_gap"] - rows[0]["gold_gap"])
    assert re.search(
        r"^## Reward and gold reward\n", (folder / "report.md").read_text(), re.MULTILINE
    )
    assert "gold" not in json.loads((tmp_path / "without" / "report.json").read_text())
    assert read_rows(folder / "metrics.jsonl") == rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verifier", "message"),
    [
        ("exact", "is the verifier that trains: the gap is 0"),
        ("golden", "method.gold.verifier = 'golden' is not served"),
        ("ranked", "compares the samples of a prompt"),
    ],
)
def test_what_cannot_watch_is_refused(
    tiny_config: Callable[..., Any], train: Any, verifier: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        train(tiny_config(method={"gold": {"verifier": verifier}}), transport=Watched)
