"""Logs what gRPC's C core writes to stderr: each kind once a minute, with a count.

The C core writes a line for every failed TLS handshake, and quotes what a stranger sent, line
breaks and all: a scanner could fill the log and imitate its lines. So stderr goes through a pipe
that keeps writes apart: one by the C core becomes a record of the logger "assay.kit.native_log",
the first of a kind at once and then one a minute with the number; others pass unchanged.

Covered: threads of this process, and children started afterwards. Not covered: the last words of a
C core that aborts the process, and what comes faster than it can be read, which is dropped: nothing
waits for the log. Linux only.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from assay.kit.logs import follow_stderr

_log = logging.getLogger(__name__)
_LINE = re.compile(rb"[IWEF]\d{4} [\d:.]+ +\d+ ([\w.]+:\d+)\] (.*)", re.DOTALL)
_PAUSE_S = 60.0
_LONGEST = 300
_PACKET_BYTES = 4096  # PIPE_BUF of Linux
_PIPE_BYTES = 256 * _PACKET_BYTES
_JOIN_S = 1.0


@dataclass(slots=True)
class Digest:
    """Decides which lines are logged. Pure but for its clock."""

    clock: Callable[[], float] = time.monotonic
    _kinds: dict[str, tuple[float, int]] = field(default_factory=dict)
    _cut: bool = False

    def take(self, written: bytes) -> str | None:
        """Takes one write to stderr, of at most PIPE_BUF bytes.

        Returns:
            What to log; "" for words of the C core that are skipped now; None for those of others.
        """
        if self._cut:
            self._cut = len(written) == _PACKET_BYTES
            return ""
        found = _LINE.match(written)
        if found is None:
            return None
        self._cut = len(written) == _PACKET_BYTES
        # The place in the source is the kind: the text may hold what a stranger chose.
        kind, now_s = found[1].decode(), self.clock()
        said_s, unsaid = self._kinds.get(kind, (-math.inf, 0))
        if now_s - said_s < _PAUSE_S:
            self._kinds[kind] = (said_s, unsaid + 1)
            return ""
        self._kinds[kind] = (now_s, 0)
        text = found[2].decode(errors="replace").strip()[:_LONGEST]
        text = "".join(letter if letter.isprintable() else "?" for letter in text)
        return f"{text} (and {unsaid} like it before)" if unsaid else text


class NativeLog:
    """Redirects this process's stderr through the digest until `close`."""

    def __init__(self) -> None:
        sys.stderr.flush()
        self._real = os.dup(2)
        self._previous = sys.stderr
        self._closed = False
        read_end, write_end = os.pipe2(os.O_DIRECT)
        with contextlib.suppress(OSError):  # an unprivileged user's share may be used up
            fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(write_end, False)  # a full pipe drops lines, and keeps nobody waiting
        os.dup2(write_end, 2)
        os.close(write_end)
        sys.stderr = os.fdopen(os.dup(self._real), "w", buffering=1, errors="backslashreplace")
        follow_stderr()
        self._thread = threading.Thread(
            target=self._run, args=(read_end,), name="assay-native-log", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Restores stderr, and logs what is left in the pipe. May be called twice."""
        if not self._closed:
            self._closed = True
            os.dup2(self._real, 2)  # the last write end of ours: the reader sees the end
            self._thread.join(_JOIN_S)  # a child may hold another
            sys.stderr.flush()
            sys.stderr = self._previous
            follow_stderr()

    def _run(self, read_end: int) -> None:
        digest = Digest()
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            while written := pipe.read(_PACKET_BYTES):
                said = digest.take(written)
                if said is None:
                    os.write(self._real, written)
                elif said:
                    _log.warning("gRPC: %s", said)
