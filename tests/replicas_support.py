"""Replicas of the reward server as processes of their own, which say who they are."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from assay.clients import AsyncRewardClient, Item, Result
from assay.kit.health import wait_until_serving

# Takes its time, so that a replica dies with items in hand, and tells which replica judged.
WHERE = '''
import time
from assay.reward_server.domain import *

class Where(Verifier):
    """Says which replica judges."""

    spec = VerifierSpec("where", "1", "Says which replica judges.", (), 0.0, 1.0, ("fine",),
                        needs_reference=False, cacheable=False)
    examples = (VerifierExample(VerifierItem(Candidate("0")), "fine"),)

    def judge(self, item):
        time.sleep(float(item.response()))
        return Judgement.composed("fine", (Component("a", 1.0),),
                                  explanation=NAME)
'''


def install(folder: Path, name: str) -> Path:
    """Puts the verifier `where` of one replica into a folder, to be on its path; returns it."""
    (folder / "assay_where.py").write_text(f"{WHERE}\nNAME = {name!r}\n")
    info = folder / "assay_where-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: assay-where\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[assay.verifiers]\nwhere = assay_where:Where\n")
    return folder


class Replica:
    """One reward server on a port of its own, which it keeps when it is started again."""

    def __init__(self, name: str, folder: Path, workers: int = 2) -> None:
        self.name = name
        self._folder = install(folder, name)
        self._workers = workers
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self.address = f"127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process; `serving` waits for it."""
        inherited = os.environ.get("PYTHONPATH", "")
        path = f"{self._folder}{os.pathsep}{inherited}"
        arguments = ["--port", str(self._port), "--workers", str(self._workers)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "assay.reward_server", *arguments],
                env={**os.environ, "PYTHONPATH": path},
                stdout=log,
                stderr=log,
            )

    async def serving(self) -> None:
        """Waits until it serves."""
        await wait_until_serving(self.address, timeout_s=120.0)

    async def end(self, kind: signal.Signals) -> None:
        """Sends it a signal and waits until it is gone."""
        assert self._process is not None
        self._process.send_signal(kind)
        await asyncio.to_thread(self._process.wait)

    def stop(self) -> None:
        """Ends it in whatever state it is."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def item(number: int, seconds: float = 0.0) -> Item:
    """Something to judge that takes its time."""
    return Item(str(seconds), id=str(number), verifier="where")


def replica_of(result: Result) -> str:
    """The name of the replica that judged it."""
    assert result.judgement is not None, result
    assert result.reward == 1.0
    return result.judgement.explanation


async def until_used(client: AsyncRewardClient, names: set[str]) -> None:
    """Calls until each of these replicas has answered; the test's time-out is the limit."""
    while names:
        (result,) = await client.score([item(0)])
        names = names - {replica_of(result)}


async def stream_past_a_kill(client: AsyncRewardClient, replicas: Sequence[Replica]) -> None:
    """Streams, kills the replica that answers first, and leaves all serving: every item is judged
    once."""
    count = 60

    async def items() -> AsyncIterator[Item]:
        for number in range(count):
            yield item(number, 0.02)
            await asyncio.sleep(0.002)

    results: list[Result] = []
    async for result in client.stream(items()):
        if not results:
            dead = next(replica for replica in replicas if replica.name == replica_of(result))
            await dead.end(signal.SIGKILL)
        results.append(result)
    assert sorted(int(result.id) for result in results) == list(range(count))
    assert set(map(replica_of, results)) == {replica.name for replica in replicas}
    dead.start()
    await until_used(client, {dead.name})


async def call_until(over: asyncio.Event, client: AsyncRewardClient, calls: Counter[str]) -> None:
    """Calls without a pause, and counts who judged; a fault fails it."""
    while not over.is_set():
        results = await client.score([item(n, 0.005) for n in range(4)], on_error="raise")
        calls.update(map(replica_of, results))


async def stream_until(over: asyncio.Event, client: AsyncRewardClient) -> list[Result]:
    """One stream, an item at a time; a fault fails it."""

    async def items() -> AsyncIterator[Item]:
        for number in itertools.count():
            if over.is_set():
                return
            yield item(number, 0.005)
            await asyncio.sleep(0.02)

    return [result async for result in client.stream(items(), on_error="raise")]
