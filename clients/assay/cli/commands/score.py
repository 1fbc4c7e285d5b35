"""`assay score`: a JSON Lines file in, the same rows with rewards out."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from assay.cli.commands import compare
from assay.cli.commands.options import read_server, server_options
from assay.cli.commands.pipeline import Reached, reach, spooled_stdin
from assay.cli.commands.work import RowWork, carry_out
from assay.cli.parameters import find_verifier, read_parameters, split_function, split_spec
from assay.cli.rows import Row, RowSource, RowSurvey, check_routes, output_row, survey
from assay.clients.rows.items import Defaults, Keys
from assay.clients.types import Item, Result
from assay.kit import tracing
from assay.kit.errors import ConfigError

_MESSAGE_CHARS = 300


@dataclass(slots=True)
class ScoreTally:
    """Counts over the rows so far.

    Attributes:
        rewards_sum: over judged rows.
        firsts: the first row with each reason, and its fault's message.
        suspected: how many rows show a suspicion.
    """

    rewards_sum: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, str] = field(default_factory=dict)
    suspicions: Counter[str] = field(default_factory=Counter)
    suspected: int = 0

    def add(self, line: dict[str, Any]) -> None:
        """Counts one row of output."""
        if line["fault"] is not None:
            reason, message = line["fault"]["reason"], line["fault"]["message"]
            self.faults[reason] += 1
            self.firsts.setdefault(reason, f"row {self.done}: {message[:_MESSAGE_CHARS]}")
            return
        self.verdicts[line["verdict"]] += 1
        self.rewards_sum += line["reward"]
        if line["suspicions"]:
            self.suspicions.update(line["suspicions"])
            self.suspected += 1

    @property
    def done(self) -> int:
        """Rows counted."""
        return self.verdicts.total() + self.faults.total()

    @property
    def faulted(self) -> int:
        """Rows with a fault."""
        return self.faults.total()

    def report(self) -> Group:
        """The summary."""
        table = Table(show_header=False)
        judged = self.verdicts.total()
        table.add_row("rows", str(self.done))
        table.add_row(
            "mean reward", f"{self.rewards_sum / judged:.4f}" if judged else "nothing was judged"
        )
        for verdict, count in self.verdicts.most_common():
            table.add_row(f"verdict {verdict}", self._share(count))
        table.add_row("faults", str(self.faulted))
        for reason, count in self.faults.most_common():
            table.add_row(f"fault {reason}", self._share(count))
        if self.suspected:
            table.add_row("rows with a suspicion", self._share(self.suspected))
        for sign, count in self.suspicions.most_common():
            table.add_row(Text(f"suspicion {sign}"), self._share(count))
        why = [Text(f"{reason}, first in {row}") for reason, row in self.firsts.items()]
        return Group(table, *why)

    def _share(self, count: int) -> str:
        return f"{count} ({100 * count / self.done:.1f} %)"


class Scoring:
    """The work of `assay score`: every row is judged once.

    `used` holds name and version of each verifier that judges.
    """

    def __init__(self, defaults: Defaults, used: list[str]) -> None:
        self._defaults = defaults
        self._used = used
        self.selects = False
        self.tally = ScoreTally()

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


@click.command()
@click.argument("in_file", metavar="IN.jsonl[.gz]")
@click.option(
    "-o", "--output", required=True, metavar="OUT.jsonl", help="Where the rows go; - for stdout."
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
    "or profile, with parameters as NAME:param=value,param=value.",
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
@click.option("--id-key", default="id", show_default=True, help="Key of the id.")
@click.option("--response-key", default="response", show_default=True, help="Key of the response.")
@click.option(
    "--reference-key", default="reference", show_default=True, help="Key of the reference."
)
@click.option("--tests-key", default="tests", show_default=True, help="Key of a program's tests.")
@click.option("--anchor-key", default="anchor", show_default=True, help="Key of a text to beat.")
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
    **names: str,
) -> int:
    """Score the responses of IN.jsonl ("-": stdin) and write the rows with rewards to OUT.jsonl.

    A row is {id, response, reference, prompt?, verifier?, task?, params?}; other keys pass through.
    The reference is a text, a list of texts (each of them right), or data (an object, or any other
    list); {tests} or {anchor} may stand in its place. Each row comes out in order with reward,
    verdict, answer, components, explanation, suspicions and fault; keys of the input with one of
    these names are kept as input_KEY. Every row is checked before anything is scored. OUT.jsonl
    appears when it is whole; an interrupted run goes on where it stopped when it is started again
    with the same input and options. Without --target the server installed here is started.

    With --compare the output holds the rows on which A and B disagree, with judgement_a,
    judgement_b and agree; a fault of either is no disagreement.
    """
    if timeout <= 0:
        raise ConfigError(f"--timeout {timeout:g} is not positive; pass seconds")
    asked = _Asked(params, pair, accept_above, keep_all, show)
    _check_asked(asked, verifier, task)
    server = read_server(target, token_file, tls_ca)
    verifier, arguments = split_function(verifier)
    if arguments and target:
        raise ConfigError(
            f"{arguments[1]} is a file of this machine; leave --target out, or start that server "
            "with --verifier and name the function here"
        )
    keys = Keys(**{name.removesuffix("_key"): key for name, key in names.items()})
    console = Console(stderr=True)
    tracing.set_up("assay score")
    with ExitStack() as stack:
        path = Path(in_file) if in_file != "-" else stack.enter_context(spooled_stdin())
        source = RowSource(
            path, in_file if in_file != "-" else "stdin", keys, Defaults(verifier, task)
        )
        if pair is not None:
            source = _for_comparison(source, pair[0])
        _check_output(in_file, output)
        found = survey(source)
        reached = reach(server, stack, sandbox=found.tested, arguments=arguments)
        work, source = _plan(asked, source, found, reached)
        if found.clashes:
            kept = ", ".join(f"input_{key}" for key in sorted(found.clashes))
            console.print(f"the input's own keys are kept as {kept}", highlight=False)
        carry_out(
            work,
            source,
            found,
            reached.server,
            timeout_s=timeout,
            output=output,
            console=console,
        )
    console.print(work.tally.report())
    return int(fail_on_fault and bool(work.tally.faulted))


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
    """Raises ConfigError for an output that the caller cannot mean."""
    if output.endswith(".gz"):
        raise ConfigError(f"the output {output} would not be gzip; leave .gz out")
    if output != "-" and in_file != "-" and Path(output).resolve() == Path(in_file).resolve():
        raise ConfigError(f"the output {output} would replace the input; name another file")


def _for_comparison(source: RowSource, first: str) -> RowSource:
    """The same rows without their own verifiers and tasks: the two judge all of them."""
    return dataclasses.replace(
        source,
        keys=dataclasses.replace(source.keys, verifier="", task=""),
        defaults=Defaults(verifier=split_spec(first)[0]),
        output_keys=compare.OUTPUT_KEYS,
    )


def _plan(
    asked: _Asked, source: RowSource, found: RowSurvey, reached: Reached
) -> tuple[RowWork, RowSource]:
    """The work, and the source with all that it needs to make items."""
    info = reached.info
    if asked.compare is not None:
        a, b = (compare.read_contender(info, spec, asked.accept_above) for spec in asked.compare)
        for one in (a, b):
            check_routes(source, found.for_verifier(one.info.name), info)
        return compare.Comparing(a, b, keep_all=asked.keep_all, show=asked.show), source
    used = check_routes(source, found, info)
    if asked.params:
        chosen = source.defaults.verifier
        judge = find_verifier(info, chosen) if chosen else info.find("", source.defaults.task)
        if judge is None:
            raise ConfigError(f"no verifier judges the task {source.defaults.task!r}")
        defaults = dataclasses.replace(source.defaults, params=read_parameters(judge, asked.params))
        source = dataclasses.replace(source, defaults=defaults)
    return Scoring(source.defaults, used), source
