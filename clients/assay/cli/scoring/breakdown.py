"""Counts of scored rows by task, with pass@k and maj@k. Pure.

All of it is read from lines of output, so that a resumed run counts as an uninterrupted one does.

A *problem* is what several rows answer: those of one task with one value of the group key or,
without it, with one prompt and one reference. A row with neither belongs to none. pass@k is the
unbiased estimate of arXiv 2107.03374, equation 1, averaged over the problems with k judged rows or
more; it counts the best verdict. maj@k is the chance that the most frequent answer (by its text) of
a problem's judged rows is right; a row without an answer votes for nothing, and ties are drawn
from. Both have their 95 % interval over problems like these (`mean_over_problems`). A row with a
fault is counted, and is in no average.

Memory holds about 200 bytes for each row of a problem.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.cli.scoring.rows import input_value
from assay.clients.rows.items import Defaults, Keys
from assay.clients.types import ServerInfo
from assay.kit.runs.stats import majority, mean_over_problems, pass_at_k

_NO_TASK = "(none)"
_BEST = ("correct", "better")
_SORTED = json.JSONEncoder(sort_keys=True)


@dataclass(frozen=True, slots=True)
class LineKeys:
    """What a line of output answers.

    Attributes:
        group: key of what the rows of one problem share; empty: the prompt says it.
    """

    keys: Keys
    defaults: Defaults
    group: str

    def task(self, line: Mapping[str, Any]) -> str:
        """The row's task; without one, its verifier."""
        own = self._text(line, self.keys.task) or self._text(line, self.keys.verifier)
        return own or self.defaults.task or self.defaults.verifier or _NO_TASK

    def route(self, line: Mapping[str, Any]) -> tuple[str, str]:
        """The verifier and task by which the server judges it."""
        verifier = self._text(line, self.keys.verifier) or self.defaults.verifier
        task = self._text(line, self.keys.task) or self.defaults.task
        return verifier, "" if verifier else task

    def problem(self, line: Mapping[str, Any]) -> bytes | None:
        """A digest of what the row answers; None: nothing says it."""
        group = self._value(line, self.group)
        if group is not None:
            return _digest([group])
        prompt = self._value(line, self.keys.prompt)
        if not prompt:
            return None
        return _digest(
            [prompt, *(self._value(line, key) for key in (self.keys.reference, self.keys.tests))]
        )

    def _value(self, line: Mapping[str, Any], key: str) -> Any:
        return input_value(line, key) if key else None

    def _text(self, line: Mapping[str, Any], key: str) -> str:
        value = self._value(line, key)
        return value if isinstance(value, str) else ""


@dataclass(slots=True)
class ProblemVotes:
    """The rows of one problem: all of them, and answer and correctness of those judged."""

    rows: int = 0
    answers: list[bytes | None] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)


@dataclass(slots=True)
class TaskCounts:
    """The rows of one task.

    Attributes:
        reward_sum: over judged rows.
        best: judged rows by verdict, of those that are their verifier's best.
        problems: by digest.
    """

    judged: int = 0
    reward_sum: float = 0.0
    best: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    problems: dict[bytes, ProblemVotes] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Judged or not."""
        return self.judged + self.faults.total()

    @property
    def mean_reward(self) -> float | None:
        """Over judged rows; None without any."""
        return self.reward_sum / self.judged if self.judged else None

    @property
    def share(self) -> float | None:
        """Of the best verdict among judged rows; None without any."""
        return self.best.total() / self.judged if self.judged else None

    @property
    def repeats(self) -> bool:
        """Some problem has several rows."""
        return any(votes.rows > 1 for votes in self.problems.values())

    def numbers(self, task: str) -> dict[str, Any]:
        """As plain data; `problems` is null where no problem has several rows."""
        return {
            "task": task,
            "rows": self.rows,
            "judged": self.judged,
            "faults": dict(self.faults.most_common()),
            "mean_reward": self.mean_reward,
            "best_verdicts": dict(self.best.most_common()),
            "share_best": self.share,
            "problems": self._problems() if self.repeats else None,
        }

    def _problems(self) -> dict[str, Any]:
        judged = [votes for votes in self.problems.values() if votes.answers]
        sizes = sorted(len(votes.answers) for votes in judged)
        most = sizes[-1] if sizes else 0
        return {
            "count": len(self.problems),
            "judged": len(judged),
            "responses": [sizes[0], most] if sizes else None,
            "pass_at": {
                str(2**n): _pass_at(judged, 2**n) for n in range(most.bit_length()) if judged
            },
            "maj": _majority(judged),
        }


class Breakdown:
    """Counts of lines by task; `reads` says what a line answers, `info` which verdict is best."""

    def __init__(self, reads: LineKeys, info: ServerInfo) -> None:
        self._reads = reads
        self._best = cache(lambda route: best_verdicts(info, *route))
        self.tasks: dict[str, TaskCounts] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Counts one line of output."""
        counts = self.tasks.setdefault(self._reads.task(line), TaskCounts())
        digest = self._reads.problem(line)
        votes = None if digest is None else counts.problems.setdefault(digest, ProblemVotes())
        if votes is not None:
            votes.rows += 1
        if line["fault"] is not None:
            counts.faults[line["fault"]["reason"]] += 1
            return
        best = line["verdict"] in self._best(self._reads.route(line))
        counts.judged += 1
        counts.reward_sum += line["reward"]
        if best:
            counts.best[line["verdict"]] += 1
        if votes is not None:
            answer = line["answer"]
            votes.answers.append(_digest(answer) if answer else None)
            votes.correct.append(best)

    def numbers(self) -> list[dict[str, Any]]:
        """One object for each task, in the order of their first rows."""
        return [counts.numbers(task) for task, counts in self.tasks.items()]

    def report(self) -> RenderableType:
        """The table by task, and that of pass@k where prompts repeat."""
        numbers = self.numbers()
        repeating = [task for task in numbers if task["problems"]]
        tables = [_table_of_tasks(numbers)]
        if repeating:
            tables.append(_table_of_problems(repeating))
        return Group(*tables)


