from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_cells_support import Process
from session_cells_tables import NASTY

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process("bash", tmp_path_factory.mktemp("shell")) as process:
        yield process


@pytest.fixture
def shell(shared: Process) -> Process:
    shared.fresh()
    return shared


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Process]:
    with Process("bash", tmp_path) as process:
        yield process


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# Laws

_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=60, deadline=None)
@given(text=_text)
def test_any_text_is_written_as_it_is(shared: Process, text: str) -> None:
    ran = shared.run(f"printf %s {_quoted(text)}; printf %s {_quoted(text)} >&2")
    assert ran.out == ran.err == text.encode()
    assert (ran.end, ran.exit_code, ran.value, ran.error) == ("completed", 0, None, None)


@settings(max_examples=30, deadline=None)
@given(text=_text, items=st.lists(_text, max_size=4), status=st.integers(0, 255))
def test_a_copys_state_is_the_originals(
    shared: Process, text: str, items: list[str], status: int
) -> None:
    words = " ".join(map(_quoted, items))
    shared.run(f'v={_quoted(text)}; a=({words}); declare -A m=([k]="$v"); set -- {words}')
    shared.run(f"f() {{ printf %s {_quoted(text)}; return {status}; }}; (exit {status})")
    shared.copy(go_on_as_copy=bool(status % 2))
    ran = shared.run('printf "%s\\0" "$?" "$v" "${m[k]}" "${#a[@]}" "$#" "${a[@]}" "$@"; f')
    wanted = [str(status), text, text, str(len(items)), str(len(items)), *items, *items, text]
    assert ran.out.decode().split("\0") == wanted
    assert ran.exit_code == status


@settings(max_examples=30, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from(["x=1", "x=$((x + 1))", "echo $x", "cd /", "cd /tmp", "pwd", "false",
        "echo $?",
                         "f() { echo f$x; }", "type f", "shopt -s nullglob", "echo /nothing*",
                         "y=(a b)",
                         "echo ${y[1]}", "alias q='echo quick'", "unset x", "export x",
                         "env | grep ^x=",
                         "echo ${z:-none}", "for i in 1 2; do echo $i; done",
                         "set -f; echo /*; set +f"]),
        max_size=10,
    ),
)  # fmt: skip
def test_cell_by_cell_is_as_in_one_piece(shared: Process, lines: list[str]) -> None:
    shared.fresh()
    whole = shared.run("\n".join(lines))
    shared.fresh()
    ran = [shared.run(line) for line in lines]
    assert b"".join(cell.out for cell in ran) == whole.out
    assert [cell.exit_code for cell in ran][-1:] == [whole.exit_code][: len(lines)]


@pytest.mark.parametrize(("code", "status", "out"), NASTY)
def test_a_nasty_cell_leaves_the_shell(
    shell: Process, code: str, status: int | None, out: bytes | None
) -> None:
    shell.run("kept=41; f() { echo $((kept + 1)); }")
    ran = shell.run(code)
    assert ran.end == "completed"
    assert status is None or ran.exit_code == status, ran
    assert out is None or ran.out == out
    for _ in range(2):
        after = shell.run("set +u; f; echo more >&2")
        assert (after.end, after.out, after.err[-5:]) == ("completed", b"42\n", b"more\n")


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("exit 3", 3), ("exec true", 0), ("exec sh -c 'echo other; exit 9'", 9),
     ("set -e; false; echo no", 1),
     ("kill -9 $$", 137), ("eval 'ex''it 5'", 5), ("set -o vi; set -e; false", None)],
)  # fmt: skip
def test_a_cell_that_ends_the_shell_gets_a_new_one_in_its_folder(
    own: Process, tmp_path: Path, code: str, exit_code: int | None
) -> None:
    (tmp_path / "sub").mkdir()
    own.run("kept=1; cd sub")
    ran = own.run(code)
    assert ran.end == "exited"
    assert exit_code is None or ran.exit_code == exit_code
    assert b"no" not in ran.out
    assert b"the shell has ended; a new one goes on in " in ran.err
    kept = b"1" if b"as it was before this cell" in ran.err else b""
    after = own.run('echo "[$kept]"; pwd')
    assert after.out == b"[" + kept + b"]\n" + str(tmp_path / "sub").encode() + b"\n"


