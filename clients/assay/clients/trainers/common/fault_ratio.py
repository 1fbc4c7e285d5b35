"""The end of a run that gets too few judgements: `max_fault_ratio`, for all adapters.

A process counts for each target, verifier and task, over a window of the latest calls that hold
512 items and are at least 3: one bad batch does not stop a run, a dead verifier does. At the start
64 items in 3 calls suffice, so that a short run is stopped, too.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Hashable, Sequence

from assay.clients.trainers.common.faults import tell_faults
from assay.clients.types import Result
from assay.kit.errors import AssayError, ConfigError

_log = logging.getLogger(__name__)

MAX_FAULT_RATIO = 0.5
"""The default: a run stops when more than half of its samples have no judgement."""
WINDOW_ITEMS = 512
LEAST_ITEMS = 64
LEAST_CALLS = 3


class TooManyFaultsError(AssayError):
    """More samples are without a judgement than `max_fault_ratio` allows."""


def read_ratio(value: object) -> float:
    """A setting of `max_fault_ratio`.

    Raises:
        ConfigError: It is no number from 0 to 1.
    """
    try:
        ratio = float(str(value))
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 1.0:
        raise ConfigError(f"max_fault_ratio is {value!r}; pass a number from 0 to 1 (1: never)")
    return ratio


class FaultWindow:
    """The share of faults among the latest items; threads may share it.

    Args:
        max_ratio: in [0, 1]; 1 is never passed.
        items: of the window, in whole calls.
        least: items before which nothing is said.
        calls: the same for calls; the window holds no fewer.
    """

    def __init__(
        self,
        max_ratio: float,
        *,
        items: int = WINDOW_ITEMS,
        least: int = LEAST_ITEMS,
        calls: int = LEAST_CALLS,
    ) -> None:
        self._max_ratio = max_ratio
        self._items = items
        self._least = least
        self._least_calls = calls
        self._calls: deque[tuple[int, Counter[str]]] = deque()
        self._seen = 0
        self._faults: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, results: Sequence[Result]) -> str:
        """Takes in the results of a call; what is wrong past the ratio, else nothing."""
        if not results:
            return ""
        reasons = Counter(result.fault.reason for result in results if result.fault)
        with self._lock:
            self._calls.append((len(results), reasons))
            self._seen += len(results)
            self._faults += reasons
            while (
                len(self._calls) > self._least_calls
                and self._seen - self._calls[0][0] >= self._items
            ):
                count, gone = self._calls.popleft()
                self._seen -= count
                self._faults -= gone
            if self._seen < self._least or len(self._calls) < self._least_calls:
                return ""
            faults = self._faults.total()
            if faults / self._seen <= self._max_ratio:
                return ""
            frequent = ", ".join(f"{name} x{n}" for name, n in self._faults.most_common(3))
            return f"{faults} of the last {self._seen} samples had no judgement ({frequent})"


_windows: dict[tuple[Hashable, float], FaultWindow] = {}


def forget() -> None:
    """Empties the windows of this process, as in a forked child."""
    _windows.clear()


os.register_at_fork(after_in_child=forget)


def settle(whom: Hashable, max_ratio: float, results: Sequence[Result], missing: str = "") -> None:
    """Logs why samples have no reward, and ends the run where there are too many of them.

    `missing` is as in `tell_faults`. Each time it raises it also logs an error, for trainers that
    swallow what a reward function raises.

    Raises:
        TooManyFaultsError: More than `max_ratio` of the window are faults.
    """
    tell_faults(results, missing)
    if max_ratio >= 1.0:
        return
    window = _windows.get((whom, max_ratio))
    if window is None:
        window = _windows.setdefault((whom, max_ratio), FaultWindow(max_ratio))
    said = window.add(results)
    if not said:
        return
    last = next((result.fault.message for result in reversed(results) if result.fault), "")
    error = TooManyFaultsError(
        f"{said}, and max_fault_ratio allows {max_ratio:g}; mend the cause"
        f"{f' (the latest: {last})' if last else ''}, which docs/reference/errors.md explains, "
        "or set max_fault_ratio (ASSAY_MAX_FAULT_RATIO); 1 never stops"
    )
    _log.error("%s", error)
    raise error
