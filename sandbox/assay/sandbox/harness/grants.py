"""What the tests hand to the candidate's program, and what it may do with it.

An object of the tests' that is no plain value gets a number when the tests hand it over, by which
the program may use it:

    callable    a function, lambda or method that the test code wrote; a method of a container of
                its own; a functools.partial and what `operator` makes; a class of the test code,
                as the factory that it is: called
    instance    an object of a class of the test code: public attributes read and set, methods
                called; what its class defines is not replaced
    mock        of unittest.mock: called, its children read
    iterator    a generator or another iterator of built-in kind: the next element
    inert       exceptions, object(), classes made for proxies: only known again

A library's function or class goes by its name: the program takes its own. Nothing else can be
handed over (`UnsupportedRequest`).

Covered: the program builds, imports and calls nothing that the tests did not hand over; unknown
numbers mean nothing; no name with a leading underscore is read or set; nothing of unittest's own
(assertions, skips, clean-ups) is in reach.
Not covered: what the test code's own functions do with the arguments they get.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import unittest
from collections.abc import Iterator
from typing import Any, Final

from assay.sandbox.harness.names import LIBRARIES
from assay.sandbox.harness.protocol import CallBack
from assay.sandbox.harness.references import CodecError, LibraryName, Ref

_CONTAINERS: Final = (list, dict, set, frozenset, tuple, str, bytes, bytearray, int, float)
_MADE_CALLABLE: Final = (
    functools.partial, operator.itemgetter, operator.attrgetter, operator.methodcaller,
)  # fmt: skip
_BY_NAME: Final = (types.FunctionType, types.BuiltinFunctionType, type, types.MethodDescriptorType)
_BUILT_IN_ITERATORS: Final = frozenset({"builtins", "itertools", "_collections"})


class UnsupportedRequest(BaseException):
    """Test code asked for what cannot be served across processes: the suite's fault."""


class Grants:
    """The objects that the tests handed over, by number.

    Args:
        module: the name of the test code's own module.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._objects: list[object] = []
        self._kinds: list[str] = []
        self._numbers: dict[int, int] = {}

    def reference(self, value: object) -> Ref | LibraryName:
        """The program's reference to an object that is handed to it.

        Raises:
            UnsupportedRequest: it cannot be handed over.
        """
        known = self._numbers.get(id(value))
        if known is not None:
            return Ref("t", known, self._kinds[known])
        if value is Ellipsis or value is NotImplemented:
            return LibraryName("builtins", repr(value))
        named = _library_name(value)
        return named if named is not None else self._give(value, self._kind(value))

    def inert(self, value: object) -> Ref:
        """A reference to an object with which the program can do nothing."""
        return self._give(value, "inert")

    def given(self, number: int) -> object:
        """The object of a number.

        Raises:
            CodecError: none has it.
        """
        if not 0 <= number < len(self._objects):
            raise CodecError("a reference to what was not handed over")
        return self._objects[number]

    def serve(self, asked: CallBack) -> object:
        """Does what the program asks of an object, and returns the result.

        Raises:
            Exception: it is not allowed, or what the object itself raises.
        """
        try:
            subject: Any = self.given(asked.number)
        except CodecError as error:
            raise AttributeError(str(error)) from None
        kind = self._kinds[asked.number]
        if asked.operation == "call":
            if kind not in {"callable", "instance", "mock"} or not callable(subject):
                raise TypeError(f"{type(subject).__name__!r} object is not callable")
            return subject(*asked.rest[0], **asked.rest[1])
        if asked.operation == "next":
            if kind != "iterator":
                raise TypeError(f"{type(subject).__name__!r} object is not an iterator")
            return next(subject)
        return self._attribute(subject, kind, asked)

    def _attribute(self, subject: Any, kind: str, asked: CallBack) -> object:
        name = asked.rest[0]
        reads = asked.operation == "getattr"
        if name.startswith("_") or not (kind == "instance" or (reads and kind == "mock")):
            raise AttributeError(name)
        if kind == "mock" and hasattr(type(subject), name):
            raise AttributeError(name)
        if reads:
            return getattr(subject, name)
        if callable(getattr(type(subject), name, None)):
            raise AttributeError(f"{name} is a method")
        setattr(subject, name, asked.rest[1])
        return None

    def _give(self, value: object, kind: str) -> Ref:
        number = self._numbers[id(value)] = len(self._objects)
        self._objects.append(value)
        self._kinds.append(kind)
        return Ref("t", number, kind)

    def _kind(self, value: object) -> str:
        """The kind of use, of the module's table.

        Raises:
            UnsupportedRequest: it cannot be handed over.
        """
        if isinstance(value, (BaseException, unittest.TestCase)) or type(value) is object:
            return "inert"
        if isinstance(value, type):
            own = type(value) is type and value.__module__ == self._module
            return "callable" if own and not issubclass(value, BaseException) else "inert"
        kinds = (
            ("callable", self._is_callable(value)),
            ("mock", _is_mock(value)),
            ("instance", type(value).__module__ == self._module),
            ("iterator", _is_iterator(value)),
        )
        for kind, holds in kinds:
            if holds:
                return kind
        raise UnsupportedRequest(
            f"the test code hands the program an object of {type(value).__module__}."
            f"{type(value).__qualname__}, which cannot be carried"
        )

    def _is_callable(self, value: object) -> bool:
        if isinstance(value, types.MethodType):
            return value.__func__.__module__ == self._module
        if isinstance(value, types.BuiltinMethodType):
            return (
                isinstance(value.__self__, _CONTAINERS) or type(value.__self__).__name__ == "deque"
            )
        wrapped = getattr(value, "__wrapped__", None)
        plain = isinstance(value, types.FunctionType)
        return plain or isinstance(value, _MADE_CALLABLE) or callable(wrapped)


def _library_name(value: object) -> LibraryName | None:
    if isinstance(value, types.ModuleType):
        name = value.__name__
        return LibraryName(name, "") if _of_library(name) else None
    if not isinstance(value, _BY_NAME):
        return None
    owner: Any = getattr(value, "__objclass__", value)
    module, name = getattr(owner, "__module__", None), getattr(value, "__qualname__", "")
    if not (isinstance(module, str) and isinstance(name, str) and _of_library(module)):
        return None
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return LibraryName(module, name) if found is value else None


def _of_library(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in LIBRARIES


def _is_mock(value: object) -> bool:
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(value, mock.NonCallableMock)


def _is_iterator(value: object) -> bool:
    return isinstance(value, Iterator) and type(value).__module__ in _BUILT_IN_ITERATORS
