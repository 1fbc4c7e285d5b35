"""A run whose evaluation also searches by its critic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Train = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize("sharing", ["separate", "trunk"])
def test_an_evaluation_also_searches(
    tiny_config: Callable[..., Any], train: Train, tmp_path: Path, sharing: str
) -> None:
    """Lines end with a 1, so that sums above 9 have two."""
    config = tiny_config(
        method={
            "advantage": {"estimator": "gae"},
            "critic": {"pretrain_steps": 2, "below_minimum": "warn", "sharing": sharing}
            if sharing == "separate"
            else {"sharing": sharing},
            "search": {"iterations": 3, "samples": 2, "separator": "1", "problems": 8},
        },
        rollout={"prompts_per_step": 4, "group_size": 2},
        eval={"prompts": 20, "every": 1},
        run={"steps": 2},
    )
    train(config)
    told = json.loads((tmp_path / "run" / "report.json").read_text())
    found = json.loads((tmp_path / "run" / "eval_after.json").read_text())["suites"]["search"]
    assert len(found["answers"]) == 20
    assert all(answer["verdict"] in ("correct", "incorrect") for answer in found["answers"])
    assert 2 < found["turns"]["search_responses"] <= 6
    assert found["turns"]["search_responses"] < found["turns"]["search_tokens"]
    assert 0 <= told["suites"]["search"]["after"]["accuracy"] <= 1
    rows = (tmp_path / "run" / "evals.jsonl").read_text().splitlines()
    assert all("search/search_tokens" in json.loads(row) for row in rows)
