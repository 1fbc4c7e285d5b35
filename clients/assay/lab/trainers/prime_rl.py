"""prime-rl on traces of verifiers: the plugged reward, and prime-rl's own group scoring."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from assay.lab.steps import Groups, LabRow, coefficients
from assay.lab.trainers.source import taken, version_of


@dataclass
class PrimeRl:
    """Traces through `Task.score`, `iter_trainable_traces` and `GRPOAlgorithm.score_group`."""

    title: str = "verifiers and prime-rl, drop"
    default: bool = True
    compared = "advantages"
    read = "the rollout that makes a trace (run in tests/adapters/test_verifiers.py)"

    def version(self) -> str:
        """See Contestant."""
        import verifiers.v1  # noqa: F401

        return f"{version_of('prime_rl')}, verifiers {version('verifiers')}"

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; what the scoring raises is an error of the trace, as in a rollout."""
        import torch

        del target
        folder = "orchestrator/algo/"
        assign = taken("prime_rl", folder + "routing.py", "assign_advantages")
        clean = taken("prime_rl", folder + "base.py", "iter_trainable_traces")
        score_group = taken(
            "prime_rl", folder + "grpo.py", "GRPOAlgorithm.score_group",
            torch=torch, iter_trainable_traces=clean, assign_advantages=assign,
        )  # fmt: skip

        async def all_of_them() -> list[list[Any]]:
            traces = [[_trace(row) for row in group] for group in groups]
            rows = [one for group in traces for one in group]
            await asyncio.gather(*(_scored(*one) for one in rows))
            for group in traces:
                episodes = [SimpleNamespace(traces=[trace]) for _, trace in group]
                if any(True for _ in clean(episodes)):
                    await score_group(SimpleNamespace(length_penalty=None), episodes)
            return traces

        advantages, tokens = {}, {}
        for group, traces in zip(groups, asyncio.run(all_of_them()), strict=True):
            for row, (_, trace) in zip(group, traces, strict=True):
                told = trace.nodes[-1].advantages
                if told and not trace.has_error:
                    advantages[row.name], tokens[row.name] = told[0], len(told)
        return coefficients(advantages, tokens)


def _trace(row: LabRow) -> tuple[Any, Any]:
    """A task and the trace of one answer to it."""
    import verifiers.v1 as vf
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, TraceTask
    from verifiers.v1.types import AssistantMessage

    plugged = {"assay": {"fn": "assay.clients.trainers.verifiers.reward"}}
    data = vf.TaskData(idx=0, prompt=row.prompt, reference=row.name)
    task = vf.Task(data, vf.TaskConfig(rewards=plugged))
    count = len(row.response)
    node = MessageNode(
        message=AssistantMessage(content=row.response), sampled=True,
        token_ids=[1] * count, mask=[True] * count,
    )  # fmt: skip
    agent = AgentInfo(config=vf.AgentConfig(model="scripted"))
    trace = vf.Trace(task=TraceTask(type="Task", data=data), agent=agent, nodes=[node])
    return task, trace


async def _scored(task: Any, trace: Any) -> None:
    from verifiers.v1.errors import TaskError

    try:
        await task.score(trace)
    except TaskError:
        trace.ok = False
    else:
        trace.ok = True


PRIME_RL = PrimeRl()
