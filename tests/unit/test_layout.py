"""The layout's promises: one namespace, small distributions, small files, no names of hosts."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

DISTRIBUTIONS = (
    "protos", "kit", "clients", "math", "reward_server", "sandbox", "genrm", "trainer",
    "plugins/compat", "plugins/docker_backend", "plugins/ray_pool", "plugins/verifiers_extra",
)  # fmt: skip
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")
MOST_WORDS = 1085
"""Of docstrings, in 1,000 lines, without the pages of verifiers, which stand in their modules. The
goal is 900; lower it with what you take away."""
# Put together from parts, so that this file does not hold what it looks for.
HOSTS = ("".join(("pypi", ".org")), "".join(("python", "hosted")), "".join(("registry.", "npmjs")))


def tracked(root: Path) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [root / line for line in listing.stdout.splitlines() if (root / line).is_file()]


def test_nothing_hides_the_namespace(repository: Path) -> None:
    assert [
        path
        for path in tracked(repository)
        if path.parent.name == "assay" and path.name == "__init__.py"
    ] == []


@pytest.mark.parametrize("folder", DISTRIBUTIONS)
def test_a_distribution_is_small_and_whole(repository: Path, folder: str) -> None:
    project = tomllib.loads((repository / folder / "pyproject.toml").read_text())
    assert project["project"]["license"] == "Apache-2.0"
    assert project["project"]["requires-python"] == ">=3.11"
    assert (repository / folder / "README.md").is_file()


def test_typed_packages_say_so(repository: Path) -> None:
    for package in (
        "protos/assay/api",
        "kit/assay/kit",
        "clients/assay/clients",
        "clients/assay/cli",
        "clients/assay/environments",
        "clients/assay/viewer",
        "clients/assay/audit",
        "clients/assay/lab",
        "math/assay/math",
        "reward_server/assay/reward_server",
        "sandbox/assay/sandbox",
        "genrm/assay/genrm",
        "trainer/assay/trainer",
        "plugins/docker_backend/assay/docker_backend",
        "plugins/ray_pool/assay/ray_pool",
        "plugins/verifiers_extra/assay/verifiers_extra",
    ):
        assert (repository / package / "py.typed").is_file(), package


def test_files_fit_in_one_sitting(repository: Path) -> None:
    long = {
        str(path.relative_to(repository)): lines
        for path in tracked(repository)
        if path.suffix == ".py" and not GENERATED.search(path.name)
        if (lines := len(path.read_text().splitlines())) > 600
    }
    assert long == {}


def sources(repository: Path) -> dict[str, ast.Module]:
    """The modules that are installed, by their path."""
    return {
        str(path.relative_to(repository)): ast.parse(path.read_text())
        for path in tracked(repository)
        if path.suffix == ".py" and "assay" in path.relative_to(repository).parts
        if path.relative_to(repository).parts[0] not in {"tests", "bench", "experiments"}
        if not GENERATED.search(path.name)
    }


def test_one_name_is_one_class(repository: Path) -> None:
    # `assay.math` needs nothing of ours, so what it answers has classes of its own.
    two_doors = {"Judgement", "Fault", "FaultError"}
    places = defaultdict(list)
    for path, tree in sources(repository).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in two_doors} == {}
    assert all(
        len(twice[name]) == 2 and any(path.startswith("math/") for path in twice[name])
        for name in two_doors
    )


def test_docstrings_grow_no_longer(repository: Path) -> None:
    words = lines = 0
    for path, tree in sources(repository).items():
        lines += len((repository / path).read_text().splitlines())
        for node in ast.walk(tree):
            is_page = isinstance(node, ast.Module) and "verifiers" in path
            if not is_page and isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                words += len((ast.get_docstring(node) or "").split())
    assert 1000 * words / lines < MOST_WORDS


def test_no_file_names_a_registry_or_a_machine(repository: Path) -> None:
    forbidden = re.compile("|".join(re.escape(name) for name in (*HOSTS, f"{repository}/")))
    named = []
    for path in tracked(repository):
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if forbidden.search(text):
            named.append(str(path.relative_to(repository)))
    assert named == []


def test_every_dependency_is_pinned(repository: Path) -> None:
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (repository / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = set(
        tomllib.loads((repository / "pyproject.toml").read_text())["dependency-groups"]["dev"]
    )
    for folder in DISTRIBUTIONS:
        wanted |= set(
            tomllib.loads((repository / folder / "pyproject.toml").read_text())["project"][
                "dependencies"
            ]
        )
    names = {re.split(r"[<>=\[; ]", name)[0].lower().replace("_", "-") for name in wanted}
    assert {name for name in names if not name.startswith("assay-")} - pinned == set()
