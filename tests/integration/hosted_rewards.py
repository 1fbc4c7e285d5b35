"""Rewards of somebody else's, as an operator's file hosts them, and each way they can be bad."""

from __future__ import annotations

import builtins
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from assay.environments.hosting import host_function


def good(prompts: Any, completions: Any, answer: Any, **_: Any) -> list[float]:
    """The share of the answer's letters that were said."""
    return [float(answer[0] in completions[0])]


async def awaited(completions: Any, **_: Any) -> list[float]:
    return [0.5]


def chat(prompts: Any, completions: Any, **_: Any) -> list[float]:
    """How many messages there are, and calls in them."""
    calls = sum(len(one.get("tool_calls") or ()) for one in completions[0])
    return [10.0 * len(prompts[0]) + len(completions[0]) + 0.1 * calls]


def numpy_number(completions: Any) -> Any:
    import numpy as np

    return np.array([0.25], dtype=np.float32)


def says_true(completions: Any) -> list[bool]:
    return [True]


class Weird:
    def item(self) -> Any:
        return "text"


def _patches(completions: Any) -> list[float]:
    json.dumps = json.loads = lambda *_, **__: "{}"  # type: ignore[assignment]
    math.isfinite = lambda _: False  # type: ignore[assignment]
    builtins.float = int  # type: ignore[misc, assignment]
    os._exit = lambda _: None  # type: ignore[assignment, return-value]
    return [1.0]


def _forks(completions: Any) -> list[float]:
    for _ in range(3):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return [0.75]


def _prints(completions: Any) -> list[float]:
    for number in range(3, 64):  # whatever the worker speaks through
        try:
            os.write(number, b'{"number": 1.0}' if number < 5 else b"x")
        except OSError:
            continue
    print('{"number": 99.0}' * 1000, flush=True)
    return [0.5]


def _raises(error: BaseException) -> Callable[..., Any]:
    def function(completions: Any) -> Any:
        raise error

    return function


def _signals(completions: Any) -> Any:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGKILL)


def _hangs(completions: Any) -> Any:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        time.sleep(0.01)


def _hog(completions: Any) -> Any:
    held = []
    while True:
        held.append(bytearray(64 << 20))


def returns(value: Any) -> Callable[..., Any]:
    def function(completions: Any) -> Any:
        return value

    return function


class Deep:
    """Its `__len__` says one, and what it holds is nothing."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: int) -> Any:
        raise KeyError(number)


BAD: dict[str, Callable[..., Any]] = {
    "raises": _raises(ValueError("the answer is 4")),
    "exits": _raises(SystemExit(0)),
    "interrupts": _raises(KeyboardInterrupt()),
    "leaves": _raises(GeneratorExit()),
    "os_exit": lambda completions: os._exit(0),
    "killed": _signals,
    "hangs": _hangs,
    "hog": _hog,
    "none": returns([None]),
    "nothing": returns(None),
    "nan": returns([math.nan]),
    "infinite": returns([math.inf]),
    "huge": returns([10**4000]),
    "text": returns("1"),
    "texts": returns(["1.0"]),
    "two": returns([1.0, 1.0]),
    "empty": returns([]),
    "million": returns([1.0] * 1_000_000),
    "mapping": returns({"score": 1.0}),
    "weird": returns([Weird()]),
    "deep": returns(Deep()),
    "bare": returns(1.0),
    "stdout": lambda completions: sys.stdout.close() or os.close(1) or [None],
}
ODD: dict[str, Callable[..., Any]] = {
    "forks": _forks,
    "numpy_number": numpy_number,
    "says_true": says_true,
    "awaited": awaited,
    "patches": _patches,
    "prints": _prints,
}


def strange(completions: Any, how: list[str]) -> Any:
    """Is bad or odd as the row says."""
    return {**BAD, **ODD}[how[0]](completions)


hosted_good = host_function(good, deterministic=True)
hosted_chat = host_function(chat, conversational=True)
hosted_strange = host_function(strange, timeout_s=3.0)
