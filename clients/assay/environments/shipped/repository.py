r"""`repository`: the policy changes files in a shell; hidden tests of them are the verdict.

    {"code": "from calc import add\ndef test_add(): assert add(1, 2) == 3"}
    {"run": "main.py", "stdin": "1 2", "stdout": "3"}

are tests of a row; docs/use/sessions-episodes.md has its columns.

`guided` is Agent-RLVR's second attempt (arXiv 2506.11425), made where the first fails; guidance is
in no loss. Here it is a column of the data, not written from the attempt. Without `afresh` both
attempts are one conversation, and what is left in the end counts for both. With it the second is
the agent `guided`'s, which reads the task and its guidance, and begins with the row's files. Each
earns what its own files do; method.turn_credit's unit = "agent" compares guided attempts alone.

    python -m assay.environments.shipped.repository ROWS.jsonl > proved.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.clients.execution import TestReport
from assay.clients.faults import make_fault
from assay.clients.types import Component, Fault, Judgement
from assay.environments.cells import OF_FILES
from assay.environments.environment import EpisodeFault, Proof, Row
from assay.environments.selftest import prove
from assay.environments.services import EpisodeSandbox
from assay.environments.shipped.python import ProgramSettings
from assay.environments.shipped.shell import ShellEnvironment
from assay.environments.shipped.workspaces import (
    files_of,
    is_tested,
    size_of,
    test_jobs,
    tests_of,
    workspace_of,
)
from assay.environments.types import POLICY, Observation, Reply, ToolCall
from assay.kit.errors import ConfigError
from assay.kit.reasons import Reason

GUIDED = "guided"
"""The agent of a second attempt that begins afresh."""
_OF_FILES = OF_FILES | {Reason.INVALID_TEST}


@dataclass(frozen=True, slots=True)
class RepositorySettings(ProgramSettings):
    """Of `repository`.

    Attributes:
        folder: where relative paths of rows begin.
        scoring: "all": 1 where all tests pass; "fraction": their share.
        test_s: of each test, on the clock and of CPU.
        workspace_mb: more is a failure.
        guided: a second attempt.
        afresh: it is another agent's, in a conversation and a workspace of its own.
    """

    folder: str = ""
    scoring: str = "all"
    test_s: float = 20.0
    workspace_mb: int = 8
    guided: bool = False
    afresh: bool = False

    def __post_init__(self) -> None:
        """Raises ConfigError for a scoring that there is not."""
        if self.scoring not in {"all", "fraction"}:
            raise ConfigError(f"scoring {self.scoring!r} is neither 'all' nor 'fraction'")
        if self.afresh and not self.guided:
            raise ConfigError("afresh is of a second attempt: set guided, too")


class RepositoryEnvironment(ShellEnvironment):
    """A shell in a repository, judged by tests that its policy never sees."""

    name = "repository"
    needs = ("prompt", "tests")
    Settings = RepositorySettings
    state_read_by = "all"
    _attempts = 0
    _first: Judgement | None = None  # of an attempt that another one followed

    def files(self, row: Row) -> Mapping[str, bytes | str]:
        """The workspace."""
        try:
            test_jobs(tests_of(row), {}, 1.0)
            return {**self.settings.files, **workspace_of(row, self.settings.folder)}
        except ConfigError as error:
            raise EpisodeFault(make_fault(Reason.MALFORMED_ROW, str(error))) from error

    async def turn(self, turn: Reply) -> Any:
        """The end; or guidance, once, where the attempt fails."""
        self._attempts += 1
        guidance = str(self.row.get("guidance") or "")
        if not (self.settings.guided and guidance) or self._attempts > 1:
            return None
        judged = await self._judged()
        if not isinstance(judged, Judgement) or judged.verdict == "correct":
            return None
        if not self.settings.afresh:
            return guidance
        self._first = judged
        assert self.session is not None  # noqa: S101  # made by reset
        await self.session.close()
        prompt = await self.reset(self.row)
        return Observation.user(f"{prompt}\n\n{guidance}", agent=GUIDED, context=GUIDED)

    async def reward(self) -> Any:
        """Tests the workspace's files, in runs of their own; by agent after a fresh attempt."""
        judged = await self._judged()
        return judged if self._first is None else {POLICY: self._first, GUIDED: judged}

    async def _judged(self) -> Judgement | Fault:
        assert self.session is not None  # noqa: S101  # made by reset
        most = self.settings.workspace_mb * 2**20
        files = await self.session.files(most, is_tested)
        if files is None or size_of(files) > most:
            return _judgement(0.0, 0, 0, f"the workspace has more than {most} bytes, or many files")
        judged = await self._tested(files)
        if isinstance(judged, Fault) and judged.reason in _OF_FILES:
            # Whose doing? Where the files that the row came with can be tested, it is the policy's.
            before = await self._tested(self._original())
            if not isinstance(before, Fault):
                text = f"its files make the tests impossible: {judged.message}"
                return _judgement(0.0, 0, 0, text[:900])
        return judged

    def _original(self) -> dict[str, bytes]:
        given = self.files(self.row)
        return {
            path: one if isinstance(one, bytes) else one.encode() for path, one in given.items()
        }

    async def _tested(self, files: Mapping[str, bytes]) -> Judgement | Fault:
        jobs = test_jobs(tests_of(self.row), files, self.settings.test_s)
        there = [job for job in jobs if job is not None]
        results = await self.shared.run_tests(there) if there else []
        passed = 0
        failure = "" if len(there) == len(jobs) else "a program to run is missing"
        for result in results:
            if not isinstance(result, TestReport):
                return result
            passed += result.all_passed
            first = result.first_failure
            if first is not None and not failure:
                failure = f"test {first.name or '?'}: {first.verdict}: {first.explanation}"
        share = passed / len(jobs)
        reward = float(passed == len(jobs)) if self.settings.scoring == "all" else share
        return _judgement(reward, passed, len(jobs), failure[:900])

    @classmethod
    def proofs(cls, settings: ProgramSettings) -> Sequence[Proof]:
        """What is right earns 1; nothing, and what would end the tests, earn 0."""
        del settings
        code = "from calc.core import add\ndef test_add():\n    assert add(2, 2) == 4\n"
        row = {
            "prompt": "add() subtracts; mend it.",
            "files": {"calc/__init__.py": "", "calc/core.py": "def add(a, b):\n    return a - b\n"},
            "tests": [{"code": code}],
        }
        edit = ToolCall("edit_file", {"path": "calc/core.py", "old": "a - b", "new": "a + b"})
        leave = ToolCall(
            "bash", {"command": "echo 'import os; os._exit(0)' | tee calc/core.py conftest.py"}
        )
        return (
            Proof(row, (edit, "done"), 1.0),
            Proof(row, ("done",), 0.0),
            Proof(row, (leave, "done"), 0.0),
        )


