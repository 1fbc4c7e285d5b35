"""Copies of a journal that is being written: whole, of one moment, never over another file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from assay.kit.errors import ConfigError
from assay.reward_server.journal.backup import back_up
from assay.reward_server.journal.command import journal
from assay.reward_server.journal.store import MIN_LIMIT_BYTES
from assay.reward_server.journal.writer import Journal
from assay.viewer.journals.reader import Reader
from journal_support import filled, settled


def ids(path: Path) -> list[int]:
    with Reader(path) as reader:
        return [record["id"] for record in reader.each()]


def made(path: Path, entries: int) -> None:
    asyncio.run(filled(path, [[settled(f"i{number}") for number in range(entries)]]))


def leftovers(folder: Path) -> list[Path]:
    return list(folder.glob("*.tmp*"))


def test_a_copy_is_the_journal_and_can_take_its_place(tmp_path: Path) -> None:
    source, copy = tmp_path / "j.sqlite", tmp_path / "copy.sqlite"
    made(source, 30)
    found = back_up(source, copy)
    assert (found.entries, found.last_id) == (30, 30)
    assert found.size_bytes == copy.stat().st_size
    with Reader(source) as one, Reader(copy) as other:
        assert list(one.each()) == list(other.each())
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.sqlite"]
    # Restored, the server goes on after its last entry.
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"j.sqlite{end}").unlink(missing_ok=True)
    copy.rename(source)
    made(source, 2)
    assert ids(source) == list(range(1, 33))


async def test_copies_made_while_it_is_written_are_of_one_moment(tmp_path: Path) -> None:
    source = tmp_path / "j.sqlite"
    kept = Journal(source, MIN_LIMIT_BYTES)
    await kept.start()
    ends = asyncio.Event()
    offered = 0

    async def write() -> None:
        nonlocal offered
        while not ends.is_set():
            kept.offer([settled(f"i{offered + n}", response="x" * 400) for n in range(20)])
            offered += 20
            await asyncio.sleep(0.002)

    def begun() -> None:
        while kept.state().written < 100:
            time.sleep(0.01)

    writing = asyncio.create_task(write())
    try:
        await asyncio.to_thread(begun)
        sizes = []
        for number in range(8):
            copy = tmp_path / f"copy{number}.sqlite"
            found = await asyncio.to_thread(back_up, source, copy)
            there = await asyncio.to_thread(ids, copy)
            # Nothing is missing from the middle, and it is what was told.
            assert there == list(range(there[0], there[-1] + 1))
            assert len(there) == found.entries
            assert found.last_id == there[-1]
            sizes.append(found.last_id)
        assert sizes == sorted(sizes)
        assert sizes[-1] > sizes[0]
    finally:
        ends.set()
        await writing
        await kept.close()
    state = kept.state()
    assert state.dropped == 0
    assert state.written == offered


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    source = tmp_path / "j.sqlite"
    made(source, 3)
    before = source.read_bytes()
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "same").symlink_to(source)
    os.link(source, tmp_path / "hard")
    for name in ("other", "dangling", "same", "hard", "j.sqlite"):
        with pytest.raises(ConfigError, match="is there already"):
            back_up(source, tmp_path / name)
    assert other.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert source.read_bytes() == before
    assert not leftovers(tmp_path)


def test_of_two_backups_at_once_one_gets_the_name(tmp_path: Path) -> None:
    source, copy = tmp_path / "j.sqlite", tmp_path / "copy.sqlite"
    made(source, 500)
    program = "import sys; from assay.reward_server.journal.command import journal; journal()"
    command = [sys.executable, "-c", program, "backup", str(source), str(copy)]
    racing = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)
    ]
    for one in racing:
        one.communicate()
    assert sorted(one.returncode for one in racing) == [0, 1, 1]
    assert len(ids(copy)) == 500
    assert not leftovers(tmp_path)


def test_what_goes_wrong_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "j.sqlite"
    made(source, 300)
    missing = tmp_path / "no" / "copy.sqlite"
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        back_up(source, missing)
    with pytest.raises(ConfigError, match="no such file"):
        back_up(tmp_path / "nothing", tmp_path / "copy")
    stranger = tmp_path / "stranger.sqlite"
    with sqlite3.connect(stranger) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(ConfigError, match="is no journal"):
        back_up(stranger, tmp_path / "copy")
    # A page in the middle is broken: the copy is checked.
    for end in ("-wal", "-shm"):
        (tmp_path / f"j.sqlite{end}").unlink(missing_ok=True)
    data = bytearray(source.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = os.urandom(4096)
    source.write_bytes(bytes(data))
    with pytest.raises(ConfigError, match=r"not sound|cannot be copied|malformed"):
        back_up(source, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert not leftovers(tmp_path)


def test_the_command_says_what_it_kept(tmp_path: Path) -> None:
    source, copy = tmp_path / "j.sqlite", tmp_path / "copy.sqlite"
    made(source, 5)
    done = CliRunner().invoke(journal, ["backup", str(source), str(copy)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("5 entries up to number 5, ")
