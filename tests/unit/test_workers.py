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


@pytest.mark.slow
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


FILES = 20


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """A folder of files with two slow tests each, and a quick one."""
    shutil.copy(Path(__file__).parent.parent / "conftest.py", tmp_path)
    slow = "@pytest.mark.slow\n@pytest.mark.parametrize('n', (1, 2))\ndef test_slow(n): pass\n"
    for number in range(FILES):
        (tmp_path / f"test_file_{number}.py").write_text(
            f"import pytest\n{slow}def test_quick(): pass\n"
        )
    return tmp_path


def passed(said: str) -> int:
    return int(re.findall(r"(\d+) passed", said)[-1])


@pytest.mark.parametrize(("share", "ran"), [("0", FILES), ("1", 3 * FILES)])
def test_slow_tests_run_of_no_file_or_of_all_and_the_others_always(
    marked: Path, share: str, ran: int
) -> None:
    said = run(marked, "-n", "0", "--slow-share", share)
    assert passed(said) == ran, said
    assert (f"{2 * FILES} slow tests, of files that were not drawn" in said) == (ran == FILES), said


def test_a_file_is_drawn_as_a_whole_and_a_draw_can_be_repeated(marked: Path) -> None:
    said = run(marked, "-n", "2", "--slow-share", "0.5", "-v")
    slow, draw = passed(said) - FILES, re.findall(r"ASSAY_TESTS_DRAW=\d+", said)[-1]
    assert 0 < slow < 2 * FILES  # but for one draw of 2 ** 19
    ran = {line for line in said.splitlines() if "test_slow" in line and "PASSED" in line}
    names = sorted(line.split("test_file_")[1].split(".")[0] for line in ran)
    assert all(names.count(name) == 2 for name in names)
    again = run(marked, "-n", "0", "--slow-share", "0.5", setting=draw)
    assert passed(again) == slow + FILES


def run(folder: Path, *options: str, setting: str = "") -> str:
    """What pytest prints of the tests of a folder; a setting is one of the environment."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST_") and name != "ASSAY_TESTS_DRAW"
    }
    if setting:
        environment["ASSAY_TESTS_DRAW"] = setting.partition("=")[2]
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
