"""Tinker's cookbook: its rollouts of a group, and its own advantages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from assay.lab.steps import Groups, coefficients
from assay.lab.trainers.source import taken
from assay.lab.trainers.tiny import tiny_tokenizer


@dataclass
class Tinker:
    """Groups through `do_group_rollout` and `compute_advantages`.

    Attributes:
        tolerant: with `MinViableGroup`, and not `FailFast`.
    """

    title: str = "Tinker's cookbook, FailFast"
    default: bool = True
    tolerant: bool = False
    compared = "advantages"
    read = ""

    def version(self) -> str:
        """See Contestant."""
        import tinker_cookbook.rl.rollouts  # noqa: F401

        return f"tinker-cookbook {version('tinker-cookbook')}"

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; a trajectory is known by its tokens."""
        import torch
        from tinker_cookbook.rl import rollout_strategy
        from tinker_cookbook.rl.rollouts import do_group_rollout

        del target
        compute = taken(
            "tinker_cookbook", "rl/data_processing.py", "compute_advantages", torch=torch
        )
        strategy: Any = rollout_strategy.FailFast()
        if self.tolerant:
            strategy = rollout_strategy.MinViableGroup(min_successful=1, max_retries=0)

        async def rolled_out() -> list[Any]:
            made = [self._made(group) for group in groups]
            calls = [do_group_rollout(*one, strategy=strategy) for one in made]
            return await asyncio.gather(*calls, return_exceptions=True)

        done = asyncio.run(rolled_out())
        stopped = next((one for one in done if isinstance(one, BaseException)), None)
        if stopped is not None and not self.tolerant:
            raise stopped
        found = [one for one in done if not isinstance(one, BaseException)]
        by_tokens = {tuple(tokens_said(row.response)): row for group in groups for row in group}
        advantages, tokens = {}, {}
        for group, told in zip(found, compute(found), strict=True):
            for trajectory, value in zip(group.trajectories_G, told.tolist(), strict=True):
                said = trajectory.transitions[0].ac.tokens
                row = by_tokens[tuple(said)]
                advantages[row.name], tokens[row.name] = value, len(said)
        return coefficients(advantages, tokens)

    def _made(self, group: Any) -> tuple[Any, Any]:
        from tinker_cookbook import renderers
        from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
        from tinker_cookbook.rl.problem_env import ProblemGroupBuilder

        from assay.clients.trainers.tinker import AssayEnv

        left = [tokens_said(row.response) for row in group]

        class SaidPolicy(TokenCompleter):
            """Says what it is told to, one text after the other."""

            async def __call__(self, model_input: Any, stop: Any, **_: Any) -> Any:
                said = left.pop(0)
                return TokensWithLogprobs(said, [0.0] * len(said))

        renderer = renderers.get_renderer("role_colon", tiny_tokenizer())
        env = partial(AssayEnv, renderer, group[0].prompt, {"answer": group[0].group})
        return ProblemGroupBuilder(env, len(group)), SaidPolicy()


def tokens_said(response: str) -> list[int]:
    """A response as the policy ends it in the cookbook's plain format."""
    ids: list[int] = tiny_tokenizer().encode(f" {response}\n\nUser:", add_special_tokens=False)
    return ids


TINKER = Tinker()
TINKER_TOLERANT = Tinker("Tinker's cookbook, MinViableGroup", False, True)
