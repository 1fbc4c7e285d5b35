"""`assay score`: a JSON Lines file in, the same rows with rewards out."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from assay.clients.client import AsyncRewardClient
from assay.clients.commands.options import IMPATIENT, Server, read_server, server_options
from assay.clients.partial import PartialFile
from assay.clients.rows import (
    Keys,
    Row,
    Source,
    Survey,
    check_routes,
    dump,
    output_row,
    read_rows,
    survey,
)
from assay.clients.services import EmbeddedServices
from assay.clients.sync import RewardClient
from assay.rpc.errors import CallError, ConfigError

_CHUNK_ROWS = 64
_CHUNKS_AHEAD = 8
_READY_S = 10.0


@dataclass(slots=True)
class Tally:
    """What came of the rows so far.

    Attributes:
        rewards_sum: the sum of the rewards of judged rows.
        verdicts: how often each verdict.
        faults: how often each reason.
    """

    rewards_sum: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, row: dict[str, Any]) -> None:
        """Counts one row of output."""
        if row["fault"] is not None:
            self.faults[row["fault"]["reason"]] += 1
        else:
            self.verdicts[row["verdict"]] += 1
            self.rewards_sum += row["reward"]

    @property
    def done(self) -> int:
        """How many rows were counted."""
        return self.verdicts.total() + self.faults.total()

    def table(self) -> Table:
        """The summary that a person reads."""
        table = Table(show_header=False)
        judged = self.verdicts.total()
        table.add_row("rows", str(self.done))
        table.add_row(
            "mean reward", f"{self.rewards_sum / judged:.4f}" if judged else "nothing was judged"
        )
        for verdict, count in self.verdicts.most_common():
            table.add_row(f"verdict {verdict}", f"{count} ({100 * count / self.done:.1f} %)")
        table.add_row("faults", str(self.faults.total()))
        for reason, count in self.faults.most_common():
            table.add_row(f"fault {reason}", f"{count} ({100 * count / self.done:.1f} %)")
        return table


@click.command()
@click.argument("in_file", metavar="IN.jsonl[.gz]")
@click.option(
    "-o", "--output", required=True, metavar="OUT.jsonl", help="Where the rows go; - for stdout."
)
@click.option("--verifier", default="", help="Who judges rows that name no verifier.")
@click.option("--task", default="", help="The task of rows that name neither verifier nor task.")
@server_options
@click.option("--timeout", default=600.0, show_default=True, help="Seconds that one call may take.")
@click.option("--fail-on-fault", is_flag=True, help="Exit with 1 when a row has a fault.")
@click.option("--id-key", default="id", show_default=True, help="Key of the id.")
@click.option("--response-key", default="response", show_default=True, help="Key of the response.")
@click.option(
    "--reference-key", default="reference", show_default=True, help="Key of the reference."
)
@click.option("--prompt-key", default="prompt", show_default=True, help="Key of the prompt.")
@click.option("--verifier-key", default="verifier", show_default=True, help="Key of the verifier.")
@click.option("--task-key", default="task", show_default=True, help="Key of the task.")
@click.option(
    "--params-key", default="params", show_default=True, help="Key of the verifier's parameters."
)
def score(
    *,
    in_file: str,
    output: str,
    verifier: str,
    task: str,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    timeout: float,
    fail_on_fault: bool,
    **names: str,
) -> int:
    """Score the responses of IN.jsonl ("-": stdin) and write the rows with rewards to OUT.jsonl.

    A row is {id, response, reference, prompt?, verifier?, task?, params?}; other keys pass through.
    Each row comes out in order with reward, verdict, answer, components and fault; keys of the
    input with one of these names are kept as input_KEY. Every row is checked before anything is
    scored. OUT.jsonl appears when it is whole; an interrupted run goes on where it stopped when it
    is started again with the same input and options. Without --target the server installed here is
    started for the occasion.
    """
    if timeout <= 0:
        raise ConfigError(f"--timeout {timeout:g} is not positive; pass seconds")
    server = read_server(target, token_file, tls_ca)
    keys = Keys(**{name.removesuffix("_key"): key for name, key in names.items()})
    console = Console(stderr=True)
    with ExitStack() as stack:
        path = Path(in_file) if in_file != "-" else stack.enter_context(_spooled_stdin())
        source = Source(path, in_file if in_file != "-" else "stdin", keys, verifier, task)
        _check_output(in_file, output)
        found = survey(source)
        server = _reach(server, stack)
        used = _check_server(server, source, found)
        if found.clashes:
            kept = ", ".join(f"input_{key}" for key in sorted(found.clashes))
            console.print(f"the input's own keys are kept as {kept}", highlight=False)
        tally = _run(source, found, server, timeout, output, used, console)
    console.print(tally.table())
    return int(fail_on_fault and bool(tally.faults))


@contextmanager
def _spooled_stdin() -> Iterator[Path]:
    """Standard input as a file, because rows are read twice."""
    with tempfile.NamedTemporaryFile(prefix="assay-stdin-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield Path(file.name)


def _check_output(in_file: str, output: str) -> None:
    """Raises ConfigError for an output that would not be what the caller means."""
    if output.endswith(".gz"):
        raise ConfigError(f"the output {output} would not be gzip; leave .gz out")
    if output != "-" and in_file != "-" and Path(output).resolve() == Path(in_file).resolve():
        raise ConfigError(f"the output {output} would replace the input; name another file")


def _reach(server: Server, stack: ExitStack) -> Server:
    """The server that was named, or one that is started for as long as the stack."""
    if server.target:
        return server
    services = stack.enter_context(EmbeddedServices(["reward"]))
    return Server(services.address, None, None)


def _check_server(server: Server, source: Source, found: Survey) -> list[str]:
    """Names and versions of the verifiers that will judge; raises when some row has none."""
    with RewardClient(
        server.target, tls=server.tls, token=server.token, timeout_s=_READY_S, config=IMPATIENT
    ) as client:
        return check_routes(source, found, client.list_verifiers())


def _run(  # noqa: PLR0917  # one caller; each is a different thing
    source: Source,
    found: Survey,
    server: Server,
    timeout_s: float,
    output: str,
    used: list[str],
    console: Console,
) -> Tally:
    tally = Tally()
    rows = read_rows(source)
    with ExitStack() as stack:
        stack.callback(rows.close)  # type: ignore[attr-defined]  # a generator, which Iterator does not say
        show = stack.enter_context(_progress(console, found.count))
        if output == "-":

            def write_out(chunk: list[dict[str, Any]]) -> None:
                _count(tally, chunk, show)
                sys.stdout.buffer.writelines(map(dump, chunk))
                sys.stdout.buffer.flush()

            asyncio.run(_score_rows(rows, server, timeout_s, write_out))
            return tally
        made_from = {
            "input": found.sha256,
            "verifier": source.verifier,
            "task": source.task,
            "versions": used,
            "keys": asdict(source.keys),
        }
        file = stack.enter_context(PartialFile(Path(output), made_from))
        _tell_resume(file, found, console)
        _count(tally, file.kept, show)

        def write_file(chunk: list[dict[str, Any]]) -> None:
            _count(tally, chunk, show)
            for row in chunk:
                file.write(dump(row))
            file.flush()

        with _says_what_is_kept(file, tally, found):
            asyncio.run(_score_rows(islice(rows, tally.done, None), server, timeout_s, write_file))
            file.finish()
    return tally


def _count(tally: Tally, rows: Iterable[dict[str, Any]], show: Callable[[Tally], None]) -> None:
    for row in rows:
        tally.add(row)
    show(tally)


def _tell_resume(file: PartialFile, found: Survey, console: Console) -> None:
    if file.kept:
        text = f"going on: {len(file.kept)} of {found.count} rows were done by an interrupted run"
        console.print(text, highlight=False)
    if file.discarded:
        text = f"starting anew: {file.partial.name} was made from another input or other options"
        console.print(text, highlight=False)


@contextmanager
def _says_what_is_kept(file: PartialFile, tally: Tally, found: Survey) -> Iterator[None]:
    try:
        yield
    except CallError as error:
        if not tally.done:
            raise
        kept = f"{tally.done} of {found.count} rows are kept in {file.partial}"
        raise ConfigError(f"{error}; {kept}: run the same command again to go on") from error
    except KeyboardInterrupt:
        kept = f"{tally.done} of {found.count} rows are kept in {file.partial}"
        print(f"\ninterrupted: {kept}; run the same command again to go on", file=sys.stderr)
        raise


async def _score_rows(
    rows: Iterable[Row],
    server: Server,
    timeout_s: float,
    write: Callable[[list[dict[str, Any]]], None],
) -> None:
    """Scores rows some chunks ahead of what is written, so that order is kept and memory bounded.

    Raises:
        CallError: A call failed after its retries.
    """
    iterator = iter(rows)
    ahead: deque[tuple[list[Row], asyncio.Task[list[dict[str, Any]]]]] = deque()
    async with AsyncRewardClient(
        server.target, tls=server.tls, token=server.token, timeout_s=timeout_s
    ) as client:

        async def score_chunk(chunk: list[Row]) -> list[dict[str, Any]]:
            results = await client.score([row.item for row in chunk], on_error="raise")
            return [output_row(row, result) for row, result in zip(chunk, results, strict=True)]

        try:
            while True:
                while len(ahead) < _CHUNKS_AHEAD and (chunk := list(islice(iterator, _CHUNK_ROWS))):
                    ahead.append((chunk, asyncio.create_task(score_chunk(chunk))))
                if not ahead:
                    return
                write(await ahead[0][1])
                ahead.popleft()
        finally:
            tasks = [task for _, task in ahead]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[Tally], None]]:
    """A bar on the terminal, and a function that moves it."""
    columns = (
        TextColumn("scoring"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[faults]} faults"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, disable=not console.is_terminal, transient=True
    ) as progress:
        bar = progress.add_task("", total=total, rate="", faults=0)

        def show(tally: Tally) -> None:
            speed = progress.tasks[0].speed
            rate = f"{speed:.0f} rows/s" if speed else ""
            progress.update(bar, completed=tally.done, rate=rate, faults=tally.faults.total())

        yield show
