"""Prompts and references: from reasoning-gym, a file, the hub, or a mixture of files and hub.

Every source gives rows (dictionaries); a row becomes a Problem. Training and evaluation never share
a question: a generated training problem of the evaluation is dropped, and held-out rows leave the
training set. A row that lacks something is an error that names the row, so that no data set
shrinks unseen.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import string
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any, overload

from assay.clients.rows.tests import read_tests
from assay.environments.environment import EMPTY, lacking
from assay.kit.errors import ConfigError
from assay.trainer.data.columns import ALIASES, found_columns
from assay.trainer.data.mixture import apportion
from assay.trainer.data.origin import DataOrigin, shortened
from assay.trainer.data.sources import Row, RowTable, read_sources
from assay.trainer.settings.method import PLAIN_ROWS, RowNeeds
from assay.trainer.settings.sections import ColumnsConfig, DataConfig, MixtureSource


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to answer."""

    id: str  # unique within the run; "train-17" or "eval-3"
    question: str  # the bare question, as the data set has it; empty where rows need none
    # the conversation that the policy continues; roles and contents
    messages: tuple[tuple[str, str], ...]
    # what the response is judged against; empty where rows need none
    reference: str | tuple[str, ...]
    task: str = ""  # which kind it is, from the row's `task`; empty where it has none
    # a response to beat, from data.columns.anchor; empty where that names no column
    anchor: str = ""
    # of a program, as JSON in a shape of assay.clients.rows.tests; empty for none. Then there is no
    # reference.
    tests: str = ""
    solution: str = ""  # a worked one, where data.columns.solution names a column
    # JSON of the row's other columns, for methods that need them; empty where none does
    row: str = ""

    @property
    def asked(self) -> str:
        """What makes it another problem than others: its question, else its row."""
        return self.question or self.row


@dataclass(frozen=True, slots=True)
class Problems:
    """What a run trains on and what it is evaluated on; no question is in both."""

    train: Sequence[Problem]
    eval: tuple[Problem, ...]
    origin: DataOrigin | None = None  # where they come from, as a run tells it
    # of a mixture: how many of `train` each source has, in their order, and its weight
    mixture: tuple[tuple[int, float], ...] = ()


