"""Value pre-training with a frozen policy, until it stops paying: VC-PPO and VAPO.

    repeat: answer prompts with the policy as it is; R_t = rewards to go (lambda = 1)
            fit V to R
    until value loss and explained variance both stand still

VC-PPO (arXiv 2503.01491): a critic that starts from a reward model is wrong on early tokens, in a
way that depends on their position, and the policy learns that error first. VAPO (arXiv 2504.05118)
does 50 steps of it.

Differences from the papers:
1. Standing still is a rule: neither the loss nor the explained variance has set a new best, by a
   margin, for `pretrain_patience` steps.
2. Explained variance is measured before the critic learns from a rollout; measured after,
   memorising would look best.
3. The loss is that of the step's first pass, each mini-batch before its own update.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from assay.kit.errors import ConfigError
from assay.trainer.algos import packing
from assay.trainer.algos.gae import decoupled_gae, explained_variance
from assay.trainer.algos.packing import Packing
from assay.trainer.critic.critic import Critic
from assay.trainer.settings.objective import CriticConfig

Estimate = Callable[..., tuple[Tensor, Tensor]]
"""algos.gae.decoupled_gae, or a method's replacement."""


@dataclass(frozen=True, slots=True)
class Plateau:
    """Whether two curves have stopped improving; each `seen` gives the next state.

    Attributes:
        patience: steps without a new best of either that make a plateau.
        margin: what counts as better: this part of the best loss, or this much more explained
            variance.
        best_loss: the least so far.
        best_explained: the most so far.
        waited: steps since either improved.
    """

    patience: int
    margin: float = 0.01
    best_loss: float = math.inf
    best_explained: float = -math.inf
    waited: int = 0

    def seen(self, loss: float, explained: float) -> Plateau:
        """The state after one more step.

        A step whose `explained` is NaN, because the returns did not vary, is not counted.
        """
        if math.isnan(explained):
            return self
        lower = loss < self.best_loss * (1 - self.margin)
        higher = explained > self.best_explained + self.margin
        return replace(
            self,
            best_loss=loss if lower else self.best_loss,
            best_explained=explained if higher else self.best_explained,
            waited=0 if lower or higher else self.waited + 1,
        )

    @property
    def reached(self) -> bool:
        """Whether to stop."""
        return self.waited >= self.patience


@dataclass(frozen=True, slots=True)
class PretrainingStep:
    """One step of pre-training, over all processes.

    Attributes:
        step: from 1.
        value_loss: mean over tokens.
        explained_variance: before the step's updates, on its fresh rollout; NaN where the returns
            did not vary.
        grad_norm: of the last update, before clipping.
        lr: of the last update.
        tokens: value tokens.
    """

    step: int
    value_loss: float
    explained_variance: float
    returns_mean: float
    returns_std: float
    grad_norm: float
    lr: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Position:
    """How far pre-training is: with the critic and the data's position, all that resuming needs.

    `explained` is that of the last step in which the returns varied; NaN before.
    """

    step: int
    plateau: Plateau
    explained: float = math.nan

    @classmethod
    def start(cls, config: CriticConfig) -> Position:
        """Before the first step."""
        return cls(0, Plateau(config.pretrain_patience))

    def state_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Position:
        """Reads `state_dict`."""
        return cls(state["step"], Plateau(**state["plateau"]), state["explained"])

    def finished(self, config: CriticConfig) -> Literal["", "plateau", "steps"]:
        """Why pre-training ends; empty where it goes on."""
        if self.step >= config.pretrain_steps:
            return "steps"
        return "plateau" if self.plateau.reached else ""


@dataclass(frozen=True, slots=True)
class Experience:
    """One fresh rollout of the frozen policy: this process's share.

    Attributes:
        batch: prompt_ids, prompt_mask (B, P), completion_ids, completion_mask (B, T).
        rewards_BT: reward of each token; anything outside of the mask.
        mask_BT: the policy's own tokens, of judged rows.
    """

    batch: Mapping[str, Tensor]
    rewards_BT: Tensor
    mask_BT: Tensor
    estimate: Estimate = decoupled_gae


@dataclass(frozen=True, slots=True)
class Updates:
    """How one rollout is learnt from.

    Attributes:
        mini_batches: critic steps in one pass; divides a process's rows.
        packing: of one process's rows into forward and backward passes.
    """

    mini_batches: int = 1
    packing: Packing = Packing(rows=1)  # noqa: RUF009  # frozen
    epochs: int = 1
    seed: int = 0


def pretrain(
    critic: Critic,
    collect: Callable[[int], Experience],
    config: CriticConfig,
    updates: Updates,
    accelerator: Any,
    *,
    gamma: float = 1.0,
    position: Position | None = None,
    on_step: Callable[[PretrainingStep, Position], None] = lambda _row, _position: None,
) -> Position:
    """Fits the critic to the returns of a frozen policy.

    Every process calls it, and all stop at the same step. `collect` gives a fresh rollout for a
    step, from 1, with equally many rows on each process. `position` is where to go on.

    `on_step` is called after each step on every process, with what to report and what to save
    beside the critic. What it raises ends the loop in the saved state.

    Returns:
        The last position; `explained` is what `check_floor` takes.

    Raises:
        TrainingStoppedError: the critic's gradient is not finite.
    """
    position = position or Position.start(config)
    while not position.finished(config):
        step = position.step + 1
        row = _learn(
            critic, collect(step), step, updates=updates, accelerator=accelerator, gamma=gamma
        )
        varied = not math.isnan(row.explained_variance)
        position = Position(
            step,
            position.plateau.seen(row.value_loss, row.explained_variance),
            row.explained_variance if varied else position.explained,
        )
        on_step(row, position)
    return position


