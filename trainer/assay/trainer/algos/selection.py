"""Which prompts and responses to train on: small kernels over logged numbers.

    prof_filter           PROF (arXiv 2509.03403): responses whose steps agree with their outcome
    pre_ppo_select        Pre-PPO (arXiv 2503.22230): prompts that a reward model finds hard
    lim_score             LIMR (arXiv 2502.11886): prompts that learn as the average does
    dump_domain_weights   DUMP (arXiv 2504.09710): domains by an upper confidence bound
    within_budget         C3PO (arXiv 2506.14731): whole responses up to a number of tokens
    recap_weights         RECAP (arXiv 2510.21978): objectives that fall back or waver
    supervision_chance    SASR (arXiv 2505.13026): supervised steps while they still teach
    dads_domain_weights   RuleReasoner's DADS (arXiv 2506.08672): domains below their target
    accepted_best         ReST-RL (arXiv 2508.19576): the response of a group to start from
    exponential_weights   ReST-RL: how often its states are started from

Differences from the papers:
1. PROF's counts: as even as the two sides allow, an odd one goes to the incorrect. [derivation]
2. Pre-PPO's z-score uses the std without Bessel's correction. Prompts of equal z-scores, as most
are
   with a verifier of 0 and 1, come in the order that is given. [derivation]
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate

import torch


def prof_filter(
    correct: Sequence[bool], prm_mean: Sequence[float], keep: int
) -> tuple[list[int], list[int]]:
    """Which responses of a group to train on: PROF (arXiv 2509.03403).

    Correct responses with the lowest mean step reward (`prm_mean`) go, and incorrect ones with the
    highest, so that `keep` stay and both sides are as even as possible. The process rewards never
    enter the gradient.

    Returns:
        Places kept and places dropped, each ascending.

    Raises:
        ValueError: keep is out of range, or the lengths differ.
    """
    if len(correct) != len(prm_mean) or not 0 <= keep <= len(correct):
        raise ValueError(f"cannot keep {keep} of {len(correct)} responses ({len(prm_mean)} means)")
    right = sorted((i for i, yes in enumerate(correct) if yes), key=lambda i: -prm_mean[i])
    wrong = sorted((i for i, yes in enumerate(correct) if not yes), key=lambda i: prm_mean[i])
    from_right = max(min(len(right), keep // 2), keep - len(wrong))
    kept = {*right[:from_right], *wrong[: keep - from_right]}
    return sorted(kept), [i for i in range(len(correct)) if i not in kept]


def pre_ppo_select(
    scores: Sequence[float],
    domains: Sequence[str],
    fraction: float,
    *,
    ties: Sequence[int] | None = None,
) -> list[int]:
    """The prompts whose responses score lowest within their domain: Pre-PPO (arXiv 2503.22230).

    z_i = (s_i - mean of its domain) / std of its domain. [derivation] The scores are a reward
    model's, of the present policy's responses. `fraction` in (0, 1] is rounded down to at least one
    prompt; `ties` ranks prompts of equal z, by default by place.

    Returns:
        Places, the lowest z first.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for place, domain in enumerate(domains):
        members[domain].append(place)
    z = [0.0] * len(scores)
    for places in members.values():
        own = torch.tensor([scores[i] for i in places], dtype=torch.float64)
        deviation = own.std(correction=0).clamp(min=1e-12)
        for place, value in zip(places, ((own - own.mean()) / deviation).tolist(), strict=True):
            z[place] = value
    count = min(len(scores), max(1, math.floor(fraction * len(scores) + 1e-9)))
    ranks = range(len(scores)) if ties is None else ties
    return sorted(range(len(scores)), key=lambda i: (z[i], ranks[i]))[:count]


