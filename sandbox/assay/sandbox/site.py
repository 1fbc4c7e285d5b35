"""Surveys this machine, once: the walls around programs, and the installed languages."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.kit.errors import AssayError, ConfigError, StartupError
from assay.sandbox.backends import find_backend
from assay.sandbox.config import SandboxConfig
from assay.sandbox.domain import MIB, SandboxFault
from assay.sandbox.languages import Toolchains, discover, language_info, warm_up
from assay.sandbox.settings import SupervisorSettings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SurveyedMachine:
    """What was found.

    Attributes:
        level: the isolation, e.g. "namespaces".
        layers: the walls in place, kebab-case, strongest first.
        toolchains: the installed languages.
        cache_dir: of compiled programs.
        versions: of the languages' tools, where another machine was surveyed; else empty.
    """

    level: str
    layers: tuple[str, ...]
    toolchains: Toolchains
    cache_dir: Path
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """As text, with the versions of the tools, which are asked now."""
        versions = {
            name: self.versions.get(name) or language_info(self.toolchains, name).toolchain_version
            for name in self.toolchains.found
        }
        return json.dumps(
            {
                "level": self.level,
                "layers": self.layers,
                "toolchains": self.toolchains.to_json(),
                "cache_dir": str(self.cache_dir),
                "versions": versions,
            }
        )

    @staticmethod
    def from_json(text: str) -> SurveyedMachine:
        """Reads what `to_json` wrote."""
        data = json.loads(text)
        return SurveyedMachine(
            level=data["level"],
            layers=tuple(data["layers"]),
            toolchains=Toolchains.from_json(data["toolchains"]),
            cache_dir=Path(data["cache_dir"]),
            versions=data["versions"],
        )

    def settings(self, config: SandboxConfig) -> SupervisorSettings:
        """Every supervisor's settings, but for its slot."""
        return SupervisorSettings(
            slot=0,
            backend=config.backend,
            level=self.level,
            image=config.image,
            toolchains=self.toolchains.to_json(),
            cache_dir=str(self.cache_dir / "compiled") if config.cache_mb else "",
            cache_bytes=config.cache_mb * MIB,
            max_limits=config.max_limits,
            python_packages=config.python_packages,
        )


def survey(config: SandboxConfig) -> SurveyedMachine:
    """Looks at the machine. To be called before any thread is started.

    Raises:
        ConfigError: --backend names one that is not installed, --languages an unknown one, or the
            cache
            cannot be written.
        StartupError: the back end refuses this machine, or a language that the operator named is
            not
            installed.
    """
    backend = find_backend(config.backend)
    walls = backend.check(config)
    try:
        toolchains = discover(config.languages or None)
    except SandboxFault as fault:
        raise ConfigError(f"--languages: {fault.message}") from fault
    for lack in toolchains.missing.values():
        if config.languages:
            raise StartupError(f"--languages names {lack.language}: {lack.why}")
        _log.warning("%s is not served: %s", lack.language, lack.why)
    cache_dir = _cache_dir(config.cache_dir)
    if backend.on_this_machine:
        toolchains = warm_up(toolchains, cache_dir / "warm")
    return SurveyedMachine(walls.level, walls.layers, toolchains, cache_dir)


def _cache_dir(wanted: Path | None) -> Path:
    """The folder asked for, else the user's cache folder, else a temporary one.

    Raises:
        ConfigError: the one asked for cannot be written.
    """
    folder = wanted
    if folder is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118 - expanduser never raises
        folder = Path(home) / "assay" / "sandbox"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        if wanted is not None:
            raise ConfigError(
                f"--cache-dir {folder} cannot be written: {error.strerror}"
            ) from error
    return _temporary_cache()


def _temporary_cache() -> Path:
    """For users without a home; the same one each time, so that none is left behind."""
    folder = Path(tempfile.gettempdir()) / f"assay-sandbox-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
        return folder
    return Path(tempfile.mkdtemp(prefix="assay-sandbox-"))  # somebody else took the name


def main(arguments: Sequence[str] | None = None) -> None:
    """Surveys this machine for a service on another; prints JSON with a site or a problem."""
    parser = argparse.ArgumentParser(description="Internal process of the Assay sandbox.")
    parser.add_argument("config")
    options = parser.parse_args(arguments)
    try:
        answer = {"site": survey(SandboxConfig.from_json(options.config)).to_json()}
    except AssayError as error:
        answer = {"problem": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
