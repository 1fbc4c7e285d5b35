"""The longest feasible prefix of a program: completions by the policy, run in the sandbox.

A prefix is feasible where one of K completions passes all tests (arXiv 2410.17621), and infeasible
where all were run and none passed. Where neither is known, the program is not labelled.

Differences from the paper:

1. A program that passes its tests is its own completion: all of its lines are right.
2. Equal completions are run once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.clients.execution import AsyncExecutionClient, Program, TestJob, TestReport
from assay.clients.types import Fault
from assay.genrm.engines.base import EngineError, JudgeEngine, Write, Written
from assay.genrm.labelling.tasks import (
    FENCE,
    Cost,
    LabelTask,
    ask_for_rest,
    labelled,
    prefix_of,
)
from assay.genrm.steps import prefix_search


@dataclass(frozen=True, slots=True)
class CompletionSettings:
    """How completions are drawn.

    Attributes:
        samples: K, of each prefix.
        max_tokens: of one completion.
        temperature: above 0, or all would be alike.
        top_p: in (0, 1].
        seed: each completion's seed is derived from this, the program and the prefix.
    """

    samples: int = 20
    max_tokens: int = 512
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0


class UnknownLabel(Exception):
    """Whether a prefix is feasible is not known: something was not sampled or not run.

    Attributes:
        reason: of the first fault.
        message: what happened, for people.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class Labeller:
    """Labels programs with a started engine. Belongs to the event loop of engine and client."""

    def __init__(
        self, engine: JudgeEngine, client: AsyncExecutionClient, sampling: CompletionSettings
    ) -> None:
        self._engine = engine
        self._client = client
        self._sampling = sampling

    async def label(self, task: LabelTask) -> dict[str, Any]:
        """The labelled row of a program.

        Raises:
            UnknownLabel: a fault kept the search from an answer.
        """
        cost = Cost(executions=1)
        if await self._any_passes(task, [task.program], []):
            return labelled(task, task.code_lines, passed=True, cost=cost)
        search = prefix_search(task.code_lines)
        try:
            asked = next(search)
            while True:
                feasible, spent = await self.feasible(task, asked)
                cost += spent
                asked = search.send(feasible)
        except StopIteration as end:
            return labelled(task, end.value, passed=False, cost=cost)

    async def feasible(self, task: LabelTask, code_lines: int) -> tuple[bool, Cost]:
        """Whether one of K completions of a prefix passes, and what it took to know.

        Raises:
            UnknownLabel: none of those that were run passes, and not all were.
        """
        prefix = prefix_of(task, code_lines)
        written, errors = await self._written(task, prefix, code_lines)
        programs = list(dict.fromkeys(prefix + answer.text for answer in written))
        cost = Cost(
            calls=1,
            completions=len(written),
            executions=len(programs),
            tokens=sum(answer.tokens.completion for answer in written),
        )
        return await self._any_passes(task, programs, errors), cost

    async def _written(
        self, task: LabelTask, prefix: str, code_lines: int
    ) -> tuple[list[Written], list[EngineError]]:
        prompt, sampling = ask_for_rest(task, prefix), self._sampling
        requests = [
            Write(
                prompt,
                sampling.max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                seed=_seed(sampling.seed, task.key, code_lines, number),
                stop=(FENCE,),
            )
            for number in range(sampling.samples)
        ]
        answers = await asyncio.gather(
            *(self._engine.ask(request) for request in requests), return_exceptions=True
        )
        errors = [answer for answer in answers if isinstance(answer, EngineError)]
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, EngineError):
                raise answer
        return [answer for answer in answers if isinstance(answer, Written)], errors

    async def _any_passes(
        self, task: LabelTask, programs: Sequence[str], errors: Sequence[EngineError]
    ) -> bool:
        jobs = [
            TestJob(Program(task.language, source), task.suite, id=str(number))
            for number, source in enumerate(programs)
        ]
        results = await self._client.run_tests(jobs) if jobs else []
        if any(isinstance(result, TestReport) and result.all_passed for result in results):
            return True
        for error in errors:
            raise UnknownLabel(error.reason, error.message)
        for result in results:
            if isinstance(result, Fault):
                raise UnknownLabel(result.reason, result.message)
        return False


def _seed(seed: int, key: str, code_lines: int, number: int) -> int:
    place = f"{seed}/{key}/{code_lines}/{number}".encode()
    return int.from_bytes(hashlib.sha256(place).digest()[:4], "big") >> 1
