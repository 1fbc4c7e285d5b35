"""Episodes whose sessions are killed at random: judged rightly, or a fault; never a wrong zero."""

from __future__ import annotations

import os

import pytest
from bench.episodes import play

from assay.environments import Ending, ToolError, ToolResult, tool
from assay.environments.shipped.python import PythonEnvironment
from assay.kit.errors import CallError

pytestmark = [
    pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks"),
    pytest.mark.slow,
]


class Naive(PythonEnvironment):
    """What others do: a lost session is an answer like any other."""

    @tool
    async def python(self, code: str) -> ToolResult:
        """Runs code.

        Args:
            code: the code.
        """
        try:
            return await PythonEnvironment.python(self, code)
        except CallError as error:
            raise ToolError(str(error)) from error


def test_killed_sessions_are_faults_and_the_others_are_judged_by_what_they_did() -> None:
    book = play(80, kill_every_s=0.05, places=30)
    assert book.untrue == []
    assert book.whole
    assert book.started == 80
    assert book.killed
    assert book.faults["SESSION_LOST"] == book.faults.total() > 0
    assert set(book.endings) == {Ending.ANSWERED, Ending.FAULT}
    assert book.judged > 5  # a busy machine has more of them killed


def test_the_book_finds_out_who_calls_a_lost_session_an_answer() -> None:
    book = play(60, kill_every_s=0.05, places=30, kind=Naive)
    assert book.untrue
    assert not book.whole
