"""What the papers say of judges, in small: directions, not figures (they print none for these).

    offsets    an offset of each prompt in what a judge sees of a response (noise that all of its
               responses share) spoils the comparison of Bradley-Terry rewards across prompts, and
               not that of win probabilities against an anchor (arXiv 2504.04950)
    orders     a judge that learned from labels with a position bias, each pair in one order, is
               wrong more often than one that saw, and is asked, both orders (the same paper)
    labels     labels of a program's lines by binary search over sampled completions match an exact
               oracle where K = 20 completions per prefix are drawn and one of five passes
               (arXiv 2410.17621)

The models are small networks on drawn features, trained with the losses that `assay train-rm` uses.
The programs are lines of arithmetic that are run; which prefix can still reach the target is known
exactly, by dynamic programming.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from assay.genrm.steps import search_prefix
from assay.trainer.recipes.reward_model.objectives import pairwise_loss

SEEDS = range(5)
FEATURES = 8


# Offsets and orders: responses as drawn features.


@dataclass(frozen=True, slots=True)
class World:
    """Responses to P prompts, two to each: how good they are, and what a judge sees of them."""

    quality_P2: Tensor
    seen_P2F: Tensor


def draw_world(
    prompts: int, offset: float, seed: int, mixing_FF: Tensor, *, anchored: bool = False
) -> World:
    """Qualities are normal; what is seen is quality with the prompt's offset, and a little noise.

    Args:
        prompts: how many.
        offset: standard deviation of what the responses of a prompt share.
        seed: of the draws.
        mixing_FF: see `mixing`.
        anchored: the second response of every prompt is an anchor of quality 0.
    """
    dice = torch.Generator().manual_seed(seed)
    quality_P2 = torch.randn(prompts, 2, generator=dice)
    if anchored:
        quality_P2[:, 1] = 0
    hidden = 0.3 * torch.randn(prompts, 2, FEATURES, generator=dice)
    hidden[..., 0] += quality_P2 + offset * torch.randn(prompts, 1, generator=dice)
    return World(quality_P2, hidden @ mixing_FF)


def mixing(seed: int) -> Tensor:
    """How the hidden features turn into seen ones; no feature is seen on its own."""
    dice = torch.Generator().manual_seed(1000 + seed)
    return torch.randn(FEATURES, FEATURES, generator=dice) / FEATURES**0.5


def _network(inputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 32), nn.Tanh(), nn.Linear(32, 1))


def _loss_of_two(margins_BR: Tensor) -> Tensor:
    """The judge's loss where it can say nothing but its two verdicts."""
    return pairwise_loss(margins_BR, torch.zeros_like(margins_BR))


def _fit(network: nn.Module, loss_of: Callable[[], Tensor], steps: int) -> None:
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()


def _agreement(scores: Tensor, quality: Tensor) -> float:
    """How often, of neighbours, the better one scores higher."""
    return ((scores[1:] > scores[:-1]) == (quality[1:] > quality[:-1])).float().mean().item()


def cross_prompt_accuracy(
    offset: float, seed: int, *, prompts: int = 1000, steps: int = 150
) -> tuple[float, float]:
    """Accuracy over responses of different prompts: Bradley-Terry's rewards, and win probabilities.

    Both judges learn from the same pairs within prompts. Then each compares responses of different
    prompts whose anchors are equally good: by the reward, and by the chance to beat the anchor.
    """
    torch.manual_seed(seed)
    mixing_FF = mixing(seed)
    train = draw_world(prompts, offset, seed, mixing_FF)
    better_P = (train.quality_P2[:, 0] > train.quality_P2[:, 1]).float() * 2 - 1
    reward, compare = _network(FEATURES), _network(2 * FEATURES)

    def bradley_terry() -> Tensor:
        rewards_P2 = reward(train.seen_P2F).squeeze(-1)
        return -nn.functional.logsigmoid(better_P * (rewards_P2[:, 0] - rewards_P2[:, 1])).mean()

    def pairwise() -> Tensor:
        margins_P2 = _both_orders(compare, train.seen_P2F)
        return _loss_of_two(margins_P2 * better_P[:, None])

    _fit(reward, bradley_terry, steps)
    _fit(compare, pairwise, steps)
    test = draw_world(prompts, offset, 10_000 + seed, mixing_FF, anchored=True)
    with torch.inference_mode():
        rewards_P = reward(test.seen_P2F[:, 0]).squeeze(-1)
        wins_P = torch.sigmoid(_both_orders(compare, test.seen_P2F)).mean(-1)
    quality_P = test.quality_P2[:, 0]
    return _agreement(rewards_P, quality_P), _agreement(wins_P, quality_P)


def _both_orders(compare: nn.Module, seen_P2F: Tensor) -> Tensor:
    """Margins for the first response, shown first and shown second, [P, 2]."""
    straight = compare(seen_P2F.flatten(1)).squeeze(-1)
    turned = compare(seen_P2F.flip(1).flatten(1)).squeeze(-1)
    return torch.stack([straight, -turned], dim=-1)


