"""OpenRLHF: its executor calls the function, and its experience maker makes the advantages."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from assay.lab.steps import Groups, LabRow, coefficients
from assay.lab.trainers.source import taken
from assay.lab.trainers.tiny import tiny_tokenizer


class OneAnswer:
    """What the executor uses of vLLM: one answer, as token ids."""

    def __init__(self, ids: list[int]) -> None:
        self._ids = ids

    async def generate(self, prompt_ids: list[int], *_: Any, **__: Any) -> Any:
        """The answer."""
        answer = SimpleNamespace(token_ids=self._ids, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[answer])


@dataclass
class OpenRlhf:
    """Rows through `SingleTurnAgentExecutor`, and `compute_advantages_and_returns` of the rest.

    Attributes:
        policy: for faults.
        filtered: with `--algo.dynamic_filtering_enable`.
    """

    title: str = "OpenRLHF, raise"
    default: bool = True
    policy: str = "raise"
    filtered: bool = False
    compared = "advantages"
    read = "the filter of groups by their average, which needs vLLM"

    def version(self) -> str:
        """See Contestant."""
        import openrlhf.utils.agent  # noqa: F401

        return f"openrlhf {version('openrlhf')}"

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; the settings are those of the environment."""
        import os

        del target
        os.environ["ASSAY_ON_FAULT"] = self.policy
        rows = [row for group in groups for row in group]
        told = asyncio.run(self._rolled_out(rows))
        kept = [
            [(row, told[row.name]) for row in group]
            for group in groups
            if not self.filtered or self._passes([told[row.name] for row in group])
        ]
        advantages, tokens = {}, {}
        for _, same in itertools.groupby(sorted(kept, key=len), key=len):
            for row, value, count in self._advantages(list(same)):
                advantages[row.name], tokens[row.name] = value, count
        return coefficients(advantages, tokens)

    @staticmethod
    def _passes(told: Sequence[Any]) -> bool:
        """As `samples_generator` has it, with the range that is its default."""
        average = sum(float(one["scores"]) for one in told) / len(told)
        return 0.0 < average < 1.0

    async def _rolled_out(self, rows: Sequence[LabRow]) -> dict[str, Any]:
        from openrlhf.utils.agent import SingleTurnAgentExecutor

        import assay.clients.trainers.openrlhf as adapter

        tokenizer = tiny_tokenizer()
        executor = SingleTurnAgentExecutor(adapter.__file__)
        sampling = SimpleNamespace(max_tokens=64, logprobs=None)
        calls = [
            executor.execute(
                row.prompt, row.name, sampling, 512, tokenizer,
                OneAnswer(tokenizer.encode(row.response)),
            )
            for row in rows
        ]  # fmt: skip
        told = await asyncio.gather(*calls)
        return {row.name: one for row, one in zip(rows, told, strict=True)}

    def _advantages(self, groups: list[Any]) -> list[tuple[LabRow, float, int]]:
        import torch
        from openrlhf.trainer.ppo_utils import Experience, apply_length_penalties

        reward = taken("openrlhf", "models/utils.py", "compute_reward", torch=torch)
        maker = "trainer/ppo_utils/experience_maker.py"
        own = {"torch": torch, "itertools": itertools, "compute_reward": reward,
               "apply_length_penalties": apply_length_penalties}  # fmt: skip
        compute = taken(
            "openrlhf", maker, "RemoteExperienceMaker.compute_advantages_and_returns", **own
        )
        returns = taken("openrlhf", maker, "RemoteExperienceMaker.get_cumulative_returns", **own)
        rows = [one for group in groups for one in group]
        lengths = [len(row.response) for row, _ in rows]
        mask = torch.zeros(len(rows), max(lengths), dtype=torch.bool)
        for place, length in enumerate(lengths):
            mask[place, :length] = True
        experience = Experience(
            action_mask=mask,
            rewards=torch.cat([told["reward"] for _, told in rows]),
            kl=torch.zeros(mask.shape),
            response_length=torch.tensor(lengths),
        )
        experience.index = list(range(len(rows)))
        experience.info = {}
        advantage = SimpleNamespace(estimator="group_norm", gamma=1.0, no_std_norm=False)
        args = SimpleNamespace(
            rollout=SimpleNamespace(n_samples_per_prompt=len(groups[0])),
            algo=SimpleNamespace(advantage=advantage),
            reward=SimpleNamespace(
                clip_range=None, overlong_buffer_len=None, stop_properly_penalty_coef=None
            ),
        )
        maker_self = SimpleNamespace(
            strategy=SimpleNamespace(args=args),
            advantage_estimator="group_norm",
            kl_ctl=SimpleNamespace(value=0.0),
        )
        maker_self.get_cumulative_returns = lambda *given: returns(maker_self, *given)
        [done] = compute(maker_self, [experience])
        found = done.advantages[:, 0].tolist()
        if any(map(math.isnan, found)):
            found = [math.nan if math.isnan(value) else value for value in found]
        return [(row, value, n) for (row, _), value, n in zip(rows, found, lengths, strict=True)]


OPENRLHF = OpenRlhf()
OPENRLHF_DROP = OpenRlhf("OpenRLHF, drop with dynamic filtering", False, "drop", True)
OPENRLHF_DROP_PLAIN = OpenRlhf("OpenRLHF, drop without dynamic filtering", False, "drop", False)
