"""Jupyter's messages: what is read, what is published of a cell, and what a slow listener loses."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.session.v1 import session_pb2
from assay.compat.cells import Decoders, raised_by
from assay.compat.fields import BadField
from assay.compat.jupyter import kernels, wire
from assay.kit.errors import CallError

HEADER = {"msg_id": "1", "msg_type": "execute_request"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


@given(JSON, st.sampled_from(["header", "content", "channel", "parent_header"]))
def test_whatever_is_sent_is_read_or_refused(value: object, name: str) -> None:
    valid = {"channel": "shell", "header": HEADER, "content": {"code": "1"}}
    assert wire.read_message(json.dumps(valid)).code == "1"
    for body in (value, {**valid, name: value}, {**valid, "header": {"msg_type": value}}):
        with contextlib.suppress(BadField, CallError):
            asked = wire.read_message(json.dumps(body))
            json.dumps(wire.empty_reply(asked))


def test_a_request_without_code_is_refused() -> None:
    with pytest.raises(BadField):
        wire.read_message(json.dumps({"header": HEADER, "content": {}}))


def test_an_answer_names_what_it_answers() -> None:
    text = wire.message("iopub", "status", {"execution_state": "idle"}, dict(HEADER), "kernel")
    found = json.loads(text)
    assert (found["parent_header"], found["channel"]) == (HEADER, "iopub")
    assert (found["header"]["msg_type"], found["msg_type"]) == ("status", "status")
    assert found["header"]["msg_id"] == found["msg_id"] != HEADER["msg_id"]


def test_every_end_of_a_cell_has_one_reply_that_agrees_with_what_was_published() -> None:
    value = session_pb2.DisplayValue(data={"text/plain": b"1"})
    for end in session_pb2.CellEnd.values()[1:]:
        result = session_pb2.CellResult(end=end, error={"name": "E", "traceback": "T\nE: no\n"})
        if end == session_pb2.CELL_END_COMPLETED:
            result.value.CopyFrom(value)
        event = session_pb2.ExecuteResponse(result=result)
        kinds = dict(wire.published(event, Decoders(), 3))
        reply = wire.reply(raised_by(result), 3)
        if end == session_pb2.CELL_END_COMPLETED:
            assert kinds["execute_result"]["data"] == {"text/plain": "1"}
            assert (reply["status"], set(kinds)) == ("ok", {"execute_result"})
        else:
            assert (reply["status"], set(kinds)) == ("error", {"error"})
            assert kinds["error"].items() <= reply.items()
            assert "\n" not in "".join(kinds["error"]["traceback"])


async def test_a_listener_that_falls_behind_is_broken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "_MOST_UNSENT_CHARS", 10)
    line = kernels.Outbox()
    line.tell("12345")
    assert await line.next() == "12345"
    line.tell("12345678")
    assert not line.broken
    line.tell("12345")
    assert line.broken
