"""Which turns of an episode are compared with which, by keys. Pure.

A key is a hash of what two units must have in common, the same on every process.

1. Agents of one role in one episode ("solver#1", "solver#2") are samples of one another: their key
   holds the episode. Any other agent is compared with its role in the prompt's other samples.
2. Turns share role and number among the agent's turns, or the tokens that the agent had read, which
   stand for the state (after GiGPO, arXiv 2505.10978). [derivation]
3. An agent whose reward is a fault has no key.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.environments.types import role_of
from assay.trainer.core.batch import Scored
from assay.trainer.methods.turn_credit.settings import TurnCreditConfig
from assay.trainer.rollouts.types import Acted, Rollout


@dataclass(frozen=True, slots=True)
class CreditTokens:
    """The T tokens of an episode.

    Attributes:
        agents: the number of each token's agent, from 1 in the order in which they first spoke; 0
            for tokens that the policy did not write.
        keys: of each token's unit; 0 for none.
    """

    agents: tuple[int, ...]
    keys: tuple[int, ...]


def credit_tokens(item: Scored, config: TurnCreditConfig) -> CreditTokens:
    """An episode's agents and keys, by token; all 0 for a response that is no episode."""
    row = item.rollout
    length = len(row.response.ids)
    agents, keys = [0] * length, [0] * length
    if not isinstance(row, Rollout) or row.acted is None:
        return CreditTokens(tuple(agents), tuple(keys))
    numbers: dict[str, int] = {}
    spoken: Counter[str] = Counter()
    for place, turn in enumerate(row.acted.turns):
        number = numbers.setdefault(turn.agent, len(numbers) + 1)
        size = turn.end - turn.start
        agents[turn.start : turn.end] = [number] * size
        if item.reward is not None and is_known(row.acted, turn.agent):
            key = _key(row, place, spoken[turn.agent], config)
            keys[turn.start : turn.end] = [key] * size
        spoken[turn.agent] += 1
    return CreditTokens(tuple(agents), tuple(keys))


def is_known(acted: Acted, agent: str) -> bool:
    """Whether what an agent earned is known; it is not where its own reward is a fault."""
    return acted.rewards.get(agent, 0.0) is not None


def _key(row: Rollout, place: int, spoken: int, config: TurnCreditConfig) -> int:
    assert row.acted is not None  # noqa: S101  # the caller has looked
    turn = row.acted.turns[place]
    role = role_of(turn.agent)
    episode = str(row.request.index) if role != turn.agent else ""
    if config.unit == "agent":
        return hashed("all") if config.roles == "together" else hashed(role, episode)
    if config.compare == "turn":
        return hashed(role, episode, str(spoken))
    return hashed(role, episode, read_before(row, place))


def read_before(row: Rollout, place: int) -> Sequence[int]:
    """The tokens that the agent had before it when it wrote a turn, the prompt's included."""
    assert row.acted is not None  # noqa: S101  # the caller has looked
    turn = row.acted.turns[place]
    start = row.acted.contexts[turn.context]
    prompt = row.request.draw.prompt_ids if turn.context == 0 else ()
    return [*prompt, *row.response.ids[start : turn.start]]


def hashed(*parts: str | Sequence[int]) -> int:
    """A number from 1 to 2^63 - 1, equal for equal parts."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode() if isinstance(part, str) else np.asarray(part, np.int64).tobytes()
        digest.update(len(data).to_bytes(8, "big") + data)
    return max(1, int.from_bytes(digest.digest(), "big") >> 1)
