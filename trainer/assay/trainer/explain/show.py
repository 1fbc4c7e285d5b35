"""An explanation on the screen: plain text under headings, and the table of parts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.trainer.explain.explanation import Explanation
from assay.trainer.settings.part import Part

WIDTH = 100


def show(explanation: Explanation, console: Console) -> None:
    """Prints an explanation at most WIDTH wide."""
    console.print(render(explanation), width=min(WIDTH, console.width))


def render(explanation: Explanation) -> Group:
    """The sections, the parts that are on, and those that are off."""
    body: list[RenderableType] = [Text(explanation.title, style="bold")]
    for section in explanation.sections:
        body += [_heading(section.title), *map(_line, section.lines)]
    body += [_heading(f"Parts that are on ({len(explanation.on)})"), _parts(explanation.on)]
    if explanation.off:
        body += [_heading("Switched off by ablate"), _parts(explanation.off)]
    body += [_line(text) for text in _closing(explanation)]
    return Group(*body)


def _heading(title: str) -> RenderableType:
    return Text(f"\n{title}", style="bold")


def _line(text: str) -> RenderableType:
    bare = text.lstrip()
    return Padding(Text(bare), (0, 0, 0, 2 + len(text) - len(bare)))


def _parts(parts: Sequence[Part]) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(ratio=3)
    grid.add_column(ratio=2, style="dim")
    for part in parts:
        grid.add_row(f"  {part.name}", part.what, part.reference)
    return grid


def _closing(explanation: Explanation) -> list[str]:
    lines = []
    if explanation.missing or explanation.added:
        name = explanation.title.partition(":")[0]
        differences = [
            *(f"without {part}" for part in explanation.missing),
            *(f"with {part}" for part in explanation.added),
        ]
        lines.append(f"Not {name} as published: {', '.join(differences)}.")
    switchable = [part.name for part in explanation.on if part.off is not None]
    fixed = [part.name for part in explanation.on if part.off is None]
    if switchable:
        stays = f"; {', '.join(fixed)} stays" if fixed else ""
        lines.append(f"Any part can be switched off, such as by ablate={switchable[-1]}{stays}.")
    return ["", *lines]
