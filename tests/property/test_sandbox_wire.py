"""Laws of what crosses borders: plain values, frames, and the room of an answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.execution.v1 import execution_pb2
from assay.rpc.plain import from_plain, to_plain
from assay.sandbox.slots import frames
from assay.sandbox.slots.frames import Frame, FrameReader
from assay.sandbox.tickets import Room

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
KEYS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
VALUES = st.recursive(
    SCALARS | st.sets(KEYS, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


def typed(value: object) -> object:
    """A form in which 1, 1.0 and True differ."""
    if isinstance(value, list | tuple):
        return (type(value).__name__, [typed(part) for part in value])
    if isinstance(value, dict):
        return ("dict", [(typed(key), typed(part)) for key, part in value.items()])
    if isinstance(value, set):
        return ("set", sorted(repr(typed(part)) for part in value))
    return (type(value).__name__, value)


@given(VALUES)
def test_a_plain_value_survives_the_wire(value: object) -> None:
    wire = to_plain(value).SerializeToString()
    assert typed(from_plain(execution_pb2.PlainValue.FromString(wire))) == typed(value)


def test_numbers_that_are_not_numbers_survive() -> None:
    back = from_plain(to_plain([math.nan, math.inf, -math.inf, -0.0]))
    assert isinstance(back, list)
    assert math.isnan(back[0])
    assert back[1:3] == [math.inf, -math.inf]
    assert math.copysign(1.0, back[3]) == -1.0


@pytest.mark.parametrize("deepen", [lambda v: [v], lambda v: (v,), lambda v: {1: v}])
def test_what_may_be_sent_can_be_parsed_where_it_arrives(deepen: object) -> None:
    assert callable(deepen)
    value: object = 0
    deepest: object = None
    for _ in range(200):
        value = deepen(value)
        try:
            deepest = to_plain(value)
        except ValueError:
            break
    else:
        pytest.fail("nothing is too deep")
    call = execution_pb2.CallTest(function="f", expected=deepest)  # type: ignore[arg-type]
    suite = execution_pb2.TestSuite(tests=[execution_pb2.TestCase(call=call)])
    job = execution_pb2.TestJob(id="a", suite=suite)
    request = execution_pb2.RunTestsRequest(jobs=[job])
    assert execution_pb2.RunTestsRequest.FromString(request.SerializeToString()) == request


@pytest.mark.parametrize(
    "value", [object(), range(3), 1j, bytearray(b"x"), type("I", (int,), {})(1)]
)
def test_what_is_not_plain_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        to_plain([value])


@pytest.mark.parametrize(
    "message",
    [
        execution_pb2.PlainValue(),
        execution_pb2.PlainValue(big_int_value="12x"),
        execution_pb2.PlainValue(big_int_value="٣"),
        execution_pb2.PlainValue(big_int_value="9" * 5000),
        execution_pb2.PlainValue(
            set_value=execution_pb2.PlainList(values=[to_plain([1])]),
        ),
        execution_pb2.PlainValue(
            set_value=execution_pb2.PlainList(values=[to_plain({1: 2})]),
        ),
        execution_pb2.PlainValue(
            mapping_value=execution_pb2.PlainMapping(
                entries=[execution_pb2.PlainEntry(key=to_plain(([],)), value=to_plain(1))]
            )
        ),
    ],
)
def test_a_message_that_is_no_value_is_refused(message: execution_pb2.PlainValue) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any text will do
        from_plain(message)


FRAMES = st.lists(
    st.builds(
        Frame,
        st.sampled_from([frames.EXECUTE, frames.DONE, frames.FAULT]),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=200),
    ),
    max_size=8,
)


@given(FRAMES, st.data())
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    sent: list[Frame], data: st.DataObject
) -> None:
    stream = b"".join(frames.pack(*frame) for frame in sent)
    reader, received = FrameReader(), []
    position = 0
    while position < len(stream):
        step = data.draw(st.integers(1, len(stream) - position))
        received += reader.feed(stream[position : position + step])
        position += step
    assert received == sent


@pytest.mark.parametrize("rest", [0, 8, 2**31])
def test_an_impossible_length_ends_the_reading(rest: int) -> None:
    with pytest.raises(frames.FrameError):
        FrameReader().feed(rest.to_bytes(4, "big") + b"D" + bytes(8))


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(200, 2000))
def test_an_answer_never_outgrows_its_room_and_never_loses_a_result(
    sizes: list[int], room_bytes: int
) -> None:
    room = Room(room_bytes)
    results = []
    for number, size in enumerate(sizes):
        result = execution_pb2.ExecutionResult(id=str(number))
        result.execution.stdout.data = b"x" * size
        results.append(room.fit(result))
    assert [result.id for result in results] == [str(number) for number in range(len(sizes))]
    assert all(result.WhichOneof("outcome") for result in results)
    kept = sum(r.ByteSize() for r in results if r.WhichOneof("outcome") == "execution")
    assert kept <= room_bytes
