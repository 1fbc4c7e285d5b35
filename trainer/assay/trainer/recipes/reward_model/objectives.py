"""What is minimised, as functions of tensors. Pure.

Names: B pairs, R = 2 orders of a pair (or 1), S labelled steps.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from assay.trainer.algos.value_losses import ValueBins
from assay.trainer.recipes.reward_model.config import StepLoss


def pairwise_loss(
    margins_BR: Tensor,
    log_masses_BR: Tensor,
    consistency: float = 0.0,
    mass: float = 1.0,
) -> Tensor:
    """The loss of a judge that names the better of two responses (arXiv 2504.04950).

    L = mean over pairs and orders of -log p(chosen) - mass * log m
        + consistency * mean over pairs of (p_first(chosen) - p_second(chosen))^2

    where p = softmax over the two verdict tokens and m their share of all tokens' probability. The
    paper gives no formula: it trains by predicting tokens, and with mass = 1 the first two terms
    are that, the cross-entropy over the vocabulary. The third is ours, for independence of the
    order.

    Args:
        margins_BR: logit of the chosen response's verdict less the other's, a column for each
            order.
        log_masses_BR: log m, at most 0.
        consistency: at least 0; above 0 needs two columns.
        mass: at least 0.
    """
    zeros_BR = torch.zeros_like(margins_BR)
    loss = torch.logaddexp(zeros_BR, -margins_BR).mean() - mass * log_masses_BR.mean()
    if consistency:
        chances_BR = torch.sigmoid(margins_BR)
        loss = loss + consistency * (chances_BR[:, 0] - chances_BR[:, 1]).square().mean()
    return loss


def critique_loss(logits_BTV: Tensor, ids_BT: Tensor, written_BT: Tensor) -> Tensor:
    """The cross-entropy of the tokens that a judge writes, their mean over the batch.

    Args:
        logits_BTV: of the next token at each place.
        ids_BT: prompts with their critiques.
        written_BT: 1 for tokens of critiques, 0 for prompts and padding; some are 1.
    """
    targets_BT = ids_BT[:, 1:]
    learned = written_BT[:, 1:].bool()
    return cross_entropy(logits_BTV[:, :-1][learned].float(), targets_BT[learned])


def step_loss(
    margins_S: Tensor, labels_S: Tensor, weights_S: Tensor, kind: StepLoss = "cross-entropy"
) -> Tensor:
    """The loss of a process reward model, read at the last token of each step.

    "regression" is that of arXiv 2410.17621: sum w (s - label)^2 / sum w over labelled steps with s
    the one output of the head, neutral ones drawn to 0, which is our reading [derivation]. "mse" is
    the same with s = 2 p - 1, p = softmax(right), in [-1, 1]. "cross-entropy" has the target (label
    + 1) / 2, one half for neutral steps.

    Args:
        margins_S: logit of "right" less that of "wrong"; for "regression" the one output.
        labels_S: 1 right, 0 neutral, -1 wrong.
        weights_S: at least 0; some above.
        kind: the loss.
    """
    if kind == "regression":
        errors_S = (margins_S - labels_S).square()
    elif kind == "mse":
        errors_S = (torch.tanh(margins_S / 2) - labels_S).square()  # 2 sigmoid(x) - 1
    else:
        targets_S = (labels_S + 1) / 2
        errors_S = binary_cross_entropy_with_logits(margins_S, targets_S, reduction="none")
    return (weights_S * errors_S).sum() / weights_S.sum()


def score_bins(count: int) -> ValueBins:
    """The classes of a step head with so many outputs: scores from -1 wrong to 1 right."""
    return ValueBins(-1.0, 1.0, count)


def step_class_loss(
    outputs_SK: Tensor, labels_S: Tensor, weights_S: Tensor, kind: StepLoss
) -> Tensor:
    """The cross-entropy of a process reward model that classifies scores (arXiv 2403.03950).

    sum w CE(classes, target of the label) / sum w over labelled steps; the target is that of the
    critic's loss of the same name (`algos.value_losses`), neutral steps are in the middle.

    Args:
        outputs_SK: logits of K classes, at least 3, at the last token of each step.
        labels_S: 1 right, 0 neutral, -1 wrong.
        weights_S: at least 0; some above.
        kind: "hl-gauss" or "two-hot".
    """
    bins = score_bins(outputs_SK.shape[1])
    target = bins.hl_gauss if kind == "hl-gauss" else bins.two_hot
    errors_S = bins.cross_entropy(outputs_SK, target(labels_S))
    return (weights_S * errors_S).sum() / weights_S.sum()


def balanced_weights(labels: list[float]) -> dict[float, float]:
    """Weights by label (1, 0, -1) with which right and wrong steps weigh the same in all.

    The mean weight is 1 over right and wrong steps; neutral steps weigh 1.
    """
    right, wrong = labels.count(1.0), labels.count(-1.0)
    if not right or not wrong:
        return {1.0: 1.0, 0.0: 1.0, -1.0: 1.0}
    half = (right + wrong) / 2
    return {1.0: half / right, 0.0: 1.0, -1.0: half / wrong}
