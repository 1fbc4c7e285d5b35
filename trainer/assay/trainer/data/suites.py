"""Suites: named sets of items with a prompt and a verifier each, as data.

A suite is a table of `suites.toml`, of a TOML file of one's own, or an entry point of the group
`assay.suites` that names a TOML file beside it. Its rows lie in a file or on the hub; what a row
gives besides prompt and reference follows from the keys of the table, the same for every suite:

    record        several columns are the reference, as one JSON object
    options       columns of a choice, the right one first; shuffled by seed and item
    tests         a column of test code: with `entry_point` its function `check`
    oracle        a column with a right program: tests compare with it on the `inputs`
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from assay.kit import toml_config
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.trainer.data.problems import Problem, problem_of
from assay.trainer.data.sources import Row, RowTable, file_table, hub_table
from assay.trainer.settings.kinds import NonNegative, PositiveFloat, Scalar, Strict, Text
from assay.trainer.settings.sections import ColumnsConfig, DataConfig, EvalConfig

GROUP = "assay.suites"
FOLDER = "ASSAY_DATA"
"""The variable of the environment that names the folder with suites' files."""
_REFERENCE, _TESTS = "suite's reference", "suite's tests"  # columns that are made here


@dataclass(frozen=True, slots=True)
class SuiteRows(Strict):
    """Where a suite's rows are, and what their columns mean; see the module."""

    path: str = ""
    """A .jsonl or .jsonl.gz file: absolute, or in the folder of suites or of the TOML file."""
    name: str = ""
    """A data set of the hub, with subset, split and revision."""
    subset: str = ""
    split: str = ""
    revision: str = ""
    gated: bool = False
    id: str = ""
    """Column of the item's name; empty: its number."""
    prompt: Text = "prompt"
    reference: str = ""
    reference_pattern: str = ""
    record: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    tests: str = ""
    entry_point: str = ""
    oracle: str = ""
    inputs: tuple[str, ...] = ()
    tolerance: str = ""
    """oracle: column of the absolute tolerance; empty or 0 for equality."""
    unordered: tuple[str, ...] = ()
    """oracle: functions whose answers are compared as sets."""
    presence: tuple[str, ...] = ()
    """oracle: functions of whose answers only whether they are None is compared."""
    wall_time_s: PositiveFloat = 10.0
    """Of a program with all of its tests."""


@dataclass(frozen=True, slots=True)
class SuiteTable(Strict):
    """A suite as a TOML file has it."""

    verifier: Text
    says: str = ""
    items: NonNegative = 0
    """How many there are, where that is known; another number is an error."""
    parameters: dict[str, Scalar] = field(default_factory=dict)
    template: str = "{question}"
    template_source: str = ""
    system: str = ""
    seed: NonNegative = 0
    """Of the order of `options`."""
    file: SuiteRows | None = None
    hub: SuiteRows | None = None


@dataclass(frozen=True, slots=True)
class NamedSuite:
    """A suite by its name; `folder` is that of its TOML file, empty for ours."""

    name: str
    table: SuiteTable
    folder: str = ""


@dataclass(frozen=True, slots=True)
class SuiteItems:
    """A suite's problems, to be answered `samples` times each.

    Attributes:
        origin: what they are, as the outcome records it: source, digest, verifier, template.
    """

    suite: NamedSuite
    problems: tuple[Problem, ...]
    samples: int
    origin: Mapping[str, Any]


@cache
def known() -> Mapping[str, NamedSuite]:
    """The suites that are installed, by name.

    Raises:
        ConfigError: a table of an installed package is wrong, or two have one name.
    """
    found = dict(read_suites(Path(str(files("assay.trainer.data") / "suites.toml")), ""))
    for point in entry_points(group=GROUP):
        package, _, name = point.value.partition(":")
        path = Path(str(files(package) / f"{name or point.name}.toml"))
        for suite in read_suites(path, str(path.parent)).values():
            if suite.name in found:
                raise ConfigError(f"the suite {suite.name!r} is declared twice, also by {path}")
            found[suite.name] = suite
    return found


def read_suites(path: Path, folder: str = "") -> dict[str, NamedSuite]:
    """The suites of a TOML file, whose rows may lie in `folder`.

    Raises:
        ConfigError: the file cannot be read, or a table is wrong.
    """
    tree = toml_config.read(path)
    return {
        name: NamedSuite(
            name, toml_config.build(SuiteTable, table, origin=f"{path}, suite {name}"), folder
        )
        for name, table in tree.items()
        if isinstance(table, Mapping) or _refused(path, name)
    }


