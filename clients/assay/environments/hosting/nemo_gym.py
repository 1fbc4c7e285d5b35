"""A NeMo Gym resources server (0.7), hosted: what its `/verify` says of a rollout."""

from __future__ import annotations

import functools
import inspect
import json
import typing
import urllib.request
from collections.abc import Mapping
from typing import Any, Unpack

from assay.environments.hosting.hosted import TIMEOUT_S, Hosted, HostedSample, How, hosted, name_of
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason


def host_nemo_gym(
    make: Any,
    **how: Unpack[How],
) -> Hosted:
    """The reward of a resources server's `verify`: of one made here, or of one that runs.

    The columns are the fields of its request (`expected_answer`, ...): the reference of an item is
    an object of them. A response with `mask_sample` is a fault, and its `failure_kind` is said.

    Args:
        make: a function that makes the server, once for each sample; or the URL of one that runs,
            whose `/seed_session` and `/verify` are asked.
        how: see `Hosted`.

    Raises:
        ConfigError: it cannot be called.
    """
    if isinstance(make, str):
        if not make.startswith(("http://", "https://")):
            raise ConfigError(f"{make!r} is no URL of a resources server")
        by_url = functools.partial(_asked, make.rstrip("/"), how.get("timeout_s", TIMEOUT_S))
        return hosted(
            by_url, "nemo-gym", f"/verify of the NeMo Gym resources server at {make}.", how
        )
    if not callable(make):
        raise ConfigError("host_nemo_gym takes a function that makes the resources server")

    async def score(sample: HostedSample) -> Any:
        server = make()
        kind = typing.get_type_hints(server.verify).get("body")
        if kind is None:
            raise TypeError("verify() of the resources server names no type of its body")
        found = server.verify(kind.model_validate({**sample.columns, **_rollout(sample)}))
        answer = await found if inspect.isawaitable(found) else found
        return _reward(answer.model_dump())

    return hosted(
        score, name_of(make), f"/verify of the NeMo Gym resources server {name_of(make)}.", how
    )


def _reward(answer: Mapping[str, Any]) -> Any:
    """The reward of an answer.

    Raises:
        Unjudgeable: the server masks the sample.
    """
    why = answer.get("failure_kind") or answer.get("_ng_failure_class")
    if answer.get("mask_sample") or answer.get("_ng_failure_class"):
        text = f"the resources server masks this sample: {why or 'it does not say why'}"
        raise Unjudgeable(Reason.VERIFIER_FAILED, text)
    return answer.get("reward")


def _asked(url: str, timeout_s: float, sample: HostedSample) -> Any:
    """What a running server says; it has a session for each sample."""
    cookies = urllib.request.HTTPCookieProcessor()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
    body = json.dumps({**sample.columns, **_rollout(sample)}).encode()
    answer: Any = None
    for path in ("/seed_session", "/verify"):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url + path, body, headers, method="POST")  # noqa: S310
        with opener.open(request, timeout=timeout_s) as said:
            answer = json.load(said)
    return _reward(answer)


def _rollout(sample: HostedSample) -> dict[str, Any]:
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