def test_errexit_keeps_the_state_from_before_its_cell(own: Process) -> None:
    own.run("x=1; set -e")
    ran = own.run("x=2; false; x=3")
    assert (ran.end, ran.exit_code) == ("exited", 1)
    assert own.run("echo $x $-").out == b"1 ehiBs\n"


def test_a_shell_that_dies_between_cells_is_replaced(own: Process) -> None:
    own.run("(sleep 0.05; kill -9 $$) &")
    own.run("while :; do sleep 0.01; done")
    ran = own.run("echo on")
    assert ran.out == b"on\n"


# Descriptors, output


def test_no_descriptor_of_ours_is_open_in_a_cell(shell: Process) -> None:
    assert shell.run("exec ls /proc/self/fd").out.split() == [b"0", b"1", b"2", b"3"]
    assert shell.run("ls /proc/self/fd").out.split() == [b"0", b"1", b"2", b"3"]
    assert shell.run("readlink /proc/self/fd/0").out == b"/dev/null\n"


def test_output_larger_than_a_pipe(shell: Process) -> None:
    ran = shell.run("head -c 5000000 /dev/zero | tr '\\0' x; echo e{1..50000} >&2; false")
    assert ran.exit_code == 1
    assert ran.out == b"x" * 5_000_000
    assert ran.err.split()[-1] == b"e50000"


def test_an_empty_cell_does_nothing(shell: Process) -> None:
    shell.run("echo once")
    for code in ("", "\0", " ", "# words"):
        assert shell.run(code)[:2] == ("completed", 0)
        assert shell.run(code).out == b""


def test_a_long_cell_is_read_whole(shell: Process) -> None:
    text = "é" * 100_000
    assert shell.run(f'x={text}; echo ${{#x}}; printf %s "$x"').out == f"100000\n{text}".encode()


def test_output_streams_while_the_cell_runs(own: Process, tmp_path: Path) -> None:
    ran = own.run(
        "echo first; until [ -e go ]; do sleep 0.01; done; echo last",
        when=lambda p: b"first\n" in p.out and (tmp_path / "go").touch() is None,
    )
    assert ran.out == b"first\nlast\n"


# Interrupts


@pytest.mark.parametrize(
    "wait",
    ["sleep 99", "while :; do :; done", "for i in 1 2 3; do sleep 99; done",
     "cat /dev/zero > /dev/null",
     "f() { sleep 99; }; f", "sleep 99 & wait", "(sleep 99)", "sleep 99 | cat", "set -m; sleep 99",
     "x=$(sleep 99)", "source <(echo sleep 99)"],
)  # fmt: skip
def test_an_interrupt_ends_the_cell_and_leaves_the_shell(own: Process, wait: str) -> None:
    own.run("kept=1")
    ran = own.run(
        f"echo begun; {wait}; echo after",
        # A job that is just being made may miss the signal, as at any prompt.
        when=lambda p: b"begun" in p.out and (p.interrupt_soon(0.1) or True),
    )
    assert (ran.end, ran.out) == ("interrupted", b"begun\n")
    assert own.run("echo $kept").out == b"1\n"


@pytest.mark.parametrize("code", ["sleep 99", "while :; do :; done", "sleep 99; echo on"])
def test_interrupts_that_go_on_shift_no_answer(own: Process, code: str) -> None:
    own.run(":")
    for number in range(25):
        own.interrupt_soon(number * 0.0004, again_s=0.002)
        assert own.run(code).end == "interrupted"
        for again in range(5):  # they go on between and in these cells
            ran = own.run(f"echo {number}.{again}")
            assert ran.out in {b"", b"%d.%d\n" % (number, again)}
        own.calm()
        assert own.run(f"echo after {number}").out == b"after %d\n" % number


def test_an_interrupt_as_a_program_begins_ends_it_and_leaves_the_shell(own: Process) -> None:
    """The program is being made then, and may miss it; bash may wait for it, or for nobody."""
    own.run("kept=1")
    for number in range(100):
        own.interrupt_soon(number % 25 * 0.0001 + 0.0005, again_s=1)  # if it comes before the cell
        assert own.run("sleep 99").end == "interrupted"
        own.calm()
        assert own.holds() == []
    assert own.run("echo $kept").out == b"1\n"


def test_what_an_interrupt_reaches_has_a_while_to_end(own: Process, tmp_path: Path) -> None:
    """On a busy machine a program that was killed is there for as long."""
    (tmp_path / "late.py").write_text(
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (time.sleep(0.1), exit()))\n"
        "pathlib.Path('up').touch()\ntime.sleep(99)\n"
    )
    own.run("python3 late.py & until [ -e up ]; do sleep 0.02; done")
    own.interrupt_soon(0.2)
    assert own.run("sleep 99").end == "interrupted"
    own.calm()
    assert own.holds() == []


