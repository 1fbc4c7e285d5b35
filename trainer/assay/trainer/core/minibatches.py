"""Which rows of a step share a mini-batch. Pure.

TRL shuffles each process's rows by themselves, so that mini-batches change with the number of
processes. Here the rows of all processes, in the order of their groups, are taken in blocks of as
many neighbours as there are mini-batches; each mini-batch gets one row of each block, by a lot of
seed and step. Samples of one prompt are neighbours, so every mini-batch holds its share of each
group.
"""

from __future__ import annotations

import numpy as np


def order(
    rows: int, mini_batches: int, *, process: int = 0, processes: int = 1, seed: int, step: int
) -> list[int]:
    """The order in which a process's rows are cut into mini-batches of equal size.

    `rows` is a multiple of `mini_batches` and equal on all processes; `step` counts the optimizer
    steps before this rollout. The mini-batches of all processes together are the same for any
    number of processes.

    Returns:
        Row numbers of this process, those of the first mini-batch first.
    """
    blocks = rows // mini_batches
    lots = np.random.default_rng([seed, step]).random((blocks * processes, mini_batches))
    own_NM = lots[process * blocks : (process + 1) * blocks].argsort(axis=1)
    numbers_NM = own_NM + np.arange(blocks)[:, None] * mini_batches
    return [int(number) for number in numbers_NM.T.reshape(-1)]
