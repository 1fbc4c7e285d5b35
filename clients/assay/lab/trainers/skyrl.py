"""SkyRL: an environment of ours by its gym's interface, and its own GRPO advantages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from assay.environments import Environment
from assay.lab.steps import Groups, coefficients, tokens_of
from assay.lab.trainers.source import taken, version_of


class OneTurn(Environment):
    """Asks, and has the answer judged by the services."""

    name = "lab-one-turn"

    def reset(self, row: Any) -> str:
        """The row's question."""
        return str(row["question"])


@dataclass
class SkyRl:
    """Rows through `skyrl_gym`; what an environment raises ends the run."""

    title: str = "SkyRL, raise"
    default: bool = True
    compared = "advantages"
    read = "that SkyRL's generators catch nothing"

    def version(self) -> str:
        """See Contestant."""
        import skyrl_gym  # noqa: F401

        return version_of("skyrl", "skyrl")

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant."""
        import numpy as np
        import skyrl_gym
        import torch

        from assay.environments.faces.skyrl import register_environment

        name = f"assay-lab-{target}"
        where = f"{__name__}:{OneTurn.__name__}"
        register_environment(name, where, target=target, verifier="exact", timeout_s=3.0)
        rows = [row for group in groups for row in group]
        rewards = torch.zeros(len(rows), 2)
        for place, row in enumerate(rows):
            extras = {"question": row.prompt, "reference": row.name, "max_turns": 1}
            env = skyrl_gym.make(name, extras=extras)
            env.init([{"role": "user", "content": row.prompt}])
            rewards[place, -1] = env.step(row.response)["reward"]
            env.close()
        compute = taken(
            "skyrl", "backends/skyrl_train/utils/ppo_utils.py", "compute_grpo_outcome_advantage",
            torch=torch, np=np, defaultdict=defaultdict, AdvantageEstimator=_Names(),
            register_advantage_estimator=lambda _name: lambda function: function,
        )  # fmt: skip
        groups_of = np.array([row.group for row in rows])
        told, _ = compute(rewards, torch.ones(len(rows), 2), groups_of)
        advantages = dict(zip([row.name for row in rows], told[:, 0].tolist(), strict=True))
        return coefficients(advantages, tokens_of(rows))


class _Names:
    """Of estimators, which are registered under them."""

    def __getattr__(self, name: str) -> str:
        return name


SKYRL = SkyRl()
