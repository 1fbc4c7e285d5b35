"""The protocol of supervisor and zygote (`zygote.main`): descriptors, sizes, messages."""

from __future__ import annotations

import struct
from _socket import SCM_CREDENTIALS, SCM_RIGHTS, SOL_SOCKET
from typing import NamedTuple

CONTROL = 3  # the zygote keeps its control socket here
KILL_LINE = 4  # and its end of the kill line here
CHANNEL = 3  # a child with a channel has it in the control socket's place
MAX_INLINE_BYTES = 16 * 1024  # a larger job travels in a file
DONE = struct.Struct(
    "!cIidq"
)  # b"D", run, wait status, CPU seconds, peak resident bytes of the largest process
RUN_NUMBER = struct.Struct("!I")
ORDER_NUMBER = struct.Struct("!I")  # of an order for copies; see copier
FETCHED = 1 << 31  # added to a run's number on the kill line: its folder may be emptied


class BoxJob(NamedTuple):
    """A run, as it travels to the child; a tuple, since marshal interns a mapping's keys.

    Attributes:
        mode: a value of domain.RunMode.
        files: path, content and mode bits of each file.
        environment: added to the zygote's.
        channel: a channel comes with the descriptors.
        executable: the program's file comes with the descriptors.
        cpu_s: whole CPU seconds of one process.
        memory_bytes: of one process.
        limit_data: the process limits its own memory, as no control group does.
        disk_bytes: size of the folder, and of a file.
        resize_disk: the folder was made in another size.
        processes: of the program's user.
    """

    mode: str
    argv: tuple[str, ...]
    files: tuple[tuple[str, bytes, int], ...]
    environment: dict[str, str]
    channel: bool
    executable: bool
    cpu_s: int
    memory_bytes: int
    limit_data: bool
    disk_bytes: int
    resize_disk: bool
    processes: int


def descriptors_of(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    """The descriptors that came with a message."""
    found: list[int] = []
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
            count = len(data) // 4
            found += struct.unpack(f"{count}i", data[: count * 4])
    return found


def sender_of(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The process that sent a message, by the kernel's word; 0 where it is not said."""
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_SOCKET, SCM_CREDENTIALS):
            return int(struct.unpack("3i", data)[0])
    return 0
