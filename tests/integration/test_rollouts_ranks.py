"""The rollouts of two processes over gloo: the run of one, without a pickled object."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STEPS = 4


@pytest.mark.slow
def test_two_processes_collect_what_one_does_and_pickle_nothing(repository: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
            __file__,
        ],
        capture_output=True, text=True, timeout=110, check=False, cwd=repository,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(repository / "tests")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    told = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda t: t["rank"])
    steps, surplus = _collected(None)
    assert [one["surplus"] for one in told] == [surplus, []], "the first process saves for both"
    shares = zip(*(one["steps"] for one in told), strict=True)
    assert [first + second for first, second in shares] == steps
    assert surplus, "groups waited, and moved to where they trained"


def _collected(ranks: Any) -> tuple[list[list[str]], list[int]]:
    """What each step trains on, to the last token, and the draws that wait after them."""
    from rollouts_collecting_support import bernoulli, collector

    of = collector(bernoulli(0.4, fault_rate=0.1, seed=3), keep_surplus=True, ranks=ranks)
    steps = [
        [repr(rollout) for group in of.collect(step).groups for rollout in group]
        for step in range(STEPS)
    ]
    return steps, [one["draw"] for one in of.state_dict()["surplus"]]


def _collect_together() -> None:
    """What each process does."""
    import numpy as np
    import torch
    from accelerate import Accelerator

    from assay.trainer.rollouts.ranks import AccelerateRanks

    def refused(*_args: Any, **_kwargs: Any) -> None:
        raise AssertionError("a pickled object")

    for name in ("all_gather_object", "gather_object", "broadcast_object_list"):
        setattr(torch.distributed, name, refused)
    ranks = AccelerateRanks(Accelerator(cpu=True))
    uneven = np.full((2 * ranks.index, 3), float(ranks.index))  # of the first process none
    assert ranks.gather(uneven).tolist() == [[1.0] * 3] * 2
    came = ranks.exchange([b"", b"to the second"] if ranks.index == 0 else [b"\x00back", b""])
    assert came == ([b"", b"\x00back"] if ranks.index == 0 else [b"to the second", b""])
    steps, surplus = _collected(ranks)
    told = {"rank": ranks.index, "steps": steps, "surplus": surplus}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    _collect_together()
