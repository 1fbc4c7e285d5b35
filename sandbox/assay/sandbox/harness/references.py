"""References to objects that are no plain values, in what crosses between processes."""

from __future__ import annotations

from collections.abc import Callable


class CodecError(ValueError):
    """These bytes are no plain value, or this value cannot be carried as one."""


class Ref:
    """Stands for an object that stays in its process.

    Attributes:
        side: who has it, "c" the candidate or "t" the tester.
        number: its number there.
        kind: for people and for the proxy, e.g. "instance", "class", "generator".
        type_name: the name of its type.
        traits: those special methods of its type that a proxy carries.
    """

    __slots__ = ("kind", "number", "side", "traits", "type_name")

    def __init__(
        self,
        side: str,
        number: int,
        kind: str = "",
        type_name: str = "",
        traits: tuple[str, ...] = (),
    ) -> None:
        self.side = side
        self.number = number
        self.kind = kind
        self.type_name = type_name
        self.traits = traits

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ref):
            return False
        return (other.side, other.number) == (self.side, self.number)

    def __hash__(self) -> int:
        return hash((self.side, self.number))

    def __repr__(self) -> str:
        return f"<{self.kind or 'object'} of type {self.type_name}>"


Opaque = Callable[[object], "Ref | LibraryName"]
"""Makes a reference to an object that is no plain value."""

Resolve = Callable[[Ref], object]
"""Makes an object of a reference; raises CodecError for an unknown one."""

Keep = Callable[[object], "Ref | None"]
"""Makes a reference to an object that is plain data and more; else None."""

Carry = Callable[[Ref, object], object]
"""Makes an object of plain data and the reference that came with it."""

Import = Callable[[str, str], object]
"""Finds a library's object by its module and its name there."""


class LibraryName:
    """Stands for a library's function or class; the reader takes its own."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name
