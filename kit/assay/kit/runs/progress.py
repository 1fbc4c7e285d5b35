"""What a run shows: notes, rows of numbers, and on a terminal a bar below them."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_HEADER_EVERY = 40


def duration(seconds: float) -> str:
    """Seconds as m:ss, or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Display:
    """Prints steps and notes, with a bar below them where the console is a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar: Progress | None = None
        self._lines = 0
        self._what = ""

    def note(self, text: str) -> None:
        """One line of its own."""
        self.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Starts a bar; only on a terminal."""
        self.end()
        self._lines = 0
        self._what = what
        if self.console.is_terminal:
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=self.console, transient=True)
            self._bar.start()
            self._bar.add_task(what, total=total, completed=done)

    def advance(self, done: int) -> None:
        """Moves the bar."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)

    def aside(self, text: str) -> None:
        """Shows something beside the bar; "" removes it."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=f"{self._what} {text}".rstrip())

    def row(self, header: str, text: str) -> None:
        """A line of numbers, sometimes under the names of its columns."""
        if self._lines % _HEADER_EVERY == 0:
            self.note(header)
        self._lines += 1
        self.note(text)

    def end(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
