"""As reference.py, for methods of a formula or two."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from golden.reference import Vector, mean, softmax


def medium_difficulty(correct: list[int | None]) -> float:
    """Observe-R1 (arXiv 2505.12432): largest at one half, 0 where all or none are right."""
    judged = [float(one) for one in correct if one is not None]
    return 1 - (2 * mean(judged) - 1) ** 2 if judged else 1.0


def concise_bonus(length: int, correct: bool, below: int, bonus: float) -> float:
    """Observe-R1 (arXiv 2505.12432)."""
    return bonus if correct and length < below else 0.0


def calibrated_length_penalty(
    length: int, pass_rate: float, least: int, most: int, factor: float
) -> float:
    """TRAAC (arXiv 2510.01581)."""
    budget = pass_rate * least + (1 - pass_rate) * most
    return 0.0 if length <= budget else factor * (1 - length / budget)


def self_reference(
    responses: list[list[int]], rewards: Vector, correct: list[bool], share: float, cuts: int
) -> Vector:
    """SRPO (arXiv 2511.15605) by single tokens and pairs of them."""

    def counts(ids: list[int]) -> dict[tuple[int, ...], int]:
        found: dict[tuple[int, ...], int] = {}
        for gram in [*((one,) for one in ids), *itertools.pairwise(ids)]:
            found[gram] = found.get(gram, 0) + 1
        return found

    def cosine(one: dict[tuple[int, ...], int], two: dict[tuple[int, ...], int]) -> float:
        sizes = [sum(n * n for n in part.values()) for part in (one, two)]
        shared = sum(n * two.get(gram, 0) for gram, n in one.items())
        return shared / math.sqrt(sizes[0] * sizes[1]) if all(sizes) else 0.0

    def alike(one: list[int], two: list[int]) -> float:
        return mean(
            [
                cosine(*(counts(ids[: math.ceil(len(ids) * k / cuts)]) for ids in (one, two)))
                for k in range(1, cuts + 1)
            ]
        )

    earned = []
    for n, ids in enumerate(responses):
        others = [m for m in range(len(responses)) if correct[m]]
        if correct[n] or not others:
            earned.append(0.0)
            continue
        best = max(others, key=lambda m: alike(ids, responses[m]))
        gap = max(0.0, rewards[best] - rewards[n])
        earned.append(share * alike(ids, responses[best]) * gap)
    return earned


def token_budget(lengths: list[int | None], group_size: int, prompts: int, tokens: int) -> Vector:
    """C3PO (arXiv 2506.14731): the tokens of each step until all responses trained."""
    groups = [lengths[n : n + group_size] for n in range(0, len(lengths), group_size)]
    held: list[list[int]] = []
    steps = []
    while groups or any(held):
        while groups and len(held) < prompts:
            held.append([one for one in groups.pop(0) if one is not None])
        spent, full = 0, False
        for group in held:
            while group and not full:
                full = spent > 0 and spent + group[0] > tokens
                spent += 0 if full else group.pop(0)
        held = [group for group in held if group]
        steps.append(float(spent))
    return steps


def progress_contributions(estimates: Vector, step_ends: list[int], reward: float) -> Vector:
    """SPA-RL (arXiv 2505.20732), the sum made exact."""
    places = [t for t, ends in enumerate(step_ends) if ends]
    gap = reward - sum(estimates[t] for t in places)
    return [estimates[t] + gap / len(places) if t in places else 0.0 for t in range(len(estimates))]


def ridge(features: list[Vector], targets: Vector, strength: float) -> Vector:
    """The normal equations, by elimination."""
    size = len(features[0])
    rows = [
        [sum(x[i] * x[j] for x in features) + strength * (i == j) for j in range(size)]
        + [sum(x[i] * y for x, y in zip(features, targets, strict=True))]
        for i in range(size)
    ]
    for i in range(size):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(size):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


def progress_estimates(
    states: list[list[Vector]], rewards: Vector, asked: list[Vector], strength: float
) -> Vector:
    """SPA-RL (arXiv 2505.20732): what a ridge on sums of states says of single steps."""
    sums = [
        [sum(column) for column in zip(*[[*h, 1.0] for h in row], strict=True)] for row in states
    ]
    weights = ridge(sums, rewards, strength)
    return [sum(w * x for w, x in zip(weights, [*h, 1.0], strict=True)) for h in asked]


def step_class_loss(logits: list[Vector], labels: Vector, weights: Vector) -> float:
    """Stop Regressing (arXiv 2403.03950) for a process reward model: two-hot classes of scores."""
    total = 0.0
    for row, label, weight in zip(logits, labels, weights, strict=True):
        place = (label + 1) / 2 * (len(row) - 1)
        below = min(int(place), len(row) - 2)
        share = place - below
        log_sum = math.log(sum(math.exp(value) for value in row))
        told = (1 - share) * row[below] + share * row[below + 1]
        total += weight * (log_sum - told)
    return total / sum(weights)


def conservative_targets(
    steps: list[tuple[Vector, int, float]], reward: float, alpha: float, gamma: float, lam: float
) -> Vector:
    """B-Coder (arXiv 2310.03173), equations 7 and 12, backwards; lam = 0 is one step ahead."""
    found, ahead, after = [], 0.0, 0.0
    for logits, token, value in reversed(steps):
        gap = alpha * (max(logits) - logits[token])
        earned = gap + (0.0 if found else reward)
        after = earned + gamma * ((1 - lam) * ahead + lam * after)
        ahead = value
        found.append(after)
    return found[::-1]


def supervision_chance(
    norm: float, warmup_norm: float, gamma: float, kl: float, brake: float
) -> float:
    """SASR (arXiv 2505.13026), by odds."""
    if not norm:
        return 0.0
    return 1 / (1 + gamma * (warmup_norm / norm) / (1 + brake * kl))


def recap_weights(mean_rewards: list[Vector], decay: float, tau: float) -> Vector:
    """RECAP (arXiv 2510.21978) over steps of tasks: moving means and variances by their sums."""
    scores = []
    for rewards in zip(*mean_rewards, strict=True):
        shares = [
            decay ** len(rewards[1:]),
            *((1 - decay) * decay**n for n in range(len(rewards) - 1)),
        ]
        shares = [shares[0], *reversed(shares[1:])]
        before = [shares[0] / decay, *(share / decay for share in shares[1:-1])]
        now = sum(share * reward for share, reward in zip(shares, rewards, strict=True))
        last = sum(share * reward for share, reward in zip(before, rewards, strict=False))
        variance = sum(
            share * (reward - now) ** 2 for share, reward in zip(shares, rewards, strict=True)
        )
        scores.append((variance - (now - last)) / tau)
    return softmax(scores)


def mixture_scores(
    weights: list[Vector], scores: Vector, asked: list[Vector], quadratic: bool, strength: float
) -> Vector:
    """MoDoMoDo (arXiv 2505.24871): the scores of weights by a surrogate of runs."""

    def features(w: Vector) -> Vector:
        products = [a * b for n, a in enumerate(w) for b in w[n:]]
        return products if quadratic else w

    middle = mean(scores)
    found = ridge([features(w) for w in weights], [s - middle for s in scores], strength)
    return [middle + sum(c * x for c, x in zip(found, features(w), strict=True)) for w in asked]


CASES: list[tuple[Callable[..., Any], str, dict[str, Any]]] = [
    (
        step_class_loss,
        "Stop Regressing, arXiv 2403.03950",
        {
            "logits": [[0.0, 1.0, 2.0, -1.0], [0.5, 0.5, -0.5, 0.0], [1.0, 0.0, 0.0, 3.0]],
            "labels": [1.0, 0.0, -1.0],
            "weights": [1.0, 0.5, 2.0],
        },
    ),
    *(
        (
            conservative_targets,
            "B-Coder, arXiv 2310.03173",
            {
                "steps": [
                    [[1.0, 3.0, 2.0], 2, 0.5],
                    [[0.5, -0.5, 0.25], 0, -0.25],
                    [[2.0, 2.5, -1.0], 2, 1.0],
                ],
                "reward": -0.25,
                "alpha": alpha,
                "gamma": 0.5,
                "lam": lam,
            },
        )
        for alpha, lam in ((1.0, 0.0), (0.5, 1.0), (2.0, 0.75))
    ),
]
