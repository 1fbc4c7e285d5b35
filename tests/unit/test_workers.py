"""Which files `make test` deals to one worker, and which tests it leaves out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workers_support import CANARIES, TOGETHER


def test_all_who_plant_the_canaries_where_programs_look_are_dealt_together(
    repository: Path,
) -> None:
    """They wait for one another, however they are dealt; apart, a worker stands still meanwhile."""
    planting = {
        path.relative_to(repository).as_posix()
        for path in (repository / "tests" / "faults").glob("test_*.py")
        if "canaries.planted()" in path.read_text()
    }
    assert planting == {file for file, what in TOGETHER.items() if what == CANARIES}


def test_a_worker_that_crashes_costs_the_test_that_it_ran(tmp_path: Path) -> None:
    """Of xdist 3.8's own dealing the last worker waits for ever."""
    for number in range(7):
        tests = 1 if number in (2, 5, 6) else 5  # a worker that joins is dealt one, or five
        (tmp_path / f"test_file_{number}.py").write_text(
            "import os, time, pytest\n"
            f"@pytest.mark.parametrize('number', range({tests}))\n"
            "def test_sleeps(number):\n"
            "    time.sleep(0.05)\n"
            f"    if {number} == 1 and number == 3: os.abort()\n"
        )
    (tmp_path / "conftest.py").write_text(
        "from workers_support import Files\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return Files(config, log)\n"
    )
    said = run(tmp_path, "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
    assert re.search(r"1 failed, 22 passed", said), said
    assert "crashed while running 'test_file_1.py::test_sleeps[3]'" in said


@pytest.mark.parametrize(
    ("workers", "minutes", "ran"), [("2", "0.0001", 2), ("0", "0", 4), ("0", "60", 4)]
)
def test_slow_tests_begin_until_their_time_is_over_and_the_others_always(
    tmp_path: Path, workers: str, minutes: str, ran: int
) -> None:
    shutil.copy(Path(__file__).parent.parent / "conftest.py", tmp_path)
    for number in range(2):
        (tmp_path / f"test_file_{number}.py").write_text(
            "import pytest\n@pytest.mark.slow\ndef test_slow(): pass\ndef test_quick(): pass\n"
        )
    said = run(tmp_path, "-n", workers, "--slow-until", minutes)
    assert f"{ran} passed" in said, said
    assert ("2 slow tests: the time of --slow-until is over" in said) == (ran == 2), said


def run(folder: Path, *options: str) -> str:
    """What pytest prints of the tests of a folder."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST_") and name != "ASSAY_TESTS_BEGAN"
    }
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist", *options, str(folder)],
        check=False,
        env=environment
        | {"PYTHONPATH": str(Path(__file__).parent.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.stdout