def test_a_program_that_takes_an_interrupt_ends_the_cell_too(own: Process) -> None:
    ran = own.run(
        "python3 -c 'import time; print(\"begun\", flush=True); time.sleep(99)'; echo after",
        when=lambda p: b"begun" in p.out and (p.interrupt_soon(0.1) or True),
    )
    assert (ran.end, ran.out) == ("interrupted", b"begun\n")
    assert b"KeyboardInterrupt" in ran.err


def test_an_interrupt_at_any_moment_shifts_no_answer(own: Process) -> None:
    """Its cell ends early or not at all; the next one is answered as ever."""
    own.run(":")
    for number in range(60):
        own.interrupt_soon(number * 0.0002)
        ran = own.run(f"echo {number}")
        assert ran.end in {"completed", "interrupted"}
        assert ran.out in {b"", b"%d\n" % number}
        own.calm()
        assert own.run(f"echo after {number}; (exit 5)").out == b"after %d\n" % number


# Copies


@pytest.mark.parametrize("as_copy", [False, True])
def test_what_a_shell_knows_is_in_its_copies(own: Process, tmp_path: Path, as_copy: bool) -> None:
    (tmp_path / "a folder").mkdir()
    own.run(
        "alias ll='echo aliased'; trap 'echo int' INT; umask 027; shopt -s extglob; cd 'a folder'"
    )
    own.run("g() { case $1 in !(a)) echo no a;; esac; }; h() { echo h; }; export -f h")
    own.run("export E='1  2'; declare -i n=3")
    own.run("readonly r='x'; declare -A m; unset HOME; set -o pipefail; declare -n ref=n")
    for _ in range(2):
        own.copy(go_on_as_copy=as_copy)
    ran = own.run(
        'll; trap -p INT; umask; g b; bash -c "h; echo \\$E"; n+=4; echo $n $ref $r "${HOME-none}"'
        "; m[k]=v; echo ${!m[@]}; false | true; echo $?; pwd"
    )
    assert ran.out.decode().splitlines() == [
        "aliased", "trap -- 'echo int' SIGINT", "0027", "no a", "h", "1 2", "7 7 x none", "k",
        "1",
        str(tmp_path / "a folder"),
    ]  # fmt: skip
    assert own.run("r=2").exit_code == 1


def test_copies_draw_the_same_numbers_unless_reseeded(own: Process) -> None:
    own.copy(go_on_as_copy=False)
    first = own.run("echo $RANDOM $RANDOM").out
    own.fresh()
    own.copy(go_on_as_copy=True)
    assert own.run("echo $RANDOM $RANDOM").out == first
    own.reseed(7)
    seven = own.run("echo $RANDOM").out
    own.reseed(8)
    assert own.run("echo $RANDOM").out != seven


def test_background_jobs_and_open_files_are_named(own: Process, tmp_path: Path) -> None:
    assert own.holds() == []
    own.run("sleep 99 & exec 7> seven")
    held = own.holds()
    assert len(held) == 2
    assert held[0].startswith("a background job (")
    assert held[1] == "a descriptor of the shell (7, seven)"
    own.run("kill %1; wait; exec 7>&-")
    assert own.holds() == []


def test_a_copy_runs_no_exit_trap(own: Process, tmp_path: Path) -> None:
    own.run("trap 'touch ran' EXIT")
    own.copy(go_on_as_copy=True)
    own.run(":")
    assert not (tmp_path / "ran").exists()


def test_new_descriptors_are_taken_up(tmp_path: Path) -> None:
    """What stdout is may change between cells: a shell's output follows."""
    with Process("bash", tmp_path) as process:
        process.run("x=1")
        for name in ("one", "two"):
            process.redirect(tmp_path / name)
            process.run("echo $x; x=$((x + 1))")
        assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["1\n", "2\n"]


def test_every_pair_of_nasty_cells_keeps_step(shell: Process) -> None:
    codes = [code for code, *_ in NASTY if "coproc" not in code][::4]
    for number, (one, other) in enumerate(itertools.product(codes, codes)):
        shell.run(one)
        shell.run(other)
        assert shell.run(f"set +u; echo step {number}").out == b"step %d\n" % number
