"""Tables and worked examples of the papers, numbers computed by hand, and peers."""

from __future__ import annotations

import math

import pytest
import torch
from trl.rewards import get_soft_overlong_punishment

from assay.reward_server.verifiers.form.length import cosine
from assay.reward_server.verifiers.form.length import soft_overlong as server_soft_overlong
from assay.reward_server.verifiers.form.repetition import repeated_share
from assay.trainer.algos.aggregation import aggregate
from assay.trainer.algos.gae import decoupled_gae, gae, length_adaptive_lambda
from assay.trainer.algos.policy_losses import ppo_token_losses
from assay.trainer.algos.shaping import (
    cosine_length_reward,
    ngram_repetition_penalty,
    soft_overlong,
)
from assay.trainer.algos.value_losses import ValueBins
from golden.checking import plain
from golden.functions import FUNCTIONS


@pytest.mark.parametrize(
    ("function", "inputs", "expected"),
    [
        # VC-PPO's decoupling on four tokens
        (
            "decoupled_gae",
            {"rewards": [0, 0, 0, 1], "values": [0.2, 0.4, 0.5, 0.7], "lam_actor": 0.95}
            | {"lam_critic": 1.0},
            [[0.732712, 0.56075, 0.485, 0.3], [1, 1, 1, 1]],
        ),
        (
            "gae",
            {"rewards": [0, 0, 0, 1], "values": [0.2, 0.4, 0.5, 0.7], "lam": 1.0},
            [0.8, 0.6, 0.5, 0.3],
        ),
        # T-PPO's EGAE on the same tokens, cut
        ("egae_truncated", {"values": [0.2, 0.4, 0.5, 0.7], "lam": 0.95}, [0.4755, 0.29, 0.2, 0]),
        # process rewards of code lines: two right, two wrong, and the program fails
        (
            "prm_dense_line_rewards",
            {"line_scores": [1, 1, -1, -1], "passed": False, "lam_fail": 0.25, "lam_pass": 0.025},
            [0.0625, 0.0625, -0.0625, -0.0625],
        ),
        # FIRE's first token among the four likeliest at temperature 30
        (
            "fire_first_token_probs",
            {"logits": [10, 8, 6, 4, 2], "temperature": 30, "top_k": 4},
            [0.275527, 0.257757, 0.241134, 0.225582, 0],
        ),
        # Pre-PPO picks from every domain
        (
            "pre_ppo_select",
            {"scores": [0.9, 0.1, 0.8, 0.3, 0.2, 0.95], "domains": list("aaabbb")}
            | {"fraction": 0.34},
            [1, 4],
        ),
        # a judge that likes what stands first is of no use, and says so
        (
            "debiased_win_probability",
            {"logit_a_forward": 2, "logit_b_forward": 0, "logit_a_reverse": 2}
            | {"logit_b_reverse": 0},
            [0.5, 0.761594],
        ),
    ],
)
def test_worked_examples(function: str, inputs: dict[str, object], expected: object) -> None:
    got = plain(FUNCTIONS[function](**inputs))
    assert torch.allclose(torch.tensor(got).double(), torch.tensor(expected).double(), atol=1e-6)


def test_one_long_and_one_short_response() -> None:
    """DAPO's token-level loss: the long response counts for its four tokens."""
    losses_BT = torch.tensor([[4.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    mask_BT = torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1]])
    assert aggregate(losses_BT, mask_BT, "token-mean").item() == pytest.approx(1.6)
    assert aggregate(losses_BT, mask_BT, "seq-mean-token-mean").item() == pytest.approx(2.5)
    assert aggregate(losses_BT, mask_BT, "seq-mean-token-sum").item() == pytest.approx(4.0)
    assert aggregate(losses_BT, mask_BT, "constant", max_length=4).item() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("length", "lam"),
    [
        (1, 0.0), (19, 0.0), (20, 0.0), (40, 0.5), (100, 0.8), (1000, 0.98), (8192, 0.997559),
        (16384, 0.998779),
    ],
)  # fmt: skip
def test_vapo_s_lambda(length: int, lam: float) -> None:
    got = length_adaptive_lambda(torch.tensor([length, 0]), 0.05)
    assert got.tolist() == [pytest.approx(lam, abs=1e-6), 0.0]
    floored = length_adaptive_lambda(torch.tensor(length), 0.05, floor=0.9)
    assert floored.item() == pytest.approx(max(lam, 0.9), abs=1e-6)


LENGTHS = [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (18432, -0.5), (20480, -1.0), (20481, -1.0)]


@pytest.mark.parametrize(("length", "punishment"), LENGTHS)
def test_dapo_s_soft_overlong_punishment(length: int, punishment: float) -> None:
    shape = {"max_length": 20480, "cache_length": 4096}
    assert soft_overlong(length, **shape).item() == pytest.approx(punishment)
    assert soft_overlong(length, **shape, factor=3.0).item() == pytest.approx(3 * punishment)
    assert server_soft_overlong(length, 20480, 4096) == pytest.approx(punishment)
    assert get_soft_overlong_punishment(20480, 4096)([[1] * length]) == [pytest.approx(punishment)]


