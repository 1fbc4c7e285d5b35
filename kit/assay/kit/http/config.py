"""The settings of HTTP, as a frozen value. A service's `__main__` makes it from flags."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.kit import limits
from assay.kit.errors import ConfigError

MAX_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """How a service is reached over HTTP, and what holds where a peer's format cannot say it.

    Attributes:
        port: 0 for any free one; None: nothing is served over HTTP.
        bind: address to bind; loopback unless told otherwise.
        timeout_s: deadline of a call without `x-timeout-s`, in seconds.
        max_body_bytes: of a request.
        body_timeout_s: a request's body has to arrive in so many seconds.

    Raises:
        ConfigError: a value is out of range.
    """

    port: int | None = None
    bind: str = "127.0.0.1"
    timeout_s: float = 100.0
    max_body_bytes: int = limits.MAX_MESSAGE_BYTES
    body_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.timeout_s) and 0 < self.timeout_s <= MAX_TIMEOUT_S):
            raise ConfigError(
                f"--http-timeout-s must be above 0 and at most {MAX_TIMEOUT_S:g} (seconds)"
            )
