r"""Rows about judges: which of two responses is better, and which steps are right.

`assay eval-judge` and `assay train-rm` read these shapes; another one is a RowError (`published`
brings rows of benchmarks into them):

    prompt, chosen, rejected      texts; or `prompt` and both responses as chat messages
    prompt, chosen[], rejected[]  the same answer in several styles, in equal order (RM-Bench)
    chosen, rejected              whole dialogues that differ in the last answer: "\n\nHuman: ...
                                  \n\nAssistant: ..." (hh-rlhf), or chat messages
    problem, steps[], labels[]    1 right, 0 wrong, null unlabelled (PRM800K, PRMBench); with
                                  signed labels 1 right, -1 wrong, 0 neutral, null unlabelled
    prompt, code, labels[]        one signed label for each line of a program
    prompt, responses[], correct  the first `correct` responses are right, the others wrong

Pure, but for `read`.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from assay.clients.rows.items import RowError, kind_of
from assay.kit.errors import ConfigError

Styles = Literal["same", "cross"]
Labels = Literal["binary", "signed"]

_HUMAN, _ASSISTANT = "\n\nHuman:", "\n\nAssistant:"
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a dialogue; role is "system", "user", "assistant" or "tool"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two responses to one prompt, the first of them better.

    Attributes:
        prompt: at least one message.
        chosen: not empty, and not equal to the other.
        subset: part of the data set, for tables; may be empty.
        styles: indices of the two styles; (0, 0) where there is one.
    """

    prompt: tuple[Said, ...]
    chosen: str
    rejected: str
    subset: str = ""
    styles: tuple[int, int] = (0, 0)

    @property
    def group(self) -> str:
        """See `group_of`."""
        return group_of(self.prompt)


@dataclass(frozen=True, slots=True)
class StepRow:
    """A response in steps, and their labels.

    Attributes:
        prompt: at least one message.
        steps: joined, they are the response; none is blank unless its label is None.
        labels: 1.0 right, -1.0 wrong, 0.0 neutral (a comment), None unlabelled.
        subset: part of the data set, for tables; may be empty.
    """

    prompt: tuple[Said, ...]
    steps: tuple[str, ...]
    labels: tuple[float | None, ...]
    subset: str = ""

    @property
    def group(self) -> str:
        """See `group_of`."""
        return group_of(self.prompt)

    @property
    def response(self) -> str:
        """The joined steps."""
        return "".join(self.steps)


@dataclass(frozen=True, slots=True)
class BestRow:
    """Several responses to one prompt: the first `correct` are right, the others wrong."""

    prompt: tuple[Said, ...]
    responses: tuple[str, ...]
    correct: int
    subset: str = ""


def group_of(prompt: Sequence[Said]) -> str:
    """The first question of a dialogue, without regard to space and case.

    Rows of one group belong on the same side of a split: several responses to one prompt, and
    dialogues that continue the same question.
    """
    first = next((said for said in prompt if said.role == "user"), prompt[0])
    return " ".join(first.content.split()).casefold()


def is_pair(row: Mapping[str, Any]) -> bool:
    """Whether a row is a preference pair, by its keys."""
    return "chosen" in row and "rejected" in row


def is_steps(row: Mapping[str, Any]) -> bool:
    """Whether a row is a labelled response in steps, by its keys."""
    return "steps" in row or "code" in row


def is_best(row: Mapping[str, Any]) -> bool:
    """Whether a row holds several responses, the right ones first, by its keys."""
    return "responses" in row and "correct" in row


def best_of(row: Mapping[str, Any]) -> BestRow:
    """The responses of a row.

    Raises:
        RowError: it has none, or not both kinds.
    """
    responses, correct = row.get("responses"), row.get("correct")
    if not _is_texts(responses) or not responses:
        raise RowError("'responses' must be a list of texts; the right ones come first")
    if isinstance(correct, bool) or not isinstance(correct, int):
        raise RowError(f"'correct' is {correct!r}; write how many of the responses are right")
    if not 0 < correct < len(responses):
        raise RowError(
            f"'correct' is {correct} of {len(responses)} responses; at least one must be right, "
            "and one wrong"
        )
    if any(not text.strip() for text in responses):
        raise RowError("a response is empty; a judge needs a text")
    return BestRow(prompt_of(row), tuple(responses), correct, str(row.get("subset") or ""))


def pairs_of(row: Mapping[str, Any], styles: Styles = "same") -> list[PairRow]:
    """The pairs of a row. Of several styles, "same" pairs each with its own, "cross" with each.

    Raises:
        RowError: it holds none.
    """
    for key in ("chosen", "rejected"):
        if key not in row:
            raise RowError(f"{key!r} is missing; a pair has 'prompt', 'chosen' and 'rejected'")
    chosen, rejected = row["chosen"], row["rejected"]
    subset = str(row.get("subset") or row.get("domain") or "")
    if _is_texts(chosen) and _is_texts(rejected):
        return _styled(prompt_of(row), chosen, rejected, styles, subset)
    if "prompt" in row:
        good, bad = _response(chosen, "chosen"), _response(rejected, "rejected")
        return [_pair(prompt_of(row), good, bad, subset)]
    first, second = _dialogue(chosen, "chosen"), _dialogue(rejected, "rejected")
    if first[:-1] != second[:-1]:
        raise RowError(
            "'chosen' and 'rejected' differ before their last answer; they must be two answers to "
            "one dialogue"
        )
    return [_pair(first[:-1], first[-1].content, second[-1].content, subset)]


