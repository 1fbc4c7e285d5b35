"""The processes of a run, before there is a trainer: which one this is, and how they agree."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, broadcast_object_list, gather_object

from assay.rpc.errors import ConfigError

T = TypeVar("T")

_PATIENCE = timedelta(hours=2)


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


def join(*, on_cuda: bool, max_outage_s: float = 0.0) -> World:
    """The world that a launcher (`accelerate launch`, `torchrun`) made; alone without one.

    Args:
        on_cuda: whether the policy is on CUDA devices.
        max_outage_s: how long one process may be held for the reward services, while the others
            wait for it.

    Raises:
        ConfigError: the launcher's settings have only the first process load the weights.
    """
    if _flag("ACCELERATE_USE_FSDP") and _flag("FSDP_CPU_RAM_EFFICIENT_LOADING"):
        raise ConfigError(
            "fsdp_cpu_ram_efficient_loading leaves all processes but the first without weights "
            "until training begins, and the evaluation and a critic need them before; set it to "
            "false in accelerate's config, as configs/accelerate/fsdp2.yaml does"
        )
    # a process waits in a collective for as long as another's generation or judging takes
    patience = _PATIENCE + timedelta(seconds=max_outage_s)
    state = PartialState(cpu=not on_cuda, timeout=patience)
    if on_cuda and state.num_processes > 1:
        torch.cuda.set_device(state.local_process_index)
    return World(state.process_index, state.num_processes, state.local_process_index)


def check_engine(accelerator: Any) -> None:
    """Whether the weights are sharded, where the launcher's settings say so.

    Raises:
        ConfigError: they are not: accelerate shards on accelerators only, and would have each
            process hold all of them without a word.
    """
    asked = {"FSDP": _flag("ACCELERATE_USE_FSDP"), "DEEPSPEED": _flag("ACCELERATE_USE_DEEPSPEED")}
    for name, wanted in asked.items():
        if wanted and accelerator.distributed_type != DistributedType[name]:
            raise ConfigError(
                f"accelerate's config asks for {name}, which accelerate has on accelerators only, "
                f"and the policy is on {accelerator.device.type}; launch with "
                "configs/accelerate/ddp.yaml there"
            )


def _flag(name: str) -> bool:
    """Whether the launcher set a switch in the environment."""
    return os.environ.get(name, "").lower() in ("1", "true", "yes")
