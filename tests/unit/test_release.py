"""What GitHub runs and what a release is made by, without GitHub."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import release

TODAY = dt.date(2026, 11, 23)
CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n### Added\n\n- This.\n\n## 0.1.0 - 2026-11-01\n\n- That.\n"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two distributions, a tool's table that is none, and a CHANGELOG."""
    for folder in ("kit", "plugins/compat"):
        (tmp_path / folder).mkdir(parents=True)
        text = f'[project]\nname = "assay-{Path(folder).name}"\nversion = "0.1.0"\n'
        (tmp_path / folder / "pyproject.toml").write_text(text)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def test_a_version_is_set_everywhere_and_then_agrees(tree: Path) -> None:
    release.check(tree, "v0.1.0")
    with pytest.raises(ValueError, match=r"another version than 0\.2\.0: kit 0\.1\.0, plugins/co"):
        release.check(tree, "v0.2.0")
    release.set_version(tree, "0.2.0", TODAY)
    assert release.versions(tree) == {"kit": "0.2.0", "plugins/compat": "0.2.0"}
    release.check(tree, "v0.2.0")
    assert release.notes(tree, "0.2.0") == "### Added\n\n- This.\n"
    assert release.notes(tree, "0.1.0") == "- That.\n"
    text = (tree / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 0.2.0 - 2026-11-23\n\n### Added" in text
    with pytest.raises(ValueError, match="nothing under Unreleased"):
        release.set_version(tree, "0.3.0", TODAY)


@pytest.mark.parametrize("tag", ["0.1.0", "v1", "v0.1.0-beta", "main", "v0.1.0; rm -rf /"])
def test_what_is_no_tag_of_a_version_is_refused(tree: Path, tag: str) -> None:
    with pytest.raises(ValueError, match="no tag of a version"):
        release.check(tree, tag)


def test_a_version_without_a_word_in_the_changelog_is_refused(tree: Path) -> None:
    release.set_version(tree, "0.2.0", TODAY)
    (tree / "CHANGELOG.md").write_text(CHANGELOG)
    with pytest.raises(ValueError, match=r"says nothing of 0\.2\.0"):
        release.check(tree, "v0.2.0")


def test_every_distribution_has_one_version(repository: Path) -> None:
    assert len(set(release.versions(repository).values())) == 1


@pytest.mark.slow
def test_a_release_has_a_wheel_and_an_sdist_of_each(repository: Path, tmp_path: Path) -> None:
    made = [path.name for path in release.build(repository, tmp_path / "dist")]
    assert len(made) == 2 * len(release.distributions(repository))
    assert sum(name.endswith(".whl") for name in made) * 2 == len(made)


def checked(repository: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_and_forms_are_what_github_takes(repository: Path) -> None:
    folder = repository / ".github"
    for schema, files in {
        "vendor.github-workflows": sorted(folder.glob("workflows/*.yml")),
        "custom.github-workflows-require-timeout": sorted(folder.glob("workflows/*.yml")),
        "vendor.github-issue-forms": sorted(
            set(folder.glob("ISSUE_TEMPLATE/*.yml")) - {folder / "ISSUE_TEMPLATE/config.yml"}
        ),
        "vendor.github-issue-config": [folder / "ISSUE_TEMPLATE/config.yml"],
    }.items():
        assert files
        checked(repository, "check_jsonschema", "--builtin-schema", schema, *map(str, files))


def test_workflows_give_no_power_away(repository: Path) -> None:
    program = Path(sys.executable).with_name("zizmor")
    command = [program, "--offline", "--no-progress", repository / ".github"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_call_what_there_is(repository: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (repository / "Makefile").read_text(), re.MULTILINE))
    called = [
        step["run"]
        for file in sorted((repository / ".github/workflows").glob("*.yml"))
        for job in yaml.safe_load(file.read_text())["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    assert ".ci/run" in called
    for command in called:
        assert set(re.findall(r"\bmake ([\w-]+)", command)) <= targets
        for script in re.findall(r"scripts/\w+\.py", command):
            assert (repository / script).is_file()
