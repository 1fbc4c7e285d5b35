"""The protocol of candidate and judge, and its reader: a trust boundary like the walls.

The page on it is docs/understand/sandbox-protocol.md. Whoever runs in the candidate's process can
write anything to this socket, so all input is read here, and becomes plain data of a known shape or
a `ProtocolError`.

    frame      4 bytes of length, big-endian; 1 byte, what it is; 8 bytes, the tag; the content
    request Q  [operation, ...]; the tag is random, and fresh for each
    answer A   ["value", ...], ["stop", value] or ["error", type, bases, text, where, args, vars];
               with the tag of the oldest request that has no answer
    call-back K  ["call", number, args, kwargs], ["getattr", number, name],
               ["setattr", number, name, value], ["next", number]; with the tag of the request in
               progress
    result R   ["value", value], ["stop"] or ["error", type, text]; with the same tag
    hello H    nothing; before anything of the program has run
    begin B    [code, entry point, stem]; the tag is the judge's, for DONE
    done D     [outcome, text]; with the tag of BEGIN

Covered: shapes, names, numbers of references, lengths.
Not covered: what an operation then does with the data (`peer`), and the time of 48 MiB (`codec`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from assay.sandbox.harness.codec import decode
from assay.sandbox.harness.references import Carry, CodecError, Resolve

HELLO: Final = b"H"
REQUEST: Final = b"Q"
ANSWER: Final = b"A"
CALLBACK: Final = b"K"
RESULT: Final = b"R"
BEGIN: Final = b"B"
DONE: Final = b"D"
TAG_BYTES: Final = 8
NO_TAG: Final = bytes(TAG_BYTES)
HEADER_BYTES: Final = 1 + TAG_BYTES
MAX_FRAME: Final = 64 * 2**20

_MAX_NAME: Final = 1_000
_MAX_TEXT: Final = 10_000


class ProtocolError(ValueError):
    """The bytes break the protocol."""


class HarnessFrame(NamedTuple):
    """One frame, its content not decoded."""

    kind: bytes
    tag: bytes
    content: bytes


class Raised(NamedTuple):
    """What a program raised.

    Attributes:
        type: the name of its class.
        bases: its classes, nearest first: built-in ones by name, the program's as ":name", those of
            libraries as "module:name".
        text: its text.
        where: the line of the program, for people; may be empty.
        args: its arguments, where they are plain; else None.
        vars: its attributes, where they are plain.
    """

    type: str
    bases: tuple[str, ...]
    text: str
    where: str
    args: tuple[object, ...] | None
    vars: dict[str, object]


class Stopped(NamedTuple):
    """The end of an iterator of the program's."""

    value: object


class Returned(NamedTuple):
    """What a request returned: one value, or as many as its operation has."""

    values: tuple[object, ...]


class CallBack(NamedTuple):
    """What a program asks of an object that it was given."""

    operation: str
    number: int
    rest: tuple[Any, ...]


def frame(kind: bytes, tag: bytes, content: bytes = b"") -> bytes:
    """A frame, without its length."""
    return kind + tag + content


def split(data: bytes) -> HarnessFrame:
    """A frame in its parts; one that is too short for a tag has none."""
    return HarnessFrame(data[:1], data[1:HEADER_BYTES], data[HEADER_BYTES:])


def read_answer(
    content: bytes,
    *,
    resolve: Resolve | None = None,
    rich: bool = False,
    carry: Carry | None = None,
) -> Returned | Raised | Stopped:
    """Reads the content of an answer, untrusted bytes; options as for `codec.decode`.

    Raises:
        ProtocolError: it is none.
    """
    outcome, *rest = _items(_decoded(content, resolve, rich, carry), least=1)
    if outcome == "value":
        return Returned(tuple(rest))
    if outcome == "stop" and len(rest) == 1:
        return Stopped(rest[0])
    if outcome == "error" and len(rest) == 6:
        return _raised(*rest)
    raise ProtocolError("an answer of no known shape")


def read_callback(content: bytes, *, resolve: Resolve, carry: Carry) -> CallBack:
    """Reads the content of a call-back.

    Raises:
        ProtocolError: it is none.
    """
    subject, operation, *rest = _subject_first(_decoded(content, resolve, True, carry))
    shape = _CALL_BACKS.get(_text(operation))
    if shape is None or len(rest) != len(shape):
        raise ProtocolError("a call-back of no known shape")
    for value, kind in zip(rest, shape, strict=True):
        if kind is not object and type(value) is not kind:
            raise ProtocolError("a call-back of no known shape")
    if operation == "call" and not all(type(name) is str for name in rest[1]):
        raise ProtocolError("a call-back of no known shape")
    return CallBack(operation, subject, tuple(rest))