def _pair(
    prompt: tuple[Said, ...],
    chosen: str,
    rejected: str,
    subset: str,
    styles: tuple[int, int] = (0, 0),
) -> PairRow:
    for key, text in (("chosen", chosen), ("rejected", rejected)):
        if not text.strip():
            raise RowError(f"{key!r} is empty; a preference needs two responses")
    if chosen == rejected:
        raise RowError("'chosen' and 'rejected' are equal, which is no preference")
    return PairRow(prompt, chosen, rejected, subset, styles)


def _styled(
    prompt: tuple[Said, ...],
    chosen: Sequence[str],
    rejected: Sequence[str],
    styles: Styles,
    subset: str,
) -> list[PairRow]:
    if len(chosen) != len(rejected) or not chosen:
        raise RowError(
            f"'chosen' has {len(chosen)} styles and 'rejected' {len(rejected)}; they must be equal "
            "in number and order"
        )
    count = range(len(chosen))
    chances = [(i, j) for i in count for j in count if styles == "cross" or i == j]
    return [_pair(prompt, chosen[i], rejected[j], subset, (i, j)) for i, j in chances]


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def prompt_of(row: Mapping[str, Any], *keys: str) -> tuple[Said, ...]:
    """What was asked: a text, or messages, under the first of the keys that the row has.

    Raises:
        RowError: it has none of them.
    """
    names = keys or ("prompt", "problem", "question")
    key = next((name for name in names if row.get(name)), None)
    if key is None:
        raise RowError(f"{names[0]!r} is missing; write a text, or messages")
    value = row[key]
    if isinstance(value, str):
        return (Said("user", value),)
    return _messages(value, key)


def _messages(value: object, key: str) -> tuple[Said, ...]:
    if not isinstance(value, list) or not value:
        raise RowError(f"{key!r} is {kind_of(value)}; write a text, or messages")
    said = []
    for message in value:
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if role not in _ROLES or not isinstance(content, str):
            raise RowError(
                f"{key!r} holds something that is no message; write objects with 'role' (one of "
                f"{', '.join(_ROLES)}) and 'content'"
            )
        said.append(Said(str(role), content))
    return tuple(said)


def _response(value: object, key: str) -> str:
    if isinstance(value, str):
        return value
    said = _messages(value, key)
    if len(said) != 1 or said[0].role != "assistant":
        raise RowError(f"{key!r} beside 'prompt' must be a text, or one message of the assistant")
    return said[0].content


def _dialogue(value: object, key: str) -> tuple[Said, ...]:
    said = _spoken(value, key) if isinstance(value, str) else _messages(value, key)
    if len(said) < 2 or said[-1].role != "assistant":
        raise RowError(
            f"'prompt' is missing, and {key!r} is no dialogue that ends with an answer; write "
            "'prompt', or dialogues as messages or with Human: and Assistant:"
        )
    return said


def _spoken(text: str, key: str) -> tuple[Said, ...]:
    r"""The turns of a text with "\n\nHuman:" and "\n\nAssistant:"."""
    said: list[Said] = []
    for part in text.split(_HUMAN)[1:] if text.startswith(_HUMAN) else ():
        asked, *answers = part.split(_ASSISTANT)
        said.append(Said("user", asked.strip()))
        said += [Said("assistant", answer.strip()) for answer in answers]
    if not said:
        raise RowError(f"'prompt' is missing, and {key!r} does not begin with Human:")
    return tuple(said)


def steps_of(row: Mapping[str, Any], labels: Labels = "binary") -> StepRow:
    """The labelled steps of a row, each with a line break at its end.

    `labels` are "binary" (1 right, 0 wrong) or "signed" (1 right, -1 wrong, 0 neutral). Lines of
    'code' always have signed ones.

    Raises:
        RowError: it holds none.
    """
    prompt, subset = prompt_of(row), str(row.get("subset") or row.get("classification") or "")
    if "code" in row:
        if not isinstance(row["code"], str):
            raise RowError(f"'code' is {kind_of(row['code'])}; write the program's text")
        steps, labels = row["code"].splitlines(keepends=True), "signed"
    elif _is_texts(row.get("steps")):
        steps = row["steps"]
    else:
        raise RowError("'steps' must be a list of texts")
    given = row.get("labels")
    if not isinstance(given, list):
        raise RowError(f"no 'labels'; write one for each of the {len(steps)} steps")
    if len(given) != len(steps) or not steps:
        raise RowError(f"{len(given)} 'labels' for {len(steps)} steps; write one for each")
    values = tuple(
        None if not step.strip() else _label(value, labels)
        for step, value in zip(steps, given, strict=True)
    )
    if all(value is None for value in values):
        raise RowError("no step has a label")
    return StepRow(prompt, _on_lines(steps), values, subset)


def _on_lines(steps: Sequence[str]) -> tuple[str, ...]:
    ended = [step if step.endswith("\n") else step + "\n" for step in steps[:-1]]
    return (*ended, steps[-1])


def _label(value: object, labels: Labels) -> float | None:
    known: dict[object, float] = (
        {1: 1.0, 0: -1.0} if labels == "binary" else {1: 1.0, 0: 0.0, -1: -1.0}
    )
    if value is None:
        return None
    if isinstance(value, bool | int | float) and value in known:
        return known[value]
    raise RowError(f"label {value!r} is none of {', '.join(map(str, known))} and null")


def read(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with their line numbers; blank lines are skipped.

    A file whose name ends in .gz is read as gzip.

    Raises:
        ConfigError: the file cannot be read, or a line is no JSON object; the text names both.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _object(line, f"{path}:{number}")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ConfigError(f"{path} is not a whole gzip file ({error}); fetch it again") from error
    except FileNotFoundError as error:
        raise ConfigError(f"{path} is not there; correct the path") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON ({error}); write one object on each line") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: {kind_of(value)}; write one object on each line")
    return value
