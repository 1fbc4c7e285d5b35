"""PAG's failures without a model: a policy of tables in dialogue with itself (arXiv 2506.10406).

What stands between the tables and what they learn from is the trainer's: the protocol says when a
revision is asked for, the hooks of turns what each earns, `critic_advantages` and `refined` how
that becomes advantages, as configs/pag.toml and its ablations have it.

    first attempt   at a problem, easy or hard: with care, or carelessly, which is always wrong
    verification    of an attempt that looks flawed or not, a wrong one more often than a right
                    one: "correct" or "wrong"
    revision        keeps the answer, or tries again, carelessly or with care

At first the policy takes care, calls nearly everything correct, and mostly keeps its answer. A
revision is not shown the verdict, as by a policy that has not learnt to listen to it. The chances
are chosen, near what the paper reports: a revision seldom repairs, so that a verdict is worth
little for the last attempt's sake. What this shows is that the failures follow from the trainer's
own rewards and advantages, by the mechanisms that the paper names, and no magnitudes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from assay.clients import Judgement, Result
from assay.trainer.algos.policy_losses import ppo_token_losses
from assay.trainer.core.batch import Batch, Scored, critic_advantages, pad, refined
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.turns.credit import row_result, turn_metrics
from assay.trainer.methods.turns.method import Turns
from assay.trainer.methods.turns.protocol import Protocol
from assay.trainer.rollouts.types import Collected, PolicyTurn, Rollout
from assay.trainer.settings import config as configs

PRESET = Path(__file__).parents[2] / "configs" / "pag.toml"
SAYS = ("The answer is correct.", "The answer is wrong.")
DIALOGUES, STEPS, RATE = 512, 160, 2.0

RIGHT_KC = torch.tensor([[0.9, 0.0], [0.3, 0.0]])
"""Chance of a first attempt to be right: at an easy and a hard problem, with care and without."""
FLAWED_2 = torch.tensor([0.65, 0.1])
"""Chance of a wrong and of a right attempt to look flawed; a careless one always does."""
REPAIRS_3 = torch.tensor([0.0, 0.05, 0.35])
"""Chance of a revision to be right: of one that keeps the answer none of its own, of a careless
one, and of one with care."""

CARES_K2 = torch.tensor([[0.8, 0.2], [0.8, 0.2]])
SAYS_L2 = torch.tensor([[0.95, 0.05], [0.95, 0.05]])
REVISES_3 = torch.tensor([0.88, 0.07, 0.05])
"""The first policy: with two kinds of problems, with two looks, and in a revision."""


@dataclass(frozen=True, slots=True)
class Held:
    """B dialogues.

    Attributes:
        shown_B3: what each turn was shown: the kind of problem, the look, nothing.
        did_B3: what the policy did in each turn; that of a revision that was not asked for counts
            for nothing.
        places_B: which of the outcomes they are.
    """

    shown_B3: torch.Tensor
    did_B3: torch.Tensor
    places_B: torch.Tensor


class Table:
    """A policy in tables, its critic, and how it learns.

    Args:
        overrides: of configs/pag.toml, such as `ablate=turn-independence`.
        seed: of all that is drawn.
        says_L2: the first policy's chances to say "correct" and "wrong" of two looks, shape (2, 2).
    """

    def __init__(
        self, overrides: Sequence[str] = (), seed: int = 0, says_L2: torch.Tensor = SAYS_L2
    ) -> None:
        config = configs.load(PRESET, ["data=rows.jsonl", *overrides])
        self._method = config.method
        self._hooks = (Turns(config),)
        always = config.method.turns.revise == "always"
        protocol = Protocol(((0,), (0,)), verifies=True, always=always)
        self._outcomes, self._places = _outcomes(protocol)
        self._batch = _as_batch(self._outcomes, *self._hooks)
        self._dice = torch.Generator().manual_seed(seed)
        first_3SA = (CARES_K2, says_L2, REVISES_3.expand(2, -1))
        self._logits = [chances_SA.log().requires_grad_() for chances_SA in first_3SA]
        self._values_3S = torch.zeros(3, 2)
        self._optimizer = torch.optim.SGD(self._logits, lr=RATE)

    def hold(self, count: int) -> Held:
        """Holds so many dialogues, about easy and hard problems by turns."""
        kinds_B = torch.arange(count) % 2
        careless_B = self._drawn(0, kinds_B)
        right_B = self._coin(RIGHT_KC[kinds_B, careless_B])
        flawed_B = self._coin(FLAWED_2[right_B]) | careless_B
        says_B = self._drawn(1, flawed_B)
        nothing_B = torch.zeros_like(kinds_B)
        revises_B = self._drawn(2, nothing_B)
        repairs_B = self._coin(REPAIRS_3[revises_B])
        revision_B = torch.where(revises_B == 0, 0, 1 + repairs_B)
        return Held(
            torch.stack([kinds_B, flawed_B, nothing_B], dim=1),
            torch.stack([careless_B, says_B, revises_B], dim=1),
            self._places[right_B, says_B, revision_B],
        )

    def metrics(self, count: int = 4096) -> dict[str, float]:
        """How so many dialogues went, by the trainer's names."""
        return turn_metrics([self._outcomes[n] for n in self.hold(count).places_B.tolist()])

    def step(self) -> None:
        """Holds dialogues and learns from them, as one step of training does."""
        held = self.hold(DIALOGUES)
        batch = {name: value[held.places_B] for name, value in self._batch.items()}
        batch["values"] = torch.zeros_like(batch["turn_rewards"])
        batch["values"][:, ::2] = self._values_3S[torch.arange(3), held.shown_B3]
        advantages_BT, returns_BT, _ = critic_advantages(batch, self._method, self._hooks)
        advantages_BT = refined(advantages_BT, batch, self._method.advantage)
        mask_B3 = batch["loss_mask"][:, ::2]
        logps_B3 = torch.stack(
            [
                logits_SA.log_softmax(-1)[held.shown_B3[:, turn], held.did_B3[:, turn]]
                for turn, logits_SA in enumerate(self._logits)
            ],
            dim=1,
        )
        losses_B3 = ppo_token_losses(
            logps_B3 - logps_B3.detach(), advantages_BT[:, ::2], clip_low=0.2, clip_high=0.28
        ).losses_BT
        self._optimizer.zero_grad()
        (losses_B3 * mask_B3).sum().div(mask_B3.sum()).backward()
        self._optimizer.step()
        self._fit(returns_BT[:, ::2], held.shown_B3, mask_B3)

    def _fit(self, returns_B3: torch.Tensor, shown_B3: torch.Tensor, mask_B3: torch.Tensor) -> None:
        """Each value goes a fifth of the way to the mean of its targets."""
        for turn in range(3):
            for shown in range(2):
                here_B = mask_B3[:, turn] & (shown_B3[:, turn] == shown)
                if here_B.any():
                    gap = returns_B3[here_B, turn].mean() - self._values_3S[turn, shown]
                    self._values_3S[turn, shown] += 0.2 * gap

    def _drawn(self, turn: int, shown_B: torch.Tensor) -> torch.Tensor:
        probs_BA = self._logits[turn].detach().softmax(-1)[shown_B]
        return torch.multinomial(probs_BA, 1, generator=self._dice)[:, 0]

    def _coin(self, chances_B: torch.Tensor) -> torch.Tensor:
        return torch.bernoulli(chances_B, generator=self._dice).long()


