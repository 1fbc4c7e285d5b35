"""The candidate's objects, as test code sees them from another process.

Plain values are compared natively, in the tester. An object that stays with the candidate is a
`Proxy`, with such operations of its type as can neither decide a test nor reveal what was expected:

 - A proxy never equals a plain value. Two proxies are equal if they are one object, or instances of
   one class with an equality of its own and the same state (attributes, at least one, compared
   here). The candidate's own `__eq__` is never called.
 - An operator between a proxy and a plain value is a TypeError: it would hand the expected value
   over. Two proxies may be added or ordered by the candidate's own methods.
 - `x in proxy` goes through its elements here.
 - A candidate's exception is raised here as the same built-in one, except those that silently end a
   loop or a generator: they come as RuntimeError.

The program may use what the tests handed to it, and nothing else (`grants`).
"""

from __future__ import annotations

import builtins
import secrets
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeVar

from assay.sandbox.harness import protocol
from assay.sandbox.harness.candidate import BINARY, CARRIED, UNARY
from assay.sandbox.harness.codec import encode
from assay.sandbox.harness.grants import Grants, UnsupportedRequest
from assay.sandbox.harness.protocol import (
    ANSWER,
    CALLBACK,
    REQUEST,
    RESULT,
    TAG_BYTES,
    HarnessFrame,
    ProtocolError,
    Raised,
    Returned,
    Stopped,
)
from assay.sandbox.harness.references import CodecError, LibraryName, Ref
from assay.sandbox.harness.streams import Streams

# Exceptions of libraries that tests name; none that a test framework takes for a sign.
_OF_LIBRARIES: Final = frozenset(
    {
        *("json.decoder:JSONDecodeError", "decimal:InvalidOperation", "decimal:DivisionByZero"),
        *("queue:Empty", "_queue:Empty", "queue:Full", "re:error", "struct:error"),
        "statistics:StatisticsError",
    }
)
_SILENT: Final = (StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt)
_GENERATED: Final[dict[tuple[str, ...], type[Proxy]]] = {}
_T = TypeVar("_T")


class CandidateEndedError(BaseException):
    """The candidate's process is gone, or its answer is none."""


class Line(Protocol):
    """Carries frames to the candidate and back."""

    def send(self, kind: bytes, content: bytes, tag: bytes) -> None:
        """Sends a frame."""

    def receive(self) -> HarnessFrame:
        """Waits for the next frame."""


