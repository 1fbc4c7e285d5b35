"""An environment in TRL's trainers (1.16: GRPOTrainer, RLOOTrainer, AsyncGRPOTrainer).

    worlds = environment_factory("python", {"cells": 8}, target="127.0.0.1:50051", task="math")
    trainer = GRPOTrainer(
        model,
        environment_factory=worlds,
        reward_funcs=environment_reward(),
        train_dataset=rows,
        args=args,
    )

A fault is None (`assay.clients.trainers.trl` has what TRL makes of it), in `reset` and tools too.
TRL ends with the first turn that calls no tool: what an environment says then nobody reads.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from assay.clients.trainers.common.fault_ratio import MAX_FAULT_RATIO, read_ratio, settle
from assay.clients.trainers.common.faults import (
    FaultError,
    FaultPolicy,
    raise_for_faults,
    read_policy,
)
from assay.clients.trainers.trl import Reporter
from assay.clients.types import Result
from assay.environments.endings import Ending
from assay.environments.environment import Environment, Services
from assay.environments.episode import EpisodeLimits
from assay.environments.faces.common import (
    UNLIMITED,
    EpisodeHandle,
    OpenedEnvironment,
    opened,
    reward_of,
)
from assay.environments.faces.relay import BROKEN, sendable
from assay.environments.tools import ToolSpec
from assay.kit.errors import ConfigError

__all__ = ["EnvironmentReward", "TrlWorlds", "environment_factory", "environment_reward"]

_POLICIES = (FaultPolicy.MASK, FaultPolicy.RAISE)


class TrlEpisode:
    """What TRL takes for an environment; a subclass has the tools as public methods.

    TRL makes every public method a tool, but `reset`: all else is private.
    """

    _world: OpenedEnvironment

    def __init__(self) -> None:
        self._handle: EpisodeHandle | None = None

    def reset(self, **row: Any) -> str | None:
        """Begins an episode; what is added to the last message of the prompt."""
        if self._handle is not None:
            self._handle.end()
        self._handle = self._world.episode()
        prompt = _text(row.get("prompt"))
        try:
            observation = self._handle.begin({**row, "prompt": prompt})
        except FaultError:
            return None
        said = "\n\n".join(message.content for message in observation.messages)
        if said.startswith(prompt):
            return said[len(prompt) :] or None
        return f"\n\n{said}"

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if self._handle is None:
            return BROKEN
        try:
            return sendable(await self._handle.acall_tool(name, dict(arguments)))
        except FaultError:
            return BROKEN

    async def _finish(self, completion: Any) -> Result:
        """The result of the episode, which ends with what the completion says last."""
        if self._handle is None:
            raise ConfigError(
                "TRL asks for the reward of an episode that has not begun, or was asked before: "
                "pass environment_reward() or own_reward=True, not both"
            )
        handle, self._handle = self._handle, None
        last = {} if isinstance(completion, str) or not completion else completion[-1]
        ending = Ending.TURN_LIMIT
        if last.get("tool_calls"):
            ending = Ending.TOKEN_LIMIT  # TRL had no room for what the tools answered
        elif last.get("role") != "tool" and handle.observation is not None:
            with suppress(FaultError):  # the outcome has it
                await handle.asay(_text([last] if last else completion))
        outcome = await handle.aend(ending)
        result = outcome.result
        if result.judgement is None or not any(outcome.turn_rewards):
            return result
        return _with_turns(result, reward_of(outcome))


async def get_reward(self: TrlEpisode) -> float | None:
    """The episode's reward, where TRL asks the environment: its last answer is not known then."""
    result = await self._finish([{"role": "tool"}])  # a method of such a class
    settle(("environment", type(self).__name__), MAX_FAULT_RATIO, [result])
    return result.reward


class TrlWorlds:
    """TRL's `environment_factory`: makes instances of one class; can be pickled.

    Made by `environment_factory`. The environment is opened at the first call of each process.
    """

    def __init__(
        self, environment: str | type[Environment], own_reward: bool = False, **given: Any
    ) -> None:
        self._environment = environment
        self._own_reward = own_reward
        self._given = given
        self._kind: type[TrlEpisode] | None = None

    def __call__(self) -> TrlEpisode:
        """A new instance."""
        if self._kind is None:
            world = opened(self._environment, **self._given)
            methods = {name: _method(spec, world.kind) for name, spec in world.tools.items()}
            if self._own_reward:
                methods["get_reward"] = get_reward
            self._kind = type(world.kind.__name__, (TrlEpisode,), {"_world": world, **methods})
        return self._kind()

    def __getstate__(self) -> dict[str, Any]:
        """All but what is open in this process."""
        return {**self.__dict__, "_kind": None}

    def close(self) -> None:
        """Closes what the episodes share."""
        if self._kind is not None:
            self._kind._world.close()  # noqa: SLF001  # made above
            self._kind = None


