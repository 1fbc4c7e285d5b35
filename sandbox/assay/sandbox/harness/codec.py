"""Plain values to bytes and back: all that crosses between a candidate, a tester and the warden.

The bytes are ASCII JSON. None, booleans, whole numbers of 64 bits, finite floats, strings and lists
stand for themselves; everything else is an object with one key that names what it is:

    t tuple, s set, f frozenset, d mapping (keys and values in turn), b bytes, B bytearray,
    i whole number (hexadecimal), x NaN or infinity, u text with lone surrogates, c complex,
    D Decimal, F Fraction, r range, q deque, T date or time, n numpy array or scalar,
    k a mapping of `collections`, y built-in class, h reference

Covered: the decoder takes any bytes whatever; it runs no code of theirs, recurses no deeper than it
allows, builds no set whose elements were chosen to collide, and raises `CodecError` for all that
is not exactly as above. The encoder asks no object for anything: subclasses of built-in types are
read through the methods of the built-in type, so that an overridden `__eq__` or `__iter__` is
never met, and what it hands on are exact built-in values.
Not covered: what the encoder says inside a hostile process. Whoever runs there may say anything;
it is data all the same.
"""

from __future__ import annotations

import builtins
import collections
import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from decimal import Decimal

MAX_DEPTH: Final = 100
MAX_BYTES: Final = 48 * 2**20
MAX_ITEMS: Final = 4_000_000
MAX_INT_BITS: Final = 4_000_000
MAX_COLLISIONS: Final = 100
_CONTAINER_COST: Final = 8  # in elements: going into one takes longer than passing over it
_MANY: Final = 1_000
_LONG: Final = 2**63
_DECIMAL: Final = re.compile(r"-?(?:\d{1,5000}(?:\.\d{0,5000})?(?:E[+-]?\d{1,4})?|NaN|Infinity)")
_TROUBLE: Final = (
    ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError,
)  # fmt: skip
_CLASSES: Final[dict[str, type]] = {
    name: value for name, value in vars(builtins).items() if isinstance(value, type)
}
_MAPPINGS: Final[dict[str, Callable[[dict[Any, Any]], object]]] = {
    "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict,
}
_HEX: Final = re.compile(r"-?[0-9a-f]+")


class CodecError(ValueError):
    """These bytes are no plain value, or this value cannot be carried as one."""


class Ref:
    """Stands for an object that stays where it is.

    Attributes:
        side: who has it, "c" the candidate or "t" the tester.
        number: its number there.
        kind: what it is, for people and for the proxy, e.g. "instance", "class", "generator".
        type_name: the name of its type.
        traits: the special methods that its type has, of those that a proxy carries.
    """

    __slots__ = ("kind", "number", "side", "traits", "type_name")

    def __init__(
        self,
        side: str,
        number: int,
        kind: str = "",
        type_name: str = "",
        traits: tuple[str, ...] = (),
    ) -> None:
        self.side = side
        self.number = number
        self.kind = kind
        self.type_name = type_name
        self.traits = traits

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ref):
            return False
        return (other.side, other.number) == (self.side, self.number)

    def __hash__(self) -> int:
        return hash((self.side, self.number))

    def __repr__(self) -> str:
        return f"<{self.kind or 'object'} of type {self.type_name}>"


Opaque = Callable[[object], Ref]
"""Makes a reference to an object that is no plain value."""

Resolve = Callable[[Ref], object]
"""Makes an object of a reference."""


def encode(value: object, opaque: Opaque | None = None) -> bytes:
    """The bytes of a plain value.

    Args:
        value: what to encode.
        opaque: called for what is no plain value; without it, that is an error.

    Raises:
        CodecError: it is not plain, too deep, or too large.
    """
    tree = _Encoder(opaque).tree(value, 0)
    try:
        text = _dumps(tree)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"cannot be encoded: {error}") from None
    if len(text) > MAX_BYTES:
        raise CodecError(f"too large: {len(text)} bytes")
    return text.encode("ascii")


