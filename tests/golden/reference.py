"""The golden functions once more, in plain Python without tensors, written from the formulas.

Slow and simple on purpose: sums are loops, and nothing is shared with the project's code. Other
tests compare with it on random inputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

Vector = list[float]
Matrix = list[Vector]


def mean(values: Vector) -> float:
    return sum(values) / len(values)


def variance(values: Vector, ddof: int = 1) -> float:
    centre = mean(values)
    return sum((value - centre) ** 2 for value in values) / (len(values) - ddof)


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def softmax(values: Vector) -> Vector:
    top = max(values)
    weights = [math.exp(value - top) for value in values]
    return [weight / sum(weights) for weight in weights]


def each(function: Callable[..., float], *matrices: Matrix) -> Matrix:
    """The function of the matrices' cells at each place."""
    return [
        [function(*cell) for cell in zip(*rows, strict=True)]
        for rows in zip(*matrices, strict=True)
    ]


def turn_independent_gae(
    rewards: Vector,
    values: Vector,
    mask: Vector,
    *,
    lam: float = 1.0,
    gamma: float = 1.0,
    bootstrap: float = 0.0,
) -> Vector:
    """PAG (arXiv 2506.10406), backwards; the bootstrap is the value after the last own token."""
    last = max((t for t, inside in enumerate(mask) if inside), default=-1)
    advantages = [0.0] * len(values)
    trace = 0.0
    for t in reversed(range(len(values))):
        inside = t + 1 < len(values) and bool(mask[t + 1])
        next_value = values[t + 1] if inside else bootstrap if t == last else 0.0
        trace = rewards[t] + gamma * next_value - values[t] + gamma * lam * trace * inside
        advantages[t] = trace if mask[t] else 0.0
    return advantages


def gae(
    rewards: Vector, values: Vector, lam: float, gamma: float = 1.0, bootstrap_value: float = 0.0
) -> Vector:
    """The definition: for each token the sum over all later deltas."""
    after = [*values[1:], bootstrap_value]
    deltas = [r + gamma * n - v for r, n, v in zip(rewards, after, values, strict=True)]
    return [
        sum((gamma * lam) ** k * delta for k, delta in enumerate(deltas[t:]))
        for t in range(len(deltas))
    ]


def decoupled_gae(
    rewards: Vector, values: Vector, lam_actor: float, lam_critic: float, gamma: float = 1.0
) -> Matrix:
    critic = gae(rewards, values, lam_critic, gamma)
    targets = [a + v for a, v in zip(critic, values, strict=True)]
    return [gae(rewards, values, lam_actor, gamma), targets]


def egae_truncated(values: Vector, lam: float, gamma: float = 1.0) -> Vector:
    return gae([0.0] * len(values), values, lam, gamma, bootstrap_value=values[-1])


def length_adaptive_lambda(length: float, alpha: float, floor: float = 0.0) -> float:
    return clip(1 - 1 / (alpha * length), floor, 1.0)


def kept(matrix: Matrix, mask: Matrix) -> Vector:
    """The unmasked cells."""
    return [
        x for xs, ms in zip(matrix, mask, strict=True) for x, m in zip(xs, ms, strict=True) if m
    ]


def explained_variance(values: Matrix, returns: Matrix, mask: Matrix) -> float:
    errors = each(lambda r, v: r - v, returns, values)
    return 1 - variance(kept(errors, mask)) / variance(kept(returns, mask))


def dr_grpo_advantage(rewards: list[float | None]) -> Vector:
    judged = [r for r in rewards if r is not None]
    return [0.0 if r is None or len(judged) < 2 else r - mean(judged) for r in rewards]


def group_advantage(rewards: list[float | None], eps: float, ddof: int = 1) -> Vector:
    judged = [r for r in rewards if r is not None]
    deviation = math.sqrt(variance(judged, ddof)) if len(judged) > 1 else 1.0
    return [a / (deviation + eps) for a in dr_grpo_advantage(rewards)]


def rloo_advantage(rewards: list[float | None]) -> Vector:
    advantages = []
    for place, reward in enumerate(rewards):
        others = [r for i, r in enumerate(rewards) if i != place and r is not None]
        advantages.append(0.0 if reward is None or not others else reward - mean(others))
    return advantages


