"""Reads a session's files from outside, through an open folder: no link is followed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from assay.api.session.v1 import session_pb2 as pb
from assay.kit.reasons import Reason
from assay.sandbox.domain import MIB, SandboxFault
from assay.sandbox.zygote import syscalls

MAX_BYTES = 60 * MIB
MAX_LISTED = 5_000
_MAX_PATH_BYTES = 4_096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def read(folder: int, paths: Iterable[str]) -> pb.GetFilesResponse:
    """Those of the paths that are regular files.

    Raises:
        SandboxFault: MESSAGE_TOO_LARGE.
    """
    response = pb.GetFilesResponse()
    room = MAX_BYTES
    for path in paths:
        try:
            descriptor = syscalls.open_beneath(folder, path)
        except (OSError, ValueError):
            continue
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                continue
            room -= status.st_size
            if room < 0:
                raise SandboxFault(
                    Reason.MESSAGE_TOO_LARGE,
                    f"the files have more than {MAX_BYTES} bytes: fetch fewer at once",
                )
            with open(descriptor, "rb", closefd=False) as file:
                _add(response, path, status).content = file.read(status.st_size)
        finally:
            os.close(descriptor)
    return response


def listing(folder: int) -> pb.GetFilesResponse:
    """All files, without their content. Names that are no UTF-8 are shown with backslashes."""
    response = pb.GetFilesResponse()
    found: list[tuple[str, os.stat_result]] = []
    waiting = [(os.dup(folder), "")]
    while waiting:
        here, prefix = waiting.pop()
        try:
            for name in os.listdir(here):  # noqa: PTH208  # a descriptor
                path = prefix + name
                with contextlib.suppress(OSError):  # the program may remove it meanwhile
                    status = os.stat(name, dir_fd=here, follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode) and len(path) < _MAX_PATH_BYTES:
                        waiting.append((os.open(name, _FOLDER, dir_fd=here), f"{path}/"))
                    elif stat.S_ISREG(status.st_mode):
                        found.append((path, status))
        finally:
            os.close(here)
    found.sort(key=lambda entry: entry[0])
    response.truncated = len(found) > MAX_LISTED
    for path, status in found[:MAX_LISTED]:
        shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        _add(response, shown, status)
    return response


def _add(response: pb.GetFilesResponse, path: str, status: os.stat_result) -> pb.SessionFile:
    return response.files.add(path=path, size_bytes=status.st_size, mode=status.st_mode & 0o7777)
