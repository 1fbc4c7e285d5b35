"""What a method may do within a run: the class whose hooks it overrides.

The core calls the hooks of all methods that are on, in the order of their ranks (settings.method),
and knows none of them by name. A hook that is not overridden does nothing. What a method does
before the first step, and in the evaluation, is in recipes/hooks.py.

A step, in order:

    source, around      what a step's responses come from            generate, judge
    scored              what a judged response earns                 per group
    mark                columns of the batch                         per batch
    earned, returns     rewards on tokens, and the estimate of them  with a critic
    credit              what advantages become                       without a critic
    credited            the last word before the loss                per batch
    token_weights       what a token weighs in the loss              per micro-batch
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from assay.trainer.rollouts.exchange import Talk
from assay.trainer.settings.registry import methods_on, resolved

if TYPE_CHECKING:
    import torch

    from assay.trainer.core.batch import Batch, Scored
    from assay.trainer.core.build import Workshop
    from assay.trainer.core.trainer import PolicyTrainer
    from assay.trainer.data.problems import Problem
    from assay.trainer.engines.models import LoadedPolicy
    from assay.trainer.engines.types import FirstToken
    from assay.trainer.rollouts.types import Collected, Source
    from assay.trainer.settings.config import Config


class InParts(Protocol):
    """Micro-batches that come while their step is still being drawn."""

    def following(self) -> tuple[Batch, bool]:
        """The next micro-batch, with counts, and whether it is its step's last; waits for it."""
        ...

    def settled(self, loss: torch.Tensor, micro: Batch, *, last: bool) -> torch.Tensor:
        """A micro-batch has gone through backward.

        Args:
            loss: of it.
            micro: as `following` gave it.
            last: whether the weights move now.

        Returns:
            What to report for it, so that the reports add up to the step's loss.
        """
        ...


class Hooks:
    """The hooks of a method that is on.

    Args:
        config: of the run.

    Attributes:
        config: of the run.
        changes_rewards: whether what trains differs from what was judged.
        seen: numbers of the latest batch by the names of records.metric_table; the trainer takes
            them out.
    """

    changes_rewards = False

    def __init__(self, config: Config) -> None:
        self.config = config
        self.seen: dict[str, float] = {}

    # -- before the run ---------------------------------------------------------------------------

    def check_processes(self, processes: int) -> None:
        """Whether the method runs on so many processes.

        Raises:
            ConfigError: it does not; the message says what to do.
        """

    def needs_single_judgements(self) -> str:
        """Why each response must be judged by itself, and what to set otherwise; empty if not."""
        return ""

    def room(self, policy: LoadedPolicy, most: int) -> int:
        """Tokens that all after the prompt may take, where one turn takes `most`."""
        del policy
        return most

    def variants(self) -> tuple[int, Callable[[Problem, int], Problem]] | None:
        """How many other forms a problem may come in, and what makes form 1, 2 and so on of it."""
        return None

    # -- rollouts ---------------------------------------------------------------------------------

    def first_token(self) -> FirstToken | None:
        """Where the first token of a training response comes from, if not from the policy."""
        return None

    def before_training(self, policy: LoadedPolicy) -> None:
        """The policy as it was loaded, before TRL wraps it."""

    def talk(self, policy: LoadedPolicy) -> Talk | None:
        """What a sample is, if not one response."""
        del policy
        return None

    def collecting(self) -> Mapping[str, Any]:
        """Arguments of the collector: `dynamic`, `keepers`, `again`."""
        return {}

    def source(self, shop: Workshop, *, whole: bool) -> Source | None:
        """What a step's responses come from, in place of single responses.

        Args:
            shop: what it is made of.
            whole: false where whole responses of the policy as it is are wanted, each step once.
        """
        del shop, whole
        return None

    def around(self, source: Source, shop: Workshop) -> Source:
        """The source that the policy learns from, made of the one so far."""
        del shop
        return source

    # -- a batch ----------------------------------------------------------------------------------

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """What responses earn and whether they train, of whole groups."""
        return groups

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """The batch with the method's columns.

        Args:
            batch: as from core.batch.pad, and what earlier methods made of it.
            scored: its rows.
            collected: what the source said of them.
        """
        del scored, collected
        return batch

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """The reward of each token, (B, T), where a critic credits them."""
        del batch
        return rewards_BT

    def returns(self, batch: Batch) -> Callable[..., tuple[torch.Tensor, torch.Tensor]] | None:
        """What stands in for algos.gae.decoupled_gae, with its arguments."""
        del batch
        return None

    def credit(self, batch: Batch, advantages_BT: torch.Tensor, step: int) -> torch.Tensor:
        """Advantages without a critic, (B, T), before they are weighed and whitened.

        Args:
            batch: with `rewards`, `spans` and the like.
            advantages_BT: so far.
            step: of the run, from 0.
        """
        del batch, step
        return advantages_BT

    def credited(self, batch: Batch, judged: int) -> None:
        """The last word on a batch with values and advantages, which it may change in place.

        Args:
            batch: with `value_mask` where there is a critic.
            judged: responses with a judgement, over all processes.
        """

    def sampled(self, mask_BT: torch.Tensor) -> torch.Tensor:
        """Of fresh tokens (B, T) bool, those that the policy's own distribution drew."""
        return mask_BT

    def token_weights(
        self, batch: Batch, old_BT: torch.Tensor
    ) -> tuple[str, torch.Tensor, slice] | None:
        """What tokens weigh in the loss.

        Args:
            batch: of a micro-batch.
            old_BT: log-probabilities that the ratio starts from.

        Returns:
            The metric's name, the weights (B, T) and the tokens of a row that it is over.
        """
        del batch, old_BT
        return None

    # -- the loop ---------------------------------------------------------------------------------

    def in_parts(self, trainer: PolicyTrainer) -> InParts | None:
        """Micro-batches that come while their step is still being drawn."""
        del trainer
        return None


def hooks_of(config: Config) -> tuple[Hooks, ...]:
    """The hooks of all methods that are on, in the order in which they act."""
    return tuple(resolved(method.hooks)(config) for method in methods_on(config) if method.hooks)
