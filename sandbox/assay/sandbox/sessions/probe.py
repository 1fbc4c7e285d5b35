"""Whether sessions work on this machine: a host is started for a moment, and proves itself."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import NamedTuple

from assay.kit.pool import frames
from assay.kit.pool.frames import Frame, FrameReader
from assay.sandbox.sessions.place import HOST
from assay.sandbox.sessions.settings import HostSettings
from assay.sandbox.workers.place import environment_of_a_supervisor

_START_S = 30.0
_PIECE = 1 << 16


class SessionLevel(NamedTuple):
    """What sessions can do here.

    Attributes:
        name: "full"; "without copies", where neither checkpoint nor fork works; "none".
        why: what is missing, for people; empty for "full".
    """

    name: str
    why: str = ""


def probe(level: str) -> SessionLevel:
    """Asks a host; `level` is the isolation of this machine."""
    settings = HostSettings(slot=0, level=level, python_packages=(), families=1, spares=0)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        told = ("--link-fd", str(theirs.fileno()), "--settings", settings.to_json())
        with subprocess.Popen(  # noqa: S603  # our own module
            [sys.executable, "-m", HOST, *told],
            env=environment_of_a_supervisor(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        ) as process:
            theirs.close()
            ours.settimeout(_START_S)
            try:
                return _level(_first(ours))
            except TimeoutError:
                process.kill()
                return SessionLevel("none", f"the host was not ready within {_START_S:g} s")
            finally:
                ours.close()  # it ends


def _first(link: socket.socket) -> Frame | None:
    reader = FrameReader()
    while data := link.recv(_PIECE):
        for frame in reader.feed(data):
            return frame
    return None


def _level(frame: Frame | None) -> SessionLevel:
    if frame is None:
        return SessionLevel("none", "the host died at its start")
    if frame.kind != frames.READY:
        return SessionLevel("none", frame.payload.decode("utf-8", "replace"))
    about = json.loads(frame.payload)
    return (
        SessionLevel("full")
        if about["copies"]
        else SessionLevel("without copies", about["why_not"])
    )