def _learn(
    critic: Critic,
    experience: Experience,
    step: int,
    *,
    updates: Updates,
    accelerator: Any,
    gamma: float,
) -> PretrainingStep:
    batch, mask_BT = experience.batch, experience.mask_BT.bool()
    returns_BT = monte_carlo_returns(
        experience.rewards_BT, mask_BT, gamma=gamma, estimate=experience.estimate
    )
    values_BT = critic.values(batch, updates.packing.passes(batch))
    measured = measure(values_BT, returns_BT, mask_BT, accelerator)
    everything = {
        **packing.inputs_of(batch),
        "returns": returns_BT,
        "values": values_BT,
        "value_mask": mask_BT,
    }
    loss = tokens = torch.zeros((), device=mask_BT.device)
    report = {"grad_norm": 0.0, "lr": 0.0}
    for epoch in range(updates.epochs):
        for rows_N in _mini_batches(len(mask_BT), step * updates.epochs + epoch, updates):
            rows = packing.cut(everything, rows_N.to(mask_BT.device))
            sums = _update(critic, rows, updates, accelerator)
            if epoch == 0:
                loss, tokens = loss + sums["loss"], tokens + sums["tokens"]
            moved = critic.step()
            report = moved if moved["lr"] else report
    loss, tokens = accelerator.reduce(loss), accelerator.reduce(tokens)
    return PretrainingStep(
        step=step,
        value_loss=float(loss / tokens) if tokens else math.nan,
        explained_variance=measured.explained_variance,
        returns_mean=measured.returns_mean,
        returns_std=measured.returns_std,
        grad_norm=report["grad_norm"],
        lr=report["lr"],
        tokens=int(tokens),
    )


def _mini_batches(rows: int, salt: int, updates: Updates) -> Iterator[Tensor]:
    """The rows of each mini-batch, ordered by seed and step alone."""
    generator = torch.Generator().manual_seed(updates.seed * 1_000_003 + salt)
    yield from torch.randperm(rows, generator=generator).chunk(updates.mini_batches)


def _update(
    critic: Critic, batch: Mapping[str, Tensor], updates: Updates, accelerator: Any
) -> dict[str, Tensor]:
    tokens = accelerator.reduce(batch["value_mask"].sum())
    passes = updates.packing.passes(batch)
    total: dict[str, Tensor] = {}
    for number, rows_N in enumerate(passes, start=1):
        micro = packing.cut(batch, rows_N)
        sums = critic.backward(
            micro,
            micro["returns"],
            micro["values"],
            micro["value_mask"],
            tokens=tokens,
            sync=number == len(passes),
        )
        total = {name: total.get(name, 0.0) + value for name, value in sums.items()}
    return total


def monte_carlo_returns(
    rewards_BT: Tensor, mask_BT: Tensor, *, gamma: float, estimate: Estimate = decoupled_gae
) -> Tensor:
    """R_t = sum over t' >= t of gamma^(t' - t) r_t', float32: GAE with V = 0 and lambda = 1."""
    zeros_BT = torch.zeros_like(rewards_BT, dtype=torch.float32)
    return estimate(rewards_BT, zeros_BT, mask_BT, gamma=gamma, lam_actor=1.0, lam_critic=1.0)[0]


@dataclass(frozen=True, slots=True)
class Measured:
    """How values compare with returns over all processes; NaN without tokens.

    explained_variance is also NaN where the returns do not vary.
    """

    explained_variance: float
    returns_mean: float
    returns_std: float
    values_mean: float


def measure(values_BT: Tensor, returns_BT: Tensor, mask_BT: Tensor, accelerator: Any) -> Measured:
    """Explained variance and moments over the value tokens of all processes.

    T may differ between processes, B may not.
    """
    stacked = torch.stack([values_BT.float(), returns_BT.float(), mask_BT.float()], dim=2)
    everyone = accelerator.gather(accelerator.pad_across_processes(stacked, dim=1))
    values_BT, returns_BT, counted_BT = everyone.unbind(dim=2)
    keep_BT = counted_BT.bool()
    kept_N = returns_BT[keep_BT].double()
    return Measured(
        explained_variance=float(explained_variance(values_BT, returns_BT, keep_BT)),
        returns_mean=float(kept_N.mean()),
        returns_std=float((kept_N - kept_N.mean()).square().mean().sqrt()),
        values_mean=float(values_BT[keep_BT].double().mean()),
    )


def check_floor(explained: float, config: CriticConfig) -> str:
    """Whether the critic knows enough for the policy to learn from it.

    `explained` is explained variance on rollouts before the critic learnt from them, NaN where the
    returns did not vary.

    Returns:
        A warning; empty where the critic is good enough.

    Raises:
        ConfigError: it is below the floor, and below_minimum is "refuse".
    """
    if explained >= config.min_explained_variance or config.below_minimum == "ignore":
        return ""
    found = (
        "cannot be measured, because all returns are equal"
        if math.isnan(explained)
        else f"is {explained:.3f}"
    )
    text = (
        f"the critic's explained variance {found}, below "
        f"method.critic.min_explained_variance = {config.min_explained_variance:g}: raise "
        "method.critic.pretrain_steps or method.critic.learning_rate, set "
        "method.critic.init to another model"
    )
    if config.below_minimum == "refuse":
        raise ConfigError(f'{text}, or method.critic.below_minimum = "warn"')
    return text
