"""A trainer's row as an item. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.clients.rows.tests import read_tests
from assay.clients.trainers.common.labels import labels_of_row
from assay.clients.types import Item, Parameter, Reference, ToolCall, tool_calls_of
from assay.kit.errors import ConfigError

Message = Mapping[str, Any]
REFERENCE_KINDS = ("text", "json", "tests")
USUAL_COLUMNS = ("reference", "answer")


@dataclass(frozen=True, slots=True)
class RowReader:
    """How a completion and the columns of its row become an item.

    Attributes:
        verifier: of every row. Empty: the column `verifier`, or by task.
        task: of every row. Empty: the column `task`.
        reference_column: empty: the first of `usual_columns` that exists.
        parameters: of every row; those of the column `parameters` take precedence.
        send_prompt: for verifiers that read the prompt.
        reference_kind: of the reference column; see `label_of`.
        labels: of every row, over those that its columns tell.
    """

    verifier: str = ""
    task: str = ""
    reference_column: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    send_prompt: bool = True
    reference_kind: str = "text"
    usual_columns: tuple[str, ...] = USUAL_COLUMNS
    labels: Mapping[str, str] = field(default_factory=dict)

    def items(
        self,
        prompts: Sequence[str | Sequence[Message]],
        completions: Sequence[str | Sequence[Message]],
        completion_ids: Sequence[Sequence[int]] | None,
        columns: Mapping[str, Any],
    ) -> list[Item]:
        """One item for each completion; completions of equal prompts are a group.

        Raises:
            ConfigError: The named reference column does not exist or holds no reference, or there
                are not as many rows as completions.
        """
        references = self._column(columns)
        _check_lengths(len(completions), prompts=prompts, references=references)
        groups: dict[str, int] = {}
        items = []
        for row, completion in enumerate(completions):
            verifier = self.verifier or _cell(columns, "verifier", row)
            items.append(
                Item(
                    response=text_of(completion),
                    tool_calls=calls_of(completion),
                    reference=self._reference(references, row),
                    verifier=verifier,
                    task=self.task or ("" if verifier else _cell(columns, "task", row)),
                    prompt=prompt_of(prompts[row]) if self.send_prompt else (),
                    id=str(row),
                    group_id=str(groups.setdefault(repr(prompts[row]), row)),
                    parameters={**self.parameters, **_row_parameters(columns, row)},
                    response_token_count=len(completion_ids[row]) if completion_ids else None,
                    labels={**labels_of_row(columns, row), **self.labels},
                )
            )
        return items

    def missing(self, columns: Mapping[str, Any], setting: str) -> str:
        """The remedy for missing references; empty where the data has their column.

        `setting` is the name of this adapter's setting for the column.
        """
        if self._column(columns) is not None:
            return ""
        usual = " or ".join(repr(name) for name in self.usual_columns)
        return f"the data has no column {usual}, but: {_names(columns)}; name it with {setting}"

    def _reference(self, references: Sequence[Any] | None, row: int) -> Reference | None:
        if references is None:
            return None
        return label_of(references[row], self.reference_kind, f"row {row}")

    def _column(self, columns: Mapping[str, Any]) -> Sequence[Any] | None:
        if self.reference_column:
            if self.reference_column not in columns:
                raise ConfigError(
                    f"the data has no column {self.reference_column!r}; it has: {_names(columns)}"
                )
            named: Sequence[Any] = columns[self.reference_column]
            return named
        return next((columns[name] for name in self.usual_columns if name in columns), None)


def _names(columns: Mapping[str, Any]) -> str:
    """The names of the data's columns; other arguments of the trainer are no lists."""
    return ", ".join(sorted(k for k, v in columns.items() if isinstance(v, list))) or "none"


def _check_lengths(wanted: int, **found: Sequence[Any] | None) -> None:
    for name, rows in found.items():
        if rows is not None and len(rows) != wanted:
            raise ConfigError(
                f"{wanted} completions, but {len(rows)} {name}; pass one for each completion"
            )


def _cell(columns: Mapping[str, Any], name: str, row: int) -> str:
    return str(columns[name][row] or "") if isinstance(columns.get(name), list) else ""


def _row_parameters(columns: Mapping[str, Any], row: int) -> dict[str, Parameter]:
    """The parameters of a row, without the Nones by which a data set fills columns."""
    column = columns.get("parameters")
    cell = column[row] if isinstance(column, list) else None
    return {name: value for name, value in (cell or {}).items() if value is not None}


def reference_of(value: Any, whose: str) -> Reference | None:
    """A cell as a reference: numbers become texts, mappings data, arrays lists.

    Raises:
        ConfigError: it is no reference; the text names the row `whose`.
    """
    if not isinstance(value, str) and hasattr(value, "tolist"):
        value = value.tolist()  # numpy's, as parquet files are read
    if isinstance(value, bool):
        raise ConfigError(f"the reference of {whose} is {value}; pass a text or a list of texts")
    if isinstance(value, int | float):
        return str(value)
    try:
        return Item(reference=value).reference
    except TypeError as error:
        kind = type(value).__name__
        raise ConfigError(
            f"the reference of {whose} is a {kind}; pass a text, a list of texts, or data"
        ) from error


def label_of(label: Any, kind: str, whose: str) -> Reference | None:
    """The reference of a row whose label may be JSON: many trainers keep labels as texts.

    By `kind`: "text" is as in `reference_of`, "json" is data or texts as JSON, "tests" are tests of
    a program (`assay.clients.rows.tests`), also as JSON. None is no reference.

    Raises:
        ConfigError: the kind is unknown, or the label is not of it.
    """
    if kind not in REFERENCE_KINDS:
        known = ", ".join(REFERENCE_KINDS)
        raise ConfigError(f"the kind of references is {kind!r}; choose one of: {known}")
    if kind == "text" or label is None:
        return reference_of(label, whose)
    if isinstance(label, str):
        try:
            label = json.loads(label)
        except ValueError as error:
            raise ConfigError(f"the reference of {whose} is no JSON: {error}") from error
    if kind == "json":
        return reference_of(label, whose)
    try:
        return read_tests(label)
    except ValueError as error:
        raise ConfigError(f"the reference of {whose}: {error}") from error


def text_of(completion: str | Sequence[Message]) -> str:
    """The policy's text: a text, or the assistant's messages, joined by blank lines."""
    if isinstance(completion, str):
        return completion
    said = [_content(message) for message in completion if message.get("role") == "assistant"]
    return "\n\n".join(text for text in said if text)


def calls_of(completion: str | Sequence[Message]) -> tuple[ToolCall, ...]:
    """The tool calls of the assistant's messages, in order; none of a text."""
    if isinstance(completion, str):
        return ()
    own = [message for message in completion if message.get("role") == "assistant"]
    return tuple(call for message in own for call in tool_calls_of(message.get("tool_calls")))


def prompt_of(prompt: str | Sequence[Message]) -> str | list[dict[str, str]]:
    """A prompt as the wire has it: a text, or messages of texts."""
    if isinstance(prompt, str):
        return prompt
    return [{"role": str(message["role"]), "content": _content(message)} for message in prompt]


def _content(message: Message) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(block.get("text") or "" for block in content)
