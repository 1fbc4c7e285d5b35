"""What holds for every seed, every distribution and every number."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.engines.seeded import choose, uniform_rows, uniforms

LAST = 1.0 - 2.0**-53
places = st.integers(0, 2**63)
logits = st.lists(
    st.one_of(st.floats(-30, 30, width=32), st.just(-math.inf)), min_size=1, max_size=12
).filter(lambda row: max(row) > -math.inf)
numbers = st.one_of(st.floats(0, 1, exclude_max=True), st.sampled_from([0.0, LAST, 0.5]))
temperatures = st.sampled_from([0.3, 1.0, 1.7])


@given(seed=st.integers(0, 2**128 - 1), draw=places, index=places, count=st.integers(0, 40))
def test_numbers_are_in_the_unit_interval_and_their_prefix_is_stable(
    seed: int, draw: int, index: int, count: int
) -> None:
    longer = uniforms(seed, draw, index, 60)
    shorter = uniforms(seed, draw, index, count)
    assert shorter.shape == (count,)
    assert np.array_equal(shorter, longer[:count])
    assert ((longer >= 0) & (longer < 1)).all()


@given(seed=st.integers(0, 2**64), asked=st.lists(st.tuples(places, places), min_size=1))
def test_rows_are_what_each_response_has_by_itself(seed: int, asked: list[tuple[int, int]]) -> None:
    rows = uniform_rows(seed, asked, 9)
    for row, (draw, index) in zip(rows, asked, strict=True):
        assert np.array_equal(row, uniforms(seed, draw, index, 9))


@given(
    seed=st.integers(0, 2**64),
    asked=st.lists(st.tuples(places, places, st.integers(0, 70)), min_size=1, max_size=5),
    count=st.integers(0, 20),
)
def test_numbers_go_on_where_they_were_left(
    seed: int, asked: list[tuple[int, int, int]], count: int
) -> None:
    rows = uniform_rows(
        seed, [place[:2] for place in asked], count, firsts=[place[2] for place in asked]
    )
    for row, (draw, index, first) in zip(rows, asked, strict=True):
        assert np.array_equal(row, uniforms(seed, draw, index, first + count)[first:])


@given(seed=st.integers(0, 2**64), a=st.tuples(places, places), b=st.tuples(places, places))
def test_other_places_have_other_numbers(seed: int, a: tuple[int, int], b: tuple[int, int]) -> None:
    same = np.array_equal(uniforms(seed, *a, 4), uniforms(seed, *b, 4))
    assert same == (a == b)
    assert not np.array_equal(uniforms(seed, *a, 4), uniforms(seed + 1, *a, 4))


@given(row=logits, number=numbers, temperature=temperatures)
def test_the_token_is_the_one_whose_share_of_the_distribution_holds_the_number(
    row: list[float], number: float, temperature: float
) -> None:
    tokens, logprobs = _choose([row], [number], temperature=temperature)
    probs = _softmax(row, temperature)
    cdf = np.concatenate([[0.0], np.cumsum(probs)])
    token = tokens[0]
    assert probs[token] > 0
    assert cdf[token] - 1e-5 <= number <= cdf[token + 1] + 1e-5
    assert math.isclose(logprobs[0], math.log(probs[token]), abs_tol=2e-5, rel_tol=1e-5)


@given(rows=st.lists(st.tuples(logits, numbers), min_size=1, max_size=6), picked=st.randoms())
def test_a_row_does_not_depend_on_its_neighbours(
    rows: list[tuple[list[float], float]], picked: object
) -> None:
    width = max(len(row) for row, _ in rows)
    padded = [row + [-math.inf] * (width - len(row)) for row, _ in rows]
    order = list(range(len(rows)))
    picked.shuffle(order)  # type: ignore[attr-defined]
    together = _choose([padded[n] for n in order], [rows[n][1] for n in order])
    for place, n in enumerate(order):
        alone = _choose([padded[n]], [rows[n][1]])
        assert (together[0][place], together[1][place]) == (alone[0][0], alone[1][0])


@given(row=logits, number=numbers, top_k=st.integers(0, 14), top_p=st.floats(0.01, 1))
def test_only_what_top_k_and_then_top_p_leave_is_drawn(
    row: list[float], number: float, top_k: int, top_p: float
) -> None:
    tokens, logprobs = _choose([row], [number], top_k=top_k, top_p=top_p)
    probs = _softmax(row, 1.0)
    kept = _allowed(probs, top_k, top_p)
    assert tokens[0] in kept
    # the log-probability is that of the whole distribution
    assert math.isclose(logprobs[0], math.log(probs[tokens[0]]), abs_tol=2e-5, rel_tol=1e-5)


@given(row=logits, top_k=st.integers(0, 14))
def test_all_that_top_k_leaves_is_drawn_by_some_number(row: list[float], top_k: int) -> None:
    probs = _softmax(row, 1.0)
    kept = [t for t in range(len(row)) if top_k == 0 or probs[t] >= _kth(probs, top_k)]
    shares = np.where(np.isin(np.arange(len(row)), kept), probs, 0)
    shares /= shares.sum()
    middles = np.cumsum(shares) - shares / 2
    wanted = [t for t in kept if shares[t] > 1e-4]
    tokens, _ = _choose([row] * len(wanted), [middles[t] for t in wanted], top_k=top_k)
    assert tokens == wanted


def _choose(
    rows: list[list[float]], numbers_B: list[float], **settings: float
) -> tuple[list[int], list[float]]:
    tokens_B, logprobs_B = choose(
        torch.tensor(rows, dtype=torch.float32),
        torch.tensor(numbers_B, dtype=torch.float64),
        **settings,  # type: ignore[arg-type]
    )
    return tokens_B.tolist(), logprobs_B.tolist()


def _softmax(row: list[float], temperature: float) -> np.ndarray:
    values = np.array(row, dtype=np.float64) / temperature
    exps = np.exp(values - values.max())
    return np.asarray(exps / exps.sum())


def _kth(probs: np.ndarray, top_k: int) -> float:
    return float(np.sort(probs)[::-1][min(top_k, len(probs)) - 1])


def _allowed(probs: np.ndarray, top_k: int, top_p: float) -> set[int]:
    """With a margin for tokens that are at the threshold to within float32."""
    possible = probs > 0
    if top_k:
        possible &= probs >= _kth(probs, top_k) * (1 - 1e-5)
    kept = np.where(possible, probs, 0)
    kept /= kept.sum()
    before = np.array([kept[kept > p * (1 + 1e-5)].sum() for p in kept])
    return set(np.flatnonzero(possible & (before < top_p + 1e-5)).tolist())
