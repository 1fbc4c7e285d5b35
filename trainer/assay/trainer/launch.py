"""`assay train` or `assay train-rm` as one of several processes that a launcher started.

    accelerate launch --config_file configs/accelerate/ddp.yaml -m assay.trainer CONFIG.toml
    torchrun --nproc-per-node 2 -m assay.trainer CONFIG.toml
    torchrun --nproc-per-node 2 -m assay.trainer.recipes.reward_model CONFIG.toml

A failed process joins no collective, so outside of training the processes agree over the key-value
store of their rendezvous:

* the first process makes the run's folder and shares its name;
* an error of all processes is printed by the first, an error of one by that one. Errors that
  follow from a lost process are silent.

The launcher ends the others when one has failed.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from assay.cli import main as cli
from assay.kit.errors import ConfigError
from assay.kit.runs.environment import calm, keep_freed_memory
from assay.kit.runs.folders import forget_if_untouched
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.records.folder import C, RunFolder, RunKind

INTERRUPTED = 130
_MEETING = timedelta(minutes=10)
_FIRST_SPEAKS = timedelta(seconds=5)
_FAILED, _SAID = "assay/failed", "assay/said"


class Peers:
    """The processes that a launcher started.

    Args:
        store: a key-value store that all of them reach, such as torch.distributed's TCPStore.
        index: of this process, from 0.
    """

    def __init__(self, store: Any, index: int) -> None:
        self._store = store
        self._index = index

    @property
    def main(self) -> bool:
        """Whether this is the first process."""
        return self._index == 0

    def same(self, key: str, make: Callable[[], str]) -> str:
        """What the first process makes, on each; the others wait for it.

        Raises:
            Exception: what `make` raises, on the first process. The launcher ends the others.
        """
        if self.main:
            self._store.set(f"assay/{key}", made := make())
            return made
        self._store.wait([f"assay/{key}"], _MEETING)
        told: str = self._store.get(f"assay/{key}").decode()
        return told

    def speaks(self) -> bool:
        """Whether this process should print why it failed.

        A process other than the first waits a moment, since most errors reach all.
        """
        try:
            if not self.main:
                self._wait(_SAID, _FIRST_SPEAKS)
            alone: bool = self._store.add(_FAILED, 1) == 1
            if self.main:
                self._store.set(_SAID, "")
        except RuntimeError:  # the store is gone, and with it whoever failed first
            return self.main
        return alone

    def _wait(self, key: str, time: timedelta) -> None:
        from torch.distributed import DistStoreError  # noqa: PLC0415  # torch takes seconds

        try:
            self._store.wait([key], time)
        except DistStoreError:  # not in this time
            return


@cache
def peers() -> Peers | None:
    """The processes that a launcher started; None for a single one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        return None
    from torch.distributed.rendezvous import rendezvous  # noqa: PLC0415  # torch takes seconds

    store, index, _ = next(rendezvous("env://", timeout=_MEETING))
    return Peers(store, index)


def is_main() -> bool:
    """Whether this process is the first, or the only one."""
    there = peers()
    return there is None or there.main


def opened(kind: RunKind[C], make: Callable[[], tuple[RunFolder, C]]) -> tuple[RunFolder, C]:
    """The run's folder and settings on each process, as the first one opened them."""
    there = peers()
    if there is None:
        return make()
    found: list[tuple[RunFolder, C]] = []

    def tell() -> str:
        found.append(make())
        folder, config = found[0]
        return json.dumps({"path": str(folder.path), "config": kind.to_toml(config)})

    told = json.loads(there.same("folder", tell))
    if found:
        return found[0]
    tree = tomllib.loads(told["config"])
    return RunFolder(Path(told["path"])), kind.build(tree, origin="the first process")


def carry_out(
    kind: RunKind[C], make: Callable[[], tuple[RunFolder, C]], run: Callable[[C, RunFolder], object]
) -> None:
    """Opens a run and runs it; removes the folder of a run that could not begin.

    `run` returns None when it was interrupted.

    Raises:
        SystemExit: it was interrupted; the code says so.
        TrainingStoppedError: also where the disk is full.
    """
    folder, settings = opened(kind, make)
    keep_freed_memory()
    calm()
    from assay.trainer.records.full_disk import said_when_full  # noqa: PLC0415  # after calm()

    try:
        with said_when_full(folder.path, kind.command):
            report = run(settings, folder)
    except ConfigError:
        if is_main():
            forget_if_untouched(folder)
        raise
    if report is None:
        raise SystemExit(INTERRUPTED)


def main(arguments: Sequence[str], command: str = "train") -> int:
    """Runs `assay COMMAND` with these arguments, under a launcher or alone; gives the exit code."""
    keep_freed_memory()
    calm()
    others = peers()
    if others is None:
        return cli.run([command, *arguments])
    there = others

    def report(error: Exception) -> int:
        if there.speaks():
            return cli.report_error(error)
        return 2 if isinstance(error, click.UsageError) else 1

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not there.speaks():
            return
        if _is_of_peers(error):
            cli.report_error(_gone(error, command))
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = hook
    code = cli.run([command, *arguments], report)
    if code != 1:
        leave()
    return code


def _is_of_peers(error: BaseException) -> bool:
    from torch.distributed import DistError  # noqa: PLC0415  # torch takes seconds

    return isinstance(error, DistError) or (
        isinstance(error, RuntimeError) and "gloo" in str(error)
    )


def _gone(error: BaseException, command: str) -> TrainingStoppedError:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return TrainingStoppedError(
        f"another process of this run is gone ({reason[:120]}); if nothing above explains it, it "
        f"was killed, as by a machine out of memory; continue with `assay {command} --resume`"
    )


def leave() -> None:
    """Takes this process out of its group; no other may be waiting in a collective."""
    from torch import distributed  # noqa: PLC0415  # torch takes seconds

    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