def row_proofs(row: Row) -> Sequence[Proof]:
    """A row's solution earns 1; nothing earns 0.

    Raises:
        ConfigError: it has no solution.
    """
    solution = files_of({"files": row.get("solution")})
    if not solution:
        raise ConfigError("it has no `solution`, so nothing shows that its tests can be passed")
    writes = [
        ToolCall("write_file", {"path": path, "content": content.decode("utf-8", "replace")})
        for path, content in solution.items()
    ]
    return (Proof(row, (writes, "done"), 1.0), Proof(row, ("done",), 0.0))


def main(path: str) -> int:
    """Writes the rows of a file that are proved; why others are not goes to stderr."""
    kept = 0
    with RepositoryEnvironment.open(RepositorySettings()) as sandbox:
        for number, line in enumerate(Path(path).read_text().splitlines(), start=1):
            try:
                why = _why_not(json.loads(line), str(Path(path).parent), sandbox)
            except (ValueError, ConfigError) as error:
                why = str(error)
            if why:
                print(f"row {number}: {why}", file=sys.stderr)
            else:
                kept += 1
                print(line)
    return 0 if kept else 1


def _why_not(row: Row, folder: str, sandbox: EpisodeSandbox) -> str:
    settings = RepositorySettings(folder=folder)
    for one in prove(RepositoryEnvironment, settings, None, sandbox, proofs=row_proofs(row)):
        if not one.ok:
            judgement = one.outcome.result.judgement
            found = judgement.explanation if judgement else one.found
            who = "its solution" if one.number == 1 else "who does nothing"
            return f"{who} must earn {one.proof.reward:g}: {found[:500]}"
    return ""


def _judgement(reward: float, passed: int, count: int, failure: str) -> Judgement:
    component = Component("tests", reward)
    text = f"passes {passed} of {count} tests" + (f"; {failure}" if failure else "")
    verdict = "correct" if count and passed == count else "incorrect"
    return Judgement(reward, verdict, (component,), explanation=" ".join(text.split()))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m assay.environments.shipped.repository ROWS.jsonl")
    try:
        sys.exit(main(sys.argv[1]))
    except (ConfigError, OSError) as error:
        sys.exit(str(error))
