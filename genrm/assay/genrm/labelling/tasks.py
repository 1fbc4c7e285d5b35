"""Programs to label: read from rows, cut into lines, written as rows for `assay train-rm`. Pure.

A row has "prompt", a program ("code"), and "tests" (`assay.clients.rows.tests`). The row of a PRM
comes out, {"prompt", "code", "labels"}: 1 up to the longest feasible prefix, -1 behind it, 0 for
comments and blank lines.

With "response" instead of "code" the program is its last fenced block, or with "extraction":
"whole" all of it. The output is {"prompt", "steps", "labels"} of the whole response, neutral
outside of the program: a PRM learns from what it is shown when it is served.

Prefixes end with a line of code; the comments behind it are left to the policy. So the search takes
ceil(log2(lines of code + 1)) steps at most.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.api.execution.v1 import execution_pb2
from assay.clients.rows.items import RowError
from assay.clients.rows.preferences import Said, steps_of
from assay.clients.rows.tests import read_tests
from assay.genrm.engines.base import Prompt, PromptMessage, PromptPiece
from assay.genrm.steps import StepSpan, label_lines, last_block, spans_of, split

FENCE = "```"


class NoProgramError(RowError):
    """A response holds no program, which is no mistake in the row."""


@dataclass(frozen=True, slots=True)
class LabelTask:
    """A program to label.

    Attributes:
        key: a digest of prompt, program, tests and language, by which a resumed run knows it.
        prompt: what the policy was asked.
        lines: joined, they are the program.
        neutral: for each line, whether it is a comment or blank.
        suite: the tests.
        language: as the sandbox names it.
        row: as it came.
        before: the response's lines in front of the program.
        behind: those behind it.
    """

    key: str
    prompt: tuple[Said, ...]
    lines: tuple[str, ...]
    neutral: tuple[bool, ...]
    suite: execution_pb2.TestSuite
    language: str
    row: Mapping[str, Any]
    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()

    @property
    def code_lines(self) -> int:
        """Lines that are neither comment nor blank."""
        return len(self.lines) - sum(self.neutral)

    @property
    def program(self) -> str:
        """The whole program."""
        return "".join(self.lines)

    @property
    def most_calls(self) -> int:
        """Most prefixes that the search asks about."""
        return math.ceil(math.log2(self.code_lines + 1))


@dataclass(frozen=True, slots=True)
class Cost:
    """What labelling took: prefixes asked about, completions sampled, programs run, tokens written.

    Equal programs are run once.
    """

    calls: int = 0
    completions: int = 0
    executions: int = 0
    tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.calls + other.calls,
            self.completions + other.completions,
            self.executions + other.executions,
            self.tokens + other.tokens,
        )


def task_of(
    row: Mapping[str, Any], language: str = "python", *, comments: bool = False
) -> LabelTask:
    """Reads a row: "prompt" or "problem", "code" or "response", "tests", "language".

    `language` is that of a row without one. `comments` labels comments as code, which removes a
    guard against a policy that writes many.

    Raises:
        NoProgramError: its response holds none.
        RowError: it lacks something; the text says what to write.
    """
    named = str(row.get("language") or language)
    (before, lines, behind), neutral = (
        _of_response(row, named) if "response" in row else _of_code(row, named)
    )
    code = "".join(lines)
    parsed = steps_of({**row, "code": code, "labels": [1] * len(code.splitlines())}, "signed")
    if comments:
        neutral = tuple(not line.strip() for line in lines)
    if "tests" not in row:
        raise RowError("'tests' is missing; write what the program is held against")
    try:
        suite = read_tests(row["tests"])
    except ValueError as error:
        raise RowError(f"'tests': {error}") from None
    whole = "".join((*before, *lines, *behind))
    content = json.dumps(
        [
            [(said.role, said.content) for said in parsed.prompt],
            *((whole, code) if "response" in row else (code,)),
            row["tests"],
            named,
            *(["comments"] if comments else []),
        ],
        sort_keys=True,
        default=str,
    )
    key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return LabelTask(key, parsed.prompt, lines, neutral, suite, named, row, before, behind)


_Lines = tuple[str, ...]


def _of_code(
    row: Mapping[str, Any], language: str
) -> tuple[tuple[_Lines, _Lines, _Lines], tuple[bool, ...]]:
    code = row.get("code")
    if not isinstance(code, str) or not code.strip():
        raise RowError("'code' must be a program that is not blank")
    lines = tuple(code.splitlines(keepends=True))
    neutral = tuple(span.neutral for span in spans_of(lines, "code-line", language))
    if all(neutral):
        raise RowError("'code' is nothing but comments")
    return ((), lines, ()), neutral


def _of_response(
    row: Mapping[str, Any], language: str
) -> tuple[tuple[_Lines, _Lines, _Lines], tuple[bool, ...]]:
    """The lines before, of and behind the program, cut as when a PRM is served."""
    text = row["response"]
    if not isinstance(text, str):
        raise RowError("'response' must be a text")
    place = (0, len(text)) if row.get("extraction") == "whole" else last_block(text, language)
    if place is None and language == "python" and _is_python(text):  # as the verifier `code` has it
        place = (0, len(text))
    spans = split(text, "code-line", language=language)

    def cut(chosen: list[StepSpan]) -> _Lines:
        return tuple(text[span.start : span.end] for span in chosen)

    start, end = place or (0, 0)
    inside = [span for span in spans if start <= span.start and span.end <= end]
    if all(span.neutral for span in inside):
        raise NoProgramError("'response' holds no program")
    before = [span for span in spans if span.end <= inside[0].start]
    behind = [span for span in spans if span.start >= inside[-1].end]
    return (cut(before), cut(inside), cut(behind)), tuple(span.neutral for span in inside)


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the model's style
            return bool(ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def lines_in(task: LabelTask, code_lines: int) -> int:
    """Lines of the prefix that ends with so many lines of code."""
    if not code_lines:
        return 0
    places = [place for place, idle in enumerate(task.neutral) if not idle]
    return places[code_lines - 1] + 1


def prefix_of(task: LabelTask, code_lines: int) -> str:
    """The program up to so many lines of code, with the last line's end."""
    text = "".join(task.lines[: lines_in(task, code_lines)])
    return text if not text or text.endswith("\n") else text + "\n"


