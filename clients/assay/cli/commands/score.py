"""`assay score`: a file of rows in, the same rows with rewards out."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import click

from assay.cli.commands import compare
from assay.cli.commands.options import ServerAccess, read_server, server_options
from assay.cli.commands.pipeline import Reached, ServerAhead, rows_in
from assay.cli.commands.work import RowWork, carry_out
from assay.cli.parameters import find_verifier, functions_among, read_parameters, split_spec
from assay.cli.scoring.breakdown import Breakdown, LineKeys
from assay.cli.scoring.files import pack_of
from assay.cli.scoring.recorded import are_recorded, episodes_in, spooled_rollouts
from assay.cli.scoring.rows import (
    Row,
    RowSource,
    RowSurvey,
    check_routes,
    dump,
    output_row,
    survey,
)
from assay.cli.scoring.scores import ScoreTally
from assay.clients.rows.items import Defaults, Keys
from assay.clients.types import Item, Result
from assay.kit import tracing
from assay.kit.console import make_console
from assay.kit.errors import ConfigError


class Scoring:
    """The work of `assay score`: every row is judged once.

    `used` holds name and version of each verifier that judges.
    """

    def __init__(self, defaults: Defaults, used: list[str], tally: ScoreTally) -> None:
        self._defaults = defaults
        self._used = used
        self.selects = False
        self.tally = tally

    def items(self, row: Row) -> Sequence[Item]:
        """The row's own item."""
        return (row.item,)

    def line(self, row: Row, results: Sequence[Result]) -> dict[str, Any]:
        """The row's keys and its outcome."""
        return output_row(row, results[0])

    def select(self, line: dict[str, Any]) -> bool:
        """True: the finished file has every line."""
        del line
        return True

    def identity(self) -> dict[str, Any]:
        """Defaults and verifiers, for resuming."""
        return {**dataclasses.asdict(self._defaults), "versions": self._used}


@dataclass(frozen=True, slots=True)
class _Asked:
    params: tuple[str, ...]
    compare: tuple[str, str] | None
    accept_above: float | None
    keep_all: bool
    show: int
    group_key: str


