"""`assay validate`: checks the rows of a data set before a run."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.cli.commands.options import ServerAccess, read_server, server_options
from assay.cli.commands.pipeline import ServerAhead, progress_bar, rows_in, score_in_order
from assay.cli.parameters import find_verifier, functions_among, read_parameters
from assay.cli.scoring.rows import RowSource, check_routes, read_objects, read_rows, survey
from assay.cli.validation import (
    FORMS,
    Gold,
    Validation,
    default_form,
    gold_response,
    spells_response,
)
from assay.clients.rows.items import Defaults, Keys
from assay.clients.types import Result, VerifierInfo
from assay.kit.console import make_console
from assay.kit.errors import ConfigError


@click.command()
@click.argument("in_file", metavar="DATA")
@click.option(
    "--verifier",
    default="",
    metavar="NAME|FILE.py:FUNCTION",
    help="Who will judge: a name, or a function in a file.",
)
@click.option(
    "--environment",
    default="",
    metavar="NAME|FILE.py:CLASS",
    help="In place of a verifier: check that rows have the columns that this environment needs.",
)
@click.option("--params", multiple=True, metavar="NAME=VALUE", help="A parameter of --verifier.")
@server_options
@click.option(
    "--as",
    "form",
    type=click.Choice(list(FORMS)),
    help="How the gold answer is written as a response. Default: boxed for math, an answer line "
    "for choice, else plain; none asks only whether references can be judged against.",
)
@click.option(
    "--response-key", default="", help="Take the row's own response, such as its worked solution."
)
@click.option(
    "--reference-key", default="reference", show_default=True, help="Key of the reference."
)
@click.option("--tests-key", default="tests", show_default=True, help="Key of a program's tests.")
@click.option("--anchor-key", default="anchor", show_default=True, help="Key of a text to beat.")
@click.option("--prompt-key", default="prompt", show_default=True, help="Key of the prompt.")
@click.option("--id-key", default="id", show_default=True, help="Key of the id.")
@click.option(
    "--params-key", default="params", show_default=True, help="Key of the verifier's parameters."
)
@click.option(
    "--bound",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="Exit with 1 when a smaller share of the references is right.",
)
@click.option("--show", default=20, show_default=True, help="How many failures to list.")
@click.option("--timeout", default=600.0, show_default=True, help="Seconds that one call may take.")
def validate(
    *,
    in_file: str,
    verifier: str,
    environment: str,
    params: tuple[str, ...],
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    form: str | None,
    response_key: str,
    bound: float,
    show: int,
    timeout: float,
    **names: str,
) -> int:
    """Check that the rows of DATA can be trained on.

    DATA is what `assay score` reads: JSON Lines, .gz, .zst, .parquet, "-" or hf://datasets/NAME.

    Each gold answer is given to the verifier as the response and must be right; a reference that
    spells no response (data, tests, an anchor) must only be usable. Lists what fails, by id, and
    exits with 1 when the share that is right is below --bound. With --environment nothing is
    judged: each row must have the columns that its episodes need.
    """
    if bool(verifier) == bool(environment):
        raise click.UsageError("name who will judge: --verifier, or --environment for episodes")
    if environment:
        from assay.environments.registry import environment_of  # noqa: PLC0415  # an extra

        kind = environment_of(environment)
        columns = {name.removesuffix("_key"): key for name, key in names.items()}
        with rows_in(in_file) as (path, shown_as):
            rows = read_objects(path, shown_as)
            counts = lacks_of(rows, kind.needs, columns)
        return print_columns(make_console(stderr=True), kind.name, counts, bound, show)
    if timeout <= 0:
        raise ConfigError(f"--timeout {timeout:g} is not positive; pass seconds")
    server = read_server(target, token_file, tls_ca)
    (verifier,), arguments = functions_among([verifier], target)
    chosen = form or default_form(verifier)
    keys = Keys(
        **{name.removesuffix("_key"): key for name, key in names.items()},
        response=response_key,
        verifier="",
        task="",
    )
    console = make_console(stderr=True)
    with ExitStack() as stack:
        path, shown_as = stack.enter_context(rows_in(in_file))
        source = RowSource(
            path,
            shown_as,
            keys,
            Defaults(verifier),
            output_keys=(),
            respond=None if response_key else lambda reference: gold_response(reference, chosen),
        )
        ahead = ServerAhead(server, stack, arguments)
        found = survey(source)
        reached = ahead.reach(sandbox=found.asks_sandbox)
        check_routes(source, found, reached.info, started_here=not target)
        info = find_verifier(reached.info, verifier)
        defaults = Defaults(verifier, params=read_parameters(info, params))
        source = dataclasses.replace(source, defaults=defaults)
        tally = Validation(keep=show)
        bar = stack.enter_context(progress_bar(console, found.count, "validating"))
        golds = (
            Gold(
                str(row.id),
                row.item,
                bool(response_key) or spells_response(row.item.reference, chosen),
            )
            for row in read_rows(source)
        )
        hold(golds, reached.server, info, tally, bar, timeout_s=timeout)
    print_validation(console, tally, bound)
    return int(tally.rate < bound)


def lacks_of(
    rows: Iterable[tuple[int, Mapping[str, Any]]], needs: Sequence[str], columns: Mapping[str, str]
) -> list[tuple[int, str]]:
    """Of each row its line, and the first needed column that it lacks; empty for none.

    `columns` names those that stand for a need, such as {"prompt": "question"}.
    """
    from assay.environments.environment import lacking  # noqa: PLC0415  # an extra

    own = ["|".join(columns.get(one, one) for one in need.split("|")) for need in needs]
    return [(line, lacking(own, row)) for line, row in rows]


def print_columns(
    console: Console, name: str, lacks: Sequence[tuple[int, str]], bound: float, show: int
) -> int:
    """Prints what `lacks_of` found, the first `show` rows by line; the exit code."""
    failed = [(line, need) for line, need in lacks if need]
    for line, need in failed[:show]:
        lack = " or ".join(map(repr, need.split("|")))
        console.print(Text(f"line {line}: {lack} is missing or empty"), soft_wrap=True)
    rate = 1 - len(failed) / len(lacks) if lacks else 0.0
    console.print(f"{len(lacks) - len(failed)} of {len(lacks)} rows have what {name} needs")
    return int(rate < bound)


def hold(
    golds: Iterable[Gold],
    server: ServerAccess,
    info: VerifierInfo,
    tally: Validation,
    show: Callable[[Validation], None],
    *,
    timeout_s: float,
) -> None:
    """Compares gold answers, whose ids are unique, with their references, and counts the outcomes.

    `show` is called after each chunk; `timeout_s` is for each chunk.

    Raises:
        CallError: A call failed after its retries.
    """

    def take(chunk: list[tuple[Gold, Sequence[Result]]]) -> None:
        for gold, (result,) in chunk:
            tally.add(gold, result, info)
        show(tally)

    asyncio.run(score_in_order(golds, server, timeout_s, lambda gold: (gold.item,), take))


def print_validation(console: Console, tally: Validation, bound: float) -> None:
    """Prints the failures, then the summary."""
    if tally.failures:
        listed = Table(title=f"first {len(tally.failures)} of {tally.done - tally.right} failures")
        for name in ("id", "why"):
            listed.add_column(name, overflow="fold")
        for failure in tally.failures:
            listed.add_row(Text(failure.id), Text(failure.why))
        console.print(listed)
    table = Table(show_header=False)
    table.add_row("rows", str(tally.done))
    table.add_row("gold answer is right", str(tally.correct))
    if tally.usable:
        table.add_row("reference is usable", str(tally.usable))
    table.add_row("gold answer is not right", str(tally.wrong))
    for reason, count in tally.faults.most_common():
        table.add_row(f"fault {reason}", str(count))
    table.add_row("share that can be trained on", f"{100 * tally.rate:.2f} %")
    table.add_row("bound", f"{100 * bound:.2f} %")
    console.print(table)
