"""What the faces share: an environment that is open, and its episodes, blocking and awaited.

    with opened("python", {"cells": 8}, target="127.0.0.1:50051") as world:
        handle = world.episode()
        first = handle.begin({"prompt": "..."})
        handle.call_tool("run", {"code": "print(6 * 7)"})
        handle.say("42")
        reward = handle.end().result.reward        # None for a fault

All episodes of a process run on one event loop, in a thread of their own: what an environment's
`open` yields may be bound to a loop. Each blocking method has an awaited twin (`begin`, `abegin`),
which may be awaited on any loop.
"""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from assay.clients.core.portal import LoopThread
from assay.clients.faults import make_fault
from assay.clients.trainers.common.faults import FaultError
from assay.clients.trainers.common.scoring import score_awaited
from assay.clients.trainers.common.settings import NAMES, Settings, read_settings
from assay.clients.types import Fault, Item, Result
from assay.environments.endings import Ending
from assay.environments.environment import Environment, Row, Services
from assay.environments.episode import Episode, EpisodeLimits, offered
from assay.environments.formats import Format
from assay.environments.registry import environment_of, settings_of
from assay.environments.tools import ToolSpec, tools_of
from assay.environments.types import EpisodeMessage, EpisodeOutcome, Observation, Reply, ToolCall
from assay.kit.errors import ConfigError
from assay.kit.reasons import Reason

OVER = "error: the episode is over"
UNLIMITED = EpisodeLimits()


class TrainerServices:
    """The reward services that a trainer's options or the environment name (ASSAY_TARGET)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    async def score(self, item: Item) -> Result:
        """Judges one item, by the settings' verifier or task if it names none.

        Raises:
            FirstContactError: no server there can judge it.
            TooManyFaultsError: too many of the latest are faults.
        """
        if not (item.verifier or item.task):
            verifier, task = self.settings.verifier, self.settings.task
            item = dataclasses.replace(item, verifier=verifier, task="" if verifier else task)
        [result] = await score_awaited(self.settings, [item])
        return result


def services_of(options: Mapping[str, Any] | None = None) -> Services | None:
    """The services by a trainer's options over ASSAY_TARGET, ...; None where no target is named.

    Raises:
        ConfigError: a setting is out of range.
    """
    given = {name: (options or {}).get(name) for name in NAMES}
    if not (given.get("target") or os.environ.get("ASSAY_TARGET")):
        return None
    return TrainerServices(read_settings(given))


class OpenedEnvironment:
    """An environment, open: its class, its settings, and what its episodes share.

    Attributes:
        kind: the environment's class.
        settings: an instance of its `Settings`.
        shared: what its `open` yielded.
        services: that its episodes ask; None for none.
        limits: of each episode.
        tools: of the class, by name.
        one_conversation: the face holds one conversation of one agent: an observation of another
            agent or context is a fault.
    """

    def __init__(
        self,
        kind: type[Environment],
        settings: Any,
        services: Services | None,
        limits: EpisodeLimits,
        one_conversation: bool,
    ) -> None:
        self.kind = kind
        self.settings = settings
        self.services = services
        self.limits = limits
        self.one_conversation = one_conversation
        self.tools: Mapping[str, ToolSpec] = tools_of(kind)
        self._stack = ExitStack()
        self.shared = self._stack.enter_context(kind.open(settings))
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes what the episodes share. May be called twice; the process's end calls it."""
        atexit.unregister(self.close)
        self._stack.close()

    def episode(self, limits: EpisodeLimits | None = None) -> EpisodeHandle:
        """A new episode, which has not begun; within `limits`, if they are given."""
        return EpisodeHandle(self, limits)


def opened(
    environment: str | type[Environment],
    settings: Mapping[str, Any] | None = None,
    services: Services | None = None,
    *,
    limits: EpisodeLimits = UNLIMITED,
    one_conversation: bool = True,
    **options: Any,
) -> OpenedEnvironment:
    """Opens an environment; close it, or use it in a `with`.

    Args:
        environment: an installed one's name, `FILE.py:Class`, `package.module:Class`, or the class.
        settings: a table of its settings.
        services: that it asks; by default those of `options` and the environment's variables.
        limits: of each episode.
        one_conversation: see `OpenedEnvironment`.
        options: of a trainer (`assay.clients.trainers.common.settings`): `target`, `task`, ...

    Raises:
        ConfigError: there is no such environment, a setting is wrong, or what it needs is not had.
    """
    unknown = sorted(set(options) - set(NAMES))
    if unknown:
        raise ConfigError(f"there is no option {unknown[0]!r}; choose from: {', '.join(NAMES)}")
    kind = environment_of(environment) if isinstance(environment, str) else environment
    read = settings_of(kind, settings or {})
    return OpenedEnvironment(kind, read, services or services_of(options), limits, one_conversation)


