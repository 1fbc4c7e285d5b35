"""A program that speaks on the line between its interpreter and us, and one that uses all there is.

What it says there is its own claim and no fault of ours, nothing shifts, and other sessions are
answered meanwhile about as fast as before.
"""

# ruff: noqa: E501  # cells are data

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sessions_residue as residue
import sessions_wire as support
from sessions_wire import Refused, Server, Session

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks")
RAW = (
    support.PRELUDE
    + """
TAG = SERVER._tag
def write(data):
    view = memoryview(data)
    while view: view = view[os.write(CHANNEL, view[:1 << 20]):]
def raw(kind, tag, content):
    write(struct.pack("!I", 9 + len(content)) + kind + tag + content)
"""
)
SLOWER = 30  # times, beside an attacker: the machine has two cores and other tests
VERDICTS = {
    "completed", "raised", "died", "protocol_violation", "output_limit", "wall_time_limit",
    "memory_limit", "security_violation", "interrupted",
}  # fmt: skip
FRAMES = {
    "answers ahead": 'for n in range(5): raw(b"R", os.urandom(8), b"")',
    "an answer of its own": 'raw(b"R", TAG, b\'["completed",0,null,{"b":""},[]]\')',
    "two answers": 'raw(b"R", TAG, b""); raw(b"R", TAG, b"")',
    "a giant length": 'write(struct.pack("!I", 0xFFFFFFFF)); time.sleep(1)',
    "no length": 'write(struct.pack("!I", 0)); time.sleep(1)',
    "a short length": 'write(struct.pack("!I", 3) + b"Rxx"); time.sleep(1)',
    "garbage": "write(os.urandom(1 << 20)); time.sleep(1)",
    "half a frame": 'write(struct.pack("!I", 1 << 20) + b"R" + TAG); time.sleep(1)',
    "an unknown kind": 'raw(b"?", TAG, b"{}")',
    "wrong types": 'raw(b"R", TAG, b\'[1,true,[],"",{}]\')',
    "an unknown end": 'raw(b"R", TAG, b\'["lost",0,null,{"b":""},[]]\')',
    "an odd code": 'raw(b"R", TAG, b\'["exited",-7,null,{"b":""},[]]\')',
    "an odd error": 'raw(b"R", TAG, b\'["raised",0,null,{"b":""},["a",1,null]]\')',
    "a lone surrogate": 'raw(b"R", TAG, b\'["raised",0,null,{"b":""},["a",{"u":"\\\\ud800"},"c"]]\')',
    "no number": 'raw(b"R", TAG, b\'["completed",NaN,null,{"b":""},[]]\')',
    "a value without text": 'raw(b"R", TAG, b\'["completed",0,{"d":["a",{"b":""}]},{"b":""},[]]\')',
    "something shown amiss": 'raw(b"V", TAG, b"[]")',
    "deep lists": 'raw(b"R", TAG, b"[" * 2_000_000)',
    "very many lists": 'raw(b"R", TAG, b"[" + b"[]," * 15_000_000 + b"[]]")',
    "very many digits": 'raw(b"R", TAG, b"[" + b"1" * 60_000_000 + b"]")',
    "a very large value": (
        'raw(b"R", TAG, b\'["completed",0,{"d":["text/plain",{"b":"\' + b"QUFB" * 11_000_000'
        ' + b\'"}]},{"b":""},[]]\')'
    ),
    "very much shown": (
        'value = BRANCH["encode"]({"text/plain": bytes(4_000_000)})\n'
        'for n in range(50): raw(b"V", TAG, value)'
    ),
    "a closed line": "os.close(CHANNEL); time.sleep(1)",
    "a closed line to its keeper": "os.close(LINE); time.sleep(1)",
    "a doubled line": "KEPT.append(os.dup(CHANNEL))",
    "a thread that reads along": (
        "import threading\nthreading.Thread(target=lambda: os.read(CHANNEL, 1 << 16), daemon=True).start()"
    ),
    "a thread that answers": (
        "import threading\ndef forge():\n    data = os.read(CHANNEL, 1 << 16)\n"
        '    raw(b"R", data[5:13], b"")\nthreading.Thread(target=forge, daemon=True).start()'
    ),
    "a child that writes frames for ever": (
        'if REAL["fork"]() == 0:\n    junk = (struct.pack("!I", 9) + b"Z" + bytes(8)) * 5000\n'
        "    while True: os.write(CHANNEL, junk)"
    ),
    "children that write output for ever": (
        "import fcntl\nfcntl.fcntl(1, 1031, 1 << 20)\nfor n in range(3):\n"
        '    if REAL["fork"]() == 0:\n        junk = bytes(1 << 19)\n        while True: os.write(1, junk)'
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with support.sandbox() as running:
        yield running


def median_s(session: Session, seconds: float, beside: threading.Thread | None = None) -> float:
    """Of a small cell's times; each is answered. Of 20 at least, then while somebody is at it beside."""
    times, ends_s = [], time.monotonic() + seconds
    while len(times) < 20 or (time.monotonic() < ends_s and (not beside or beside.is_alive())):
        began_s = time.perf_counter()
        assert session.value("6 * 7") == "42"
        times.append(time.perf_counter() - began_s)
    return statistics.median(times)


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMES)
def test_what_a_program_says_on_the_line_is_its_own_claim(server: Server, name: str) -> None:
    bystander, hostile = server.create(2)
    quiet_s = median_s(bystander, 0.2)
    ends: list[str] = []

    def attack() -> None:
        ends.append(hostile.execute(RAW + FRAMES[name], wall_s=4).end)
        for n in range(3):
            try:
                cell = hostile.execute(f"{n} + {n}", wall_s=2)
            except Refused as refused:
                refused.must_be({"SESSION_ENDED"})
                ends.append("over")
                return
            ends.append(cell.end)
            if cell.end == "completed" and "thread" not in name:
                assert cell.value == str(n + n)
            assert cell.raw.number == n + 2

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        assert median_s(bystander, 1.5, thread) < SLOWER * quiet_s
        thread.join()
        assert ends
        assert set(ends) <= VERDICTS | {"over"}, ends
        assert median_s(bystander, 0.2) < SLOWER * quiet_s
    finally:
        thread.join()
        server.close_all([bystander, hostile])


USES = {
    "descriptors": "held = []\nwhile True: held.append(os.open('/dev/null', 0))",
    "files": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))\nheld = []\n"
        "while True: held.append(open(f'f{len(held)}', 'w'))"
    ),
    "pipes": "held = []\nwhile True: held.append(os.pipe())",
    "processes": "while True:\n    if os.fork() == 0: time.sleep(60)",
    "threads": "import threading\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
    "inodes": "for n in range(99999): open(f'f{n}', 'w').close()",
    "disk": "with open('f', 'wb') as file:\n    while True: file.write(bytes(1 << 20))",
    "folders": "for n in range(2000): os.makedirs(f'd{n}/e')",
    "deep folders": "for n in range(3000): os.mkdir('d'); os.chdir('d')",
    "links": "open('f', 'w').close()\nfor n in range(3000): os.link('f', f'l{n}')",
    "linked pairs": "for n in range(1500): open(f'f{n}', 'w').close(); os.link(f'f{n}', f'l{n}')",
    "holes": "for n in range(900):\n    with open(f's{n}', 'wb') as file: file.seek(60 << 20); file.write(b'x')",
    "memory": "held = []\nwhile True: held.append(bytearray(1 << 20))",
    "watches": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nfor n in range(100): libc.inotify_add_watch(libc.inotify_init(), b'.', 2)"
    ),
    "locks": "import fcntl\nheld = [open(f'f{n}', 'w') for n in range(500)]\nfor f in held: fcntl.flock(f, fcntl.LOCK_EX)",
    "odd files": (
        "import socket\nos.mkfifo('p'); s = socket.socket(socket.AF_UNIX); s.bind('s'); s.close()\n"
        "os.symlink('/etc/passwd', 'l'); os.symlink('.', 'loop'); os.symlink('loop/' * 50, 'far')\n"
        "open(b'\\xff\\xfe', 'w').close(); os.mkdir('m'); open('m/f', 'w').close(); os.chmod('m', 0)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_who_uses_up_all_there_is_harms_nobody(server: Server, name: str) -> None:
    first = server.one(memory_bytes=256 << 20, cell_wall_time=6)
    first.execute("import os, time\nx = 41")
    point = first.checkpoint()
    [sibling] = first.fork()
    cell = first.execute(USES[name])
    assert cell.end in VERDICTS, cell
    for copy in (first.checkpoint, first.fork, first.checkpoint):
        try:
            made = copy()
            server.close_all(made if isinstance(made, list) else [])
        except Refused as refused:
            refused.must_be({"CANNOT_FORK", "TOO_MANY_COPIES", "SESSION_ENDED"})
    first.rollback(point)
    assert (first.value("x"), first.value("os.listdir()")) == ("41", "[]")
    [grown] = sibling.fork()
    assert (sibling.value("x"), grown.value("x")) == ("41", "41")
    server.close_all([first, sibling, grown])


OUTSIDE = (
    "/etc/passwd",
    "../box/kept",
    "..",
    "a/../../x",
    "",
    ".",
    "/",
    "x/" * 3000 + "x",
    "nul\0",
)


def test_files_are_read_and_written_beneath_the_working_directory_alone(server: Server) -> None:
    session = server.one(files={"kept": b"1"})
    session.execute(
        "import os\nos.symlink('/etc/passwd', 'l'); os.symlink('/', 'root'); os.symlink('kept', 'near')\n"
        "os.symlink('/proc/1', 'keeper'); os.mkfifo('p'); os.mkdir('d')"
    )
    listed = session.get()
    assert set(listed) == {"kept"}
    for path in ("l", "root/etc/passwd", "near", "keeper/environ", "p", "d", "missing", *OUTSIDE):
        try:
            assert session.get(path) in ({}, {"kept": b"1"}), path
        except Refused as refused:
            refused.must_be({"INVALID_PROGRAM"})
    for path in ("l", "root/etc/passwd", "root/tmp/x", *OUTSIDE):
        try:
            session.put({path: b"forged"})
        except Refused as refused:
            refused.must_be({"INVALID_PROGRAM", "DISK_FULL"})
    assert "forged" not in Path("/etc/passwd").read_text()
    assert session.value("open('/etc/passwd').read().count('forged')") == "0"
    assert session.value("6 * 7") == "42"
    session.close()


def test_a_listing_of_files_that_come_and_go_is_no_fault(server: Server) -> None:
    session = server.one()
    session.execute(
        "import os, threading\ndef flip(n):\n    while True:\n        open(f'q{n}', 'w').close(); os.unlink(f'q{n}')\n"
        "        os.makedirs(f'w{n}/e'); os.rmdir(f'w{n}/e'); os.rmdir(f'w{n}')\n"
        "for n in range(2): threading.Thread(target=flip, args=(n,), daemon=True).start()"
    )
    for _ in range(200):
        session.get()
        session.get("q0", "w0", "w0/e")
    session.close()


def test_reading_folders_and_links_keeps_no_descriptor(server: Server) -> None:
    session = server.one()
    session.execute("import os\nos.mkdir('d'); os.symlink('d', 'l'); os.mkfifo('p')")
    pid = residue.host(server.pid)
    session.get("d")
    before = residue.descriptors(pid)
    for _ in range(100):
        session.get("d", "l", "p", "missing")
    assert residue.descriptors(pid) < before + 50  # spare sessions come and go
    session.close()
