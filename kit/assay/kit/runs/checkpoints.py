"""Checkpoints on disk: each appears whole by one rename, and a damaged one is recognised.

    checkpoints/checkpoint-50/        model, optimizer, scheduler, RNG, what else the trainer keeps
        manifest.json                 {"step": 50, "files": {name: {"size": bytes, "sha256": hex}}}
    checkpoints/.saving-100-x/        being written; left over by a kill, ignored and swept by the
    next save

The manifest is written last, before the rename; a folder without one is no checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.kit.errors import ConfigError

MANIFEST = "manifest.json"
_STAGING_PREFIX = ".saving-"
_NAME = re.compile(r"checkpoint-(\d+)")


def name_of(step: int) -> str:
    """Folder name of a step's checkpoint, which transformers chooses."""
    return f"checkpoint-{step}"


@contextmanager
def staged(folder: Path, step: int) -> Iterator[Path]:
    """A folder to write `checkpoint-STEP` into, published in `folder` when the block ends well."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(f"{_STAGING_PREFIX}*"):
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_STAGING_PREFIX}{step}-", dir=folder) as work:
        staging = Path(work)
        yield staging
        written = staging / name_of(step)
        write_manifest(written, step)
        target = folder / name_of(step)
        if target.exists():  # a resumed run comes past a step again
            target.rename(staging / "replaced")
        written.rename(target)
        _sync(folder)


def write_manifest(checkpoint: Path, step: int) -> None:
    """Lists a checkpoint's files with their sizes and hashes, all flushed to disk."""
    files = {}
    for path in sorted(item for item in checkpoint.rglob("*") if item.is_file()):
        _sync(path)
        files[path.relative_to(checkpoint).as_posix()] = {
            "size": path.stat().st_size,
            "sha256": _sha256(path),
        }
    manifest = checkpoint / MANIFEST
    manifest.write_text(
        json.dumps({"step": step, "files": files}, indent=1) + "\n", encoding="utf-8"
    )
    _sync(manifest)
    _sync(checkpoint)


def steps(folder: Path) -> list[int]:
    """Steps with a published checkpoint, rising."""
    found = (
        _NAME.fullmatch(path.name)
        for path in folder.glob("checkpoint-*")
        if (path / MANIFEST).is_file()
    )
    return sorted(int(match.group(1)) for match in found if match)


def verify(checkpoint: Path) -> None:
    """Checks every file against the manifest.

    Raises:
        ConfigError: a file is missing, cut or changed. The message names it, and the checkpoint
            before this one.
    """
    problem = _first_problem(checkpoint)
    if problem is None:
        return
    match = _NAME.fullmatch(checkpoint.name)
    step = int(match.group(1)) if match else 0
    earlier = [other for other in steps(checkpoint.parent) if other < step]
    remedy = (
        f"remove the folder to resume from {name_of(earlier[-1])}"
        if earlier
        else "there is no earlier one: start the run anew"
    )
    raise ConfigError(f"checkpoint {checkpoint} is damaged: {problem}; {remedy}")


def _first_problem(checkpoint: Path) -> str | None:
    try:
        files = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))["files"]
        for name, expected in files.items():
            path = checkpoint / name
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != expected["size"]:
                return f"{name} has {path.stat().st_size} bytes instead of {expected['size']}"
            if _sha256(path) != expected["sha256"]:
                return f"the content of {name} has changed"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST} cannot be read ({type(error).__name__})"
    return None


def latest(folder: Path) -> Path | None:
    """The newest checkpoint, verified; None when there is none.

    Raises:
        ConfigError: it is damaged.
    """
    published = steps(folder)
    if not published:
        return None
    checkpoint = folder / name_of(published[-1])
    verify(checkpoint)
    return checkpoint


def prune(folder: Path, keep: int) -> None:
    """Removes all but the newest `keep` checkpoints."""
    for step in steps(folder)[:-keep]:
        shutil.rmtree(folder / name_of(step), ignore_errors=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Flushes a file or folder to disk, so that in a power cut no rename overtakes the content."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
