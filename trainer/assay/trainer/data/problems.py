"""Prompts and references: from reasoning-gym, a JSONL file, or the hub.

Every source gives rows (dictionaries); a row becomes a Problem. Training and evaluation never share
a question: a generated training problem of the evaluation is dropped, and held-out rows leave the
training set. A row that lacks something is an error that names the row, so that no data set
shrinks unseen.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.clients.rows.tests import read_tests
from assay.environments.environment import EMPTY, lacking
from assay.kit.errors import ConfigError
from assay.trainer.data.columns import ALIASES, found_columns
from assay.trainer.data.origin import DataOrigin, shortened
from assay.trainer.data.sources import Row, RowTable, read_sources
from assay.trainer.settings.method import PLAIN_ROWS, RowNeeds
from assay.trainer.settings.sections import ColumnsConfig, DataConfig


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

    train: tuple[Problem, ...]
    eval: tuple[Problem, ...]
    origin: DataOrigin | None = None  # where they come from, as a run tells it


def load_problems(
    config: DataConfig, *, eval_prompts: int, needs: RowNeeds = PLAIN_ROWS
) -> Problems:
    """Reads the configured source; exactly `eval_prompts` problems are held out.

    Raises:
        ConfigError: the source is missing or too small, a column cannot be told, or a row lacks
            what it `needs`.
    """
    where = _where(config)
    table, separate = read_sources(config, eval_prompts=eval_prompts)
    if not table.rows:
        raise ConfigError(f"{where} holds no rows")
    rows = (row for one in (table, separate) if one for row in one.rows)
    own = replace(config, columns=found_columns(config, rows, where, needs.columns))
    chosen, pool = _split(table, separate, config, eval_prompts)

    def problem(row: Row, id_: str, at: int) -> Problem:
        made = problem_of(row, own, id_, at, needs)
        return replace(made, row=_others(row, own.columns)) if needs.keep else made

    held_out = tuple(problem(row, f"eval-{n}", at) for n, (at, row) in enumerate(pool))
    asked = {problem.asked for problem in held_out}
    made = (problem(row, f"train-{n}", at) for n, (at, row) in enumerate(chosen))
    train = tuple(problem for problem in made if problem.asked not in asked)
    if not train:
        raise ConfigError(
            f"{where} leaves no training problems; give more data or lower eval.prompts"
        )
    apart = separate if config.source != "reasoning_gym" else None
    return Problems(train, held_out, _origin(config, own.columns, table, apart, (train, held_out)))


def _where(config: DataConfig) -> str:
    match config.source:
        case "reasoning_gym":
            return f"reasoning_gym task {config.task}"
        case "jsonl":
            return config.path
        case "hub":
            return f"data set {config.name}"


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


Numbered = tuple[int, Row]  # a row's number in its source, from 1; 0 where it has none


def _split(
    table: RowTable, separate: RowTable | None, config: DataConfig, eval_prompts: int
) -> tuple[list[Numbered], list[Numbered]]:
    """Rows to train on and rows held out."""
    if config.source == "reasoning_gym":
        return [(0, row) for row in table.rows], [
            (0, row) for row in (separate.rows if separate else ())
        ]
    numbered = list(enumerate(table.rows, start=1))
    random.Random(config.seed).shuffle(numbered)  # noqa: S311  # a shuffle, no secret
    pool = numbered if separate is None else list(enumerate(separate.rows, start=1))
    if len(pool) < eval_prompts:
        raise ConfigError(
            f"{_where(config)} gives {len(pool)} rows for the evaluation, but eval.prompts = "
            f"{eval_prompts}; lower it"
        )
    rest = numbered[eval_prompts:] if separate is None else numbered
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
