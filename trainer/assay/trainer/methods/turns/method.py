"""The hooks of responses of several turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from assay.trainer.algos.turns import turn_gae
from assay.trainer.core.answering import generating
from assay.trainer.core.batch import Batch, Scored, filled
from assay.trainer.core.build import encoder
from assay.trainer.core.evaluation import Evaluation, end_token_ids
from assay.trainer.core.rewards import EVALUATION, Judge
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.methods.turns.confidence import Confidence
from assay.trainer.methods.turns.credit import TurnTokens, turn_metrics, turn_tokens
from assay.trainer.methods.turns.dialogues import Dialogues
from assay.trainer.methods.turns.evaluation import evaluate_dialogues
from assay.trainer.methods.turns.protocol import protocol_of
from assay.trainer.recipes.hooks import RunHooks, RunSession
from assay.trainer.rollouts.exchange import Talk
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.settings.config import Config

NAME = "turns"


class Turns(RunHooks):
    """Attempt, verification, revision in one response (PAG, arXiv 2506.10406; SCoRe)."""

    def needs_single_judgements(self) -> str:
        """See Hooks."""
        return 'method.turns has each attempt judged by itself; set method.turns.mode = "off"'

    def room(self, policy: LoadedPolicy, most: int) -> int:
        """See Hooks."""
        return protocol_of(self.config.method.turns, policy.tokenizer).room(most)

    def talk(self, policy: LoadedPolicy, judge: Judge) -> Talk:
        """See Hooks."""
        del judge
        return dialogues_of(self.config, policy)

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """See Hooks: the turns' rewards replace the judgement's."""
        return [[self._by_turns(item) for item in group] for group in groups]

    def _by_turns(self, item: Scored) -> Scored:
        if not isinstance(item.rollout, Rollout):
            return item
        tokens, reward = turn_tokens(item.rollout, self.config.method.turns)
        return replace(item, reward=reward, in_loss=True, notes={**item.notes, NAME: tokens})

    def measured(self, collected: Collected) -> Mapping[str, float]:
        """See Hooks."""
        return turn_metrics(collected.judged)

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks; of shape (B, T).

        `turn`, from 1, and `role`, both 0 where a token is not the policy's; `turn_rewards`, on the
        last token of each turn; `own`, `loss_mask` and `value_mask` of the policy's tokens; of
        unfinished dialogues `turn_open`, behind which tokens the value stands.
        """
        dialogues: list[TurnTokens] = [
            item.notes[NAME]
            if isinstance(item.rollout, Rollout)
            else turn_tokens(item.rollout, self.config.method.turns)[0]
            for item in scored
        ]
        device = batch["rewards"].device
        turn_BT = filled([one.turns for one in dialogues], 0, torch.long).to(device)
        trained_BT = filled([one.trained for one in dialogues], False, torch.bool).to(device)
        rewards_BT = filled([one.rewards for one in dialogues], 0.0, torch.float32).to(device)
        whole_B = torch.tensor([item.trains and not item.unfinished for item in scored])
        marked = {
            **batch,
            "turn": turn_BT,
            "role": filled([one.roles for one in dialogues], 0, torch.long).to(device),
            "turn_rewards": rewards_BT,
            "own": turn_BT > 0,
            "loss_mask": batch["loss_mask"] & trained_BT,
            "value_mask": trained_BT & whole_B.to(device).unsqueeze(1),
        }
        if collected.slot_rows is not None:
            opened = [one.open for one in dialogues]
            marked["turn_open"] = filled(opened, False, torch.bool).to(device)
        if self.config.method.turns.kl == "first":
            marked["kl_mask"] = turn_BT == 1
        return marked

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """See Hooks: on a turn's last token."""
        del rewards_BT
        return batch["turn_rewards"]

    def returns(self, batch: Batch) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
        """See Hooks."""
        return partial(
            turn_gae,
            independent=self.config.method.turns.independent,
            open_BT=batch.get("turn_open"),
        )

    def evaluate(self, session: RunSession, trainer: PolicyTrainer, sampler: Sampler) -> Evaluation:
        """See RunHooks."""
        config = session.config
        return evaluate_dialogues(
            session.problems.eval,
            sampler,
            lambda: session.judge.open_round(0, EVALUATION),
            encoder(session.policy),
            dialogues_of(config, session.policy, validation=True),
            samples=config.eval.samples,
            ranks=AccelerateRanks(trainer.accelerator),
            confidence=make_confidence(trainer, config, session.policy),
            on_progress=session.display.advance,
            on_rollouts=trainer.on_evaluated,
        )


def dialogues_of(config: Config, policy: LoadedPolicy, *, validation: bool = False) -> Dialogues:
    """The dialogues of the settings."""
    tokenizer = policy.tokenizer
    return Dialogues(
        protocol_of(config.method.turns, tokenizer),
        lambda ids: str(tokenizer.decode(ids, skip_special_tokens=True)),
        validation=validation,
    )


def make_confidence(
    trainer: PolicyTrainer, config: Config, policy: LoadedPolicy
) -> Confidence | None:
    """The policy's confidence, where an evaluation chooses among several attempts; else None."""
    if config.method.turns.mode != "verify" or config.eval.samples == 1:
        return None
    return Confidence(
        lambda: generating(trainer),
        policy.tokenizer,
        end_ids=end_token_ids(policy),
        batch=config.eval.batch_size,
        ranks=AccelerateRanks(trainer.accelerator),
        autocast=policy.autocast,
    )
