"""Exit codes of what ran in a sandbox, as shells have them."""

from __future__ import annotations

import signal

LIMIT_CODE = 124
FAULT_CODE = 125
SIGNAL_BASE = 128


def signal_name(number: int) -> str:
    """SIGKILL for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
