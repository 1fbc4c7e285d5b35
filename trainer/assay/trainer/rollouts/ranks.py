"""The processes of a run: what each one holds, gathered; what all hold, dealt out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from accelerate.utils import gather_object

from assay.trainer.rollouts.types import Ranks

T = TypeVar("T")


class AccelerateRanks:
    """The processes that `accelerate launch` or torchrun started, over whichever back end they use.

    Items travel pickled: keep them plain and small.

    Args:
        accelerator: the run's `accelerate.Accelerator`.

    Attributes:
        index: this process, from 0.
        count: all processes, at least 1.
    """

    def __init__(self, accelerator: Any) -> None:
        self.index: int = accelerator.process_index
        self.count: int = accelerator.num_processes

    def gather(self, items: Sequence[T]) -> list[T]:
        """The items of all processes, in their order; the same list on each.

        Every process must call it, each as often as the others.
        """
        return list(gather_object(list(items)))


def deal(items: Sequence[T], ranks: Ranks) -> list[T]:
    """This process's share: the index-th of `ranks.count` equal runs of neighbours.

    Gathering the shares gives the items back, in order.

    Raises:
        ValueError: the items cannot be shared out equally.
    """
    share, rest = divmod(len(items), ranks.count)
    if rest:
        raise ValueError(f"{len(items)} items cannot be shared equally by {ranks.count} processes")
    return list(items[ranks.index * share : (ranks.index + 1) * share])
