"""The viewer's index where sources are cut, grow, vanish or lie, and where its own file breaks."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import pytest

from assay.kit.runs.rollouts import files_in, path_for, thin, write_rollouts
from assay.reward_server.journal.store import MIN_LIMIT_BYTES, Store
from assay.viewer.api import ViewerApi
from assay.viewer.journals.reader import SPAN
from viewer_sources_support import (
    ask,
    entry,
    every,
    fill,
    make_run,
    plain_journal,
    plain_run,
    problems,
    rollout,
    shown,
    write_step,
)


def seen(path: Path, cache: Path) -> ViewerApi:
    """A viewer that has indexed what is there."""
    api = ViewerApi([path], cache, background=False)
    api.index_all()
    return api


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.97])
def test_a_file_that_is_cut_shows_its_whole_rows_and_says_so(tmp_path: Path, share: float) -> None:
    run = make_run(tmp_path / "run", draws=40)
    path = path_for(run / "rollouts", 2)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with seen(run, tmp_path / "cache") as api:
        assert shown(api) == plain_run(run)
        if share:
            assert f"{path.name} is cut short" in problems(api)
        path.write_bytes(data)
        api.index_all()
        assert shown(api) == plain_run(run)
        assert len(shown(api)) == 240
        assert problems(api) == ""


def test_every_cut_of_a_file_is_read(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", steps=[1], draws=2)
    path = path_for(run / "rollouts", 1)
    data = path.read_bytes()
    with seen(run, tmp_path / "cache") as api:
        for end in range(0, len(data), 7):
            path.write_bytes(data[:end])
            api.index_all()
            assert shown(api) == plain_run(run), end


def test_a_thinned_run_keeps_what_is_there(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", steps=range(1, 31))
    with seen(run, tmp_path / "cache") as api:
        gone = every(api, step="2")[0]["id"]
        thin(run / "rollouts", 1e-5)
        api.index_all()
        assert len(files_in(run / "rollouts")) < 30
        assert shown(api) == plain_run(run)
        assert "steps are gone" in problems(api)
        assert api.answer("api/item", [("id", gone)])[0] == 404


def test_two_processes_tell_of_a_rollout_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", steps=[1])
    folder = run / "rollouts"
    for process in (12, 2):
        rows = [rollout(1, draw, process=process, trained=[[0, 4]]) for draw in (0, process)]
        write_rollouts(path_for(folder, 1, process=process), rows)
    with seen(run, tmp_path / "cache") as api:
        assert shown(api) == plain_run(run)
        builder = api._builder
        before = builder._units_to_do(1, builder.sources[1])
        assert before == [], "a step that is indexed is not read again"


def test_a_live_run_and_a_live_journal_are_followed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "all" / "run", steps=[1])
    journal = tmp_path / "all" / "verdicts.sqlite"
    with contextlib.closing(Store(journal, MIN_LIMIT_BYTES)) as store:
        store.append([astuple(entry(number)) for number in range(5)])
        with seen(tmp_path / "all", tmp_path / "cache") as api:
            for step in (2, 3):
                write_step(run, step)
                store.append([astuple(entry(number)) for number in range(5 * step, 5 * step + 5)])
                api.index_all()
                assert shown(api, source="run") == plain_run(run)
                assert shown(api, source="verdicts.sqlite") == plain_journal(journal)
            states = {one["id"]: one["state"] for one in ask(api, "sources")["sources"]}
            assert states == {"run": "live", "verdicts.sqlite": "live"}


def test_what_expires_in_a_journal_leaves(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    text = "x" * 20_000
    with contextlib.closing(Store(path, MIN_LIMIT_BYTES)) as store:
        store.append([astuple(entry(number, response=text)) for number in range(40)])
        with seen(path, tmp_path / "cache") as api:
            first = every(api)[-1]["id"]
            for batch in range(1, 12):
                rows = [astuple(entry(40 * batch + n, response=text)) for n in range(40)]
                assert store.append(rows)
            assert store.expired
            api.index_all()
            numbers = {int(one["id"].rpartition(":")[2]) for one in every(api)}
            with contextlib.closing(sqlite3.connect(path)) as database:
                assert numbers == {row[0] for row in database.execute("SELECT id FROM entries")}
                plan = database.execute(f"EXPLAIN QUERY PLAN {SPAN.format('entries')}").fetchall()
                assert not any("SCAN entries" in row[3] for row in plan)
            assert api.answer("api/item", [("id", first)])[0] == 404


def test_a_journal_of_an_older_format(tmp_path: Path, repository: Path) -> None:
    path = tmp_path / "old.sqlite"
    script = repository / "tests" / "unit" / "journal_format_1.sql"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(script.read_text(encoding="utf-8"))
    with seen(path, tmp_path / "cache") as api:
        assert [one[4:8] for one in shown(api)] == [one[4:8] for one in plain_journal(path)]
        for one in every(api):
            ask(api, "item", id=one["id"])


@pytest.mark.parametrize("fewer", [2, 5, 9])
def test_another_journal_in_its_place(tmp_path: Path, fewer: int) -> None:
    path = fill(tmp_path / "verdicts.sqlite", map(entry, range(5)))
    with seen(path, tmp_path / "cache") as api:
        assert len(every(api)) == 5
        path.unlink()
        fill(path, (entry(number + 100, verifier="math") for number in range(fewer)))
        api.index_all()
        assert shown(api) == plain_journal(path)


def test_another_run_in_its_place(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with seen(run, tmp_path / "cache") as api:
        shutil.rmtree(run)
        make_run(run, steps=[2, 7], draws=5)
        api.index_all()
        assert shown(api) == plain_run(run)


def test_a_source_that_goes_is_said(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    journal = fill(tmp_path / "verdicts.sqlite", map(entry, range(4)))
    with ViewerApi([run, journal], tmp_path / "cache", background=False) as api:
        api.index_all()
        identities = [one["id"] for one in every(api)]
        shutil.rmtree(run)
        journal.unlink()
        api.index_all()
        assert problems(api).count("cannot be read") == 2
        for identity in identities:
            assert api.answer("api/item", [("id", identity)])[0] == 404
        make_run(run)
        api.index_all()
        assert shown(api, source="run") == plain_run(run)


def _random(path: Path) -> None:
    path.write_bytes(os.urandom(40_000))


def _middle(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _other_form(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")


def _other_program(path: Path) -> None:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE sources (mine TEXT)")
        database.execute("PRAGMA application_id = 7")
        database.commit()


@pytest.mark.parametrize("damage", [_random, _middle, _empty, _other_form, _other_program])
def test_a_damaged_index_is_made_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    run = make_run(tmp_path / "run", steps=range(1, 9))
    with seen(run, tmp_path / "cache") as api:
        path = api._file.path
    damage(path)
    with ViewerApi([run], tmp_path / "cache") as api:
        for _ in range(200):
            status, found = api.answer("api/pulse", [])
            items = api.answer("api/items", [("limit", "500")])
            if status == items[0] == 200 and set(found["indexed"].values()) == {1.0}:
                break
            time.sleep(0.05)
        assert api._file.kept
        assert shown(api) == plain_run(run)
        assert problems(api) == ""


def test_a_damaged_stretch_of_a_journal_is_passed_over_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    fill(path, (entry(number, response="y" * 900) for number in range(400)))
    with contextlib.closing(sqlite3.connect(path)) as database:
        root = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'entries'"
        ).fetchone()[0]
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    page = len(data) // 4096 // 2
    assert page != root
    data[page * 4096 : page * 4096 + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    sound: list[tuple[object, ...]] = []
    with contextlib.closing(sqlite3.connect(path)) as database:
        for number in range(1, 401):
            with contextlib.suppress(sqlite3.DatabaseError):
                sound += database.execute("SELECT * FROM entries WHERE id = ?", (number,))
    with seen(path, tmp_path / "cache") as api:
        found = {int(one["id"].rpartition(":")[2]) for one in every(api)}
        assert found <= {row[0] for row in sound}
        assert len(sound) < 400
        lost = 400 - len(sound)
        assert len(sound) - len(found) <= 2 + lost // 16, "its neighbours at most are lost too"
        assert f"{400 - len(found)} rows could not be read" in problems(api)
        assert "the journal is damaged" in problems(api)


def test_a_broken_source_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    first = fill(folder / "a.sqlite", map(entry, range(3)))
    second = fill(folder / "b.sqlite", map(entry, range(3)))
    data = first.read_bytes()
    first.write_bytes(data[:100] + b"\x77" * (len(data) - 100))
    with seen(folder, tmp_path / "cache") as api:
        assert shown(api) == plain_journal(second)
        assert "a.sqlite cannot be read" in problems(api)


def test_two_viewers_of_the_same_paths(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with (
        seen(run, tmp_path / "cache") as first,
        seen(run, tmp_path / "cache") as second,
    ):
        assert (first._file.kept, second._file.kept) == (True, False)
        temporary = second._file.path
        write_step(run, 9)
        for api in (first, second):
            api.index_all()
            assert shown(api) == plain_run(run)
    assert not temporary.exists()


def test_a_cache_that_is_no_folder(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (tmp_path / "cache").write_text("a file")
    with seen(run, tmp_path / "cache") as api:
        assert not api._file.kept
        assert shown(api) == plain_run(run)


_CHILD = """
import resource, signal, sys
from pathlib import Path
from assay.viewer.api import ViewerApi
run, cache, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
with ViewerApi([run], cache) as api:
    print("ready", flush=True)
    for line in sys.stdin:
        api._wake.set()
        print(api.answer("api/sources", [])[1]["sources"][0]["problems"], flush=True)
        print(api.answer("api/items", [("limit", "1")])[0], flush=True)
