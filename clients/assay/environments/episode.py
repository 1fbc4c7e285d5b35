"""One episode: between an environment and whoever writes the policy's turns.

    episode = Episode(environment)
    observation = await episode.begin(row)
    while observation is not None:
        observation = await episode.take(Reply(...))      # the turn of observation.agent
    outcome = await episode.end()

Nothing that an environment does raises here: it is a text for the policy (ToolError), an ending of
the policy's doing (BudgetSpent), or a fault, and then nothing of the episode trains.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from assay.clients.faults import fault_of_error, make_fault
from assay.clients.types import Fault, Judgement, Result
from assay.environments.endings import Ending
from assay.environments.environment import (
    BudgetSpent,
    Environment,
    EpisodeFault,
    Row,
    ToolError,
    ToolResult,
)
from assay.environments.running import DirectRunner, ToolRunner, called
from assay.environments.tools import tools_of
from assay.environments.types import EpisodeMessage, EpisodeOutcome, Observation, Reply, ToolCall
from assay.kit.errors import CallError
from assay.kit.reasons import Reason

_CLOSE_S = 30.0


@dataclass(frozen=True, slots=True)
class EpisodeLimits:
    """What an episode may take; 0 for no limit.

    Attributes:
        turns: of all agents together.
        seconds: from the beginning on, generation included.
        calls: of tools, in one turn; further ones are refused in words.
    """

    turns: int = 0
    seconds: float = 0.0
    calls: int = 8


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a tool and its answer, as they are recorded.

    Attributes:
        refused: the answer is a refusal (ToolError).
        cached: the answer was another sample's.
        asked: False where the episode itself refused the call.
    """

    call: ToolCall
    result: ToolResult
    seconds: float = 0.0
    refused: bool = False
    cached: bool = False
    asked: bool = True


@dataclass(slots=True)
class Step:
    """A turn, and what came of it.

    Attributes:
        before: what its agent had read; its messages are new ones.
        reward: of the turn, on itself.
        seconds: of tools and of the environment.
        at: seconds from the episode's beginning to the turn.
    """

    before: Observation
    turn: Reply
    calls: list[Called] = dataclasses.field(default_factory=list)
    reward: float | None = None
    seconds: float = 0.0
    at: float = 0.0


