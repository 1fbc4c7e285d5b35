"""A bash session for peers whose files may lie anywhere."""

from __future__ import annotations

import itertools
import shlex

from assay.clients.sessions import CellResult, SessionLimits
from session_shims.line import Line

PIECE_BYTES = 2 << 20
_FOLDER = ".peers"


class Workspace(Line):
    """A bash session with files anywhere that its program may read and write."""

    def __init__(self, *, limits: SessionLimits | None = None) -> None:
        super().__init__("bash", limits=limits)
        self._numbers = itertools.count()
        self.home = self.run(f"mkdir -p {_FOLDER}; pwd").stdout.data.decode().strip()

    def stage(self, content: bytes) -> str:
        """Puts bytes of any size into a file of ours; returns its path."""
        name = f"{_FOLDER}/{next(self._numbers)}"
        whole = f"{self.home}/{name}"
        self.put({name: content[:PIECE_BYTES]})
        for start in range(PIECE_BYTES, len(content), PIECE_BYTES):
            self.put({f"{name}.piece": content[start : start + PIECE_BYTES]})
            self.run(f"cat {whole}.piece >> {whole}; rm {whole}.piece")
        return whole

    def command(self, command: str, *, wall_s: float | None = None) -> CellResult:
        """Runs a command in a shell of its own, in the session's folder."""
        return self.run(f"(cd {self.home}\n{command}\n)", wall_s=wall_s)

    def write(self, path: str, content: bytes) -> CellResult:
        """Writes a file as the program itself would; folders on the way are made."""
        staged, place = self.stage(content), shlex.quote(path)
        return self.command(
            f"trap 'rm -f {staged}' EXIT\n"
            f'mkdir -p -- "$(dirname -- {place})" && cat {staged} > {place}'
        )

    def read(self, path: str) -> tuple[CellResult, bytes]:
        """Reads a file as the program itself would."""
        name = f"{_FOLDER}/{next(self._numbers)}"
        staged = f"{self.home}/{name}"
        result = self.command(f"cat -- {shlex.quote(path)} > {staged} && stat -c %s {staged}")
        content = b""
        if result.exit_code == 0:
            pieces = -(-int(result.stdout.data) // PIECE_BYTES)
            for piece in range(pieces):
                place = f"if={staged} of={staged}.piece bs={PIECE_BYTES} skip={piece}"
                self.run(f"dd status=none count=1 {place}")
                content += self.get(f"{name}.piece")
        self.run(f"rm -f {staged} {staged}.piece")
        return result, content
