"""Generation with weights that are sharded over two processes, each with responses of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.exhaustive
def test_processes_that_end_at_different_times_keep_step(repository: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
            __file__,
        ],
        capture_output=True, text=True, timeout=110, check=False, cwd=repository,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(repository / "tests")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert sorted(done.stdout.split()) == ["0:same", "1:same"]


def answer_sharded() -> None:
    """What each process does: the same requests with whole and with sharded weights."""
    from torch import distributed
    from torch.distributed.fsdp import fully_shard

    from assay.trainer.engines.hf import HfEngine
    from rollouts_support import ignore, make_requests, random_model, sampler

    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    requests = make_requests(draws=4 + 3 * rank, samples=1, first=4 * rank)  # more batches there
    lengths, answers = [], []
    for sharded in (False, True):
        model = random_model()
        if sharded:
            for layer in model.model.layers:
                fully_shard(layer)
            fully_shard(model)
        generator = sampler(HfEngine, model, max_new_tokens=15, rows=2, in_step=sharded)
        answers.append([response.ids for response in generator.generate(requests, ignore)])
        lengths.append([len(ids) for ids in answers[-1]])
    everyone: list[list[int]] = [[], []]
    distributed.all_gather_object(everyone, lengths[0])
    assert max(everyone[0][:2]) != max(everyone[1][:2])  # else nothing had to wait
    sys.stdout.write(f"{rank}:{'same' if answers[0] == answers[1] else answers}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    answer_sharded()
