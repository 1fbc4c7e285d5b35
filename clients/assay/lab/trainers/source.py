"""A trainer's own functions, from its own files, where its package cannot be imported on a CPU."""

from __future__ import annotations
import __future__

import ast
import importlib.util
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_COMMIT = 8


def folder_of(package: str) -> Path:
    """Where a package lies; it is not imported.

    Raises:
        ImportError: it is not installed, and no checkout of it is on the path.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"no package {package}; put a checkout of it on PYTHONPATH")
    return Path(next(iter(spec.submodule_search_locations)))


def version_of(package: str, distribution: str = "") -> str:
    """The version of a package from an index, or the commit of a checkout.

    Raises:
        ImportError: as `folder_of`.
    """
    folder = folder_of(package)
    try:
        if distribution:
            return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        pass
    asked = ["git", "-C", str(folder), "rev-parse", f"--short={_COMMIT}", "HEAD"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603  # fixed words
    return f"{package} at commit {found.stdout.strip() or 'unknown'}"


def taken(package: str, file: str, *names: str, **given: Any) -> Any:
    """Functions and classes of a file, compiled as they stand, without the file's imports.

    Args:
        package: the one that holds it.
        file: its path there.
        names: of what is wanted, "function", "Class" or "Class.method"; of several the last is
            returned, and all see one another.
        given: the globals that they use.

    Raises:
        ImportError: the package is not there, or the file has no such name: another version.
    """
    path = folder_of(package) / file
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImportError(f"{package} has no file {file}; another version?") from error
    scope: dict[str, Any] = {"__name__": f"{package}.taken", **given}
    found: Any = None
    for name in names:
        node = _named(tree, name.split("."))
        if node is None:
            raise ImportError(f"{file} of {package} has no {name}; another version?")
        module = ast.Module(body=[node], type_ignores=[])
        flags = __future__.annotations.compiler_flag
        exec(compile(module, str(path), "exec", flags, dont_inherit=True), scope)  # noqa: S102  # the trainer's own code
        found = scope[node.name]
    return found


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _named(tree: ast.AST, names: list[str]) -> Definition | None:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition) and node.name == names[0]:
            return node if len(names) == 1 else _named(node, names[1:])
    return None