def environment_factory(
    environment: str | type[Environment],
    settings: Mapping[str, Any] | None = None,
    services: Services | None = None,
    *,
    limits: EpisodeLimits = UNLIMITED,
    own_reward: bool = False,
    **options: Any,
) -> TrlWorlds:
    """What TRL takes as `environment_factory`; give `environment_reward()` to the trainer, too.

    Args:
        environment: as of `opened`, and so are the next two, and `options`.
        settings: of the environment.
        services: that it asks.
        limits: of each episode; a call of a tool is a turn.
        own_reward: TRL asks the environment, and no last answer is known (AsyncGRPOTrainer has no
            other way). Pass no `environment_reward()` then.
        options: of the reward services.

    Raises:
        ConfigError: there is no such environment, or a setting is wrong. At the first call: what
            it needs is not had, or a tool's name is not free in TRL.
    """
    given = {"settings": settings, "services": services, "limits": limits, **options}
    return TrlWorlds(environment, own_reward, **given)


class EnvironmentReward:
    """A reward function for TRL, made by `environment_reward`. Can be pickled."""

    def __init__(self, name: str, policy: FaultPolicy, max_fault_ratio: float) -> None:
        self.__name__ = name
        self._reporter = Reporter(name)
        self._policy = policy
        self._max_fault_ratio = max_fault_ratio

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        environments: Sequence[Any] = (),
        **columns: Any,
    ) -> list[float | None]:
        """The reward of each completion's episode; None for a fault."""
        if len(environments) != len(completions):
            raise ConfigError(
                "there is no environment for each completion: pass environment_factory= to the "
                "trainer, made by assay.environments.faces.trl.environment_factory"
            )
        # In a batch that mixes environments, others' instances are none of ours.
        ours = [number for number, one in enumerate(environments) if isinstance(one, TrlEpisode)]
        results = await asyncio.gather(
            *(environments[number]._finish(completions[number]) for number in ours)  # noqa: SLF001
        )
        self._reporter.report(results, columns if len(ours) == len(completions) else {})
        settle(("environment", self.__name__), self._max_fault_ratio, results)
        if self._policy is FaultPolicy.RAISE:
            raise_for_faults(results)
        rewards: list[float | None] = [None] * len(completions)
        for number, result in zip(ours, results, strict=True):
            rewards[number] = result.reward
        return rewards


def environment_reward(
    *,
    name: str = "assay",
    on_fault: str = FaultPolicy.MASK,
    max_fault_ratio: float = MAX_FAULT_RATIO,
) -> EnvironmentReward:
    """The reward function that goes with `environment_factory`: each episode's own reward.

    Args:
        name: as of `assay.clients.trainers.trl.reward_function`, and so are the others.
        on_fault: "mask" or "raise".
        max_fault_ratio: past it the training ends.

    Raises:
        ConfigError: TRL cannot follow the policy, or the ratio is none.
    """
    policy = read_policy(on_fault, _POLICIES, "TRL")
    return EnvironmentReward(name, policy, read_ratio(max_fault_ratio))


def _method(spec: ToolSpec, kind: type[Environment]) -> Callable[..., Any]:
    """A method that TRL and transformers read a tool's schema from."""
    if spec.name.startswith("_") or spec.name in ("reset", "get_reward"):
        raise ConfigError(f"TRL takes no method {spec.name!r} as a tool; give it another name")
    source = getattr(kind, spec.name)

    async def call(self: TrlEpisode, **arguments: Any) -> str:
        return await self._call(spec.name, arguments)

    hints = {**typing.get_type_hints(source), "return": str}
    described: Mapping[str, Mapping[str, Any]] = spec.parameters.get("properties", {})
    signature = inspect.signature(source)
    call.__name__ = call.__qualname__ = spec.name
    call.__annotations__ = hints
    call.__signature__ = signature.replace(return_annotation=str)  # type: ignore[attr-defined]
    lines = [f"    {name}: {_about(one, name)}" for name, one in described.items()]
    call.__doc__ = "\n".join(
        [spec.description or spec.name, *(["", "Args:", *lines] if lines else [])]
    )
    return call


def _about(schema: Mapping[str, Any], name: str) -> str:
    """A parameter's description in one line; its name where it has none."""
    return " ".join(str(schema.get("description") or name).split())


def _text(messages: Any) -> str:
    """A prompt's or a completion's text: of messages, the last one's."""
    if messages is None or isinstance(messages, str):
        return messages or ""
    content = messages[-1].get("content") if messages else ""
    if isinstance(content, list):
        return "".join(block.get("text") or "" for block in content)
    return content or ""


def _with_turns(result: Result, reward: float) -> Result:
    """The result with the turns' own rewards added: TRL has one number for an episode."""
    if result.judgement is None:
        return result
    return dataclasses.replace(result, outcome=dataclasses.replace(result.judgement, reward=reward))