_CALL_BACKS: Final[dict[str, tuple[type, ...]]] = {
    "call": (list, dict),
    "getattr": (str,),
    "setattr": (str, object),
    "next": (),
}


def single(returned: Returned) -> object:
    """The one value of an answer.

    Raises:
        ProtocolError: it has another number of values.
    """
    if len(returned.values) != 1:
        raise ProtocolError("an answer that is not one value")
    return returned.values[0]


def names(returned: Returned) -> list[str]:
    """The names that a program claims to define.

    Raises:
        ProtocolError: they are no names.
    """
    return [_text(name, _MAX_NAME) for name in _items(single(returned))]


def rows(returned: Returned, asked: Iterable[str] | None) -> dict[str, object]:
    """What the names that were asked for stand for; with None, any names.

    Raises:
        ProtocolError: a name was not asked for, or comes twice.
    """
    wanted, found = None if asked is None else set(asked), dict[str, object]()
    for row in _items(single(returned)):
        name, value = _items(row, least=2, most=2)
        _text(name)
        if name in found or not (wanted is None or name in wanted):
            raise ProtocolError("a name that was not asked for")
        found[name] = value
    return found


class CallReport(NamedTuple):
    """The answer to a call that reports on its arguments.

    Attributes:
        value: what was returned; None where it is an argument.
        changes: which arguments were changed in place, and into what.
        alias: which argument was returned; -1 for none.
        texts: what was written to stdout and stderr, and what is left of stdin, where asked.
    """

    value: object
    changes: list[tuple[int, object]]
    alias: int
    texts: list[str]


def read_call_report(returned: Returned, given: int, *, streams: bool = False) -> CallReport:
    """Reads the answer to a call that reports on its arguments.

    Args:
        returned: the answer.
        given: how many arguments there were.
        streams: it reports on streams, too.

    Raises:
        ProtocolError: it names arguments that were not given.
    """
    if len(returned.values) != 3 + streams:
        raise ProtocolError("an answer that does not report on its arguments")
    value, changes, alias, *rest = returned.values
    texts = _items(rest[0], least=3, most=3) if rest else []
    if not all(type(text) is str for text in texts):
        raise ProtocolError("what was written is no text")
    told_of: list[tuple[int, object]] = []
    for change in _items(changes):
        index, new = _items(change, least=2, most=2)
        told_of.append((_index(index, given), new))
    known = -1 if alias == -1 and type(alias) is int else _index(alias, given)
    return CallReport(value, told_of, known, texts)


def _raised(  # noqa: PLR0917 - the parts of the message, in its order
    kind: object, bases: object, text: object, where: object, args: object, attributes: object
) -> Raised:
    plain = attributes if type(attributes) is dict else {}
    return Raised(
        _text(kind, _MAX_NAME),
        tuple(_text(base, _MAX_NAME) for base in _items(bases)),
        _text(text, _MAX_TEXT),
        _text(where, _MAX_NAME),
        None if args is None else tuple(_items(args)),
        {name: value for name, value in plain.items() if type(name) is str},
    )


def _decoded(content: bytes, resolve: Resolve | None, rich: bool, carry: Carry | None) -> object:
    try:
        return decode(content, resolve=resolve, rich=rich, carry=carry)
    except CodecError as error:
        raise ProtocolError(str(error)) from None


def _subject_first(request: object) -> list[Any]:
    """A call-back's parts; its subject is a bare number, never a decoded value."""
    operation, number, *rest = _items(request, least=2)
    if type(number) is not int or number < 0:
        raise ProtocolError("a call-back of no object")
    return [number, operation, *rest]


def _items(value: object, least: int = 0, most: int | None = None) -> list[Any]:
    if type(value) is not list or len(value) < least or (most is not None and len(value) > most):
        raise ProtocolError("a message of no known shape")
    return value


def _text(value: object, most: int = _MAX_NAME) -> str:
    if type(value) is not str or len(value) > most:
        raise ProtocolError("a text that is none, or too long")
    return value


def _index(value: object, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ProtocolError("an argument that was not given")
    return value
