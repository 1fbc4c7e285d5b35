"""What runs the cells of a session inside the walls: one interface, for Python and for bash.

Whoever runs cells lives in the process that the program owns: whatever it says is the program's own
claim. `assay.sandbox.zygote.branch` calls it; the host reads its outcome as hostile data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

Bundle = Mapping[str, bytes]
"""A value in several forms, by mime type; "text/plain" is always there."""


class CellOutcome(NamedTuple):
    """How a cell ended that ended by itself.

    Attributes:
        end: "completed", "raised", "exited" (it asked to), or "interrupted" (a KeyboardInterrupt
            of ours or its own passed through it).
        exit_code: of "exited", and of every bash cell its status.
        value: the last expression's value; None for none.
        plain: that value by `harness.codec.encode`, where it is plain and below 16 KiB; else empty.
        error: class name, text and traceback of what it raised; None for none.
    """

    end: str
    exit_code: int = 0
    value: Bundle | None = None
    plain: bytes = b""
    error: tuple[str, str, str] | None = None


class Interpreter(Protocol):
    """Runs cells, one at a time, in the main thread."""

    def run(self, code: str, number: int, show: Callable[[Bundle], None]) -> CellOutcome:
        """Runs a cell; raises nothing of the program's.

        stdout and stderr are the process's descriptors 1 and 2, which may change between cells;
        all that the cell wrote is in them when this returns. SIGINT interrupts it.

        Args:
            code: its text.
            number: its number in the session, for tracebacks.
            show: called with what it displays.
        """

    def holds(self) -> list[str]:
        """What of the program a copy of this process would lose, e.g. "an interval timer".

        Threads, child processes, descriptors and mappings are looked at from outside.
        """

    def before_copy(self) -> None:
        """Called before the process is copied, in the original; nothing of a cell runs."""

    def after_copy(self, *, is_copy: bool) -> None:
        """Called afterwards: in the original, and in the copy once it has its own files."""

    def reseed(self, seed: int) -> None:
        """Gives `random` and numpy's functions another state."""
