"""What stands in algos/ trains: a function or class there that only tests call is a failure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "assay.trainer.algos"
Name = tuple[str, str]
"""A module of algos/, and what it defines."""


@pytest.mark.slow
def test_every_kernel_is_reached_by_the_code_that_trains(repository: Path) -> None:
    assert uncalled(repository / "trainer" / "assay" / "trainer") == set()


@pytest.mark.parametrize(
    ("caller", "left"),
    [
        ("from assay.trainer.algos.kernels import outer\n\nouter()\n", set()),
        ("from assay.trainer.algos import kernels as k\n\nk.outer()\n", set()),
        ("from assay.trainer.algos.other import beside as b\n\nb()\n", set()),
        ("from assay.trainer.algos.kernels import inner\n\ninner()\n", {"kernels.outer"}),
        ("from assay.trainer.algos.kernels import outer\n", {"kernels.outer", "kernels.inner"}),
        ("def outer() -> None: ...\n\nouter()\n", {"kernels.outer", "kernels.inner"}),
        ('FUNCTION = "assay.trainer.algos.kernels:outer"\n', set()),
        ('"""As assay.trainer.algos.kernels:outer does."""\n', {"kernels.outer", "kernels.inner"}),
    ],
)
def test_a_kernel_without_a_caller_is_found(tmp_path: Path, caller: str, left: set[str]) -> None:
    """A call by a kernel counts where that kernel is called itself; an import is no call.

    What a declaration names is called: the registry resolves it.
    """
    (tmp_path / "algos").mkdir()
    (tmp_path / "algos" / "kernels.py").write_text(
        "def outer() -> None:\n    inner()\n    outer()\n\n\ndef inner() -> None: ...\n"
    )
    (tmp_path / "algos" / "other.py").write_text(
        "from assay.trainer.algos.kernels import outer\n\n\ndef beside() -> None:\n    outer()\n"
    )
    (tmp_path / "caller.py").write_text(caller)
    assert uncalled(tmp_path) - {"other.beside"} == left


def uncalled(root: Path) -> set[str]:
    """Public functions and classes of `algos` that nothing outside of it leads to."""
    kernels = {file.stem: ast.parse(file.read_text()) for file in (root / "algos").glob("*.py")}
    defined = {
        (module, node.name): node
        for module, tree in kernels.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    left = [
        name
        for file in root.rglob("*.py")
        if file.parent.name != "algos"
        for name in used(ast.parse(file.read_text()), imported(ast.parse(file.read_text())))
    ]
    reached: set[Name] = set()
    while left:
        name = left.pop()
        if name in reached or name not in defined:
            continue
        reached.add(name)
        module = name[0]
        own = {one: (other, one) for other, one in defined if other == module}
        left += used(defined[name], own | imported(kernels[module]))
    return {f"{m}.{n}" for m, n in set(defined) - reached if not n.startswith("_")}


def imported(tree: ast.Module) -> dict[str, Name]:
    """What names of a file stand for: a kernel, or a module of them, whose second part is empty."""
    found: dict[str, Name] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(PACKAGE):
            continue
        module = (node.module or "")[len(PACKAGE) + 1 :]
        for one in node.names:
            found[one.asname or one.name] = (module, one.name) if module else (one.name, "")
    return found


def used(tree: ast.AST, names: dict[str, Name]) -> Iterator[Name]:
    """The kernels that the code names, other than by importing them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            yield names[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module, kernel = names.get(node.value.id, ("", ""))
            if module and not kernel:
                yield module, node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            declared = re.fullmatch(rf"{re.escape(PACKAGE)}\.(\w+):(\w+)", node.value)
            if declared:
                yield declared[1], declared[2]