def lim_score(trajectory_K: torch.Tensor, average_K: torch.Tensor) -> torch.Tensor:
    """1 - sum_k (r_k - mean_k)^2 / sum_k (1 - mean_k)^2: LIMR (arXiv 2502.11886).

    `trajectory_K` is a prompt's mean reward in each of K epochs, `average_K` the mean over all
    prompts. The result is 0-dim, at most 1; NaN where every mean is 1.
    """
    return 1 - (trajectory_K - average_K).square().sum() / (1 - average_K).square().sum()


def dump_domain_weights(
    mean_abs_advantage_D: torch.Tensor, counts_D: torch.Tensor, *, tau: float = 0.1
) -> torch.Tensor:
    """The softmax of UCB / tau: DUMP (arXiv 2504.09710).

    UCB_d = mean|A|_d + sqrt(2 ln(N + 1) / (n_d + 1)), where |A| is of each domain's latest samples,
    n_d counts the draws of a domain and N is their sum.
    """
    explore_D = (2 * torch.log(counts_D.sum() + 1.0) / (counts_D + 1)).sqrt()
    return torch.softmax((mean_abs_advantage_D + explore_D) / tau, dim=0)


def dads_domain_weights(
    mean_rewards_D: torch.Tensor, *, target: float = 1.0, tau: float = 0.5
) -> torch.Tensor:
    """The softmax of max(0, target - mean reward) / tau.

    RuleReasoner's domain-aware dynamic sampling (arXiv 2506.08672).
    """
    return torch.softmax((target - mean_rewards_D).clamp(min=0) / tau, dim=0)


def within_budget(lengths: Sequence[int], tokens: int) -> int:
    """How many of the first responses fit into so many tokens (C3PO, arXiv 2506.14731).

    It stops at the first that does not, so that what waits keeps its order; the very first is taken
    whatever its length.
    """
    fit = sum(spent <= tokens for spent in accumulate(lengths))
    return max(fit, min(1, len(lengths)))


def supervision_chance(
    norm: float, warmup_norm: float, *, gamma: float, kl: float = 0.0, brake: float = 0.0
) -> float:
    """The chance that a step is supervised: SASR (arXiv 2505.13026), a derivation.

    g / (g + gamma * warmup_norm) with g = norm (1 + brake * kl): 1 / (1 + gamma) where supervision
    still moves the policy as at first, more the farther the policy is from where it began. `norm`
    and `warmup_norm` are of gradients, at least 0; 0 where both are.
    """
    pull = norm * (1 + brake * kl)
    whole = pull + gamma * warmup_norm
    return pull / whole if whole else 0.0


def recap_weights(
    progress_D: torch.Tensor, instability_D: torch.Tensor, *, tau: float = 1.0
) -> torch.Tensor:
    """The softmax of (instability - progress) / tau: RECAP (arXiv 2510.21978), a derivation.

    Of each objective the slope and the variance of its mean reward over the latest steps.
    """
    return torch.softmax((instability_D - progress_D) / tau, dim=0)


def accepted_best(
    rewards: Sequence[float], *, least_std: float = 0.05, least_best: float = 0.9
) -> tuple[bool, int | None]:
    """Whether a group trains, and its response to start from: ReST-RL (arXiv 2508.19576).

    A group trains where its rewards deviate (the population's deviation) by `least_std` or more;
    the first of its best responses is started from where it also earned `least_best`. The defaults
    are those of the authors' code.
    """
    if len(rewards) < 2 or statistics.pstdev(rewards) < least_std:
        return False, None
    best = max(range(len(rewards)), key=lambda n: rewards[n])
    return True, best if rewards[best] >= least_best else None


def exponential_weights(count: int, *, alpha: float = 0.95) -> list[float]:
    """alpha^i / sum_j alpha^j of the states of a response, in order: ReST-RL (arXiv 2508.19576).

    `alpha` in (0, 1) is 0.95 in the authors' code: early states, with more to write, come oftener.
    """
    weights = [alpha**place for place in range(count)]
    return [weight / math.fsum(weights) for weight in weights]
