"""Rewards for a type of Python, between backticks."""

from __future__ import annotations

import ast
import re

CONTAINERS = {"list": 1, "set": 1, "dict": 2, "tuple": 2}
BASIC = {"str", "int", "float", "bool", "bytes"}
Hint = tuple[object, ...]


def quoted(text: str) -> str:
    """Empty for what is not between backticks."""
    found = re.fullmatch(r"\s*`([A-Za-z\[\]|, ()]{1,200})`\s*", text)
    return found[1].strip() if found else ""


def union(*sides: Hint) -> Hint:
    """Its members, each once, in one order."""
    members = {one for side in sides for one in (side[1:] if side[0] == "|" else (side,))}
    return ("|", *sorted(members, key=repr))


def tree(node: ast.expr) -> Hint:
    """ValueError for what is no type of these."""
    if isinstance(node, ast.Constant) and node.value is None:
        return ("None",)
    if isinstance(node, ast.Name) and node.id in BASIC:
        return (node.id,)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return union(tree(node.left), tree(node.right))
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        raise ValueError(ast.dump(node))
    held = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    name, inner = node.value.id, [tree(one) for one in held]
    if name == "Optional" and len(inner) == 1:
        return union(*inner, ("None",))
    if name == "Union" and len(inner) > 1:
        return union(*inner)
    if name in {"List", "Set", "Dict", "Tuple"}:
        name = name.lower()
    if CONTAINERS.get(name) != len(inner):
        raise ValueError(name)
    return (name, *inner)


def hint(text: str) -> Hint | None:
    try:
        return tree(ast.parse(quoted(text), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def outer_type(response: str, reference: str) -> float:
    got, wanted = hint(response), hint(reference)
    return 1.0 if got and wanted and got[0] == wanted[0] else 0.0


def names_of_types(response: str, reference: str) -> float:
    """In any order, as that of | is free."""
    got, wanted = (
        sorted(re.findall(r"\w+", quoted(text).lower())) for text in (response, reference)
    )
    return 1.0 if got and got == wanted else 0.0


def without_none(found: Hint) -> Hint:
    inner = [without_none(one) if isinstance(one, tuple) else one for one in found]
    if inner[0] == "|" and ("None",) in inner:
        inner.remove(("None",))
    if inner[0] == "|" and len(inner) == 2 and isinstance(inner[1], tuple):
        return inner[1]
    return tuple(inner)


def type_if_there_is_one(response: str, reference: str) -> float:
    """Optional or not."""
    got, wanted = hint(response), hint(reference)
    return 1.0 if got and wanted and without_none(got) == without_none(wanted) else 0.0


def same_type(response: str, reference: str) -> float:
    """Optional[X] is X | None, and List is list."""
    got = hint(response)
    return 1.0 if got is not None and got == hint(reference) else 0.0


def type_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
