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
        with contextlib.suppress(OSError, ValueError):
            with os.fdopen(syscalls.open_beneath(folder, path), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    continue
                if status.st_size <= room:
                    content = file.read(status.st_size)
                room -= status.st_size
            if room < 0:
                raise SandboxFault(
                    Reason.MESSAGE_TOO_LARGE,
                    f"the files have more than {MAX_BYTES} bytes: fetch fewer at once",
                )
            _add(response, path, status).content = content
    return response


def listing(folder: int) -> pb.GetFilesResponse:
    """All files, without their content. Names that are no UTF-8 are shown with backslashes."""
    response = pb.GetFilesResponse()
    found: list[tuple[str, os.stat_result]] = []
    waiting = [(os.dup(folder), "")]
    while waiting:
        here, prefix = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        if len(path) < _MAX_PATH_BYTES:
                            with contextlib.suppress(OSError):
                                below = os.open(entry.name, _FOLDER, dir_fd=here)
                                waiting.append((below, f"{path}/"))
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
