"""A harness of verifiers that asks the policy once, from the test's own process."""

from __future__ import annotations

from typing import Any

import httpx
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.harness import Harness
from verifiers.v1.runtimes import ProgramResult

__all__ = ["OneTurn", "OneTurnConfig"]


class OneTurnConfig(HarnessConfig):
    """Nothing to set."""


class OneTurn(Harness[OneTurnConfig]):
    """Sends the prompt as one message and takes the answer; verifiers records what passes."""

    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx: Any, *given: Any, **_: Any) -> ProgramResult:
        _trace, _runtime, endpoint, secret, _tools, data, *_rest = given
        body = {"model": ctx.model, "messages": [{"role": "user", "content": data.prompt}]}
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"{endpoint}/chat/completions", json=body, headers=headers)
        return ProgramResult(0 if answer.status_code == 200 else 1, "", answer.text)
