"""docs/write-a-verifier.md does what it says: its verifier, package and test are run as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from assay.cli.main import run


def blocks(repository: Path, language: str) -> list[str]:
    """The code blocks of the page in one language."""
    page = (repository / "docs" / "write-a-verifier.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.fixture
def package(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's package, installed by pip into a folder that Python's path holds."""
    pytest.importorskip("hatchling", reason="the page's package is built with hatchling")
    source, installed = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    (source / "shout.py").write_text(blocks(repository, "python")[0])
    (source / "pyproject.toml").write_text(blocks(repository, "toml")[0])
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check"]
    command += ["--target", str(installed), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    path = [str(installed), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    return installed


def test_the_page_is_short_and_whole(repository: Path) -> None:
    verifier, test = blocks(repository, "python")
    body = verifier.partition("@verifier")[2].strip().splitlines()
    assert len([line for line in body if line.strip()]) <= 16
    assert "check_verifier(" in test
    (project,) = blocks(repository, "toml")
    assert tomllib.loads(project)["project"]["entry-points"]["assay.verifiers"]


def test_the_verifier_of_the_page_passes_the_test_of_the_page(
    package: Path, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_shout.py"
    test.write_text(blocks(repository, "python")[1])
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