def best_verdicts(info: ServerInfo, verifier: str, task: str) -> tuple[str, ...]:
    """The verdicts that count as right: correct and better, else the first that a verifier lists.

    A profile gives the verdicts of its parts, which it need not list: never its first.
    """
    judge = info.find(verifier, task)
    if judge is None or judge.is_profile or set(_BEST) & set(judge.verdicts):
        return _BEST
    return judge.verdicts[:1] or _BEST


def _pass_at(judged: list[ProblemVotes], k: int) -> dict[str, Any]:
    enough = [votes.correct for votes in judged if len(votes.correct) >= k]
    values = [pass_at_k(len(correct), sum(correct), k) for correct in enough]
    return asdict(mean_over_problems(values, sum(map(len, enough)) / k))


def _majority(judged: list[ProblemVotes]) -> dict[str, Any] | None:
    """None where no row has an answer."""
    if not any(answer is not None for votes in judged for answer in votes.answers):
        return None
    values = [majority(votes.answers, votes.correct) for votes in judged]
    return asdict(mean_over_problems(values, len(values)))


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(_SORTED.encode(value).encode(), digest_size=12).digest()


def _table_of_tasks(tasks: list[dict[str, Any]]) -> Table:
    table = Table()
    table.add_column("task", overflow="fold")
    for name in ("rows", "judged", "faults", "mean reward", "best verdict"):
        table.add_column(name, justify="right")
    for task in tasks:
        table.add_row(
            Text(task["task"]),
            str(task["rows"]),
            str(task["judged"]),
            str(sum(task["faults"].values())),
            "-" if task["mean_reward"] is None else f"{task['mean_reward']:.4f}",
            _best(task),
        )
    return table


def _best(task: Mapping[str, Any]) -> Text:
    if task["share_best"] is None:
        return Text("-")
    names = ", ".join(task["best_verdicts"])
    return Text(f"{100 * task['share_best']:.1f} % {names}".rstrip())


def _table_of_problems(tasks: list[dict[str, Any]]) -> Table:
    table = Table(caption="95 % intervals over problems like these")
    table.add_column("task", overflow="fold")
    for name in ("problems", "rows each", "estimate", "value", "95 % interval", "of problems"):
        table.add_column(name, justify="right")
    for task in tasks:
        found = task["problems"]
        low, high = found["responses"] or (0, 0)
        each = str(high) if low == high else f"{low} to {high}"
        known = [(f"pass@{k}", estimate) for k, estimate in found["pass_at"].items()]
        known += [("maj@k", found["maj"])] if found["maj"] is not None else []
        first = Text(task["task"]), str(found["count"]), each
        for n, (name, estimate) in enumerate(known or [("-", None)]):
            table.add_row(*(("", "", "") if n else first), name, *_estimate(estimate))
        table.add_section()
    return table


def _estimate(found: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if found is None:
        return "-", "-", "0"
    interval = f"{100 * found['low']:.1f} to {100 * found['high']:.1f}"
    return f"{100 * found['value']:.1f} %", interval, str(found["problems"])
