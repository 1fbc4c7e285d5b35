"""The deadline of the call in progress."""

from __future__ import annotations

import math
from typing import Any, cast

import grpc


def remaining_s(context: grpc.aio.ServicerContext[Any, Any]) -> float:
    """Seconds left until the call's deadline: 0.0 when it passed, infinity when there is none."""
    left_s = cast("float | None", context.time_remaining())
    return math.inf if left_s is None else max(0.0, left_s)