def _refused(path: Path, name: str) -> bool:
    raise ConfigError(f"{path}: {name} is no table; a suite is one, as [{name}]")


def find(spec: str, samples: int) -> list[tuple[NamedSuite, int]]:
    """The suites of NAME, FILE.toml or FILE.toml:NAME, each with K of @K, by default `samples`.

    Raises:
        ConfigError: there is none of that name, or K is no number above 0.
    """
    name, at, count = spec.partition("@")
    if at and not (count.isdecimal() and int(count)):
        raise ConfigError(f"suite {spec!r}: write a number of samples behind @, as in aime24@32")
    file, _, inner = name.partition(":")
    k = int(count) if at else samples
    own = read_suites(Path(file), str(Path(file).parent)) if file.endswith(".toml") else None
    if own is not None and not inner:
        return [(suite, k) for suite in own.values()]
    there, wanted = (known(), name) if own is None else (own, inner)
    if wanted not in there:
        raise ConfigError(
            f"there is no suite {wanted!r}{did_you_mean(wanted, list(there))}; known here: "
            f"{', '.join(sorted(there))}; a file of your own is named FILE.toml"
        )
    return [(there[wanted], k)]


def load_suites(config: EvalConfig) -> list[SuiteItems]:
    """Reads the configured suites.

    Raises:
        ConfigError: a suite is not known, named twice, or its rows cannot be read.
    """
    wanted = [found for spec in config.suites for found in find(spec, config.samples)]
    names = [suite.name for suite, _ in wanted]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"eval.suites names {twice!r} twice; name it once")
    folder = config.suite_data or os.environ.get(FOLDER, "")
    return [load_suite(suite, k, folder, config.suite_items) for suite, k in wanted]


def load_suite(suite: NamedSuite, samples: int, folder: str = "", most: int = 0) -> SuiteItems:
    """A suite's problems, the first `most` of them or all (0).

    Its file is looked for in `folder`, else beside its TOML file; what is not there comes from the
    hub.

    Raises:
        ConfigError: there are no rows, another number than the suite says, or one is unusable.
    """
    rows, table = _rows(suite, folder)
    said = suite.table.items
    if said and len(table.rows) != said:
        raise ConfigError(
            f"suite {suite.name}: {table.name} has {len(table.rows)} rows, and the suite {said} "
            "items; give its own file, or a suite of another name"
        )
    config = _as_data(suite, rows, table.name)
    problems = tuple(_problems(suite, rows, table.rows[: most or None], config))
    if len({problem.id for problem in problems}) != len(problems):
        raise ConfigError(f"suite {suite.name}: {table.name} has an id twice ({rows.id!r})")
    return SuiteItems(
        suite,
        problems,
        samples,
        {
            "source": table.name,
            "digest": table.digest,
            "items": len(problems),
            "of": len(table.rows),
            "verifier": suite.table.verifier,
            "parameters": dict(suite.table.parameters),
            "template": hashlib.sha256(
                json.dumps([suite.table.system, suite.table.template]).encode()
            ).hexdigest()[:12],
        },
    )


def _rows(suite: NamedSuite, folder: str) -> tuple[SuiteRows, RowTable]:
    file, hub = suite.table.file, suite.table.hub
    looked: list[str] = []
    if file is not None:
        for parent in dict.fromkeys(filter(None, (folder, suite.folder))):
            path = Path(parent).expanduser() / file.path
            if path.is_file():
                return file, file_table(str(path))
            looked.append(str(path))
    if hub is None:
        where = (
            " or ".join(looked) or (file and file.path) or "nowhere: it names neither file nor hub"
        )
        raise ConfigError(
            f"suite {suite.name}: its rows are not at {where}; name their folder with "
            f"eval.suite_data, or {FOLDER}"
        )
    try:
        return hub, hub_table(hub.name, hub.subset, hub.split, hub.revision)
    except ConfigError as error:
        gate = (
            f"; it is gated: accept its terms at https://huggingface.co/datasets/{hub.name} and "
            "log in with `hf auth login`"
            if hub.gated
            else ""
        )
        local = (
            f", or put {file.path} into the folder of eval.suite_data or {FOLDER}" if file else ""
        )
        raise ConfigError(f"suite {suite.name}: {error}{gate}{local}") from error


def _as_data(suite: NamedSuite, rows: SuiteRows, where: str) -> DataConfig:
    made = rows.record or rows.options
    columns = ColumnsConfig(
        prompt=rows.prompt,
        reference=_REFERENCE if made else rows.reference,
        tests=_TESTS if rows.tests or rows.oracle else "",
    )
    return DataConfig(
        source="jsonl",
        path=f"suite {suite.name}, {where}",
        columns=columns,
        template=suite.table.template.strip("\n"),
        system=suite.table.system,
        reference_pattern="" if made else rows.reference_pattern,
    )


