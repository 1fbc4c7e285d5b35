"""Results of compilations, on disk, shared by all supervisors: equal programs compile once.

The caller's key is a hash of everything that goes into a compilation; an entry holds a hash of
itself. Kept are successes and genuine compile errors, never a limit or a fault, which may go
differently next time.

Covered: two supervisors that compile the same at once (each renames a file of its own; the last one
stays), a crash between the two (a later sweep removes it), damaged entries (dropped by their hash),
growth (least recently used entries go first).
Not covered: others who may write to the folder. It belongs to the service alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from assay.sandbox.domain import MIB, CapturedOutput

log = logging.getLogger(__name__)

_MAGIC = b"ASSAYCC1"
_HEAD = struct.Struct("!8s32sIII")  # magic, hash of the rest, lengths: facts, output, product
_SWEPT_AFTER_S = 3600.0
_KEPT_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of a compilation.

    Attributes:
        product: what it made; empty when the program does not compile.
        failed: the program does not compile.
        exit_code: the compiler's.
        output: what the compiler wrote.
        cpu_s: its CPU time.
        wall_s: its wall time.
    """

    product: bytes
    failed: bool
    exit_code: int
    output: CapturedOutput
    cpu_s: float
    wall_s: float


class CompileCache:
    """A folder of compilations.

    Args:
        folder: made where it does not exist; other files in it are left alone.
        limit_bytes: most bytes of all entries, give or take what is written between sweeps.
    """

    def __init__(self, folder: Path, limit_bytes: int = 2048 * MIB) -> None:
        self._entries = folder / "entries"
        self._limit_bytes = limit_bytes
        self._since_sweep = limit_bytes  # the first entry that is kept looks what lies there
        self._entries.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, key: str) -> Compiled | None:
        """The entry of a key, or None; a damaged entry is dropped."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        try:
            found = _decode(data)
        except (ValueError, KeyError, TypeError, struct.error):
            log.warning("a compilation in the cache is damaged; it is dropped: %s", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def put(self, key: str, compiled: Compiled) -> None:
        """Keeps an entry. Never fails: a cache that cannot write is only slow."""
        data = _encode(compiled)
        if len(data) > self._limit_bytes // 4:
            return
        path = self._path(key)
        draft = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.draft")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            draft.write_bytes(data)
            draft.replace(path)
        except OSError as error:
            log.warning("a compilation cannot be kept: %s", error)
            with contextlib.suppress(OSError):
                draft.unlink()
            return
        self._since_sweep += len(data)
        if self._since_sweep > self._limit_bytes // 16:
            self._sweep()

    def _path(self, key: str) -> Path:
        return self._entries / key[:2] / key

    def _sweep(self) -> None:
        """Removes unfinished drafts, and the oldest entries above the limit."""
        self._since_sweep = 0
        now_s = time.time()
        entries: list[tuple[float, int, Path]] = []
        for path in self._entries.glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                if path.suffix != ".draft":
                    entries.append((status.st_mtime, status.st_size, path))
                elif now_s - status.st_mtime > _SWEPT_AFTER_S:
                    path.unlink()
        total = sum(size for _, size, _ in entries)
        if total <= self._limit_bytes:
            return
        for _, size, path in sorted(entries):
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
            if total <= self._limit_bytes * _KEPT_SHARE:
                return


def _encode(compiled: Compiled) -> bytes:
    facts = json.dumps(
        {
            "failed": compiled.failed,
            "exit_code": compiled.exit_code,
            "output_total": compiled.output.total_bytes,
            "cpu_s": compiled.cpu_s,
            "wall_s": compiled.wall_s,
        }
    ).encode()
    output, product = compiled.output.data, compiled.product
    body = facts + output + product
    digest = hashlib.sha256(body).digest()
    return _HEAD.pack(_MAGIC, digest, len(facts), len(output), len(product)) + body


def _decode(data: bytes) -> Compiled:
    magic, digest, facts_len, output_len, product_len = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if magic != _MAGIC or len(body) != facts_len + output_len + product_len:
        raise ValueError("not an entry")
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("the hash differs")
    facts = json.loads(bytes(body[:facts_len]))
    product_at = facts_len + output_len
    return Compiled(
        product=bytes(body[product_at:]),
        failed=bool(facts["failed"]),
        exit_code=int(facts["exit_code"]),
        output=CapturedOutput(bytes(body[facts_len:product_at]), int(facts["output_total"])),
        cpu_s=float(facts["cpu_s"]),
        wall_s=float(facts["wall_s"]),
    )
