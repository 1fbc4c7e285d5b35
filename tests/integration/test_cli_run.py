"""`assay run`: a program in the sandbox, as if it ran here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.cli.commands.run import language_of
from assay.kit.errors import ConfigError
from sandbox_service import running


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running("--slots", "1", "--languages", "python,c,bash") as (address, _):
        yield address


def assay_run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    code = "import sys; from assay.cli.main import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "run", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=90)


def write(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_bytes_arguments_and_the_exit_code_pass_through(address: str, tmp_path: Path) -> None:
    source = (
        "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read() + bytes([0, 255]))\n"
        "sys.stderr.write(repr(sys.argv[1:]))\nsys.exit(7)\n"
    )
    file = write(tmp_path, "a.py", source)
    done = assay_run("--target", address, "--stdin", "-", file, "-x", "y z", stdin=b"\xfe\n")
    assert done.returncode == 7
    assert done.stdout == b"\xfe\n\0\xff"
    assert done.stderr == b"['-x', 'y z']"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "source", "flags", "code", "words"),
    [
        ("a.py", "print(1)", (), 0, b""),
        ("a.py", "while True: pass", ("--wall-limit", "0.5"), 124, b"wall time limit"),
        ("a.sh", "kill -SEGV $$", (), 139, b"SIGSEGV"),
        ("a.c", "int main() { return x; }", (), 1, b"error"),
        ("a.sql", "select 1", (), 125, b"UNKNOWN_LANGUAGE"),
        ("a.py", "pass", ("--wall-limit", "1e6"), 125, b"INVALID_LIMIT"),
        ("a.txt", "echo hi", ("--language", "bash"), 0, b""),
    ],
)
def test_how_it_ends_is_told_as_shells_tell_it(
    address: str,
    tmp_path: Path,
    *,
    name: str,
    source: str,
    flags: tuple[str, ...],
    code: int,
    words: bytes,
) -> None:
    done = assay_run("--target", address, *flags, write(tmp_path, name, source))
    assert done.returncode == code, done
    assert words in done.stderr
    if not words:
        assert done.stderr == b""


def test_what_was_cut_is_said(address: str, tmp_path: Path) -> None:
    file = write(tmp_path, "a.py", "print('x' * 2_000_000)")
    done = assay_run("--target", address, file)
    assert done.returncode == 0
    assert len(done.stdout) == 2**20
    assert b"of 2000001 bytes of stdout the first 1048576 were kept" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.py",), "No such file"),
        (("--target", "nonsense", "x.py"), "is not HOST:PORT"),
        (("x.unknown",), "names no language"),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = assay_run(*arguments)
    assert done.returncode == 1
    text = done.stderr.decode()
    assert text.startswith("assay: error: ")
    assert words in text
    assert text.count("\n") == 1


@pytest.mark.slow
def test_without_a_target_a_sandbox_is_started(tmp_path: Path) -> None:
    done = assay_run(write(tmp_path, "a.py", "print(6 * 7)"))
    if b"isolation" in done.stderr:
        pytest.skip("this machine's isolation is below the default floor")
    assert (done.returncode, done.stdout) == (0, b"42\n"), done.stderr


def test_every_suffix_names_a_language() -> None:
    assert language_of(Path("x.PY")) == "python"
    with pytest.raises(ConfigError, match="pass --language"):
        language_of(Path("Makefile"))
