"""Episodes: the policy's turns from the engine, what answers them from an environment.

A turn ends, its calls are read, the environment answers on the loop of episodes (loop.py), and the
next request comes back to the engine, which meanwhile draws for others. A conversation's tokens are
those that were drawn, with what stands between them (rendering.py). Seed, draw, sample and turn
fix each turn's random numbers: an episode does not depend on the others.

What the policy reads first is what `reset` gives. Where that is the row's prompt itself, it is the
data's whole conversation (data.system, examples, data.template, a hint); another text of the user
takes the place of that conversation's last message; an observation of several messages, or of
another role, stands as it is.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from assay.clients import Fault, Result
from assay.clients.faults import make_fault
from assay.environments import (
    Ending,
    Environment,
    Episode,
    EpisodeLimits,
    EpisodeMessage,
    Observation,
    Reply,
)
from assay.environments.cache import ToolCache
from assay.environments.episode import offered
from assay.environments.record import record_of
from assay.kit.reasons import Reason
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Request, Response
from assay.trainer.methods.episodes.loop import EpisodeLoop
from assay.trainer.methods.episodes.measures import facts_of
from assay.trainer.methods.episodes.rendering import Rendering
from assay.trainer.methods.episodes.services import RunServices
from assay.trainer.rollouts.exchange import Next, Talk
from assay.trainer.rollouts.types import Acted, ActedTurn, Rollout, Unfinished


@dataclass(frozen=True, slots=True)
class EpisodeSetup:
    """What all episodes of a run have in common.

    Attributes:
        shared: what the environment's `open` yielded.
        services_of: those of one episode.
        decode: tokens to text, without special tokens.
        placeholder: the token of an episode without a turn.
        tokens: most that the policy writes in an episode; 0 for no limit.
        context: most tokens of a conversation; 0 for no limit.
        cache: of tool results; None for none.
    """

    kind: type[Environment]
    settings: Any
    shared: Any
    limits: EpisodeLimits
    rendering: Rendering
    services_of: Callable[[Request], RunServices]
    decode: Callable[[Sequence[int]], str]
    placeholder: int
    tokens: int = 0
    context: int = 0
    cache: ToolCache | None = None


@dataclass(slots=True)
class _Conversation:
    """One context: its tokens, prompt included, of which the policy's have log-probabilities."""

    prompt: int
    ids: list[int]
    logprobs: list[float]


@dataclass(slots=True)
class _Turn:
    start: int
    context: int
    reply: Reply
    response: Response


@dataclass(slots=True)
class _Live:
    """An episode that goes on, or has ended and waits to be read."""

    first: Request
    episode: Episode
    contexts: dict[tuple[str, str], int] = field(default_factory=dict)
    talks: list[_Conversation] = field(default_factory=list)
    turns: list[_Turn] = field(default_factory=list)
    at: int = 0
    unknown: bool = False  # the engine gives no log-probabilities
    record: Mapping[str, Any] = field(default_factory=dict)
    task: asyncio.Task[Any] | None = None

    @property
    def written(self) -> int:
        """Tokens of the policy, so far."""
        return sum(len(turn.response.ids) for turn in self.turns)


