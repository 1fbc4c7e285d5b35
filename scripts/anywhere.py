"""Runs a few tests of the sandbox from checkouts in places where people put them.

Beneath the system's temporary folder with a space in the path, and beneath a folder with mode 0700
as home folders have. The checkout, an environment with the packages that programs may import and,
where it is not the system's, the interpreter itself lie there.

    python scripts/anywhere.py [PYTEST_ARGUMENT ...]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = (("a place", 0o755), ("home", 0o700))
SOURCES = ("protos", "kit", "clients", "math", "reward_server", "sandbox", "genrm", "trainer")
SHOWN = ("numpy", "pytest", "pluggy", "iniconfig", "packaging", "pygments")
TESTS = (
    "tests/integration/test_sandbox_jail.py",
    "-k",
    "WhatItSees or files_are_gone or exit_codes or random_numbers or pytest_is_served or told",
)


def main(arguments: list[str]) -> int:
    """Tries every place; returns an exit code."""
    for name, mode in PLACES:
        with tempfile.TemporaryDirectory(prefix="anywhere-") as folder:
            place = Path(folder) / name / "assay"
            place.mkdir(parents=True)
            Path(folder).chmod(0o755)
            place.parent.chmod(mode)
            python = _check_out(place)
            sys.stdout.write(f"from {place}, beneath a folder with mode {mode:o}\n")
            sys.stdout.flush()
            command = [str(python), "-m", "pytest", "-q", "-n", "0", *TESTS, *arguments]
            if code := subprocess.run(command, cwd=place, check=False).returncode:
                return code
    return 0


def _check_out(place: Path) -> Path:
    """Puts the working tree and an environment there; returns the environment's interpreter."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    for path in filter(None, listed.decode().split("\0")):
        if (ROOT / path).is_file():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, place / path)
    command = [str(_interpreter(place)), "-m", "venv", "--without-pip", str(place / ".venv")]
    subprocess.run(command, check=True)
    python = place / ".venv" / "bin" / "python"
    packages = place / ".venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    for name in SHOWN:
        _copy_distribution(name, packages)
    beside = [*(str(place / name) for name in SOURCES), sysconfig.get_path("purelib")]
    (packages / "anywhere.pth").write_text("\n".join(beside) + "\n")
    return python


def _interpreter(place: Path) -> Path:
    """A copy of the interpreter, without what is installed in it; the system's own stays."""
    base, name = Path(sys.base_prefix), Path("bin") / f"python{sysconfig.get_python_version()}"
    if base.is_relative_to("/usr"):
        return base / name
    skipped = shutil.ignore_patterns("site-packages", "test", "__pycache__", "*.a", "share")
    shutil.copytree(base, place / "python", symlinks=True, ignore=skipped)
    return place / "python" / name


def _copy_distribution(name: str, packages: Path) -> None:
    """Copies an installed distribution's folders."""
    found = distribution(name)
    for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
        source = Path(str(found.locate_file(top)))
        if source.is_dir():
            shutil.copytree(source, packages / top, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copy2(source, packages / top)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
