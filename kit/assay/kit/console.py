"""The console of every command: it prints text as it is. Needs the extra `console`.

rich takes `[name]` in a text for markup, and drops it: `pip install './sandbox[ray]'` loses its
extra, a row's key its brackets. Style comes from `rich.text.Text` alone.
"""

from __future__ import annotations

from typing import TextIO

from rich.console import Console


def make_console(
    *,
    file: TextIO | None = None,
    stderr: bool = False,
    width: int | None = None,
    highlight: bool = True,
) -> Console:
    """A console that knows neither `[markup]` nor `:emoji:`.

    Args:
        file: where it prints; by default standard output.
        stderr: standard error instead.
        width: columns; by default the terminal's, and 80 where there is none.
        highlight: numbers and paths in colours, where there are some.
    """
    return Console(
        file=file, stderr=stderr, width=width, highlight=highlight, markup=False, emoji=False
    )
