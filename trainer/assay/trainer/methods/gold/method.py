"""Judges a step's responses by the gold verifier as well, and measures the gap.

Its judgements are counted and nothing else: no loss, selection or journal of the training reads
them, and a fault of gold leaves a response out of the gap, not out of the training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from assay.clients import Result
from assay.kit.errors import ConfigError
from assay.trainer.core.evaluation import judged_by
from assay.trainer.core.rewards import Judge
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.recipes.hooks import RunHooks, RunSession
from assay.trainer.rollouts.dynamic import CORRECT
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import Collected, Ranks, Rows
from assay.trainer.settings.config import Config

PHASE = "gold"
"""Label of what it judges: the run's own phases are train, eval and survey."""


class GoldWatch(RunHooks):
    """A second opinion of the step's responses, which trains nothing."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._judge: Judge | None = None
        self._ranks: Ranks | None = None
        self._trainer: PolicyTrainer | None = None

    def prepare(
        self, session: RunSession, trainer: PolicyTrainer, stream: PromptStream, *, resumed: bool
    ) -> bool:
        """See RunHooks.

        Raises:
            ConfigError: the service has no such verifier, or it compares samples of a prompt.
        """
        del stream, resumed
        gold = self.config.method.gold
        reward = replace(
            self.config.reward, verifier=gold.verifier, parameters=dict(gold.parameters)
        )
        self._judge = session.judge.beside(reward, of="method.gold.verifier")
        if self._judge.judges_groups:
            raise ConfigError(
                f'method.gold.verifier = "{gold.verifier}" compares the samples of a prompt; name '
                "one that judges a response by itself"
            )
        self._ranks, self._trainer = AccelerateRanks(trainer.accelerator), trainer
        return True

    def measured(self, collected: Collected) -> Mapping[str, float]:
        """See Hooks; waits for the judgements."""
        if self._judge is None or self._ranks is None or self._trainer is None:
            return {}
        done = self._trainer.state.global_step // self.config.updates_per_rollout
        if done % self.config.method.gold.every:
            return {}
        held = [one for one in collected.held if one.result.judgement is not None]
        told = judged_by(held, self._judge.open_round(1, PHASE)) if held else []
        rows = gap_rows([one.result for one in held], [one.result for one in told])
        return gap_numbers(self._ranks.gather(rows))


def gap_rows(proxy: Sequence[Result], gold: Sequence[Result]) -> Rows:
    """(N, 4): reward and right or not by the proxy, then by gold; NaN where there is no judgement.

    The proxy judged all of them.
    """
    return np.array(
        [[*_said(first), *_said(second)] for first, second in zip(proxy, gold, strict=True)],
        np.float64,
    ).reshape(-1, 4)


def _said(result: Result) -> tuple[float, float]:
    judgement = result.judgement
    if judgement is None:
        return float("nan"), float("nan")
    return judgement.reward, float(judgement.verdict == CORRECT)


def gap_numbers(rows_N4: Rows) -> dict[str, float]:
    """The metrics of `gap_rows`: means over rows that both judged; none without a row."""
    if not len(rows_N4):
        return {}
    both = rows_N4[~np.isnan(rows_N4[:, 2])]
    numbers = {"gold_missing": 1 - len(both) / len(rows_N4)}
    if not len(both):
        return numbers
    proxy, gold = float(both[:, 0].mean()), float(both[:, 2].mean())
    numbers |= {"gold_proxy": proxy, "gold_reward": gold, "gold_gap": proxy - gold}
    accepted = both[both[:, 1] == 1]
    if len(accepted):
        numbers["gold_refused"] = float((accepted[:, 3] == 0).mean())
    return numbers
