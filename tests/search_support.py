"""Scripted episodes over a small corpus, judged by the real verifiers in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.clients.convert import item_to_proto
from assay.clients.types import Fault, Item, Judgement, Result
from assay.environments import Environment, Episode, EpisodeLimits, Observation, Reply, ToolCall
from assay.environments.types import EpisodeOutcome
from assay.reward_server import border, convert
from assay.reward_server import domain as server_domain
from assay.verifiers_extra.answers.citations import citations
from assay.verifiers_extra.answers.search_qa import search_qa

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "d1", "title": "Lyon", "text": "Lyon is a city on the Rhone. Its mayor is Ana Ruiz."},
    {"id": "d2", "title": "Paris", "text": "Paris is the capital of France and lies on the Seine."},
    {"id": "d3", "title": "Seine", "text": "The Seine flows through Paris to sea at Le Havre."},
    {"id": "d4", "title": "Bridge", "text": "The Mirabeau bridge was made by Jean Resal in 1896."},
    {
        "id": "d5",
        "title": "Resal",
        "text": "Jean Resal, engineer, was born in Besancon in 1854.",
    },
]
_NONE = EpisodeLimits()
Turns = Sequence[Any]
"""Texts, calls, several calls, or whole replies."""


def corpus_file(folder: Path, rows: Sequence[Any] = DOCUMENTS) -> str:
    """A corpus of rows, or of lines as they are."""
    path = folder / "corpus.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


class RealVerifiers:
    """Services that are `search-qa` and `citations`, by way of the wire's messages.

    Attributes:
        fails: the verifiers whose calls are faults.
        asked: items, in order.
    """

    def __init__(self, *fails: str) -> None:
        self.fails = set(fails)
        self.asked: list[Item] = []
        self._verifiers = {one.spec.name: one for one in (search_qa, citations)}

    async def score(self, item: Item) -> Result:
        self.asked.append(item)
        if item.verifier in self.fails:
            return Result("", Fault("WORKER_DIED", "on purpose", "INTERNAL"))
        verifier = self._verifiers[item.verifier]
        message = item_to_proto(item, "0")
        read = convert.item_from_proto(message, verifier.spec)
        outcome = border.judge(verifier, read)
        if isinstance(outcome, server_domain.Fault):
            return Result("", Fault(str(outcome.reason), outcome.message))
        assert isinstance(outcome, Judgement)
        return Result("", outcome)


@dataclass
class Played:
    """An episode that was played."""

    outcome: EpisodeOutcome
    seen: list[Observation]
    episode: Episode
    left: list[Any] = field(default_factory=list)

    @property
    def reward(self) -> float | None:
        return self.outcome.result.reward

    def text(self) -> str:
        """All that any agent read."""
        return "\n".join(one.content for seen in self.seen for one in seen.messages)


def reply(turn: Any) -> Reply:
    """A turn as a format reads it."""
    if isinstance(turn, Reply):
        return turn
    if isinstance(turn, str):
        return Reply(turn, answer=turn)
    calls = (turn,) if isinstance(turn, ToolCall) else tuple(turn)
    return Reply("".join(call.text for call in calls), calls=calls)


async def play_async(
    environment: Environment, row: Any, turns: Turns, limits: EpisodeLimits = _NONE
) -> Played:
    """Plays turns until the episode or they are over."""
    episode = Episode(environment, limits)
    seen: list[Observation] = []
    left = list(turns)
    observation = await episode.begin(row)
    while observation is not None:
        seen.append(observation)
        if not left:
            break
        observation = await episode.take(reply(left.pop(0)))
    return Played(await episode.end(), seen, episode, left)


def play(environment: Environment, row: Any, turns: Turns, limits: EpisodeLimits = _NONE) -> Played:
    """As `play_async`."""
    return asyncio.run(play_async(environment, row, turns, limits))


def find(query: str, count: int = 3, said: str = "") -> ToolCall:
    """A call of the tool `search`; `said` is all that the turn's text holds."""
    return ToolCall("search", {"query": query, "count": count}, text=said)
