"""Programs to label: read from rows, cut into lines, written as rows for `assay train-rm`. Pure.

A row has a prompt, a program that a policy wrote for it ("code"), and the tests that it is held
against ("tests", in the shapes of `assay.clients.row_tests`). What comes out is the row of a PRM,
{"prompt", "code", "labels"}: 1 up to the longest feasible prefix, -1 behind it, 0 for comments and
blank lines.

Prefixes are counted in lines of code: a comment behind the last line of one is not in it, for the
policy to write anew. So the search takes ceil(log2(lines of code + 1)) steps at most.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.api.execution.v1 import execution_pb2
from assay.clients.preferences import Said, steps_of
from assay.clients.row_items import RowError
from assay.clients.row_tests import read_tests
from assay.genrm.engines.base import Message, Piece, Prompt
from assay.genrm.steps import label_lines, spans_of

FENCE = "```"


@dataclass(frozen=True, slots=True)
class Task:
    """A program to label.

    Attributes:
        key: a digest of prompt, program, tests and language; what a resumed run knows it by.
        prompt: what the policy was asked.
        lines: of the program, put together they are the program.
        neutral: for each line, whether it is a comment or blank.
        suite: the tests.
        language: of the program, as the sandbox names it.
        row: as it came.
    """

    key: str
    prompt: tuple[Said, ...]
    lines: tuple[str, ...]
    neutral: tuple[bool, ...]
    suite: execution_pb2.TestSuite
    language: str
    row: Mapping[str, Any]

    @property
    def code_lines(self) -> int:
        """Lines that are neither comment nor blank."""
        return len(self.lines) - sum(self.neutral)

    @property
    def program(self) -> str:
        """The whole."""
        return "".join(self.lines)

    @property
    def most_calls(self) -> int:
        """The most prefixes that the search asks about."""
        return math.ceil(math.log2(self.code_lines + 1))


@dataclass(frozen=True, slots=True)
class Cost:
    """What labelling took.

    Attributes:
        calls: prefixes that were asked about.
        completions: sampled.
        executions: programs that the sandbox ran against their tests; equal ones are run once.
        tokens: written by the policy.
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


def task_of(row: Mapping[str, Any], language: str = "python", *, comments: bool = False) -> Task:
    """Reads a row.

    Args:
        row: "prompt" (or "problem"), "code", "tests", and "language" where it is another.
        language: of a row that does not say.
        comments: label comments as if they were code, which leaves out a guard against a policy
            that writes many of them.

    Raises:
        RowError: it lacks something; the text says what to write.
    """
    code = row.get("code")
    if not isinstance(code, str) or not code.strip():
        raise RowError("'code' must be a program that is not blank")
    lines = tuple(code.splitlines(keepends=True))
    parsed = steps_of({**row, "labels": [1] * len(lines)}, "signed")
    named = str(row.get("language") or language)
    neutral = tuple(span.neutral for span in spans_of(lines, "code-line", named))
    if comments:
        neutral = tuple(not line.strip() for line in lines)
    if all(neutral):
        raise RowError("'code' is nothing but comments")
    if "tests" not in row:
        raise RowError("'tests' is missing; write what the program is held against")
    try:
        suite = read_tests(row["tests"])
    except ValueError as error:
        raise RowError(f"'tests': {error}") from None
    told = json.dumps(
        [[(said.role, said.content) for said in parsed.prompt], code, row["tests"], named],
        sort_keys=True,
        default=str,
    )
    key = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return Task(key, parsed.prompt, lines, neutral, suite, named, row)


def lines_in(task: Task, code_lines: int) -> int:
    """Lines of the prefix that ends with so many lines of code."""
    if not code_lines:
        return 0
    places = [place for place, idle in enumerate(task.neutral) if not idle]
    return places[code_lines - 1] + 1


def prefix_of(task: Task, code_lines: int) -> str:
    """The program up to so many lines of code, and the end of the last one's line."""
    text = "".join(task.lines[: lines_in(task, code_lines)])
    return text if not text or text.endswith("\n") else text + "\n"


def ask_for_rest(task: Task, prefix: str) -> Prompt:
    """The prompt that has the policy go on with a prefix, within a fenced block."""
    lead = f"{FENCE}{task.language}\n{prefix}"
    messages = tuple(
        Message(said.role, (Piece(said.content, trusted=False),)) for said in task.prompt
    )
    return Prompt(messages, lead=(Piece(lead, trusted=False),))


def labelled(task: Task, feasible: int, *, passed: bool, cost: Cost) -> dict[str, Any]:
    """The row that comes out.

    Args:
        task: the program.
        feasible: lines of code in the longest feasible prefix.
        passed: the program passes its tests as it is.
        cost: what it took.
    """
    kept = {
        name: task.row[name] for name in ("id", "prompt", "problem", "subset") if name in task.row
    }
    return {
        **kept,
        "code": task.program,
        "labels": list(label_lines(task.neutral, lines_in(task, feasible))),
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
