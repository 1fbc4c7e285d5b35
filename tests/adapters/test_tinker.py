"""The environment in tinker-cookbook's own rollouts, with a scripted policy and a real server."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from adapters.conftest import RIGHT, WRONG, Trouble
from tokenizers_support import byte_level

pytest.importorskip("tinker_cookbook", reason="see `make test-adapters`")

from tinker_cookbook import renderers
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.problem_env import ProblemGroupBuilder
from tinker_cookbook.rl.rollout_strategy import MinViableGroup, RetryOnFailure
from tinker_cookbook.rl.rollouts import do_group_rollout

from assay.clients import EmbeddedServices
from assay.clients.trainers.common.faults import FaultError
from assay.clients.trainers.tinker import AssayEnv, AssayGroupBuilder
from assay.kit.errors import ConfigError

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

TOKENIZER = byte_level()
RENDERER = renderers.get_renderer("role_colon", TOKENIZER)
ROW = {"answer": "4", "task": "math"}


class Scripted(TokenCompleter):
    """A policy that says what it is told to, one text after the other."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    async def __call__(self, model_input: Any, stop: Any, **_: Any) -> TokensWithLogprobs:
        text = f" {self.texts.pop(0)}\n\nUser:"
        tokens = TOKENIZER.encode(text, add_special_tokens=False)
        return TokensWithLogprobs(tokens, [0.0] * len(tokens))


class Flaky(AssayEnv):
    """Asks for a verifier that is not there when its row says so; a row is used up in turn."""

    rows: list[dict[str, Any]]

    def __init__(self, rows: list[dict[str, Any]], **options: Any) -> None:
        super().__init__(RENDERER, "2 + 2?", rows.pop(0) if rows else ROW, **options)


def group(size: int, address: str, rows: list[dict[str, Any]] | None = None) -> ProblemGroupBuilder:
    return ProblemGroupBuilder(partial(Flaky, rows or [], target=address), size)


async def test_a_group_has_the_servers_rewards(server: EmbeddedServices) -> None:
    trajectories = await do_group_rollout(group(3, server.address), Scripted(RIGHT, WRONG, RIGHT))
    assert trajectories.get_total_rewards() == [1.0, 0.0, 1.0]
    logs = trajectories.trajectories_G[1].transitions[0].logs
    assert logs["verdict"] == "incorrect"


async def test_by_default_a_fault_ends_the_rollout(trouble: Trouble) -> None:
    row = {"answer": trouble.reference, "task": "math"}
    env = partial(AssayEnv, RENDERER, "2 + 2?", row, target=trouble.target, timeout_s=1.5)
    with pytest.raises(FaultError, match=trouble.reason):
        await do_group_rollout(ProblemGroupBuilder(env, 1), Scripted(RIGHT))


FAULTY = {"answer": "4", "verifier": "no-such-verifier"}


async def test_with_retries_another_sample_is_drawn(server: EmbeddedServices) -> None:
    builder = group(2, server.address, [ROW, FAULTY])
    policy = Scripted(RIGHT, RIGHT, WRONG)
    trajectories = await do_group_rollout(builder, policy, strategy=RetryOnFailure(max_retries=1))
    assert sorted(trajectories.get_total_rewards()) == [0.0, 1.0]
    assert [error.error_type for error in trajectories.rollout_errors] == ["FaultError"]


async def test_a_smaller_group_goes_without_the_sample(server: EmbeddedServices) -> None:
    builder = group(3, server.address, [ROW, FAULTY, ROW])
    strategy = MinViableGroup(min_successful=2, max_retries=0)
    trajectories = await do_group_rollout(builder, Scripted(*[RIGHT] * 3), strategy=strategy)
    assert trajectories.get_total_rewards() == [1.0, 1.0]


async def test_a_group_is_judged_in_one_call(server: EmbeddedServices) -> None:
    env = partial(AssayEnv, RENDERER, "2 + 2?", ROW, target=server.address)
    policy = Scripted(RIGHT, WRONG, RIGHT)
    trajectories = await do_group_rollout(AssayGroupBuilder(env, 3), policy)
    assert trajectories.get_total_rewards() == [1.0, 0.0, 1.0]
    assert trajectories.final_rewards_G == [1.0, 0.0, 1.0]


async def test_a_fault_in_a_group_that_is_judged_together_is_raised(trouble: Trouble) -> None:
    row = {"answer": trouble.reference, "task": "math"}
    env = partial(AssayEnv, RENDERER, "2 + 2?", row, target=trouble.target, timeout_s=1.5)
    with pytest.raises(FaultError, match=trouble.reason):
        await do_group_rollout(AssayGroupBuilder(env, 2), Scripted(RIGHT, RIGHT))


def test_the_cookbook_cannot_drop_or_mask_for_us() -> None:
    with pytest.raises(ConfigError, match="with tinker-cookbook choose one of: raise"):
        AssayEnv(RENDERER, "2 + 2?", ROW, target="127.0.0.1:1", on_fault="mask")
