"""Makes a folder that checks Assay on a borrowed GPU whose machine has no network.

python scripts/gpu_bundle.py OUT [--python 3.12] [--has PACKAGES.txt] [--own]

OUT holds the sources of HEAD, wheels of Assay's distributions, and wheels of what the machine lacks
for that Python. PACKAGES.txt is `pip list --format=freeze` of that machine; without it, it is taken
to have PyTorch, transformers, accelerate and peft with what these need. A package that is there in
a version that Assay cannot use is brought along. No model travels: the checks make their own.

OUT/RUN.md has the commands, each of at most ten minutes. Prints the folder's size; 64 MiB is what
such machines often take. `--own` brings no wheels but Assay's.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from packaging.requirements import Requirement  # noqa: E402
from packaging.utils import canonicalize_name  # noqa: E402

from wheels_support import SAFELY, build_wheels, closure  # type: ignore[import-not-found]  # noqa: E402

WANTED = ("assay-rl-trainer", "assay-rl-genrm", "assay-rl-reward-server", "assay-rl-clients")
TESTING = ("pytest-asyncio", "pytest-randomly")
TREE = (
    "bench",
    "experiments",
    "configs",
    "scripts",
    "tests",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)
USUALLY_THERE = (
    "torch", "transformers", "accelerate", "peft", "numpy", "pandas", "pyarrow", "pytest", "rich",
    "hypothesis", "click", "sympy", "grpcio", "matplotlib", "tensorboard", "scipy",
)  # fmt: skip
"""What a machine for PyTorch has, with all that these need."""
NEWER = {"transformers": "5.19", "grpcio": "1.85", "protobuf": "7.35"}
"""Versions below which a package that is there does not do: paged generation needs 5.19's loop, the
generated code of the contract what it was generated for. One of unknown version is brought."""
PLATFORMS = ("_2_28", "_2_27", "_2_17", "2014", "1")


def machine(listed: Path | None) -> dict[str, str]:
    """Packages that are there, by canonical name, and their versions; "" for one not known."""
    if listed is None:
        return dict.fromkeys(closure({}, USUALLY_THERE), "")
    lines = listed.read_text(encoding="utf-8").splitlines()
    found = [re.split(r"==| @ ", line.strip()) for line in lines if line.strip()]
    return {canonicalize_name(name): "".join(rest[:1]) for name, *rest in found}


def lacking(needed: Iterable[str], there: dict[str, str]) -> list[str]:
    """`name==version` of what to bring, as this environment has it."""
    brought = []
    for name in sorted(needed):
        version = there.get(name)
        old = name in NEWER and (not version or _older(version, NEWER[name]))
        if version is None or old:
            brought.append(f"{name}=={distribution(name).version}")
    return brought


def _older(version: str, least: str) -> bool:
    return Requirement(f"x<{least}").specifier.contains(version)


def download(pins: Iterable[str], python: str, out: Path) -> list[str]:
    """Brings wheels for a Python on Linux; gives what there are none of."""
    tags = [f"manylinux{tag}_x86_64" for tag in PLATFORMS]
    platforms = [word for tag in tags for word in ("--platform", tag)]
    missing = []
    for pin in pins:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary=:all:", *platforms]
        command += ["--python-version", python, "--implementation", "cp", "--dest", str(out), pin]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            built = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
            built += ["--disable-pip-version-check", "--wheel-dir", str(out), pin]
            subprocess.run(built, capture_output=True, check=False)
            name = pin.partition("==")[0].replace("-", "_")
            wheels = [path for path in out.iterdir() if path.name.lower().startswith(f"{name}-")]
            if not [path for path in wheels if path.name.endswith("-none-any.whl")]:
                missing.append(pin)
                for path in wheels:  # of this machine's Python
                    path.unlink()
    return missing


def main(arguments: list[str]) -> int:
    """Makes the folder; 2 where there is one already."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--has", type=Path)
    parser.add_argument("--own", action="store_true")
    chosen = parser.parse_args(arguments)
    out: Path = chosen.out
    if out.exists() and any(out.iterdir()):
        print(f"gpu_bundle: {out} is not empty; name a new folder")
        return 2
    (out / "wheels").mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", "HEAD", *TREE],  # noqa: S607  # whichever is there
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(out / "tree", **SAFELY)  # noqa: S202  # our own
    shutil.rmtree(out / "tree" / "tests" / "vllm_cpu", ignore_errors=True)
    wheels = build_wheels(ROOT, out / "wheels")
    needed = closure(wheels, (*WANTED, *TESTING)) - {canonicalize_name(name) for name in wheels}
    brought = [] if chosen.own else lacking(needed, machine(chosen.has))
    missing = download(brought, chosen.python, out / "wheels")
    shutil.copy(ROOT / "scripts" / "gpu_run.md", out / "RUN.md")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 2**20
    count = len(list((out / "wheels").iterdir()))
    print(f"{out}: {count} wheels, {size:.0f} MiB; next: copy it over, and {out.name}/RUN.md")
    for pin in missing:
        print(
            f"gpu_bundle: left out {pin}: no wheel for Python {chosen.python}; build one to add it"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
