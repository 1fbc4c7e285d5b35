"""Value pre-training within a run: fresh rollouts of the frozen policy, records, checkpoints.

The loop is critic.pretraining's; here are the rollouts, the files and the signals. The resulting
critic lies in critic-pretrained/, for this run and, by `method.critic.init`, for others with the
same policy.
"""

from __future__ import annotations

from dataclasses import asdict

import torch

from assay.kit.runs import checkpoints
from assay.kit.runs.records import JsonLines, truncate_after
from assay.trainer.algos.gae import decoupled_gae
from assay.trainer.core import batch as batches
from assay.trainer.core.rewards import FaultWatch
from assay.trainer.core.trainer import CRITIC, PolicyTrainer
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.pretraining import (
    Experience,
    Position,
    PretrainingStep,
    Updates,
    check_floor,
    pretrain,
)
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.recipes.hooks import RunSession
from assay.trainer.records.folder import RunFolder
from assay.trainer.rollouts.types import Source

STATE = "pretraining.pt"
_HEADER = f"{'step':>9}{'value loss':>12}{'explained':>11}{'return':>9}{'±':>7}{'gradient':>10}"


class _InterruptedError(Exception):
    """The user stopped; everything is saved."""


def pretrain_critic(session: RunSession, trainer: PolicyTrainer, source: Source) -> bool:
    """Pre-trains the critic, or continues to, where the method asks for it; false when interrupted.

    `source` draws with the current policy, without dynamic sampling.

    Raises:
        ConfigError: rollouts are to be truncated, and the critic explains less than the floor.
        TrainingStoppedError: too much went unjudged, or the critic's gradient is no number.
    """
    config, folder, display = session.config, session.folder, session.display
    critic, settings = trainer.critic, config.method.critic
    if not isinstance(critic, Critic) or not settings.pretrain_steps:
        return True
    position = _resumed(critic, source, folder)
    if session.world.main:
        truncate_after(folder.pretraining, position.step if position else 0)
    steps = _Steps(session, trainer, critic, source)
    display.begin("value pre-training", settings.pretrain_steps, position.step if position else 0)
    try:
        reached = pretrain(
            critic,
            steps.collect,
            settings,
            Updates(
                mini_batches=config.optim.mini_batches,
                packing=trainer.packing,
                epochs=config.optim.epochs,
                seed=config.run.seed,
            ),
            trainer.accelerator,
            gamma=config.method.advantage.gamma,
            position=position,
            on_step=steps.done,
        )
    except _InterruptedError:
        display.note(
            f"interrupted in value pre-training; continue with `assay train --resume {folder.path}`"
        )
        return False
    finally:
        steps.close()
        display.end()
    critic.save_pretrained(folder.pretrained_critic)
    why = "stands still" if reached.finished(settings) == "plateau" else "has had all its steps"
    display.note(
        f"the critic {why} after {reached.step} steps: explained variance {reached.explained:.3f}; "
        f"{folder.pretrained_critic}"
    )
    if config.method.truncation.window:  # no later step has whole responses of all lengths
        warning = check_floor(reached.explained, settings)
        if warning:
            display.note(f"warning: {warning}")
    return True


def _resumed(critic: Critic, source: Source, folder: RunFolder) -> Position | None:
    checkpoint = checkpoints.latest(folder.pretraining_checkpoints)
    if checkpoint is None:
        return None
    critic.load(checkpoint / CRITIC)
    state = torch.load(checkpoint / STATE, weights_only=True)
    source.load_state_dict(state["source"])
    return Position.from_state(state["position"])


class _Steps:
    """Rollouts in, records out."""

    def __init__(
        self, session: RunSession, trainer: PolicyTrainer, critic: Critic, source: Source
    ) -> None:
        self._session = session
        self._trainer = trainer
        self._critic = critic
        self._source = source
        config = self._config = session.config
        self._watch = FaultWatch(
            max_ratio=config.reward.max_fault_ratio, window=config.reward.fault_window
        )
        self._rows = JsonLines(session.folder.pretraining) if session.world.main else None

    def collect(self, _step: int) -> Experience:
        collected = self._source.collect(0)
        stopped = self._watch.add(collected.results)
        if stopped:
            raise TrainingStoppedError(f"stopped in value pre-training: {stopped}")
        batch = self._trainer.padded(collected)
        return Experience(
            batch,
            batches.token_rewards(
                batch, self._config.method.loss, self._trainer.hooks, with_kl=False
            ),
            batches.value_mask(batch),
            batches.estimate_by(self._trainer.hooks, batch) or decoupled_gae,
        )

    def done(self, row: PretrainingStep, position: Position) -> None:
        """Records a step; saves where it is due. Raises _InterruptedError: a signal came."""
        numbers = {
            name: value if value == value else None  # noqa: PLR0124  # NaN: not measured
            for name, value in asdict(row).items()
        }
        if self._rows is not None:
            self._rows.write(numbers)
        total = self._config.method.critic.pretrain_steps
        self._session.display.row(
            _HEADER,
            f"{f'{row.step}/{total}':>9}{row.value_loss:>12.4f}{row.explained_variance:>11.3f}"
            f"{row.returns_mean:>9.3f}{row.returns_std:>7.2f}{row.grad_norm:>10.3f}",
        )
        self._session.display.advance(row.step)
        every = self._config.run.checkpoint_every
        stop = self._session.world.any(self._session.stop.requested)
        finished = position.finished(self._config.method.critic)
        if stop or finished or (every and row.step % every == 0):
            self._save(position)
        if stop and not finished:
            raise _InterruptedError

    def _save(self, position: Position) -> None:
        folder = self._session.folder.pretraining_checkpoints
        with self._trainer.staged(folder, position.step) as staging:
            target = staging / checkpoints.name_of(position.step)
            self._critic.save(target / CRITIC)
            if self._session.world.main:
                state = {"source": self._source.state_dict(), "position": position.state_dict()}
                torch.save(state, target / STATE)
        if self._session.world.main:
            checkpoints.prune(folder, 1)

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
