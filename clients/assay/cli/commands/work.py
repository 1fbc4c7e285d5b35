"""One pass over a file of rows: calls to the server, lines of output, counts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console, RenderableType

from assay.cli.commands.options import ServerAccess
from assay.cli.commands.pipeline import Counted, progress_bar, score_in_order
from assay.cli.scoring.files import pack_of
from assay.cli.scoring.partial import PartialFile, write_json
from assay.cli.scoring.rows import Row, RowSource, RowSurvey, dump, read_rows
from assay.clients.types import Fault, Item, Result
from assay.kit.errors import CallError, ConfigError


class RowTally(Counted, Protocol):
    """Counts lines of output."""

    def add(self, line: dict[str, Any]) -> None:
        """Counts one line."""

    def report(self) -> RenderableType:
        """The summary at the end."""

    def numbers(self) -> dict[str, Any]:
        """What the summary says, as plain data."""


class RowWork(Protocol):
    """What a command does with each row."""

    @property
    def tally(self) -> RowTally:
        """Counts the lines."""

    @property
    def selects(self) -> bool:
        """Some lines may be left out of the finished file."""

    def items(self, row: Row) -> Sequence[Item]:
        """The items of a row; ids empty, or unique over all rows."""

    def line(self, row: Row, results: Sequence[Result]) -> dict[str, Any]:
        """The output for a row."""

    def select(self, line: dict[str, Any]) -> bool:
        """Whether the finished file has a line."""

    def identity(self) -> dict[str, Any]:
        """The origin of the lines, beside the rows: plain data, for resuming."""


def carry_out(
    work: RowWork,
    source: RowSource,
    found: RowSurvey,
    server: ServerAccess,
    *,
    timeout_s: float,
    output: str,
    console: Console,
    numbers_to: Path | None = None,
) -> None:
    """Does the work on every row and writes the lines in order; "-" writes to stdout.

    A wrong row is not asked about: each of its items has the row's fault. `numbers_to` gets the
    tally's numbers as JSON, before the output is in its place.

    Raises:
        CallError: A call failed and nothing was kept.
        ConfigError: The output cannot be written, or a call failed and rows are kept.
    """
    tally = work.tally
    rows = read_rows(source)
    with ExitStack() as stack:
        stack.callback(rows.close)  # type: ignore[attr-defined]  # a generator, beyond Iterator
        show = stack.enter_context(progress_bar(console, found.count))
        write: Callable[[dict[str, Any]], None]
        if output == "-":
            file = None

            def write(line: dict[str, Any]) -> None:
                if not work.selects or work.select(line):
                    sys.stdout.buffer.write(dump(line))

            flush = sys.stdout.buffer.flush
        else:
            made_from = {"input": found.sha256, "keys": asdict(source.keys), **work.identity()}
            file = stack.enter_context(PartialFile(Path(output), made_from, tally.add))
            tell_resume(file, found.count, console)
            show(tally)

            def write(line: dict[str, Any]) -> None:
                file.write(dump(line))

            flush = file.flush

        def take(chunk: list[tuple[Row, Sequence[Result]]]) -> None:
            for row, answers in chunk:
                results = answers if row.fault is None else _faults(work, row, row.fault)
                line = work.line(row, results)
                tally.add(line)
                write(line)
            flush()
            show(tally)

        def items_of(row: Row) -> Sequence[Item]:
            return work.items(row) if row.fault is None else ()

        left = islice(rows, tally.done, None)
        with says_what_is_kept(file, tally, found.count):
            asyncio.run(score_in_order(left, server, timeout_s, items_of, take))
            if numbers_to is not None:
                write_json(numbers_to, tally.numbers())
            if file is not None:
                texts = file.finish(work.select if work.selects else None, pack_of(Path(output)))
                if texts:
                    said = f"columns of several types, written as texts of JSON: {', '.join(texts)}"
                    console.print(said, highlight=False)


def _faults(work: RowWork, row: Row, fault: Fault) -> list[Result]:
    return [Result(str(row.id), fault) for _ in work.items(row)]


def tell_resume(file: PartialFile, count: int, console: Console) -> None:
    """Prints what an interrupted run left, of `count` rows."""
    if file.kept:
        text = f"going on: {file.kept} of {count} rows were done by an interrupted run"
        console.print(text, highlight=False)
    if file.discarded:
        text = f"starting anew: {file.partial.name} was made from another input or other options"
        console.print(text, highlight=False)


@contextmanager
def says_what_is_kept(file: PartialFile | None, tally: Counted, count: int) -> Iterator[None]:
    """Adds to a failure, or an interruption, what is kept of `count` rows.

    Raises:
        ConfigError: A call failed, and rows are kept.
    """
    try:
        yield
    except CallError as error:
        if file is None or not tally.done:
            raise
        kept = f"{tally.done} of {count} rows are kept in {file.partial}"
        raise ConfigError(f"{error}; {kept}: run the same command again to go on") from error
    except KeyboardInterrupt:
        if file is not None:
            kept = f"{tally.done} of {count} rows are kept in {file.partial}"
            print(f"\ninterrupted: {kept}; run the same command again to go on", file=sys.stderr)
        raise