def ask_for_rest(task: LabelTask, prefix: str) -> Prompt:
    """The prompt that has the policy continue a prefix, in the response or in a fenced block."""
    opening = "".join(task.before) if "response" in task.row else f"{FENCE}{task.language}\n"
    lead = opening + prefix
    messages = tuple(
        PromptMessage(said.role, (PromptPiece(said.content, trusted=False),))
        for said in task.prompt
    )
    return Prompt(messages, lead=(PromptPiece(lead, trusted=False),))


def labelled(task: LabelTask, feasible: int, *, passed: bool, cost: Cost) -> dict[str, Any]:
    """The output row; `feasible` counts the lines of code in the longest feasible prefix.

    `passed`: the program passes its tests as it is.
    """
    names = ("id", "prompt", "problem", "question", "subset", "checkpoint")
    kept = {name: task.row[name] for name in names if name in task.row}
    labels = list(label_lines(task.neutral, lines_in(task, feasible)))
    program: dict[str, Any] = {"code": task.program, "labels": labels}
    if "response" in task.row:
        around = [0] * len(task.before), [0] * len(task.behind)
        steps = [*task.before, *task.lines, *task.behind]
        program = {"steps": steps, "labels": [*around[0], *labels, *around[1]]}
    return {
        **kept,
        **program,
        "language": task.language,
        "passed": passed,
        "feasible_lines": feasible,
        "code_lines": task.code_lines,
        "calls": cost.calls,
        "completions": cost.completions,
        "executions": cost.executions,
        "tokens": cost.tokens,
        "key": task.key,
    }
