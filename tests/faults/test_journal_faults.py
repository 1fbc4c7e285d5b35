"""The journal of a real server: what it keeps, what a kill leaves, and what a broken file does."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients import Item, RewardClient
from assay.kit.errors import ConfigError
from assay.reward_server.journal.store import MIN_LIMIT_BYTES, Store
from assay.reward_server.journal.writer import Journal
from assay.viewer.journals.reader import Filter, Reader, Record
from journal_support import filled, settled


@contextmanager
def serving(path: Path, *, shell: str = "") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The server as a user starts it, with a journal; `shell` runs before it."""
    command = f"{shell} exec {sys.executable} -m assay.reward_server --port 0 --workers 1"
    with subprocess.Popen(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ASSAY_REWARD_JOURNAL": str(path), "ASSAY_REWARD_JOURNAL_MAX_MB": "8"},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("assay reward_server ready on "), line
            yield line.split()[-1], process
        finally:
            process.kill()


def records(path: Path, chosen: Filter | None = None) -> list[Record]:
    with Reader(path) as reader:
        return list(reader.each(chosen))


def wait_for(path: Path, entries: int) -> list[Record]:
    """What is there, once so many entries are."""
    for _ in range(300):
        if len(found := records(path)) >= entries:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{len(found)} of {entries} entries")


def stream(address: str, request_id: str) -> list[str]:
    """Scores a stream of two chunks; the ids of the results, sorted."""
    chunks = [reward_pb2.StreamScoreRequest(), reward_pb2.StreamScoreRequest()]
    for n, chunk in enumerate((chunks[0], chunks[0], chunks[1])):
        chunk.items.add(id=f"s{n}", verifier="exact", response="x", reference={"text": "x"})
    with grpc.insecure_channel(address) as channel:
        call = reward_pb2_grpc.RewardServiceStub(channel).StreamScore(
            iter(chunks), timeout=20, metadata=(("x-request-id", request_id),)
        )
        return sorted(result.id for part in call for result in part.results)


def items(count: int, *, chars: int = 10) -> list[Item]:
    return [
        Item(f"answer {n} " + "x" * chars, reference=f"answer {n}", verifier="exact")
        for n in range(count)
    ]


@pytest.mark.slow
def test_every_result_is_kept_and_a_kill_leaves_a_file_that_reads(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with serving(path) as (address, process), RewardClient(address) as client:
        batch = [
            Item("42", reference="42", verifier="exact", id="right", group_id="g"),
            Item("41", reference="42", verifier="exact", id="wrong"),
            Item("7", reference="7", verifier="nobody", id="unknown", prompt="Who?"),
            Item("42", reference="42", verifier="exact", id="again", group_id="g"),
        ]
        results = client.score(batch)
        assert [result.reward for result in results] == [1.0, 0.0, None, 1.0]
        said = {record["item_id"]: record for record in wait_for(path, 4)}
        right, wrong, unknown, again = (said[item.id] for item in batch)
        assert (right["verdict"], right["reward"], right["version"]) != (None, None, "")
        assert (wrong["response"], wrong["reference"], wrong["fault"]) == ("41", "42", None)
        assert (unknown["fault"], unknown["response"]) == ("UNKNOWN_VERIFIER", "7")
        assert unknown["prompt"] == [["user", "Who?"]]
        assert again["item_key"] == right["item_key"] != wrong["item_key"]
        assert again["group_id"] == "g"
        assert again["request_id"] == right["request_id"] != ""
        assert stream(address, "my-call") == ["s0", "s1", "s2"]
        streamed = wait_for(path, 7)[4:]
        assert {record["item_id"] for record in streamed} == {"s0", "s1", "s2"}
        assert {record["request_id"] for record in streamed} == {"my-call"}
        # Now a kill in the middle of much more.
        sent = 7
        for _ in range(10):
            client.score(items(200, chars=500))
            sent += 200
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = records(path)
    assert 7 <= len(left) <= sent
    assert [record["id"] for record in left] == list(range(1, len(left) + 1))
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with serving(path) as (address, process), RewardClient(address) as client:
        client.score(items(3))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert "the journal ends: 3 written, 0 dropped" in process.stderr.read()
    assert len(records(path)) == len(left) + 3


@pytest.mark.slow
def test_a_full_disk_turns_the_journal_off_and_scoring_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with serving(path, shell="ulimit -f 512;") as (address, process):
        with RewardClient(address) as client:
            client.score(items(5))
            wait_for(path, 5)
            for _ in range(10):
                results = client.score(items(100, chars=2000))
                assert all(result.reward == 0.0 for result in results)
            time.sleep(0.3)
            assert client.score([Item("1", reference="1", verifier="exact")])[0].reward == 1.0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr is not None
        log = process.stderr.read()
    assert log.count("the journal is off until the next start") == 1
    assert sum("journal" in line for line in log.splitlines()) <= 3, log
    kept = records(path)
    assert 5 <= len(kept) < 1006
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_wrong_path_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "assay.reward_server", "--journal", tmp_path / "none" / "journal"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "cannot be written: No such file or directory; name a file in a folder" in line


async def test_a_broken_file_turns_the_journal_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal"
    path.write_text("this is no data base, but somebody's notes" * 100)
    before = path.read_bytes()
    state = await filled(path, [[settled("a"), settled("b")]])
    assert (state.written, state.dropped) == (0, 2)
    assert "not a database" in state.trouble
    assert path.read_bytes() == before
    assert sum("the journal is off" in record.message for record in caplog.records) == 1


async def test_a_file_that_breaks_or_goes_turns_the_journal_off(tmp_path: Path) -> None:
    for name, harm in (
        ("gone", lambda path: path.unlink()),
        ("other", lambda path: (path.unlink(), path.write_text("another"))),
        ("cut", lambda path: os.truncate(path, 5000)),
    ):
        path = tmp_path / name
        await filled(path, [[settled(str(n), response="x" * 3000) for n in range(50)]])
        journal = Journal(path, MIN_LIMIT_BYTES)
        await journal.start()
        harm(path)
        for n in range(30):
            journal.offer([settled(str(n), response="y" * 3000)])
        await journal.close()
        state = journal.state()
        assert state.trouble not in {"", "closed"}, name
        assert state.written + state.dropped == 30


async def test_a_path_that_cannot_be_a_journals_is_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as other:
        other.execute("CREATE TABLE notes (text TEXT)")
    other.close()
    (tmp_path / "later").touch()
    await filled(tmp_path / "mine", [])
    later = sqlite3.connect(tmp_path / "mine")
    later.execute("PRAGMA user_version = 9")
    later.close()
    first = Journal(tmp_path / "shared", MIN_LIMIT_BYTES)
    await first.start()
    for path, words in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "journal", "No such file"),
        (tmp_path / ("x" * 300), "File name too long"),
        (foreign, "another program's data base"),
        (tmp_path / "mine", "format 9"),
        (tmp_path / "shared", "another server writes to it"),
    ):
        with pytest.raises(ConfigError, match=words):
            await Journal(path, MIN_LIMIT_BYTES).start()
    await first.close()


async def test_what_comes_while_the_last_batch_is_written_is_written_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, begun, go_on = Store.append, threading.Event(), threading.Event()

    def slow_disk(store: Store, rows: Any, dropped: int = 0) -> bool:
        begun.set()
        go_on.wait(20)
        return append(store, rows, dropped)

    monkeypatch.setattr(Store, "append", slow_disk)
    journal = Journal(tmp_path / "journal", MIN_LIMIT_BYTES)
    await journal.start()
    journal.offer([settled("first")])
    await asyncio.to_thread(begun.wait, 20)
    journal.offer([settled("second")])
    closing = asyncio.create_task(journal.close())
    await asyncio.sleep(0)  # it has asked the thread to end
    go_on.set()
    await closing
    assert [record["item_id"] for record in records(tmp_path / "journal")] == ["first", "second"]
    assert journal.state().dropped == 0
