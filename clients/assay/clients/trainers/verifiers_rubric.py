"""A rubric for `verifiers` 0.1 to 0.3 (`vf.Rubric`, `vf.Environment`) by a reward server.

    env = vf.SingleTurnEnv(dataset=rows, rubric=AssayRubric(target="127.0.0.1:50051", task="math"))

It is a rubric because a `Rubric` makes 0 of what a reward function raises. With "drop" (the
default) the state of a sample without a judgement has an error and the reward NaN: the
environment's retries (`max_retries`) ask again, and group means leave NaN out. With "raise" the
`FaultError` ends the run of the environment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import verifiers as vf

from assay.clients.trainers.common.faults import (
    FaultError,
    FaultPolicy,
    explanation_of,
    read_policy,
)
from assay.clients.trainers.common.rows import Message, RowReader
from assay.clients.trainers.common.scoring import score_awaited
from assay.clients.trainers.common.settings import read_settings
from assay.clients.trainers.common.single import reader_of
from assay.clients.types import Fault, Item, Result


class AssayRubric(vf.Rubric):
    """Rewards by a reward server; a group's samples travel in one call.

    Args:
        parser: as of `vf.Rubric`.
        options: as for `read_settings`: target, verifier, task, token, on_fault, ...

    Raises:
        ConfigError: no target is given, or verifiers cannot follow the policy.
    """

    def __init__(self, parser: Any = None, **options: Any) -> None:
        super().__init__(funcs=[assay], weights=[1.0], parser=parser)
        self.settings = read_settings(options)
        allowed = [FaultPolicy.DROP, FaultPolicy.RAISE]
        self.policy = read_policy(self.settings.on_fault or "drop", allowed, "verifiers")

    async def score_rollout(self, state: Any) -> None:
        """Sets one state's reward."""
        await self.score_group([state])

    async def score_group(self, states: Sequence[Any]) -> None:
        """Sets the rewards of one prompt's states, and advantages over the judged ones.

        Raises:
            FaultError: a fault, and the policy is "raise".
        """
        reader = reader_of(self.settings, trainer="verifiers")
        items = [_item(reader, state, number) for number, state in enumerate(states)]
        results = await score_awaited(self.settings, items)
        judged = [result.reward for result in results if result.reward is not None]
        mean = sum(judged) / len(judged) if judged else math.nan
        for state, result in zip(states, results, strict=True):
            self._settle(state, result, mean)

    def _settle(self, state: Any, result: Result, mean: float) -> None:
        if isinstance(result.outcome, Fault):
            error = FaultError(result.id, result.outcome)
            if self.policy is FaultPolicy.RAISE:
                raise error
            state["error"] = state.get("error") or _infra_error(error)
            state["reward"], state["advantage"], state["metrics"] = math.nan, 0.0, {}
            return
        reward = result.outcome.reward
        state["reward"], state["advantage"] = reward, reward - mean
        parts = {part.name: part.score for part in result.outcome.components}
        state["metrics"] = {"assay": reward, **parts}
        state["assay_explanation"] = explanation_of(result)
        for turn in state.get("trajectory") or ():
            for name in ("reward", "advantage"):
                if turn.get(name) is None:
                    turn[name] = state[name]


async def assay(**_: Any) -> float:
    """Names the reward in the rubric's lists; it is never called."""
    raise NotImplementedError("AssayRubric scores states itself")


def _infra_error(error: FaultError) -> Exception:
    infra: Exception = vf.InfraError(str(error))
    infra.__cause__ = error
    return infra


def _item(reader: RowReader, state: Any, number: int) -> Item:
    info: Mapping[str, Any] = state.get("info") or {}
    row = {"answer": state.get("answer"), **info}
    columns = {name: [value] for name, value in row.items() if value not in (None, "")}
    prompt, completion = _plain(state["prompt"]), _plain(state["completion"])
    (item,) = reader.items([prompt], [completion], None, columns)
    return replace(item, id=str(number))


def _plain(said: Any) -> str | list[Message]:
    """Messages as mappings; verifiers 0.2 and later have objects of pydantic."""
    if isinstance(said, str):
        return said
    return [
        message if isinstance(message, Mapping) else message.model_dump() for message in said or []
    ]
