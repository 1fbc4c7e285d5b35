"""A harness of verifiers that calls tools by the official MCP client, from the test's process."""

from __future__ import annotations

import json
from typing import Any

import httpx
from mcp import Client
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harness import Harness
from verifiers.v1.runtimes import ProgramResult

__all__ = ["WithTools", "WithToolsConfig"]


class WithToolsConfig(HarnessConfig):
    """Nothing to set."""


class WithTools(Harness[WithToolsConfig]):
    """Asks the policy, calls its tools, and asks again until it calls none."""

    EXECUTES_CODE = False
    NEEDS_CONTAINER = False
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True

    async def launch(self, ctx: Any, *given: Any, **_: Any) -> ProgramResult:
        _trace, _runtime, endpoint, secret, urls, data, *_rest = given
        messages = [message_to_wire(message) for message in data.prompt]
        headers = {"Authorization": f"Bearer {secret}"}
        url = next(iter(urls.values()), None)
        async with httpx.AsyncClient(timeout=30) as client:
            while True:
                body = {"model": ctx.model, "messages": messages}
                answer = await client.post(
                    f"{endpoint}/chat/completions", json=body, headers=headers
                )
                if answer.status_code != 200:
                    return ProgramResult(1, "", answer.text)
                said = answer.json()["choices"][0]["message"]
                messages.append(said)
                calls = said.get("tool_calls") or ()
                if not calls:
                    return ProgramResult(0, "", "")
                messages += [await self._called(url, call) for call in calls]

    async def _called(self, url: Any, call: Any) -> dict[str, Any]:
        function = call["function"]
        async with Client(url) as tools:
            result = await tools.call_tool(function["name"], json.loads(function["arguments"]))
        [content] = result.content
        return {"role": "tool", "tool_call_id": call["id"], "content": content.text}