class EpisodeHandle:
    """One episode, driven from outside; its turns follow one another, whoever calls at once.

    Attributes:
        episode: that is driven.
        observation: what is read next; None before the beginning and after the end.
    """

    def __init__(self, world: OpenedEnvironment, limits: EpisodeLimits | None = None) -> None:
        self.world = world
        made = world.kind(world.settings, world.shared, world.services)
        self.episode = Episode(made, limits or world.limits)
        self.observation: Observation | None = None
        self._first: Observation | None = None
        self._lock = asyncio.Lock()

    @property
    def outcome(self) -> EpisodeOutcome | None:
        """How it ended; None while it goes on."""
        return self.episode.outcome

    def begin(self, row: Row) -> Observation:
        """Begins it: what the policy reads first.

        Raises:
            FaultError: the environment could not begin.
        """
        return _loop().run(self._begin(row))

    async def abegin(self, row: Row) -> Observation:
        """See begin."""
        return await _loop().awaited(self._begin(row))

    def call_tool(self, name: str, arguments: Any = None, call_id: str = "") -> str:
        """A turn of one call; returns the tool's answer, a refusal's text included.

        Once the episode is over by the policy's doing, the text says so.

        Raises:
            FaultError: the environment broke, now or before, or the time is up.
        """
        return _loop().run(self._call(ToolCall(name, arguments, call_id)))

    async def acall_tool(self, name: str, arguments: Any = None, call_id: str = "") -> str:
        """See call_tool."""
        return await _loop().awaited(self._call(ToolCall(name, arguments, call_id)))

    def say(self, turn: Reply | str) -> Observation | None:
        """A turn, its calls as its `Reply` has them; returns what is read next, None at the end.

        Raises:
            FaultError: the environment broke, now or before, or the time is up.
            RuntimeError: it is over, or has not begun.
        """
        return _loop().run(self._say(turn))

    async def asay(self, turn: Reply | str) -> Observation | None:
        """See say."""
        return await _loop().awaited(self._say(turn))

    def step(self, turn: Reply | str) -> tuple[Observation | None, float | None]:
        """As `say`, with the turn's reward; that of the last turn has the final one in it.

        Raises:
            FaultError: as `say`; or what the episode earned is not known.
            RuntimeError: it is over, or has not begun.
        """
        return _loop().run(self._step(turn))

    async def astep(self, turn: Reply | str) -> tuple[Observation | None, float | None]:
        """See step."""
        return await _loop().awaited(self._step(turn))

    def drop(self) -> None:
        """Ends it without waiting for the end: for finalizers."""
        _loop().submit(self._end(Ending.ABANDONED, None))

    def end(self, ending: Ending | None = None, fault: Fault | None = None) -> EpisodeOutcome:
        """Ends it, and says what it earned. May be called twice; raises nothing."""
        return _loop().run(self._end(ending, fault))

    async def aend(
        self, ending: Ending | None = None, fault: Fault | None = None
    ) -> EpisodeOutcome:
        """See end."""
        return await _loop().awaited(self._end(ending, fault))

    async def _begin(self, row: Row) -> Observation:
        async with self._lock:
            first = self._first = await self.episode.begin(row)
            await self._read(first)
            if first is None:
                raise RuntimeError("an episode that begins without an observation is a fault")
            return first

    async def _call(self, call: ToolCall) -> str:
        async with self._lock:
            await self._raise_for_fault()
            if self.observation is None:
                return OVER
            await self._read(await self.episode.take(Reply("", (call,))))
            called = self.episode.steps[-1].calls
            return called[-1].result.text if called else OVER

    async def _say(self, turn: Reply | str) -> Observation | None:
        async with self._lock:
            await self._raise_for_fault()
            given = Reply(turn, answer=turn) if isinstance(turn, str) else turn
            following = await self.episode.take(given)
            await self._read(following)
            return following

    async def _step(self, turn: Reply | str) -> tuple[Observation | None, float | None]:
        following = await self._say(turn)
        last = self.episode.steps[-1]
        if following is not None:
            return following, last.reward
        outcome = await self._end(None, None)
        before = sum(one.reward or 0.0 for one in self.episode.steps[:-1])
        return None, reward_of(outcome, last.turn.agent) - before

    async def _end(self, ending: Ending | None, fault: Fault | None) -> EpisodeOutcome:
        async with self._lock:
            self.observation = None
            return await self.episode.end(ending, fault)

    async def _read(self, following: Observation | None) -> None:
        self.observation = following
        first = self._first
        if self.world.one_conversation and following is not None and first is not None:
            here, there = (first.agent, first.context), (following.agent, following.context)
            if here != there:
                text = f"here one agent has one conversation, and {there} follows {here}"
                self.observation = None
                await self.episode.end(fault=make_fault(Reason.ENVIRONMENT_FAILED, text))
        await self._raise_for_fault()

    async def _raise_for_fault(self) -> None:
        ending = self.episode.ending
        if ending is not None and not ending.trusted:
            outcome = await self.episode.end()
            if outcome.result.fault is not None:
                raise FaultError(outcome.result.id, outcome.result.fault)