class DiskProblems(Sequence[Problem]):
    """Problems that are made of rows on disk each time they are asked for.

    Args:
        rows: of the file.
        order: (number of the problem, place of its row), in the order of the problems.
        make: a problem of a row, its number and the row's number from 1.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        order: Iterable[tuple[int, int]],
        make: Callable[[Row, int, int], Problem],
    ) -> None:
        self._rows, self._make = rows, make
        self._order = array("q", chain.from_iterable(order))

    def __len__(self) -> int:
        return len(self._order) // 2

    @overload
    def __getitem__(self, place: int) -> Problem: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Problem]: ...

    def __getitem__(self, place: int | slice) -> Problem | Sequence[Problem]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        first = 2 * range(len(self))[place]
        number, at = self._order[first], self._order[first + 1]
        return self._make(self._rows[at], number, at + 1)

    def kept(self, keep: Callable[[Problem], bool]) -> DiskProblems:
        """Those that `keep` accepts, with their numbers; reads each once."""
        pairs = zip(self._order[::2], self._order[1::2], strict=True)
        order = (pair for pair, one in zip(pairs, self, strict=True) if keep(one))
        return DiskProblems(self._rows, order, self._make)


class _Chain(Sequence[Problem]):
    """Several sequences as one."""

    def __init__(self, parts: Sequence[Sequence[Problem]]) -> None:
        self._parts = parts
        self._ends = list(accumulate(map(len, parts)))

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, place: int) -> Problem: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Problem]: ...

    def __getitem__(self, place: int | slice) -> Problem | Sequence[Problem]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        part = bisect_right(self._ends, place)
        return self._parts[part][place - (self._ends[part - 1] if part else 0)]


def load_problems(
    config: DataConfig, *, eval_prompts: int, needs: RowNeeds = PLAIN_ROWS
) -> Problems:
    """Reads the configured source; exactly `eval_prompts` problems are held out.

    Of a mixture they come from its sources in proportion to their weights.

    Raises:
        ConfigError: the source is missing or too small, a column cannot be told, or a row lacks
            what it `needs`.
    """
    if config.source == "mixture":
        return _mixed(config, eval_prompts, needs)
    return _loaded(config, eval_prompts, needs)


def _loaded(config: DataConfig, eval_prompts: int, needs: RowNeeds, task: str = "") -> Problems:
    """Problems of one source, which a mixture calls `task`."""
    where, prefix = _where(config), f"{task}-" if task else ""
    table, separate = read_sources(config, eval_prompts=eval_prompts)
    if not table.rows:
        raise ConfigError(f"{where} holds no rows")
    rows = (row for one in (table, separate) if one for row in one.rows)
    own = replace(config, columns=found_columns(config, rows, where, needs.columns))
    chosen, pool = _split(table, separate, config, eval_prompts)
    generated = config.source == "reasoning_gym"

    def problem(row: Row, id_: str, at: int) -> Problem:
        made = problem_of(row, own, prefix + id_, 0 if generated else at, needs)
        if needs.keep:
            made = replace(made, row=_others(row, own.columns))
        return replace(made, task=made.task or task) if task else made

    apart = (separate or table).rows
    held_out = tuple(problem(apart[at], f"eval-{n}", at + 1) for n, at in enumerate(pool))
    made = DiskProblems(
        table.rows, enumerate(chosen), lambda row, n, at: problem(row, f"train-{n}", at)
    )
    train = _without(made if config.streaming else tuple(made), held_out)
    if not train:
        raise ConfigError(
            f"{where} leaves no training problems; give more data or lower eval.prompts"
        )
    evaluation = None if generated else separate
    origin = _origin(config, own.columns, table, evaluation, (train, held_out))
    return Problems(train, held_out, origin)


def _without(problems: Sequence[Problem], held_out: Iterable[Problem]) -> Sequence[Problem]:
    """Problems that ask something else than those held out; reads each once."""
    asked = {problem.asked for problem in held_out}
    if isinstance(problems, DiskProblems):
        return problems.kept(lambda problem: problem.asked not in asked)
    return tuple(problem for problem in problems if problem.asked not in asked)


def _mixed(config: DataConfig, eval_prompts: int, needs: RowNeeds) -> Problems:
    sources = config.mixture
    shares = apportion(eval_prompts, [one.weight for one in sources])
    parts = [
        _loaded(_alone(config, one), share, needs, one.task)
        for one, share in zip(sources, shares, strict=True)
    ]
    held_out = tuple(problem for part in parts for problem in part.eval)
    trains = [_without(part.train, held_out) for part in parts]
    for one, train in zip(sources, trains, strict=True):
        if not train:
            raise ConfigError(f"data.mixture: nothing of {one.task} is left to train on")
    whole = _Chain(trains) if config.streaming else tuple(chain.from_iterable(trains))
    origins = [part.origin for part in parts if part.origin is not None]
    digests = "".join(f"{one.name} {one.digest}\n" for one in origins)
    origin = replace(
        origins[0],
        source="mixture",
        name=", ".join(
            f"{one.task} ({one.weight:g}: {made.name})"
            for one, made in zip(sources, origins, strict=True)
        ),
        rows=sum(one.rows for one in origins),
        train=len(whole),
        eval=len(held_out),
        digest=f"sha256:{hashlib.sha256(digests.encode()).hexdigest()}",
    )
    weights = tuple((len(train), one.weight) for one, train in zip(sources, trains, strict=True))
    return Problems(whole, held_out, origin, weights)


def _alone(config: DataConfig, one: MixtureSource) -> DataConfig:
    """The settings of one source of a mixture."""
    return replace(
        config,
        source="jsonl" if one.path else "hub",
        path=one.path,
        name=one.name,
        subset=one.subset,
        split=one.split,
        columns=one.columns,
        reference_pattern=one.reference_pattern,
        template=one.template or config.template,
        max_rows=one.max_rows or config.max_rows,
        mixture=(),
    )


def _where(config: DataConfig) -> str:
    match config.source:
        case "reasoning_gym":
            return f"reasoning_gym task {config.task}"
        case "jsonl":
            return config.path
        case "hub":
            return f"data set {config.name}"
        case "mixture":
            return "data.mixture"


def _origin(
    config: DataConfig,
    columns: ColumnsConfig,
    table: RowTable,
    apart: RowTable | None,
    made: tuple[Sequence[Problem], Sequence[Problem]],
) -> DataOrigin:
    judged_by = "tests" if columns.tests else "reference"
    first = made[0][0]
    return DataOrigin(
        source=config.source,
        name=table.name,
        rows=len(table.rows),
        train=len(made[0]),
        eval=len(made[1]),
        prompt=columns.prompt,
        reference=getattr(columns, judged_by),
        by_name=() if config.source == "reasoning_gym" else _unnamed(config.columns, columns),
        digest=table.digest,
        example={
            "prompt": shortened(first.asked),
            "reference": shortened(first.tests or str(first.reference)),
        },
        evaluation={"name": apart.name, "rows": len(apart.rows), "digest": apart.digest}
        if apart
        else None,
    )


def _unnamed(given: ColumnsConfig, found: ColumnsConfig) -> tuple[str, ...]:
    return tuple(key for key in ALIASES if getattr(given, key) != getattr(found, key))


def _split(
    table: RowTable, separate: RowTable | None, config: DataConfig, eval_prompts: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Places of rows to train on, and of rows held out in `separate`, else in `table`."""
    if config.source == "reasoning_gym":
        return range(len(table.rows)), range(len(separate.rows) if separate else 0)
    places = list(range(len(table.rows)))
    random.Random(config.seed).shuffle(places)  # noqa: S311  # a shuffle, no secret
    pool = places if separate is None else range(len(separate.rows))
    if len(pool) < eval_prompts:
        raise ConfigError(
            f"{_where(config)} gives {len(pool)} rows for the evaluation, but eval.prompts = "
            f"{eval_prompts}; lower it"
        )
    rest = places[eval_prompts:] if separate is None else places
    return rest[: config.max_rows or None], pool[:eval_prompts]


