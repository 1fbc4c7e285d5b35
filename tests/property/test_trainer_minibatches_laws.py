"""Mini-batches do not depend on how many processes there are."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.core.minibatches import order

seeds = st.integers(0, 2**63)
steps = st.integers(0, 10**9)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))


def mini_batches(rows: int, count: int, processes: int, seed: int, step: int) -> list[set[int]]:
    """The rows, numbered over all processes, of each mini-batch."""
    found: list[set[int]] = [set() for _ in range(count)]
    share = rows // processes
    for process in range(processes):
        own = order(share, count, process=process, processes=processes, seed=seed, step=step)
        size = share // count
        for place, row in enumerate(own):
            found[place // size].add(process * share + row)
    return found


@given(sizes, seeds, steps)
def test_any_number_of_processes_makes_the_same(
    size: tuple[int, int, int], seed: int, step: int
) -> None:
    blocks, count, processes = size
    rows = blocks * count * processes
    alone = mini_batches(rows, count, 1, seed, step)
    assert mini_batches(rows, count, processes, seed, step) == alone
    assert set().union(*alone) == set(range(rows))
    assert [len(one) for one in alone] == [rows // count] * count


@given(sizes, seeds, steps)
def test_neighbours_are_spread_evenly(size: tuple[int, int, int], seed: int, step: int) -> None:
    """Of any M rows from a multiple of M on, each mini-batch has one."""
    blocks, count, processes = size
    for one in mini_batches(blocks * count * processes, count, processes, seed, step):
        assert sorted(row // count for row in one) == list(range(blocks * processes))


def test_seed_and_step_decide() -> None:
    made = [tuple(order(64, 4, seed=seed, step=step)) for seed in range(3) for step in range(3)]
    assert len(set(made)) == len(made)
    assert all(one != tuple(range(64)) for one in made)


def test_one_mini_batch_keeps_the_order() -> None:
    own = order(16, 1, seed=0, step=0)
    assert all(after == before + 1 for before, after in pairwise(own))


def test_every_place_is_as_likely() -> None:
    """Of two rows, the first comes to the first mini-batch half of the time."""
    first = sum(order(2, 2, seed=0, step=step)[0] == 0 for step in range(2000))
    assert 900 < first < 1100
