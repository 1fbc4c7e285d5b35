"""Clip-higher without a model: a table of answers, some of them right and seldom given.

DAPO's argument (arXiv 2503.14476, section 3.1): a probability of p can grow to (1 + eps) * p in one
rollout, which for an improbable answer is next to nothing, so that what is probable wins and
entropy falls. Here every prompt has `ANSWERS` answers, of which `RIGHT` are right; one right answer
is given half of the time, the other right ones seldom. The kernels are the trainer's own. Nothing
is learnt that could be generalised, and every prompt can be solved in many ways: that is what the
argument is about, and what the counting task of the ladder is not.
"""

from __future__ import annotations

import torch

from assay.trainer.algos.advantages import group_advantages
from assay.trainer.algos.policy_losses import ppo_token_losses

PROMPTS, GROUP, ANSWERS, RIGHT = 16, 16, 64, 16
FAVOURITE, RARE = 0.5, 0.01
ROLLOUTS, UPDATES, RATE = 30, 16, 0.02


def train(seed: int, clip_high: float) -> dict[str, float]:
    """GRPO on the table; what became of the right answers.

    Returns:
        reward: share of right answers at the end.
        entropy: of the answers, nats, a mean over prompts.
        right_given: right answers with a probability of RARE or more, a mean over prompts.
    """
    generator = torch.Generator().manual_seed(seed)
    logits = initial().log().requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=RATE)
    for _ in range(ROLLOUTS):
        old = logits.detach().log_softmax(-1)
        drawn = torch.multinomial(old.exp(), GROUP, replacement=True, generator=generator)
        advantages = group_advantages((drawn < RIGHT).float(), scale="group")
        before = old.gather(1, drawn)
        for _ in range(UPDATES):
            now = logits.log_softmax(-1).gather(1, drawn)
            token = ppo_token_losses(
                now - before, advantages, clip_low=0.2, clip_high=clip_high, dual_clip=10.0
            )
            optimizer.zero_grad()
            token.losses_BT.mean().backward()
            optimizer.step()
    probs = logits.detach().softmax(-1)
    return {
        "reward": float(probs[:, :RIGHT].sum(-1).mean()),
        "entropy": float(-(probs * probs.log()).sum(-1).mean()),
        "right_given": float((probs[:, :RIGHT] >= RARE).sum(-1).float().mean()),
    }


def initial() -> torch.Tensor:
    """The first policy: answers 0 to RIGHT - 1 are right, and 0 is the favourite; shape (P, V)."""
    probs = torch.full((ANSWERS,), 0.0)
    probs[:RIGHT] = RARE
    probs[0] = FAVOURITE
    probs[RIGHT:] = (1 - float(probs.sum())) / (ANSWERS - RIGHT)
    return probs.repeat(PROMPTS, 1)
