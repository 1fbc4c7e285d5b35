"""Holds every gold answer of the benchmark files in ../shared/data against its own verifier.

python scripts/validate_data.py                        all files, with a progress bar
python scripts/validate_data.py gsm8k_test math500     these files
python scripts/validate_data.py --rows 100             the first rows of each

A gold answer is given as the response and must be right; a reference that spells no response (a
list of instructions, a puzzle) must be usable. Prints a table and what fails: ids and reasons, and
no text beyond 60 characters. Exits with 1 when a file stays below its bound. A file that is not
there is passed over, and said so. `assay validate` does the same for a file of your own.
"""

from __future__ import annotations

import gzip
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.cli.commands.options import ServerAccess
from assay.cli.commands.pipeline import Reached, progress_bar, reach
from assay.cli.commands.validate import hold
from assay.cli.validation import Gold, Validation, default_form, gold_response
from assay.clients.types import Data, Item, Parameter, Reference
from assay.kit.console import make_console

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
TIMEOUT_S = 600.0
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the rows of a file are checked.

    Attributes:
        verifier: who judges.
        reference: what a row's response is held against; None: a fault, MISSING_REFERENCE.
        response: a row's right response. None: what the reference spells.
        parameters: the verifier's parameters for a row.
        bound: the least share of rows that must be right.
    """

    verifier: str
    reference: Callable[[Row], Reference | None]
    response: Callable[[Row], str] | None = None
    parameters: Callable[[Row], Mapping[str, Parameter]] = lambda _: {}
    bound: float = 1.0

    def gold(self, row: Row) -> Gold:
        """A row's gold answer."""
        reference = self.reference(row)
        spelt = self.response is not None or not isinstance(reference, Data)
        said = (
            gold_response(reference, default_form(self.verifier))
            if self.response is None
            else self.response(row)
        )
        item = Item(
            said,
            reference=reference,
            verifier=self.verifier,
            parameters=self.parameters(row),
        )
        return Gold(str(row["id"]), item, spelt)


def answer(row: Row) -> Reference | None:
    """The column `answer`: numbers as their text, several answers as texts."""
    value = row.get("answer")
    if value is None:
        return None
    return [_text(part) for part in value] if isinstance(value, list) else _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def instructions(row: Row) -> Reference:
    """The list of instructions of a prompt."""
    return Data({name: row[name] for name in ("instruction_id_list", "kwargs")})


def numbers(row: Row) -> Reference:
    """The numbers of a puzzle."""
    return Data([int(number) for number in row["numbers"].split()])


def select(row: Row) -> Mapping[str, Parameter]:
    """For questions with several right options: all of them must be named."""
    return {"select": "all"} if sum(map(str.isalpha, row["answer"])) > 1 else {}


MATH = (
    "gsm8k_train",
    "gsm8k_test",
    "gsm_hard",
    "svamp",
    "mawps",
    "cmath_zh",
    "math500",
    "math_test",
    "math_train7500",
    "dapo_math_17k",
    "aime2024",
    "aime2025",
    "aime_1983_2023",
    "aimo_validation_aime",
    "amc_83",
    "comp_math_24_25",
    "omni_math_num500",
    "olymmath",
    "imo_answerbench_v2",
    "odyssey_math",
    "olympiadbench_oe_to_maths_en",
    "college_math",
    "theoremqa",
    "scibench",
    "tinyv_bigmath_5k",
)
PLANS: dict[str, list[Plan]] = {name: [Plan("math", answer)] for name in MATH}
PLANS |= {
    name: [*PLANS[name], Plan("math", answer, lambda row: str(row["solution"]))]
    for name in ("gsm8k_train", "gsm8k_test")
}
PLANS |= {
    # Two of its answers are empty.
    "math_train7500": [Plan("math", answer, bound=0.999)],
    # 0.5 % of its answers have a brace too many or too few, or are blank.
    "tinyv_bigmath_5k": [Plan("math", answer, bound=0.99)],
    "multiple_choice_math_stem": [Plan("choice", answer, parameters=select)],
    "tal_scq5k_test": [Plan("choice", answer)],
    "ifeval": [Plan("ifeval", instructions)],
    "ifbench_test_with_results": [Plan("ifeval", instructions)],
    "game24_puzzles": [Plan("game24", numbers)],
}


def read(path: Path, rows: int | None) -> Iterator[Row]:
    """The first rows of a file, or all."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, itertools.islice(file, rows))


def check(
    path: Path, plan: Plan, reached: Reached, rows: int | None, console: Console
) -> Validation | None:
    """Checks one file; None when the server does not have the verifier."""
    info = reached.info.find(plan.verifier)
    if info is None:
        return None
    golds = [plan.gold(row) for row in read(path, rows)]
    tally = Validation()
    name = path.name.removesuffix(".jsonl.gz")
    with progress_bar(console, len(golds), name) as show:
        hold(golds, reached.server, info, tally, show, timeout_s=TIMEOUT_S)
    return tally


def print_failures(console: Console, name: str, tally: Validation, show: int) -> None:
    """The first failures of a file."""
    for failure in tally.failures[:show]:
        console.print(Text(f"{name}  {failure.id}  {failure.why}"), soft_wrap=True)
    more = tally.done - tally.right - show
    if more > 0:
        console.print(f"{name}  and {more} more", highlight=False)


def new_table() -> Table:
    """The table's head."""
    table = Table()
    table.add_column("file")
    table.add_column("verifier")
    for name in ("rows", "right", "usable", "not right", "faults", "share", "bound"):
        table.add_column(name, justify="right")
    return table


def add_line(table: Table, name: str, plan: Plan, tally: Validation) -> None:
    """One file's line."""
    faults = ", ".join(f"{reason} {count}" for reason, count in tally.faults.most_common())
    below = tally.rate < plan.bound
    table.add_row(
        f"{name}, own solutions" if plan.response is not None else name,
        plan.verifier,
        str(tally.done),
        str(tally.correct),
        str(tally.usable),
        str(tally.wrong),
        faults or "0",
        f"{100 * tally.rate:.2f} %",
        f"{100 * plan.bound:.2f} %" + (" BELOW" if below else ""),
    )


@click.command()
@click.argument("names", nargs=-1, metavar="[FILE]...")
@click.option("--target", default="", help="HOST:PORT of a reward server; else one is started.")
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="Folder of the files.")
@click.option("--rows", type=click.IntRange(min=1), help="At most so many rows of each file.")
@click.option("--show", default=10, show_default=True, help="Failures listed of each file.")
def main(names: tuple[str, ...], target: str, data: Path, rows: int | None, show: int) -> None:
    """Hold every gold answer of the benchmark files against its own verifier."""
    console = make_console()
    unknown = sorted(set(names) - set(PLANS))
    if unknown:
        raise click.UsageError(f"no plan for {unknown[0]!r}; there are: {', '.join(PLANS)}")
    table, below = new_table(), False
    with ExitStack() as stack:
        reached = reach(ServerAccess(target, None, None), stack)
        for name in names or PLANS:
            path = data / f"{name}.jsonl.gz"
            if not path.is_file():
                console.print(f"{name}: passed over, {path} is not there", highlight=False)
                continue
            for plan in PLANS[name]:
                tally = check(path, plan, reached, rows, console)
                if tally is None:
                    console.print(f"{name}: passed over, {plan.verifier!r} is not served")
                    continue
                print_failures(console, name, tally, show)
                add_line(table, name, plan, tally)
                below = below or tally.rate < plan.bound
    console.print(table)
    sys.exit(int(below))


if __name__ == "__main__":
    main()
