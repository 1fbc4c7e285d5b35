"""One test for each row of the golden files."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden import checking

OWN = Path(__file__).parent / "own.json"


def files(config: pytest.Config) -> list[Path]:
    """Those asked for by --golden; else our own and the design's, where that is at hand."""
    asked = [Path(config.invocation_params.dir, name) for name in config.getoption("golden")]
    design = config.rootpath.parent / "shared" / "design" / "golden.json"
    return asked or [OWN, *([design] if design.is_file() else [])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "golden_row" not in metafunc.fixturenames:
        return
    cases = []
    for path in files(metafunc.config):
        try:
            found = checking.rows(path)
        except ValueError as error:
            raise pytest.UsageError(f"--golden: {error}") from error
        cases += [
            pytest.param(row, id=f"{path.stem}-{number}-{row['function']}")
            for number, row in enumerate(found)
        ]
    metafunc.parametrize("golden_row", cases)
