"""What a candidate says: shapes that are read, and everything else, which is refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.sandbox.harness import protocol
from assay.sandbox.harness.codec import encode
from assay.sandbox.harness.protocol import (
    CallBack,
    ProtocolError,
    Raised,
    Returned,
    Stopped,
    read_answer,
    read_callback,
)
from assay.sandbox.harness.references import CodecError, Ref


def refuse(ref: Ref) -> object:
    raise CodecError("a reference to nothing")


def carry(ref: Ref, plain: object) -> object:
    return plain


def call_back(content: bytes) -> CallBack:
    return read_callback(content, resolve=refuse, carry=carry)


def test_answers_are_read() -> None:
    assert read_answer(b'["value",1,[],-1]') == Returned((1, [], -1))
    assert read_answer(b'["stop",null]') == Stopped(None)
    content = encode(["error", "E", ["ValueError"], "text", "line 1", [1], {"code": 5}])
    assert read_answer(content) == Raised("E", ("ValueError",), "text", "line 1", (1,), {"code": 5})


def test_call_backs_are_read() -> None:
    assert call_back(encode(["call", 0, [1], {"a": 2}])) == CallBack("call", 0, ([1], {"a": 2}))
    assert call_back(b'["getattr",7,"x"]') == CallBack("getattr", 7, ("x",))
    assert call_back(b'["setattr",7,"x",1]') == CallBack("setattr", 7, ("x", 1))
    assert call_back(b'["next",7]') == CallBack("next", 7, ())


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"5", b"null", b"[]", b'"value"', b'{"t":["value",1]}', b"[5,1]", b'["passed",1]'),
        *(b'["stop"]', b'["stop",1,2]', b'["error"]', b'["error",1,2,3,4,5,6]', b"[NaN]"),
        *(b'["error","E","ValueError","x","",null,null]', b'["error","E",[5],"x","",null,null]'),
        *(b'["error",["E"],[],"x","",null,null]', b'["error","E",[],"x","",5,null]'),
        *(b"[" * 500_000, b'["value",' + b"[" * 200 + b"]" * 200 + b"]"),
        b'["value",{"l":["os","abort"]}]',
        *(b'["value",{"y":"type"}]', b'["value",{"y":"object"}]', b'["value",{"y":"property"}]'),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(content: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_answer(content)


@pytest.mark.parametrize(
    "content",
    [
        *(b'["call",{"y":"type"},[],{"d":[]}]', b'["call",{"y":"int"},[],{"d":[]}]'),
        *(b'["call",{"h":["t",0,"","",[]]},[],{"d":[]}]', b'["call",-1,[],{"d":[]}]'),
        *(b'["call",true,[],{"d":[]}]', b'["call",0.0,[],{"d":[]}]', b'["call","f",[],{"d":[]}]'),
        *(b'["call",0]', b'["call",0,[]]', b'["call",0,{"t":[]},{"d":[]}]', b'["call",0,[],[]]'),
        *(b'["call",0,[],{"d":[1,2]}]', b'["getattr",0]', b'["getattr",0,5]', b'["import","os"]'),
        *(b'["eval",0,"1"]', b'["next",0,1]', b'["__class__",0]', b'[["call"],0,[],{"d":[]}]'),
        *(b'["call",0,[{"h":["t",0,"","",[]]}],{"d":[]}]', b"[]", b"null", b'["call"]'),
        b'["call",0,[{"h":["t",-1,"","",[]]}],{"d":[]}]',
    ],
)  # fmt: skip
def test_what_is_no_call_back_is_refused(content: bytes) -> None:
    with pytest.raises(ProtocolError):
        call_back(content)


@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8)
    | st.sampled_from(["value", "error", "stop", "call", "getattr", "next", "h", "t", "c", "y"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(
        st.sampled_from(["h", "t", "d", "y", "l", "p", "n", "k", "F", "r"]), inner, max_size=1
    ),
    max_leaves=20,
).map(lambda tree: json.dumps(tree).encode()))  # fmt: skip
def test_anything_is_read_or_refused(content: bytes) -> None:
    readers: list[Callable[[bytes], object]] = [read_answer, call_back]
    for read in readers:
        try:
            read(content)
        except ProtocolError:
            continue


def test_rows_are_of_names_that_were_asked_for_each_once() -> None:
    rows = Returned(([["f", 1], ["g", 2]],))
    assert protocol.rows(rows, ["f", "g", "h"]) == {"f": 1, "g": 2}
    assert protocol.rows(rows, None) == {"f": 1, "g": 2}
    for spoilt in (
        [["f", 1], ["__builtins__", 2]], [["f", 1], ["f", 2]], [["f"]], [["f", 1, None]], [[5, 1]],
        [[["f"], 1]], "f", 5, None,
    ):  # fmt: skip
        with pytest.raises(ProtocolError):
            protocol.rows(Returned((spoilt,)), ["f", "g", "h"])


def test_changes_are_of_arguments_that_were_given() -> None:
    assert protocol.read_call_report(Returned((5, [[0, [1]]], -1)), 1) == (5, [(0, [1])], -1, [])
    assert protocol.read_call_report(Returned((None, [], 1)), 2) == (None, [], 1, [])
    for spoilt in (
        (5, [[1, 1]], -1), (5, [[-1, 1]], -1), (5, [[True, 1]], -1), (5, [], 1), (5, [], True),
        (5, [], -2), (5, [], None), (5, None, -1), (5, [[0]], -1), (5,), (5, [], -1, 0),
    ):  # fmt: skip
        with pytest.raises(ProtocolError):
            protocol.read_call_report(Returned(spoilt), 1)


def test_texts_are_told_where_they_were_asked_for() -> None:
    told = protocol.read_call_report(Returned((5, [], -1, ["out", "err", ""])), 1, streams=True)
    assert told.texts == ["out", "err", ""]
    for spoilt in (["out"], ["out", 5, ""], "abc", None, ["a", "b", "c", "d"]):
        with pytest.raises(ProtocolError):
            protocol.read_call_report(Returned((5, [], -1, spoilt)), 1, streams=True)
    with pytest.raises(ProtocolError):
        protocol.read_call_report(Returned((5, [], -1)), 1, streams=True)


def test_one_value_is_one() -> None:
    assert protocol.single(Returned((5,))) == 5
    assert protocol.names(Returned((["f", "g"],))) == ["f", "g"]
    for values in ((), (1, 2)):
        with pytest.raises(ProtocolError):
            protocol.single(Returned(values))
    for names in (5, "f", [5], ["x" * 2_000], None):
        with pytest.raises(ProtocolError):
            protocol.names(Returned((names,)))


def test_a_frame_is_its_parts() -> None:
    data = protocol.frame(b"A", b"12345678", b"[]")
    assert protocol.split(data) == (b"A", b"12345678", b"[]")
    assert protocol.split(b"A") == (b"A", b"", b"")
    assert protocol.split(b"") == (b"", b"", b"")