def normalised(advantages: Matrix, mask: Matrix, keys: list[list[int]]) -> Matrix:
    def one(value: float, inside: float, key: int) -> float:
        own = [
            a
            for rows in zip(advantages, mask, keys, strict=True)
            for a, m, k in zip(*rows, strict=True)
            if m and k == key
        ]
        if not inside or len(own) < 2:
            return 0.0
        return (value - mean(own)) / math.sqrt(variance(own) + 1e-8)

    return each(one, advantages, mask, keys)


def role_advantage_normalisation(advantages: Matrix, mask: Matrix) -> Matrix:
    roles = []
    for inside in mask:
        turns, turn, before = [], 0, 0.0
        for m in inside:
            turn += bool(m) and not before
            before = m
            turns.append(turn % 2)
        roles.append(turns)
    return normalised(advantages, mask, roles)


def task_advantage_normalisation(advantages: Matrix, mask: Matrix, tasks: list[int]) -> Matrix:
    keys = [[task] * len(inside) for task, inside in zip(tasks, mask, strict=True)]
    return normalised(advantages, mask, keys)


def sigma_filter(advantages: Matrix, mask: Matrix, sigmas: float) -> Matrix:
    own = kept(advantages, mask)
    far = sigmas * math.sqrt(variance(own))
    return each(lambda a, m: a if m and abs(a - mean(own)) <= far else 0.0, advantages, mask)


def ppo_loss(ratio: float, a: float, low: float, high: float, dual: float | None) -> float:
    gain = min(ratio * a, clip(ratio, 1 - low, 1 + high) * a)
    if dual is not None and a < 0:
        gain = max(gain, dual * a)
    return -gain


def ppo_token_losses_dual_clip(
    *,
    logprobs: Matrix,
    old_logprobs: Matrix,
    advantages: Matrix,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
) -> Matrix:
    return each(
        lambda new, old, a: ppo_loss(
            math.exp(clip(new - old, -20, 20)), a, eps_low, eps_high, dual_clip
        ),
        logprobs,
        old_logprobs,
        advantages,
    )


def gspo_token_losses(
    *,
    logprobs: Matrix,
    old_logprobs: Matrix,
    mask: Matrix,
    advantages: Vector,
    eps_low: float,
    eps_high: float,
) -> Matrix:
    losses = []
    for new, old, inside, a in zip(logprobs, old_logprobs, mask, advantages, strict=True):
        difference = [n - o for n, o, m in zip(new, old, inside, strict=True) if m]
        ratio = math.exp(mean(difference))
        losses.append([m * ppo_loss(ratio, a, eps_low, eps_high, None) for m in inside])
    return losses


def cispo_token_losses(
    logprobs: Matrix, old_logprobs: Matrix, advantages: Matrix, eps_low: float, eps_high: float
) -> Matrix:
    return each(
        lambda new, old, a: -clip(math.exp(new - old), 1 - eps_low, 1 + eps_high) * a * new,
        logprobs,
        old_logprobs,
        advantages,
    )


def decoupled_ppo_token_losses(
    *,
    logprobs: Matrix,
    proximal_logprobs: Matrix,
    behaviour_logprobs: Matrix,
    advantages: Matrix,
    eps: float,
    cap: float | None = None,
) -> Matrix:
    return each(
        lambda new, near, drawn, a: (
            min(math.exp(near - drawn), math.inf if cap is None else cap)
            * ppo_loss(math.exp(new - near), a, eps, eps, None)
        ),
        logprobs,
        proximal_logprobs,
        behaviour_logprobs,
        advantages,
    )


def pre_clip_ratio(logprobs: Matrix, old_logprobs: Matrix, low: float, high: float) -> Matrix:
    return each(lambda new, old: clip(math.exp(new - old), low, high), logprobs, old_logprobs)


def importance_weights(
    trainer: Matrix,
    sampler: Matrix,
    cap: float,
    low: float = 0.0,
    way: str = "token-truncate",
) -> Matrix:
    ratios = each(lambda new, old: math.exp(new - old), trainer, sampler)
    if way.startswith("sequence"):
        ratios = [[math.prod(row)] * len(row) for row in ratios]
    if way.endswith("truncate"):
        return each(lambda ratio: clip(ratio, low, cap), ratios)
    return each(lambda ratio: ratio if low <= ratio <= cap else 0.0, ratios)