def order_accuracy(
    bias: float, seed: int, *, prompts: int = 1000, steps: int = 150
) -> tuple[float, float]:
    """Accuracy of a judge of one order, and of one of both orders, under a position bias.

    Labels are biased: with the chance `bias` the annotator names what is shown first. One judge
    learns each pair as it was shown and is asked in one order; the other learns it in both orders
    and is asked in both.
    """
    torch.manual_seed(seed)
    mixing_FF = mixing(seed)
    train = draw_world(prompts, 0.0, seed, mixing_FF)
    dice = torch.Generator().manual_seed(seed)
    first_P = train.quality_P2[:, 0] > train.quality_P2[:, 1]
    first_P = first_P | (torch.rand(prompts, generator=dice) < bias)
    label_P = first_P.float() * 2 - 1
    one, both = _network(2 * FEATURES), _network(2 * FEATURES)
    _fit(
        one,
        lambda: _loss_of_two((one(train.seen_P2F.flatten(1)).squeeze(-1) * label_P)[:, None]),
        steps,
    )
    _fit(
        both,
        lambda: _loss_of_two(_both_orders(both, train.seen_P2F) * label_P[:, None]),
        steps,
    )
    test = draw_world(prompts, 0.0, 10_000 + seed, mixing_FF)
    truth_P = test.quality_P2[:, 0] > test.quality_P2[:, 1]
    with torch.inference_mode():
        single_P = one(test.seen_P2F.flatten(1)).squeeze(-1) > 0
        win_P = torch.sigmoid(_both_orders(both, test.seen_P2F)).mean(-1) > 0.5
    return (single_P == truth_P).float().mean().item(), (win_P == truth_P).float().mean().item()


# Labels: programs whose feasible prefixes are known.

OPERATIONS: tuple[tuple[str, Callable[[int], int]], ...] = (
    ("x += 1", lambda x: x + 1),
    ("x -= 3", lambda x: x - 3),
    ("x *= 2", lambda x: x * 2),
    ("x //= 3", lambda x: x // 3),
)
LINES = 16
BOUND = 200


@cache
def reachable(value: int, lines: int, target: int) -> bool:
    """Whether some `lines` operations lead from a value to the target, within bounds."""
    if abs(value) > BOUND:
        return False
    if lines == 0:
        return value == target
    return any(reachable(change(value), lines - 1, target) for _, change in OPERATIONS)


def run_lines(program: Sequence[int]) -> int:
    """Runs a program: indices of operations, from x = 0."""
    value = 0
    for index in program:
        value = OPERATIONS[index][1](value)
    return value


@dataclass(frozen=True, slots=True)
class Task:
    """A program, the value it should reach, and its greatest feasible prefix."""

    program: tuple[int, ...]
    target: int
    feasible_lines: int


def draw_task(dice: random.Random) -> Task:
    """A program that goes wrong somewhere: from its first wrong line no way leads to the target."""
    while True:
        target = dice.randint(-BOUND // 4, BOUND // 4)
        program = tuple(dice.randrange(len(OPERATIONS)) for _ in range(LINES))
        able = [
            reachable(run_lines(program[:count]), LINES - count, target)
            for count in range(LINES + 1)
        ]
        if able[0]:
            return Task(program, target, max(count for count in range(LINES + 1) if able[count]))


def complete(task: Task, lines: int, skill: float, dice: random.Random) -> bool:
    """Whether one drawn completion of a prefix reaches the target.

    With the chance `skill` the policy knows what it does: every line it writes keeps the target
    within reach, where that can be. Otherwise it writes anything that does not pass.
    """
    if dice.random() >= skill:
        return False
    value = run_lines(task.program[:lines])
    for left in range(LINES - lines - 1, -1, -1):
        good = [
            change(value) for _, change in OPERATIONS if reachable(change(value), left, task.target)
        ]
        if not good:
            return False
        value = dice.choice(good)
    return value == task.target


def label_match(
    skill: float, completions: int, seed: int, *, programs: int = 200
) -> tuple[float, float]:
    """How often the searched prefix is the oracle's, and by how many lines it is off on average."""
    dice = random.Random(seed)
    exact, off = 0, 0
    for _ in range(programs):
        task = draw_task(dice)

        def feasible(lines: int, task: Task = task) -> bool:
            return any(complete(task, lines, skill, dice) for _ in range(completions))

        found, _ = search_prefix(LINES, feasible)
        exact += found == task.feasible_lines
        off += abs(found - task.feasible_lines)
    return exact / programs, off / programs


# The tables.


def _medians(measure: Callable[[int], tuple[float, float]]) -> tuple[float, float]:
    results = [measure(seed) for seed in SEEDS]
    return (
        statistics.median(result[0] for result in results),
        statistics.median(result[1] for result in results),
    )


def run() -> None:
    """Prints all three."""
    seeds = f"medians of {len(SEEDS)} seeds"
    print(f"\njudge-miniatures: accuracy across prompts, by the offset of each prompt; {seeds}")
    print(f"{'offset':>8}{'Bradley-Terry':>16}{'against an anchor':>20}")
    for offset in (0.0, 0.5, 1.0, 2.0, 4.0):
        rewards, wins = _medians(lambda seed, s=offset: cross_prompt_accuracy(s, seed))
        print(f"{offset:>8}{rewards:>16.3f}{wins:>20.3f}")
    print(f"\njudge-miniatures: accuracy, by the labels' position bias; {seeds}")
    print(f"{'bias':>8}{'one order':>16}{'both orders':>20}")
    for bias in (0.0, 0.2, 0.4, 0.6):
        one, both = _medians(lambda seed, b=bias: order_accuracy(b, seed))
        print(f"{bias:>8}{one:>16.3f}{both:>20.3f}")
    print(f"\njudge-miniatures: labels of {LINES} lines against the oracle; {seeds}")
    print(f"{'passes':>8}{'K':>6}{'equal':>10}{'lines off':>12}")
    for skill in (0.05, 0.1, 0.2, 0.5):
        for completions in (5, 20, 50):
            equal, off = _medians(lambda seed, q=skill, k=completions: label_match(q, k, seed))
            print(f"{skill:>8}{completions:>6}{equal:>10.3f}{off:>12.2f}")