def train(
    overrides: Sequence[str] = (), seed: int = 0, says_L2: torch.Tensor = SAYS_L2
) -> dict[str, float]:
    """How dialogues go after `STEPS` steps."""
    table = Table(overrides, seed, says_L2)
    for _ in range(STEPS):
        table.step()
    return table.metrics()


def _outcomes(protocol: Protocol) -> tuple[list[Rollout], torch.Tensor]:
    """Every dialogue that there can be, and its place by the first attempt (wrong, right), the
    verdict (correct, wrong) and the revision (kept, wrong, right)."""
    dialogues: list[Rollout] = []
    places = torch.zeros(2, 2, 3, dtype=torch.long)
    for first in range(2):
        for said, text in enumerate(SAYS):
            again = protocol.asks_again(protocol.verdict(text), validation=False)
            for revision in range(3):
                if again or not revision:
                    answers = ["wr"[first]]
                    if again:
                        answers.append(("wr"[first], "v", "r")[revision])
                    dialogues.append(_dialogue(answers, text, protocol))
                places[first, said, revision] = len(dialogues) - 1
    return dialogues, places


def _dialogue(answers: Sequence[str], says: str, protocol: Protocol) -> Rollout:
    """Turns of one token each, with one between them; "r" is right."""
    turns = []
    for n, text in enumerate([answers[0], says, *answers[1:]]):
        if protocol.is_verification(n):
            turns.append(PolicyTurn(2 * n, 2 * n + 1, text, False, verdict=protocol.verdict(text)))
            continue
        right = text == "r"
        judged = Result("0", Judgement(float(right), "correct" if right else "incorrect"))
        turns.append(PolicyTurn(2 * n, 2 * n + 1, text, False, result=judged))
    draw = Draw(0, Problem("0", "?", (("user", "?"),), "r"), (1,))
    length = 2 * len(turns) - 1
    response = Response((1,) * length, "", (0.0,) * length, truncated=False)
    return Rollout(Request(draw, 0), response, row_result(turns), 0, tuple(turns))


def _as_batch(dialogues: Sequence[Rollout], turns: Turns) -> Batch:
    """Their tensors, as in a training step."""
    (scored,) = turns.scored([[Scored(dialogue, None) for dialogue in dialogues]])
    batch = pad(scored, pad_id=0, policy_step=0, device=torch.device("cpu"))
    return turns.mark(batch, scored, Collected([tuple(dialogues)], list(dialogues)))
