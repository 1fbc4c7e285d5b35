"""Fixtures that every test may use."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# How long an example takes says more about the machine than about the code. The same examples every
# time, so that what lands is judged by what it changes; `make test-all` looks for new ones.
hypothesis.settings.register_profile("assay", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=300)
hypothesis.settings.load_profile("assay")

ROOT = Path(__file__).resolve().parent.parent

LONG = ("e2e", "faults", "integration")
"""Folders of tests that start servers and runs; the order within is random."""
DRAW = "ASSAY_TESTS_DRAW"
"""Names a draw of files whose slow tests run: whoever sets it repeats the draw."""
NOT_DRAWN = "slow, and its file was not drawn"
MOST_WORKERS = 6
WORKER_GB = 4  # with the servers and runs that its tests start

if "PYTEST_XDIST_WORKER" in os.environ:
    # Two processes with a thread for each CPU wait for one another; what they start inherits this.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: three workers for two CPUs, for many tests wait for a time to pass, as
    far as the memory suffices; 0 is no worker."""
    memory_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    workers = min(MOST_WORKERS, len(os.sched_getaffinity(0)) * 3 // 2, int(memory_gb / WORKER_GB))
    return workers if workers > 1 else 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What deals files out, where that is asked for."""
    if config.getoption("dist") != "loadfile":
        return None
    from workers_support import Files

    return Files(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders with long files come first, so that no worker has one left when the others end."""
    items.sort(key=lambda item: item.path.parent.name not in LONG)


def is_drawn(item: pytest.Item) -> bool:
    """Whether the slow tests of this one's file run: files share what they start."""
    share: float = item.config.getoption("slow_share")
    file = item.nodeid.partition("::")[0]
    return random.Random(f"{os.environ[DRAW]} {file}").random() < share


def pytest_configure(config: pytest.Config) -> None:
    del config
    os.environ.setdefault(DRAW, str(random.SystemRandom().randrange(10**6)))  # workers inherit it


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "slow" in item.keywords and not is_drawn(item):
        pytest.skip(NOT_DRAWN)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    left_out = sum(NOT_DRAWN in str(report.longrepr) for report in skipped)
    if left_out:
        terminalreporter.section("not run")
        told = f"{left_out} slow tests, of files that were not drawn ({DRAW}={os.environ[DRAW]})"
        terminalreporter.line(told, red=True)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark files, which are not part of the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("benchmark files are absent: expected them in ../shared/data")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow-share",
        type=float,
        default=1,
        metavar="SHARE",
        help=f"run the slow tests of so many of all files, drawn at random by {DRAW}; 1: of all",
    )
    parser.addoption(
        "--golden",
        action="append",
        default=[],
        metavar="FILE",
        help="tests/golden checks the rows of FILE, of golden.json's format, and no others",
    )