def problem_of(
    row: Row, config: DataConfig, id_: str, number: int, needs: RowNeeds = PLAIN_ROWS
) -> Problem:
    """The problem of a row, whose `number` in its source is from 1; 0 where it has none.

    Raises:
        ConfigError: the row lacks what the settings or `needs` name.
    """
    where = f"{_where(config)}, row {number}" if number else _where(config)
    columns = config.columns
    prompt, reference = columns.prompt, columns.reference
    anchor, tests, solution = columns.anchor, columns.tests, columns.solution
    _check_row(row, columns, where, needs)
    asked, told = row.get(prompt), row.get(reference)
    said = _conversation(asked, f"{where}: column {prompt!r}")
    question = "\n".join(text for _, text in said) if said else _text(asked)
    own_system = bool(said) and said[0][0] == "system"
    messages = [("system", config.system)] if config.system and not own_system else []
    for example in config.examples:
        messages += [("user", example.user), ("assistant", example.assistant)]
    messages += said or [("user", _fill(config.template, {**row, "question": question}, where))]
    value: Any = ""
    if not tests and told not in EMPTY:
        value = _extract(told, config.reference_pattern, f"{where}: column {reference!r}")
    return Problem(
        id=id_,
        question=question,
        messages=tuple(messages),
        reference=tuple(map(str, value)) if isinstance(value, list | tuple) else str(value),
        task=str(row.get("task") or ""),
        anchor=str(row[anchor]) if anchor else "",
        tests=_tests(row[tests], f"{where}: column {tests!r}") if tests else "",
        solution=str(row[solution] or "") if solution else "",
    )


