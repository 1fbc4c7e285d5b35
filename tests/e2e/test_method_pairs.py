"""Every pair of parts trains three steps of a tiny model, or is refused by its settings."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import pairs_doc
from assay.kit.errors import ConfigError
from trainer_support import SUMS, ExactTransport

Train = Callable[..., list[dict[str, Any]]]
PAIRS = list(combinations(pairs_doc.ON, 2))
REASONED = (
    " needs ",
    " goes with ",
    " is read only where ",
    " is for episodes",
    "; use ",
    ": set ",
    ": leave one of them out",
)
"""A refusal says what a part lacks, or what to set."""
SAMPLE = [pair for pair in PAIRS if zlib.crc32("".join(pair).encode()) % 64 == 0]


class Stepwise(ExactTransport):
    """Judges each character as a step, too."""

    def _judge(self, item: Any, result: Any) -> None:
        super()._judge(item, result)
        if result.HasField("judgement"):
            for place, letter in enumerate(item.response):
                reward = float(letter in "0246")
                span = result.judgement.spans.add(reward=reward, label="step")
                span.range.start, span.range.end = place, place + 1


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sums with a task, a worked solution, and, of every other, what a response begins with."""
    path = tmp_path_factory.mktemp("pairs") / "rows.jsonl"
    rows = (
        {
            "question": f"{a}+{b}=",
            "answer": str(a + b),
            "task": "low" if a + b < 10 else "high",
            "solution": f"{a} + {b}",
            "begun": "1" if a % 2 else "",
        }
        for a, b in SUMS
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def both(
    tiny_model: Path, rows_file: Path, train: Train, tmp_path: Path
) -> Callable[[str, str], None]:
    def go(one: str, other: str) -> None:
        settings = pairs_doc.together(one, other)
        if isinstance(settings, str):
            return
        small = [f"data.path={rows_file}", "data.columns.reference=answer"]
        small += [f"model.name={tiny_model}", "model.device=cpu"]
        small += ["model.precision=float32", "optim.learning_rate=4e-4", "run.steps=3"]
        small += ["run.checkpoint_every=0", "run.report_to=[]", "reward.timeout_s=30"]
        try:
            config = pairs_doc.loaded(settings, *small)
        except ConfigError as refused:
            if not any(way in str(refused) for way in REASONED):
                raise
            return
        rows = train(config, transport=Stepwise)
        assert [row["step"] for row in rows] == [1, 2, 3]
        assert all(math.isfinite(row["loss"]) for row in rows)
        judged = [row["fault_ratio"] for row in rows if row["responses"]]
        assert judged, "in some step something ends"
        assert set(judged) == {0}

    return go


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), SAMPLE, ids=str)
def test_a_pair_trains_or_is_refused(
    both: Callable[[str, str], None], one: str, other: str
) -> None:
    both(one, other)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_every_pair_trains_or_is_refused(
    both: Callable[[str, str], None], one: str, other: str
) -> None:
    both(one, other)
