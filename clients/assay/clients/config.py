"""The configuration of a client."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from assay.kit.errors import ConfigError

_ATTEMPTS_TO_MEET = 8


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to try.

    Attributes:
        max_attempts: calls in all, at least 1. None: until the caller's deadline.
        base_s: cap of the wait after the first failure; it doubles with every failure.
        cap_s: the greatest cap.

    Raises:
        ConfigError: A value is out of range.
    """

    max_attempts: int | None = None
    base_s: float = 0.1
    cap_s: float = 5.0

    def __post_init__(self) -> None:
        if self.max_attempts is not None and self.max_attempts < 1:
            raise ConfigError(f"RetryPolicy.max_attempts is {self.max_attempts}; pass 1 or more")
        if not 0 <= self.base_s <= self.cap_s:
            raise ConfigError(
                f"RetryPolicy wants 0 <= base_s <= cap_s, got {self.base_s} and {self.cap_s}"
            )

    def to_be_met(self) -> RetryPolicy:
        """The policy for a server that has not answered yet: it ends after 8 calls, some 6 s."""
        if self.max_attempts is not None:
            return self
        return dataclasses.replace(self, max_attempts=_ATTEMPTS_TO_MEET)


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How a client batches, how much it sends at once, and when it tries again.

    Attributes:
        micro_batch_items: a batch of `score_one` callers is sent when it holds this many items,
        micro_batch_wait_s: or when its first item has waited this long.
        max_call_items: most items of one call of `score`, even if the server takes more.
        max_concurrent_calls: calls in flight at once, fixed. None: adapted to the server, from 1 to
            64 (`assay.clients.core.window`).

    Raises:
        ConfigError: A value is out of range.
    """

    micro_batch_items: int = 64
    micro_batch_wait_s: float = 0.002
    max_call_items: int = 512
    max_concurrent_calls: int | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def __post_init__(self) -> None:
        for name in ("micro_batch_items", "max_call_items", "max_concurrent_calls"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"ClientConfig.{name} is {value}; pass 1 or more")
        if self.micro_batch_wait_s < 0:
            raise ConfigError(
                f"ClientConfig.micro_batch_wait_s is {self.micro_batch_wait_s}; pass 0 or more"
            )


BETWEEN_SERVICES = ClientConfig(retry=RetryPolicy(max_attempts=8))
"""For a service that calls another one: it makes faults after some 6 s without an answer."""
