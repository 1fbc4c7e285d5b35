"""The processes of a run: how they exchange arrays and divide items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from assay.trainer.rollouts.types import Ranks, Rows

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


class AccelerateRanks:
    """The processes that `accelerate launch` or torchrun started, over any back end.

    Only arrays travel, never pickled objects.

    Args:
        accelerator: the run's `accelerate.Accelerator`.

    Attributes:
        index: this process, from 0.
        count: all processes, at least 1.
    """

    def __init__(self, accelerator: Any) -> None:
        self.index: int = accelerator.process_index
        self.count: int = accelerator.num_processes
        self._device: torch.device = accelerator.device

    def gather(self, rows: Rows) -> Rows:
        """See Ranks."""
        if self.count == 1:
            return rows
        counts = self._gathered(np.array([len(rows)], np.int64))
        padded = np.zeros((max(counts), rows.shape[1]))
        padded[: len(rows)] = rows
        parts = self._gathered(padded).reshape(self.count, *padded.shape)
        return np.concatenate([part[:size] for part, size in zip(parts, counts, strict=True)])

    def exchange(self, parcels: Sequence[bytes]) -> list[bytes]:
        """See Ranks."""
        if self.count == 1:
            return list(parcels)
        import torch  # noqa: PLC0415  # who reads recorded answers needs none

        leaving = [len(parcel) for parcel in parcels]
        sizes = self._gathered(np.array(leaving, np.int64)).reshape(self.count, self.count)
        coming = sizes[:, self.index].tolist()
        out = torch.from_numpy(np.frombuffer(bytearray(b"".join(parcels)), np.uint8))
        into = torch.empty(sum(coming), dtype=torch.uint8, device=self._device)
        torch.distributed.all_to_all_single(into, out.to(self._device), coming, leaving)
        return [part.cpu().numpy().tobytes() for part in into.split(coming)]

    def _gathered(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        import torch  # noqa: PLC0415  # as above
        from accelerate.utils import gather  # noqa: PLC0415

        found: torch.Tensor = gather(torch.from_numpy(values).to(self._device))
        return found.cpu().numpy()


def deal(items: Sequence[T], ranks: Ranks) -> list[T]:
    """This process's share: the index-th of `ranks.count` equal runs of neighbours.

    Gathered, the shares give the items in order.

    Raises:
        ValueError: the items cannot be shared out equally.
    """
    share, rest = divmod(len(items), ranks.count)
    if rest:
        raise ValueError(f"{len(items)} items cannot be shared equally by {ranks.count} processes")
    return list(items[ranks.index * share : (ranks.index + 1) * share])
