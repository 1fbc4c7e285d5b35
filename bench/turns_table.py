"""PAG's failures without a model: a policy of tables in dialogue with itself (arXiv 2506.10406).

What stands between the tables and what they learn from is the trainer's: the protocol says when a
revision is asked for, `turn_tokens` what each turn earns, `critic_advantages` and `refined` how
that becomes advantages, all as configs/pag.toml and its ablations have it.

    first attempt   of a problem, easy or hard: with care, or carelessly and then wrong
    verification    of an attempt that looks right or flawed, which tells a wrong one from a right
                    one more often than not: "correct" or "wrong"
    revision        of a verdict: keeps the answer, or tries again, carelessly or with care

At first the policy takes care, calls nearly everything correct, and seldom tries again. Not told
apart are verdicts: what a revision learns after one holds for the other, as in a model that was
never asked twice. The chances are chosen, near the paper's own: a revision repairs few answers, so
that a verification is worth little for the last attempt's sake. This shows that the mechanisms
work as the paper says, with the trainer's own rewards and advantages, and no magnitudes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from assay.clients import Judgement, Result
from assay.trainer import config as configs
from assay.trainer.algos.policy_losses import ppo_token_losses
from assay.trainer.batch import Batch, Scored, critic_advantages, pad, refined
from assay.trainer.data import Problem
from assay.trainer.rollouts.protocol import Protocol
from assay.trainer.rollouts.turns import row_result, turn_metrics, turn_tokens
from assay.trainer.rollouts.types import Draw, Request, Response, Rollout, Turn
from assay.trainer.turns_config import TurnsConfig

PRESET = Path(__file__).parents[1] / "configs" / "pag.toml"
SAYS = ("The answer is correct.", "The answer is wrong.")
DIALOGUES, STEPS, RATE = 512, 150, 2.0

RIGHT_KC = torch.tensor([[0.9, 0.0], [0.3, 0.0]])
"""Chance of a first attempt to be right: easy and hard; with care, carelessly."""
FLAWED_2 = torch.tensor([0.75, 0.1])
"""Chance of a wrong and of a right attempt to look flawed; a careless one always does."""
REPAIRS_3 = torch.tensor([0.0, 0.05, 0.35])
"""Chance of a revision to be right: keeping the answer (it is as right as it was), trying again
carelessly, and with care."""

CARE_K2 = torch.tensor([[0.8, 0.2], [0.8, 0.2]])
SAYS_L2 = torch.tensor([[0.95, 0.05], [0.95, 0.05]])
REVISES_3 = torch.tensor([0.6, 0.3, 0.1])
"""The first policy: of two kinds of problems, of two looks, and of revisions."""


class Table:
    """A policy in tables, its critic, and how it learns.

    Args:
        overrides: of configs/pag.toml, such as `ablate=turn-independence`.
        seed: of all that is drawn.
    """

    def __init__(self, overrides: Sequence[str] = (), seed: int = 0) -> None:
        config = configs.load(PRESET, ["data=rows.jsonl", *overrides])
        self._algorithm = config.algorithm
        always = config.algorithm.turns.revise == "always"
        protocol = Protocol(((0,), (0,)), verifies=True, always=always)
        self._outcomes, self._places = _outcomes(protocol)
        self._batch = _as_batch(self._outcomes, config.algorithm.turns)
        self._dice = torch.Generator().manual_seed(seed)
        self.first = CARE_K2.log().requires_grad_()
        self.says = SAYS_L2.log().requires_grad_()
        self.revises = REVISES_3.log().requires_grad_()
        self._values = torch.zeros(3, 2)  # of a turn and what it is shown
        self._optimizer = torch.optim.SGD([self.first, self.says, self.revises], lr=RATE)

    def step(self) -> dict[str, float]:
        """Holds dialogues and learns from them; their metrics."""
        B = DIALOGUES
        kinds_B = torch.arange(B) % 2
        careless_B = self._drawn(self.first[kinds_B])
        right_B = self._coin(RIGHT_KC[kinds_B, careless_B])
        flawed_B = self._coin(FLAWED_2[right_B]) | careless_B
        says_B = self._drawn(self.says[flawed_B])
        revises_B = self._drawn(self.revises.expand(B, -1))
        repairs_B = self._coin(REPAIRS_3[revises_B])
        revision_B = torch.where(revises_B == 0, 0, 1 + repairs_B)
        places_B = self._places[right_B, says_B, revision_B]
        batch = {key: value[places_B] for key, value in self._batch.items()}
        shown_B3 = torch.stack([kinds_B, flawed_B, torch.zeros_like(kinds_B)], dim=1)
        batch["values"] = torch.zeros(B, 5)
        batch["values"][:, ::2] = self._values[torch.arange(3), shown_B3]
        advantages_BT, returns_BT, _ = critic_advantages(batch, self._algorithm)
        advantages_BT = refined(advantages_BT, batch, self._algorithm.advantage)
        logps_B3 = torch.stack(
            [
                self.first[kinds_B].log_softmax(-1).gather(1, careless_B[:, None])[:, 0],
                self.says[flawed_B].log_softmax(-1).gather(1, says_B[:, None])[:, 0],
                self.revises.log_softmax(-1)[revises_B],
            ],
            dim=1,
        )
        mask_B3 = batch["loss_mask"][:, ::2]
        losses_B3 = ppo_token_losses(
            logps_B3 - logps_B3.detach(), advantages_BT[:, ::2], clip_low=0.2, clip_high=0.28
        ).losses_BT
        self._optimizer.zero_grad()
        (losses_B3 * mask_B3).sum().div(mask_B3.sum()).backward()
        self._optimizer.step()
        self._fit(returns_BT[:, ::2], shown_B3, mask_B3)
        return turn_metrics([self._outcomes[place] for place in places_B.tolist()])

    def _fit(self, returns_B3: torch.Tensor, shown_B3: torch.Tensor, mask_B3: torch.Tensor) -> None:
        """Each value goes a fifth of the way to the mean of its targets."""
        for turn in range(3):
            for shown in range(2):
                here_B = mask_B3[:, turn] & (shown_B3[:, turn] == shown)
                if here_B.any():
                    mean = returns_B3[here_B, turn].mean()
                    self._values[turn, shown] += 0.2 * (mean - self._values[turn, shown])

    def _drawn(self, logits_BA: torch.Tensor) -> torch.Tensor:
        probs_BA = logits_BA.detach().softmax(-1)
        return torch.multinomial(probs_BA, 1, generator=self._dice)[:, 0]

    def _coin(self, chances_B: torch.Tensor) -> torch.Tensor:
        return torch.bernoulli(chances_B, generator=self._dice).long()


def train(overrides: Sequence[str] = (), seed: int = 0) -> list[dict[str, float]]:
    """The metrics of every step."""
    table = Table(overrides, seed)
    return [table.step() for _ in range(STEPS)]


def _outcomes(protocol: Protocol) -> tuple[list[Rollout], torch.Tensor]:
    """Every dialogue that there can be, and its place by the first attempt (wrong, right), the
    verdict (correct, wrong) and the revision (kept, wrong, right)."""
    dialogues: list[Rollout] = []
    places = torch.zeros(2, 2, 3, dtype=torch.long)
    for first in range(2):
        for said in range(2):
            text = SAYS[said]
            again = protocol.asks_again(protocol.verdict(text), validation=False)
            for revision in range(3):
                if again or not revision:
                    answers = [("w", "r")[first]]
                    if again:
                        answers += [answers[0] if not revision else ("v", "r")[revision - 1]]
                    dialogues.append(_dialogue(answers, text, protocol))
                places[first, said, revision] = len(dialogues) - 1
    return dialogues, places


def _dialogue(answers: Sequence[str], says: str, protocol: Protocol) -> Rollout:
    """Turns of one token each, with one between them."""
    turns = []
    for n, text in enumerate([answers[0], says, *answers[1:]]):
        if protocol.is_verification(n):
            turns.append(Turn(2 * n, 2 * n + 1, text, False, verdict=protocol.verdict(text)))
            continue
        right = text == "r"
        judged = Result("0", Judgement(float(right), "correct" if right else "incorrect"))
        turns.append(Turn(2 * n, 2 * n + 1, text, False, result=judged))
    draw = Draw(0, Problem("0", "?", (("user", "?"),), "r"), (1,))
    length = 2 * len(turns) - 1
    response = Response((1,) * length, "", (0.0,) * length, truncated=False)
    return Rollout(Request(draw, 0), response, row_result(turns), 0, tuple(turns))


def _as_batch(dialogues: Sequence[Rollout], config: TurnsConfig) -> Batch:
    """Their tensors, as in a training step."""
    scored = []
    for dialogue in dialogues:
        tokens, reward = turn_tokens(dialogue, config)
        scored.append(Scored(dialogue, reward, turns=tokens))
    return pad(scored, pad_id=0, policy_step=0, device=torch.device("cpu"))
