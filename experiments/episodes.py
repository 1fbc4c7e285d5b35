"""Toy environments of the presets' miniatures; the policy's models are in the modules beside.

`Counters`: two agents of one policy, one counts up from a digit and one counts down, for rewards of
different size (Dr. MAS, arXiv 2602.08847).

`Recall`: digits come one by one, more than a conversation may hold, and the policy says at each
which was the first (SUPO, arXiv 2510.06727). Its contexts are those of the shipped environment
`search`.

`Flaky`: a tool that multiplies, and fails first: what the policy reads then is a traceback, words
of its thoughts where it only ever saw a number (SimpleTIR, arXiv 2509.02479).

`Lookup`: a tool that fails by chance, whatever the policy could know (SimpleTIR).

`Cues`: a talk of several turns, whose share of right answers is told as a reward at its end alone
(ArCHer, arXiv 2402.19446).
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.environments import Environment, EpisodeMessage, Observation, Reply, tool
from assay.environments.shipped.memory import AgentContext, ContextKind, ContextLimits

STEPS, BASE = 3, 10
SIGNS = {"up": "+", "down": "-"}


def counted(digit: int, agent: str) -> str:
    """The right answer to a digit."""
    stride = 1 if agent == "up" else -1
    return "".join(str((digit + stride * n) % BASE) for n in range(1, STEPS + 1))


@dataclass(frozen=True, slots=True)
class CountersSettings:
    """What a right answer earns."""

    up: float = 10.0
    down: float = 1.0


class Counters(Environment):
    """A turn of each agent; a wrong answer earns nothing."""

    name = "counters"
    Settings = CountersSettings

    def reset(self, row: Mapping[str, Any]) -> Observation:
        self._digit = int(row["prompt"])
        self._right: dict[str, bool] = {}
        return self._asked("up")

    def turn(self, turn: Reply) -> Observation | None:
        self._right[turn.agent] = turn.text.strip() == counted(self._digit, turn.agent)
        return self._asked("down") if turn.agent == "up" else None

    def reward(self) -> Mapping[str, float]:
        return {
            agent: getattr(self.settings, agent) * self._right.get(agent, False) for agent in SIGNS
        }

    def _asked(self, agent: str) -> Observation:
        asked = EpisodeMessage("user", f"{self._digit}{SIGNS[agent]}")
        return Observation((asked,), agent=agent)


PART = 5
"""Digits after which a conversation is summed up."""


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """How the talk goes on, and who earns: all of its conversations, or the last alone."""

    context: ContextKind = "summary"
    summary_turns: int = PART
    earns: Literal["all", "last"] = "all"


class Recall(Environment):
    """A turn before each digit, the summaries, and a last turn, which is the answer."""

    name = "recall"
    Settings = RecallSettings

    def reset(self, row: Mapping[str, Any]) -> Observation:
        self._left = list(str(row["prompt"]))
        self._first, self._answer = self._left[0], ""
        self._to_come = len(self._left) // PART
        limits = ContextLimits(tokens=0, turns=self.settings.summary_turns)
        self._talk = AgentContext(self.settings.context, limits, "", "?", agent="policy")
        return self._said(self._talk.begin())

    def turn(self, turn: Reply) -> Observation | None:
        if self.is_asked:
            self._to_come -= 1
            return self._said(self._talk.follow(turn, ()))
        if not self._left:
            self._answer = turn.text.strip()
            return None
        return self._said(self._talk.follow(turn, (EpisodeMessage("user", self._left.pop(0)),)))

    @property
    def is_asked(self) -> bool:
        """Whether the turn that is due is a summary."""
        return self._talk.is_summarising

    def reward(self) -> float | Mapping[str, float]:
        earned = float(self._answer == self._first)
        return earned if self.settings.earns == "all" else {"policy": 0.0, "last": earned}

    def _said(self, observation: Observation) -> Observation:
        is_last = self.settings.earns == "last" and self._to_come == 0
        return replace(observation, agent="last") if is_last else observation


PROSE = tuple(f" {a}{b}{c}" for a in "bdfghklmnprstvwz" for b in "aeiou" for c in "ns")
"""Words of thoughts, and of tracebacks."""
_PRODUCT = re.compile(r"(\d+)\*(\d+)\s*")


@dataclass(frozen=True, slots=True)
class FlakySettings:
    """How often the tool fails at most before it works, and the words of a traceback."""

    failures: int = 2
    words: int = 8


class Flaky(Environment):
    """A product; the row alone decides how often the tool fails."""

    name = "flaky"
    Settings = FlakySettings

    def reset(self, row: Mapping[str, Any]) -> str:
        prompt = str(row["prompt"])
        self._dice = random.Random(zlib.crc32(prompt.encode()))
        self._left = self._dice.randrange(self.settings.failures + 1)
        return prompt

    @tool
    def python(self, code: str) -> str:
        """Runs a program.

        Args:
            code: a product of two numbers.
        """
        found = _PRODUCT.fullmatch(code)
        self._left -= 1
        if self._left >= 0 or found is None:
            return "".join(self._dice.choices(PROSE, k=self.settings.words))
        return str(int(found[1]) * int(found[2]))


NAMES = "abcdefgh"
_LOOKED_UP = re.compile(r"([a-h])=(\d{3})\s*")


def bit_of(key: str) -> str:
    """What a key stands for: "0" or "1", without a rule that could be learnt."""
    return str(zlib.crc32(key.encode()) % 2)


@dataclass(frozen=True, slots=True)
class LookupSettings:
    """How often a call works, and the words of a traceback."""

    works: float = 0.35
    words: int = 8


class Lookup(Environment):
    """A key of three digits; whether a call works goes by the key and the variable's name."""

    name = "lookup"
    Settings = LookupSettings

    def reset(self, row: Mapping[str, Any]) -> str:
        self._key = str(row["prompt"])
        return self._key

    @tool
    def python(self, code: str) -> str:
        """Runs a program.

        Args:
            code: a key, given to a variable.
        """
        found = _LOOKED_UP.fullmatch(code)
        dice = random.Random(zlib.crc32(f"{self._key}{code}".encode()))
        if found is None or dice.random() >= self.settings.works:
            return "".join(dice.choices(PROSE, k=self.settings.words))
        return bit_of(found[2])


CUES, CHOICES = "abcdefgh", "ABCD"
ANSWERS = dict(zip(CUES, "ACBDDBCA", strict=True))
HABITS = dict(zip(CUES, "BDCAACDB", strict=True))
"""What the pretrained policy says."""


class Cues(Environment):
    """A cue each turn, and how many answers were right so far."""

    name = "cues"

    def reset(self, row: Mapping[str, Any]) -> str:
        self._cues = list(str(row["prompt"]))
        self._right: list[bool] = []
        return self._due()

    def turn(self, turn: Reply) -> str | None:
        cue = self._cues[len(self._right)]
        self._right.append(turn.text.strip().startswith(ANSWERS[cue]))
        return self._due() if len(self._right) < len(self._cues) else None

    def _due(self) -> str:
        return f"{sum(self._right)}{self._cues[len(self._right)]}"

    def reward(self) -> float:
        return sum(self._right) / len(self._cues)