_dumps = json.JSONEncoder(
    ensure_ascii=True, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


class _Encoder:
    """One encoding: counts what it has written, so that shared parts cannot blow it up."""

    def __init__(self, opaque: Opaque | None) -> None:
        self._opaque = opaque
        self._left = MAX_ITEMS
        self._bytes_left = MAX_BYTES

    def tree(self, value: object, depth: int) -> object:  # noqa: PLR0911 - one for each type
        """The JSON tree of a value."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return self._text(value)  # type: ignore[arg-type]
        if kind is int:
            return self._int(value)  # type: ignore[arg-type]
        if kind is float:
            return self._float(value)  # type: ignore[arg-type]
        if depth >= MAX_DEPTH:
            raise CodecError(f"deeper than {MAX_DEPTH} levels")
        if kind is list:
            return self.items(value, depth)  # type: ignore[arg-type]
        if kind is tuple:
            return {"t": self.items(value, depth)}  # type: ignore[arg-type]
        if kind is Ref:
            return _ref_tree(value)  # type: ignore[arg-type]
        write = _writer(value)
        if write is not None:
            try:
                return write(self, value, depth)
            except TypeError:  # its __class__ lies
                pass
        return self._other(value, depth)

    def _text(self, value: str) -> object:
        self._bytes_left -= len(value)
        if self._bytes_left < 0:
            raise CodecError("too large")
        if value.isascii():
            return value
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return {"u": value.encode("utf-32-le", "surrogatepass").hex()}
        return value

    def _int(self, value: int) -> object:
        if -_LONG <= value < _LONG:
            return value
        if value.bit_length() > MAX_INT_BITS:
            raise CodecError(f"a whole number of {value.bit_length()} bits")
        return {"i": format(value, "x")}

    def _float(self, value: float) -> object:
        return value if math.isfinite(value) else {"x": repr(value)}

    def items(self, values: Iterable[object], depth: int) -> list[object]:
        """The elements of a container, quickly where all are of one simple type."""
        items = list(values)
        self._left -= len(items) + _CONTAINER_COST
        if self._left < 0:
            raise CodecError("too many elements")
        kinds = set(map(type, items))
        if kinds == {int} and _are_short(items):
            return items
        if kinds == {float} and all(map(math.isfinite, items)):  # type: ignore[arg-type]
            return items
        return [self.tree(item, depth + 1) for item in items]

    def mapping(self, value: Any, depth: int) -> object:
        """A dict, or one of the mappings of `collections`, which are dicts to a plain reader."""
        flat: list[object] = []
        for key, item in dict.items(value):
            flat.append(key)
            flat.append(item)
        items = self.items(flat, depth)
        kind = type(value)
        if kind is collections.defaultdict:
            factory = value.default_factory
            known = factory is not None and _CLASSES.get(factory.__name__) is factory
            return {"k": [kind.__name__, factory.__name__ if known else "", items]}
        if kind in _MAPPINGS.values():
            return {"k": [kind.__name__, "", items]}
        return {"d": items}

    def _array(self, value: Any, depth: int) -> object:
        """A numpy array or scalar."""
        if value.size > MAX_ITEMS:
            raise CodecError("too many elements")
        kind = str(value.dtype)
        content = value.tolist()
        if value.dtype.kind not in "biufcUSO" or type(content) is type(value):
            return self._other(value, depth, array=False)
        return {"n": [kind, self.tree(content, depth + 1)]}

    def _other(self, value: object, depth: int, *, array: bool = True) -> object:
        if type(value) is type and _CLASSES.get(value.__name__) is value:
            return {"y": value.__name__}
        numpy = sys.modules.get("numpy")
        if array and numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            return self._array(value, depth)
        if self._opaque is None:
            raise CodecError(f"{type(value).__name__} is not plain data")
        return _ref_tree(self._opaque(value))


def _are_short(numbers: list[Any]) -> bool:
    return bool(min(numbers) >= -_LONG and max(numbers) < _LONG)


def _ref_tree(ref: Ref) -> object:
    return {"h": [ref.side, ref.number, ref.kind, ref.type_name, list(ref.traits)]}


def _moment(encoder: _Encoder, value: Any, depth: int) -> object:
    if getattr(value, "tzinfo", None) is not None:
        raise TypeError
    library = sys.modules["datetime"]
    for name in ("datetime", "date", "time"):
        kind = getattr(library, name)
        if isinstance(value, kind):
            return {"T": [name, kind.isoformat(value)]}
    span = library.timedelta
    parts = [span.days, span.seconds, span.microseconds]
    return {"T": ["timedelta", *(part.__get__(value) for part in parts)]}


def _fraction(encoder: _Encoder, value: Any, depth: int) -> object:
    return {"F": [encoder.tree(value.numerator, depth), encoder.tree(value.denominator, depth)]}


Write = Callable[[_Encoder, Any, int], object]

# How to read each type through its own methods.
_WRITERS: Final[dict[type, Write]] = {
    str: lambda e, v, d: e.tree(str.__str__(v), d),
    int: lambda e, v, d: e.tree(int.__int__(v), d),
    float: lambda e, v, d: e.tree(float.__float__(v), d),
    list: lambda e, v, d: e.items(list.__iter__(v), d),
    tuple: lambda e, v, d: {"t": e.items(tuple.__iter__(v), d)},
    dict: lambda e, v, d: e.mapping(v, d),
    set: lambda e, v, d: {"s": e.items(set.__iter__(v), d)},
    frozenset: lambda e, v, d: {"f": e.items(frozenset.__iter__(v), d)},
    bytes: lambda e, v, d: {"b": e.tree(bytes.hex(v), d)},
    bytearray: lambda e, v, d: {"B": e.tree(bytearray.hex(v), d)},
    complex: lambda e, v, d: {"c": e.items([complex.real.__get__(v), complex.imag.__get__(v)], d)},
    range: lambda e, v, d: {"r": [e.tree(part, d) for part in (v.start, v.stop, v.step)]},
    collections.deque: lambda e, v, d: {"q": e.items(collections.deque.__iter__(v), d)},
}

# The same for types of modules that only some programs load: an object can only be of such a type
# where its module is loaded.
_LIBRARY_WRITERS: Final[tuple[tuple[str, str, Write], ...]] = (
    ("decimal", "Decimal", lambda e, v, d: {"D": e.tree(str(v), d)}),
    ("fractions", "Fraction", _fraction),
    ("datetime", "date", _moment),
    ("datetime", "time", _moment),
    ("datetime", "timedelta", _moment),
)


def _writer(value: object) -> Write | None:
    """How to read a value of a type that JSON does not have, or of a subclass."""
    for base, write in _WRITERS.items():
        if isinstance(value, base):
            return write
    for module, name, write in _LIBRARY_WRITERS:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            return write
    return None


def decode(
    data: bytes | bytearray, *, resolve: Resolve | None = None, rich: bool = False
) -> object:
    """The value of some bytes, which may come from anyone.

    Args:
        data: the bytes.
        resolve: makes objects of references; without it they stay `Ref`.
        rich: numpy's arrays become arrays where numpy is loaded, and the mappings of
            `collections` what they were; otherwise they become lists and dicts.

    Raises:
        CodecError: the bytes are not a plain value.
    """
    if len(data) > MAX_BYTES:
        raise CodecError(f"too large: {len(data)} bytes")
    reader = _Reader(resolve, rich)
    try:
        value = json.loads(
            str(data, "ascii"), object_pairs_hook=reader.tagged, parse_constant=_refuse
        )
    except CodecError:
        raise
    except _TROUBLE as error:
        raise CodecError(f"not a plain value: {type(error).__name__}") from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    return value


def _refuse(name: str) -> object:
    raise CodecError(f"not a plain value: {name}")


def _check_depth(value: object) -> None:
    """Refuses a value with more levels than an encoder writes."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(part for part in item if isinstance(part, _CONTAINERS))
                below.extend(part for part in item.values() if isinstance(part, _CONTAINERS))
            elif isinstance(item, _CONTAINERS):
                below.extend(part for part in item if isinstance(part, _CONTAINERS))
        if not below:
            return
        level = below
    raise CodecError(f"deeper than {MAX_DEPTH} levels")


_CONTAINERS: Final = (list, tuple, dict, set, frozenset, collections.deque)


def check_spread(items: Iterable[object]) -> None:
    """Refuses elements of which very many have one hash: putting them into a set takes ages.

    Raises:
        CodecError: more than MAX_COLLISIONS have the same hash and differ.
        TypeError: one cannot be hashed.
    """
    members = list(items)
    if len(members) <= _MANY:
        return
    hashes = sorted(map(hash, members))
    if any(map(int.__eq__, hashes, hashes[MAX_COLLISIONS:])):
        same: dict[int, list[object]] = {}
        for member in members:
            others = same.setdefault(hash(member), [])
            if not any(other == member for other in others):
                others.append(member)
            if len(others) > MAX_COLLISIONS:
                raise CodecError("elements with colliding hashes")


class _Reader:
    """Makes values of tagged objects, innermost first, as the JSON scanner meets them."""

    def __init__(self, resolve: Resolve | None, rich: bool) -> None:
        self._resolve = resolve
        self._rich = rich

    def tagged(self, pairs: list[tuple[str, Any]]) -> object:
        """The value of an object with one key."""
        if len(pairs) != 1:
            raise CodecError("not a plain value: an object without exactly one key")
        tag, content = pairs[0]
        read = _READERS.get(tag)
        if read is not None:
            return read(content)
        if tag == "h":
            ref = _ref(content)
            return ref if self._resolve is None else self._resolve(ref)
        if tag == "n":
            return self._array(content)
        if tag == "k":
            return self._mapping(content)
        raise CodecError("not a plain value: an unknown tag")

    def _mapping(self, content: object) -> object:
        kind, factory, flat = _list(content, 3)
        plain = _dict(flat)
        if not self._rich:
            return plain
        if kind == "defaultdict":
            return collections.defaultdict(_CLASSES.get(_string(factory)), plain)
        return _MAPPINGS[_string(kind)](plain)

    def _array(self, content: object) -> object:
        kind, value = _list(content, 2)
        numpy = sys.modules.get("numpy")
        if not self._rich or numpy is None:
            return value
        array = numpy.array(value, dtype=_string(kind))
        return array if isinstance(value, list) else array[()]


def _list(content: object, length: int | None = None) -> list[Any]:
    if type(content) is not list or (length is not None and len(content) != length):
        raise CodecError("not a plain value: wrong content")
    return content


def _string(content: object) -> str:
    if type(content) is not str:
        raise CodecError("not a plain value: wrong content")
    return content


def _whole(content: object) -> int:
    if type(content) is not int:
        raise CodecError("not a plain value: wrong content")
    return content


def _ref(content: object) -> Ref:
    side, number, kind, type_name, traits = _list(content, 5)
    return Ref(
        side=_string(side),
        number=_whole(number),
        kind=_string(kind),
        type_name=_string(type_name),
        traits=tuple(_string(trait) for trait in _list(traits)),
    )


def _set(content: object) -> set[object]:
    items = _list(content)
    check_spread(items)
    return set(items)


def _dict(content: object) -> dict[object, object]:
    flat = _list(content)
    if len(flat) % 2:
        raise CodecError("not a plain value: a key without a value")
    check_spread(flat[::2])
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _big(content: object) -> int:
    digits = _string(content)
    if not _HEX.fullmatch(digits) or len(digits) > MAX_INT_BITS // 4 + 2:
        raise CodecError("not a plain value: a whole number")
    return int(digits, 16)


def _special(content: object) -> float:
    if _string(content) not in {"nan", "inf", "-inf"}:
        raise CodecError("not a plain value: a float")
    return float(_string(content))


def _decimal(content: object) -> Decimal:
    from decimal import Decimal  # noqa: PLC0415 - few programs need it

    digits = _string(content)
    if not _DECIMAL.fullmatch(digits):
        raise CodecError("not a plain value: a decimal")
    return Decimal(digits)


def _rational(content: object) -> object:
    from fractions import Fraction  # noqa: PLC0415 - few programs need it

    return Fraction(*(_whole(part) for part in _list(content, 2)))


def _date(content: object) -> object:
    import datetime as dt  # noqa: PLC0415 - few programs need it

    kind, *rest = _list(content)
    if kind == "timedelta":
        return dt.timedelta(*(_whole(part) for part in _list(rest, 3)))
    (text,) = _list(rest, 1)
    kinds: dict[str, Any] = {"datetime": dt.datetime, "date": dt.date, "time": dt.time}
    return kinds[_string(kind)].fromisoformat(_string(text))


def _range(content: object) -> range:
    return range(*(_whole(part) for part in _list(content, 3)))


def _complex(content: object) -> complex:
    real, imaginary = _list(content, 2)
    if type(real) is not float or type(imaginary) is not float:
        raise CodecError("not a plain value: a complex number")
    return complex(real, imaginary)


_READERS: Final[dict[str, Callable[[object], object]]] = {
    "t": lambda content: tuple(_list(content)),
    "s": _set,
    "f": lambda content: frozenset(_set(content)),
    "d": _dict,
    "b": lambda content: bytes.fromhex(_string(content)),
    "B": lambda content: bytearray.fromhex(_string(content)),
    "i": _big,
    "x": _special,
    "u": lambda content: bytes.fromhex(_string(content)).decode("utf-32-le", "surrogatepass"),
    "c": _complex,
    "D": _decimal,
    "F": _rational,
    "r": _range,
    "q": lambda content: collections.deque(_list(content)),
    "T": _date,
    "y": lambda content: _CLASSES[_string(content)],
}