def aggregate_loss(losses: Matrix, mask: Matrix, mode: str, max_length: int | None = None) -> float:
    rows = [
        [x for x, m in zip(xs, ms, strict=True) if m]
        for xs, ms in zip(losses, mask, strict=True)
        if any(ms)
    ]
    if not rows:
        return 0.0
    match mode:
        case "token-mean":
            return mean([x for row in rows for x in row])
        case "seq-mean-token-mean":
            return mean([mean(row) for row in rows])
        case "seq-mean-token-sum":
            return mean([sum(row) for row in rows])
        case "constant":
            assert max_length is not None
            return mean([sum(row) / max_length for row in rows])
    raise ValueError(mode)


def positive_example_lm_loss(logprobs: Matrix, mask: Matrix, correct: Vector) -> float:
    inside = [[m * yes for m in ms] for ms, yes in zip(mask, correct, strict=True)]
    return aggregate_loss(each(lambda x: -x, logprobs), inside, "token-mean")


def kl_estimate(logprobs: Vector, ref_logprobs: Vector, estimator: str) -> Vector:
    form = {
        "k1": lambda x: x,
        "k2": lambda x: x * x / 2,
        "k3": lambda x: math.exp(-x) - 1 + x,
    }[estimator]
    return [form(new - ref) for new, ref in zip(logprobs, ref_logprobs, strict=True)]


def kl_coefficients_by_task(tasks: list[str], common: float, by_task: dict[str, float]) -> Vector:
    return [by_task.get(task, common) for task in tasks]


def entropy(logits: Vector) -> float:
    return -sum(p * math.log(p) for p in softmax(logits) if p)


def mean_entropy(logits: list[Matrix], mask: Matrix) -> float:
    return mean(kept([[entropy(one) for one in row] for row in logits], mask))


def mse_value_loss(values: Vector, returns: Vector) -> Vector:
    return [(v - r) ** 2 / 2 for v, r in zip(values, returns, strict=True)]


def clipped_value_loss(values: Vector, old_values: Vector, returns: Vector, clip: float) -> Vector:
    losses = []
    for value, old, target in zip(values, old_values, returns, strict=True):
        near = min(max(value, old - clip), old + clip)
        losses.append(max((value - target) ** 2, (near - target) ** 2) / 2)
    return losses


def hl_gauss(targets: Vector, low: float, high: float, bins: int, sigma_ratio: float) -> Matrix:
    width = (high - low) / (bins - 1)
    edges = [low + (i - 0.5) * width for i in range(bins + 1)]

    def below(edge: float, target: float) -> float:
        return math.erf((edge - target) / (sigma_ratio * width * math.sqrt(2))) / 2

    histograms = []
    for target in targets:
        inside = clip(target, low, high)
        marks = [below(edge, inside) for edge in edges]
        whole = marks[-1] - marks[0]
        histograms.append([(b - a) / whole for a, b in itertools.pairwise(marks)])
    return histograms


def two_hot(targets: Vector, low: float, high: float, bins: int) -> Matrix:
    histograms = []
    for target in targets:
        place = (clip(target, low, high) - low) / (high - low) * (bins - 1)
        left = min(int(place), bins - 2)
        histogram = [0.0] * bins
        histogram[left] = left + 1 - place
        histogram[left + 1] = place - left
        histograms.append(histogram)
    return histograms


def histogram_cross_entropy(logits: Matrix, probabilities: Matrix) -> Vector:
    return [
        -sum(p * math.log(q) for p, q in zip(target, softmax(guess), strict=True))
        for guess, target in zip(logits, probabilities, strict=True)
    ]


def soft_overlong(length: float, max_length: int, cache_length: int, factor: float = 1.0) -> float:
    """The three cases of equation 13."""
    if length <= max_length - cache_length:
        return 0.0
    if length <= max_length:
        return factor * ((max_length - cache_length) - length) / cache_length
    return -factor


def backward_reward(verdict: float, false_positive: float, false_negative: float) -> float:
    """The reward r of a verdict for which P(1 | truth) r1 + P(0 | truth) r0 = truth, solved.

    Cramer's rule on the two equations of the channel, for the truths 0 and 1.
    """
    accepted = [false_positive, 1 - false_negative]
    determinant = (1 - accepted[0]) * accepted[1] - (1 - accepted[1]) * accepted[0]
    rewards = [-accepted[0] / determinant, (1 - accepted[0]) / determinant]
    return rewards[int(verdict)]


def forward_weight(verdict: float, false_negative: float) -> float:
    """The two cases of theorem 2."""
    return false_negative if verdict else false_negative - 1


