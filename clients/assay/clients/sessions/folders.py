"""Local folders and the files of a session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from assay.kit.errors import ConfigError


def read_folder(folder: Path, under: str = "") -> dict[str, bytes]:
    """The files of a folder and its subfolders, by path below `under`; links are left out.

    Raises:
        ConfigError: it is no folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder")
    return {
        str(PurePosixPath(under, path.relative_to(folder).as_posix())): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
        if not any(part.is_symlink() for part in path.parents if part.is_relative_to(folder))
    }


def write_folder(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Writes files into a folder. Their paths are the program's choice, so none may lead out of it.

    Raises:
        ConfigError: a path does, or a local link stands in its way.
    """
    root = folder.resolve()
    written = []
    for path, content in files.items():
        target = root.joinpath(*PurePosixPath(path).parts)
        if ".." in target.parts or not target.resolve().is_relative_to(root) or target == root:
            raise ConfigError(f"the session's file {path!r} would lie outside of {folder}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        written.append(target)
    return written
