"""Which languages can be served on this machine, and what a box must show for each.

Finding starts no process, but for launchers that must be asked where the real tool is. The front
finds once and hands the result to every supervisor as JSON.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from assay.sandbox.domain import RunLimits, SandboxFault
from assay.sandbox.languages.language import Language, Tool, Values, fill
from assay.sandbox.languages.table import LANGUAGES, find_language

_ALWAYS_SEEN = ("/usr/", "/bin/", "/sbin/", "/lib")
_ASK_S = 30.0


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The tools of one language, found.

    Attributes:
        commands: absolute paths by command.
        read_only: absolute paths outside the system's folders that a box must show.
        fingerprint: changes whenever one of the commands or libraries does.
        warm: the folder of files made in advance; empty where there is none.
        libraries: absolute paths of the libraries that are there, by name.
    """

    language: str
    commands: Mapping[str, str]
    read_only: tuple[str, ...]
    fingerprint: str
    warm: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)

    @property
    def values(self) -> Values:
        """What its templates may name of it."""
        language = LANGUAGES[self.language]
        arguments = language.warm.arguments if language.warm and self.warm else ()
        values: dict[str, str | tuple[str, ...]] = {
            **self.commands,
            **self.libraries,
            "warm": self.warm,
        }
        return {**values, "if_warm": fill(arguments, values)}

    def with_warm(self, folder: Path) -> Toolchain:
        """The same with a folder of files made in advance."""
        shown = (*self.read_only, str(folder))
        return dataclasses.replace(self, warm=str(folder), read_only=shown)


@dataclass(frozen=True, slots=True)
class MissingLanguage:
    """A language that cannot be served here.

    Attributes:
        why: one sentence for people.
        package: the Debian package to install; empty where none would help.
    """

    language: str
    why: str
    package: str = ""


