"""`assay session`: what is typed or piped becomes cells, what comes of them is shown."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.commands.session import session as command
from assay.cli.sessions.reading import is_command, is_whole, parts_of, read_cell
from assay.cli.sessions.showing import as_json, exit_code, reason, size, used
from assay.clients.execution import Output
from assay.clients.sessions import CellEnd, CellResult, CellUsage
from assay.clients.testing import FakeSessionServer, SessionKnobs

LINES = st.text(st.characters(codec="ascii", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85"))


@given(st.lists(LINES, max_size=6))
def test_a_script_without_marks_is_one_cell(lines: list[str]) -> None:
    script = "\n".join(line.replace("\n", " ").lstrip(":#") for line in lines)
    expected = [script] if script.strip() else []
    assert [part.strip("\n") for part in parts_of(script)] == [one.strip("\n") for one in expected]


def test_marks_and_commands_part_a_script() -> None:
    script = "a = 1\n\n# %% next\nif a:\n    :no\n:checkpoint x \n#%%\nb\n:quit\n"
    assert list(parts_of(script)) == ["a = 1\n", "if a:\n    :no", ":checkpoint x", "b", ":quit"]


@pytest.mark.parametrize(
    ("language", "lines", "cell"),
    [
        ("python", ["x = 1"], "x = 1"),
        ("python", ["if x:", "  y", ""], "if x:\n  y\n"),
        ("python", ["f(", "1)"], "f(\n1)"),
        ("python", ["'''", "", "'''"], "'''\n\n'''"),
        ("python", ["x = ="], "x = ="),
        ("python", ["x = '''", ":files", "'''"], "x = '''\n:files\n'''"),
        ("python", [":files"], ":files"),
        ("python", [""], ""),
        ("bash", ["echo 1"], "echo 1"),
        ("bash", ["for i in 1; do", "echo; done"], "for i in 1; do\necho; done"),
        ("bash", ["echo 'a", "b'"], "echo 'a\nb'"),
        ("bash", ["echo \\", "a"], "echo \\\na"),
        ("bash", ["cat <<X", "a", "X"], "cat <<X\na\nX"),
        ("bash", ["done"], "done"),
    ],
)
def test_a_prompt_reads_on_until_a_cell_is_whole(
    language: str, lines: list[str], cell: str
) -> None:
    left = iter([*lines, "NEVER ASKED FOR"])
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return next(left)

    assert read_cell(language, ask) == cell
    assert len(prompts) == len(lines)
    assert len(set(prompts[1:])) <= 1


def test_slices_at_the_start_of_a_line_are_no_commands() -> None:
    assert not is_command(":1]")
    assert not is_command("a[:b]")
    assert is_command(":fork")
    assert is_whole("python", "a[:1]")


@pytest.mark.parametrize(
    ("result", "code", "words"),
    [
        (CellResult(CellEnd.COMPLETED), 0, ""),
        (CellResult(CellEnd.COMPLETED, exit_code=3), 3, "exit code 3"),
        (CellResult(CellEnd.EXITED, exit_code=2), 2, "exit code 2"),
        (CellResult(CellEnd.RAISED), 1, ""),
        (CellResult(CellEnd.DIED, signal=9), 137, "died of signal 9 (SIGKILL)"),
        (CellResult(CellEnd.DIED, exit_code=4), 4, "died with exit code 4"),
        (
            CellResult(CellEnd.MEMORY_LIMIT, session_over=True, detail="too\nmuch"),
            124,
            "memory limit: too much; the session is over",
        ),
    ],
)
def test_how_a_cell_ends_is_told_as_shells_tell_it(
    result: CellResult, code: int, words: str
) -> None:
    assert (exit_code(result), reason(result)) == (code, words)


@pytest.mark.parametrize("end", CellEnd)
def test_no_end_but_success_has_the_code_of_success(end: CellEnd) -> None:
    result = CellResult(end, signal=9 if end is CellEnd.DIED else 0)
    assert (exit_code(result) == 0) == result.ok


@given(st.integers(0, 2**39))
def test_sizes_have_three_figures(count: int) -> None:
    number, unit = size(count).split()
    assert len(number.replace(".", "")) <= 4
    factor = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    assert abs(float(number) * factor - count) <= 0.01 * count


def test_what_was_used_is_one_line() -> None:
    usage = CellUsage(
        cpu_time_s=0.0015, wall_time_s=2.5, session_cpu_time_s=1.0, memory_bytes=2**20, files=1
    )
    assert used(usage) == "2.5 s · CPU 1.5 ms of 1 s · 1 MiB · 1 file, 0 bytes"


def test_what_json_cannot_hold_is_left_out() -> None:
    for plain in ({1, 2}, b"x", float("nan"), [object()]):
        assert as_json(CellResult(CellEnd.COMPLETED, plain=plain))["plain"] is None
    facts = as_json(CellResult(CellEnd.COMPLETED, plain=[1], stdout=Output(b"\xff")))
    assert (facts["plain"], facts["stdout"]) == ([1], "\ufffd")


@pytest.fixture
def server() -> Iterator[FakeSessionServer]:
    with FakeSessionServer() as made:
        yield made


def run(monkeypatch: pytest.MonkeyPatch, address: str, script: str, *flags: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(script))
    code = command.main(["--target", address, *flags], standalone_mode=False)
    assert isinstance(code, int)
    return code


def test_a_script_prints_what_its_cells_print(
    monkeypatch: pytest.MonkeyPatch, server: FakeSessionServer, capfd: pytest.CaptureFixture[str]
) -> None:
    script = "x = 41\nprint('hi')\n# %%\nx + 1\n"
    assert run(monkeypatch, server.address, script) == 0
    assert capfd.readouterr().out == "hi\n42\n"
    assert server.living == {}


def test_the_first_cell_that_fails_ends_a_script(
    monkeypatch: pytest.MonkeyPatch, server: FakeSessionServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, server.address, "1 / 0\n# %%\nprint('never')") == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "ZeroDivisionError: division by zero" in err
    assert run(monkeypatch, server.address, "raise SystemExit(7)") == 7
    assert run(monkeypatch, server.address, "print(1)\n:quit\nprint(2)") == 0


def test_checkpoints_forks_and_files_by_command(
    monkeypatch: pytest.MonkeyPatch,
    server: FakeSessionServer,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "in.txt").write_text("given")
    script = f"""
