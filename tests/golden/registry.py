"""The functions of golden files by name, and what each calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[..., Any]] = {}
ROADS: dict[str, tuple[Callable[..., Any], ...]] = {}


def golden(*roads: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters an adapter under its own name, with the functions of the project that it is for."""

    def enter(adapter: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[adapter.__name__] = adapter
        ROADS[adapter.__name__] = roads
        return adapter

    return enter


def fixed(name: str, found: float, own: float) -> None:
    """Refuses a number that no run can set."""
    if not math.isclose(found, own):
        raise ValueError(f"{name} is {own:g} in every run, not {found:g}")