@click.command()
@click.argument("in_file", metavar="IN")
@click.option(
    "-o", "--output", required=True, metavar="OUT", help="Where the rows go; - for stdout."
)
@click.option(
    "--verifier",
    default="",
    metavar="NAME|FILE.py:FUNCTION",
    help="Who judges rows that name no verifier: a name, or a function in a file.",
)
@click.option("--task", default="", help="The task of rows that name neither verifier nor task.")
@click.option(
    "--params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of --verifier (or of who serves --task); may be given several times.",
)
@click.option(
    "--compare",
    "pair",
    nargs=2,
    metavar="A B",
    help="Judge every row with both and write the rows on which they disagree. Each is a verifier "
    "or profile, or FILE.py:FUNCTION, with parameters as NAME:param=value,param=value.",
)
@click.option("--all", "keep_all", is_flag=True, help="With --compare: write all rows.")
@click.option("--show", default=10, show_default=True, help="With --compare: rows to print.")
@click.option(
    "--accept-above",
    type=float,
    help="With --compare: a reward above this accepts; by default, the middle of the range.",
)
@server_options
@click.option("--timeout", default=600.0, show_default=True, help="Seconds that one call may take.")
@click.option("--fail-on-fault", is_flag=True, help="Exit with 1 when a row has a fault.")
@click.option(
    "--keep-going", is_flag=True, help="A wrong row gets a fault instead of ending the command."
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the numbers of the summary as JSON.",
)
@click.option(
    "--replay",
    "replayed",
    type=click.Choice(["tools", "answers"]),
    help="Of a run's episodes: judge them in their environments, with their calls run again, or "
    "with the answers that tools gave then.",
)
@click.option("--id-key", default="id", show_default=True, help="Key of the id.")
@click.option("--response-key", default="response", show_default=True, help="Key of the response.")
@click.option(
    "--reference-key", default="reference", show_default=True, help="Key of the reference."
)
@click.option("--tests-key", default="tests", show_default=True, help="Key of a program's tests.")
@click.option("--anchor-key", default="anchor", show_default=True, help="Key of a text to beat.")
@click.option("--prompt-key", default="prompt", show_default=True, help="Key of the prompt.")
@click.option(
    "--group-key",
    default="group_id",
    show_default=True,
    help="Key that the responses to one prompt share, for pass@k; without it, the prompt.",
)
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
    params: tuple[str, ...],
    pair: tuple[str, str] | None,
    keep_all: bool,
    show: int,
    accept_above: float | None,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    timeout: float,
    fail_on_fault: bool,
    keep_going: bool,
    json_file: Path | None,
    replayed: str | None,
    group_key: str,
    **names: str,
) -> int:
    """Score the responses of IN ("-": stdin) and write the rows with rewards to OUT.

    Both are JSON Lines, packed where the name ends in .gz or .zst, or a table where it ends in
    .parquet; for the last two pyarrow must be installed. IN may be a data set of the hub:
    hf://datasets/NAME[@REVISION][?subset=NAME&split=NAME], by the package datasets.
    A row is {id, response, reference, prompt?, verifier?, task?, params?, labels?}, with {turns} in
    place of the response for a dialogue, and {tool_calls} beside it where an API returned some;
    other keys pass through. IN may be a run, its folder rollouts/, or a file of it: every recorded
    response, of an episode its last answer, is judged again, by --verifier or by who judged it, and
    stands beside what was recorded; --replay judges episodes in their environments.
    The reference is a text, a list of texts (each of them right), or data (an object, or any other
    list); {tests} or {anchor} may stand in its place. Each row comes out in order with reward,
    verdict, answer, components, explanation, suspicions, appeal and fault; keys of the input with
    one of these names are kept as input_KEY. Every row is checked before anything is scored; with
    --keep-going a wrong one gets a fault, such as MALFORMED_ROW, and the others are scored. OUT
    appears when it is whole; an interrupted run goes on where it stopped when it is started again
    with the same input and options. Without --target the server installed here is started.

    The table at the end counts by task (or verifier, of rows without one): rows, judged, faults,
    mean reward and share of the best verdict. Where several rows answer one prompt it has pass@k
    (arXiv 2107.03374, equation 1) and maj@k, by the answers found. A fault is no wrong answer: it
    is counted, and is in no average.

    With --compare the output holds the rows on which A and B disagree, with judgement_a,
    judgement_b and agree; a fault of either is no disagreement.
    """
    if replayed is not None:
        return _replay(
            in_file, output, verifier, read_server(target, token_file, tls_ca),
            tools=replayed == "tools", fail_on_fault=fail_on_fault,
        )  # fmt: skip
    if timeout <= 0:
        raise ConfigError(f"--timeout {timeout:g} is not positive; pass seconds")
    asked = _Asked(params, pair, accept_above, keep_all, show, group_key)
    _check_asked(asked, verifier, task)
    server = read_server(target, token_file, tls_ca)
    judges = [split_spec(spec)[0] for spec in pair] if pair else [verifier]
    names_of_judges, arguments = functions_among(judges, target)
    if pair is None:
        verifier = names_of_judges[0]
    keys = Keys(**{name.removesuffix("_key"): key for name, key in names.items()})
    console = make_console(stderr=True)
    tracing.set_up("assay score")
    with ExitStack() as stack:
        path, shown_as = stack.enter_context(
            spooled_rollouts(
                in_file, judged_by_name=not (verifier or task or pair), note=console.print
            )
            if in_file != "-" and are_recorded(in_file)
            else rows_in(in_file)
        )
        source = RowSource(
            path,
            shown_as,
            keys,
            Defaults(verifier, task),
            keep_going=keep_going,
        )
        if pair is not None:
            source = _for_comparison(source, names_of_judges[0])
        _check_output(in_file, output)
        _check_json(json_file, in_file, output)
        ahead = ServerAhead(server, stack, arguments)
        found = survey(source)
        source = dataclasses.replace(source, repeats=found.repeats)
        reached = ahead.reach(sandbox=found.asks_sandbox)
        work, source = _plan(asked, source, found, reached, started_here=not target)
        carry_out(
            work,
            source,
            found,
            reached.server,
            timeout_s=timeout,
            output=output,
            console=console,
            numbers_to=json_file,
        )
    console.print(work.tally.report())
    return int(fail_on_fault and bool(work.tally.faulted))


