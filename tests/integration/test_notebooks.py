"""The notebooks do what they say: each cell runs, in a fresh interpreter, and prints what stands
beneath it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import notebooks

NAMES = ("judge-answers", "read-a-training-run")


@pytest.fixture
def folder(repository: Path) -> Path:
    return repository / "docs" / "notebooks"


def test_these_are_all(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.ipynb" for name in NAMES]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_prints_what_it_shows(folder: Path, name: str) -> None:
    path = folder / f"{name}.ipynb"
    before = sorted(folder.iterdir())
    outputs = notebooks.run(path)
    for cell, text in zip(notebooks.read(path), outputs, strict=True):
        if "varies" in notebooks.tags(cell):
            assert len(text.splitlines()) == len(notebooks.printed(cell).splitlines()) > 0
        elif cell["cell_type"] == "code":
            assert text == notebooks.printed(cell), notebooks.source(cell)
    assert sorted(folder.iterdir()) == before, "it writes elsewhere"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_one_for_jupyter(folder: Path, name: str) -> None:
    """By the rules of nbformat 4.5: the keys of each cell, ids that differ; no picture is kept."""
    notebook = json.loads((folder / f"{name}.ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["language"] == "python"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        kept = {"id", "cell_type", "metadata", "source"}
        if cell["cell_type"] == "code":
            kept |= {"execution_count", "outputs"}
            assert cell["execution_count"] is None
            assert all(set(out) == {"name", "output_type", "text"} for out in cell["outputs"])
        assert set(cell) == kept
    assert (folder / f"{name}.ipynb").stat().st_size < 50_000


def test_what_it_installs_is_there(folder: Path) -> None:
    cells = notebooks.read(folder / "judge-answers.ipynb")
    [cell] = [cell for cell in cells if "installs" in notebooks.tags(cell)]
    paths = re.findall(r"'?(\.\./\.\./\w+)(?:\[\w+\])?'?", notebooks.source(cell))
    assert len(paths) == 5
    assert all((folder / path / "pyproject.toml").is_file() for path in paths)


def cell(text: str, *marks: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "id": "a",
        "metadata": {"tags": list(marks)},
        "source": text.splitlines(keepends=True),
        "execution_count": None,
        "outputs": [],
    }


def written(path: Path, *cells: dict[str, object]) -> Path:
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_cells_share_their_names_and_show_their_last_line(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.ipynb",
        cell("x = 41\nprint('said')\nx + 1"),
        cell("%pip install nothing", "installs"),
        cell("import os, pathlib\npathlib.Path.cwd().name, os.getpid() != 0, x"),
        cell("None"),
        cell("class P:\n    def _repr_png_(self): return b'\\x89PNG'\nP()"),
        cell(""),
    )
    outputs = notebooks.run(path)
    assert outputs == ["said\n42\n", "", f"({tmp_path.name!r}, True, 41)\n", "", "", ""]
    path.write_text(notebooks.with_outputs(path, outputs))
    assert [notebooks.printed(one) for one in notebooks.read(path)] == outputs
    assert "```sh\npip install nothing\n```" in notebooks.as_page(path)
    assert "```text\nsaid\n42\n```" in notebooks.as_page(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("class P:\n    def _repr_png_(self): return b'no'\nP()", "no picture"),
        ("def", "SyntaxError"),
        ("import os\nos._exit(0)", "said nothing"),
    ],
)
def test_a_cell_that_fails_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(RuntimeError, match=says):
        notebooks.run(written(tmp_path / "a.ipynb", cell(text)))


def test_check_finds_what_is_not_true_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    monkeypatch.setattr(notebooks.written, "ROOT", tmp_path)
    path = written(tmp_path / "a.ipynb", cell("print(1)"))
    assert notebooks.main(["write"]) == 0
    assert notebooks.main(["check"]) == 0
    path.write_text(path.read_text().replace("print(1)", "print(2)"))
    assert notebooks.main(["check"]) == 1
    assert "a.ipynb differs from what it prints" in capsys.readouterr().out


def test_the_script_tells_its_verbs() -> None:
    done = subprocess.run(
        [sys.executable, notebooks.__file__, "else"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "notebooks.py write" in done.stderr
