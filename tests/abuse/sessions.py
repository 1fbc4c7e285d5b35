"""Programs that attack another session, as cells: programs/sessions/*.py, each with a header.

    # what it tries
    # control: words     it prints `ESCAPED words` where there is no wall (tests/sessions_naive.py)
    # control-by: victim  where there is no wall, its victim notices
    # ends: a b           how its cell may end; without: completed
    # relations: a b      whom it is set on; without: everybody

A program prints `ESCAPED` when an attack worked, `TRIED` when it has tried all, and `BROKEN` where
it is itself wrong. `_prelude.py` stands before each.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from assay.sandbox.zygote import seccomp

FOLDER = Path(__file__).parent / "programs" / "sessions"
RELATIONS = ("stranger", "sibling", "parent", "child", "checkpoint", "ancestor")
VICTIM_PORT = 45_987
_FURTHER = {"clone3": 435, "seccomp": 317, "landlock_create_ruleset": 444, "memfd_secret": 447}


@dataclass(frozen=True, slots=True)
class Attack:
    """One program and what its header says."""

    name: str
    about: str
    body: str
    relations: tuple[str, ...]
    ends: frozenset[str]
    control: str
    control_by_victim: bool

    @property
    def cell(self) -> str:
        """The text to run."""
        return prelude() + self.body


def prelude() -> str:
    """What every program may use."""
    numbers = _FURTHER | seccomp.numbers() | seccomp_extra()
    text = (FOLDER / "_prelude.py").read_text().replace("{numbers}", repr(numbers), 1)
    return f"{text}\nVICTIM_PORT = {VICTIM_PORT}\n"


def seccomp_extra() -> dict[str, int]:
    """Calls that the filter does not know."""
    return {"landlock_restrict_self": 446, "landlock_add_rule": 445}


def load() -> list[Attack]:
    """All programs, by name."""
    return [_read(path) for path in sorted(FOLDER.glob("[a-z]*.py"))]


def _read(path: Path) -> Attack:
    about, facts, body = "", {}, path.read_text()
    for line in body.splitlines():
        if not line.startswith("# "):
            break
        key, colon, value = line[2:].partition(": ")
        if colon and key in {"control", "control-by", "ends", "relations"}:
            facts[key] = value.strip()
        else:
            about = about or line[2:]
    return Attack(
        name=path.stem,
        about=about,
        body=body,
        relations=tuple(facts.get("relations", " ".join(RELATIONS)).split()),
        ends=frozenset(facts.get("ends", "completed").split()),
        control=facts.get("control", ""),
        control_by_victim=facts.get("control-by") == "victim",
    )


def victim(token: str, *, sockets: bool) -> str:
    """The cell that makes a session worth attacking."""
    return _VICTIM.format(token=token, sockets=sockets, port=VICTIM_PORT, pid=os.getpid())


VERIFY = """
problems = list(map(str, GOT))
if bytes(KEEP) != WANTED: problems.append(f"memory {bytes(KEEP)!r}")
for name in PLACES:
    try:
        with open(name) as file: text = file.read()
    except OSError as error: text = repr(error)
    if text != "victim-file " + TOKEN: problems.append(f"file {name} {text!r}")
if sorted(os.listdir(".")) != LISTED: problems.append(f"files {os.listdir('.')}")
if os.environ.get("VICTIM") != TOKEN: problems.append("environment")
if len(set(os.getresuid())) > 1 or os.getresgid() != IDS: problems.append("ids")
for one in LISTENERS:
    try:
        if one.type == socket.SOCK_STREAM: problems.append(f"visited {one.accept()[1]!r}")
        else: problems.append(f"told {one.recv(99)!r}")
    except BlockingIOError: pass
print("INTACT" if not problems else f"HARMED {problems}")
"""

_VICTIM = """
import os, signal, socket
TOKEN = {token!r}
WANTED = b"SPOT-" + TOKEN.encode()
KEEP = bytearray(WANTED)
os.environ["VICTIM"] = TOKEN
PLACES = ("victim.txt", "/tmp/victim.txt", "/dev/shm/victim.txt")
for name in PLACES:
    with open(name, "w") as file: file.write("victim-file " + TOKEN)
    os.chmod(name, 0o666)
LISTED = sorted(os.listdir("."))
GOT, LISTENERS, IDS = [], [], os.getresgid()
for number in (1, 3, 10, 12, 15, 23, 29, 30):
    signal.signal(number, lambda number, frame: GOT.append(number))
if os.path.lexists("/tmp/victim.sock"): os.unlink("/tmp/victim.sock")
if {sockets}:
    for family, kind, address in (
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {port})),
        (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", {port})),
        (socket.AF_UNIX, socket.SOCK_STREAM, "\\0victim"),
        (socket.AF_UNIX, socket.SOCK_STREAM, "/tmp/victim.sock"),
    ):
        one = socket.socket(family, kind)
        one.bind(address)
        one.setblocking(False)
        if kind == socket.SOCK_STREAM: one.listen(64)
        LISTENERS.append(one)
print("READY")
"""
