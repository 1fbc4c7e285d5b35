"""Runs of the tiny model, one after another, in one process or as the processes of a launcher.

    torchrun --nproc-per-node 2 tests/trainer_processes_support.py JOBS.json [fsdp2]

One launch has many runs, for to start a process takes longer than to train the tiny model.
"""

from __future__ import annotations

import gc
import io
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).resolve()
BIN = Path(sys.executable).parent
DDP = SUPPORT.parent.parent / "configs" / "accelerate" / "ddp.yaml"
FSDP2 = DDP.with_name("fsdp2.yaml")

# what is left of two numbers that nearly cancel, or of the last bits of log-probabilities
NOISE = {"loss": 1e-6, "policy_loss": 1e-6, "explained_variance": 1e-4}
DRIFT = ("drift_mean", "drift_max", "drift_kl")


@dataclass(frozen=True)
class Job:
    """A run, or the continuation of one.

    Attributes:
        config: a TOML file.
        folder: of the run.
        faulty: some samples, of the first process's and of the second's share, get no judgement.
    """

    config: str
    folder: str
    faulty: bool = False


def told_to_fault(_call: int, item: Any) -> bool:
    """Whole groups on the first of two processes, single samples on the second."""
    place = int(item.group_id) % 8
    return place == 1 or (place >= 6 and len(item.response) % 2 == 1)


def do(job: Job) -> None:
    """Runs it without a word, and without the curves, which take longer than the steps."""
    from unittest.mock import patch

    from rich.console import Console

    from assay.trainer.recipes.train import run
    from assay.trainer.records import folder
    from assay.trainer.settings import config
    from trainer_support import ExactTransport

    def transport() -> Any:
        return ExactTransport(told_to_fault) if job.faulty else ExactTransport()

    Path(job.folder).mkdir(exist_ok=True, parents=True)
    with patch("assay.trainer.records.plots.draw"):
        run(
            config.load(Path(job.config)),
            folder.RunFolder(Path(job.folder)),
            Console(file=io.StringIO()),
            transport=transport,
        )


def write(jobs: list[Job], path: Path) -> None:
    """For a launch."""
    path.write_text(json.dumps([asdict(job) for job in jobs]), encoding="utf-8")


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl without what the clock says."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {key: value for key, value in json.loads(line).items() if not key.endswith("_s")}
        for line in lines
    ]


def same(
    found: list[dict[str, Any]], expected: list[dict[str, Any]], *, but: tuple[str, ...] = ()
) -> None:
    """Equal rows: text and counts exactly, measurements within what float32 leaves.

    Args:
        found: rows of one run.
        expected: of another.
        but: columns that may differ.
    """
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        assert row.keys() == other.keys()
        for name, value in row.items():
            where = f"{name} of step {row['step']}"
            if name in but:
                continue
            if name in DRIFT and value is not None:
                assert 0 <= value < 1e-5, where
            elif isinstance(value, float) and isinstance(other[name], float):
                noise = NOISE.get(name, 1e-7)
                near = math.isclose(value, other[name], rel_tol=1e-4, abs_tol=noise)
                assert near, f"{where}: {value} is not {other[name]}"
            else:
                assert value == other[name], where


def shard_on_cpus() -> None:
    """accelerate 1.15 takes FSDP2 for accelerators only, and torch shards on CPUs as well: has
    accelerate keep the plugin that its own launcher's settings made."""
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType

    begin = AcceleratorState.__init__

    def init(self: Any, *args: Any, fsdp_plugin: Any = None, **kwargs: Any) -> None:
        begin(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if self.distributed_type == DistributedType.MULTI_CPU:
            assert fsdp_plugin.fsdp_version == 2
            self.fsdp_plugin = fsdp_plugin
            self.distributed_type = DistributedType.FSDP
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP

    AcceleratorState.__init__ = init


def main(path: str, engine: str = "") -> None:
    """One of the processes."""
    sys.path[:0] = [str(SUPPORT.parent), str(SUPPORT.parent.parent)]
    from assay.kit.runs.environment import calm

    calm()
    import torch

    import assay.trainer.recipes.train  # noqa: F401

    torch.set_num_threads(1)
    gc.freeze()  # each run's end looks for garbage, which what is imported is not
    if engine == "fsdp2":
        shard_on_cpus()
    for job in json.loads(Path(path).read_text(encoding="utf-8")):
        do(Job(**job))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