class Episode:
    """An episode of one environment; for one task at a time.

    Attributes:
        steps: so far.
        row: that it began with.
        limits: as given.
        began: seconds since 1970.
        ending: None while it goes on.
        outcome: once it has ended.
    """

    def __init__(
        self,
        environment: Environment,
        limits: EpisodeLimits = EpisodeLimits(),
        *,
        runner: ToolRunner | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.environment = environment
        self.steps: list[Step] = []
        self.row: Row = {}
        self.ending: Ending | None = None
        self.outcome: EpisodeOutcome | None = None
        self.limits = limits
        self._runner = runner or DirectRunner(environment)
        self._clock = clock
        self._began_s = self._since_s = clock()
        self.began = time.time()
        self._next: Observation | None = None
        self._fault: Fault | None = None
        self._limit: asyncio.Timeout | None = None
        self._offers: dict[tuple[str, str], tuple[str, ...] | None] = {}

    async def begin(self, row: Row) -> Observation | None:
        """What the first agent reads; None where the episode ended at once, by a fault."""
        self.row = dict(row)
        self.environment.row = _own(self.row)
        self._began_s = self._since_s = self._clock()
        self.began = time.time()
        given = await self._guarded(
            lambda: called(self.environment.reset, self.environment.row), "reset"
        )
        if not self.is_over():
            following = self._observation(given, "reset", None)
            if following is not None and following.messages:
                self._next = following
            elif not self.is_over():
                self._broke("reset() gave no message for the policy")
        return self._next

    def is_over(self) -> bool:
        """Whether no turn is due any more."""
        return self.ending is not None

    def extend(self, seconds: float) -> None:
        """Adds to the episode's seconds, for a wait that is nobody's doing in it: an outage."""
        self._since_s += seconds
        due = self._limit.when() if self._limit is not None else None
        if self._limit is not None and due is not None and not self._limit.expired():
            self._limit.reschedule(due + seconds)

    @property
    def due(self) -> Observation | None:
        """What the next turn answers; None where none is due."""
        return None if self.is_over() else self._next

    async def take(self, turn: Reply) -> Observation | None:
        """Takes the next turn; returns what is read next, None at the end.

        Raises:
            RuntimeError: the episode has ended, or has not begun.
        """
        if self._next is None or self.is_over():
            raise RuntimeError("no turn is due in this episode")
        turn = dataclasses.replace(turn, agent=self._next.agent)
        step = Step(self._next, turn)
        self.steps.append(step)
        self._offers.setdefault((self._next.agent, self._next.context), self._next.tools)
        self._next = None
        if not self.steps[1:] or turn.agent == self.steps[0].turn.agent:
            self.environment.last = turn
        started = self._clock()
        step.at = started - self._began_s
        following = await (self._calls(step) if turn.calls else self._turn(step))
        step.seconds = self._clock() - started
        if self.is_over():
            return None
        if following is not None and following.reward is not None:
            step.reward = (step.reward or 0.0) + following.reward
        if following is None or not following.messages:
            self.ending = Ending.ANSWERED
            return None
        if self.limits.turns and len(self.steps) >= self.limits.turns:
            self.ending = Ending.TURN_LIMIT
            return None
        self._next = following
        return following

    async def end(self, ending: Ending | None = None, fault: Fault | None = None) -> EpisodeOutcome:
        """Ends the episode, asks what it earned, closes the environment. May be called twice.

        `ending` is why, where the episode would have gone on; `fault` what broke outside of it.
        """
        if self.outcome is not None:
            return self.outcome
        if fault is not None:
            self.ending, self._fault = Ending.FAULT, fault
        if self.ending is None:
            self.ending = ending or Ending.ABANDONED
        given: Any = None
        if self.ending.trusted:
            self._since_s = self._clock()  # judging has the seconds anew
            try:
                given = await self._guarded(
                    lambda: self._settled(self.environment.reward), "reward"
                )
            except BaseException:  # who ends it was cancelled
                self._broke("nobody waited for its reward")
                await self._conclude(None)
                raise
        return await self._conclude(given)

    async def _conclude(self, given: Any) -> EpisodeOutcome:
        result, rewards = self._earned(given)
        assert self.ending is not None  # noqa: S101  # `end` set it
        if result.fault is not None and self.ending.trusted:
            self.ending = Ending.FAULT
        outcome = EpisodeOutcome(
            self.ending,
            result,
            rewards,
            tuple(step.reward for step in self.steps),
            len(self.steps),
            self._clock() - self._began_s,
        )
        self.outcome = outcome
        await self._close()
        return outcome

    async def _calls(self, step: Step) -> Observation | None:
        messages: list[EpisodeMessage] = []
        done = False
        for number, call in enumerate(step.turn.calls):
            if self.limits.calls and number >= self.limits.calls:
                refusal = ToolResult(f"error: at most {self.limits.calls} calls in one turn")
                answered = Called(call, refusal, refused=True, asked=False)
            elif call.name and not self._is_offered(step.before, call.name):
                refusal = ToolResult(f"error: there is no tool {call.name[:80]!r} here")
                answered = Called(call, refusal, refused=True, asked=False)
            else:
                answered = await self._answered(call)
            if self.is_over():
                return None
            step.calls.append(answered)
            result = answered.result
            if result.reward is not None:
                step.reward = (step.reward or 0.0) + result.reward
            messages.append(EpisodeMessage("tool", result.text, name=call.name, call_id=call.id))
            done = done or result.done
        if done:
            return None
        before, answers = step.before, tuple(messages)
        given = None
        if type(self.environment).answered is not Environment.answered:
            follow = self.environment.answered
            given = await self._guarded(
                lambda: self._settled(follow, step.turn, answers), "answered"
            )
            if self.is_over():
                return None
        if given is not None:
            return self._observation(given, "answered", before)
        return Observation(answers, before.agent, before.context)

    def _is_offered(self, before: Observation, name: str) -> bool:
        """Whether the conversation was offered a tool, or all tools."""
        names = self._offers.get((before.agent, before.context))
        return names is None or name in names

    async def _answered(self, call: ToolCall) -> Called:
        started = self._clock()
        refused = False

        async def run() -> ToolResult:
            nonlocal refused
            try:
                return _checked_result(await self._runner.run(call))
            except ToolError as error:
                refused = True
                return ToolResult(f"error: {error}")

        result = await self._guarded(run, f"the tool {call.name!r}")
        cached = bool(getattr(self._runner, "hit", False))
        if not isinstance(result, ToolResult):
            result = ToolResult("")
        return Called(call, result, self._clock() - started, refused, cached)

    async def _turn(self, step: Step) -> Observation | None:
        turn = self.environment.turn
        given = await self._guarded(lambda: self._settled(turn, step.turn), "turn")
        return None if self.is_over() else self._observation(given, "turn", step.before)

    async def _settled(self, hook: Callable[..., Any], *args: Any) -> Any:
        """Calls a hook that may read what tools changed, once all calls have been run."""
        settle = getattr(self._runner, "settle", None)
        if settle is not None and self.environment.state_read_by == "all":
            await settle()
        return await called(hook, *args)

    def _observation(
        self, given: Any, where: str, before: Observation | None
    ) -> Observation | None:
        if isinstance(given, Observation):
            wrong = _what_is_wrong(given)
            if wrong:
                self._broke(f"{where}() returned an Observation {wrong}")
                return None
        if given is None or isinstance(given, Observation):
            return given
        if isinstance(given, str):
            agent, context = (before.agent, before.context) if before else ("policy", "")
            return Observation((EpisodeMessage("user", given),), agent, context)
        self._broke(f"{where}() returned {type(given).__name__}, not an Observation or a text")
        return None

    async def _guarded(self, act: Callable[[], Awaitable[Any]], where: str) -> Any:
        """Awaits what an environment does; what it raises ends the episode."""
        left_s = self._left_s()
        if left_s is not None and left_s <= 0:
            self.ending = Ending.TIME_LIMIT
            return None
        try:
            async with asyncio.timeout(left_s) as limit:
                self._limit = limit
                return await act()
        except BudgetSpent:
            self.ending = Ending.BUDGET_SPENT
        except EpisodeFault as error:
            self._broke_by(error.fault)
        except CallError as error:
            self._broke_by(fault_of_error(error))
        except TimeoutError as error:
            if limit.expired():
                self.ending = Ending.TIME_LIMIT
            else:
                self._broke(f"{where}: TimeoutError: {error}")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._broke(f"{where}: what it waited for was cancelled")
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever an author wrote
            self._broke(f"{where}: {type(error).__name__}: {error}")
        finally:
            self._limit = None
        return None

    def _left_s(self) -> float | None:
        if not self.limits.seconds:
            return None
        return self.limits.seconds - (self._clock() - self._since_s)

    def _broke(self, why: str) -> None:
        name = self.environment.name or type(self.environment).__name__
        self._broke_by(make_fault(Reason.ENVIRONMENT_FAILED, f"{name}: {why}"[:1000]))

    def _broke_by(self, fault: Fault) -> None:
        self.ending, self._fault = Ending.FAULT, fault

    def _earned(self, given: Any) -> tuple[Result, Mapping[str, float | None]]:
        if self._fault is not None:
            return Result("", self._fault), {}
        if self.ending is not None and not self.ending.trusted:
            text = f"the episode ended by {self.ending}, which says nothing about the policy"
            return Result("", make_fault(Reason.EPISODE_CUT, text)), {}
        if not isinstance(given, Mapping):
            return result_of(given), {}
        if not given:
            return result_of(None), {}
        by_agent = {str(agent): result_of(one) for agent, one in given.items()}
        first = self.steps[0].turn.agent if self.steps else ""
        main = by_agent.get(first, next(iter(by_agent.values())))
        return main, {agent: one.reward for agent, one in by_agent.items()}

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_S):
                await called(self.environment.close)
        except (Exception, SystemExit):  # noqa: BLE001, S110  # what it earned is known
            pass