class Peer:
    """The link to the candidate: sends requests, and serves the program's call-backs meanwhile.

    Attributes:
        used: something of the program's own has reached the tests: a value, a call's outcome.
        calls: requests that acted on the program.
        texts: a text of the program's has reached the tests.
        is_let_happen: whether the tests accept an exception where they assert nothing.
        raised: what the program raised, as raised here.
        ended: the invalid answer; kept, since the tests may have caught the exception.
        refused: what cannot be handed over; kept for the same reason.
    """

    def __init__(self, channel: Line, grants: Grants) -> None:
        self._channel = channel
        self._grants = grants
        self._streams = Streams()
        self._proxies: dict[int, object] = {}
        self._exceptions: dict[tuple[str, ...], type[BaseException]] = {}
        self.used = False
        self.calls = 0
        self.texts = False
        self.is_let_happen: Callable[[BaseException], bool] = lambda error: False
        self.raised: list[BaseException] = []
        self.ended: CandidateEndedError | None = None
        self.refused: UnsupportedRequest | None = None

    def load(self) -> list[str]:
        """Runs the program; returns the names that it claims to define."""
        return self._read(protocol.names, self._ask("load"))

    def lookup(self, names: list[str]) -> dict[str, object]:
        """What names stand for; those that the program does not define are left out."""
        found = self._read(protocol.rows, self._ask("lookup", names), names)
        self.used = True  # a name that is missing tells something, too
        self._note([*found.values()])
        return found

    def execute(self, text: str) -> dict[str, object]:
        """What a text of the program's defines; it runs in the program's process."""
        self.used = True
        self.calls += 1
        return self._read(protocol.rows, self._ask("execute", text), None)

    def operate(self, name: str, subject: object, *arguments: object) -> Any:
        """Has the program do something with an object of its own."""
        self.used = True
        self.calls += 1
        answer = self._ask("operate", name, subject, list(arguments))
        return self._note(self._read(protocol.single, answer))

    def call(self, target: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Calls a function; arguments that it changed in place change here too."""
        self.used = True
        self.calls += 1
        wanted = self._streams.wanted()
        more = () if wanted is None else (wanted,)
        returned = self._ask("call", target, list(args), kwargs, False, True, *more)
        given = [*args, *kwargs.values()]
        report = self._read(
            protocol.read_call_report, returned, len(given), streams=wanted is not None
        )
        self._note([report.value, report.changes])
        for index, value in report.changes:
            mirror(given[index], value)
        if report.texts:
            self.texts = True
            self._streams.take(report.texts)
        return report.value if report.alias == -1 else given[report.alias]

    def _note(self, value: Any) -> Any:
        self.texts = self.texts or _has_text(value)
        return value

    def _read(self, read: Callable[..., _T], *arguments: Any, **more: Any) -> _T:
        try:
            return read(*arguments, **more)
        except ProtocolError as error:
            raise self._end(f"the program's answer is malformed: {error}") from None

    def _end(self, text: str) -> CandidateEndedError:
        self.ended = CandidateEndedError(text)
        return self.ended

    def _ask(self, *request: object) -> Returned:
        """Sends a request and returns the answer's content.

        Raises:
            CandidateEndedError: there is no valid answer.
            BaseException: what the candidate raised, as the same built-in type.
        """
        tag = secrets.token_bytes(TAG_BYTES)
        self._channel.send(REQUEST, encode(list(request), self._opaque, _carried), tag)
        said = self._channel.receive()
        while said.kind == CALLBACK and said.tag == tag:
            self._channel.send(RESULT, self._serve(said.content), tag)
            said = self._channel.receive()
        if said.kind != ANSWER or said.tag != tag:
            raise self._end("the program answered what was not asked")
        answer = self._read(self._read_rich, said.content)
        if isinstance(answer, Returned):
            return answer
        if isinstance(answer, Raised):
            raise self._revive(answer)
        if request[:2] == ("operate", "__next__"):
            raise StopIteration(answer.value)
        raise self._remembered(RuntimeError("the program raised StopIteration"))

    def exception_class(self, lineage: tuple[str, ...]) -> type[BaseException]:
        """Stands for an exception class of the candidate's; built-in ones are themselves."""
        first = lineage[0] if lineage else "Exception"
        if ":" not in first:
            builtin = getattr(builtins, first, Exception)
            if not (isinstance(builtin, type) and issubclass(builtin, BaseException)):
                return Exception
            return RuntimeError if issubclass(builtin, _SILENT) else builtin
        if first in _OF_LIBRARIES:
            module, _, name = first.partition(":")
            found = getattr(sys.modules.get(module), name, None)
            if isinstance(found, type) and issubclass(found, Exception):
                return found
        if lineage not in self._exceptions:
            parent = self.exception_class(lineage[1:])
            members = {"__module__": "candidate", "__str__": _carried_text}
            name = first.partition(":")[2]
            self._exceptions[lineage] = type(name, (parent,), members)
        return self._exceptions[lineage]

    def _revive(self, raised: Raised) -> BaseException:
        self.used = self.texts = True
        kind: type[BaseException] = RuntimeError
        arguments = (raised.text,) if raised.args is None else raised.args
        try:
            kind = self.exception_class(raised.bases)
            if kind.__init__ is BaseException.__init__ or kind.__module__ == "builtins":
                error = kind(*arguments)
            else:  # one of a library, or derived from one that makes its arguments itself
                error = kind.__new__(kind, *arguments)
                error.args = arguments
        except Exception:  # noqa: BLE001 - the fault boundary: the arguments come from the candidate
            error = RuntimeError(f"{raised.type}: {raised.text}")
        for name, value in raised.vars.items():
            if not (name.startswith("_") or hasattr(kind, name)):
                error.__dict__[name] = value
        error.__dict__["_assay_text"] = raised.text
        return self._remembered(error)

    def _remembered(self, error: BaseException) -> BaseException:
        self.raised.append(error)
        return error

    def _opaque(self, value: object) -> Ref | LibraryName:
        if isinstance(value, Proxy):
            return reference(value)
        if isinstance(value, type) and issubclass(value, Proxy):
            return self._grants.inert(value)
        try:
            return self._grants.reference(value)
        except UnsupportedRequest as refused:
            self.refused = refused
            raise

    def _lenient(self, value: object) -> Ref | LibraryName:
        """As `_opaque`, for what the program asked for itself: no fault of the suite's."""
        try:
            return self._opaque(value)
        except UnsupportedRequest:
            self.refused = None
            return self._grants.inert(value)

    def _read_rich(self, content: bytes) -> Returned | Raised | Stopped:
        resolve, carry = self._resolve, self._carry
        return protocol.read_answer(content, resolve=resolve, rich=True, carry=carry)

    def _carry(self, ref: Ref, plain: Any) -> object:
        """Stands for an object whose class derives from that of some plain data."""
        if ref.side != "c":
            raise CodecError("a reference to what is not the program's")
        if isinstance(plain, _CHANGING):
            if ref.number not in self._proxies:
                self._proxies[ref.number] = _proxy_class(ref, Container)(ref, self)
            return self._proxies[ref.number]
        carried = _derived_class(type(plain))(plain)
        carried.__dict__.update(_assay_ref=ref, _assay_peer=self)
        return carried

    def _resolve(self, ref: Ref) -> object:
        if ref.side == "t":
            return self._grants.given(ref.number)
        if ref.kind == "exception-class":
            return self.exception_class(ref.traits)
        if ref.number not in self._proxies:
            self._proxies[ref.number] = (
                self._coroutine(ref) if ref.kind == "coroutine" else _proxy_class(ref)(ref, self)
            )
        return self._proxies[ref.number]

    async def _coroutine(self, ref: Ref) -> object:
        return self.operate("await", ref)

    def _serve(self, content: bytes) -> bytes:
        try:
            asked = protocol.read_callback(content, resolve=self._resolve, carry=self._carry)
        except ProtocolError as error:
            raise self._end(f"the program's call-back is malformed: {error}") from None
        try:
            return encode(["value", self._grants.serve(asked)], self._lenient, _carried)
        except StopIteration:
            return encode(["stop"])
        except (CandidateEndedError, UnsupportedRequest):
            raise
        except BaseException as error:  # noqa: BLE001 - the fault boundary: told to who called
            return encode(["error", type(error).__name__, _text(error)])


def _carried_text(error: BaseException) -> str:
    """The text that a candidate's exception has in its own process."""
    text: str = error.__dict__.get("_assay_text", "")
    return text


def _has_text(value: object) -> bool:
    level = [value]
    while level:
        if any(issubclass(kind, (str, bytes, bytearray)) for kind in set(map(type, level))):
            return True
        below: list[object] = []
        for part in level:
            if isinstance(part, dict):
                below.extend(part)
                below.extend(part.values())
            elif isinstance(part, (list, tuple, set, frozenset, deque)):
                below.extend(part)
        level = below
    return False


def _text(error: BaseException) -> str:
    try:
        return str(error)[:1000]
    except Exception:  # noqa: BLE001 - an exception of the tests' own
        return ""


def reference(proxy: Proxy) -> Ref:
    """The reference that a proxy stands for."""
    ref: Ref = object.__getattribute__(proxy, "_ref")
    return ref


def _peer(proxy: Proxy) -> Peer:
    peer: Peer = object.__getattribute__(proxy, "_peer")
    return peer


def mirror(mine: Any, theirs: Any) -> None:
    """Changes a container in place to the candidate's changed copy."""
    if isinstance(mine, list) and isinstance(theirs, list):
        for index, (old, new) in enumerate(zip(mine, theirs, strict=False)):
            if _alike(old, new):
                mirror(old, new)
            else:
                mine[index] = new
        mine[len(theirs) :] = theirs[len(mine) :]
    elif isinstance(mine, tuple) and isinstance(theirs, tuple):
        for old, new in zip(mine, theirs, strict=False):
            mirror(old, new)
    elif isinstance(mine, dict) and isinstance(theirs, dict):
        old_values = dict(mine)
        mine.clear()
        for key, new in theirs.items():
            old = old_values.get(key)
            if _alike(old, new):
                mirror(old, new)
                mine[key] = old
            else:
                mine[key] = new
    elif isinstance(mine, set) and isinstance(theirs, set):
        mine.clear()
        mine.update(theirs)
    elif isinstance(mine, bytearray) and isinstance(theirs, bytearray):
        mine[:] = theirs


def _alike(old: object, new: object) -> bool:
    return type(old) is type(new) and isinstance(old, (list, dict, set, bytearray))


class Proxy:
    """An object of the candidate's; `_proxy_class` adds its type's special methods."""

    __slots__ = ("_peer", "_ref")

    def __init__(self, ref: Ref, peer: Peer) -> None:
        object.__setattr__(self, "_ref", ref)
        object.__setattr__(self, "_peer", peer)

    def __getattr__(self, name: str) -> object:
        ref = reference(self)
        if name in {"__name__", "__qualname__"}:
            return _peer(self).operate("getattr", self, name)
        if name.startswith("__") or ref.kind == "tester":
            raise AttributeError(f"{ref.type_name!r} object has no attribute {name!r} here")
        return _peer(self).operate("getattr", self, name)

    def __setattr__(self, name: str, value: object) -> None:
        _peer(self).operate("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        _peer(self).operate("delattr", self, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Proxy):
            return False
        if reference(self).number == reference(other).number:
            return True
        mine = _peer(self).operate("state", self)
        if not (isinstance(mine, list) and len(mine) == 3 and mine[2]):
            return False  # no equality of its own, or nothing that it could be told by
        return bool(mine == _peer(self).operate("state", other))

    def __hash__(self) -> int:
        return hash(reference(self).number)

    def __instancecheck__(self, instance: object) -> bool:
        return _peer(self).operate("isinstance", instance, self) is True

    def __subclasscheck__(self, subclass: object) -> bool:
        return _peer(self).operate("issubclass", subclass, self) is True

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        raise UnsupportedRequest("test code cannot derive a class from one of the program's")

    def __contains__(self, item: object) -> bool:
        walk: Callable[[], Iterator[object]] | None = getattr(type(self), "__iter__", None)
        if walk is None:
            raise TypeError(f"argument of type {reference(self).type_name!r} is not iterable")
        return any(element is item or element == item for element in self)  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        raise TypeError("an object of the program's cannot be pickled or copied")


class Container(Proxy):
    """A container of a class derived from a built-in one; its current content is data."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        theirs = _content(other) if isinstance(other, Container) else other
        return bool(_content(self) == theirs)

    __hash__ = None  # type: ignore[assignment]


def _content(container: Container) -> object:
    """A container's content, fetched anew.

    Raises:
        CandidateEndedError: it is none.
    """
    content: object = _peer(container).operate("plain", container)
    if type(content) not in _CHANGING:
        raise TypeError("the content of a container is none")
    return content


class Derived:
    """Plain data of a derived class: compared here, everything else asked of the candidate."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        peer: Peer = self.__dict__["_assay_peer"]
        return peer.operate("getattr", self, name)


_DERIVED: Final[dict[type[Any], type[Any]]] = {}
_CHANGING: Final = (list, dict, set, bytearray, deque)


def _derived_class(base: type[Any]) -> type[Any]:
    """The class of plain data of one kind that came with a reference."""
    if base not in _DERIVED:
        _DERIVED[base] = type(base.__name__, (Derived, base), {"__module__": "candidate"})
    return _DERIVED[base]


def _carried(value: object) -> Ref | None:
    if isinstance(value, Derived):
        ref: Ref = value.__dict__["_assay_ref"]
        return ref
    return None


def _proxy_class(ref: Ref, base: type[Proxy] = Proxy) -> type[Proxy]:
    """A proxy class with the special methods of the candidate's type, and no others."""
    traits = tuple(trait for trait in CARRIED if trait in ref.traits)
    key = (base.__name__, *traits)
    if key not in _GENERATED:
        methods: dict[str, object] = {trait: _forward(trait) for trait in traits}
        if "__iter__" not in traits:
            methods["__iter__" if "__getitem__" in traits else "_"] = _walk
        _GENERATED[key] = type("Proxy", (base,), {"__slots__": (), **methods})
    return _GENERATED[key]


def _walk(self: Any) -> Iterator[object]:
    """Iteration by index, as Python does for a type with __getitem__ alone."""
    index = 0
    while True:
        try:
            item = self[index]
        except IndexError:
            return
        yield item
        index += 1


def _forward(name: str) -> Callable[..., object]:

    def unary(self: Proxy) -> object:
        return _checked(name, _peer(self).operate(name, self))

    def binary(self: Proxy, other: object) -> object:
        if not isinstance(other, Proxy):
            return NotImplemented
        return _peer(self).operate(name, self, other)

    def call(self: Proxy, *args: object, **kwargs: object) -> object:
        return _peer(self).call(self, args, kwargs)

    def keyed(self: Proxy, *args: object) -> object:
        if name == "__exit__":
            return _left(self, args[1])
        return _peer(self).operate(name, self, *args)

    if name == "__call__":
        return call
    if name in UNARY:
        return unary
    return binary if name in BINARY else keyed


def _left(self: Proxy, error: object) -> bool:
    """Leaves a block; whether the candidate's object suppresses the exception.

    It may suppress its own, and one that the tests let happen where nothing is asserted.
    """
    peer = _peer(self)
    if not isinstance(error, BaseException):
        peer.operate("__exit__", self, None, None, None)
        return False
    kind = type(error) if vars(builtins).get(type(error).__name__) is type(error) else RuntimeError
    kept = peer.operate("__exit__", self, kind, None, None)
    own = any(error is raised for raised in peer.raised)
    return bool(kept) and isinstance(error, Exception) and (own or peer.is_let_happen(error))


def _checked(name: str, value: object) -> object:
    """What a special method must return, as a plain value of that type."""
    kind = _RETURNS.get(name)
    if kind is not None and type(value) is not kind:
        raise TypeError(f"{name} returned no {kind.__name__}")
    return value


_RETURNS: Final[dict[str, type]] = {
    "__len__": int, "__bool__": bool, "__str__": str, "__repr__": str, "__int__": int,
    "__float__": float, "__index__": int,
}  # fmt: skip
