"""Responses to score, and what carries them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.clients import ClientConfig, RetryPolicy
from assay.clients.testing import ScriptedTransport
from assay.clients.testing.fake import exact_info
from assay.trainer.core.rewards import Judge
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.rollouts.scoring import BackgroundClient
from assay.trainer.settings.sections import RewardConfig

QUICK = ClientConfig(retry=RetryPolicy(max_attempts=4, base_s=0.005, cap_s=0.02))


def request(number: int, index: int = 0) -> Request:
    """Sample `index` of a draw whose answer is 1."""
    problem = Problem("train-0", "1 or 0?", (("user", "Say: 1 or 0?"),), "1")
    return Request(Draw(number, problem, (5, 6)), index)


def response(text: str = "1") -> Response:
    """A response of one token a character, and an end."""
    return Response((*map(ord, text), 0), text, None, truncated=False)


def wait_until(true: Callable[[], bool], limit_s: float = 30.0) -> None:
    """Waits for something that is bound to happen; the limit is for code that is broken."""
    ends_s = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < ends_s, "it did not happen"
        time.sleep(0.005)


def judge_over(
    client: BackgroundClient, timeout_s: float = 30.0, *, judges_groups: bool = False
) -> Judge:
    """A judge with the verifier that compares texts."""
    config = RewardConfig(verifier="exact", timeout_s=timeout_s)
    return Judge(client, config, judges_groups=judges_groups)


class WrittenTransport(ScriptedTransport):
    """A service in this process: answers chunks by a function that may raise.

    Args:
        answer: results for the items of one chunk, of the stream with that number, from 0. None
            hangs.
    """

    def __init__(self, answer: Callable[[int, Any], list[reward_pb2.Result] | None]) -> None:
        self._answer = answer
        self.streams = 0

    async def stream_score(
        self, requests: AsyncIterator[Any], *, timeout_s: float
    ) -> AsyncIterator[Any]:
        assert timeout_s > 0
        number = self.streams
        self.streams += 1
        async for chunk in requests:
            results = self._answer(number, chunk.items)
            if results is None:
                await asyncio.Event().wait()
            yield reward_pb2.StreamScoreResponse(results=results)

    async def list_verifiers(self, _request: Any, *, timeout_s: float) -> Any:
        assert timeout_s > 0
        return reward_pb2.ListVerifiersResponse(verifiers=[exact_info()])

    async def batch_score(self, request: Any, *, timeout_s: float) -> Any:
        assert timeout_s > 0
        return reward_pb2.BatchScoreResponse(results=self._answer(-1, request.items))

    async def close(self) -> None:
        """Nothing to end."""


def judged(item: Any) -> reward_pb2.Result:
    """Reward 1 for the reference, else 0."""
    result = reward_pb2.Result(id=item.id)
    result.judgement.reward = float(item.response == item.reference.text)
    result.judgement.verdict = "correct" if item.response == item.reference.text else "incorrect"
    return result
