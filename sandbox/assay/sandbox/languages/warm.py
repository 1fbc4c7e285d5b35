"""Files made in advance that speed up every compilation: precompiled headers, the Go library.

Our own commands make them, once for each version of a toolchain; the boxes show them read-only.
Without them everything works, only slower; a failure here is a line in the log.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from assay.sandbox.languages.language import OURS, Language, Warm, fill, fill_text
from assay.sandbox.languages.table import LANGUAGES
from assay.sandbox.languages.toolchains import Toolchain, Toolchains

log = logging.getLogger(__name__)

_DONE = f"{OURS}-done"
_WAIT_S = 300.0


def warm_up(toolchains: Toolchains, folder: Path) -> Toolchains:
    """Makes what is missing below `folder`; returns the toolchains that know of it.

    Two services may share a folder: one makes, the other waits for it.
    """
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    found = dict(toolchains.found)
    with ThreadPoolExecutor(os.cpu_count() or 1, "warm-up") as pool:
        for name, ready in pool.map(lambda chain: _warm_one(chain, folder), found.values()):
            if ready is not None:
                found[name] = found[name].with_warm(ready)
    return Toolchains(found, toolchains.missing)


def _warm_one(chain: Toolchain, folder: Path) -> tuple[str, Path | None]:
    language = LANGUAGES[chain.language]
    if language.warm is None:
        return chain.language, None
    spec = hashlib.sha256(repr((language.warm, chain.fingerprint)).encode()).hexdigest()[:16]
    target = folder.resolve() / f"{language.name}-{spec}"
    with _locked(folder / f"{language.name}.lock"):
        if not (target / _DONE).exists():
            try:
                _make(language, language.warm, chain, target)
            except (OSError, subprocess.SubprocessError) as error:
                log.warning("%s compiles without what is made in advance: %s", language.name, error)
                shutil.rmtree(target, ignore_errors=True)
                return chain.language, None
    return chain.language, target


def _make(language: Language, warm: Warm, chain: Toolchain, target: Path) -> None:
    log.info("making things in advance for %s (once)", language.name)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o755)
    values = {**chain.with_warm(target).values, "heap_mib": "1024"}
    for path, text in warm.files.items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(target)}
    for name, template in language.environment.items():
        environment[name] = fill_text(template, values)
    for command in warm.commands:
        done = subprocess.run(  # noqa: S603 - a command out of our own table
            fill(command, values),
            cwd=target,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WAIT_S,
            check=False,
        )
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip()[-300:]
            raise subprocess.SubprocessError(f"exit code {done.returncode}: {words}")
    _show(target)
    (target / _DONE).touch()


def _show(target: Path) -> None:
    for folder, _, files in os.walk(target):
        Path(folder).chmod(0o755)
        for file in files:
            path = Path(folder, file)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
