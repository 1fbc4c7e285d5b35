"""The hooks by which a method acts within a run.

The core calls the hooks of all active methods in the order of their ranks (settings.method) and
knows none of them by name. Those before the first step and in the evaluation are in
recipes/hooks.py.

A step, in order:

    source, around      the source of a step's responses             generate, judge
    scored              rewards of judged responses                  per group
    mark                columns of the batch                         per batch
    earned, returns     rewards on tokens, and their estimate        with a critic
    units               what is compared, if not whole responses     without a critic
    credit              changes advantages                           without a critic
    credited            last change before the loss                  per batch
    token_weights       weights of tokens in the loss                per micro-batch
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from assay.trainer.rollouts.exchange import Talk
from assay.trainer.settings.registry import methods_on, resolved

if TYPE_CHECKING:
    import torch

    from assay.trainer.algos.episodes import Units
    from assay.trainer.core.batch import Batch, Scored
    from assay.trainer.core.build import Workshop
    from assay.trainer.core.rewards import Judge
    from assay.trainer.core.trainer import PolicyTrainer
    from assay.trainer.data.problems import Problem
    from assay.trainer.engines.engine import Sampler
    from assay.trainer.engines.models import LoadedPolicy
    from assay.trainer.engines.types import FirstToken
    from assay.trainer.rollouts.types import Collected, Source
    from assay.trainer.settings.config import Config


class InParts(Protocol):
    """Micro-batches that come while their step is still being drawn."""

    def following(self) -> tuple[Batch, bool]:
        """Waits for the next micro-batch, with counts; also whether it is its step's last."""
        ...

    def settled(self, loss: torch.Tensor, micro: Batch, *, last: bool) -> torch.Tensor:
        """Called after a micro-batch's backward pass; `last` says whether the weights move now.

        Returns:
            The loss to report for it, so that reports add up to the step's loss.
        """
        ...


class Hooks:
    """The hooks of an active method; by default each does nothing.

    Attributes:
        name: of the method; its state in a checkpoint goes by it.
        config: of the run.
        changes_rewards: whether what trains differs from what was judged.
        seen: numbers of the latest batch by the names of records.metric_table; the trainer takes
            them out.
    """

    name = ""
    changes_rewards = False

    def __init__(self, config: Config) -> None:
        self.config = config
        self.seen: dict[str, float] = {}

    # -- before the run ---------------------------------------------------------------------------

    def check_processes(self, processes: int) -> None:
        """Checks that the method runs on so many processes.

        Raises:
            ConfigError: it does not; the message says what to do.
        """

    def needs_single_judgements(self) -> str:
        """Why each response must be judged by itself, and what to set otherwise; empty if not."""
        return ""

    def room(self, policy: LoadedPolicy, most: int) -> int:
        """Most tokens after the prompt, where one turn takes `most`."""
        del policy
        return most

    def variants(self) -> tuple[int, Callable[[Problem, int], Problem]] | None:
        """The number of other forms of a problem, and a function that makes form 1, 2 and so on."""
        return None

    # -- rollouts ---------------------------------------------------------------------------------

    def first_token(self) -> FirstToken | None:
        """The source of a training response's first token; None for the policy."""
        return None

    def before_training(self, policy: LoadedPolicy) -> None:
        """Called with the policy as it was loaded, before TRL wraps it."""

    def talk(self, policy: LoadedPolicy, judge: Judge) -> Talk | None:
        """The shape of a sample; None for one response. May be called more than once."""
        del policy, judge
        return None

    def stops(self, policy: LoadedPolicy) -> tuple[str, ...]:
        """Texts behind which a response ends, besides the tokens that end one."""
        del policy
        return ()

    def collecting(self) -> Mapping[str, Any]:
        """Arguments of the collector: `dynamic`, `keepers`, `again`."""
        return {}

    def sampler(self, sampler: Sampler) -> Sampler:
        """Who answers the collector's requests, made of the one so far."""
        return sampler

    def source(self, shop: Workshop, *, whole: bool) -> Source | None:
        """A source of a step's responses, in place of single responses.

        `whole` is false where whole responses of the present policy are wanted, each step once.
        """
        del shop, whole
        return None

    def around(self, source: Source, shop: Workshop) -> Source:
        """The policy's source, made of the one so far."""
        del shop
        return source

    # -- a batch ----------------------------------------------------------------------------------

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """Changes rewards of whole groups, and whether they train."""
        return groups

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """Adds the method's columns to the batch of `scored`.

        `collected` is the source's result.
        """
        del scored, collected
        return batch

    def measured(self, collected: Collected) -> Mapping[str, float]:
        """Numbers of a whole step by the names of records.metric_table; asked once for each."""
        del collected
        return {}

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """The reward of each token, (B, T), where a critic credits them."""
        del batch
        return rewards_BT

    def returns(self, batch: Batch) -> Callable[..., tuple[torch.Tensor, torch.Tensor]] | None:
        """A replacement of algos.gae.decoupled_gae, with its arguments."""
        del batch
        return None

    def units(self, batch: Batch) -> Units | None:
        """What is compared in place of whole responses; None for those."""
        del batch
        return None

    def credit(self, batch: Batch, advantages_BT: torch.Tensor, step: int) -> torch.Tensor:
        """Advantages without a critic, (B, T), before weights and whitening; `step` counts from 0.

        The batch has `rewards`, `spans` and the like.
        """
        del batch, step
        return advantages_BT

    def credited(self, batch: Batch, judged: int) -> None:
        """Changes a batch with values and advantages in place, last before the loss.

        The batch has `value_mask` where there is a critic; `judged` counts judged responses over
        all processes.
        """

    def sampled(self, mask_BT: torch.Tensor) -> torch.Tensor:
        """Of fresh tokens (B, T) bool, those that the policy's own distribution drew."""
        return mask_BT

    def token_weights(
        self, batch: Batch, old_BT: torch.Tensor
    ) -> tuple[str, torch.Tensor, slice] | None:
        """Weights of tokens in the loss of a micro-batch.

        `old_BT` are the log-probabilities that the ratio starts from.

        Returns:
            The metric's name, the weights (B, T) and the tokens of a row that it is over.
        """
        del batch, old_BT
        return None

    # -- the loop ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What the steps so far left with the method: tensors and plain values for a checkpoint.

        It is the same in all processes, and the first one's is kept. Empty for nothing.
        """
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict`."""

    def close(self) -> None:
        """Frees what the method holds, at the end of a run, however it ended."""

    def in_parts(self, trainer: PolicyTrainer) -> InParts | None:
        """Micro-batches of a step that is still being drawn; None for whole steps."""
        del trainer
        return None


def hooks_of(config: Config) -> tuple[Hooks, ...]:
    """Hooks of active methods, by rank."""
    found = []
    for method in methods_on(config):
        if method.hooks:
            hook: Hooks = resolved(method.hooks)(config)
            hook.name = method.name
            found.append(hook)
    return tuple(found)


def states_of(hooks: Sequence[Hooks]) -> dict[str, dict[str, Any]]:
    """The states of methods that have one, by the methods' names."""
    return {hook.name: state for hook in hooks if (state := hook.state_dict())}


def load_states(hooks: Sequence[Hooks], states: Mapping[str, Mapping[str, Any]]) -> None:
    """Gives methods their states back; those that a checkpoint has nothing of begin anew."""
    for hook in hooks:
        if hook.name in states:
            hook.load_state_dict(states[hook.name])


def measured(hooks: Sequence[Hooks], collected: Collected) -> None:
    """Adds the methods' numbers of a whole step to its metrics."""
    for hook in hooks:
        collected.metrics |= hook.measured(collected)
