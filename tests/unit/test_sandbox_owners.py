"""What is swept is what a dead service left, and nothing of a living one's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.sandbox.jail import cgroups, owners


def entry(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir()
    return path


def parts(name: str) -> list[str]:
    return name.removeprefix(owners.PREFIX).split("-")


def name_of_another_process() -> str:
    code = "from assay.sandbox.jail import owners; print(owners.name(5))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    ).stdout.strip()


def test_what_a_living_process_owns_is_not_left(tmp_path: Path) -> None:
    assert owners.owner_and_box(owners.name(7)) == (os.getpid(), 7)
    assert not owners.is_left(entry(tmp_path, owners.name(7)))


def test_what_a_dead_process_owned_is_left_also_with_an_ending(tmp_path: Path) -> None:
    name = name_of_another_process()
    assert owners.is_left(entry(tmp_path, name))
    assert owners.is_left(entry(tmp_path, f"{name}-x7_k"))


def test_a_process_id_that_is_used_again_is_not_the_owner(tmp_path: Path) -> None:
    pid, started, namespace, number = parts(owners.name(1))
    earlier = f"{owners.PREFIX}{pid}-{int(started) - 1}-{namespace}-{number}"
    assert owners.is_left(entry(tmp_path, earlier))


def test_numbers_of_another_process_namespace_say_nothing(tmp_path: Path) -> None:
    pid, started, namespace, number = parts(name_of_another_process())
    elsewhere = f"{owners.PREFIX}{pid}-{started}-{int(namespace) + 1}-{number}"
    assert not owners.is_left(entry(tmp_path, elsewhere))


def test_other_names_are_nobodys(tmp_path: Path) -> None:
    for name in ("assay-box-1-0", "assay-box-a-b-c-d", "assay-box-", "1-1-1-1", "assay-process-1"):
        assert owners.owner_and_box(name) is None
        assert not owners.is_left(entry(tmp_path, name))


@pytest.mark.parametrize("version", [1, 2])
def test_groups_are_swept_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """In every hierarchy, also where another service was started; living ones stay."""
    kinds = ("memory", "pids", "cpuacct") if version == 1 else ("",)
    dead, alive = name_of_another_process(), owners.name(1)
    parents = [tmp_path / kind / part for kind in kinds for part in ("a.slice/b.scope", "c.slice")]
    for parent in parents:
        for name in (dead, alive, "assay-box-1-0", "somebody-else"):
            (parent / name).mkdir(parents=True)
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    cgroups.sweep(everywhere=True)
    for parent in parents:
        left = sorted(path.name for path in parent.iterdir())
        assert left == sorted([alive, "assay-box-1-0", "somebody-else"])
