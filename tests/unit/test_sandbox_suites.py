"""Libraries and packages of languages, and suites of tests as languages, without a box."""

from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path

import pytest

from assay.kit.errors import StartupError
from assay.sandbox import site
from assay.sandbox.config import SandboxConfig
from assay.sandbox.domain import PYTHON_PACKAGES, BoxFile
from assay.sandbox.jail import Isolation, packages
from assay.sandbox.jail import backend as jail_backend
from assay.sandbox.languages import LANGUAGES, MissingLanguage, Toolchain, Toolchains, discover
from assay.sandbox.languages.language import Layout, Library
from assay.sandbox.languages.plans import go_plan, java_plan

# Python packages ----------------------------------------------------------------------------------


def install(site_packages: Path, name: str, *requires: str, files: tuple[str, ...] = ()) -> None:
    """Makes a distribution of these files, as pip leaves one."""
    info = site_packages / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    lines = [f"Requires-Dist: {requirement}" for requirement in requires]
    head = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    (info / "METADATA").write_text("\n".join([*head, *lines]) + "\n")
    for path in files:
        (site_packages / path).parent.mkdir(parents=True, exist_ok=True)
        (site_packages / path).touch()
    listed = [*files, f"{info.name}/METADATA", f"{info.name}/RECORD"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in listed))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of a package, what it requires, and what it does not."""
    folder = tmp_path / "site-packages"
    install(
        folder,
        "Top.One",
        "deep-er[more]>=1 ; python_version > '3'",
        "rare; extra == 'all'",
        "absent>2",
        files=("top/__init__.py", "../../bin/top", "__pycache__/other.pyc"),
    )
    install(folder, "deep-er", "top-one", files=("deeper/__init__.py", "deep.py"))
    install(folder, "rare", files=("rare/__init__.py",))
    monkeypatch.syspath_prepend(str(folder))
    packages.find.cache_clear()
    return folder


def tops(found: packages.Packages) -> set[str]:
    return {Path(path).name for path in found.paths}


def test_a_package_comes_with_what_it_requires_and_no_extra(environment: Path) -> None:
    found = packages.find(("top_one",))
    both = {"top", "Top.One-1.0.dist-info", "deeper", "deep.py", "deep_er-1.0.dist-info"}
    assert tops(found) == both  # no scripts, nothing that was compiled of others
    assert found.folders == (str(environment),)
    assert found.modules == ()
    assert packages.missing(["top.one", "absent", "rare"]) == ("absent",)


def test_more_names_never_show_less(environment: Path) -> None:
    names = ("top-one", "deep-er", "rare", "absent", *PYTHON_PACKAGES)
    for some in itertools.combinations(names, 2):
        for more in names:
            assert tops(packages.find(some)) <= tops(packages.find((*some, more)))


def test_numpy_is_loaded_in_advance_and_pytest_is_not() -> None:
    packages.find.cache_clear()
    found = packages.find(PYTHON_PACKAGES)
    assert found.modules == ("numpy",)
    assert {"_pytest", "pluggy", "iniconfig"} <= tops(found)
    assert "hypothesis" not in tops(found)


def test_a_package_that_the_operator_named_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jail_backend, "detect", lambda: Isolation("namespaces", (), ()))
    monkeypatch.setattr(site, "discover", lambda names: Toolchains({}, {}))
    with pytest.raises(StartupError, match="--python-packages names no-such-package"):
        site.survey(SandboxConfig(cache_dir=tmp_path, python_packages=("no-such-package",)))
    config = SandboxConfig(cache_dir=tmp_path, python_packages=("numpy", "hypothesis"))
    settings = site.survey(SandboxConfig.from_json(config.to_json())).settings(config)
    assert type(settings).from_json(settings.to_json()).python_packages == ("numpy", "hypothesis")


# Libraries of languages ---------------------------------------------------------------------------


@pytest.fixture
def libraried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A language `bash` that needs a library, in one of two places."""
    places = (f"{tmp_path}/a/tool-*.jar", f"{tmp_path}/b/tool.jar")
    changed = dataclasses.replace(
        LANGUAGES["bash"], libraries=(Library("tool", places, "tool-dev"),)
    )
    monkeypatch.setitem(LANGUAGES, "bash", changed)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    return tmp_path


def bash() -> Toolchain:
    return discover(["bash"]).found["bash"]


def test_a_language_without_its_library_is_not_served(libraried: Path) -> None:
    lack = discover(["bash"]).missing["bash"]
    why = f"{libraried}/a/tool-*.jar is not there; install tool-dev."
    assert lack == MissingLanguage("bash", why, "tool-dev")


def test_the_first_place_counts_and_is_shown(libraried: Path) -> None:
    (libraried / "b/tool.jar").write_text("b")
    assert bash().values["tool"] == f"{libraried}/b/tool.jar"
    (libraried / "a/tool-2.jar").write_text("a")
    assert bash().values["tool"] == f"{libraried}/a/tool-2.jar"
    assert f"{libraried}/a/tool-2.jar" in bash().read_only
    assert Toolchains.from_json(Toolchains({"bash": bash()}, {}).to_json()).found["bash"] == bash()


def test_another_library_makes_other_compilations(libraried: Path) -> None:
    jar = libraried / "b/tool.jar"
    jar.write_text("one")
    before = bash().fingerprint
    assert bash().fingerprint == before
    jar.write_text("three")
    changed = bash().fingerprint
    assert changed != before
    os.utime(jar, ns=(1, 1))
    assert bash().fingerprint not in {before, changed}


def test_what_a_language_only_makes_use_of_may_be_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    optional = Library("tool", (f"{tmp_path}/tool",), "tool-dev", needed=False)
    changed = dataclasses.replace(LANGUAGES["bash"], libraries=(optional,))
    monkeypatch.setitem(LANGUAGES, "bash", changed)
    without = bash()
    assert "tool" not in without.values
    (tmp_path / "tool").touch()
    assert bash().fingerprint != without.fingerprint


def test_a_language_whose_python_package_is_absent_is_not_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed = dataclasses.replace(LANGUAGES["pytest"], distributions=("no-such-package",))
    monkeypatch.setitem(LANGUAGES, "pytest", changed)
    assert "no-such-package is not installed" in discover(["pytest"]).missing["pytest"].why


# Plans --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "built"),
    [
        ('import "fmt"', False),
        ('import (\n\t"fmt"\n\tm "math/rand"\n)', False),
        ('import "github.com/stretchr/testify/assert"', True),
        ('import (\n\t"fmt"\n\n\tyaml "gopkg.in/yaml.v3"\n)', True),
        ('import . "example.org/a-b/c"', True),
        ('import "fmt"\nvar host = "example.org/a"', False),
    ],
)
def test_go_builds_what_is_not_of_the_standard_library(imports: str, built: bool) -> None:
    text = f"package main\n{imports}\nfunc main() {{}}\n"
    layout = Layout("main.go", text, (BoxFile("main.go", text.encode()),), warm=True)
    assert ('"$go" build' in str(go_plan(layout)["script"])) is built


def test_jars_of_a_program_are_on_its_class_path() -> None:
    files = tuple(BoxFile(path, b"") for path in ("A.java", "lib/a.jar", "b.jar", "jar.txt"))
    assert (
        java_plan(Layout("A.java", "class A {}", files, warm=False))["jars"] == ":lib/a.jar:b.jar"
    )
    assert java_plan(Layout("A.java", "class A {}", files[:1], warm=False))["jars"] == ""