def test_shapers_take_whole_batches() -> None:
    lengths_B, expected_B = zip(*LENGTHS, strict=True)
    got_B = soft_overlong(torch.tensor(lengths_B), max_length=20480, cache_length=4096)
    assert got_B.tolist() == pytest.approx(list(expected_B))
    correct_B = torch.tensor([True, False, True, False, True, False])
    rewards_B = cosine_length_reward(torch.tensor(lengths_B), correct_B, max_length=20480)
    for length, correct, reward in zip(lengths_B, correct_B, rewards_B, strict=True):
        one = cosine_length_reward(length, bool(correct), max_length=20480)
        assert one == reward
    for wrong in (0, 20481):
        with pytest.raises(ValueError, match="between 1 and max_length = 20480"):
            soft_overlong(3, max_length=20480, cache_length=wrong)
    with pytest.raises(ValueError, match="n of at least 1"):
        ngram_repetition_penalty([1, 2], 0, -1.0)


@pytest.mark.parametrize("length", [0, 1, 250, 983, 984, 2000])
def test_cosine_and_repetition_are_the_reward_server_s(length: int) -> None:
    settings = {"max_length": 1000, "exceed": -10.0, "margin": 16}
    spans = {True: (0.5, 1.0), False: (-0.5, -1.0)}
    for correct, (end, start) in spans.items():
        mine = cosine_length_reward(
            length, correct, correct_range=(0.5, 1.0), wrong_range=(-1.0, -0.5), **settings
        )
        server = cosine(length, 1000, (end, start), exceed=-10.0, margin=16)
        assert mine.item() == pytest.approx(server)
    tokens = [(n * n) % 7 for n in range(length % 100)]
    for n in (1, 2, 5):
        penalty = ngram_repetition_penalty(tokens, n, -2.0)
        assert penalty == pytest.approx(-2.0 * repeated_share(tokens, n))


def test_a_signal_at_the_end_fades_unless_lambda_is_one() -> None:
    """VC-PPO's reward-signal decay: 0.95^999 = 5.6e-23 of the reward reaches the first token."""
    rewards_BT = torch.zeros(1, 1000)
    rewards_BT[0, -1] = 1
    ones = torch.ones(1, 1000)
    zeros = torch.zeros(1, 1000, dtype=torch.float64)
    first = gae(rewards_BT, zeros, ones, lam=0.95)[0, 0].item()
    assert first == pytest.approx(5.6e-23, rel=0.01)
    assert gae(rewards_BT, zeros, ones, lam=1.0)[0, 0] == 1
    _, coupled = decoupled_gae(rewards_BT, zeros, ones, lam_actor=0.95, lam_critic=0.95)
    _, decoupled = decoupled_gae(rewards_BT, zeros, ones, lam_actor=0.95, lam_critic=1.0)
    assert coupled[0, 0].item() < 1e-20
    assert (decoupled == 1).all()


@pytest.mark.parametrize(("clip_high", "most"), [(0.2, 0.012), (0.28, 0.0128)])
def test_how_far_a_rare_token_can_rise(clip_high: float, most: float) -> None:
    """DAPO's example: with 0.2 a probability of 0.01 can rise to 0.012 only; past it, no push."""
    old = torch.tensor([[0.01]], dtype=torch.float64).log()
    for factor, pushed in ((0.999, True), (1.001, False)):
        new = torch.tensor([[most * factor]], dtype=torch.float64).log().requires_grad_(True)
        found = ppo_token_losses(new - old, torch.ones(1, 1), clip_low=0.2, clip_high=clip_high)
        (slope,) = torch.autograd.grad(found.losses_BT.sum(), new)
        assert bool(slope != 0) is pushed
        assert bool(found.clipped_high_BT) is not pushed


def test_a_ratio_that_ran_away_costs_ten_advantages_at_most() -> None:
    """DAPO's dual clip with c = 10, on a bad token that became a hundred times likelier."""
    run_away = torch.tensor([[math.log(100.0)]])
    found = ppo_token_losses(
        run_away, torch.tensor([[-2.0]]), clip_low=0.2, clip_high=0.28, dual_clip=10.0
    )
    assert found.losses_BT.item() == pytest.approx(20.0)
    assert found.dual_clipped_BT.item()
    assert not found.clipped_high_BT.item()


def test_two_bins_by_hand() -> None:
    bins = ValueBins(-1.0, 1.0, 5)
    assert bins.width == 0.5
    assert bins.two_hot(torch.tensor([0.1])).tolist() == [pytest.approx([0, 0, 0.8, 0.2, 0])]
    assert bins.expectation(torch.zeros(1, 5)).item() == pytest.approx(0.0)
    far = torch.tensor([[0.0, 0.0, 0.0, 0.0, 60.0]])
    assert bins.expectation(far).item() == pytest.approx(1.0)