@dataclass(frozen=True, slots=True)
class ServedLanguage:
    """A served language as ListLanguages describes it."""

    name: str
    aliases: tuple[str, ...]
    toolchain_version: str
    default_limits: RunLimits
    test_kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Toolchains:
    """Which languages are served here, and why the others are not."""

    found: Mapping[str, Toolchain]
    missing: Mapping[str, MissingLanguage]

    @property
    def read_only_paths(self) -> tuple[str, ...]:
        """What the boxes must show, of all languages, outside the system's folders."""
        return tuple(sorted({path for chain in self.found.values() for path in chain.read_only}))

    def get(self, name: str) -> tuple[Language, Toolchain]:
        """A language, by name or alias, with its tools.

        Raises:
            SandboxFault: UNKNOWN_LANGUAGE, with the package to install where one is missing.
        """
        language = find_language(name)
        if language.name in self.found:
            return language, self.found[language.name]
        lack = self.missing.get(language.name)
        why = lack.why if lack else "The service was started without it."
        facts = {"language": language.name}
        if lack and lack.package:
            facts["package"] = lack.package
        served = ", ".join(sorted(self.found)) or "none"
        message = f"The sandbox does not serve {language.name} here. {why} Served: {served}."
        raise SandboxFault("UNKNOWN_LANGUAGE", message, **facts)

    def without(self, lacks: Iterable[MissingLanguage]) -> Toolchains:
        """A copy without some languages, e.g. those that failed their self-test."""
        missing = {**self.missing, **{lack.language: lack for lack in lacks}}
        found = {name: chain for name, chain in self.found.items() if name not in missing}
        return Toolchains(found, missing)

    def to_json(self) -> str:
        """As text, for another process."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Toolchains:
        """Reads what `to_json` wrote."""
        data = json.loads(text)
        chains = {
            name: Toolchain(**{**chain, "read_only": tuple(chain["read_only"])})
            for name, chain in data["found"].items()
        }
        return Toolchains(
            chains, {name: MissingLanguage(**lack) for name, lack in data["missing"].items()}
        )


def discover(names: Iterable[str] | None = None, path: str | None = None) -> Toolchains:
    """Looks for the tools of languages.

    Args:
        names: which languages, by name or alias; None: all of the table.
        path: where to look, as the PATH variable; None: the service's own.

    Raises:
        SandboxFault: UNKNOWN_LANGUAGE, a name is not in the table.
    """
    wanted = sorted({find_language(name).name for name in names or LANGUAGES})
    found: dict[str, Toolchain] = {}
    missing: dict[str, MissingLanguage] = {}
    for name in wanted:
        result = _look_for(LANGUAGES[name], path)
        if isinstance(result, Toolchain):
            found[name] = result
        else:
            missing[name] = result
    return Toolchains(found, missing)


def language_info(toolchains: Toolchains, name: str, version: str | None = None) -> ServedLanguage:
    """Describes a served language; asks the tools for their version if it is None.

    Raises:
        SandboxFault: UNKNOWN_LANGUAGE, it is not served.
    """
    language, chain = toolchains.get(name)
    return ServedLanguage(
        name=language.name,
        aliases=language.aliases,
        toolchain_version=version or _version(language, chain),
        default_limits=language.limits,
        test_kinds=language.test_kinds,
    )


def _look_for(language: Language, path: str | None) -> Toolchain | MissingLanguage:
    commands: dict[str, str] = {}
    shown: set[str] = set()
    for tool in language.tools:
        beside = str(Path(next(iter(commands.values()))).parent) if commands else ""
        found = _locate(tool, path, beside)
        if found is None:
            why = (
                f"The command {tool.command} is not on the service's PATH; install {tool.package}."
            )
            return MissingLanguage(language.name, why, tool.package)
        commands[tool.command] = str(found)
        if not str(found).startswith(_ALWAYS_SEEN):
            shown.add(str(found.parent.parent if found.parent.name == "bin" else found.parent))
    for name in language.distributions:
        if not _is_installed(name):
            why = f"The Python package {name} is not installed beside the service."
            return MissingLanguage(language.name, why)
    libraries: dict[str, str] = {}
    files: list[Path] = []
    for library in language.libraries:
        matches = [path for place in library.places for path in _matches(place)]
        if not matches and library.needed:
            why = f"{library.places[0]} is not there; install {library.package}."
            return MissingLanguage(language.name, why, library.package)
        if matches:
            libraries[library.name] = str(matches[0])
            files += matches
            shown.update(str(path) for path in matches if not str(path).startswith(_ALWAYS_SEEN))
    for folder, pattern in language.read_only:
        shown.update(str(path) for path in Path(folder).glob(pattern))
    return Toolchain(
        language.name,
        commands,
        tuple(sorted(shown)),
        _fingerprint(commands, files),
        libraries=libraries,
    )


def _matches(place: str) -> list[Path]:
    root = Path("/")
    return [Path(os.path.realpath(path)) for path in sorted(root.glob(place.removeprefix("/")))]


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _locate(tool: Tool, path: str | None, beside: str) -> Path | None:
    """The real file of a command: a box may not show the links that lead to it."""
    found = shutil.which(tool.command, path=beside) if beside else None
    found = found or shutil.which(tool.command, path=path)
    if found is None:
        return None
    real = Path(os.path.realpath(found))
    if not tool.proxy or real.name != tool.proxy:
        return real
    answer = _ask((found, *tool.sysroot))
    behind = Path(answer) / "bin" / tool.command
    return Path(os.path.realpath(behind)) if answer and behind.is_file() else None


def _fingerprint(commands: Mapping[str, str], files: Iterable[Path]) -> str:
    facts = []
    every = [*sorted(commands.items()), *(("", str(path)) for path in files)]
    for name, path in every:
        status = Path(path).stat()
        facts.append(f"{name} {path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]


def _version(language: Language, chain: Toolchain) -> str:
    if not language.version:
        suites = [f"{name} {metadata.version(name)}, " for name in language.distributions]
        return f"{''.join(suites)}Python {platform.python_version()}"
    return _ask(fill(language.version, chain.values)) or "unknown"


def _ask(argv: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a command out of our own table
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout + done.stderr).decode(errors="replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), "")
