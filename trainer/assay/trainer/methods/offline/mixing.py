"""Steps of supervision and of reinforcement in one run: SASR (arXiv 2505.13026).

After `warmup` supervised steps, a step is supervised with the chance

    p = g (1 + brake k) / (g (1 + brake k) + gamma g_w)

g is the gradient's norm in the latest supervised step, g_w its mean over the warm-up, k the latest
divergence from the initial policy.

Differences:

1. Of the paper the abstract was at hand, which names norms and divergence; the form is ours.
   [derivation]
2. A supervised step is a policy gradient with the advantage 1 and a ratio of 1, which is the
   gradient of the likelihood; its reported loss is therefore no likelihood.
3. Its demonstrations are in no reward, accuracy or length of the step: those are the policy's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Protocol

from assay.trainer.algos.selection import supervision_chance
from assay.trainer.methods.offline.source import StoredSource
from assay.trainer.rollouts.types import Collected, Source, Then, nothing_more
from assay.trainer.selection.orders import dice
from assay.trainer.settings.config import Config


class Training(Protocol):
    """What is read of the trainer: transformers' state, with what it has logged."""

    state: Any


@dataclass(slots=True)
class Mixed:
    """What the next choice depends on.

    Attributes:
        steps: made or under way.
        supervised: whether the latest is.
        seen: optimizer step of the latest log that was read.
        warm: norms of the warm-up.
        norm: of the latest supervised step; NaN before the first.
        kl: the latest divergence, on the policy's own responses; 0 where none is measured.
    """

    steps: int = 0
    supervised: bool = False
    seen: int = 0
    warm: tuple[float, ...] = ()
    norm: float = float("nan")
    kl: float = 0.0


def row_by_row(config: Config) -> Config:
    """The settings by which demonstrations are read: as many, each by itself."""
    rollout = replace(config.rollout, group_size=1, prompts_per_step=config.samples_per_step)
    return replace(config, rollout=rollout)


class MixedSource:
    """The policy's own responses in some steps, demonstrations in the others."""

    def __init__(
        self, drawn: Source, stored: StoredSource, config: Config, trainer: Training
    ) -> None:
        self._drawn, self._stored, self._trainer = drawn, stored, trainer
        self._offline, self._seed = config.method.offline, config.run.seed
        self._mixed = Mixed()

    @property
    def supervised(self) -> bool:
        """Whether the latest step is."""
        return self._mixed.supervised

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """See Source."""
        self._read_log()
        chance = self._chance()
        roll = dice(self._seed, self._mixed.steps).random()
        supervised = bool(roll < chance)

        def noted(collected: Collected) -> None:
            collected.metrics |= {"sft_step": float(supervised), "sft_chance": chance}
            if not math.isnan(self._mixed.norm):
                collected.metrics["sft_grad_norm"] = self._mixed.norm
            if supervised:
                collected.judged = ()
            then(collected)

        collected = (self._stored if supervised else self._drawn).collect(policy_step, noted)
        self._mixed.supervised = supervised
        self._mixed.steps += 1
        return collected

    def _chance(self) -> float:
        mixed, offline = self._mixed, self._offline
        if mixed.steps < offline.mix_warmup:
            return 1.0
        warm = fmean(mixed.warm) if mixed.warm else mixed.norm
        return supervision_chance(
            mixed.norm, warm, gamma=offline.mix_gamma, kl=mixed.kl, brake=offline.mix_brake
        )

    def _read_log(self) -> None:
        """Learns the norm and the divergence of the step before, once."""
        state, mixed = self._trainer.state, self._mixed
        told = next((row for row in reversed(state.log_history) if "grad_norm" in row), None)
        if told is None or told["step"] != state.global_step or told["step"] == mixed.seen:
            return
        mixed.seen = told["step"]
        if not mixed.supervised:
            mixed.kl = float(told.get("kl", 0.0))
            return
        mixed.norm = float(told["grad_norm"])
        if len(mixed.warm) < self._offline.mix_warmup:
            mixed.warm = (*mixed.warm, mixed.norm)

    def close(self) -> None:
        """Ends what is drawn beside the training."""
        getattr(self._drawn, "close", lambda: None)()

    def state_dict(self) -> dict[str, Any]:
        """See Source."""
        self._read_log()
        names = Mixed.__dataclass_fields__
        mixed = {name: getattr(self._mixed, name) for name in names}
        return {
            "drawn": self._drawn.state_dict(),
            "stored": self._stored.state_dict(),
            "mixed": {**mixed, "warm": list(self._mixed.warm)},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Source."""
        self._drawn.load_state_dict(state["drawn"])
        self._stored.load_state_dict(state["stored"])
        self.restore(state["mixed"])

    def restore(self, mixed: Mapping[str, Any]) -> None:
        """Continues with what the next choice depends on, by the names of `Mixed`."""
        self._mixed = Mixed(**{**mixed, "warm": tuple(mixed["warm"])})
