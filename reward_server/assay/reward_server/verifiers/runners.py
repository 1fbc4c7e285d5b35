"""Verifiers that judge by a program of ours in the sandbox: a task in as JSON, JSON lines out.

The program (`*_runner.py`, standard library only) is sent as text. It writes `{"gold": ...}` when
the reference has passed, then `{"candidate": ...}`. What goes wrong before the first line is the
reference's doing or ours, and a fault; what goes wrong after it is the response's, and a verdict,
so that no response can choose a fault.
"""

from __future__ import annotations

import importlib.resources
import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from assay.clients.execution import (
    AsyncExecutionClient,
    Execution,
    ExecutionJob,
    Limits,
    Program,
    SourceFile,
)
from assay.clients.types import Fault as ClientFault
from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    VERIFIER_FAILED,
    Fault,
    JsonValue,
    Judgement,
    Outcome,
    RemoteOutcome,
    RemoteVerifier,
    Unjudgeable,
    VerifierItem,
)

SHOWN_CHARS = 4_000
_SPARE_S = 10.0
_PACKAGE = "assay.reward_server.verifiers"
OWN_LIMITS = ("cpu-time-limit", "wall-time-limit", "memory-limit", "output-limit")

Task = dict[str, JsonValue]


class RunnerVerifier(RemoteVerifier):
    """Runs `runner` in the sandbox, once for each item.

    Args:
        client: reaches the sandbox; closed with the verifier. It may be another verifier's too.
    """

    runner: ClassVar[str]
    """The program's file, beside this one."""
    modules: ClassVar[tuple[str, ...]] = ()
    """What it imports of this folder; sent along."""
    stages: ClassVar[int] = 2
    """Of the program, each of which may take the parameter `timeout_s`."""
    memory_bytes: ClassVar[int]
    disk_bytes: ClassVar[int | None] = None
    """None: the sandbox's own limit."""

    def __init__(self, client: AsyncExecutionClient) -> None:
        self._client = client
        folder = importlib.resources.files(_PACKAGE)
        source = folder.joinpath(self.runner).read_text("utf-8")
        files = [
            SourceFile(f"{name}.py", folder.joinpath(f"{name}.py").read_bytes())
            for name in self.modules
        ]
        # The sandbox has no package of ours: the modules lie beside the program.
        self._program = Program("python", source.replace(f"from {_PACKAGE}.", "from "), files)

    @abstractmethod
    def task_of(self, item: VerifierItem) -> Task | Judgement:
        """The program's task, or the judgement of a response that holds none. Pure.

        Raises:
            Unjudgeable: the reference cannot be used, or is not served.
        """

    def limits_of(self, item: VerifierItem) -> Limits:
        """What the program may use: the seconds of its stages, and some to start."""
        timeout_s = float(item.parameters["timeout_s"])  # type: ignore[arg-type]  # a float
        wall_s = _SPARE_S + self.stages * timeout_s
        return Limits(
            cpu_time_s=wall_s,
            wall_time_s=wall_s,
            memory_bytes=self.memory_bytes,
            disk_bytes=self.disk_bytes,
        )

    @abstractmethod
    def outcome_of(self, execution: Execution, task: Task, item: VerifierItem) -> Outcome:
        """What a run of the program means. Pure."""

    async def judge_all(
        self, items: Sequence[VerifierItem], timeout_s: float
    ) -> list[RemoteOutcome]:
        """Runs the tasks of the items in one call; see `RemoteVerifier.judge_all`."""
        answers: list[RemoteOutcome | None] = [None] * len(items)
        tasks: dict[int, Task] = {}
        jobs: list[ExecutionJob] = []
        for index, item in enumerate(items):
            try:
                task = self.task_of(item)
            except Unjudgeable as trouble:
                answers[index] = RemoteOutcome(Fault(trouble.reason, trouble.message))
                continue
            if isinstance(task, Judgement):
                answers[index] = RemoteOutcome(task)
                continue
            tasks[index] = task
            stdin = json.dumps(task).encode()
            jobs.append(ExecutionJob(self._program, str(index), stdin, self.limits_of(item)))
        results = await self._client.execute(jobs, timeout_s=timeout_s) if jobs else []
        for (index, task), result in zip(tasks.items(), results, strict=True):
            if isinstance(result, ClientFault):
                fault = Fault(result.reason, result.message, dict(result.metadata))
                answers[index] = RemoteOutcome(fault)
                continue
            outcome = self.outcome_of(result, task, items[index])
            answers[index] = RemoteOutcome(outcome, result.queue_s, result.service_s)
        return [answer for answer in answers if answer is not None]

    async def close(self) -> None:
        """Closes the client."""
        await self._client.close()


def lines_of(execution: Execution) -> tuple[Task | None, Task | None]:
    """The program's lines on the reference and on the response; None for a missing one."""
    found: dict[str, Task] = {}
    for line in execution.stdout.text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.update({key: part for key, part in value.items() if isinstance(part, dict)})
    return found.get("gold"), found.get("candidate")


def without_gold(execution: Execution, name: str, what: str) -> Fault:
    """The fault of a run that ended before the reference had passed.

    Args:
        execution: the run.
        name: the verifier's.
        what: of the reference, for the message.
    """
    if execution.end in OWN_LIMITS:
        return Fault(UNUSABLE_REFERENCE, f"{what} ran into the {execution.end}")
    text = f"the program of {name} ended with {execution.end} {execution.exit_code}"
    return Fault(VERIFIER_FAILED, f"{text}: {execution.stderr.text.strip()[-300:]}")


def one_line(text: str, most: int = 900) -> str:
    """A text as an explanation: one line of bounded length, valid Unicode."""
    return " ".join(text.split())[:most].encode("utf-8", "replace").decode()


def shown(text: str | None) -> str | None:
    """The beginning of what was judged, as an extracted answer: valid Unicode; None for nothing."""
    return text[:SHOWN_CHARS].encode("utf-8", "replace").decode() if text else None


def unusable(name: str, trouble: str) -> Unjudgeable:
    """The exception of a reference that cannot be used."""
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of {name}: {trouble}")
