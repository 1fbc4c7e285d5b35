"""Laws of what crosses borders: plain values, frames, and the room of an answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.execution.v1 import execution_pb2
from assay.kit.batch.answers import Room
from assay.kit.faults import ItemFault
from assay.kit.plain import from_plain, to_plain
from assay.kit.pool.jobs import Done
from assay.sandbox.handler import PendingRun, RunHandler
from assay.sandbox.languages import Toolchains
from assay.sandbox.metrics import RunMetrics
from assay.sandbox.workers import kinds

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


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(200, 2000), st.booleans())
def test_what_jobs_write_is_kept_while_the_answer_has_room_and_is_a_fault_after(
    sizes: list[int], room_bytes: int, tests: bool
) -> None:
    handler = RunHandler(None, Toolchains({}, {}), RunMetrics())  # type: ignore[arg-type]  # no pool is asked
    room = Room(room_bytes)
    outcomes = []
    for number, size in enumerate(sizes):
        item = PendingRun(str(number), 0.0, room=room, kind=kinds.TESTS if tests else kinds.EXECUTE)
        result = execution_pb2.TestJobResult() if tests else execution_pb2.ExecutionResult()
        if isinstance(result, execution_pb2.TestJobResult):
            result.report.outcomes.add(name="t").execution.stdout.data = b"x" * size
        else:
            result.execution.stdout.data = b"x" * size
        outcomes.append(handler.outcome(item, Done(result.SerializeToString())))
    kept = [outcome for outcome in outcomes if isinstance(outcome, bytes)]
    assert sum(map(len, kept)) <= room_bytes
    assert all(o.reason == "MESSAGE_TOO_LARGE" for o in outcomes if isinstance(o, ItemFault))
    if not sizes or sum(sizes) + 20 * len(sizes) <= room_bytes:
        assert len(kept) == len(sizes)
