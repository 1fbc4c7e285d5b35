"""Wheels of the distributions, and fresh environments that hold them and what they ask for.

An environment is a venv without pip. What a wheel's metadata asks for is linked into it from the
environment that runs the tests, and nothing else, so a dependency that is not declared is missing
there, and no package index is asked.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Python before 3.11.4 has no filters; what is unpacked here is our own.
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
DISTRIBUTIONS = (
    "protos", "kit", "clients", "math", "reward_server", "sandbox", "genrm", "trainer",
    "plugins/compat", "plugins/docker_backend", "plugins/ray_pool", "plugins/verifiers_extra",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wheel:
    """A built wheel."""

    folder: str
    path: Path

    def names(self) -> list[str]:
        """Its files."""
        with zipfile.ZipFile(self.path) as archive:
            return [name for name in archive.namelist() if not name.endswith("/")]

    def read(self, name: str) -> str:
        """A file of its dist-info."""
        with zipfile.ZipFile(self.path) as archive:
            (found,) = [path for path in archive.namelist() if path.endswith(f".dist-info/{name}")]
            return archive.read(found).decode()

    def requires(self, extras: Iterable[str] = ()) -> list[Requirement]:
        """What its metadata asks for on this machine."""
        headers = HeaderParser().parsestr(self.read("METADATA"))
        return _held([Requirement(text) for text in headers.get_all("Requires-Dist", [])], extras)


def _held(requirements: list[Requirement], extras: Iterable[str]) -> list[Requirement]:
    wanted = ["", *extras]
    return [
        found
        for found in requirements
        if found.marker is None or any(found.marker.evaluate({"extra": e}) for e in wanted)
    ]


def build_wheels(repository: Path, out: Path) -> dict[str, Wheel]:
    """One wheel of each distribution, by the name of the distribution."""
    wheels = {}
    for folder in DISTRIBUTIONS:
        built = WheelBuilder(str(repository / folder)).build(directory=str(out))
        project = tomllib.loads((repository / folder / "pyproject.toml").read_text())["project"]
        wheels[project["name"]] = Wheel(folder, Path(next(iter(built))))
    return wheels


def wheel_by_sdist(folder: Path, out: Path) -> Wheel:
    """The wheel of a distribution as an index would give it: its sdist, unpacked and built."""
    packed = Path(next(iter(SdistBuilder(str(folder)).build(directory=str(out)))))
    with tarfile.open(packed) as archive:
        archive.extractall(out, **SAFELY)
    unpacked = out / packed.name.removesuffix(".tar.gz")
    return Wheel(
        folder.name, Path(next(iter(WheelBuilder(str(unpacked)).build(directory=str(out)))))
    )


def closure(wheels: dict[str, Wheel], names: Iterable[str]) -> set[str]:
    """The named distributions and all that they need, by canonical names."""
    found: dict[str, set[str]] = {}
    todo = [Requirement(name) for name in names]
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        if name in found and wanted.extras <= found[name]:
            continue
        found.setdefault(name, set()).update(wanted.extras)
        if name in wheels:
            todo += wheels[name].requires(wanted.extras)
        else:
            texts = distribution(name).requires or []
            todo += _held([Requirement(text) for text in texts], wanted.extras)
    return set(found)


@dataclass(frozen=True, slots=True)
class Environment:
    """A fresh venv."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return self.folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"

    def run(
        self, *command: str, timeout_s: float = 60, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """A command of the environment, away from the checkout and from its settings."""
        home = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            capture_output=True, text=True, check=False, timeout=timeout_s, cwd=self.folder,
            env=home | {"OMP_NUM_THREADS": "1"} | settings,
        )  # fmt: skip


def fresh_environment(
    folder: Path, wheels: dict[str, Wheel], *names: str, without: Iterable[str] = ()
) -> Environment:
    """A venv that holds the named wheels, and links to what they need but for `without`."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    environment = Environment(folder)
    needed = closure(wheels, names)
    for name in sorted(needed - set(wheels) - set(without)):
        for source, target in _tops(name):
            link = environment.site / target
            link.parent.mkdir(exist_ok=True)
            if not link.exists():
                link.symlink_to(source)
    command = [sys.executable, "-m", "pip", "--python", str(environment.python), "install"]
    command += ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    command += [str(wheels[name].path) for name in sorted(needed & set(wheels))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return environment


def _tops(name: str) -> Iterator[tuple[Path, Path]]:
    """What of an installed distribution to link: its packages, those of a namespace one by one."""
    found = distribution(name)
    seen = set()
    for file in found.files or []:
        if file.parts[0] in {"..", "__pycache__"}:
            continue
        top = Path(str(found.locate_file(file.parts[0])))
        whole = len(file.parts) == 1 or top.suffix == ".dist-info" or (top / "__init__.py").exists()
        target = Path(*file.parts[: 1 if whole else 2])
        if target not in seen:
            seen.add(target)
            yield Path(str(found.locate_file(target))), target
