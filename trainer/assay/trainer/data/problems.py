"""Prompts and references: from reasoning-gym, a JSONL file, or the hub.

Every source gives rows (dictionaries); a row becomes a Problem. Training and evaluation never share
a question: a generated training problem of the evaluation is dropped, and held-out rows leave the
training set. A row that lacks something is an error that names the row, so that no data set
shrinks unseen.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.clients.rows.tests import read_tests
from assay.kit.errors import ConfigError
from assay.trainer.settings.sections import DataConfig

# reasoning-gym seeds problem i with seed + i, so near seeds would share problems.
_EVAL_SEED_OFFSET = 1_000_000_000
# So many times the wanted problems are generated before giving up on finding distinct ones.
_EVAL_SURPLUS = 10
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to answer."""

    id: str  # unique within the run; "train-17" or "eval-3"
    question: str  # the bare question, as the data set has it
    # the conversation that the policy continues; roles and contents
    messages: tuple[tuple[str, str], ...]
    reference: str | tuple[str, ...]  # what the response is judged against
    task: str = ""  # which kind it is, from the row's `task`; empty where it has none
    # a response to beat, from data.columns.anchor; empty where that names no column
    anchor: str = ""
    # of a program, as JSON in a shape of assay.clients.rows.tests; empty for none. Then there is no
    # reference.
    tests: str = ""
    solution: str = ""  # a worked one, where data.columns.solution names a column


@dataclass(frozen=True, slots=True)
class Problems:
    """What a run trains on and what it is evaluated on; no question is in both."""

    train: tuple[Problem, ...]
    eval: tuple[Problem, ...]


def load_problems(config: DataConfig, *, eval_prompts: int) -> Problems:
    """Reads the configured source; exactly `eval_prompts` problems are held out.

    Raises:
        ConfigError: the source is missing or too small, or a row lacks a column or a reference.
    """
    match config.source:
        case "reasoning_gym":
            train, held_out = _generated(config, eval_prompts)
        case "jsonl":
            separate = read_jsonl(Path(config.eval_path)) if config.eval_path else None
            train, held_out = _split(read_jsonl(Path(config.path)), separate, config, eval_prompts)
        case "hub":
            name, subset = config.name, config.subset
            separate = hub_rows(name, subset, config.eval_split) if config.eval_split else None
            rows = hub_rows(name, subset, config.split)
            train, held_out = _split(rows, separate, config, eval_prompts)
    if not train:
        raise ConfigError(
            f"{_origin(config)} leaves no training problems; give more data or lower eval.prompts"
        )
    return Problems(tuple(train), tuple(held_out))


def _origin(config: DataConfig) -> str:
    match config.source:
        case "reasoning_gym":
            return f"reasoning_gym task {config.task}"
        case "jsonl":
            return config.path
        case "hub":
            return f"data set {config.name}"


def _generated(config: DataConfig, eval_prompts: int) -> tuple[list[Problem], list[Problem]]:
    held_out: dict[str, Problem] = {}
    if eval_prompts:
        for row in _task_rows(
            config, seed=config.seed + _EVAL_SEED_OFFSET, size=eval_prompts * _EVAL_SURPLUS
        ):
            problem = _problem(row, config, f"eval-{len(held_out)}", "question", "answer")
            held_out.setdefault(problem.question, problem)
            if len(held_out) == eval_prompts:
                break
        else:
            raise ConfigError(
                f"reasoning_gym task {config.task} gave {len(held_out)} distinct problems, but "
                f"eval.prompts = {eval_prompts}; "
                "lower it, or widen the task with data.task_config"
            )
    size = min(config.size, config.max_rows or config.size)
    rows = _task_rows(config, seed=config.seed, size=size)
    problems = (
        _problem(row, config, f"train-{n}", "question", "answer") for n, row in enumerate(rows)
    )
    return [problem for problem in problems if problem.question not in held_out], list(
        held_out.values()
    )


def _task_rows(config: DataConfig, *, seed: int, size: int) -> Iterator[Row]:
    import reasoning_gym  # noqa: PLC0415  # takes a second to import; only this source needs it
    from reasoning_gym.factory import DATASETS  # noqa: PLC0415

    if config.task not in DATASETS:
        near = [name for name in sorted(DATASETS) if config.task.split("_")[0] in name]
        raise ConfigError(
            f"reasoning_gym has no task {config.task!r}; "
            + (f"near it: {', '.join(near)}" if near else f"it has {len(DATASETS)}")
        )
    try:
        dataset = reasoning_gym.create_dataset(
            config.task, seed=seed, size=size, **config.task_config
        )
    except (TypeError, ValueError, AssertionError) as error:
        raise ConfigError(
            f"data.task_config does not fit reasoning_gym task {config.task}: {error}"
        ) from error
    for entry in dataset:
        yield {
            **entry.get("metadata", {}),
            "question": entry["question"],
            "answer": entry["answer"],
        }


