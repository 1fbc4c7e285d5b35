"""Replicas of the reward server as processes of their own, which say who they are."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from assay.rpc.health import wait_until_serving

# Takes its time, so that a replica dies with items in hand, and tells which replica judged.
WHERE = '''
import time
from assay.reward_server.domain import *

class Where(Verifier):
    """Says which replica judges."""

    spec = VerifierSpec("where", "1", "Says which replica judges.", (), 0.0, 1.0, ("fine",),
                        needs_reference=False, cacheable=False)
    examples = (Example(Item(Candidate("0")), "fine"),)

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
