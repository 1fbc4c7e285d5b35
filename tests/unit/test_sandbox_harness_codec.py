"""The codec: hostile bytes, hostile objects, and types that are carried beyond JSON's."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import fractions
import typing

import pytest

from assay.sandbox.harness.codec import MAX_BYTES, MAX_DEPTH, check_spread, decode, encode
from assay.sandbox.harness.references import CodecError, Ref

MERSENNE = 2**61 - 1  # all its multiples have hash 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"t":[],"s":[]}',
        b'{"t":[],"t":[]}',
        b'{"?":1}',
        b'{"t":{"t":1}}',
        b'{"s":[[1]]}',
        b'{"d":[1]}',
        b'{"d":[[],1]}',
        b'{"i":"zz"}',
        b'{"i":"1_0"}',
        b'{"i":12}',
        b'{"x":"1"}',
        b'{"x":[]}',
        b"NaN",
        b"Infinity",
        b"9" * 5_000,
        b"[" * 100_000,
        b"[" * 500 + b"]" * 500,
        b"\xff",
        b'"\xc3\xa9"',
        b'{"b":"0"}',
        b'{"u":"00"}',
        b'{"c":[1,2]}',
        b'{"r":[1,2,0]}',
        b'{"r":[1.5,2,1]}',
        b'{"F":[1,0]}',
        b'{"D":"1E99999"}',
        b'{"D":"sNaN"}',
        b'{"T":["object","2020-01-01"]}',
        b'{"T":["date","yesterday"]}',
        b'{"T":["timedelta",99999999999999,1,1]}',
        b'{"h":["c",1]}',
        b'{"h":["c","1","","",[]]}',
        b'{"n":["int64"]}',
    ],
)
def test_bytes_that_are_no_value_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode(data)


def test_too_many_bytes_are_refused_unread() -> None:
    with pytest.raises(CodecError, match="too large"):
        decode(b"[" * (MAX_BYTES + 1))


@pytest.mark.parametrize("form", ['{"s":[%s]}', '{"d":[%s]}'])
def test_elements_chosen_to_collide_are_refused(form: str) -> None:
    numbers = [format(MERSENNE * i, "x") for i in range(1, 5_000)]
    tagged = [f'{{"i":"{number}"}}' for number in numbers]
    content = ",".join(tagged if form.startswith('{"s"') else [f"{number},0" for number in tagged])
    with pytest.raises(CodecError, match="colliding"):
        decode((form % content).encode())


def test_many_equal_elements_are_no_collision() -> None:
    check_spread([1, 1.0, True] * 5_000)
    assert decode(b'{"s":[' + b",".join([b"1"] * 5_000) + b"]}") == {1}


def test_as_deep_as_allowed_and_no_deeper() -> None:
    value: list[object] = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert decode(encode(value)) == value
    with pytest.raises(CodecError, match="levels"):
        encode([value])


class Liar(int):
    """An int that is equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __int__(self) -> int:
        raise AssertionError("asked")

    __index__ = __str__ = __repr__ = __int__  # type: ignore[assignment]


class LyingList(list[object]):
    def __iter__(self) -> typing.Iterator[object]:
        raise AssertionError("asked")

    __len__ = __getitem__ = __eq__ = __iter__  # type: ignore[assignment]


class LyingDict(dict[object, object]):
    def items(self) -> typing.Any:
        raise AssertionError("asked")

    __iter__ = keys = values = __len__ = items


class LyingStr(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"

    def isascii(self) -> bool:
        raise AssertionError("asked")


class Colour(enum.IntEnum):
    RED = 3


class Point(typing.NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Liar(4), 4),
        (LyingList([1, Liar(2)]), [1, 2]),
        (LyingDict({1: 2}), {1: 2}),
        (LyingStr("text"), "text"),
        (Colour.RED, 3),
        (Point(1, 2), (1, 2)),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.defaultdict(list, {1: [2]}), {1: [2]}),
    ],
    ids=["int", "list", "dict", "str", "enum", "namedtuple", "ordered", "counter", "default"],
)
def test_subclasses_are_read_as_what_they_derive_from(value: object, plain: object) -> None:
    back = decode(encode(value))
    assert type(back) is type(plain)
    assert back == plain


def test_mappings_of_collections_stay_what_they_are_for_a_rich_reader() -> None:
    grouped = collections.defaultdict(list, {1: [2]})
    back = decode(encode(grouped), rich=True)
    assert isinstance(back, collections.defaultdict)
    assert back["new"] == []
    counted = decode(encode(collections.Counter("aab")), rich=True)
    assert counted + collections.Counter("a") == {"a": 3, "b": 1}  # type: ignore[operator]


def test_a_class_that_lies_about_itself_is_no_plain_value() -> None:
    class Pretender:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            return list

    with pytest.raises(CodecError, match="not plain"):
        encode(Pretender())


@pytest.mark.parametrize(
    "value",
    [
        2**63, -(2**63) - 1, 10**3_000, -0.0, "\ud800\udc00", "a\ud800é", "\x00", b"\x00\xff",
        bytearray(b"x"), 1 + 2j, range(1, 9, 2), collections.deque([1, [2]]),
        decimal.Decimal("1.50"), fractions.Fraction(-1, 3), dt.date(2020, 2, 29),
        dt.datetime.fromisoformat("2020-01-02T03:04:05.000006"),
        dt.time(1, 2), dt.timedelta(-1, 2, 3),
        int, [ValueError], frozenset({1, (2, "x")}), {(1, 2): {3}, None: ()},
    ],
)  # fmt: skip
def test_types_beyond_json_come_back(value: object) -> None:
    back = decode(encode(value))
    assert type(back) is type(value)
    assert back == value
    assert repr(back) == repr(value)


def test_arrays_become_lists_or_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(6).reshape(2, 3)
    assert decode(encode(array)) == [[0, 1, 2], [3, 4, 5]]
    back = decode(encode(array), rich=True)
    assert back.dtype == array.dtype  # type: ignore[attr-defined]
    assert (back == array).all()  # type: ignore[attr-defined]
    assert decode(encode(numpy.int64(4))) == 4
    assert decode(encode([numpy.bool_(True)])) == [True]


def test_objects_travel_as_references_and_only_where_allowed() -> None:
    with pytest.raises(CodecError, match="not plain"):
        encode([object()])
    ref = Ref("c", 3, "instance", "object", ("__len__",))
    data = encode({"a": [object()]}, lambda value: ref)
    assert decode(data) == {"a": [ref]}
    assert decode(data, resolve=lambda found: found.number) == {"a": [3]}
