"""For commands over a file of rows: a server, rows in flight, a progress bar."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from assay.cli.commands.options import IMPATIENT, ServerAccess
from assay.cli.scoring.hub import HUB, spooled_hub
from assay.clients.reward import AsyncRewardClient, RewardClient
from assay.clients.services import EmbeddedServices, installed_services
from assay.clients.types import Item, Result, ServerInfo

# Larger chunks are no faster (20,000 rows of GSM8K), and an interrupted run loses more.
CHUNK_ROWS = 128
CHUNKS_AHEAD = 8
_READY_S = 10.0

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")


class Counted(Protocol):
    """The counts of a progress bar."""

    @property
    def done(self) -> int:
        """Rows done."""

    @property
    def faulted(self) -> int:
        """Rows with a fault."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A server that answers, and its description."""

    server: ServerAccess
    info: ServerInfo


class ServerAhead:
    """The named server, or one that starts while the caller reads its rows.

    It runs for as long as the stack. A started server gets the command-line arguments.

    Attributes:
        pid: of the server that starts; None for a named one.

    Raises:
        ConfigError: No reward server is installed.
    """

    def __init__(self, server: ServerAccess, stack: ExitStack, arguments: Sequence[str]) -> None:
        self._server = server
        self._stack = stack
        self._arguments = arguments
        self._given_up = threading.Event()
        self._services: EmbeddedServices | None = None
        self._started: Future[None] = Future()
        self.pid: int | None = None
        if not server.target:
            self._services = EmbeddedServices(arguments={"reward": arguments}, stop=self._given_up)
            self._services.launch()  # not in the thread, which a caller who computes would starve
            self.pid = self._services.pid()
            stack.callback(self._stop)
            self._thread = threading.Thread(target=self._start, name="assay-start", daemon=True)
            self._thread.start()

    def reach(self, *, sandbox: bool = False) -> Reached:
        """Waits for the server; with `sandbox` it has an installed sandbox beside it.

        Raises:
            StartupError: The server did not start.
            CallError: The server does not answer.
        """
        server = self._server
        if self._services is not None and sandbox and "sandbox" in installed_services():
            self._stop()
            return reach(server, self._stack, sandbox=True, arguments=self._arguments)
        if self._services is not None:
            self._started.result()
            server = ServerAccess(self._services.address, None, None)
        return _ask_about(server)

    def _start(self) -> None:
        assert self._services is not None  # noqa: S101  # it is there where the thread is
        try:
            self._services.start()
        except BaseException as error:  # noqa: BLE001  # the caller of `reach` gets it
            self._started.set_exception(error)
        else:
            self._started.set_result(None)

    def _stop(self) -> None:
        self._given_up.set()
        self._thread.join()
        if self._services is not None:
            self._services.stop()


def reach(
    server: ServerAccess, stack: ExitStack, *, sandbox: bool = False, arguments: Sequence[str] = ()
) -> Reached:
    """The named server, or one started for as long as the stack.

    A started server gets the command-line arguments, and with `sandbox` an installed sandbox beside
    it.

    Raises:
        ConfigError: No reward server is installed.
        StartupError: The server did not start.
        CallError: The server does not answer.
    """
    if not server.target:
        names = ["reward"]
        if sandbox and "sandbox" in installed_services():
            names.insert(0, "sandbox")
        services = stack.enter_context(EmbeddedServices(names, arguments={"reward": arguments}))
        server = ServerAccess(services.address, None, None)
    return _ask_about(server)


def _ask_about(server: ServerAccess) -> Reached:
    with RewardClient(
        server.target, tls=server.tls, token=server.token, timeout_s=_READY_S, config=IMPATIENT
    ) as client:
        return Reached(server, client.list_verifiers())


@contextmanager
def spooled_stdin() -> Iterator[Path]:
    """Standard input as a file, because rows are read twice."""
    with tempfile.NamedTemporaryFile(prefix="assay-stdin-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield Path(file.name)


@contextmanager
def rows_in(given: str) -> Iterator[tuple[Path, str]]:
    """The file of rows that a command was given, and its name for messages.

    "-" is standard input; `hf://datasets/NAME[@REVISION][?subset=...&split=...]` a data set.

    Raises:
        ConfigError: the data set cannot be read.
    """
    if given == "-":
        with spooled_stdin() as path:
            yield path, "stdin"
    elif given.startswith(HUB):
        with spooled_hub(given) as path:
            yield path, given
    else:
        yield Path(given), given


async def score_in_order(
    rows: Iterable[T],
    server: ServerAccess,
    timeout_s: float,
    items_of: Callable[[T], Sequence[Item]],
    take: Callable[[list[tuple[T, Sequence[Result]]]], None],
) -> None:
    """Scores rows; see `ask_in_order`. `timeout_s` is for each chunk.

    The items' ids are empty, or unique over all rows.

    Raises:
        CallError: A call failed after its retries.
    """
    async with AsyncRewardClient(
        server.target, tls=server.tls, token=server.token, timeout_s=timeout_s
    ) as client:

        async def score(items: list[Item]) -> list[Result]:
            return await client.score(items, on_error="raise") if items else []

        await ask_in_order(rows, items_of, score, take)


async def ask_in_order(
    rows: Iterable[T],
    items_of: Callable[[T], Sequence[A]],
    ask: Callable[[list[A]], Awaitable[Sequence[R]]],
    take: Callable[[list[tuple[T, Sequence[R]]]], None],
    *,
    chunk_rows: int = CHUNK_ROWS,
    chunks_ahead: int = CHUNKS_AHEAD,
) -> None:
    """Asks about rows in chunks, some ahead of what is taken: order is kept and memory bounded.

    `ask` gives one result for each item of a chunk, in order; `take` gets each chunk's rows with
    their results, in order.
    """
    iterator = iter(rows)
    ahead: deque[asyncio.Task[list[tuple[T, Sequence[R]]]]] = deque()

    async def ask_chunk(chunk: list[T]) -> list[tuple[T, Sequence[R]]]:
        per_row = [items_of(row) for row in chunk]
        results = iter(await ask([item for group in per_row for item in group]))
        return [
            (row, list(islice(results, len(group))))
            for row, group in zip(chunk, per_row, strict=True)
        ]

    try:
        while True:
            while len(ahead) < chunks_ahead and (chunk := list(islice(iterator, chunk_rows))):
                ahead.append(asyncio.create_task(ask_chunk(chunk)))
            if not ahead:
                return
            take(await ahead[0])
            ahead.popleft()
    finally:
        for task in ahead:
            task.cancel()
        await asyncio.gather(*ahead, return_exceptions=True)


@contextmanager
def progress_bar(
    console: Console, total: int | None, what: str = "scoring"
) -> Iterator[Callable[[Counted], None]]:
    """A bar on the terminal, and the function that moves it. `total` None: nobody knows."""
    columns = (
        TextColumn(what, markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TextColumn("{task.fields[faults]} faults", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, disable=not console.is_terminal, transient=True
    ) as progress:
        bar = progress.add_task("", total=total, rate="", faults=0)

        def show(tally: Counted) -> None:
            speed = progress.tasks[0].speed
            rate = f"{speed:.0f} rows/s" if speed else ""
            progress.update(bar, completed=tally.done, rate=rate, faults=tally.faulted)

        yield show
