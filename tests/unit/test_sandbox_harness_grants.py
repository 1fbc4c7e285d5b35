"""What the tests hand over: each kind of object, and what a program may do with it."""

from __future__ import annotations

import asyncio
import functools
import io
import math
import operator
import types
import unittest
from collections import deque
from typing import Any
from unittest import mock

import pytest

from assay.sandbox.harness.grants import Grants, UnsupportedRequest
from assay.sandbox.harness.protocol import CallBack
from assay.sandbox.harness.references import CodecError, LibraryName, Ref

MODULE = "written"

CODE = """
import unittest
class Node:
    __slots__ = ("value", "next", "_secret")
    def __init__(self, value=0, next=None):
        self.value, self.next, self._secret = value, next, 5
    def double(self):
        return self.value * 2
class Case(unittest.TestCase):
    def helper(self):
        return 1
class Mine(Exception):
    pass
def add(a, b=1):
    return a + b
"""


@pytest.fixture
def written() -> Any:
    """A module of test code."""
    module = types.ModuleType(MODULE)
    exec(CODE, module.__dict__)
    return module


def asked(grants: Grants, ref: Ref | LibraryName, operation: str, *rest: Any) -> object:
    assert isinstance(ref, Ref)
    return grants.serve(CallBack(operation, ref.number, rest))


def test_functions_of_the_tests_are_called(written: Any) -> None:
    grants = Grants(MODULE)
    items: list[int] = []
    for value, args, found in (
        (written.add, [2], 3),
        (lambda x: -x, [2], -2),
        (functools.partial(written.add, 5), [2], 7),
        (operator.itemgetter(1), [[7, 8]], 8),
        (written.Node(4).double, [], 8),
        (items.append, [3], None),
        (functools.lru_cache(written.add), [1], 2),
    ):
        ref = grants.reference(value)
        assert isinstance(ref, Ref)
        assert ref.kind == "callable"
        assert asked(grants, ref, "call", args, {}) == found
        for operation, rest in (("getattr", ["x"]), ("setattr", ["x", 1]), ("next", [])):
            with pytest.raises((AttributeError, TypeError)):
                asked(grants, ref, operation, *rest)
    assert items == [3]


def test_a_class_of_the_tests_is_a_factory_and_no_more(written: Any) -> None:
    grants = Grants(MODULE)
    ref = grants.reference(written.Node)
    made: Any = asked(grants, ref, "call", [3], {})
    assert made.value == 3
    for name in ("double", "__init__", "mro"):
        with pytest.raises(AttributeError):
            asked(grants, ref, "getattr", name)


def test_objects_of_the_tests_show_public_attributes(written: Any) -> None:
    grants = Grants(MODULE)
    node = written.Node(4)
    ref = grants.reference(node)
    assert asked(grants, ref, "getattr", "value") == 4
    asked(grants, ref, "setattr", "next", 7)
    assert node.next == 7
    for name in ("_secret", "__class__", "__dict__", "__init__"):
        with pytest.raises(AttributeError):
            asked(grants, ref, "getattr", name)
        with pytest.raises(AttributeError):
            asked(grants, ref, "setattr", name, 1)
    with pytest.raises(AttributeError, match="method"):
        asked(grants, ref, "setattr", "double", 1)


def test_nothing_of_unittest_is_in_reach(written: Any) -> None:
    grants = Grants(MODULE)
    case = written.Case()
    ref = grants.reference(case)
    for operation, rest in (
        ("getattr", ["assertEqual"]), ("setattr", ["assertEqual", len]), ("call", [[], {}]),
    ):  # fmt: skip
        with pytest.raises((AttributeError, TypeError)):
            asked(grants, ref, operation, *rest)
    assert asked(grants, grants.reference(case.helper), "call", [], {}) == 1
    with pytest.raises(UnsupportedRequest):
        grants.reference(case.assertEqual)


def test_of_a_mock_only_its_children_are_read() -> None:
    grants = Grants(MODULE)
    double = mock.MagicMock()
    double.fetch.return_value = 5
    ref = grants.reference(double)
    child = asked(grants, ref, "getattr", "fetch")
    assert asked(grants, grants.reference(child), "call", [1], {}) == 5
    double.fetch.assert_called_once_with(1)
    for name in ("assert_called", "configure_mock", "return_value", "side_effect", "reset_mock"):
        with pytest.raises(AttributeError):
            asked(grants, ref, "getattr", name)
    with pytest.raises(AttributeError):
        asked(grants, ref, "setattr", "fetch", 1)


def test_iterators_give_their_next_element() -> None:
    grants = Grants(MODULE)
    for iterator in (iter([1]), (x for x in (1,)), map(abs, [-1]), iter(deque([1]))):
        ref = grants.reference(iterator)
        assert asked(grants, ref, "next") == 1
        with pytest.raises(StopIteration):
            asked(grants, ref, "next")
        with pytest.raises(AttributeError):
            asked(grants, ref, "getattr", "gi_frame")


@pytest.mark.parametrize(
    ("value", "module", "name"),
    [
        (math.gcd, "math", "gcd"),
        (math, "math", ""),
        (len, "builtins", "len"),
        (type, "builtins", "type"),
        (str.upper, "builtins", "str.upper"),
        (deque, "collections", "deque"),
        (Ellipsis, "builtins", "Ellipsis"),
    ],
)
def test_what_a_library_has_goes_by_its_name(value: object, module: str, name: str) -> None:
    found = Grants(MODULE).reference(value)
    assert isinstance(found, LibraryName)
    assert (found.module, found.name) == (module, name)


@pytest.mark.parametrize(
    "value", [io.StringIO(), asyncio.Lock(), unittest.TestSuite(), types.SimpleNamespace()]
)
def test_what_cannot_be_handed_over_is_said(value: object) -> None:
    with pytest.raises(UnsupportedRequest, match="cannot be carried"):
        Grants(MODULE).reference(value)


def test_what_is_inert_can_only_be_known_again(written: Any) -> None:
    grants = Grants(MODULE)
    for value in (ValueError("x"), object(), written.Mine, written.Mine()):
        ref = grants.reference(value)
        assert isinstance(ref, Ref)
        assert grants.given(ref.number) is value
        assert grants.reference(value) == ref
        with pytest.raises((TypeError, AttributeError)):
            asked(grants, ref, "call", [], {})
        with pytest.raises(AttributeError):
            asked(grants, ref, "getattr", "args")


def test_a_number_that_was_not_given_means_nothing() -> None:
    grants = Grants(MODULE)
    grants.reference(lambda: 1)
    for number in (1, 2, 10**9):
        with pytest.raises(CodecError):
            grants.given(number)
        with pytest.raises(AttributeError):
            grants.serve(CallBack("call", number, ([], {})))