x = 1
:put {tmp_path}/in.txt
:checkpoint one
x = 2
:fork other
x = 3
with open('in.txt', 'a') as f: f.write(' more')
:get in.txt {tmp_path}/out.txt
:use python
x
:rollback
x
:files
"""
    assert run(monkeypatch, server.address, script) == 0
    out, err = capfd.readouterr()
    assert out == "2\n1\n"
    assert "5 bytes  in.txt" in err.replace("    ", "")
    assert (tmp_path / "out.txt").read_text() == "given more"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (":rolback", "rollback"),
        (":rollback", "no checkpoint"),
        (":use x", "no session x"),
        (":put", "write :put PATH"),
        (":get nothing", "no file nothing"),
        (":bash", "bash"),
    ],
)
def test_a_command_that_cannot_be_says_why(
    monkeypatch: pytest.MonkeyPatch,
    server: FakeSessionServer,
    capfd: pytest.CaptureFixture[str],
    line: str,
    words: str,
) -> None:
    assert run(monkeypatch, server.address, f"{line}\nprint('never')") == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert words in err


@pytest.mark.parametrize(
    ("knobs", "code", "words"),
    [
        (SessionKnobs(lose=1), 125, "fault SESSION_LOST"),
        (SessionKnobs(cut=1), 125, "fault UNREACHABLE"),
        (SessionKnobs(kill=1), 137, "died of signal 9"),
    ],
)
def test_a_fault_is_told_apart_from_what_the_program_did(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    knobs: SessionKnobs,
    code: int,
    words: str,
) -> None:
    with FakeSessionServer(knobs=knobs) as server:
        assert run(monkeypatch, server.address, "1") == code
    assert words in capfd.readouterr().err


def test_json_is_one_object_for_each_cell(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with FakeSessionServer() as server:
        script = "print('é')\n[1]\n# %%\n1 / 0\n"
        assert run(monkeypatch, server.address, script, "--json") == 1
    first, second = map(json.loads, capfd.readouterr().out.splitlines())
    assert (first["stdout"], first["plain"], first["end"]) == ("é\n", [1], "completed")
    assert second["error"]["name"] == "ZeroDivisionError"
    with FakeSessionServer(knobs=SessionKnobs(lose=1)) as server:
        assert run(monkeypatch, server.address, "1", "--json") == 125
    [fault, _] = map(json.loads, capfd.readouterr().out.splitlines())
    assert fault["fault"] == "SESSION_LOST"
