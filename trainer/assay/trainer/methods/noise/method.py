"""The hooks that correct rewards for a verifier's errors (arXiv 2510.00915).

A judged reward of 0 or 1 is corrected by the rates of its response's suspicion, of its task, or of
all. Where it was appealed, the first opinion is, and what the second changes counts by one over the
chance of being asked. A fault has no reward to correct. Dynamic sampling, filters and accuracy go
by the verdict, as without the correction.

Rates by appeals are of the steps before, over all processes, so that no reward corrects itself.
They are in the checkpoint with the appeals that they are made of: a run that is taken up again goes
on with them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from assay.clients import Judgement
from assay.kit.errors import ConfigError
from assay.kit.reliability import ErrorRate, Reliability
from assay.trainer.algos.noise import (
    appealed_reward,
    backward_reward,
    forward_weight,
    weighted_rate,
)
from assay.trainer.core.batch import Scored
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.noise.settings import NoiseConfig, RatePair, says_nothing
from assay.trainer.recipes.hooks import RunHooks, RunSession
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import Collected, Ranks, Rollout
from assay.trainer.settings.config import Config


class Noise(RunHooks):
    """Corrects rewards for the verifier's errors (arXiv 2510.00915).

    Attributes:
        rates: those that it corrects by.
    """

    changes_rewards = True

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.rates = Rates(config.method.noise)
        self._ranks: Ranks | None = None

    def prepare(
        self, session: RunSession, trainer: PolicyTrainer, stream: PromptStream, *, resumed: bool
    ) -> bool:
        """See RunHooks: asks which rates were measured.

        Raises:
            ConfigError: a task's were not, or they cannot be corrected.
        """
        del stream, resumed
        self._ranks = AccelerateRanks(trainer.accelerator)
        if self.rates.source == "verifier":
            tasks = {problem.task for problem in session.problems.train}
            self.rates.by_task = rates_by_task(
                [] if session.judge.verifier is None else session.judge.verifier.reliability,
                tasks,
                session.config.reward.verifier,
                forward=self.rates.forward,
            )
        return True

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """See Hooks.

        Raises:
            TrainingStoppedError: a reward is neither 0 nor 1, or appeals say that the verifier
                cannot be corrected.
        """
        return [[self._corrected(item) for item in group] for group in groups]

    def _corrected(self, item: Scored) -> Scored:
        found = judged_of(item.rollout) if isinstance(item.rollout, Rollout) else None
        if item.reward is None or found is None:
            return item
        return replace(item, reward=self.rates.corrected(*found))

    def measured(self, collected: Collected) -> Mapping[str, float]:
        """See Hooks; learns of the step's appeals, those of groups that do not train included."""
        judged = [found for one in collected.held if (found := judged_of(one)) is not None]
        own = np.array([self.rates.row(*one) for one in judged], np.float64).reshape(-1, 6)
        rows = own if self._ranks is None else self._ranks.gather(own)
        numbers: dict[str, float] = {}
        if len(rows):
            numbers["noise_corrected"] = float(rows[:, 3].mean())
        known = rows[rows[:, 4] >= 0]
        if len(known):
            numbers["noise_false_positive"] = float(known[:, 4].mean())
            numbers["noise_false_negative"] = float(known[:, 5].mean())
        if self.rates.appeals:
            self.rates.learn(rows[:, :3])
            numbers |= self.rates.numbers()
        return numbers

    def state_dict(self) -> dict[str, Any]:
        """See Hooks: what appeals have said."""
        return self.rates.state_dict() if self.rates.appeals else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Hooks."""
        self.rates.load_state_dict(state)


class Rates:
    """The rates by which a response's reward is corrected.

    Attributes:
        by_task: both rates by task; "" is of all.
    """

    def __init__(self, config: NoiseConfig) -> None:
        self._config = config
        self.source, self.appeals = config.rates, config.appeals
        self.forward = config.correction == "forward"
        self.by_task: Mapping[str, RatePair] = {}
        if config.rates == "given":
            self.by_task = {"": (config.false_positive, config.false_negative), **config.by_task}
        self._appealed: deque[tuple[float, float, float]] = deque(maxlen=config.window)

    def of(self, judgement: Judgement, task: str) -> RatePair | None:
        """Those of a response; None where they are not known yet, or nothing is corrected."""
        if self._config.correction == "none":
            return None
        for suspicion in judgement.suspicions:
            if suspicion in self._config.by_suspicion:
                return self._config.by_suspicion[suspicion]
        return self.by_task.get(task, self.by_task.get(""))

    def corrected(self, judgement: Judgement, task: str) -> float:
        """The reward that trains.

        Raises:
            TrainingStoppedError: a reward is neither 0 nor 1.
        """
        appeal = judgement.appeal if self.appeals else None
        second = None if appeal is None else appeal.second
        said = judgement.reward if appeal is None or second is None else appeal.first.reward
        for reward in (said, judgement.reward if second is None else second.reward):
            if reward not in (0.0, 1.0):
                raise TrainingStoppedError(
                    f"method.noise corrects rewards of 0 and 1, and {judgement.verifier!r} gave "
                    f"{reward:g}; take a verifier or profile that says right or wrong, or switch "
                    "method.noise off"
                )
        reward, rates = said, self.of(judgement, task)
        if rates is not None and not self.forward:
            reward = backward_reward(said, *rates)
        if appeal is not None and second is not None:
            try:
                reward = appealed_reward(reward, second.reward, appeal.probability)
            except ValueError as error:
                raise TrainingStoppedError(
                    f"{judgement.verifier!r}: {error}; report it to whoever runs the server"
                ) from error
        return forward_weight(reward, rates[1]) if self.forward and rates is not None else reward

    def row(self, judgement: Judgement, task: str) -> tuple[float, ...]:
        """What `seen_of` says; whether the reward is another; both rates, -1 for unknown."""
        changed = self.corrected(judgement, task) != judgement.reward
        return (*seen_of(judgement), changed, *(self.of(judgement, task) or (-1.0, -1.0)))

    def learn(self, rows: np.ndarray[Any, Any]) -> None:
        """Takes in what `seen_of` says of judgements, and estimates the rates anew.

        Raises:
            TrainingStoppedError: the verifier cannot be corrected by its rates.
        """
        self._appealed.extend(map(tuple, rows.tolist()))
        if self.source != "appeals" or self.count < self._config.least:
            return
        positive, negative = self.estimates()
        if negative is None or (positive is None and not self.forward):
            raise TrainingStoppedError(
                f"{self.count} appeals say nothing of the verifier's rates: false positives are "
                "known where accepted responses are drawn for an appeal too, false negatives where "
                "the second opinion finds right ones; have the profile's appeal draw a share of all"
            )
        low = (0.0 if positive is None else positive.low, negative.low)
        if wrong := says_nothing(low, "by the run's appeals, at the least"):
            raise TrainingStoppedError(wrong)
        rates = (0.0 if positive is None else positive.value, negative.value)
        self.by_task = {"": rates} if sum(rates) < 1 else {}

    def state_dict(self) -> dict[str, Any]:
        """The judgements within the window, (N, 3) of float64, and the rates by them."""
        appealed = torch.tensor(list(self._appealed), dtype=torch.float64).reshape(-1, 3)
        found = self.by_task if self.source == "appeals" else {}
        return {"appealed": appealed, "by_task": dict(found)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict`; of a longer window the latest judgements are kept."""
        self._appealed.clear()
        self._appealed.extend(map(tuple, state["appealed"].tolist()))
        if self.source == "appeals":
            self.by_task = dict(state["by_task"])

    @property
    def count(self) -> int:
        """Appeals within the window."""
        return sum(second >= 0 for _, second, _ in self._appealed)

    def estimates(self) -> tuple[ErrorRate | None, ErrorRate | None]:
        """Rates of false positives and false negatives by appeals; None where nothing tells.

        Where no accepted response was appealed, all of them count as right, and false positives are
        unknown.
        """
        asked = [one for one in self._appealed if one[1] >= 0]
        checked = any(first for first, _, _ in asked)
        right = [(not first, weight) for first, second, weight in asked if second]
        wrong = [(bool(first), weight) for first, second, weight in asked if not second]
        if not checked:
            right += [(False, 1.0) for first, second, _ in self._appealed if first and second < 0]
        return _rate(wrong) if checked else None, _rate(right)

    def numbers(self) -> dict[str, float]:
        """The estimates as metrics."""
        found = {"noise_appeals": float(self.count)}
        for name, rate in zip(("fp", "fn"), self.estimates(), strict=True):
            if rate is not None:
                ends = {"": rate.value, "_low": rate.low, "_high": rate.high}
                found |= {f"noise_appealed_{name}{end}": value for end, value in ends.items()}
        return found


