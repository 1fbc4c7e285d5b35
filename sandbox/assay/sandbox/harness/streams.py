"""What the program prints and reads during a call, where test code has replaced a stream.

Tests replace `sys.stdout` (by `redirect_stdout`, `mock.patch`, `capsys`), `sys.stdin` or
`builtins.input`, and call the program in another process. So a call names what is replaced; the
program's process does the same during the call and returns the texts.

Covered: output of a call that returns; what the program reads from a text, or asks of a function of
the tests'.
Not covered: output of a call that raises; what a program writes past `sys.stdout`.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any, Final

_OUTPUTS: Final = ("stdout", "stderr")
_FUNCTIONS: Final = ("input", "print")

Wanted = list[object]
"""Whether stdout and stderr are returned; the text of stdin or None; `input`, `print` or None."""


class Streams:
    """The tests' streams, as they were at the start."""

    def __init__(self) -> None:
        self._outputs = [getattr(sys, name) for name in _OUTPUTS]
        self._stdin = sys.stdin
        self._functions = [getattr(builtins, name) for name in _FUNCTIONS]

    def wanted(self) -> Wanted | None:
        """What a call is to replace; None for nothing."""
        outputs = [
            getattr(sys, name) is not old for name, old in zip(_OUTPUTS, self._outputs, strict=True)
        ]
        functions = [
            None if getattr(builtins, name) is old else getattr(builtins, name)
            for name, old in zip(_FUNCTIONS, self._functions, strict=True)
        ]
        text = None if sys.stdin is self._stdin else str(sys.stdin.read())
        if not any(outputs) and text is None and functions == [None, None]:
            return None
        return [*outputs, text, *functions]

    def take(self, told: list[str]) -> None:
        """Passes on what the program wrote, and what it has not read."""
        for name, text in zip(_OUTPUTS, told, strict=False):
            if text:
                getattr(sys, name).write(text)
        if sys.stdin is not self._stdin:
            sys.stdin = io.StringIO(told[2])


@contextlib.contextmanager
def replaced(wanted: Wanted) -> Iterator[list[str]]:
    """In the program's process: replaces what is wanted; the list is what to return."""
    *outputs, text, ask, write = wanted
    functions: list[Any] = [ask, write]
    saved = [(sys, name, getattr(sys, name)) for name in (*_OUTPUTS, "stdin")]
    saved += [(builtins, name, getattr(builtins, name)) for name in _FUNCTIONS]
    told: list[str] = []
    texts = [io.StringIO() if told_of else None for told_of in outputs]
    source = None if text is None else io.StringIO(str(text))
    try:
        for name, stream in zip((*_OUTPUTS, "stdin"), (*texts, source), strict=True):
            if stream is not None:
                setattr(sys, name, stream)
        for name, function in zip(_FUNCTIONS, functions, strict=True):
            if function is not None:
                setattr(builtins, name, function)
        yield told
        told += ["" if stream is None else stream.getvalue() for stream in texts]
        told.append("" if source is None else source.read())
    finally:
        for module, name, old in saved:
            setattr(module, name, old)
