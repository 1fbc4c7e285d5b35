"""Rows packed into forward passes: every row once, within limits, at the least cost, on all
processes in as many passes; and what a model says of each token comes back to its place."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.algos import packing
from assay.trainer.algos.packing import PASS, Packing, pack, split

SIZES = st.lists(st.integers(1, 400), min_size=1, max_size=24)
ROWS = st.integers(0, 9)
POSITIONS = st.sampled_from([0, 1, 50, 300, 1000, 5000])
PAIRS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=9)


def positions_of(passes: list[list[int]], sizes: list[int]) -> list[int]:
    return [len(one) * max(sizes[row] for row in one) for one in passes]


@given(SIZES, ROWS, POSITIONS)
def test_every_row_is_in_one_pass_and_passes_keep_to_their_limits(
    sizes: list[int], rows: int, positions: int
) -> None:
    passes = pack(sizes, rows=rows, positions=positions)
    assert sorted(row for one in passes for row in one) == list(range(len(sizes)))
    for one, taken in zip(passes, positions_of(passes, sizes), strict=True):
        assert not rows or len(one) <= rows
        assert not positions or taken <= positions or len(one) == 1
    longest_first = [sizes[row] for one in passes for row in one]
    assert longest_first == sorted(sizes, reverse=True)


@given(SIZES, ROWS, POSITIONS, st.randoms(use_true_random=False))
def test_packing_depends_on_the_sizes_alone(
    sizes: list[int], rows: int, positions: int, chance: Any
) -> None:
    shuffled = sizes.copy()
    chance.shuffle(shuffled)

    def found(given: list[int]) -> list[list[int]]:
        return [[given[n] for n in one] for one in pack(given, rows=rows, positions=positions)]

    assert found(sizes) == found(shuffled)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), ROWS, POSITIONS)
def test_no_other_cuts_cost_less(sizes: list[int], rows: int, positions: int) -> None:
    """Of all cuts of the rows in order of length; fewest passes count before positions without a
    limit of positions."""

    def cost(passes: list[list[int]]) -> tuple[int, int]:
        computed = sum(positions_of(passes, sizes))
        return (
            (computed + len(passes) * max(1, positions // PASS), 0)
            if positions
            else (len(passes), computed)
        )

    def allowed(one: list[int]) -> bool:
        fits = not positions or len(one) * sizes[one[0]] <= positions or len(one) == 1
        return fits and (not rows or len(one) <= rows)

    order = sorted(range(len(sizes)), key=lambda row: -sizes[row])
    others = []
    for marks in product((False, True), repeat=len(order) - 1):
        cuts = [0, *(n for n, mark in enumerate(marks, start=1) if mark), len(order)]
        passes = [order[start:end] for start, end in pairwise(cuts)]
        if all(allowed(one) for one in passes):
            others.append(cost(passes))
    assert cost(pack(sizes, rows=rows, positions=positions)) == min(others)


@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 20))
def test_rows_of_one_length_are_not_padded_and_passes_are_full(
    size: int, rows: int, fit: int
) -> None:
    passes = pack([size] * rows, positions=size * fit)
    assert len(passes) == -(-rows // fit)


@given(SIZES, st.data())
def test_a_process_with_fewer_passes_splits_its_own(sizes: list[int], data: st.DataObject) -> None:
    passes = pack(sizes, positions=1000)
    count = data.draw(st.integers(len(passes), len(sizes)))
    found = split(passes, sizes, count)
    assert len(found) == count
    assert [row for one in found for row in one] == [row for one in passes for row in one]
    assert sum(positions_of(found, sizes)) <= sum(positions_of(passes, sizes))
    with pytest.raises(ValueError, match="make no"):
        split(passes, sizes, len(sizes) + 1)


@given(st.integers(1, 12), st.data(), ROWS, POSITIONS)
def test_all_processes_make_as_many_passes(
    rows: int, data: st.DataObject, limit: int, positions: int
) -> None:
    """Each has as many rows, of lengths of its own."""
    ranks = data.draw(
        st.lists(
            st.lists(st.integers(1, 200), min_size=rows, max_size=rows), min_size=2, max_size=4
        )
    )
    told: list[int] = []
    for sizes in ranks:  # what each would need
        Packing(limit, positions, lambda count: told.append(count) or count).passes(of(sizes))
    made = [Packing(limit, positions, lambda _: max(told)).passes(of(sizes)) for sizes in ranks]
    assert {len(passes) for passes in made} == {max(told)}


def of(sizes: list[int]) -> dict[str, torch.Tensor]:
    """Rows of which only the lengths count."""
    mask_BT = (torch.arange(max(sizes)) < torch.tensor(sizes).unsqueeze(1)).long()
    return {"prompt_mask": torch.zeros(len(sizes), 1).long(), "completion_mask": mask_BT}


def rows_of(pairs: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Rows with so many tokens of prompt and of response; every token has a number of its own."""
    most = [max(lengths) + 1 for lengths in zip(*pairs, strict=True)]
    prompts, responses = (
        torch.tensor(lengths).unsqueeze(1) for lengths in zip(*pairs, strict=True)
    )
    prompt_mask = torch.arange(most[0]).flip(0) < prompts
    completion_mask = torch.arange(most[1]) < responses
    numbers = torch.arange(1, len(pairs) * sum(most) + 1).view(len(pairs), -1)
    return {
        "prompt_ids": numbers[:, : most[0]] * prompt_mask,
        "prompt_mask": prompt_mask.long(),
        "completion_ids": numbers[:, most[0] :] * completion_mask,
        "completion_mask": completion_mask.long(),
        "loss_mask": completion_mask.clone(),
        "rewards": torch.arange(len(pairs)).float(),
        "window_tokens": torch.tensor(7.0),
    }


