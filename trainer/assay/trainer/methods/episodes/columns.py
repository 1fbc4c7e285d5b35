"""The tokens of an episode: whose they are, which train, and what their turns earned. Pure.

The turn's own reward lies on its last token; what an agent earned at the end lies on that of its
last turn, beside it. An agent without a reward of its own (a fault of its judgement) leaves the
loss with all its turns; the others stay.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from assay.environments.types import POLICY, role_of
from assay.trainer.core.batch import Scored
from assay.trainer.rollouts.types import Acted


@dataclass(frozen=True, slots=True)
class EpisodeTokens:
    """The T tokens of an episode.

    Attributes:
        turns: number of each token's turn, from 1 in the order of time; 0 where it is not the
            policy's.
        roles: `role_number` of the agent that wrote it; 0 where nobody of the policy did.
        own: the policy wrote it.
        trained: of these, whose agent has a reward.
        rewards: a turn's, on its last token.
        contexts: number of each token's conversation, from 0.
        on_turns: sum of the turns' own rewards, of the agent that spoke first.
    """

    turns: tuple[int, ...]
    roles: tuple[int, ...]
    own: tuple[bool, ...]
    trained: tuple[bool, ...]
    rewards: tuple[float, ...]
    contexts: tuple[int, ...]
    on_turns: float = 0.0


def role_number(agent: str) -> int:
    """A number above 0 for an agent's role, the same on every process."""
    return 1 + zlib.crc32(role_of(agent).encode())


def tokens_of(acted: Acted, length: int, reward: float | None) -> EpisodeTokens:
    """The tokens of an episode of `length` tokens that earned `reward`, shaped; None: nothing.

    One without a turn has a token that only stands for it: it is `own`, and does not train.
    """
    turns, roles = [0] * length, [0] * length
    own, trained, rewards = [False] * length, [False] * length, [0.0] * length
    last: dict[str, int] = {}
    for number, turn in enumerate(acted.turns, start=1):
        span = range(turn.start, turn.end)
        earned = final_of(acted, turn.agent, reward)
        for at in span:
            turns[at], roles[at], own[at] = number, role_number(turn.agent), True
            trained[at] = earned is not None
        rewards[turn.end - 1] = (turn.reward or 0.0) if earned is not None else 0.0
        last[turn.agent] = turn.end - 1
    for agent, at in last.items():
        rewards[at] += final_of(acted, agent, reward) or 0.0
    if not acted.turns and length:
        own[0] = True
    starts = [*acted.contexts[1:], length]
    contexts: list[int] = []
    for number, end in enumerate(starts):
        contexts += [number] * (end - len(contexts))
    return EpisodeTokens(
        tuple(turns),
        tuple(roles),
        tuple(own),
        tuple(trained),
        tuple(rewards),
        tuple(contexts),
        sum(turn.reward or 0.0 for turn in acted.turns if turn.agent == acted.turns[0].agent),
    )


def final_of(acted: Acted, agent: str, reward: float | None) -> float | None:
    """What an agent earned at the end: its own, as judged, or the episode's, shaped."""
    if reward is None:
        return None
    return acted.rewards.get(agent, reward)


def tokens_of_scored(item: Scored) -> EpisodeTokens:
    """`tokens_of` a rollout; one that is no episode is a turn of its own."""
    length = len(item.rollout.response.ids)
    acted = getattr(item.rollout, "acted", None)
    if acted is None:
        ones = (1,) * length
        own = (True,) * length
        earned = (0.0,) * (length - 1) + (item.reward or 0.0,)
        return EpisodeTokens(ones, (role_number(POLICY),) * length, own, own, earned, (0,) * length)
    return tokens_of(acted, length, item.reward)
