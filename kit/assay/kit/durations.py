"""Seconds as the Duration of a message."""

from __future__ import annotations

from google.protobuf import duration_pb2


def fill_duration(message: duration_pb2.Duration, seconds: float) -> None:
    """Writes seconds, at least 0, to the nanosecond; the field is set even where they are 0."""
    nanos = round(seconds * 1e9)
    if nanos <= 0:
        message.SetInParent()
    elif nanos < 10**9:
        message.nanos = nanos
    else:
        message.seconds, message.nanos = divmod(nanos, 10**9)


def duration(seconds: float) -> duration_pb2.Duration:
    """Seconds, at least 0, as a Duration."""
    message = duration_pb2.Duration()
    fill_duration(message, seconds)
    return message


def seconds_of(message: duration_pb2.Duration) -> float:
    """A Duration in seconds."""
    return message.seconds + message.nanos / 1e9
