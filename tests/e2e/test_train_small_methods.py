"""Methods of a formula or two train in a run, and are refused where they cannot be meant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from assay.kit.errors import ConfigError

Train = Callable[..., list[dict[str, Any]]]
SMALL = {"prompts": 0}


def of(make: Callable[..., Any], *, steps: int = 2, **sections: Any) -> Any:
    """A run of a few steps without an evaluation."""
    run = {"steps": steps, "checkpoint_every": 0, **sections.pop("run", {})}
    return make(eval=SMALL, run=run, **sections)


def test_lengths_cost_by_difficulty_and_failures_earn_by_likeness(
    tiny_config: Callable[..., Any], train: Train
) -> None:
    shaping = {"budget_penalty": 0.5, "budget_least": 1, "progress": 0.5}
    shaping |= {"concise_bonus": 0.25, "concise_below": 3}
    method = {"shaping": shaping, "advantage": {"difficulty": "medium"}}
    config = of(tiny_config, method=method)
    rows = train(config)
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert any(row["grad_norm"] > 0 for row in rows)
    told = [row["shaped_reward"] for row in rows]
    assert all(abs(shaped - row["reward"]) > 1e-3 for shaped, row in zip(told, rows, strict=True))


def test_a_step_trains_on_its_tokens_and_the_rest_in_the_next(
    tiny_config: Callable[..., Any], train: Train
) -> None:
    config = of(tiny_config, steps=4, method={"token_budget": {"tokens": 64}})
    rows = train(config)
    assert all(row["tokens"] <= 64 for row in rows)
    assert all(row["budget_fill"] > 60 / 64 for row in rows)
    assert all(row["budget_waiting"] > 0 for row in rows)
    assert rows[0]["stale_groups"] == 0 < rows[1]["stale_groups"]
    assert rows[1]["responses"] < rows[0]["responses"], "what waits takes the place of new prompts"


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"shaping": {"concise_bonus": 0.5}}, "needs method.shaping.concise_below"),
        ({"shaping": {"budget_penalty": 0.5, "budget_least": 9}}, "budget_most = 4"),
        (
            {
                "advantage": {"estimator": "gae"},
                "turns": {"mode": "verify"},
                "shaping": {"progress": 0.5},
            },
            "self-reference .* needs one reward for a whole response",
        ),
        ({"token_budget": {"tokens": 3}}, "must hold one whole response"),
        (
            {"token_budget": {"tokens": 64}, "recomposition": {"groups": 8}},
            "needs groups that no other part trains in pieces",
        ),
        (
            {"token_budget": {"tokens": 64}, "asynchrony": {"mode": "bounded"}},
            "token-budget .* needs the collector",
        ),
        (
            {"advantage": {"estimator": "gae", "difficulty": "medium"}},
            'estimator = "group" or "rloo"',
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    tiny_config: Callable[..., Any], method: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        of(tiny_config, method=method)
