"""A NeMo Gym resources server (0.7), hosted: what its `/verify` says of a rollout."""

from __future__ import annotations

import inspect
import json
import typing
from typing import Any

from assay.environments.hosting.hosted import TIMEOUT_S, Hosted, Sample, name_of
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason


def host_nemo_gym(
    make: Any,
    *,
    name: str = "",
    timeout_s: float = TIMEOUT_S,
    deterministic: bool = False,
) -> Hosted:
    """The reward of a resources server's `verify`.

    The columns are the fields of its request (`expected_answer`, ...): the reference of an item is
    an object of them. A response with `mask_sample` is a fault, and its `failure_kind` is said.

    Args:
        make: a function that makes the server, once for each sample.
        name: by default that of what makes it.
        timeout_s: of each sample.
        deterministic: see `Hosted`.

    Raises:
        ConfigError: it cannot be called.
    """
    if not callable(make):
        raise ConfigError("host_nemo_gym takes a function that makes the resources server")

    async def score(sample: Sample) -> Any:
        server = make()
        kind = typing.get_type_hints(server.verify).get("body")
        if kind is None:
            raise TypeError("verify() of the resources server names no type of its body")
        found = server.verify(kind.model_validate({**sample.columns, **_rollout(sample)}))
        answer = await found if inspect.isawaitable(found) else found
        marked = {**(answer.model_extra or {})}
        if getattr(answer, "mask_sample", False) or marked.get("_ng_failure_class"):
            why = getattr(answer, "failure_kind", None) or marked.get("_ng_failure_class")
            text = f"the resources server masks this sample: {why or 'it does not say why'}"
            raise Unjudgeable(Reason.VERIFIER_FAILED, text)
        return answer.reward

    return Hosted(
        score,
        name or name_of(make),
        description=f"/verify of the NeMo Gym resources server {name or name_of(make)}.",
        timeout_s=timeout_s,
        deterministic=deterministic,
    )


def _rollout(sample: Sample) -> dict[str, Any]:
    """The sample as a Responses API exchange."""
    output: list[dict[str, Any]] = []
    for number, message in enumerate(sample.completion):
        if message.get("role") == "tool":
            output.append(
                {
                    "type": "function_call_output",
                    "call_id": str(message.get("tool_call_id") or number),
                    "output": str(message.get("content") or ""),
                }
            )
            continue
        said: Any = {"type": "output_text", "text": message.get("content") or "", "annotations": []}
        output.append(
            {
                "type": "message",
                "id": f"message-{number}",
                "role": "assistant",
                "status": "completed",
                "content": [said],
            }
        )
        output += [_call(call, number) for call in message.get("tool_calls") or ()]
    return {
        "responses_create_params": {"input": [dict(one) for one in sample.prompt]},
        "response": {
            "id": "response",
            "created_at": 0.0,
            "model": "policy",
            "object": "response",
            "output": output,
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
        },
    }


def _call(call: Any, number: int) -> dict[str, Any]:
    function = call.get("function", call)
    arguments = function.get("arguments") or "{}"
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    called = str(call.get("id") or number)
    return {
        "type": "function_call",
        "call_id": called,
        "name": str(function.get("name") or ""),
        "arguments": text,
    }
