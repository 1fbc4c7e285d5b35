"""docs/extend/write-a-verifier.md is true: its verifier, package and test are run as written."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run


def blocks(repository: Path, language: str) -> list[str]:
    """The code blocks of the page in one language."""
    page = (repository / "docs" / "extend" / "write-a-verifier.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def block(repository: Path, text: str) -> str:
    """The one Python block that holds a text."""
    [found] = [one for one in blocks(repository, "python") if text in one]
    return found


@pytest.fixture
def package(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's package, installed by pip into a folder that Python's path holds."""
    pytest.importorskip("hatchling", reason="the page's package is built with hatchling")
    source, installed = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    (source / "shout.py").write_text(block(repository, "def shout("))
    (source / "pyproject.toml").write_text(blocks(repository, "toml")[0])
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check"]
    command += ["--target", str(installed), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    path = [str(installed), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    return installed


def scored(file: Path, function: str, rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The rows as `assay score` writes them."""
    given, out = file.with_name("rows.jsonl"), file.with_name(f"{function}.jsonl")
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["score", str(given), "-o", str(out), "--verifier", f"{file}:{function}"]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.slow
def test_the_functions_of_the_page_judge(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "my_rewards.py"
    file.write_text(block(repository, "def same_word("))
    rows = [
        {"response": " paris", "reference": "Paris"},
        {"response": "in Paris" * 5, "reference": "Paris"},
    ]
    for function, rewards, verdicts in (
        ("same_word", [1.0, 0.0], ["correct", "incorrect"]),
        ("short", [1.0, 0.5], ["scored", "scored"]),
        ("compute_score", [0.0, 0.5], ["incorrect", "incorrect"]),
    ):
        lines = scored(file, function, rows)
        assert [line["reward"] for line in lines] == rewards
        assert [line["verdict"] for line in lines] == verdicts


@pytest.mark.slow
def test_the_function_of_the_page_with_a_database_judges(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "capitals.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE c (country, capital)")
        connection.execute("INSERT INTO c VALUES ('France', 'Paris')")
        connection.commit()
    monkeypatch.setenv("CAPITALS_DB", str(database))
    file = tmp_path / "my_rewards.py"
    file.write_text(block(repository, "CAPITALS_DB"))
    asked = ("Paris", "France"), ("Rome", "France"), ("Rome", "Italy")
    rows = [{"response": response, "reference": country} for response, country in asked]
    right, wrong, unknown = scored(file, "capital", rows)
    assert (right["reward"], wrong["reward"]) == (1.0, 0.0)
    assert "raised LookupError at my_rewards.py:15" in unknown["fault"]["message"]


def test_the_page_is_short_and_whole(repository: Path) -> None:
    verifier, test = block(repository, "def shout("), block(repository, "def test_shout_")
    body = verifier.partition("@verifier")[2].strip().splitlines()
    assert len([line for line in body if line.strip()]) <= 16
    assert "check_verifier(" in test
    (project,) = blocks(repository, "toml")
    assert tomllib.loads(project)["project"]["entry-points"]["assay.verifiers"]


@pytest.mark.slow
def test_the_verifier_of_the_page_passes_the_test_of_the_page(
    package: Path, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_shout.py"
    test.write_text(block(repository, "def test_shout_"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    command += ["--rootdir", str(tmp_path), "-c", os.devnull]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert run(["verifiers", "shout"]) == 0
    assert "shout: The response is the reference in capitals." in capsys.readouterr().out
    assert (package / "shout.py").exists()
