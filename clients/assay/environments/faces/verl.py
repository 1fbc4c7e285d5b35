"""An environment in verl (0.9): a whole episode as an agent loop, or its tools alone.

    # agent_loops.yaml, for actor_rollout_ref.rollout.agent.agent_loop_config_path
    - name: sums
      _target_: assay.environments.faces.verl.EnvironmentAgentLoop
      environment: sums.py:Sums
      target: 127.0.0.1:50051

A fault is raised, or masked (`on_fault`); see docs/trainers/verl.md.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput
from verl.tools.base_tool import BaseTool
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse

from assay.clients.trainers.common.faults import FaultError, FaultPolicy, read_policy
from assay.clients.trainers.common.verl_rows import TOOL_FAULT
from assay.environments.endings import Ending
from assay.environments.episode import EpisodeLimits, offered
from assay.environments.faces.common import (
    EpisodeHandle,
    beginning,
    chat,
    kept,
    opened,
    reward_of,
    row_of,
)
from assay.environments.formats import format_of
from assay.environments.types import Observation, Reply
from assay.kit.errors import ConfigError


class EnvironmentAgentLoop(AgentLoopBase):
    """Runs one episode: token ids in and out, the mask 1 on the policy's tokens only.

    Its keywords, in the file of agent loops: `environment`, `settings`, `format` (by default
    `auto`), `turns`, `seconds`, `on_fault`, and `target`, `task`, ... of the reward services.
    """

    def __init__(
        self,
        *args: Any,
        environment: str,
        settings: Mapping[str, Any] | None = None,
        format: str = "auto",  # noqa: A002  # as everywhere
        turns: int = 0,
        seconds: float = 0.0,
        on_fault: str = "raise",
        target: str = "",
        token: str = "",
        tls_ca: str = "",
        verifier: str = "",
        task: str = "",
        timeout_s: float | None = None,
        **verls: Any,
    ) -> None:
        super().__init__(*args, **verls)
        options = {"target": target, "token": token, "tls_ca": tls_ca, "verifier": verifier,
                   "task": task, "timeout_s": timeout_s}  # fmt: skip
        given = {name: value for name, value in options.items() if value}
        self.world = kept(environment, dict(settings or {}), **given)
        self.limits = EpisodeLimits(turns, seconds)
        self.format = format_of(format, self.tokenizer)
        self.policy = read_policy(on_fault, (FaultPolicy.RAISE, FaultPolicy.MASK), "verl")
        self.response_length = int(self.rollout_config.response_length)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """The episode of a row of verl's data set.

        Raises:
            FaultError: a fault, and the policy is "raise".
        """
        handle = self.world.episode(self.limits)
        tokens = _Tokens(self)
        reward = math.nan
        try:
            await self._talk(handle, tokens, sampling_params, kwargs)
            reward = reward_of(await handle.aend())
        except FaultError as error:
            if self.policy is FaultPolicy.RAISE:
                raise
            tokens.void(str(error))
        finally:
            await handle.aend()
        return tokens.output(handle, reward)

    async def _talk(
        self, handle: EpisodeHandle, tokens: _Tokens, sampling: dict[str, Any], row: dict[str, Any]
    ) -> None:
        asked = list(row.get("raw_prompt") or ())
        following: Observation | None = await handle.abegin(row_of(row, asked))
        if following is None:
            return
        tools = list(offered(handle.episode, following)) if self.format.offers else None
        await tokens.begin(beginning(self.format, handle, following, asked), tools)
        if self.format.stops:
            sampling = {
                **sampling,
                "stop": list(self.format.stops),
                "include_stop_str_in_output": True,
            }
        while following is not None:
            ids = await tokens.generate(sampling)
            text = self.tokenizer.decode(ids, skip_special_tokens=False)
            for special in (self.tokenizer.eos_token, self.tokenizer.pad_token):
                text = text.removesuffix(special or "")
            room = self.response_length - len(tokens.mask)
            if room < 0 or (room == 0 and ids[-1:] != [self.tokenizer.eos_token_id]):
                await handle.aend(Ending.TOKEN_LIMIT)
                return
            reply = self.format.read(text)
            following = await handle.asay(reply)
            if following is not None and not await tokens.follow(text, reply, following):
                await handle.aend(Ending.TOKEN_LIMIT)
                return


class _Tokens:
    """The conversation in tokens, kept by verl's builder of continuous tokens."""

    def __init__(self, loop: EnvironmentAgentLoop) -> None:
        self.loop = loop
        self.messages: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] | None = None
        self.ids: list[int] = []
        self.mask: list[int] = []
        self.logprobs: list[float] | None = None
        self.request = uuid4().hex
        self.fields: dict[str, Any] = {}
        self.preempted = -1

    async def begin(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
    ) -> None:
        self.messages, self.tools = messages, tools
        self.ids = await self.loop.ct_build_initial_tokens(messages, tools=tools)

    async def generate(self, sampling: dict[str, Any]) -> list[int]:
        made = await self.loop.server_manager.generate(
            request_id=self.request, prompt_ids=self.ids, sampling_params=sampling
        )
        self.fields.update(made.extra_fields)
        self.preempted = max(self.preempted, made.num_preempted or 0)
        if made.log_probs and self.logprobs is None:
            self.logprobs = [0.0] * len(self.mask)
        merged, self.mask, self.logprobs = await self.loop.ct_merge_assistant_token(
            self.ids, made.token_ids, self.mask, self.logprobs, assistant_logprobs=made.log_probs
        )
        self.ids = merged.token_ids
        return list(made.token_ids)

    async def follow(self, text: str, reply: Reply, following: Observation) -> bool:
        """Appends what is read next; False where no room is left for it."""
        before = [*self.messages, self._assistant(text, reply)]
        after = [*before, *chat(self.loop.format.shown(following.messages))]
        merged, mask, logprobs = await self.loop.ct_merge_context_msg(
            before, after, self.ids, self.mask, self.logprobs, tools=self.tools
        )
        if len(mask) >= self.loop.response_length:
            return False
        self.messages, self.ids, self.mask, self.logprobs = after, merged.token_ids, mask, logprobs
        return True

    def _assistant(self, text: str, reply: Reply) -> dict[str, Any]:
        calls = reply.calls if self.loop.format.native else ()
        if not calls:
            return {"role": "assistant", "content": text}
        made = [
            {"type": "function", "function": {"name": call.name, "arguments": call.arguments or {}}}
            for call in calls
        ]
        return {"role": "assistant", "content": reply.answer, "tool_calls": made}

    def void(self, why: str) -> None:
        """Of a fault: nothing trains; an episode without a token gets one, for verl's shapes."""
        self.fields["assay_fault"] = why[:500]
        if not self.mask:
            filler = self.loop.tokenizer.eos_token_id or 0
            self.ids, self.mask = [*(self.ids or [filler]), filler], [0]
            self.logprobs = None if self.logprobs is None else [0.0]
        self.mask = [0] * len(self.mask)

    def output(self, handle: EpisodeHandle, reward: float) -> AgentLoopOutput:
        limit = self.loop.response_length
        start = len(self.ids) - len(self.mask)
        steps = handle.episode.steps
        self.fields.setdefault("assay_fault", "")
        own = {
            "assay_ending": str(handle.episode.ending or ""),
            "turn_scores": [step.reward or 0.0 for step in steps],
            "tool_rewards": [],
        }
        return AgentLoopOutput(
            prompt_ids=self.ids[:start],
            response_ids=self.ids[start:][:limit],
            response_mask=self.mask[:limit],
            response_logprobs=self.logprobs[:limit] if self.logprobs else None,
            reward_score=reward,
            num_turns=2 * len(steps) + 1,
            metrics={"num_preempted": self.preempted},
            extra_fields={**self.fields, **own},
        )


