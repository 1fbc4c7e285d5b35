"""The processes of a run, before there is a trainer: which one this is, and how they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class World:
    """One of `count` processes.

    Attributes:
        index: from 0.
        count: of processes that train together; 1 without a launcher.
        local_index: on this machine.
    """

    index: int = 0
    count: int = 1
    local_index: int = 0

    @property
    def main(self) -> bool:
        """The process that writes and speaks."""
        return self.index == 0

    def same(self, value: T) -> T:
        """The first process's value, on each."""
        if self.count == 1:
            return value
        box: list[Any] = [value]
        broadcast_object_list(box)
        shared: T = box[0]
        return shared

    def any(self, value: bool) -> bool:
        """Whether it is true on one of them."""
        if self.count == 1:
            return value
        return any(gather_object([value]))

    def wait(self) -> None:
        """Until all are here."""
        if self.count > 1:
            PartialState().wait_for_everyone()


def join(*, on_cuda: bool) -> World:
    """The world that a launcher (`accelerate launch`, `torchrun`) made; alone without one."""
    state = PartialState(cpu=not on_cuda)
    if on_cuda and state.num_processes > 1:
        torch.cuda.set_device(state.local_process_index)
    return World(state.process_index, state.num_processes, state.local_process_index)