def read_jsonl(path: Path) -> list[Row]:
    """Rows of a .jsonl or .jsonl.gz file, without blank lines.

    Raises:
        ConfigError: the file is missing or unreadable, or a line is no JSON object.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    rows: list[Row] = []
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ConfigError(
                        f"{path}, line {number}: expected a JSON object, got {type(row).__name__}"
                    )
                rows.append(row)
    except FileNotFoundError:
        raise ConfigError(f"data file {path} does not exist; check data.path") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {len(rows) + 1}: not valid JSON: {error.msg}") from error
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ConfigError(f"data file {path} cannot be read: {error}") from error
    return rows


def hub_rows(name: str, subset: str, split: str) -> list[Row]:
    """Rows of a data set of the hub, or of a local folder.

    Raises:
        ConfigError: it cannot be loaded.
    """
    import datasets  # noqa: PLC0415  # takes a second to import; only this source needs it

    try:
        dataset = datasets.load_dataset(name, subset or None, split=split)
    except (OSError, ValueError, KeyError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"data set {name!r}, split {split!r}, cannot be loaded: {reason}; "
            "check the name, the split and the network, or use a local file by data.source=jsonl"
        ) from error
    return list(dataset)


def _split(
    rows: list[Row], separate: list[Row] | None, config: DataConfig, eval_prompts: int
) -> tuple[list[Problem], list[Problem]]:
    origin = _origin(config)
    if not rows:
        raise ConfigError(f"{origin} holds no rows")
    numbered = list(enumerate(rows, start=1))
    random.Random(config.seed).shuffle(numbered)  # noqa: S311  # a shuffle, no secret
    pool = numbered if separate is None else list(enumerate(separate, start=1))
    if len(pool) < eval_prompts:
        raise ConfigError(
            f"{origin} gives {len(pool)} rows for the evaluation, but eval.prompts = "
            f"{eval_prompts}; lower it"
        )
    prompt, reference = config.columns.prompt, config.columns.reference
    held_out = [
        _problem(row, config, f"eval-{n}", prompt, reference, number=number)
        for n, (number, row) in enumerate(pool[:eval_prompts])
    ]
    rest = numbered[eval_prompts:] if separate is None else numbered
    rest = rest[: config.max_rows or None]
    train = [
        _problem(row, config, f"train-{n}", prompt, reference, number=number)
        for n, (number, row) in enumerate(rest)
    ]
    questions = {problem.question for problem in held_out}
    return [problem for problem in train if problem.question not in questions], held_out


def _problem(
    row: Row, config: DataConfig, id_: str, prompt: str, reference: str, *, number: int = 0
) -> Problem:
    where = f"{_origin(config)}, row {number}" if number else _origin(config)
    anchor, tests, solution = config.columns.anchor, config.columns.tests, config.columns.solution
    named = [("prompt", prompt), ("tests", tests) if tests else ("reference", reference)]
    named += [(key, name) for key, name in (("anchor", anchor), ("solution", solution)) if name]
    for setting, column in named:
        if column not in row:
            raise ConfigError(
                f"{where}: no column {column!r}, which data.columns.{setting} names; it has: "
                f"{', '.join(map(str, row))}"
            )
        if row[column] in (None, "", []) and setting != "solution":  # which a row may lack
            raise ConfigError(
                f"{where}: column {column!r} is empty; every problem needs a {setting}"
            )
    question = str(row[prompt])
    messages = [("system", config.system)] if config.system else []
    for example in config.examples:
        messages += [("user", example.user), ("assistant", example.assistant)]
    messages.append(("user", _fill(config.template, {**row, "question": question}, where)))
    value: Any = ""
    if not tests:
        column = f"{where}: column {reference!r}"
        value = _extract(row[reference], config.reference_pattern, column)
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
        if tokenizer.bos_token and _adds_bos(tokenizer)
        else text
    )


def _adds_bos(tokenizer: Any) -> bool:
    ids: Sequence[int] = tokenizer("a")["input_ids"]
    return bool(ids) and ids[0] == tokenizer.bos_token_id
