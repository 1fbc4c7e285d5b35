"""The rewards of a taskset of `verifiers` 0.3 and 0.4 (`verifiers.v1`), hosted."""

from __future__ import annotations

import inspect
from typing import Any, Unpack

from assay.environments.hosting.hosted import Hosted, HostedSample, How, hosted, name_of
from assay.kit.errors import ConfigError


def host_taskset(
    taskset: Any,
    *,
    config: Any = None,
    **how: Unpack[How],
) -> Hosted:
    """The rewards of a taskset's tasks, on a trace made of the sample.

    The columns are the fields of the task's data: the reference of an item is an object of them.

    Args:
        taskset: a `vf.Taskset`, or its class of `vf.Task`.
        config: of the task; by default the taskset's.
        how: see `Hosted`.

    Raises:
        ConfigError: it is neither, has no reward, or one that needs the rollout's runtime.
    """
    import verifiers.v1 as vf  # noqa: PLC0415  # the operator's file imports it, too

    kind: Any = taskset if isinstance(taskset, type) else type(taskset)
    if issubclass(kind, vf.Taskset):
        kind = kind.task_type()
    if not issubclass(kind, vf.Task):
        raise ConfigError(f"{name_of(taskset)!r} is no Taskset and no Task of verifiers")
    settings = config
    if settings is None and not isinstance(taskset, type):
        settings = taskset.config.task
    probe = kind(kind.data_type().model_construct(), settings)
    hooks = probe.hooks("reward")
    judged = [judge.score for judge in probe.plugged_judges()]
    if not hooks and not judged:
        raise ConfigError(f"{kind.__name__!r} has no reward")
    for hook in (*hooks, *judged):
        runtime = inspect.signature(hook).parameters.get("runtime")
        if runtime is not None and runtime.default is runtime.empty:
            raise ConfigError(
                f"the reward {hook.__name__!r} of {kind.__name__!r} needs the runtime of the "
                "rollout, which is not here"
            )

    async def score(sample: HostedSample) -> Any:
        data = kind.data_type()(prompt=sample.question, **_fields(sample))
        trace = _trace(vf, kind, data, sample)
        await kind(data, settings).score(trace)
        if not trace.rewards or any(one is None for one in trace.rewards.values()):
            return None
        return trace.reward

    return hosted(score, name_of(taskset), f"The rewards of {kind.__name__} of verifiers.", how)


def _fields(sample: HostedSample) -> dict[str, Any]:
    given = {key: value for key, value in sample.columns.items() if key != "prompt"}
    if set(given) == {"reference"}:
        given = {"answer": given["reference"]}
    return given


def _trace(vf: Any, kind: Any, data: Any, sample: HostedSample) -> Any:
    """The trace of a rollout that said this."""
    from pydantic import TypeAdapter  # noqa: PLC0415
    from verifiers.v1.graph import MessageNode  # noqa: PLC0415
    from verifiers.v1.state import state_cls  # noqa: PLC0415
    from verifiers.v1.trace import AgentInfo, Trace, TraceTask  # noqa: PLC0415

    read = TypeAdapter(vf.Messages).validate_python
    messages = read([_wire(one) for one in (*sample.prompt, *sample.completion)])
    nodes = [
        MessageNode(
            parent=number - 1 if number else None,
            message=message,
            sampled=message.role == "assistant" and number >= len(sample.prompt),
        )
        for number, message in enumerate(messages)
    ]
    return Trace(
        task=TraceTask(type=kind.__name__, data=data),
        agent=AgentInfo(config=vf.AgentConfig()),
        nodes=nodes,
        state=state_cls(kind)(),
        is_completed=True,
        ok=True,
    )


def _wire(message: Any) -> dict[str, Any]:
    """A message as verifiers has it: a call's name and arguments stand beside its id."""
    body = dict(message)
    calls = []
    for number, call in enumerate(body.pop("tool_calls", None) or ()):
        function = call.get("function", call)
        calls.append(
            {
                "id": str(call.get("id") or number),
                "name": function.get("name", ""),
                "arguments": function.get("arguments") or "{}",
            }
        )
    if body.get("role") == "tool":
        body.setdefault("tool_call_id", "0")
    return {**body, "tool_calls": calls} if calls else body