def result_of(value: Any) -> Result:
    """What `Environment.reward` returned, as a result; what is no reward is a fault.

    A number of 1 or more has the verdict "correct", another one "incorrect".
    """
    if isinstance(value, Result):
        return value
    if isinstance(value, Judgement | Fault):
        return Result("", value)
    if isinstance(value, Real):
        number = float(value)
        if math.isfinite(number):
            return Result("", Judgement(number, "correct" if number >= 1 else "incorrect"))
        return Result("", make_fault(Reason.SCORE_NOT_FINITE, f"reward() returned {number}"))
    kind = type(value).__name__
    text = f"reward() returned {kind}, which is no number, Judgement, Fault or Result"
    return Result("", make_fault(Reason.ENVIRONMENT_FAILED, text))


def _own(row: Row) -> Row:
    """A copy that an environment may change: the samples of a row have nothing in common."""
    try:
        return copy.deepcopy(row)
    except Exception:  # noqa: BLE001  # a row from Python may hold anything
        return dict(row)


def _checked_result(result: ToolResult) -> ToolResult:
    """The result of a tool, whose author may have written anything.

    Raises:
        TypeError: a part is something else, or a reward is not finite.
    """
    if not isinstance(result.text, str):
        raise TypeError(f"ToolResult.text is {type(result.text).__name__}, not a text")
    if not _is_reward(result.reward):
        raise TypeError(f"ToolResult.reward is {result.reward!r:.40}, no finite number")
    return result


def _what_is_wrong(observation: Observation) -> str:
    """With what an author wrote; empty for nothing."""
    given: Any = observation
    if not _is_reward(given.reward):
        return f"whose reward is {given.reward!r:.40}, no finite number"
    if not isinstance(given.agent, str) or not isinstance(given.context, str):
        return "whose agent or context is no text"
    messages = given.messages
    if not isinstance(messages, list | tuple) or not all(
        isinstance(one, EpisodeMessage) and isinstance(one.content, str) for one in messages
    ):
        return "whose messages are not EpisodeMessages with texts"
    return ""


def _is_reward(value: Any) -> bool:
    return value is None or (isinstance(value, Real) and math.isfinite(value))


def offered(episode: Episode, observation: Observation) -> Sequence[dict[str, Any]]:
    """The schemas of the tools that a conversation begins with."""
    every = tools_of(type(episode.environment))
    names = every if observation.tools is None else observation.tools
    own = [every[name].schema for name in names if name in every]
    return own if observation.tools == () else [*own, *map(dict, episode.environment.row_tools())]
