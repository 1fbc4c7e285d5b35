"""An exception of a cell as texts: its class, what it says, and a traceback without our frames.

Covered: exceptions whose class, text or traceback fail or are huge; a replaced `traceback`.
"""

from __future__ import annotations

import builtins
import linecache
from collections.abc import Mapping
from traceback import TracebackException
from types import TracebackType
from typing import Any, Final

globals()["__builtins__"] = dict(vars(builtins))  # also when the program deletes them

CELL: Final = "<cell "
_MAX_BARE_FRAMES: Final = 50
_MAX_NAME: Final = 200
_MAX_MESSAGE: Final = 16 * 2**10
_MAX_TRACE: Final = 64 * 2**10
_NAME_OF: Final[Any] = vars(type)["__name__"].__get__
_OURS: Final = __file__.rpartition("/")[0] + "/"


def report(error: BaseException, sources: Mapping[str, str]) -> tuple[str, str, str]:
    """Class name, text and traceback; `sources` are the cells' texts by name."""
    name = name_of(error)
    message = _message(error)
    trace = _first_of_program(error.__traceback__)
    try:
        show_sources(sources)
        lines = TracebackException(type(error), error, trace, compact=True).format()
        text = "".join(lines)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the fault boundary: the exception's own, or a replaced module
        text = _bare(trace) + f"{name}: {message}\n"
    return name, message, _printable(_shortened(text, _MAX_TRACE))


def name_of(error: BaseException) -> str:
    """Its class's name, whatever the class says of itself."""
    return _printable(str.__str__(_NAME_OF(type(error)))[:_MAX_NAME])


def show_sources(sources: Mapping[str, str]) -> None:
    """Makes the cells' lines known to tracebacks, warnings and `inspect`."""
    cache = linecache.cache
    for name, text in sources.items():
        if name not in cache:
            cache[name] = (len(text), None, text.splitlines(keepends=True), name)


def _bare(trace: TracebackType | None) -> str:
    """The frames of a traceback without their lines."""
    lines = ["Traceback (most recent call last):\n"] if trace is not None else []
    while trace is not None and len(lines) <= _MAX_BARE_FRAMES:
        code = trace.tb_frame.f_code
        lines.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}\n')
        trace = trace.tb_next
    return "".join(lines)


def _message(error: BaseException) -> str:
    try:
        return _printable(_shortened(str.__str__(str(error)), _MAX_MESSAGE))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the fault boundary: the exception's own
        return "<exception str() failed>"


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 4]}\n... {len(text) - most:,} characters ...\n{text[-most * 3 // 4 :]}"


def _first_of_program(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the cell's own frame on."""
    found = trace
    while found is not None and not found.tb_frame.f_code.co_filename.startswith(CELL):
        found = found.tb_next
    if found is not None:
        return found
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    return trace
