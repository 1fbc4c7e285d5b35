"""`assay journal rejudge`: the items of a journal, judged again by another verifier.

It is `assay score` on an export, with the journal's own outcome beside the new one: an entry that
has no judgement on either side is counted with its reason, and is in no agreement and no mean.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.cli.commands.compare import Contender, read_contender
from assay.cli.commands.options import ServerAccess
from assay.cli.commands.pipeline import reach
from assay.cli.commands.work import carry_out
from assay.cli.parameters import split_function, split_spec
from assay.cli.scoring.files import pack_of
from assay.cli.scoring.rows import (
    Row,
    RowSource,
    check_routes,
    dump,
    input_value,
    output_row,
    survey,
)
from assay.clients.rows.items import Defaults, Keys
from assay.clients.types import Item, Result
from assay.kit import tracing
from assay.kit.console import make_console
from assay.kit.errors import ConfigError
from assay.viewer.journals.comparison import VerifierComparison
from assay.viewer.journals.reader import Filter, Reader, appeal_of
from assay.viewer.journals.rows import printable, row_of

RECORDED = "recorded"
_SHOWN_CHARS = 60
_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class RejudgeOptions:
    """What the command line asks for.

    Attributes:
        verifier: NAME, NAME:param=value,... or FILE.py:FUNCTION.
        output: where the rows go; "-" for stdout, None for nowhere.
        numbers_to: a file for the numbers, as JSON.
        show: how many of the entries whose reward changed are printed.
    """

    verifier: str
    server: ServerAccess
    timeout_s: float
    output: str | None = None
    numbers_to: Path | None = None
    show: int = 5


def rejudge(path: Path, asked: RejudgeOptions, chosen: Filter) -> None:
    """Judges the entries of a journal, or the rows of an export, and prints how far they agree.

    Args:
        path: a journal's file, or JSON Lines as `export` or `assay score` writes.
        asked: by whom, and where to.
        chosen: which entries of a journal.

    Raises:
        ConfigError: a file cannot be read or written, there is no entry, or no such verifier is
            served.
        CallError: the server does not answer.
    """
    name, arguments = split_function(asked.verifier)
    if arguments and asked.server.target:
        raise ConfigError(
            f"{arguments[1]} is a file of this machine; leave --target out, or start that server "
            "with --verifier and name the function here"
        )
    _check_files(path, asked)
    tracing.set_up("assay journal rejudge")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-rejudge-")))
        rows = path
        if _is_journal(path):
            rows = folder / "entries.jsonl"
            _export(path, chosen, rows)
        elif chosen != Filter():
            raise ConfigError(f"{path} is no journal: what entries to take is said of a journal")
        keys = dataclasses.replace(Keys(), verifier="", task="")
        bare_name = name if arguments else split_spec(name)[0]
        source = RowSource(rows, path.name, keys, Defaults(bare_name), keep_going=True)
        found = survey(source)
        source = dataclasses.replace(source, repeats=found.repeats)
        reached = reach(asked.server, stack, sandbox=found.tested, arguments=arguments)
        contender = read_contender(reached.info, name, None)
        if contender.info.needs_group:
            raise ConfigError(
                f"{contender.info.name!r} compares the samples of a group, and a journal keeps "
                "entries by themselves; name a verifier that judges one response"
            )
        check_routes(source, found.for_verifier(contender.info.name), reached.info)
        work = Rejudging(contender, RejudgeTally(contender.info.name, asked.show))
        console = make_console(stderr=asked.output == "-")
        carry_out(
            work,
            source,
            found,
            reached.server,
            timeout_s=asked.timeout_s,
            output=asked.output or str(folder / "out.jsonl"),
            console=console,
            numbers_to=asked.numbers_to,
        )
    console.print(work.tally.report())


def _check_files(path: Path, asked: RejudgeOptions) -> None:
    output = asked.output
    if output is not None and output != "-":
        pack_of(Path(output))
        if Path(output).resolve() == path.resolve():
            raise ConfigError(f"the output {output} would replace the input; name another file")
    if asked.numbers_to is not None and not asked.numbers_to.parent.is_dir():
        raise ConfigError(f"the folder of --json {asked.numbers_to} is not there; make it")


def _export(path: Path, chosen: Filter, rows: Path) -> None:
    with Reader(path) as reader, rows.open("wb") as file:
        for record in reader.each(chosen):
            file.write(dump(row_of(record)))
    if not rows.stat().st_size:
        raise ConfigError(f"{path} has no such entry")


def _is_journal(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


@dataclass(slots=True)
class RejudgeTally:
    """Counts lines: what was recorded against what is said now.

    Attributes:
        name: of the verifier that judges now.
        show: how many of the entries whose reward changed are kept as examples.
        done: lines counted.
    """

    name: str
    show: int = 5
    done: int = 0
    found: VerifierComparison = field(init=False)

    def __post_init__(self) -> None:
        self.found = VerifierComparison(RECORDED, self.name, self.show)

    def add(self, line: dict[str, Any]) -> None:
        """Counts one line of output."""
        self.done += 1
        keys = ("verdict", "reward", "fault", "explanation", "appeal")
        recorded = {key: input_value(line, key) for key in keys}
        self.found.add([(_outcome(line, recorded), _outcome(line, line))])

    @property
    def faulted(self) -> int:
        """Entries without a judgement now."""
        return self.found.faults[1].total()

    def numbers(self) -> dict[str, Any]:
        """What the summary says, as plain data."""
        found = self.found
        judged = found.judged
        return {
            "rows": self.done,
            "verifier": self.name,
            "judged_by_both": judged,
            "same_reward": found.same_reward,
            "mean_reward": {
                side: total / judged if judged else None
                for side, total in zip(("recorded", "now"), found.rewards, strict=True)
            },
            "verdicts": [
                {"recorded": first, "now": second, "rows": count}
                for (first, second), count in found.verdicts.most_common()
            ],
            "faults": {
                side: dict(counts.most_common())
                for side, counts in zip(("recorded", "now"), found.faults, strict=True)
            },
            "without_both": found.faulted,
        }

    def report(self) -> RenderableType:
        """Verdicts against verdicts, rewards, faults of each side, and some that changed."""
        found = self.found
        judged = found.judged
        agreement = Table(title=f"{judged} entries that both judged")
        agreement.add_column(RECORDED)
        agreement.add_column(self.name)
        agreement.add_column("entries", justify="right")
        for (first, second), count in found.verdicts.most_common():
            agreement.add_row(_shown(first), _shown(second), str(count))
        summary = Table(show_header=False)
        summary.add_row("entries", str(self.done))
        if judged:
            share = 100 * found.same_reward / judged
            summary.add_row("same reward", f"{found.same_reward} of {judged} ({share:.2f} %)")
            for side, total in zip((RECORDED, self.name), found.rewards, strict=True):
                summary.add_row(_shown(f"mean reward, {side}"), f"{total / judged:.4f}")
        summary.add_row("without a judgement of both", str(found.faulted))
        for side, faults in zip((RECORDED, self.name), found.faults, strict=True):
            for reason, count in faults.most_common():
                summary.add_row(_shown(f"fault {reason}, {side}"), str(count))
        return Group(agreement, summary, *self._examples())

    def _examples(self) -> list[Table]:
        if not self.found.examples:
            return []
        title = f"first {len(self.found.examples)} of {self.found.differ} whose reward changed"
        table = Table(title=title)
        for name in ("id", RECORDED, self.name, "why now"):
            table.add_column(_shown(name), overflow="fold")
        for first, second in self.found.examples:
            sides = [f"{one['verdict']} {one['reward']:g}{_first(one)}" for one in (first, second)]
            why = " ".join(str(second["explanation"] or "").split())[: 2 * _SHOWN_CHARS]
            table.add_row(*(_shown(cell) for cell in (str(first["id"]), *sides, why)))
        return [table]


def _first(said: dict[str, Any]) -> str:
    """What an appeal overruled or upheld."""
    appeal = said.get("appeal")
    return f" (first {appeal['first']['verdict']})" if appeal else ""


def _shown(text: str) -> Text:
    return Text(printable(text))


def _outcome(line: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """One side of a line, as a comparison takes it; with neither reward nor fault, a fault."""
    fault = said["fault"]
    reason = fault.get("reason") if isinstance(fault, dict) else fault
    if reason is None and not isinstance(said["reward"], int | float):
        reason = "(no outcome)"
    return {
        "id": line.get("id"),
        "fault": reason,
        "verdict": str(said["verdict"]),
        "reward": said["reward"],
        "explanation": said["explanation"],
        "appeal": appeal_of(said.get("appeal")),
    }


class Rejudging:
    """The work of `assay journal rejudge`: each row is judged once, by the one verifier."""

    selects = False

    def __init__(self, contender: Contender, tally: RejudgeTally) -> None:
        self._contender = contender
        self.tally = tally

    def items(self, row: Row) -> Sequence[Item]:
        """The row's item for the verifier."""
        return (self._contender.item(row.item),)

    def line(self, row: Row, results: Sequence[Result]) -> dict[str, Any]:
        """The row's keys, the recorded outcome among them as `input_KEY`, and the new outcome."""
        return output_row(row, results[0])

    def select(self, line: dict[str, Any]) -> bool:
        """True: the finished file has every line."""
        del line
        return True

    def identity(self) -> dict[str, Any]:
        """The verifier with its version and parameters, for resuming."""
        one = self._contender
        parameters = sorted(map(str, one.parameters.items()))
        return {"rejudge": [one.info.name, one.info.version, parameters]}