def _check_row(row: Row, columns: ColumnsConfig, where: str, needs: RowNeeds) -> None:
    """Raises ConfigError where a row lacks what is needed, or a column that the settings name."""
    judged_by = "tests" if columns.tests else "reference"
    for setting in ("prompt", judged_by, "anchor", "solution"):
        column = getattr(columns, setting)
        if not column or (setting in ("prompt", "reference") and setting not in needs.columns):
            continue
        if column not in row:
            raise ConfigError(
                f"{where}: no column {column!r} for the {setting} (data.columns.{setting}); it "
                f"has: {', '.join(map(str, row))}"
            )
        if row[column] in EMPTY and setting != "solution":  # which a row may lack
            raise ConfigError(f"{where}: column {column!r} is empty; {needs.who} needs a {setting}")
    others = [name for name in needs.columns if name not in ("prompt", "reference")]
    if lack := lacking(others, row):
        names = " or ".join(map(repr, lack.split("|")))
        raise ConfigError(
            f"{where}: {names} is missing or empty, which {needs.who} needs; it has: "
            f"{', '.join(map(str, row))}"
        )


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _conversation(value: Any, where: str) -> list[tuple[str, str]]:
    """The messages of a prompt that is a list of them, which no template changes; else none."""
    if not isinstance(value, list):
        return []
    try:
        return [(str(one["role"]), str(one["content"])) for one in value]
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f'{where} is a list; of a conversation each part is {{"role": ..., "content": ...}}'
        ) from error


def _others(row: Row, columns: ColumnsConfig) -> str:
    """JSON of the columns that no field of a problem holds; what JSON has not becomes a text."""
    held = {columns.prompt, columns.tests or columns.reference, columns.anchor, columns.solution}
    return json.dumps({k: v for k, v in row.items() if k not in held}, default=str)


def _tests(value: Any, where: str) -> str:
    try:
        read_tests(value)
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None


def _extract(value: Any, pattern: str, where: str) -> Any:
    if not pattern:
        return value
    try:
        match = re.search(pattern, str(value))
    except re.error as error:
        raise ConfigError(
            f"data.reference_pattern {pattern!r} is not a regular expression: {error}"
        ) from error
    if match is None or not match.re.groups:
        raise ConfigError(
            f"{where}: data.reference_pattern {pattern!r} finds no group in it; correct the "
            "pattern or the row"
        )
    return match.group(1).strip()


def _fill(template: str, fields: Row, where: str) -> str:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise ConfigError(
            f"data.template is not valid: {error}; write {{{{ and }}}} for braces"
        ) from error
    unknown = [name for name in names if name not in fields]
    if unknown:
        raise ConfigError(
            f"{where}: data.template names {{{unknown[0]}}}; known here: "
            f"{', '.join(map(str, fields))}"
        )
    return template.format_map(fields)


def render(problem: Problem, tokenizer: Any) -> str:
    """The text that the policy continues.

    A chat template renders it up to where the assistant begins; without one the messages stand one
    under the other. The template's begin-of-sequence token is removed, because tokenizing adds one.
    """
    if tokenizer.chat_template is None:
        return "\n".join(content for _, content in problem.messages) + "\n"
    conversation = [{"role": role, "content": content} for role, content in problem.messages]
    text: str = tokenizer.apply_chat_template(
        conversation, tokenize=False, add_generation_prompt=True
    )
    return (
        text.removeprefix(tokenizer.bos_token)
        if tokenizer.bos_token and adds_bos(tokenizer)
        else text
    )


def adds_bos(tokenizer: Any) -> bool:
    """Whether tokenizing a text puts the begin-of-sequence token before it."""
    ids: Sequence[int] = tokenizer("a")["input_ids"]
    return bool(ids) and ids[0] == tokenizer.bos_token_id