def _replay(
    in_file: str, output: str, verifier: str, server: ServerAccess, *, tools: bool,
    fail_on_fault: bool,
) -> int:  # fmt: skip
    """Judges recorded episodes in their environments; see `assay.cli.scoring.replaying`."""
    # pydantic takes a tenth of a second
    from assay.cli.scoring.replaying import ReplayTally, replay_all  # noqa: PLC0415
    from assay.environments.services import RewardServices  # noqa: PLC0415

    console = make_console(stderr=True)
    if in_file == "-" or not are_recorded(in_file):
        raise ConfigError(f"--replay needs a run with rollouts, and {in_file} is none")
    _check_output(in_file, output)
    tally = ReplayTally()
    services = RewardServices(server.target, verifier=verifier, token=server.token, tls=server.tls)
    pack = pack_of(Path(output)) if output != "-" else None
    with ExitStack() as stack:
        stack.enter_context(services)
        lines: BinaryIO = (
            sys.stdout.buffer
            if output == "-"
            else stack.enter_context(Path(f"{output}.partial").open("w+b"))
        )

        def take(line: dict[str, Any]) -> None:
            tally.add(line)
            lines.write(dump(line))

        rollouts = episodes_in(Path(in_file), console.print)
        asyncio.run(replay_all(rollouts, services, tools=tools, take=take))
        lines.flush()
        if pack is not None:
            pack(lines, Path(output))
    if output != "-":
        partial = Path(f"{output}.partial")
        partial.unlink() if pack is not None else partial.replace(output)
    console.print(tally.report(), soft_wrap=True)
    return int(fail_on_fault and bool(tally.faulted))


def _check_asked(asked: _Asked, verifier: str, task: str) -> None:
    """Raises ConfigError for options that contradict one another."""
    if asked.compare is None:
        if asked.keep_all or asked.accept_above is not None:
            raise ConfigError("--all and --accept-above belong to --compare; leave them out")
        if asked.params and not verifier and not task:
            raise ConfigError("--params are those of --verifier or --task; pass one of them")
    elif verifier or task:
        raise ConfigError("--compare names who judges; leave --verifier and --task out")
    elif asked.params:
        raise ConfigError("--compare takes parameters behind a name: A:param=value,param=value")


def _check_output(in_file: str, output: str) -> None:
    """Raises ConfigError for an output that the caller cannot mean, or that nothing can pack."""
    pack_of(Path(output))
    if output != "-" and in_file != "-" and Path(output).resolve() == Path(in_file).resolve():
        raise ConfigError(f"the output {output} would replace the input; name another file")


def _check_json(file: Path | None, in_file: str, output: str) -> None:
    """Raises ConfigError for a file that cannot take the numbers."""
    if file is None:
        return
    if file.resolve() in {Path(name).resolve() for name in (in_file, output) if name != "-"}:
        raise ConfigError(f"--json {file} would replace the rows; name another file")
    if not file.parent.is_dir():
        raise ConfigError(f"the folder of --json {file} is not there; make it, or correct the path")


def _for_comparison(source: RowSource, first: str) -> RowSource:
    """The same rows without their own verifiers and tasks: the two judge all of them."""
    return dataclasses.replace(
        source,
        keys=dataclasses.replace(source.keys, verifier="", task=""),
        defaults=Defaults(verifier=first),
        output_keys=compare.OUTPUT_KEYS,
    )


def _plan(
    asked: _Asked, source: RowSource, found: RowSurvey, reached: Reached, *, started_here: bool
) -> tuple[RowWork, RowSource]:
    """The work, and the source with all that it needs to make items."""
    info, kept = reached.info, sorted(found.kept)
    if asked.compare is not None:
        a, b = (compare.read_contender(info, spec, asked.accept_above) for spec in asked.compare)
        for one in (a, b):
            rows = found.for_verifier(one.info.name)
            check_routes(source, rows, info, started_here=started_here)
        compared = compare.ComparisonTally(
            (a.label, b.label), asked.show, kept, source.keys.reference
        )
        return compare.Comparing(a, b, compared, keep_all=asked.keep_all), source
    used = check_routes(source, found, info, started_here=started_here)
    if asked.params:
        chosen = source.defaults.verifier
        judge = find_verifier(info, chosen) if chosen else info.find("", source.defaults.task)
        if judge is None:
            raise ConfigError(f"no verifier judges the task {source.defaults.task!r}")
        defaults = dataclasses.replace(source.defaults, params=read_parameters(judge, asked.params))
        source = dataclasses.replace(source, defaults=defaults)
    reads = LineKeys(source.keys, source.defaults, asked.group_key)
    return Scoring(source.defaults, used, ScoreTally(Breakdown(reads, info), kept)), source
