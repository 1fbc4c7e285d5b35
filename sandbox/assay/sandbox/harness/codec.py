"""Plain values to bytes and back: all that crosses between candidate, tester and supervisor.

The bytes are ASCII JSON. None, booleans, whole numbers of 64 bits, finite floats, strings and lists
stand for themselves; everything else is an object with one key, its kind:

    t tuple, s set, f frozenset, d mapping (keys and values in turn), b bytes, B bytearray,
    i whole number (hexadecimal), x NaN or infinity, u text with lone surrogates, c complex,
    D Decimal, F Fraction, r range, q deque, T date or time, n numpy array or scalar,
    k a mapping of `collections`, y built-in class of plain data or exceptions, h reference,
    p plain data of an object of a derived class, with that object's reference,
    l function or class of a library, by its name: from the tester alone

Covered: the decoder takes any bytes; it runs no code of theirs, bounds its recursion, builds no set
of elements chosen to collide, computes nothing whose cost grows faster than the bytes, makes plain
data alone, and raises `CodecError` for all else. The encoder reads subclasses of built-in types by
the built-in type's methods, so an overridden `__eq__` or `__iter__` never runs, and writes exact
built-in values.
Not covered: what the encoder writes inside a hostile process, which is data all the same; the time
of 48 MiB, which is spent where it can be killed (`judging.budget`, the tester's own limits).
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

from assay.sandbox.harness.references import (
    Carry,
    CodecError,
    Import,
    Keep,
    LibraryName,
    Opaque,
    Ref,
    Resolve,
)

if TYPE_CHECKING:
    from decimal import Decimal

globals()["__builtins__"] = dict(vars(builtins))  # also when the program deletes them

MAX_DEPTH: Final = 100
MAX_BYTES: Final = 48 * 2**20
MAX_ITEMS: Final = 4_000_000
MAX_INT_BITS: Final = 4_000_000
MAX_FRACTION_BITS: Final = 20_000  # of each part: its making divides, in quadratic time
MAX_NAME: Final = 200
MAX_REFERENCES: Final = 2**31
MAX_COLLISIONS: Final = 100
_CONTAINER_COST: Final = 8  # in elements: going into one takes longer than passing over it
_MANY: Final = 1_000
_LONG: Final = 2**63
_DECIMAL: Final = re.compile(r"-?(?:\d{1,5000}(?:\.\d{0,5000})?(?:E[+-]?\d{1,4})?|NaN|Infinity)")
_TROUBLE: Final = (
    ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError,
)  # fmt: skip
# Classes as values: those of plain data, and exceptions. Calling one makes plain data; the others
# (type, object, property, super, map ...) stay where they are, as references.
_CLASSES: Final[dict[str, type]] = {
    kind.__name__: kind
    for kind in (
        *(bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict),
        *(value for value in vars(builtins).values()
          if isinstance(value, type) and issubclass(value, Exception)),
    )
}  # fmt: skip
_DTYPE: Final = re.compile(r"bool|u?int(?:8|16|32|64)|float(?:16|32|64)|complex(?:64|128)|object")
_TEXTS: Final = re.compile(r"[<>|=]?([US])\d*")
_MAPPINGS: Final[dict[str, Callable[[dict[Any, Any]], object]]] = {
    "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict,
}
_FACTORIES: Final = {
    kind.__name__: kind for kind in (bool, int, float, str, list, dict, set, tuple)
}
_HEX: Final = re.compile(r"-?[0-9a-f]+")


def encode(
    value: object,
    opaque: Opaque | None = None,
    keep: Keep | None = None,
    *,
    max_bytes: int = MAX_BYTES,
) -> bytes:
    """The bytes of a plain value.

    Args:
        value: what to encode.
        opaque: called for objects that are no plain value; without it, they are errors.
        keep: called for instances of derived classes; without it, they are plain data alone.
        max_bytes: above, it is too large, which is found before much of it is encoded.

    Raises:
        CodecError: it is not plain, too deep, or too large.
    """
    tree = _Encoder(opaque, keep, max_bytes).tree(value, 0)
    try:
        text = _dumps(tree)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"cannot be encoded: {error}") from None
    if len(text) > max_bytes:
        raise CodecError(f"too large: {len(text)} bytes")
    return text.encode("ascii")


_dumps = json.JSONEncoder(
    ensure_ascii=True, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


class _Encoder:
    """One encoding; counts what it has written, so that shared parts cannot multiply."""

    def __init__(self, opaque: Opaque | None, keep: Keep | None, max_bytes: int) -> None:
        self._opaque = opaque
        self._keep = keep
        self._left = min(MAX_ITEMS, 3 * max_bytes)  # "[]," is three bytes, and costs nine
        self._bytes_left = max_bytes

    def tree(self, value: object, depth: int) -> object:  # noqa: PLR0911 - one for each type
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
        if kind is Ref or kind is LibraryName:
            return _ref_tree(value)  # type: ignore[arg-type]
        write = _writer(value)
        if write is not None:
            try:
                tree = write(self, value, depth)
            except TypeError:  # its __class__ lies
                return self._other(value, depth)
            ref = None if self._keep is None else self._keep(value)
            return tree if ref is None else {"p": [_parts(ref), tree]}
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
        """A dict, or a mapping of `collections`, which a plain reader takes for a dict."""
        flat: list[object] = []
        for key, item in dict.items(value):
            flat.append(key)
            flat.append(item)
        items = self.items(flat, depth)
        kind = type(value)
        if kind is collections.defaultdict:
            factory = value.default_factory
            known = any(factory is kind for kind in _FACTORIES.values())
            return {"k": [kind.__name__, factory.__name__ if known else "", items]}
        if kind in _MAPPINGS.values():
            return {"k": [kind.__name__, "", items]}
        return {"d": items}

    def _array(self, value: Any, depth: int) -> object:
        if value.size > min(MAX_ITEMS, self._left):
            raise CodecError("too many elements")
        kind = str(value.dtype)
        content = value.tolist()
        carried = _DTYPE.fullmatch(kind) or _TEXTS.fullmatch(kind)
        if not carried or type(content) is type(value):
            return self._other(value, depth, array=False)
        try:
            _check_plain(content)
        except CodecError:  # an object among its elements: then the whole array is one
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


def _ref_tree(ref: Ref | LibraryName) -> object:
    if isinstance(ref, LibraryName):
        return {"l": [ref.module, ref.name]}
    return {"h": _parts(ref)}


def _parts(ref: Ref) -> list[object]:
    return [ref.side, ref.number, ref.kind, ref.type_name, list(ref.traits)]


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
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_FRACTION_BITS:
        raise CodecError(f"a fraction of more than {MAX_FRACTION_BITS} bits")
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
    data: bytes | bytearray,
    *,
    resolve: Resolve | None = None,
    rich: bool = False,
    library: Import | None = None,
    carry: Carry | None = None,
) -> object:
    """The value of untrusted bytes.

    Args:
        data: the bytes.
        resolve: makes objects of references; without it they stay `Ref`.
        rich: make numpy arrays, where numpy is loaded, and the mappings of `collections`; else
            lists
            and dicts.
        library: finds a library's object by name; without it, such a name is an error.
        carry: makes objects of plain data that came with a reference; without it, the data alone.

    Raises:
        CodecError: the bytes are not a plain value.
    """
    if len(data) > MAX_BYTES:
        raise CodecError(f"too large: {len(data)} bytes")
    reader = _Reader(resolve, rich, library, carry)
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


_DERIVABLE: Final = {
    *(int, float, complex, str, bytes, tuple, frozenset, list, dict, set, bytearray),
    *(collections.deque, collections.Counter, collections.OrderedDict, collections.defaultdict),
}  # fmt: skip
_ELEMENTS: Final = {type(None), bool, int, float, complex, str, bytes, list, tuple}
_CONTAINERS: Final = (list, tuple, dict, set, frozenset, collections.deque)


def check_spread(items: Iterable[object]) -> None:
    """Refuses elements of which very many share a hash, which makes a set quadratic.

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

    def __init__(
        self, resolve: Resolve | None, rich: bool, library: Import | None, carry: Carry | None
    ) -> None:
        self._resolve = resolve
        self._carry = carry
        self._rich = rich
        self._library = library

    def tagged(self, pairs: list[tuple[str, Any]]) -> object:
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
        if tag == "p":
            return self._derived(content)
        if tag == "l" and self._library is not None:
            return self._library(*map(_string, _list(content, 2)))
        raise CodecError("not a plain value: an unknown tag")

    def _derived(self, content: object) -> object:
        parts, plain = _list(content, 2)
        ref = _ref(parts)
        if type(plain) not in _DERIVABLE:
            raise CodecError("not a plain value: derived from nothing")
        return plain if self._carry is None else self._carry(ref, plain)

    def _mapping(self, content: object) -> object:
        kind, factory, flat = _list(content, 3)
        plain = _dict(flat)
        if not self._rich:
            return plain
        if kind == "defaultdict":
            return collections.defaultdict(_FACTORIES.get(_string(factory)), plain)
        return _MAPPINGS[_string(kind)](plain)

    def _array(self, content: object) -> object:
        kind, value = _list(content, 2)
        numpy = sys.modules.get("numpy")
        text = _TEXTS.fullmatch(_string(kind))
        if not (text or _DTYPE.fullmatch(kind)):
            raise CodecError("not a plain value: an unknown kind of array")
        _check_plain(value)
        if not self._rich or numpy is None:
            return value
        array = numpy.array(value, dtype=text[1] if text else kind)
        return array if isinstance(value, list) else array[()]


def _check_plain(value: object) -> None:
    """Refuses an array's elements that are not numbers, texts or lists of such."""
    level: list[Any] = [value]
    while level:
        kinds = set(map(type, level))
        if not kinds <= _ELEMENTS:
            raise CodecError("not a plain value: an element of an array")
        level = [item for part in level if type(part) in {list, tuple} for item in part]


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
    fits = max(len(_string(kind)), len(_string(type_name)), len(_list(traits))) <= MAX_NAME
    if side not in ("c", "t") or not fits or not 0 <= _whole(number) < MAX_REFERENCES:
        raise CodecError("not a plain value: a reference")
    return Ref(side, number, kind, type_name, tuple(_string(trait) for trait in traits))


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

    parts = [_whole(part) for part in _list(content, 2)]
    if max(part.bit_length() for part in parts) > MAX_FRACTION_BITS:
        raise CodecError("not a plain value: a fraction")
    return Fraction(*parts)


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
    "y": lambda content: _CLASSES[_string(content)],  # LookupError becomes CodecError
}
