"""How far the sampler's log-probabilities are from the trainer's.

The policy gradient takes responses for samples of the trainer's policy; another precision, another
kernel or stale weights make them differ. On the tokens x that the sampler drew, with
d = log pi_trainer(x) - log pi_sampler(x), the mean of -d (k1) and of exp(d) - 1 - d (k3, never
negative) estimate KL(sampler || trainer); see Schulman, "Approximating KL Divergence",
joschu.net/blog/kl-approx.html. All is kept as sums and counts, so that micro-batches and processes
add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class DriftReport:
    """Sums over the tokens of a rollout, with d as in the module.

    Attributes:
        missing: tokens without a number of the sampler; in no sum.
        sum_abs: of |d|, in nats.
        max_abs: the largest |d|.
        sum_k1: of -d; its mean estimates the KL without bias and may be negative.
        sum_k3: of exp(d) - 1 - d.
        sum_ratio: of exp(d), the importance weights.
        sum_ratio2: of their squares.
    """

    tokens: int = 0
    missing: int = 0
    sum_abs: float = 0.0
    max_abs: float = 0.0
    sum_k1: float = 0.0
    sum_k3: float = 0.0
    sum_ratio: float = 0.0
    sum_ratio2: float = 0.0

    def __add__(self, other: DriftReport) -> DriftReport:
        """Both sets of tokens together."""
        return DriftReport(
            tokens=self.tokens + other.tokens,
            missing=self.missing + other.missing,
            sum_abs=self.sum_abs + other.sum_abs,
            max_abs=_larger(self.max_abs, other.max_abs),
            sum_k1=self.sum_k1 + other.sum_k1,
            sum_k3=self.sum_k3 + other.sum_k3,
            sum_ratio=self.sum_ratio + other.sum_ratio,
            sum_ratio2=self.sum_ratio2 + other.sum_ratio2,
        )

    @property
    def mean_abs(self) -> float:
        """Mean |d| in nats; 0 without tokens."""
        return self.sum_abs / self.tokens if self.tokens else 0.0

    @property
    def kl(self) -> float:
        """Mean k3 in nats, an estimate of KL(sampler || trainer) per token; 0 without tokens."""
        return self.sum_k3 / self.tokens if self.tokens else 0.0

    @property
    def kl_k1(self) -> float:
        """Mean k1 in nats; 0 without tokens."""
        return self.sum_k1 / self.tokens if self.tokens else 0.0

    @property
    def effective_share(self) -> float:
        """Kish's effective sample size of the importance weights over the tokens, in (0, 1]."""
        if not self.tokens or not self.sum_ratio2:
            return 1.0
        return self.sum_ratio**2 / (self.tokens * self.sum_ratio2)

    def metrics(self) -> dict[str, float]:
        """Numbers by name; empty without compared tokens."""
        if not self.tokens:
            return {}
        return {
            "drift/mean_abs": self.mean_abs,
            "drift/max_abs": self.max_abs,
            "drift/kl": self.kl,
            "drift/effective_share": self.effective_share,
            "drift/missing": self.missing / (self.tokens + self.missing),
        }


@torch.no_grad()
def drift(
    trainer_logps_BT: torch.Tensor, sampler_logps_BT: torch.Tensor, mask_BT: torch.Tensor
) -> DriftReport:
    """Compares the two on the tokens of one micro-batch.

    Args:
        trainer_logps_BT: of the sampled tokens, by the trainer, at the rollout's temperature and
            under the weights that sampled them.
        sampler_logps_BT: by the sampler; NaN or infinite where unknown.
        mask_BT: bool or 0/1, tokens of responses.
    """
    inside_BT = mask_BT.bool()
    told_BT = torch.isfinite(sampler_logps_BT)
    compared_BT = inside_BT & told_BT
    sampler_N = sampler_logps_BT[compared_BT].double()
    d_N = trainer_logps_BT[compared_BT].double() - sampler_N
    missing = int((inside_BT & ~told_BT).sum())
    if d_N.numel() == 0:
        return DriftReport(missing=missing)
    ratio_N = d_N.exp()
    sums = torch.stack(
        [d_N.abs().sum(), d_N.abs().max(), -d_N.sum(), (torch.expm1(d_N) - d_N).sum(),
         ratio_N.sum(), (ratio_N * ratio_N).sum()]
    ).tolist()  # fmt: skip
    return DriftReport(d_N.numel(), missing, *sums)


def alarm(report: DriftReport, limit: float) -> str | None:
    """A warning where the mean |d| of freshly sampled tokens is above `limit` nats; else None."""
    if not report.tokens or report.mean_abs <= limit:
        return None
    return (
        f"the sampler's and the trainer's log-probabilities differ by {report.mean_abs:.3g} nats a "
        f"token on average ({report.max_abs:.3g} at most, KL {report.kl:.3g}), more than "
        f"rollout.drift_alarm = {limit:g}: the sampler has stale weights, another precision or "
        'another tokenizer, and the gradient is off by as much; use rollout.backend = "hf" to '
        "compare, or set method.loss.importance_correction"
    )


def _larger(a: float, b: float) -> float:
    """The larger one; NaN if one of them is."""
    return a if math.isnan(a) or a >= b else b