def appealed_reward(first: float, second: float, probability: float) -> float:
    """The value whose mean over being asked is the second opinion, where the rest earns `first`."""
    return (second - (1 - probability) * first) / probability


def cosine_length_reward(
    *,
    correct: bool,
    length: float,
    max_length: int,
    correct_range: Vector,
    wrong_range: Vector,
    exceed: float,
    margin: int,
) -> float:
    if length + margin >= max_length:
        return exceed
    at_zero = correct_range[1] if correct else wrong_range[0]
    at_full = correct_range[0] if correct else wrong_range[1]
    turn = math.cos(math.pi * length / max_length)
    return at_zero * (1 + turn) / 2 + at_full * (1 - turn) / 2


def ngram_repetition_penalty(tokens: list[int], n: int, max_penalty: float) -> float:
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return max_penalty * (1 - len(set(grams)) / len(grams)) if grams else 0.0


def process_advantages(
    step_rewards: Matrix, steps: Matrix, groups: list[int], eps: float
) -> Matrix:
    advantages = []
    for rewards, ends, group in zip(step_rewards, steps, groups, strict=True):
        own = [
            r
            for rs, es, g in zip(step_rewards, steps, groups, strict=True)
            for r, e in zip(rs, es, strict=True)
            if e and g == group
        ]
        if len(own) < 2:
            advantages.append([0.0] * len(rewards))
            continue
        scale = math.sqrt(variance(own)) + eps
        normal = [(r - mean(own)) / scale if e else 0.0 for r, e in zip(rewards, ends, strict=True)]
        advantages.append([sum(normal[t:]) for t in range(len(normal))])
    return advantages


def tango_step_advantages(
    outcome_rewards: Vector, steps: list[list[list[int]]], alpha: float
) -> Matrix:
    shares = [[verdict / len(one) for _, verdict in one] for one in steps]
    every = [share for one in shares for share in one]
    scale = math.sqrt(variance(every)) + 1e-6
    outcomes = group_advantage(list(outcome_rewards), 1e-6)
    return [
        [
            (1 - alpha) * outcome + alpha * sum((s - mean(every)) / scale for s in one[k:])
            for k in range(len(one))
        ]
        for outcome, one in zip(outcomes, shares, strict=True)
    ]


def prm_dense_line_rewards(
    line_scores: Vector, passed: bool, lam_fail: float, lam_pass: float
) -> Vector:
    lam = lam_pass if passed else lam_fail
    rewards = [lam * score / len(line_scores) for score in line_scores]
    return [*rewards[:-1], rewards[-1] + (1 if passed else 0)]


def prm_prefix_search(line_count: int, largest_feasible_prefix: int) -> list[int]:
    low, high, calls = 0, line_count, 0
    while low < high:
        middle = (low + high + 1) // 2
        calls += 1
        low, high = (middle, high) if middle <= largest_feasible_prefix else (low, middle - 1)
    return [low, calls]


def pag_turn_rewards(
    accuracies: list[int], judgements: list[str | None], alpha: float
) -> list[list[Any]]:
    turns: list[list[Any]] = []
    for attempt, accuracy in enumerate(accuracies):
        gain = accuracy - accuracies[attempt - 1] if attempt else 0
        turns.append(["policy", accuracy + alpha * gain])
        if attempt < len(judgements):
            truth = "correct" if accuracy else "wrong"
            turns.append(["verifier", 1.0 if judgements[attempt] == truth else 0.0])
    return turns


def debiased_win_probability(
    logit_a_forward: float, logit_b_forward: float, logit_a_reverse: float, logit_b_reverse: float
) -> Vector:
    forward = softmax([logit_a_forward, logit_b_forward])[0]
    reverse = softmax([logit_a_reverse, logit_b_reverse])[0]
    return [(forward + 1 - reverse) / 2, abs(forward - (1 - reverse))]


def prof_filter(correct: list[int], prm_mean: Vector, keep: int) -> list[list[int]]:
    """Drops one at a time from the larger side, of equal ones from the correct."""
    left = list(range(len(correct)))
    while len(left) > keep:
        right = [i for i in left if correct[i]]
        wrong = [i for i in left if not correct[i]]
        if len(right) >= len(wrong):
            left.remove(min(right, key=lambda i: (prm_mean[i], -i)))
        else:
            left.remove(max(wrong, key=lambda i: (prm_mean[i], i)))
    return [left, [i for i in range(len(correct)) if i not in left]]