class EnvironmentTool(BaseTool):
    """One tool of an environment, in verl's own `tool_agent` loop.

    The tools of an environment share one episode in a trajectory. The loop makes a text of whatever
    a tool raises: so a fault is marked in the trajectory's `extra_fields`, and Assay's reward
    functions and manager for verl give such a sample no reward.
    """

    def __init__(self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema) -> None:
        super().__init__(config, tool_schema)
        given = dict(config.get("options") or {})
        self.world = kept(config["environment"], config.get("settings") or {}, **given)
        if self.name not in self.world.tools:
            raise ConfigError(f"the environment has no tool {self.name!r}")
        self._rows: dict[str, dict[str, Any]] = {}
        self._own: dict[str, EpisodeHandle] = {}

    async def create(
        self, instance_id: str | None = None, **kwargs: Any
    ) -> tuple[str, ToolResponse]:
        """Keeps the row: `create_kwargs` of the data's `tools_kwargs`."""
        name = instance_id or uuid4().hex
        self._rows[name] = dict(kwargs.get("create_kwargs") or {})
        return name, ToolResponse()

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict[str, Any]]:
        """Calls the tool in the trajectory's episode, which begins at the first call.

        Raises:
            FaultError: a fault, where there is no trajectory to mark.
        """
        trajectory = kwargs.get("agent_data")
        try:
            handle = await self._episode(instance_id, trajectory)
            turns = len(handle.episode.steps)
            text = await handle.acall_tool(self.name, parameters)
        except FaultError as error:
            if trajectory is None:
                raise
            told = {"reason": error.fault.reason, "message": error.fault.message}
            trajectory.extra_fields[TOOL_FAULT] = told
            return ToolResponse(text="error: the tool is out of order"), 0.0, {}
        own = [step.reward or 0.0 for step in handle.episode.steps[turns:]]
        return ToolResponse(text=text), float(sum(own)), {}

    async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
        """What the episode earned; for callers other than verl's loop, which does not ask.

        Raises:
            FaultError: that is not known.
        """
        handle = await self._episode(instance_id, kwargs.get("agent_data"))
        return reward_of(await handle.aend(Ending.ANSWERED))

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        """Ends the instance's own episode; a trajectory's ends with the trajectory."""
        self._rows.pop(instance_id, None)
        handle = self._own.pop(instance_id, None)
        if handle is not None:
            await handle.aend()

    async def _episode(self, instance_id: str, trajectory: Any) -> EpisodeHandle:
        row = self._rows.get(instance_id, {})
        if trajectory is None:
            found = self._own.get(instance_id)
            if found is None:
                found = self._own[instance_id] = self.world.episode()
                await found.abegin(row_of(row))
            return found
        episodes: dict[int, tuple[EpisodeHandle, asyncio.Task[Any]]]
        episodes = trajectory.__dict__.setdefault("assay_episodes", {})
        if id(self.world) not in episodes:  # calls of one turn come at once: one begins it
            handle = self.world.episode()
            weakref.finalize(trajectory, handle.drop)
            begun = asyncio.create_task(handle.abegin(row_of(row, trajectory.messages)))
            episodes[id(self.world)] = handle, begun
        handle, begun = episodes[id(self.world)]
        await begun
        return handle


def tool_config(
    environment: str,
    settings: Mapping[str, Any] | None = None,
    tools: Sequence[str] = (),
    **options: Any,
) -> dict[str, Any]:
    """An environment's tools as verl describes them, for the YAML file of `tool_config_path`.

    Args:
        environment: an installed one's name, `FILE.py:Class` or `package.module:Class`.
        settings: of the environment.
        tools: names; all by default.
        options: `target`, `task`, ...: see `common.opened`.

    Raises:
        ConfigError: there is no such environment or tool.
    """
    with opened(environment, settings, **options) as world:
        every = world.tools
    unknown = [name for name in tools if name not in every]
    if unknown:
        raise ConfigError(f"no tool {unknown[0]!r}; there are: {', '.join(every)}")
    config = {
        "type": "native",
        "environment": environment,
        "settings": dict(settings or {}),
        "options": dict(options),
    }
    return {
        "tools": [
            {
                "class_name": "assay.environments.faces.verl.EnvironmentTool",
                "config": config,
                "tool_schema": every[name].schema,
            }
            for name in tools or every
        ]
    }
