"""Threads that read streams: as many as are needed at once, and each is used again."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.clients.core import readers
from assay.clients.core.readers import Readers


def own_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "assay-stream"}


@settings(max_examples=20)
@given(waves=st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_each_read_runs_beside_the_others_and_threads_are_used_again(waves: list[int]) -> None:
    pool, before, used = Readers(), own_threads(), set()
    for wave in waves:
        together = threading.Barrier(wave + 1, timeout=20)

        def read(together: threading.Barrier = together) -> None:
            used.add(threading.current_thread())
            together.wait()

        for _ in range(wave):
            pool.submit(read)
        together.wait()  # broken unless all of them run at once
        while pool._idle < len(own_threads() - before):
            time.sleep(0.001)
    assert len(used) == max(waves)


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_IDLE_S", 0.05)
    pool, before = Readers(), own_threads()
    done = threading.Event()
    pool.submit(done.set)
    assert done.wait(20)
    [thread] = own_threads() - before
    thread.join(20)
    assert not thread.is_alive()
    again = threading.Event()
    pool.submit(again.set)
    assert again.wait(20)
