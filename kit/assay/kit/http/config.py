"""The settings of HTTP, as a frozen value that a service's `__main__` makes from flags."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.kit import limits
from assay.kit.errors import ConfigError

MAX_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """How a service is reached over HTTP.

    Attributes:
        port: 0 for any free one; None for no HTTP.
        timeout_s: deadline of a call without `x-timeout-s`.
        body_timeout_s: until a request's body has arrived.

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
