"""`assay doctor` says when somebody else's distribution takes the name `assay`."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

import assay
from assay.cli.commands.doctor import look_at_name


def installed(folder: Path, name: str, *files: str, script: str = "") -> None:
    """A distribution as pip leaves it: its record, and its command."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    if script:
        (info / "entry_points.txt").write_text(f"[console_scripts]\nassay = {script}\n")


def test_here_nobody_else_has_it() -> None:
    assert look_at_name(getattr(assay, "__file__", None)) == []


def test_a_package_or_command_of_somebody_else_is_named(tmp_path: Path) -> None:
    installed(tmp_path, "assay", "assay/__init__.py", "assay/core.py", script="assay.core:main")
    installed(tmp_path, "ours", "assay/cli/main.py", script="assay.cli.__main__:main")
    installed(tmp_path, "bystander", "bystander/__init__.py")
    [found] = look_at_name("x/assay/__init__.py", distributions(path=[str(tmp_path)]))
    assert found.fine is False
    assert found.what == "assay (not of Assay)"
    assert found.found == (
        "assay/__init__.py and the command assay (assay.core:main), which hides ours: "
        "pip uninstall assay"
    )


def test_a_file_of_nobody_is_named_too(tmp_path: Path) -> None:
    [found] = look_at_name("x/assay/__init__.py", distributions(path=[str(tmp_path)]))
    assert found.found == "x/assay/__init__.py makes it a package, which hides ours: remove it"
