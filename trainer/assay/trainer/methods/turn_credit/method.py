"""The hooks of credit within episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from assay.trainer.algos import episodes
from assay.trainer.algos.episodes import Units
from assay.trainer.algos.turns import turn_gae
from assay.trainer.core.batch import Batch, Scored, filled, value_mask
from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.turn_credit.keys import credit_tokens
from assay.trainer.rollouts.types import Collected


class TurnCredit(Hooks):
    """Agents, or turns, are credited by themselves."""

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks; the batch has `turn` and `turn_rewards` of method.episodes.

        Adds `agent` (B, T), the number of a token's agent within its row, from 1, and `unit_key`
        (B, T), what its unit is compared with; both 0 where there is none. An agent whose reward
        is not known leaves the loss. With values of turns, `value_mask` is their first tokens.
        """
        del collected
        config = self.config.method.turn_credit
        found = [credit_tokens(item, config) for item in scored]
        device = batch["rewards"].device
        keys_BT = filled([one.keys for one in found], 0, torch.long).to(device)
        known_BT = keys_BT != 0
        marked = {
            **batch,
            "agent": filled([one.agents for one in found], 0, torch.long).to(device),
            "unit_key": keys_BT,
            "loss_mask": batch["loss_mask"] & known_BT,
        }
        if self.config.method.has_critic:
            marked["value_mask"] = value_mask(batch) & known_BT
            if config.by_utterance:
                marked["value_mask"] &= episodes.first_tokens(batch["turn"])
        return marked

    def units(self, batch: Batch) -> Units:
        """See Hooks: of each turn its return, or of each agent all that it earned."""
        config = self.config.method.turn_credit
        turn_BT, agent_BT, earned_BT = batch["turn"], batch["agent"], batch["turn_rewards"]
        if config.unit == "agent":
            unit_BT, values_BU = agent_BT, episodes.by_unit(earned_BT, agent_BT)
        else:
            unit_BT, agents_BU = turn_BT, episodes.of_unit(agent_BT, turn_BT)
            if config.reach == "context" and "context" in batch:
                contexts_BU = episodes.of_unit(batch["context"], turn_BT)
                agents_BU = episodes.within(agents_BU, contexts_BU)
            values_BU = episodes.returns_to_go(
                episodes.by_unit(earned_BT, turn_BT), agents_BU, config.discount
            )
        keys_BU = episodes.of_unit(batch["unit_key"], unit_BT)
        return Units(unit_BT, keys_BU, values_BU, config.turn_weight, config.episode_weight)

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """See Hooks: on a turn's last token."""
        del rewards_BT
        return batch["turn_rewards"]

    def returns(self, batch: Batch) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
        """See Hooks."""
        config = self.config.method.turn_credit
        if config.unit == "turn" and not config.by_utterance:
            return partial(turn_gae, independent=True)
        if config.by_utterance:
            return partial(_by_utterance, batch, config.discount)
        return partial(episodes.agent_gae, turn_BT=batch["turn"], agent_BT=batch["agent"])

    def credited(self, batch: Batch, judged: int) -> None:
        """See Hooks."""
        del judged
        if self.config.method.turn_credit.keep == "positive":
            batch["loss_mask"] = batch["loss_mask"] & (batch["advantages"] > 0)


def _by_utterance(
    batch: Batch,
    discount: float,
    rewards_BT: torch.Tensor,
    values_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    **given: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    del mask_BT  # value pre-training's has the first tokens only, and rewards lie on the last
    return episodes.utterance_gae(
        rewards_BT,
        values_BT,
        batch["own"],
        turn_BT=batch["turn"],
        agent_BT=batch["agent"],
        discount=discount,
        **given,
    )
