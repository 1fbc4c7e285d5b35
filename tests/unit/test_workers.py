"""Which files `make test` deals to one worker."""

from __future__ import annotations

from pathlib import Path

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
