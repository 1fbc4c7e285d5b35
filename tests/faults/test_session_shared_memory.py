"""A copy of a session that shares its original's memory is none: it is refused.

A hostile prefix makes it: it puts a clone of its own in the interpreter's place, with CLONE_VM, and
its copy says every word of the handshake. A control shares nothing, and is taken.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from assay.api.session.v1 import session_pb2, session_pb2_grpc
from sandbox_service import running

pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="its system calls are x86-64's"),
    pytest.mark.skipif(shutil.which("objcopy") is None, reason="no compiler here"),
]
CLONE_VM, CLONE_FILES = 0x100, 0x400
LIMIT_S = 60.0
PREFIX = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
page = libc.mmap(None, ctypes.c_size_t(65536), 7, 0x22, -1, ctypes.c_long(0))
ctypes.memmove(page, CODE, len(CODE))
begin = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(page + BEGIN)

class Shared(ctypes.Structure):
    _fields_ = [
        ("word", ctypes.c_long), ("user", ctypes.c_long), ("flags", ctypes.c_long),
        ("count", ctypes.c_int), ("given", ctypes.c_int * 8),
        ("folder", ctypes.c_char * 256), ("nothing", ctypes.c_char * 16),
        ("answer", ctypes.c_char * 16), ("words", ctypes.c_char * 4),
        ("header", ctypes.c_int * 2), ("sets", ctypes.c_uint * 6),
        ("pause", ctypes.c_long * 2), ("stack", ctypes.c_long * 4096),
    ]

shared = Shared(flags=FLAGS, nothing=b"/dev/null")
frame = sys._getframe()
while not hasattr(frame.f_globals.get("syscalls"), "clone_sibling"):
    frame = frame.f_back

def clone(*_):
    told = sys._getframe(1).f_locals
    shared.count = len(told["given"])
    for place, descriptor in enumerate(told["given"]):
        shared.given[place] = descriptor
    shared.user, shared.folder = told["user"], told["folder"].encode()
    return begin(ctypes.addressof(shared))

frame.f_globals["syscalls"].clone_sibling = clone
shared.word
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> str:
    """The prefix, with the machine's code in it."""
    folder = tmp_path_factory.mktemp("code")
    source = repository / "tests" / "abuse" / "sources" / "shared_copy.c"
    options = "-O1 -fPIC -ffreestanding -fno-stack-protector -fcf-protection=none -nostdlib -static"
    linked = "-Wl,-e,begin -Wl,--build-id=none -Wl,--section-start=.text=0"
    compiler = ["gcc", *options.split(), *linked.split(), "-o", str(folder / "elf"), str(source)]
    subprocess.run(compiler, check=True, capture_output=True)
    cut = ["objcopy", "-O", "binary", "-j", ".text", str(folder / "elf"), str(folder / "code")]
    subprocess.run(cut, check=True)
    names = subprocess.run(["nm", str(folder / "elf")], check=True, capture_output=True, text=True)
    (place,) = [line.split()[0] for line in names.stdout.splitlines() if line.endswith(" begin")]
    code = (folder / "code").read_bytes()
    return f"CODE, BEGIN = {code!r}, {int(place, 16)}\n{PREFIX}"


@pytest.fixture(scope="module")
def stub() -> Iterator[Any]:
    with running("--slots", "1") as (address, _), grpc.insecure_channel(address) as channel:
        found = session_pb2_grpc.SessionServiceStub(channel)
        told = found.DescribeSessions(session_pb2.DescribeSessionsRequest(), timeout=LIMIT_S)
        if not told.copies:
            pytest.skip(told.no_copies_because)
        yield found


def value(stub: Any, session: str, code: str) -> str:
    request = session_pb2.ExecuteRequest(session_id=session, code=code)
    *_, last = stub.Execute(request, timeout=LIMIT_S)
    assert last.result.end == session_pb2.CELL_END_COMPLETED, last
    return bytes(last.result.value.data["text/plain"]).decode()


def prepared(stub: Any, prefix: str, flags: int) -> str:
    (session,) = stub.Create(session_pb2.CreateRequest(), timeout=LIMIT_S).sessions
    assert value(stub, session.id, prefix.replace("FLAGS", str(flags))) == "0"
    return str(session.id)


@pytest.mark.parametrize("flags", [CLONE_VM, CLONE_VM | CLONE_FILES, CLONE_FILES])
def test_a_copy_that_shares_is_refused_and_writes_nothing(
    stub: Any, prefix: str, flags: int
) -> None:
    session = prepared(stub, prefix, flags)
    with pytest.raises(grpc.RpcError) as caught:
        stub.Checkpoint(session_pb2.CheckpointRequest(session_id=session), timeout=LIMIT_S)
    refusal: Any = caught.value
    assert refusal.code() is grpc.StatusCode.FAILED_PRECONDITION
    if not flags & CLONE_FILES:  # else the copy has closed what was its original's
        assert value(stub, session, "shared.word") == "0"
        assert value(stub, session, "shared.word") == "0"


def test_the_same_copy_without_sharing_is_taken(stub: Any, prefix: str) -> None:
    """So it is the sharing that is refused."""
    session = prepared(stub, prefix, 0)
    request = session_pb2.CheckpointRequest(session_id=session)
    assert stub.Checkpoint(request, timeout=LIMIT_S).checkpoint_id
    assert value(stub, session, "shared.word") == "0"
