"""Programs that mean to break the loop that runs cells: the cells after each must work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from session_cells_support import Process
from session_cells_tables import HOSTILE


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Process]:
    with Process("python", tmp_path) as process:
        yield process


@pytest.mark.parametrize("name", HOSTILE)
def test_no_program_breaks_the_loop(tmp_path: Path, name: str) -> None:
    with Process("python", tmp_path) as process:
        process.run("kept = 41")
        first = process.run(HOSTILE[name])
        assert first.end in {"completed", "raised", "exited"}
        assert first.error is None or max(map(len, first.error)) < 200_000
        process.run("pass")
        for _ in range(3):
            assert process.run("1 +").end == "raised"
            assert process.run("7 * 6").value == {"text/plain": "42"}
        if name != "no globals":
            assert process.run("kept + 1").value == {"text/plain": "42"}


def test_a_fork_of_the_programs_ends_with_the_cell(own: Process) -> None:
    own.run("import os, sys")
    assert own.run("if os.fork() == 0: sys.exit(5)\nos.wait()[1] >> 8").plain == "5"
    ran = own.run("if os.fork() == 0: raise ValueError('child')\nos.wait()[1] >> 8")
    assert (ran.plain, ran.err.strip().splitlines()[-1]) == ("1", b"ValueError: child")
    ran = own.run("if os.fork() == 0:\n    print('child')\nelse:\n    os.wait()")
    assert ran.out == b"child\n"
    assert own.run("1").plain == "1"


def test_a_trace_function_sees_the_program_alone(own: Process) -> None:
    own.run(
        "import sys; seen = set()\ndef t(f, e, a): seen.add(f.f_code.co_filename); return t\n"
        "sys.settrace(t)"
    )
    own.run("def g(): return 1\ng()")
    assert own.run("sys.settrace(None); sorted(seen)").plain == '["<cell 2>","<cell 3>"]'