def _rate(seen: Sequence[tuple[bool, float]]) -> ErrorRate | None:
    return weighted_rate([wrong for wrong, _ in seen], [weight for _, weight in seen])


def seen_of(judgement: Judgement) -> tuple[float, float, float]:
    """The first reward, 0 or 1, the second, -1 without an appeal, and one over its chance."""
    appeal = judgement.appeal
    if appeal is None or appeal.second is None:
        return judgement.reward, -1.0, 0.0
    return appeal.first.reward, appeal.second.reward, 1 / appeal.probability


def judged_of(rollout: Rollout) -> tuple[Judgement, str] | None:
    """The judgement and the row's task; None for a fault."""
    judgement = rollout.result.judgement
    return None if judgement is None else (judgement, rollout.request.draw.problem.task)


def rates_by_task(
    reliability: Sequence[Reliability], tasks: set[str], verifier: str, *, forward: bool
) -> dict[str, RatePair]:
    """Both rates by task, as they were measured; that of "all" under "".

    `forward` needs false negatives alone.

    Raises:
        ConfigError: those of a task are not known, or cannot be corrected.
    """
    by_domain = {one.domain: one for one in reliability}
    found: dict[str, RatePair] = {}
    for task in sorted(tasks):
        one = by_domain.get(task) or by_domain.get("all")
        negative = None if one is None else one.false_negative
        positive = None if one is None else one.false_positive
        if negative is None or (positive is None and not forward):
            raise ConfigError(
                f'method.noise.rates = "verifier": {verifier} has no measured rates'
                f"{f' for the task {task}' if task else ''}, nor for all; measure them with assay "
                "audit, or give method.noise.false_positive and method.noise.false_negative"
            )
        pair = (0.0 if positive is None else positive.value, negative.value)
        if wrong := says_nothing(pair, f"{verifier}, {task or 'all'}"):
            raise ConfigError(wrong)
        found[task] = pair
    return found
