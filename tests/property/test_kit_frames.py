"""Laws of the frames between a pool and its workers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.pool import frames
from assay.kit.pool.frames import Frame, FrameError, FrameReader

FRAMES = st.lists(
    st.builds(
        Frame,
        st.sampled_from([b"X", frames.DONE, frames.FAULT]),
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
    with pytest.raises(FrameError):
        list(FrameReader().feed(rest.to_bytes(4, "big") + b"D" + bytes(8)))


def test_a_payload_over_the_limit_is_neither_made_nor_read() -> None:
    with pytest.raises(FrameError):
        frames.pack(frames.DONE, 1, bytes(frames.MAX_PAYLOAD_BYTES + 1))
    reader = FrameReader(limit_bytes=10)
    reading = reader.feed(frames.pack(frames.DONE, 1, bytes(10)) + frames.pack(b"D", 2, bytes(11)))
    assert next(reading).number == 1  # what came before is heard
    with pytest.raises(FrameError):
        next(reading)


@given(
    st.binary(max_size=50),
    st.floats(min_value=0, allow_nan=False),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=255),
)
def test_a_job_arrives_as_it_was(body: bytes, timeout_s: float, request_id: str) -> None:
    payload = frames.pack_job(body, timeout_s=timeout_s, request_id=request_id)
    assert frames.read_job(payload) == (body, timeout_s, request_id)
    assert frames.timeout_of(payload) == timeout_s
    assert frames.timeout_of(frames.pack_job(b"")) == math.inf


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=3))
def test_a_fault_arrives_as_it_was(message: str, facts: dict[str, str]) -> None:
    assert frames.read_fault(frames.pack_fault("R", message, facts)) == ("R", message, facts)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{",
        b"{}",
        b"\xff",
        b'{"reason": 1}',
        b"[" * 100_000,
        b'{"reason":1,"message":2}',
    ],
)
def test_a_fault_of_another_shape_is_refused(payload: bytes) -> None:
    with pytest.raises(FrameError):
        frames.read_fault(payload)


@pytest.mark.parametrize("kind", [frames.EXPIRED, frames.CANCEL, frames.GIVE_BACK, b"X", b"\0"])
def test_a_worker_may_not_say_everything(kind: bytes) -> None:
    with pytest.raises(FrameError):
        frames.check_of_worker(Frame(kind, 1, b""))
