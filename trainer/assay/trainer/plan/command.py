"""`assay train --plan`: what a run will need, and whether it fits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml  # type: ignore[import-untyped]  # accelerate's
from accelerate.commands.config.config_args import load_config_from_file
from rich.console import Console
from rich.table import Table
from transformers import AutoConfig

from assay.kit.errors import ConfigError
from assay.kit.pretrained import locate
from assay.trainer.engines.models import load_errors
from assay.trainer.plan.estimate import GIB, MARGIN, MemoryPlan, Setup, Sharding, estimate
from assay.trainer.plan.remedies import remedies
from assay.trainer.settings.config import Config

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)
_KINDS: dict[str, Sharding] = {
    "FSDP": "fsdp2",
    "DEEPSPEED": "zero3",
    "MULTI_GPU": "ddp",
    "MULTI_CPU": "ddp",
    "NO": "none",
}


def read_size(text: str) -> int:
    """Bytes of "80GB" or "140GiB".

    Raises:
        ConfigError: it is no size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"--memory {text!r} is no size; write one such as 80GB or 140GiB")
    number, unit, binary = found.groups()
    base = 1024 if binary else 1000
    power = "KMGT".index(unit.upper()) + 1 if unit else 0
    return int(float(number) * base**power)


def setup_of(
    config: Config, *, memory: str, launcher: Path | None, processes: int, prompt: int
) -> Setup:
    """The hardware of a run, by options and this machine.

    `memory` is a device's, as a size; empty for this machine's. `launcher` is accelerate's config,
    which says how weights are sharded; None for whole weights. `processes` is 0 for the launcher's,
    or one. `prompt` counts tokens.

    Raises:
        ConfigError: the size or the launcher's config cannot be read.
    """
    planned, machines, name = 1, 1, "NO"
    if launcher:
        told = _launcher(launcher)
        planned, machines = told.num_processes or 1, told.num_machines or 1
        name = told.distributed_type.value
    count = processes or planned
    machines = max(1, count * machines // planned)
    kind = _KINDS.get(name, "none")
    if kind == "none" and count > 1:
        kind = "ddp"
    here = config.model.device != "cpu" and torch.cuda.is_available()
    cuda = config.model.device != "cpu" and (here or bool(memory) or config.model.device == "cuda")
    size = read_size(memory) if memory else 0
    if not memory and here:
        size = int(torch.cuda.get_device_properties(0).total_memory)
    elif not memory and not cuda:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        size = pages // max(1, count // machines)
    return Setup("cuda" if cuda else "cpu", count, machines, kind, size, prompt)


def _launcher(path: Path) -> Any:
    try:
        return load_config_from_file(str(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigError(
            f"--accelerate {path} cannot be read ({reason[:120]}); give what `accelerate config` "
            "writes, such as configs/accelerate/fsdp2.yaml"
        ) from error


def shapes_of(config: Config, say: Callable[[str], None]) -> tuple[Any, Any]:
    """The shapes of the policy and of a critic of another kind, by their configurations alone.

    Raises:
        ConfigError: there is no such model.
    """

    def shape(name: str) -> Any:
        with load_errors(name):
            return AutoConfig.from_pretrained(locate(name, say))

    critic = config.method.critic
    own = config.method.has_critic and critic.sharing == "separate" and critic.init != "policy"
    return shape(config.model.name), shape(critic.init) if own else None


def plan(config: Config, setup: Setup, console: Console) -> None:
    """Prints what a run needs.

    Raises:
        ConfigError: it does not fit; the line has the settings to change.
    """
    shape, critic = shapes_of(config, lambda line: console.print(line, style="dim"))

    def again(changed: Config) -> MemoryPlan:
        return estimate(changed, shape, setup, critic)

    made = again(config)
    console.print(table(config, made))
    for line in lines(config, made):
        console.print(line)
    if not made.fits:
        raise ConfigError(_refusal(*remedies(config, made, again), made))


def table(config: Config, made: MemoryPlan) -> Table:
    """Bytes of each thing on each device."""
    setup = made.setup
    where = f"each of {setup.processes} processes" if setup.processes > 1 else "one process"
    grid = Table(
        title=f"{config.model.name}, {config.method.name}: {where}, {setup.device}, GiB",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    grid.add_column("")
    grid.add_column("learning", justify="right")
    grid.add_column("generating", justify="right")
    grid.add_column("", style="dim")
    for row in made.rows:
        grid.add_row(row.name, _gib(row.learning), _gib(row.generating), row.note)
    grid.add_row("in all", _gib(made.learning), _gib(made.generating), style="bold")
    return grid


def lines(config: Config, made: MemoryPlan) -> list[str]:
    """Lines beneath the table."""
    setup = made.setup
    dynamic = config.method.dynamic_sampling
    more = f", {dynamic.oversample:g} times that in a round" if dynamic.enabled else ""
    memory = (
        f"{_gib(setup.memory)} GiB a device, of which {MARGIN:.0%} are left to kernels and gaps"
        if setup.memory
        else "the memory of a device is not known here: give --memory 80GB"
    )
    drawn = f"a step: {config.samples_per_step} responses, at most {made.tokens:,} tokens{more}"
    host = "host memory of each machine, to read models and to hold what waits"
    return [
        f"{drawn}; prompts are taken to have {setup.prompt} tokens (--prompt-tokens)",
        f"{host}: {_gib(made.host)} GiB",
        memory,
    ]


def _gib(size: int) -> str:
    return f"{size / GIB:,.2f}" if size < 100 * GIB else f"{size / GIB:,.0f}"


def _refusal(found: list[str], enough: bool, made: MemoryPlan) -> str:
    setup = made.setup
    when = "learning" if made.learning >= made.generating else "generating"
    need = (
        f"{_gib(made.peak)} GiB are needed while {when}, and a device has {_gib(setup.memory)} GiB "
        f"less {MARGIN:.0%}"
    )
    if enough:
        return f"{need}; this fits: {' '.join(found)}"
    shard = (
        "shard the weights over more processes (--accelerate configs/accelerate/fsdp2.yaml)"
        if setup.shards == 1
        else "take more processes (--processes)"
    )
    helped = f"{' '.join(found)} does not suffice; " if found else ""
    return f"{need}; {helped}{shard}, or train adapters (model.lora.rank=32)"
