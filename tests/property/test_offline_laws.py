"""Laws of the losses over stored responses, and of what makes a pair."""

from __future__ import annotations

import math
from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Component, Judgement, Result
from assay.trainer.algos import offline
from assay.trainer.algos.packing import TOGETHER, Packing
from assay.trainer.data.problems import Problem
from assay.trainer.methods.offline.stored import (
    Stored,
    StoredResponse,
    better_by,
    groups_of,
    kept,
    pairs_of,
)
from assay.trainer.settings import config as configs

NUMBER = st.floats(-3, 3)
BETA = st.floats(0.05, 5)


def one(reward: float, verdict: str, form: float) -> StoredResponse:
    judgement = Judgement(reward, verdict, (Component("format", form),))
    problem = Problem("p", "q", (("user", "q"),), "r")
    return StoredResponse(problem, (1,), (2, 3), "x", Result("", judgement), False, ((0, 2),), None)


RESPONSE = st.builds(
    one,
    st.sampled_from((0.0, 0.5, 1.0)),
    st.sampled_from(("correct", "incorrect")),
    st.sampled_from((0.0, 1.0)),
)


@given(NUMBER, NUMBER, BETA)
def test_prdp_is_0_exactly_where_rewards_differ_as_ratios_do(
    difference: float, off: float, beta: float
) -> None:
    ratios = torch.tensor([difference], dtype=torch.float64)
    loss = float(offline.prdp_losses(ratios + off, beta * ratios, beta=beta))
    assert math.isclose(loss, off**2, abs_tol=1e-9)


@given(NUMBER, NUMBER, NUMBER, BETA)
def test_dpo_goes_by_the_difference_alone(
    better: float, worse: float, both: float, beta: float
) -> None:
    def loss(one: float, other: float) -> float:
        return float(offline.dpo_losses(torch.tensor(one), torch.tensor(other), beta=beta))

    assert math.isclose(loss(better + both, worse + both), loss(better, worse), abs_tol=1e-4)
    swapped = loss(better, worse) - loss(worse, better)
    assert math.isclose(swapped, -beta * (better - worse), abs_tol=1e-4)
    assert math.isclose(loss(both, both), math.log(2), abs_tol=1e-5)


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=6), NUMBER, st.floats(0.05, 1))
def test_a_lol_weighs_the_likelihood_within_its_range(
    tokens: list[tuple[float, float]], advantage: float, clip: float
) -> None:
    logps = torch.tensor([[-abs(a) for a, _ in tokens]], dtype=torch.float64, requires_grad=True)
    ratios = torch.tensor([[b for _, b in tokens]], dtype=torch.float64)
    mask = torch.ones_like(ratios).bool()
    advantages = torch.full_like(ratios, advantage)
    for by_token in (False, True):
        losses, _ = offline.a_lol_token_losses(
            logps, ratios, advantages, mask, clip=clip, by_token=by_token
        )
        (slopes,) = torch.autograd.grad(losses.sum(), [logps])
        if advantage <= 0:
            assert not slopes.any(), "what was no better than expected teaches nothing"
        else:
            weights = -slopes / advantage
            assert (weights >= 1 - clip - 1e-9).all()
            assert (weights <= 1 + clip + 1e-9).all()


@given(st.lists(st.tuples(NUMBER, NUMBER, st.booleans()), min_size=1, max_size=8), BETA)
def test_direct_advantage_is_0_at_the_optimum_of_every_step(
    tokens: list[tuple[float, float, bool]], beta: float
) -> None:
    ratios = torch.tensor([[ratio for ratio, _, _ in tokens]], dtype=torch.float64)
    steps = offline.step_numbers(torch.tensor([[ends for _, _, ends in tokens]]))
    mask = torch.ones_like(ratios).bool()
    at_best = offline.direct_advantage_losses(ratios, beta * ratios, steps, mask, beta=beta)
    assert float(at_best.abs().max()) < 1e-9
    off = torch.tensor([[off for _, off, _ in tokens]], dtype=torch.float64)
    found = offline.direct_advantage_losses(ratios, beta * ratios + off, steps, mask, beta=beta)
    by_step: Counter[int] = Counter()
    for step, value in zip(steps[0].tolist(), off[0].tolist(), strict=True):
        by_step[step] += value
    expected = sum(value**2 / 2 for value in by_step.values())
    assert math.isclose(float(found.sum()), expected, abs_tol=1e-6)


@given(st.lists(RESPONSE, min_size=1, max_size=7), st.sampled_from(("reward", "format")))
def test_of_a_pair_the_first_is_better(responses: list[StoredResponse], by: str) -> None:
    stored = Stored(responses, [list(range(len(responses)))], Counter(), {})
    better = better_by(by)
    for first, second in pairs_of(stored, stored.groups[0], better, margin=0.0, ties=False):
        ahead = better(responses[first], responses[second])
        assert ahead is not None
        assert ahead > 0
        assert by == "reward" or responses[first].verdict == responses[second].verdict
    ties = pairs_of(stored, stored.groups[0], better_by("reward"), margin=9.0, ties=True)
    assert all(responses[a].reward == responses[b].reward for a, b in ties)


@given(RESPONSE, st.sampled_from((0.0, 0.5, 1.0)))
def test_a_filter_keeps_what_it_says(response: StoredResponse, baseline: float) -> None:
    assert kept(response, baseline, "all")
    assert kept(response, baseline, "correct") == (response.verdict == "correct")
    assert kept(response, baseline, "positive") == (response.reward - baseline > 0)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3))
def test_a_pass_has_each_response_once_in_an_order_of_its_own(
    count: int, size: int, most: int, number: int
) -> None:
    tree = {
        "method": {
            "offline": {"rows": "x", "most": most},
            "loss": {"objective": "sft"},
            "advantage": {"estimator": "stored"},
        },
        "rollout": {"group_size": size},
    }
    config = configs.build(tree, origin="test")
    stored = Stored([one(1.0, "correct", 1.0)] * count, [list(range(count))], Counter(), {})
    groups = groups_of(stored, config, number, [])
    assert groups == groups_of(stored, config, number, [])
    assert len(groups) == min(count // size, most or count)
    assert all(len(group) == size for group in groups)
    places = [place for group in groups for place in group]
    assert len(set(places)) == len(places)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 4), st.integers(0, 40))
def test_pairs_share_a_pass(lengths: list[int], rows: int, positions: int) -> None:
    widths = [length + extra for length in lengths for extra in (0, 3)]
    mask = (torch.arange(max(widths)) < torch.tensor(widths).unsqueeze(1)).long()
    prompt = torch.ones(len(widths), 2, dtype=torch.long)
    batch = {
        "prompt_mask": prompt,
        "completion_mask": mask,
        TOGETHER: torch.arange(len(lengths)).repeat_interleave(2),
    }
    passes = Packing(rows, positions).passes(batch)
    held = [sorted(one_pass.tolist()) for one_pass in passes]
    assert sorted(row for one_pass in held for row in one_pass) == list(range(len(widths)))
    for one_pass in held:
        numbers = batch[TOGETHER][one_pass]
        partners = offline.partners(numbers)
        assert (numbers[partners] == numbers).all()