class Episodes(Talk):
    """What an episode is; a rollouts.exchange.Talk.

    Args:
        loop: where environments live.
        setup: of the run.
    """

    only = True

    def __init__(self, loop: EpisodeLoop, setup: EpisodeSetup) -> None:
        self._loop = loop
        self._setup = setup
        self._lives: dict[int, _Live] = {}

    def begin(self, first: Request) -> Future[Next]:
        """See Talk."""
        setup, services = self._setup, self._setup.services_of(first)
        environment = setup.kind(setup.settings, setup.shared, services)
        runner = None if setup.cache is None else setup.cache.runner(environment)
        live = _Live(first, Episode(environment, setup.limits, runner=runner))
        services.extend = live.episode.extend
        self._lives[id(first)] = live
        return self._loop.submit(self._begun(live))

    def following(self, first: Request, responses: Sequence[Response]) -> Future[Next]:
        """See Talk."""
        return self._loop.submit(self._taken(self._lives[id(first)], responses[-1]))

    def release(self, first: Request) -> None:
        """See Talk: ends an episode that goes on, and closes its environment."""
        live = self._lives.pop(id(first), None)
        if live is not None and live.episode.outcome is None:
            self._loop.submit(self._abandoned(live))

    def judged(self, turn: int) -> bool:
        """See Talk: the environment asks the services itself."""
        del turn
        return False

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        """See Talk."""
        return facts_of(rollout)

    def rollout(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        """See Talk: one response, all conversations one after the other."""
        del responses, results
        live = self._lives[id(first)]
        outcome = live.episode.outcome
        assert outcome is not None  # noqa: S101  # only of a whole sample
        ids, logprobs, contexts = self._laid_out(live)
        prompt = live.talks[0].ids[: live.talks[0].prompt] if live.turns else ()
        request = (
            replace(first, draw=replace(first.draw, prompt_ids=tuple(prompt))) if prompt else first
        )
        turns = tuple(
            _acted(live, number, contexts, reward)
            for number, reward in enumerate(outcome.turn_rewards[: len(live.turns)])
        )
        acted = Acted(
            live.episode.environment.name,
            str(outcome.ending),
            turns,
            tuple(contexts),
            dict(outcome.rewards),
            live.record,
        )
        cut = outcome.ending is Ending.TOKEN_LIMIT or any(turn.truncated for turn in turns)
        text = self._setup.decode(ids)
        told = None if live.unknown else tuple(logprobs)
        response = Response(tuple(ids), text, told, cut)
        return Rollout(request, response, outcome.result, policy_step, acted=acted)

    def unfinished(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Unfinished:
        """See Talk; an environment does not wait for a later step."""
        raise RuntimeError("an episode cannot go on in a later step")

    # -- on the loop ------------------------------------------------------------------------------

    async def _begun(self, live: _Live) -> Next:
        live.task = asyncio.current_task()
        problem = live.first.draw.problem
        async with self._loop.seat(live.episode.extend):
            observation = await live.episode.begin(row_of(problem))
        if observation is None:
            return await self._over(live)
        return await self._asked(live, _composed(observation, problem))

    async def _taken(self, live: _Live, response: Response) -> Next:
        live.task = asyncio.current_task()
        talk = live.talks[live.at]
        rendering = self._setup.rendering
        reply = rendering.read(response.ids, truncated=response.truncated)
        live.turns.append(_Turn(len(talk.ids), live.at, reply, response))
        talk.ids += response.ids
        live.unknown |= response.logprobs is None
        talk.logprobs += response.logprobs or [math.nan] * len(response.ids)
        async with self._loop.seat(live.episode.extend):
            observation = await live.episode.take(reply)
        if observation is None:
            return await self._over(live)
        return await self._asked(live, observation)

    async def _asked(self, live: _Live, observation: Observation) -> Next:
        """The request for the next turn; none where its conversation, or the budget, is full."""
        setup = self._setup
        where = observation.agent, observation.context
        number = live.contexts.get(where)
        known = None if number is None else live.talks[number]
        try:
            if known is None:
                added = setup.rendering.begin(
                    observation.messages, offered(live.episode, observation)
                )
            else:
                added = setup.rendering.after(observation.messages, _last(live, number))
        except Exception as error:  # noqa: BLE001  # whatever a chat template raises
            return await self._over(live, fault=_fault(f"its messages: {error}"))
        before = [] if known is None else known.ids
        most = self._most(live, len(before) + len(added))
        if not live.turns and (most == 0 or not (before or added)):
            text = f"its first prompt has {len(added)} tokens; no turn fits behind them"
            return await self._over(live, fault=_fault(text))
        if most == 0:
            return await self._over(live, Ending.TOKEN_LIMIT)
        if known is None:
            number = live.contexts[where] = len(live.talks)
            known = _Conversation(len(added), [], [])
            live.talks.append(known)
        known.ids += added
        known.logprobs += [math.nan] * len(added)
        live.at = live.contexts[where]
        first = live.first
        return replace(
            first,
            draw=replace(first.draw, prompt_ids=tuple(known.ids)),
            turn=len(live.turns),
            most=max(0, most),
        )

    def _most(self, live: _Live, read: int) -> int:
        """Tokens that a turn may have behind `read` ones; -1 for no limit, 0 for none."""
        setup, limits = self._setup, []
        if setup.context:
            limits.append(setup.context - read)
        if setup.tokens:
            limits.append(setup.tokens - live.written)
        return max(0, min(limits)) if limits else -1

    async def _over(
        self, live: _Live, ending: Ending | None = None, *, fault: Fault | None = None
    ) -> Next:
        async with self._loop.seat(live.episode.extend):
            await live.episode.end(ending, fault)
        live.record = record_of(live.episode)
        return None

    async def _abandoned(self, live: _Live) -> None:
        if live.task is not None and not live.task.done():
            if live.episode.outcome is None:
                live.task.cancel()
            await asyncio.wait([live.task])
        await live.episode.end(Ending.ABANDONED)

    # -- of an episode that is over ---------------------------------------------------------------

    def _laid_out(self, live: _Live) -> tuple[list[int], list[float], list[int]]:
        """The row's tokens and log-probabilities, and where each conversation begins."""
        if not live.turns:
            return [self._setup.placeholder], [math.nan], [0]
        ids: list[int] = []
        logprobs: list[float] = []
        contexts: list[int] = []
        for number, talk in enumerate(live.talks):
            contexts.append(len(ids))
            skipped = 0 if number else talk.prompt
            ids += talk.ids[skipped:]
            logprobs += talk.logprobs[skipped:]
        return ids, logprobs, contexts


def _acted(live: _Live, number: int, contexts: Sequence[int], reward: float | None) -> ActedTurn:
    turn, step = live.turns[number], live.episode.steps[number]
    start = contexts[turn.context] + turn.start
    if not turn.context:
        start -= live.talks[0].prompt
    return ActedTurn(
        start,
        start + len(turn.response.ids),
        turn.context,
        step.turn.agent,
        turn.reply.text,
        truncated=turn.response.truncated,
        void=turn.reply.void,
        calls=len(step.turn.calls),
        refused=sum(one.refused for one in step.calls),
        cached=sum(one.cached for one in step.calls),
        reward=reward,
        seconds=step.seconds,
    )


def _last(live: _Live, context: int | None) -> Sequence[int]:
    """The tokens of the latest turn of a conversation."""
    return next((turn.response.ids for turn in reversed(live.turns) if turn.context == context), ())


def _fault(text: str) -> Fault:
    return make_fault(Reason.ENVIRONMENT_FAILED, text[:1000])


def row_of(problem: Problem) -> dict[str, Any]:
    """What `reset` gets: the data's row, with the standard names of what a problem has."""
    row: dict[str, Any] = json.loads(problem.row) if problem.row else {}
    reference = problem.reference
    known = {
        **({"prompt": problem.question} if problem.question else {}),
        **({"reference": list(reference) if isinstance(reference, tuple) else reference}
           if reference else {}),
        "task": problem.task,
    }  # fmt: skip
    tests = {"tests": json.loads(problem.tests)} if problem.tests else {}
    solution = {"solution": problem.solution} if problem.solution else {}
    return {**row, **known, **tests, **solution}


def _composed(observation: Observation, problem: Problem) -> Observation:
    """The first observation within the data's conversation; see above."""
    if len(observation.messages) != 1 or observation.messages[0].role != "user":
        return observation
    told = tuple(EpisodeMessage(role, content) for role, content in problem.messages)
    if observation.messages[0].content != problem.question:
        told = (*told[:-1], observation.messages[0])
    return replace(observation, messages=told)
