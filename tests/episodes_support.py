"""Episodes without a model: policy, judge and environments are functions of draw, sample, turn."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from assay.clients import Judgement, Result
from assay.environments import (
    Environment,
    EpisodeLimits,
    EpisodeMessage,
    Observation,
    Reply,
    ToolCall,
    tool,
)
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.methods.episodes.loop import EpisodeLoop
from assay.trainer.methods.episodes.talk import Episodes, EpisodeSetup
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.exchange import Exchange
from assay.trainer.rollouts.types import OneRank, Ranks, Rollout
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import stream

END = 9
LIMITS = EpisodeLimits(8, 20.0)


class Letters:
    """A rendering: a character is its code; a message of another is `<role>text`, `>` begins."""

    stops: tuple[str, ...] = ()

    def begin(self, messages: Sequence[EpisodeMessage], tools: Sequence[Any]) -> tuple[int, ...]:
        said = "".join(f"<{one.role}>{one.content}" for one in messages)
        return codes(f"[{len(tools)}]{said}>")

    def after(self, messages: Sequence[EpisodeMessage], last_ids: Sequence[int]) -> tuple[int, ...]:
        assert last_ids
        said = "".join(f"<{one.role}>{one.content}" for one in messages)
        return codes(f"{'' if last_ids[-1] == END else ';'}{said}>")

    def read(self, ids: Sequence[int], *, truncated: bool = False) -> Reply:
        text = letters(ids)
        calls = tuple(
            ToolCall(name, {"n": int(number)})
            for name, number in re.findall(r"(\w+)\((\d+)\)", text)
        )
        answer = "" if calls else text
        void = not calls and not answer
        return Reply(text, calls, answer, void, truncated=truncated, tokens=len(ids))


def codes(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def letters(ids: Sequence[int]) -> str:
    return "".join(chr(i) for i in ids if i != END)


class Counting(Environment):
    """Adds what it is called with; answers end it. `chance` decides what breaks, and where."""

    name = "counting"
    late: Callable[[str, Any], None] = staticmethod(lambda _where, _row: None)
    opened = closed = 0

    def reset(self, row: Any) -> Any:
        type(self).opened += 1
        self.total = 0
        self.late("reset", row)
        return row["prompt"]

    @tool
    def add(self, n: int) -> str:
        """Adds.

        Args:
            n: what.
        """
        self.late("tool", self.row)
        self.total += n
        return str(self.total)

    def turn(self, turn: Reply) -> Any:
        self.late("turn", self.row)

    def reward(self) -> Any:
        self.late("reward", self.row)
        return float(self.last.answer == str(self.total))

    def close(self) -> None:
        type(self).closed += 1
        self.late("close", self.row)


def fresh(kind: type[Environment] = Counting, late: Any = None) -> Any:
    """A class of its own, so that counts and hooks are this test's."""
    own = {} if late is None else {"late": staticmethod(late)}
    return type(kind.__name__, (kind,), {"opened": 0, "closed": 0, **own})


def says(request: Request, most: int = 4) -> str:
    """What the policy writes: some calls, then an answer, which may be right."""
    dice = random.Random(f"{request.draw.number}-{request.index}-{request.turn}")
    if request.turn < random.Random(f"{request.draw.number}-{request.index}").randrange(most):
        return f"add({dice.randrange(20)})"
    seen = re.findall(r"<tool>(\d+)", letters(request.draw.prompt_ids))
    total = seen[-1] if seen else "0"
    return total if dice.random() < 0.6 else "no"


def response(request: Request, text: str) -> Response:
    ids = (*codes(text), END)
    logprobs = tuple(-0.01 * (n + 1) - request.turn for n in range(len(ids)))
    return Response(ids, text, logprobs, False)


class Actor:
    """Who acts: a scripted engine over an environment's class."""

    def __init__(
        self,
        loop: EpisodeLoop,
        kind: Any,
        script: Callable[[Request], str] = says,
        *,
        limits: EpisodeLimits = LIMITS,
        longest: int = 400,
        **setup: Any,
    ) -> None:
        self.kind = kind
        self.engine = ScriptedEngine(lambda request: response(request, script(request)))
        self.sampler = Sampler(self.engine, Sampling(longest))
        self.episodes = Episodes(
            loop,
            EpisodeSetup(
                kind, kind.Settings(), None, limits, Letters(), lambda _request: Services(),  # type: ignore[arg-type, return-value]
                letters, 0, **setup,
            ),
        )  # fmt: skip

    def rollouts(self, requests: Sequence[Request]) -> list[Rollout]:
        exchange = Exchange(requests, NoScoring(), self.episodes)
        exchange.answered_by(self.sampler)
        return exchange.rollouts(7)

    def collector(self, *, prompts: int = 4, ranks: Ranks | None = None, **rest: Any) -> Collector:
        return Collector(
            stream(), self.sampler, NoScoring, talk=self.episodes, ranks=ranks or OneRank(),
            config=RolloutConfig(prompts_per_step=prompts, group_size=2), **rest,
        )  # fmt: skip


class Services:
    """Nobody asks them here."""

    extend: Any = None

    async def score(self, item: Any) -> Result:
        raise AssertionError(item)


class NoScoring:
    def submit(self, request: Request, answer: Response) -> None:
        raise AssertionError((request, answer))

    def results(self) -> list[Result]:
        return []


@contextmanager
def looped(concurrency: int = 64) -> Iterator[EpisodeLoop]:
    loop = EpisodeLoop(concurrency)
    try:
        yield loop
    finally:
        loop.close()


def requests(draws: int = 4, samples: int = 2) -> list[Request]:
    return [Request(stream().draw(n), index) for n in range(draws) for index in range(samples)]


def waits(seed: int, most_s: float = 0.004) -> Callable[[str, Any], None]:
    """Something that takes its time."""
    dice = random.Random(seed)
    return lambda _where, _row: time.sleep(dice.random() * most_s)


def breaks(seed: int, share: float = 0.15) -> Callable[[str, Any], None]:
    """Something that breaks at random."""
    dice = random.Random(seed)

    def late(where: str, _row: Any) -> None:
        if dice.random() < share:
            raise ArithmeticError(f"told to, in {where}")

    return late


class Segments(Environment):
    """Two conversations of one agent: the second begins with what the first ended with."""

    name = "segments"

    def turn(self, turn: Reply) -> Any:
        if turn.answer == "next":
            return Observation.user("memo", context="b", reward=0.25)
        return Observation((), reward=0.5)

    def reward(self) -> Judgement:
        return Judgement(1.0, "correct")


class Pair(Environment):
    """Two agents, who answer one another; the second earns a reward of its own."""

    name = "pair"

    def turn(self, turn: Reply) -> Any:
        other = "solver#1" if turn.agent == "proposer" else "proposer"
        return None if turn.answer == "over" else Observation.user(turn.answer, agent=other)

    def reset(self, row: Any) -> Any:
        return Observation.user(row["prompt"], agent="proposer")

    def reward(self) -> dict[str, float]:
        return {"proposer": 1.0, "solver#1": 0.25}
