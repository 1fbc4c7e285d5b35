"""A folder that stops other users is found before a program is stopped by it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from assay.sandbox.jail import JailConfig, detect, reach


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with mode 0700, and an interpreter in it."""
    home = tmp_path_factory.mktemp("home folder")
    (home / "python" / "bin").mkdir(parents=True)
    (home / "python" / "bin" / "python3").touch(0o755)
    home.chmod(0o700)
    return home


def test_a_closed_folder_on_the_way_stops_whoever_goes_the_way(home: Path) -> None:
    wanted = [str(home / "python")]
    closed = reach.closed_way(wanted, shown=False)
    assert closed is not None
    assert home.is_relative_to(closed)  # the folder of temporary folders is closed itself
    assert reach.closed_way(wanted, shown=True) is None
    assert f"chmod o+rx {closed}" in reach.advice(closed)


def test_what_is_closed_itself_stops_everybody(home: Path) -> None:
    (home / "python").chmod(0o750)
    assert reach.closed_way([str(home / "python")], shown=True) == home / "python"
    assert reach.closed_way([str(home / "absent"), "/usr"], shown=False) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives programs users of their own")
def test_the_machine_s_trouble_names_the_folder_and_what_to_do(home: Path) -> None:
    config = replace(JailConfig(slot=5), python=str(home / "python" / "bin" / "python3"))
    missing = dict(detect(config).missing)
    assert "is closed to other users" in missing["uid"]
    assert "chmod o+rx" in missing["uid"]
