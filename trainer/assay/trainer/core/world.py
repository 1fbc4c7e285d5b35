"""The processes of a run, before there is a trainer: which one this is, and how they agree."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, broadcast_object_list, gather_object

from assay.kit.errors import ConfigError

T = TypeVar("T")

_PATIENCE = timedelta(hours=2)
_LOOKS, _LOOK_S = 40, 0.25


@dataclass(frozen=True, slots=True)
class World:
    """One of `count` processes that train together, `local_index` on its machine.

    `host` is the address of the first one's machine for the others.
    """

    index: int = 0
    count: int = 1
    local_index: int = 0
    machines: int = 1
    host: str = "127.0.0.1"

    @property
    def main(self) -> bool:
        """Whether this process writes and prints."""
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
        """Waits for all."""
        if self.count > 1:
            PartialState().wait_for_everyone()

    def check_shared(self, folder: Path) -> None:
        """Checks that all processes see what the first one writes into an existing folder.

        Raises:
            ConfigError: some do not; raised on every process.
        """
        if self.count == 1:
            return
        word = self.same(secrets.token_hex(16))
        path = folder / f".shared-{word}"
        if self.main:
            path.write_text(word, encoding="utf-8")
        self.wait()
        blind = [index for index in gather_object([self._blind(path)]) if index >= 0]
        if self.main:
            path.unlink(missing_ok=True)
        if blind:
            raise ConfigError(
                f"run.dir: {folder} of the first process is not seen by process "
                f"{', '.join(map(str, blind))}, and every process writes its part of a checkpoint; "
                "give run.dir (or --run-dir) an absolute path on a file system that all machines "
                "share"
            )

    def _blind(self, path: Path) -> int:
        """This process's index if it does not see a file; else -1."""
        for _ in range(_LOOKS):  # network file systems remember for seconds what was not there
            if path.exists():
                return -1
            time.sleep(_LOOK_S)
        return self.index


def join(*, on_cuda: bool, max_outage_s: float = 0.0) -> World:
    """The world that a launcher (`accelerate launch`, `torchrun`) made; alone without one.

    `max_outage_s` is how long a process may wait for the reward services while the others wait for
    it.

    Raises:
        ConfigError: the launcher's settings have only the first process load the weights, and
            nothing gives the others theirs before training begins.
    """
    once = _flag("ACCELERATE_USE_FSDP") and _flag("FSDP_CPU_RAM_EFFICIENT_LOADING")
    if once and os.environ.get("FSDP_VERSION", "1") != "2":
        raise ConfigError(
            "fsdp_cpu_ram_efficient_loading with FSDP 1 leaves all processes but the first without "
            "weights until training begins, and the evaluation and a critic need them before; set "
            "fsdp_version: 2 in accelerate's config, as configs/accelerate/fsdp2.yaml does"
        )
    # a process waits in a collective for as long as another's generation or judging takes
    patience = _PATIENCE + timedelta(seconds=max_outage_s)
    state = PartialState(cpu=not on_cuda, timeout=patience)
    if on_cuda and state.num_processes > 1:
        torch.cuda.set_device(state.local_process_index)
    count = state.num_processes
    machines = count // int(os.environ.get("LOCAL_WORLD_SIZE", count))
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    return World(state.process_index, count, state.local_process_index, machines, host)


def check_engine(accelerator: Any) -> None:
    """Checks that weights are sharded where the launcher's settings say so.

    Raises:
        ConfigError: they are not: accelerate shards on accelerators only, and silently has each
            process hold all of them elsewhere.
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
    return os.environ.get(name, "").lower() in ("1", "true", "yes")
