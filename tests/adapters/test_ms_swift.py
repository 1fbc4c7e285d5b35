"""The adapter for ms-swift, called by its own reward and advantage code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients.trainers.common.faults import FaultError
from assay.kit.errors import ConfigError

pytest.importorskip("swift", reason="see `make test-adapters`")

from swift.rewards import orms
from swift.rl_core.advantage import compute_advantages
from swift.rl_core.data import GRPOSample
from swift.rl_core.grpo_algorithm import compute_rewards_per_func

import assay.clients.trainers.ms_swift  # noqa: F401  # as `--external_plugins` imports it

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

GDPO = SimpleNamespace(scale_rewards="gdpo", dynamic_sample=False)


def rewards_of(solutions: list[str], args: Any = None) -> torch.Tensor:
    """What ms-swift's trainer gets, for a right and a wrong answer."""
    samples = [
        GRPOSample(
            messages=[
                {"role": "user", "content": "2+2?"},
                {"role": "assistant", "content": response},
            ],
            response_token_ids=[[1, 2, 3]],
            extra={"solution": solution},
        )
        for response, solution in zip((RIGHT, WRONG, RIGHT), solutions, strict=True)
    ]
    functions = [orms["assay"](args=args)]
    return compute_rewards_per_func(samples, functions, [None], torch.device("cpu"))


def test_ms_swift_takes_the_rewards(environment: pytest.MonkeyPatch) -> None:
    assert rewards_of(["4", "4", "4"]).flatten().tolist() == [1.0, 0.0, 1.0]


def test_a_fault_ends_the_training(troubled: Trouble) -> None:
    with pytest.raises(FaultError, match=troubled.reason):
        rewards_of([troubled.reference] * 3)


def test_masking_is_refused_where_none_would_be_a_zero(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_ON_FAULT", "mask")
    for args in (
        None,
        SimpleNamespace(scale_rewards="group", dynamic_sample=False),
        SimpleNamespace(scale_rewards="gdpo", dynamic_sample=True),
    ):
        with pytest.raises(ConfigError, match="counts a sample without a reward as 0"):
            orms["assay"](args=args)
    # Why: this is ms-swift's own arithmetic, with a fault in the place of the third 1.
    rewards = torch.tensor([[1.0], [0.0], [torch.nan]])
    told, _ = compute_advantages(rewards, torch.ones(1), 3, scale_rewards="none")
    as_zero, _ = compute_advantages(rewards.nan_to_num(), torch.ones(1), 3, scale_rewards="none")
    assert torch.equal(told, as_zero)


def test_a_masked_fault_moves_nobody_under_gdpo(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_ON_FAULT", "mask")
    rewards = rewards_of(["4", "4", " "], GDPO)
    assert rewards[:, 0].isnan().tolist() == [False, False, True]
    told, _ = compute_advantages(rewards, torch.ones(1), 3, scale_rewards="gdpo")
    assert told[2] == 0
    assert told[0] == -told[1] > 0


def test_columns_are_named_in_the_environment(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_REFERENCE_COLUMN", "gold")
    with pytest.raises(ConfigError, match="no column 'gold'"):
        rewards_of(["4", "4", "4"])