def _problems(
    suite: NamedSuite, rows: SuiteRows, given: Sequence[Row], config: DataConfig
) -> Iterator[Problem]:
    for number, row in enumerate(given, start=1):
        lacking = next((name for name in _named(rows) if name not in row), None)
        if lacking is not None:
            raise ConfigError(
                f"{config.path}, row {number}: no column {lacking!r}; it has: "
                f"{', '.join(map(str, row))}"
            )
        own = str(row[rows.id]) if rows.id else str(number)
        made = {**row, **_made(suite, rows, row, own)}
        problem = problem_of(made, config, f"{suite.name}/{own}", number)
        yield replace(problem, task=suite.name)


def _named(rows: SuiteRows) -> list[str]:
    columns = (rows.id, rows.tests, rows.entry_point, rows.oracle, rows.tolerance)
    return [*filter(None, columns), *rows.record, *rows.options, *rows.inputs]


def _made(suite: NamedSuite, rows: SuiteRows, row: Row, own: str) -> dict[str, Any]:
    """Columns that the table's keys make of a row's."""
    if rows.record:
        return {_REFERENCE: json.dumps({name: row[name] for name in rows.record})}
    if rows.options:
        return _shuffled([str(row[name]).strip() for name in rows.options], suite, own)
    if not rows.tests and not rows.oracle:
        return {}
    entry = str(row[rows.entry_point]) if rows.entry_point else ""
    code = oracle_tests(rows, row) if rows.oracle else str(row[rows.tests])
    limits = {"wall_time_s": rows.wall_time_s, "cpu_time_s": rows.wall_time_s}
    return {_TESTS: {"code": code, **({"entry_point": entry} if entry else {}), "limits": limits}}


def _shuffled(options: Sequence[str], suite: NamedSuite, own: str) -> dict[str, Any]:
    """The options under letters, and the letter of the first; fixed by seed and item alone."""
    order = list(range(len(options)))
    random.Random(f"{suite.table.seed}/{suite.name}/{own}").shuffle(order)  # noqa: S311  # no secret
    lettered = {ascii_uppercase[n]: options[place] for n, place in enumerate(order)}
    return {**lettered, _REFERENCE: ascii_uppercase[order.index(0)]}


_ORACLE = """
import copy, json, math

_space = {{"__name__": "oracle"}}
exec({oracle!r}, _space)
_right = _space[{entry!r}]
_atol = {atol!r}


def _near(a, b):
    if isinstance(b, (list, tuple)) and isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(b, float) and isinstance(a, (int, float)):
        if a != a or b != b:
            return a != a and b != b
        return math.isclose(a, b, rel_tol=1e-7, abs_tol=_atol or 1e-6)
    return a == b


def _same(a, b):
    if {presence!r}:
        return (a is None) == (b is None)
    if {unordered!r}:
        return set(a) == set(b)
    return a == b or _near(a, b)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _number(value):
    return complex(value) if isinstance(value, str) else value


def _tests():
    for given in json.loads({inputs!r}):
        for form in (lambda one: one, _tuples, _number):
            try:
                taken = [form(one) for one in given]
                yield taken, _right(*copy.deepcopy(taken))
                break
            except Exception:
                continue


def check(candidate):
    count = 0
    for given, expected in list(_tests()):
        count += 1
        assert _same(candidate(*copy.deepcopy(given)), expected), given
    if not count:
        raise RuntimeError("the right program takes none of the inputs")
"""


def oracle_tests(rows: SuiteRows, row: Row) -> str:
    """Test code that compares a program with a right one, as EvalPlus does (arXiv 2305.01210).

    1. Inputs are JSON as they stand, or with tuples for lists, or complex numbers for texts: the
       first that the right program takes. EvalPlus knows which of MBPP's problems want what.
    2. What it takes in no form is left out.
    3. Problems with several right answers other than sets (find_zero) are compared like others.
    """
    entry = str(row[rows.entry_point])
    prompt, solution = str(row[rows.prompt]), str(row[rows.oracle])
    return _ORACLE.format(
        oracle=prompt + solution,
        entry=entry,
        atol=float(row[rows.tolerance] or 0) if rows.tolerance else 0.0,
        presence=entry in rows.presence,
        unordered=entry in rows.unordered,
        inputs=json.dumps([one for name in rows.inputs for one in row[name] or ()]),
    )