_kept: dict[str, OpenedEnvironment] = {}


def kept(environment: str, settings: Mapping[str, Any] | None, **options: Any) -> OpenedEnvironment:
    """An installed environment, opened once in a process for these settings.

    For trainers that make an object for each sample. See `opened`, of which these are arguments.

    Raises:
        ConfigError: as `opened`.
    """
    key = repr(
        (os.getpid(), environment, sorted((settings or {}).items()), sorted(options.items()))
    )
    with _opening:
        if key not in _kept:
            _kept[key] = opened(environment, settings, **options)
        return _kept[key]


def row_of(columns: Mapping[str, Any], messages: Any = None) -> dict[str, Any]:
    """A trainer's row as an environment has it.

    `extra_info` is laid beneath the columns; `reference` is by default the ground truth of
    `reward_model` (verl) or `reward_spec` (SkyRL), `prompt` the last of the user's `messages`.
    """
    row = {**(columns.get("extra_info") or {}), **columns}
    for name in ("reward_model", "reward_spec"):
        given = row.get(name)
        if isinstance(given, Mapping) and "ground_truth" in given:
            row.setdefault("reference", given["ground_truth"])
    if not isinstance(row.get("prompt"), str):
        said = [one["content"] for one in messages or () if one.get("role") == "user"]
        row["prompt"] = str(said[-1]) if said else ""
    return row


def chat(messages: Sequence[EpisodeMessage]) -> list[dict[str, Any]]:
    """Messages as chat templates and APIs take them."""
    made: list[dict[str, Any]] = []
    for one in messages:
        found: dict[str, Any] = {"role": one.role, "content": one.content}
        if one.calls:
            found["tool_calls"] = [
                {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in one.calls
            ]
        if one.name:
            found["name"] = one.name
        made.append(found)
    return made


def beginning(
    form: Format, handle: EpisodeHandle, first: Observation, given: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """What a conversation begins with: the system's messages of `given`, then the environment's.

    The tools are told in the system's words where the format does so.
    """
    system = [str(one["content"]) for one in given if one.get("role") == "system"]
    tools = [] if form.offers else offered(handle.episode, first)
    if tools:
        system.append(form.system(tools))
    made = chat(form.shown(first.messages))
    if not system:
        return made
    if made and made[0]["role"] == "system":
        system.append(str(made.pop(0)["content"]))
    return [{"role": "system", "content": "\n\n".join(text for text in system if text)}, *made]


def reward_of(outcome: EpisodeOutcome, agent: str = "policy") -> float:
    """What the episode earned, its turns' own rewards included.

    Raises:
        FaultError: it says nothing about the policy.
    """
    fault = outcome.result.fault
    earned = outcome.reward_of(agent)
    if fault is not None or earned is None or not outcome.trains:
        text = f"the episode ended by {outcome.ending}"
        raise FaultError(outcome.result.id, fault or make_fault(Reason.EPISODE_CUT, text))
    return earned + sum(reward for reward in outcome.turn_rewards if reward is not None)


_opening = threading.Lock()
_lock = threading.Lock()
_found: list[LoopThread] = []


def _loop() -> LoopThread:
    """This process's loop; a forked child has one of its own."""
    with _lock:
        if not _found or _found[-1].pid != os.getpid():
            on_itself = "an episode is waited for on its own event loop; await the twin"
            _found.append(LoopThread("assay-episodes", on_itself))
        return _found[-1]
