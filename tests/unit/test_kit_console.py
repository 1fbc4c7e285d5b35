"""What a command prints is what stands in the text: hints with an extra keep their brackets, on a
terminal and in a pipe, however narrow."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group
from rich.table import Table

from assay.cli.commands import doctor
from assay.cli.commands.doctor import DoctorFinding, show
from assay.clients.services import PACKAGES, PLUG_INS, absent_plug_ins, how_to_install
from assay.genrm import doctor as genrm_doctor
from assay.kit import tracing
from assay.kit.console import make_console
from assay.kit.pool.places import HOW_TO_INSTALL_RAY
from assay.kit.runs.progress import Display

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SHIPPED = ("clients", "genrm", "kit", "math", "plugins", "reward_server", "sandbox", "trainer")
# What rich would make something else of: tags, ends of tags, escapes, links, names of emoji.
_TEXTS = st.lists(
    st.sampled_from(
        [
            "[ray]",
            "[/ray]",
            "[bold]",
            "[/]",
            "\\[x]",
            "[link=a]",
            ":smile:",
            "[red on #fff]",
            "'./a",
        ]
    )
    | st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), max_size=8),
    min_size=1,
    max_size=6,
).map("".join)
_HINTS = {
    "ray": HOW_TO_INSTALL_RAY,
    "tracing": tracing.NEEDED,
    **{name: how_to_install(name) for name in (*PACKAGES.values(), *PLUG_INS)},
}


def printed(console: Console) -> str:
    """What came out, without its styles."""
    file = console.file
    assert isinstance(file, io.StringIO)
    return _STYLE.sub("", file.getvalue())


def consoles(width: int = 200) -> list[Console]:
    """A terminal and a pipe, as the commands make them."""
    terminal = make_console(file=io.StringIO(), width=width)
    terminal._force_terminal = True
    assert terminal.is_terminal
    return [terminal, make_console(file=io.StringIO(), width=width)]


@given(_TEXTS)
def test_text_is_printed_as_it_is(text: str) -> None:
    table = Table("of a table", title=text)
    table.add_row(text)
    for console in consoles():
        console.print(text)
        console.print(table)
        console.print(Group(text))
        assert printed(console).count(text) >= 4
        Display(console).note(text)
        assert printed(console).endswith(f"{text}\n")


@given(_TEXTS)
def test_a_bar_shows_its_names_as_they_are(text: str) -> None:
    terminal, _ = consoles()
    display = Display(terminal)
    display.begin(text, 2)
    display.aside(text)
    assert display._bar is not None
    terminal.print(display._bar)
    display.end()
    assert f"{text} {text}" in printed(terminal)


@pytest.mark.parametrize("name", sorted(_HINTS))
@pytest.mark.parametrize("width", [20, 80])
def test_the_doctor_prints_what_to_type_on_one_line(name: str, width: int) -> None:
    finding = DoctorFinding("what", f"not here; {_HINTS[name]}")
    assert "pip install" in _HINTS[name]
    for console in consoles(width):
        show([finding, DoctorFinding("a longer name", "fine", fine=True)], console)
        lines = printed(console).splitlines()
        assert lines[0].endswith(_HINTS[name])
        assert lines[1].split() == ["ok", "a", "longer", "name", "fine"]


def test_every_hint_with_an_extra_is_among_these(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that the sources hold; each has its brackets, and quotes that a shell wants."""
    assert sum("[" in hint for hint in _HINTS.values()) >= 3
    for hint in filter(lambda text: "[" in text, _HINTS.values()):
        assert re.search(r"pip install '[\w./-]+\[\w+\]'", hint), hint

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("assay.clients.services.version", absent)
    assert any(HOW_TO_INSTALL_RAY in sentence for sentence in absent_plug_ins())
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(genrm_doctor, "find_spec", lambda name: None)
    found = doctor.look_at_packages()
    found += [DoctorFinding(*line) for line in genrm_doctor.look()]
    for console in consoles(40):
        show(found, console)
        assert f"; {HOW_TO_INSTALL_RAY}\n" in printed(console)
        assert "pip install 'assay-rl-genrm[vllm]' brings it\n" in printed(console)


def test_every_command_prints_through_this_console(repository: Path) -> None:
    """Bars are the one thing that reads markup of its own accord: they are told not to."""
    made, columns = [], []
    for folder in _SHIPPED:
        for path in (repository / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if re.search(r"(?<![\w_])Console\(", text):
                made.append(path.relative_to(repository).as_posix())
            columns += re.findall(r"TextColumn\(([^()]*)\)", text)
            assert "from_markup" not in text, path
            assert not re.search(r"rich\.(print|get_console)|from rich import (?!box)", text), path
    assert made == ["kit/assay/kit/console.py"]
    assert len(columns) >= 3
    assert all("markup=False" in column for column in columns)


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
def test_the_command_itself_keeps_brackets(terminal: bool, tmp_path: Path) -> None:
    """`assay doctor` in an environment whose service says to type a word in brackets."""
    info = tmp_path / "bracket_service-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bracket-service\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[assay.doctor]\nbrackets = bracket_service:look\n")
    (tmp_path / "bracket_service.py").write_text(
        "def look():\n"
        "    return [('brackets', \"type: pip install './sandbox[ray]' :smile: [/b]\", None)]\n"
    )
    command = [sys.executable, "-c", "from assay.cli.__main__ import main; main()", "doctor"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "40", "TERM": "xterm"}
    out = _of_terminal if terminal else _of_pipe
    lines = [_STYLE.sub("", line) for line in out(command, environment).splitlines()]
    [line] = [line for line in lines if line.split()[:1] == ["brackets"]]
    assert line.endswith("  type: pip install './sandbox[ray]' :smile: [/b]")


def _of_pipe(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    ).stdout


def _of_terminal(command: list[str], environment: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    parts = []
    with subprocess.Popen(command, env=environment, stdout=theirs, stderr=theirs):
        os.close(theirs)
        with suppress(OSError):  # that is how the other end of a terminal closes
            while part := os.read(ours, 65536):
                parts.append(part)
    os.close(ours)
    return b"".join(parts).decode()
