"""When to try a call again, and when to give up.

Retried are UNAVAILABLE, and RESOURCE_EXHAUSTED when the server states how long to wait. The waits
are exponential with full jitter (uniform between 0 and the cap of the attempt), so that clients of
a restarted server spread out. A wait that would outlast the caller's deadline is not begun. Only
the deadline ends the retries, except for a client's first request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc

from assay.clients.config import RetryPolicy
from assay.kit.errors import CallError


def is_retryable(error: CallError) -> bool:
    """Whether the same call may succeed later."""
    if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return error.retry_after_s is not None
    return error.code is grpc.StatusCode.UNAVAILABLE


def next_delay_s(
    policy: RetryPolicy,
    failures: int,
    remaining_s: float,
    draw: float,
    retry_after_s: float | None = None,
) -> float | None:
    """Seconds to wait before the next attempt, in [0, remaining_s); None to give up.

    `failures` counts attempts that failed so far, at least 1; `draw` is a uniform number in [0, 1):
    the jitter; `retry_after_s` is the least wait that the server asked for.
    """
    if policy.max_attempts is not None and failures >= policy.max_attempts:
        return None
    doublings = min(failures - 1, 60)
    delay_s = draw * min(policy.cap_s, policy.base_s * 2.0**doublings) + (retry_after_s or 0.0)
    return delay_s if delay_s < remaining_s else None


T = TypeVar("T")


async def call_with_retries(
    attempt: Callable[[float], Awaitable[T]],
    policy: RetryPolicy,
    deadline_s: float,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    retryable: Callable[[CallError], bool] = is_retryable,
) -> T:
    """Calls until it succeeds, fails for good, or the schedule ends.

    `attempt` gets the seconds that it may take; `deadline_s` is by the running loop's clock;
    `sleep` may end early.

    Raises:
        CallError: The last failure.
    """
    loop = asyncio.get_running_loop()
    failures = 0
    while True:
        try:
            return await attempt(max(deadline_s - loop.time(), 0.001))
        except CallError as error:
            failures += 1
            remaining_s = deadline_s - loop.time()
            draw = random.random()  # noqa: S311  # jitter, not a secret
            delay_s = next_delay_s(policy, failures, remaining_s, draw, error.retry_after_s)
            if not retryable(error) or delay_s is None:
                raise
        await sleep(delay_s)