"""


def test_a_disk_without_room_is_said(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", steps=range(1, 60), draws=40)
    command = [sys.executable, "-c", _CHILD, str(run), str(tmp_path / "cache"), "300000"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        for _ in range(200):
            child.stdin.write("\n")
            child.stdin.flush()
            said, status = child.stdout.readline(), child.stdout.readline()
            assert status == "200\n"
            if "the index cannot be written" in said:
                break
            time.sleep(0.05)
        child.stdin.close()
        assert child.wait(30) == 0
    assert "the index cannot be written" in said
    with seen(run, tmp_path / "cache") as api:  # there is room again
        assert shown(api) == plain_run(run)
        assert problems(api) == ""


def test_a_viewer_that_is_killed_goes_on(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", steps=range(1, 40), draws=20)
    command = [sys.executable, "-c", _CHILD, str(run), str(tmp_path / "cache"), "0"]
    for wait_s in (0.0, 0.03, 0.1):
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(wait_s)
            child.send_signal(signal.SIGKILL)
            child.wait()
    with seen(run, tmp_path / "cache") as api:
        assert api._file.kept
        assert shown(api) == plain_run(run)
        assert ask(api, "sources")["sources"][0]["items"] == 39 * 40


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    path = path_for(run / "rollouts", 2)
    path.unlink()
    path.mkdir()  # what no user may read, root included
    with seen(run, tmp_path / "cache") as api:
        assert {one["step"] for one in every(api)} == {1, 3}
        assert path.name in problems(api)
