"""B-Coder's conservative Bellman operator (arXiv 2310.03173): values of the likeliest tokens,
learnt from whatever was written."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.algos.value_losses import greedy_gaps
from assay.trainer.core.batch import critic_advantages
from assay.trainer.methods.critic.conservative import GAPS, Conservative
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.objective import AdvantageConfig, CriticConfig
from golden.batches import batch_of, plain_rows, row, tensor

LENGTH, VOCABULARY = 4, 3
Prefix = tuple[int, ...]


def targets(
    rewards: list[float], values: list[float], gaps: torch.Tensor, *, gamma: float, lam: float
) -> torch.Tensor:
    """The critic's of one response, through the hook and the batch of a step."""
    method = MethodSettings(
        advantage=AdvantageConfig(estimator="gae", gamma=gamma),
        critic=CriticConfig(lam=lam, conservative=1.0),
    )
    own = {"values": row(values), GAPS: gaps[None], "rewards": tensor([sum(rewards)])}
    batch = batch_of(plain_rows(1, LENGTH), **own)
    return critic_advantages(batch, method, [Conservative(Config(method=method))])[1][0]


def worlds(seed: int, gamma: float) -> tuple[dict[Prefix, float], dict[Prefix, float]]:
    """Rewards of whole responses, and what each beginning is worth at best."""
    dice = random.Random(seed)
    rewards = {
        whole: dice.uniform(-1, 1) for whole in itertools.product(range(VOCABULARY), repeat=LENGTH)
    }
    best = dict(rewards)
    for length in reversed(range(LENGTH)):
        ends = length + 1 == LENGTH
        for prefix in itertools.product(range(VOCABULARY), repeat=length):
            after = (best[(*prefix, token)] for token in range(VOCABULARY))
            best[prefix] = max(after) * (1.0 if ends else gamma)
    return rewards, best


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(0, VOCABULARY - 1), min_size=LENGTH, max_size=LENGTH),
    st.sampled_from([1.0, 0.9]),
    st.floats(0.1, 3.0),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_where_logits_are_worths_any_response_says_what_the_likeliest_tokens_earn(
    seed: int, response: list[int], gamma: float, alpha: float, lam: float
) -> None:
    """The operator has one fixed point, and it is met on good responses and on bad ones alike."""
    rewards, best = worlds(seed, gamma)
    prefixes = [tuple(response[:n]) for n in range(LENGTH)]
    worth = [
        [
            best[(*prefix, token)] * (1.0 if len(prefix) + 1 == LENGTH else gamma)
            for token in range(VOCABULARY)
        ]
        for prefix in prefixes
    ]
    gaps = greedy_gaps(tensor(worth) / alpha, torch.tensor(response), temperature=alpha).double()
    values = [best[prefix] for prefix in prefixes]
    earned = [0.0] * (LENGTH - 1) + [rewards[tuple(response)]]
    found = targets(earned, values, gaps, gamma=gamma, lam=lam)
    torch.testing.assert_close(found, tensor(values), rtol=1e-4, atol=1e-5)


@given(
    st.lists(
        st.lists(st.floats(-20, 20), min_size=VOCABULARY, max_size=VOCABULARY),
        min_size=LENGTH,
        max_size=LENGTH,
    ),
    st.floats(-50, 50),
    st.floats(0.1, 3.0),
)
def test_gaps_are_of_differences_of_logits_and_the_likeliest_tokens_have_none(
    logits: list[list[float]], shift: float, alpha: float
) -> None:
    told = torch.tensor(logits)
    for tokens in itertools.product(range(VOCABULARY), repeat=LENGTH):
        gaps = greedy_gaps(told, torch.tensor(tokens), temperature=alpha)
        assert bool((gaps >= 0).all())
        moved = greedy_gaps(told + shift, torch.tensor(tokens), temperature=alpha)
        torch.testing.assert_close(moved, gaps, rtol=1e-4, atol=1e-4)
        of_logps = greedy_gaps(told.log_softmax(dim=-1), torch.tensor(tokens), temperature=alpha)
        torch.testing.assert_close(of_logps, gaps, rtol=1e-4, atol=1e-4)
    likeliest = told.argmax(dim=-1)
    assert not greedy_gaps(told, likeliest, temperature=alpha).any()


def test_behind_the_likeliest_tokens_targets_are_those_of_any_critic() -> None:
    gaps = torch.zeros(LENGTH, dtype=torch.float64)
    values = [0.2, 0.4, 0.5, 0.7]
    found = targets([0.0, 0.0, 0.0, 1.0], values, gaps, gamma=1.0, lam=0.0)
    assert found.tolist() == pytest.approx([0.4, 0.5, 0.7, 1.0])
