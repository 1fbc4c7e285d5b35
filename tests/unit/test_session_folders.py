"""Copies of a session's files: a tree equals its copy, whatever a program made of it."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.sandbox.zygote.folders import Copying

NAMES = st.sampled_from(["a", "b", "c.txt", "ä", "n\nl", ".hidden"])
DATA = st.binary(max_size=200)
LEAF = st.one_of(
    st.tuples(st.just("file"), DATA, st.sampled_from([0o600, 0o644, 0o4755, 0o000])),
    st.tuples(st.just("link"), st.sampled_from(["a", "/etc/passwd", "../..", "nowhere"])),
    st.tuples(st.just("fifo"), st.sampled_from([0o600, 0o644])),
)
TREE = st.recursive(
    LEAF, lambda below: st.dictionaries(NAMES, below, max_size=4), max_leaves=12
).filter(lambda tree: isinstance(tree, dict))


def write(folder: Path, tree: dict[str, object]) -> None:
    for name, what in tree.items():
        path = folder / name
        if isinstance(what, dict):
            path.mkdir()
            write(path, what)
        elif what[0] == "file":  # type: ignore[index]
            path.write_bytes(what[1])  # type: ignore[index]
            path.chmod(what[2])  # type: ignore[index]
        elif what[0] == "link":  # type: ignore[index]
            path.symlink_to(what[1])  # type: ignore[index]
        else:
            os.mkfifo(path, what[1])  # type: ignore[index]


def described(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content: object = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes() if os.geteuid() == 0 or status.st_mode & 0o400 else None
        elif stat.S_ISLNK(status.st_mode):
            content = str(path.readlink())
        name = str(path.relative_to(folder))
        found[name] = (status.st_mode, content, status.st_mtime_ns)
    return found


@contextmanager
def two_folders() -> Iterator[tuple[Path, Path]]:
    base = Path(tempfile.mkdtemp())
    try:
        source, target = base / "source", base / "target"
        source.mkdir()
        target.mkdir()
        yield source, target
    finally:
        subprocess.run(["rm", "-rf", base], check=True)  # a path too deep for Python's own


def copy(source: Path, target: Path, skip: set[str] | None = None) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY
    here, there = os.open(source, flags), os.open(target, flags)
    copying = Copying(os.geteuid(), os.getegid())
    try:
        copying.folder(here, there, skip or set())
    finally:
        copying.close()
        os.close(here)
        os.close(there)


@pytest.mark.skipif(os.geteuid() != 0, reason="the keeper is root, and reads files of any mode")
@settings(max_examples=60, deadline=None)
@given(TREE)
def test_a_copy_equals_its_tree(tree: dict[str, object]) -> None:
    with two_folders() as (source, target):
        write(source, tree)
        copy(source, target)
        assert described(target) == described(source)


def test_hard_links_stay_links_and_holes_stay_holes() -> None:
    with two_folders() as (source, target):
        (source / "below").mkdir()
        (source / "one").write_bytes(b"x" * 100)
        os.link(source / "one", source / "below" / "two")
        with (source / "sparse").open("wb") as file:
            file.seek(50 * 2**20)
            file.write(b"end")
        copy(source, target)
        assert (target / "one").stat().st_ino == (target / "below" / "two").stat().st_ino
        assert (target / "sparse").stat().st_size == 50 * 2**20 + 3
        assert (target / "sparse").stat().st_blocks < 2**20 / 512
        assert (target / "sparse").read_bytes()[-3:] == b"end"


def test_a_deep_tree_needs_no_recursion_and_few_descriptors() -> None:
    with two_folders() as (source, target):
        here = os.open(source, os.O_RDONLY | os.O_DIRECTORY)
        for _ in range(1500):  # deeper than a path may be long, and than Python recurses
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        copy(source, target)
        depth, here = 0, os.open(target, os.O_RDONLY | os.O_DIRECTORY)
        while "d" in os.listdir(here):  # noqa: PTH208  # a descriptor
            below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here, depth = below, depth + 1
        os.close(here)
        assert depth == 1500
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_what_is_shown_by_others_is_left_out() -> None:
    with two_folders() as (source, target):
        (source / "shown").mkdir()
        (source / "shown" / "big").write_bytes(b"x")
        (source / "own").write_bytes(b"y")
        copy(source, target, {"shown"})
        assert [path.name for path in target.iterdir()] == ["own"]