def pre_ppo_select(scores: Vector, domains: list[str], fraction: float) -> list[int]:
    def z(place: int) -> float:
        own = [s for s, d in zip(scores, domains, strict=True) if d == domains[place]]
        return (scores[place] - mean(own)) / max(math.sqrt(variance(own, 0)), 1e-12)

    return sorted(range(len(scores)), key=z)[: max(1, int(fraction * len(scores) + 1e-9))]


def lim_score(trajectory: Vector, average: Vector) -> float:
    apart = sum((r - m) ** 2 for r, m in zip(trajectory, average, strict=True))
    return 1 - apart / sum((1 - m) ** 2 for m in average)


def dump_domain_weights(mean_abs_advantage: Vector, counts: Vector, tau: float) -> Vector:
    explore = [math.sqrt(2 * math.log(sum(counts) + 1) / (n + 1)) for n in counts]
    return softmax([(a + e) / tau for a, e in zip(mean_abs_advantage, explore, strict=True)])


def dads_domain_weights(mean_rewards: Vector, target: float, tau: float) -> Vector:
    return softmax([max(0.0, target - reward) / tau for reward in mean_rewards])


def fire_first_token_probs(logits: Vector, temperature: float, top_k: int) -> Vector:
    least = sorted(logits, reverse=True)[min(top_k, len(logits)) - 1]
    places = [i for i, logit in enumerate(logits) if logit >= least]
    chances = softmax([logits[i] / temperature for i in places])
    return [chances[places.index(i)] if i in places else 0.0 for i in range(len(logits))]


# Stored responses.


def log_ratio_sums(logprobs: Matrix, ref_logprobs: Matrix, mask: Matrix) -> Vector:
    kept = each(lambda new, old, on: (new - old) * on, logprobs, ref_logprobs, mask)
    return [sum(row) for row in kept]


def dpo_losses(
    *,
    chosen: Matrix,
    rejected: Matrix,
    ref_chosen: Matrix,
    ref_rejected: Matrix,
    chosen_mask: Matrix,
    rejected_mask: Matrix,
    beta: float,
) -> Vector:
    better = log_ratio_sums(chosen, ref_chosen, chosen_mask)
    worse = log_ratio_sums(rejected, ref_rejected, rejected_mask)
    ahead = [one - other for one, other in zip(better, worse, strict=True)]
    return [math.log1p(math.exp(-beta * difference)) for difference in ahead]


def prdp_losses(
    *,
    first: Matrix,
    second: Matrix,
    ref_first: Matrix,
    ref_second: Matrix,
    rewards_first: Vector,
    rewards_second: Vector,
    beta: float,
) -> Vector:
    ones = each(lambda _value: 1.0, first), each(lambda _value: 1.0, second)
    sums = log_ratio_sums(first, ref_first, ones[0]), log_ratio_sums(second, ref_second, ones[1])
    rewards = zip(rewards_first, rewards_second, strict=True)
    return [
        ((one - other) - (r - q) / beta) ** 2
        for one, other, (r, q) in zip(*sums, rewards, strict=True)
    ]


def a_lol_losses(
    *,
    logprobs: Matrix,
    ref_logprobs: Matrix,
    advantages: Vector,
    mask: Matrix,
    clip_range: float,
    by_token: bool = False,
) -> Vector:
    """Of responses: the sum over their tokens."""
    losses = []
    sums = log_ratio_sums(logprobs, ref_logprobs, mask)
    for new, old, on, a, whole in zip(logprobs, ref_logprobs, mask, advantages, sums, strict=True):
        total = 0.0
        for n, o, keep in zip(new, old, on, strict=True):
            ratio = math.exp(n - o if by_token else whole)
            total -= keep * max(a, 0.0) * clip(ratio, 1 - clip_range, 1 + clip_range) * n
        losses.append(total)
    return losses


def direct_advantage_po(
    logprobs: Vector, ref_logprobs: Vector, advantages: Vector, step_ends: Vector, beta: float
) -> float:
    """Of a response whose tokens have these advantages: the sum over its steps."""
    total, ratio, advantage = 0.0, 0.0, 0.0
    last = len(logprobs) - 1
    for place, (new, old, a) in enumerate(zip(logprobs, ref_logprobs, advantages, strict=True)):
        ratio += new - old
        advantage += a
        if step_ends[place] or place == last:
            total += (beta * ratio - advantage) ** 2 / 2
            ratio, advantage = 0.0, 0.0
    return total