@given(PAIRS)
def test_rows_are_laid_from_the_first_column_without_a_gap(pairs: list[tuple[int, int]]) -> None:
    batch = rows_of(pairs)
    laid = packing.laid(batch)
    assert laid.ids_SL.shape[1] == max(map(sum, pairs))
    for row, (prompt, response) in enumerate(pairs):
        ids = laid.ids_SL[row]
        whole = [
            *batch["prompt_ids"][row, -prompt:].tolist(),
            *batch["completion_ids"][row, :response].tolist(),
        ]
        assert ids.tolist() == whole + [0] * (len(ids) - len(whole))
        assert laid.mask_SL[row].tolist() == [1] * len(whole) + [0] * (len(ids) - len(whole))
        own = packing.of_tokens(laid.ids_SL, laid.starts_S, batch["completion_ids"].shape[1])
        assert own[row, :response].tolist() == batch["completion_ids"][row, :response].tolist()
    computed, tokens = packing.computed(batch)
    assert (int(computed), int(tokens)) == (laid.ids_SL.numel(), sum(map(sum, pairs)))


@given(PAIRS, st.data())
def test_a_cut_loses_padding_alone(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    batch = rows_of(pairs)
    numbers = data.draw(st.permutations(range(len(pairs))))
    chosen = torch.tensor(numbers[: data.draw(st.integers(1, len(numbers)))])
    part = packing.cut(batch, chosen)
    prompts, responses = zip(*(pairs[int(row)] for row in chosen), strict=True)
    assert part["prompt_ids"].shape == (len(chosen), max(prompts))
    assert part["loss_mask"].shape == (len(chosen), max(responses))
    assert part["rewards"].tolist() == chosen.tolist()
    assert part["window_tokens"] == 7.0
    for name in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "loss_mask"):
        assert part[name].sum(1).equal(batch[name][chosen].sum(1)), name


@settings(max_examples=50)
@given(PAIRS, ROWS, st.integers(1, 60))
def test_what_a_pass_says_of_a_token_comes_back_to_its_place(
    pairs: list[tuple[int, int]], rows: int, positions: int
) -> None:
    batch = rows_of(pairs)
    passes = Packing(rows, positions).passes(batch)
    found = packing.over_passes(batch, passes, lambda part: part["completion_ids"] * 2.0 + 1)
    expected = (batch["completion_ids"] * 2.0 + 1) * batch["completion_mask"]
    assert found.equal(expected)
    with pytest.raises(ValueError, match="no rows"):
        packing.over_passes(batch, [], lambda part: part["completion_ids"])
