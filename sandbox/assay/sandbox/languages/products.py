"""Products of compilations: an executable held in memory, or files out of a tar archive.

The archive comes from the candidate's box and is read as hostile: plain files only, at relative
paths below its top, bounded in number and size.
"""

from __future__ import annotations

import fcntl
import io
import os
import tarfile

from assay.sandbox.domain import MIB, BoxFile, SandboxFault

TREE_FILES = 4096
TREE_BYTES = 64 * MIB

_MFD_EXEC = 0x10  # Linux 6.3; asks for an executable memfd even where they are not by default
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class OwnedDescriptor(int):
    """A file descriptor that is closed when nobody holds this number any more.

    So a request to run a program keeps its executable open after the program is dropped.
    """

    def __del__(self) -> None:
        os.close(self)


def executable_memfd(content: bytes) -> OwnedDescriptor:
    """An executable in memory, sealed: no run of it can change the next."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        descriptor = OwnedDescriptor(os.memfd_create("program", flags | _MFD_EXEC))
    except OSError:
        descriptor = OwnedDescriptor(os.memfd_create("program", flags))
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fchmod(descriptor, 0o555)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    return descriptor


def unpack_tree(archive: bytes, prefix: str) -> tuple[BoxFile, ...]:
    """The files of a tar archive, below a prefix.

    Raises:
        SandboxFault: INTERNAL, it is no such archive, or breaks the bounds.
    """
    files: list[BoxFile] = []
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tree:
            for member in tree:
                if member.isdir():
                    continue
                path = _tree_path(member)
                total += member.size
                if total > TREE_BYTES or len(files) >= TREE_FILES:
                    raise _bad("it holds too much")
                content = tree.extractfile(member)
                data = content.read() if content else b""
                files.append(BoxFile(f"{prefix}/{path}" if prefix else path, data))
    except (tarfile.TarError, ValueError, OSError, EOFError) as error:
        raise _bad(str(error)) from error
    return tuple(files)


def _tree_path(member: tarfile.TarInfo) -> str:
    parts = [part for part in member.name.split("/") if part not in {"", "."}]
    plain = member.isreg() and not member.issparse() and 0 <= member.size <= TREE_BYTES
    if not plain or not parts or ".." in parts or member.name.startswith("/"):
        raise _bad(f"it holds {member.name[:100]!r}, which is no plain file below its top")
    return "/".join(parts)


def _bad(what: str) -> SandboxFault:
    return SandboxFault("INTERNAL", f"The compiler's output cannot be read: {what}.")
