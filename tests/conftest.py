"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

# How long an example takes says more about the machine than about the code. The same examples every
# time, so that what lands is judged by what it changes; `make test-all` looks for new ones.
hypothesis.settings.register_profile("assay", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=300)
hypothesis.settings.load_profile("assay")

ROOT = Path(__file__).resolve().parent.parent


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
        "--golden",
        action="append",
        default=[],
        metavar="FILE",
        help="tests/golden checks the rows of FILE, of golden.json's format, and no others",
    )
