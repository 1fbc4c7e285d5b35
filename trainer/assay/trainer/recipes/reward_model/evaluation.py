"""How good a judge is on held-out rows, by the forward pass of the training.

Pairs: accuracy is the share of pairs whose chosen response wins, ties half; by chance one half. A
pairwise judge's win probability is the mean over both orders; each order's own accuracy stands
beside it. Steps: since right ones are more frequent, balanced accuracy and AUC count, by chance one
half; plain accuracy stands beside the share of the more frequent label.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, TypeVar

import torch

from assay.kit.runs.bootstrap import Figure, bootstrap
from assay.kit.runs.stats import auc, calibration_error, wilson
from assay.trainer.engines.models import Loaded
from assay.trainer.recipes.reward_model.encoding import Example, Examples
from assay.trainer.recipes.reward_model.objectives import critique_loss
from assay.trainer.recipes.reward_model.trainers import (
    CritiqueCollator,
    PairCollator,
    StepCollator,
    pad_ids,
    pair_verdicts,
    step_margins,
    step_outputs,
    written_logits,
)

Advance = Callable[[int], None]
THRESHOLD = 0.5
AUC = "AUC"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RmEvaluation:
    """Figures of one evaluation."""

    # name to estimate; the first is what the kind is judged by, chance is one half
    figures: dict[str, Figure]
    # name to number: rows, prompts, and what else there is to know
    counts: dict[str, float] = field(default_factory=dict)

    @property
    def main(self) -> tuple[str, Figure]:
        """The main figure."""
        return next(iter(self.figures.items()))

    def to_json(self) -> dict[str, Any]:
        """For report.json."""
        return {
            "figures": {name: asdict(estimate) for name, estimate in self.figures.items()},
            "counts": self.counts,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RmEvaluation:
        """Inverse of `to_json`."""
        figures = {name: Figure(**parts) for name, parts in data["figures"].items()}
        return cls(figures, data["counts"])


def evaluate_pairwise(
    learner: Loaded, examples: Examples, batch_size: int, advance: Advance
) -> RmEvaluation:
    """Of a language model that names the better of two responses."""
    collate = PairCollator(learner.tokenizer.pad_token_id)

    masses: list[float] = []

    def chances(batch: Sequence[Example]) -> list[list[float]]:
        placed = _placed(learner, collate(batch))
        margins_BR, log_masses_BR = pair_verdicts(learner.model, placed)
        masses.extend(log_masses_BR.exp().flatten().tolist())
        return torch.sigmoid(margins_BR).tolist()

    def length(example: Example) -> int:
        return len(example["orders"][0])

    rows = _over(learner, examples.items, batch_size, chances, length=length, advance=advance)
    # By what stands first: the chosen response, or the other.
    orders = [
        dict(zip(example["signs"], values, strict=True))
        for example, values in zip(examples.items, rows, strict=True)
    ]
    wins = [statistics.fmean(values) for values in rows]
    groups = [example["group"] for example in examples.items]
    gaps = [abs(order[1] - order[-1]) for order in orders]
    agree = [(order[1] > THRESHOLD) == (order[-1] > THRESHOLD) for order in orders]
    first = [*(order[1] for order in orders), *(1 - order[-1] for order in orders)]
    return RmEvaluation(
        {
            "accuracy": _share([_won(win) for win in wins], groups),
            "chosen shown first": _share([_won(order[1]) for order in orders], groups),
            "chosen shown second": _share([_won(order[-1]) for order in orders], groups),
            "orders agree": _share([float(same) for same in agree], groups),
        },
        {
            **_of_pairs(examples),
            "mean order gap": statistics.fmean(gaps),
            "median verdict mass": statistics.median(masses),
            "chance of the first shown": statistics.fmean(first),
        },
    )


def evaluate_points(
    learner: Loaded, examples: Examples, batch_size: int, advance: Advance
) -> RmEvaluation:
    """Of a language model that says whether a response is right."""
    collate = PairCollator(learner.tokenizer.pad_token_id)
    masses: list[float] = []

    def chances(batch: Sequence[Example]) -> list[float]:
        placed = _placed(learner, collate(batch))
        margins_BR, log_masses_BR = pair_verdicts(learner.model, placed)
        masses.extend(log_masses_BR.exp().flatten().tolist())
        of_right = margins_BR * placed["signs"]  # of "right", whatever the label
        return torch.sigmoid(of_right).flatten().tolist()

    def length(example: Example) -> int:
        return len(example["orders"][0])

    values = _over(learner, examples.items, batch_size, chances, length=length, advance=advance)
    scored = [
        (value, example["signs"][0] > 0)
        for value, example in zip(values, examples.items, strict=True)
    ]
    groups = [example["group"] for example in examples.items]
    area = bootstrap(_by_group(scored, groups), auc)
    right = [float((value >= THRESHOLD) == label) for value, label in scored]
    labels = statistics.fmean(label for _, label in scored)
    error = calibration_error(scored)
    return RmEvaluation(
        {**({} if area is None else {AUC: area}), "accuracy": _share(right, groups)},
        {
            **_sizes(groups),
            "rule: the frequent label": max(labels, 1 - labels),
            "median verdict mass": statistics.median(masses),
            "calibration error": error or 0.0,
        },
    )


def _by_group(values: Sequence[T], groups: Sequence[str]) -> list[list[T]]:
    together: dict[str, list[T]] = {}
    for value, group in zip(values, groups, strict=True):
        together.setdefault(group, []).append(value)
    return list(together.values())


def evaluate_critiques(
    learner: Loaded, examples: Examples, batch_size: int, advance: Advance
) -> RmEvaluation:
    """Of a language model that writes critiques: whether it would close written ones as they do."""
    collate = CritiqueCollator(learner.tokenizer.pad_token_id)

    def measure(batch: Sequence[Example]) -> list[tuple[float, float]]:
        placed = _placed(learner, collate(batch))
        logits_BTV, margins_B = written_logits(learner.model, placed)
        losses = [
            critique_loss(logits_BTV[n : n + 1], placed["ids"][n : n + 1], one[None]).item()
            for n, one in enumerate(placed["written"])
        ]
        return list(zip(margins_B.tolist(), losses, strict=True))

    found = _over(learner, examples.items, batch_size, measure, length=_tokens, advance=advance)
    groups = [example["group"] for example in examples.items]
    tokens = [example["written"] for example in examples.items]
    total = math.fsum(loss * count for (_, loss), count in zip(found, tokens, strict=True))
    return RmEvaluation(
        {"closing verdict": _share([_won(margin, 0.0) for margin, _ in found], groups)},
        {**_sizes(groups), "loss of a token": total / sum(tokens)},
    )


def evaluate_preferences(
    learner: Loaded, examples: Examples, batch_size: int, advance: Advance
) -> RmEvaluation:
    """Of a scalar reward model."""
    pad = learner.tokenizer.pad_token_id
    texts = [
        {"ids": example[key]}
        for example in examples.items
        for key in ("chosen_ids", "rejected_ids")
    ]

    def rewards(batch: Sequence[Example]) -> list[float]:
        ids, mask = pad_ids([example["ids"] for example in batch], pad, left=False)
        device = learner.model.device
        out = learner.model(ids.to(device), attention_mask=mask.to(device), use_cache=False)
        return out.logits.squeeze(-1).float().tolist()

    values = _over(learner, texts, 2 * batch_size, rewards, length=_tokens, advance=advance)
    margins = [good - bad for good, bad in zip(values[::2], values[1::2], strict=True)]
    groups = [example["group"] for example in examples.items]
    won = [_won(margin, 0.0) for margin in margins]
    return RmEvaluation(
        {"accuracy": _share(won, groups)},
        {
            **_of_pairs(examples),
            "mean margin": statistics.fmean(margins),
            "deviation of rewards": statistics.pstdev(values),
        },
    )


@dataclass(frozen=True, slots=True)
class _Step:
    chance: float
    right: bool


def evaluate_steps(
    learner: Loaded, examples: Examples, batch_size: int, advance: Advance
) -> RmEvaluation:
    """Of a process reward model; neutral steps are left out."""
    collate = StepCollator(learner.tokenizer.pad_token_id)

    def chances(batch: Sequence[Example]) -> list[list[float]]:
        margins_S = step_margins(step_outputs(learner.model, _placed(learner, collate(batch))))
        flat = iter(torch.sigmoid(margins_S).tolist())
        return [[next(flat) for _ in example["places"]] for example in batch]

    rows = _over(learner, examples.items, batch_size, chances, length=_tokens, advance=advance)
    responses = []
    for example, values in zip(examples.items, rows, strict=True):
        pairs = zip(values, example["labels"], strict=True)
        steps = [_Step(chance, label > 0) for chance, label in pairs if label]
        responses.append((example["group"], steps))
    return _judge_steps([(group, steps) for group, steps in responses if steps])


def _judge_steps(responses: Sequence[tuple[str, Sequence[_Step]]]) -> RmEvaluation:
    ordered = sorted(responses, key=lambda response: response[0])
    clusters = [
        [step for _, steps in together for step in steps]
        for _, together in groupby(ordered, key=lambda response: response[0])
    ]
    steps = [step for cluster in clusters for step in cluster]
    figures = {
        "balanced accuracy": bootstrap(clusters, _balanced),
        AUC: bootstrap(clusters, lambda s: auc([(x.chance, x.right) for x in s])),
        "accuracy": bootstrap(clusters, _accuracy),
    }
    groups = [group for group, _ in responses]
    figures["first error found"] = _share([_same_first_error(s) for _, s in responses], groups)
    right = sum(step.right for step in steps) / len(steps)
    return RmEvaluation(
        {name: figure for name, figure in figures.items() if figure is not None},
        {**_sizes(groups), "steps": len(steps), "rule: the frequent label": max(right, 1 - right)},
    )


def _balanced(steps: Sequence[_Step]) -> float | None:
    """Mean of the recalls of right and of wrong steps."""
    right = [step.chance >= THRESHOLD for step in steps if step.right]
    wrong = [step.chance < THRESHOLD for step in steps if not step.right]
    return (statistics.fmean(right) + statistics.fmean(wrong)) / 2 if right and wrong else None


def _accuracy(steps: Sequence[_Step]) -> float | None:
    return statistics.fmean((s.chance >= THRESHOLD) == s.right for s in steps) if steps else None


def _same_first_error(steps: Sequence[_Step]) -> float:
    """1 if the first step judged wrong is the first wrong one, or neither exists."""
    said = next((i for i, step in enumerate(steps) if step.chance < THRESHOLD), None)
    true = next((i for i, step in enumerate(steps) if not step.right), None)
    return float(said == true)


def _won(value: float, parity: float = THRESHOLD) -> float:
    return 0.5 if value == parity else float(value > parity)


def _share(values: Sequence[float], groups: Sequence[str]) -> Figure:
    """Mean of values in [0, 1]; its Wilson interval counts prompts."""
    share = statistics.fmean(values)
    trials = len(set(groups))
    low, high = wilson(share * trials, trials)
    return Figure(share, low, high)


def _of_pairs(examples: Examples) -> dict[str, float]:
    longer = statistics.fmean(example["longer"] for example in examples.items)
    groups = [example["group"] for example in examples.items]
    return {**_sizes(groups), "rule: the longer is better": longer}


def _placed(learner: Loaded, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {key: value.to(learner.model.device) for key, value in batch.items()}


def _tokens(example: Example) -> int:
    return len(example["ids"])


def _sizes(groups: Sequence[str]) -> dict[str, float]:
    return {"rows": len(groups), "prompts": len(set(groups))}


def _over(
    learner: Loaded,
    items: Sequence[Example],
    batch_size: int,
    measure: Callable[[Sequence[Example]], list[Any]],
    *,
    length: Callable[[Example], int],
    advance: Advance,
) -> list[Any]:
    """The measure of each item, in order; items of similar length are batched."""
    results: list[Any] = [None] * len(items)
    order = sorted(range(len(items)), key=lambda index: length(items[index]), reverse=True)
    model = learner.model
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode(), learner.autocast():
            for start in range(0, len(order), batch_size):
                batch = order[start : start + batch_size]
                found = measure([items[index] for index in batch])
                for index, result in zip(batch, found, strict=True):
                    results[index] = result
                advance(start + len(batch))
    finally:
        model.train(was_training)
    return results
