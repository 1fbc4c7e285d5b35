"""How a client behaves, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.clients.retry import RetryPolicy
from assay.rpc.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How a client batches, how much it sends at once, and when it tries again.

    Attributes:
        micro_batch_items: a batch of `score_one` callers leaves when it holds this many items.
        micro_batch_wait_s: or when its first item has waited this long, in seconds.
        max_call_items: most items that `score` sends in one call, whatever more the server takes.
        max_concurrent_calls: most calls in flight at once.
        retry: when a call is tried again.

    Raises:
        ConfigError: A value is out of range.
    """

    micro_batch_items: int = 64
    micro_batch_wait_s: float = 0.002
    max_call_items: int = 512
    max_concurrent_calls: int = 8
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def __post_init__(self) -> None:
        for name in ("micro_batch_items", "max_call_items", "max_concurrent_calls"):
            if getattr(self, name) < 1:
                raise ConfigError(f"ClientConfig.{name} is {getattr(self, name)}; pass 1 or more")
        if self.micro_batch_wait_s < 0:
            raise ConfigError(
                f"ClientConfig.micro_batch_wait_s is {self.micro_batch_wait_s}; pass 0 or more"
            )


BETWEEN_SERVICES = ClientConfig(retry=RetryPolicy(max_attempts=8))
"""How a service asks another one: where nobody answers for some 6 s, the items are faults, and the
rest of their batch is not held up."""
