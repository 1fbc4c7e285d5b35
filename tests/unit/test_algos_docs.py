"""docs/understand/papers.md names every function of the arithmetic and golden name, no more."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import assay.trainer.algos as package
from golden.functions import FUNCTIONS

LAYOUT = {"packing"}
"""How rows lie in memory: no method's arithmetic."""


def public() -> set[str]:
    """module.function, and the classes that are more than a record."""
    names = set()
    for found in pkgutil.iter_modules(package.__path__):
        if found.name in LAYOUT:
            continue
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for name, value in vars(module).items():
            own = getattr(value, "__module__", "") == module.__name__
            if own and inspect.isfunction(value) and not name.startswith("_"):
                names.add(f"{found.name}.{name}")
    return names


def test_the_tables_are_complete(repository: Path) -> None:
    text = (repository / "docs" / "understand" / "papers.md").read_text()
    modules = {name.split(".")[0] for name in public()}
    named = set(re.findall(r"`(\w+\.\w+)`", text))
    assert {name for name in named if name.split(".")[0] in modules} == public() | {
        "value_losses.ValueBins"
    }
    columns = re.findall(r"^\|.*\|$", text, flags=re.MULTILINE)
    words = set(re.findall(r"`(\w+)`", "\n".join(columns)))
    assert words == set(FUNCTIONS)


def test_every_public_function_says_where_it_is_from() -> None:
    """A paper, or that it is a derivation or no paper's: in its docstring or its module's."""
    source = re.compile(r"arXiv|\[derivation|no method of a paper|kl-approx")
    for name in sorted(public()):
        module_name, function = name.split(".")
        module = importlib.import_module(f"{package.__name__}.{module_name}")
        texts = (getattr(module, function).__doc__ or "", module.__doc__ or "")
        assert any(source.search(text) for text in texts), name


def test_nothing_here_knows_trl() -> None:
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        imports = re.findall(r"^(?:from|import) (\w+)", inspect.getsource(module), re.MULTILINE)
        known = {
            "__future__",
            "assay",
            "collections",
            "dataclasses",
            "functools",
            "itertools",
            "math",
            "numpy",
            "statistics",
            "torch",
            "typing",
        }
        assert set(imports) <= known, found.name
