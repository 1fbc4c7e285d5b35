"""What of gRPC's own log is said, and how often."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from assay.kit.native_log import Digest

LINE = b"I1122 12:31:05.168246    5888 ssl_transport_security.cc:2563] Handshake failed: %d"


def test_a_kind_is_said_at_once_and_then_once_a_minute_with_its_count() -> None:
    now_s = 0.0
    digest = Digest(lambda: now_s)
    assert digest.take(LINE % 1) == "Handshake failed: 1"
    assert [digest.take(LINE % n) for n in range(2, 500)] == [""] * 498
    assert digest.take(LINE.replace(b":2563", b":99") % 0) == "Handshake failed: 0"
    now_s = 60.0
    assert digest.take(LINE % 500) == "Handshake failed: 500 (and 498 like it before)"
    assert digest.take(LINE % 501) == ""


@given(st.lists(st.binary(max_size=80), max_size=40))
def test_lines_of_others_are_never_kept_back(lines: list[bytes]) -> None:
    digest = Digest(lambda: 0.0)
    assert all(digest.take(b"x" + line) is None for line in lines)


def test_what_a_stranger_chose_is_cut_and_made_printable() -> None:
    said = Digest(lambda: 0.0).take(LINE.replace(b"%d", b"\x1b[31m" + b"n" * 9999))
    assert said is not None
    assert said.isprintable()
    assert len(said) == 300


def test_a_stranger_cannot_write_a_line_of_the_log() -> None:
    """One write is one thing, whatever line breaks it quotes; also where it comes in pieces."""
    digest = Digest(lambda: 0.0)
    said = digest.take(LINE.replace(b"%d", b"\n12:00:00 INFO assay: forged\n"))
    assert said == "Handshake failed: ?12:00:00 INFO assay: forged"
    assert digest.take((LINE + b"x" * 4096)[:4096]) == ""
    assert digest.take(b"f" * 4096) == ""
    assert digest.take(b"orged\n") == ""
    assert digest.take(b"of others\n") is None


PROGRAM = """
import contextlib, logging, os, time
from assay.kit.logs import setup_logging
from assay.kit.native_log import NativeLog
setup_logging("INFO", json=True)
native = NativeLog()
for n in range(1000):
    with contextlib.suppress(BlockingIOError):
        os.write(2, b"E1122 12:31:05.168246    58 a.cc:7] it failed\\n")
time.sleep(0.2)
os.write(2, b"from below\\n")
logging.getLogger("assay").info("of ours")
native.close()
native.close()
os.write(2, b"afterwards\\n")
logging.getLogger("assay").info("and ours")
"""


def test_it_keeps_what_others_write_and_gives_stderr_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    lines = done.stderr.splitlines()
    assert sum("it failed" in line for line in lines) == 1
    assert all(line.startswith("{") for line in lines if "failed" in line or "ours" in line)
    for said in ("from below", "of ours", "afterwards", "and ours"):
        assert sum(said in line for line in lines) == 1
