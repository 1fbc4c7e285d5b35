"""Whether programs of another user can reach what they need: an interpreter, a toolchain.

As root, programs run as users of their own. A mount namespace shows them what they need wherever it
lies; without one, a home folder with mode 0700 on the way stops them.

Covered: the mode bits of the folders on the way, and of what the way leads to.
Not covered: access lists, and what is closed further down.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

_ENTER, _READ = stat.S_IXOTH, stat.S_IROTH


def closed_way(paths: Iterable[str], *, shown: bool) -> Path | None:
    """The first folder or file that stops other users; None where nothing does.

    Args:
        paths: what is to be reached; absent ones are skipped.
        shown: a mount namespace shows it, so that the way to it does not matter.
    """
    for path in map(Path, dict.fromkeys(paths)):
        if not path.exists():
            continue
        for folder in () if shown else reversed(path.parents):
            if not folder.stat().st_mode & _ENTER:
                return folder
        needed = _ENTER | _READ if path.is_dir() else _READ
        if path.stat().st_mode & needed != needed:
            return path
    return None


def advice(path: Path) -> str:
    """What to do about it, in one line."""
    return (
        f"{path} is closed to other users, and programs run as such: install Assay and its Python "
        f"where all users may read, or open it: chmod o+rx {path}"
    )
