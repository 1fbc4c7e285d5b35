"""The candidate's objects, as test code sees them from another process.

Plain values are compared natively, in the tester. An object that stays with the candidate is a
`Proxy`, which carries only such operations as its type has, and of those only what cannot decide a
test or tell the candidate what was expected:

 - A proxy never equals a plain value, and the candidate is not asked. Two proxies are equal if they
   are one object, or are instances of one class with an equality of its own and the same state
   (attributes, compared here). The candidate's own `__eq__` is never called.
 - An operator between a proxy and a plain value is a TypeError: it would hand the expected value
   over. Two proxies may be added or ordered by the candidate's own methods.
 - `x in proxy` goes through its elements here.
 - An exception of the candidate's is raised here as the same built-in one, except those that end a
   loop or a generator in silence: they come as RuntimeError.
"""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Callable, Iterator
from typing import Any, Final

from assay.sandbox.harness.candidate import BINARY, CARRIED, UNARY
from assay.sandbox.harness.codec import CodecError, Ref, decode, encode
from assay.sandbox.harness.frames import ANSWER, CALLBACK, REQUEST, RESULT, Channel

_SILENT: Final = (StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt)
_GENERATED: Final[dict[tuple[str, ...], type[Proxy]]] = {}


class Unsupported(BaseException):
    """Test code asked for what cannot be served across processes: the suite's fault."""


class CandidateEndedError(BaseException):
    """The candidate's process is gone, or what it said is no answer."""


class Peer:
    """The link to the candidate: sends requests, serves what its program calls back meanwhile."""

    def __init__(self, channel: Channel, is_open: Callable[[object], bool]) -> None:
        self._channel = channel
        self._is_open = is_open
        self._proxies: dict[int, object] = {}
        self._mine: list[object] = []
        self._numbers: dict[int, int] = {}
        self._exceptions: dict[str, type[BaseException]] = {}
        self.calls = 0
        self.raised: list[BaseException] = []

    def ask(self, operation: str, *arguments: object) -> tuple[Any, ...]:
        """Sends a request and returns what the answer holds.

        Raises:
            CandidateEndedError: there is no answer that fits.
            BaseException: what the candidate raised, as the same built-in type.
        """
        tag = secrets.token_hex(8)
        self._channel.send(REQUEST, encode([tag, operation, *arguments], self._opaque))
        kind, content = self._channel.receive()
        while kind == CALLBACK:
            self._channel.send(RESULT, self._serve(content))
            kind, content = self._channel.receive()
        try:
            answer: Any = decode(content, resolve=self._resolve, rich=True)
            echoed, outcome, *rest = answer
        except (CodecError, ValueError, TypeError, LookupError) as error:
            raise CandidateEndedError(f"the program's answer is malformed: {error}") from None
        if kind != ANSWER or echoed != tag:
            raise CandidateEndedError("the program answered what was not asked")
        if outcome == "value":
            return tuple(rest)
        if outcome == "error":
            raise self._revive(*rest)
        if operation == "operate" and arguments[0] == "__next__":
            raise StopIteration(*rest)
        raise self._remembered(RuntimeError("the program raised StopIteration"))

    def call(self, target: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Calls a function; arguments that it changed in place change here too."""
        self.calls += 1
        result, changes, alias = self.ask("call", target, list(args), kwargs, False, True)
        given = [*args, *kwargs.values()]
        for index, value in changes:
            mirror(given[index], value)
        return result if alias == -1 else given[alias]

    def exception_class(self, name: str, bases: tuple[str, ...]) -> type[BaseException]:
        """Stands for an exception class of the candidate's; the built-in one where it is that."""
        builtin = getattr(builtins, bases[0], Exception) if bases else Exception
        if not (isinstance(builtin, type) and issubclass(builtin, BaseException)):
            builtin = Exception
        if issubclass(builtin, _SILENT):
            builtin = RuntimeError
        elif name == builtin.__name__:
            return builtin
        if name not in self._exceptions:
            self._exceptions[name] = type(name, (builtin,), {"__module__": "candidate"})
        return self._exceptions[name]

    def _revive(self, described: dict[str, Any]) -> BaseException:
        """The candidate's exception, to be raised here."""
        kind = self.exception_class(str(described["type"]), tuple(described["bases"]))
        try:
            error = kind(*described.get("args", [described["text"]]))
        except Exception:  # noqa: BLE001 - the isolation border: the arguments come from the candidate
            error = RuntimeError(f"{described['type']}: {described['text']}")
        for name, value in described.get("vars", {}).items():
            if isinstance(name, str) and not name.startswith("_"):
                error.__dict__[name] = value
        return self._remembered(error)

    def _remembered(self, error: BaseException) -> BaseException:
        self.raised.append(error)
        return error

    def _opaque(self, value: object) -> Ref:
        if isinstance(value, Proxy):
            return reference(value)
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._mine)
            self._mine.append(value)
        return Ref("t", number)

    def _resolve(self, ref: Ref) -> object:
        if ref.side == "t":
            return self._mine[ref.number]
        if ref.kind == "exception-class":
            return self.exception_class(ref.type_name, ref.traits)
        if ref.number not in self._proxies:
            self._proxies[ref.number] = (
                self._coroutine(ref) if ref.kind == "coroutine" else _proxy_class(ref)(ref, self)
            )
        return self._proxies[ref.number]

    async def _coroutine(self, ref: Ref) -> object:
        return self.ask("operate", "await", ref, [])[0]

    def _serve(self, content: bytes) -> bytes:
        """Carries out what the candidate's program asks of an object of the tests'."""
        try:
            request: Any = decode(content, resolve=self._resolve, rich=True)
            operation, subject, *rest = request
            if operation == "call":
                value: object = subject(*rest[0], **rest[1])
            else:
                name = str(rest[0])
                if name.startswith("_") or not self._is_open(subject):
                    raise AttributeError(name)
                value = {"getattr": getattr, "setattr": setattr}[operation](subject, *rest)
            return encode(["value", value], self._opaque)
        except Exception as error:  # noqa: BLE001 - the isolation border: told to who called
            return encode(["error", [type(error).__name__, str(error)[:1000]]])


def reference(proxy: Proxy) -> Ref:
    """The reference that a proxy stands for."""
    ref: Ref = object.__getattribute__(proxy, "_ref")
    return ref


def _peer(proxy: Proxy) -> Peer:
    peer: Peer = object.__getattribute__(proxy, "_peer")
    return peer


def mirror(mine: Any, theirs: Any) -> None:
    """Changes a container in place into what the candidate made of its copy."""
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
    """An object of the candidate's; `_proxy_class` adds what its type can do besides attributes."""

    __slots__ = ("_peer", "_ref")

    def __init__(self, ref: Ref, peer: Peer) -> None:
        object.__setattr__(self, "_ref", ref)
        object.__setattr__(self, "_peer", peer)

    def __getattr__(self, name: str) -> object:
        ref = reference(self)
        if name in {"__name__", "__qualname__"}:
            return _peer(self).ask("operate", "getattr", self, [name])[0]
        if name.startswith("__") or ref.kind == "tester":
            raise AttributeError(f"{ref.type_name!r} object has no attribute {name!r} here")
        return _peer(self).ask("operate", "getattr", self, [name])[0]

    def __setattr__(self, name: str, value: object) -> None:
        _peer(self).ask("operate", "setattr", self, [name, value])

    def __delattr__(self, name: str) -> None:
        _peer(self).ask("operate", "delattr", self, [name])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Proxy):
            return False
        if reference(self).number == reference(other).number:
            return True
        mine = _peer(self).ask("operate", "state", self, [])[0]
        return mine is not None and mine == _peer(self).ask("operate", "state", other, [])[0]

    def __hash__(self) -> int:
        return hash(reference(self).number)

    def __instancecheck__(self, instance: object) -> bool:
        return bool(_peer(self).ask("operate", "isinstance", instance, [self])[0])

    def __subclasscheck__(self, subclass: object) -> bool:
        return bool(_peer(self).ask("operate", "issubclass", subclass, [self])[0])

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        raise Unsupported("test code cannot derive a class from one of the program's")

    def __contains__(self, item: object) -> bool:
        walk: Callable[[], Iterator[object]] | None = getattr(type(self), "__iter__", None)
        if walk is None:
            raise TypeError(f"argument of type {reference(self).type_name!r} is not iterable")
        return any(element is item or element == item for element in self)  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        raise TypeError("an object of the program's cannot be pickled or copied")


def _proxy_class(ref: Ref) -> type[Proxy]:
    """The class of proxies with just the special methods that the candidate's type has."""
    traits = tuple(trait for trait in CARRIED if trait in ref.traits)
    if traits not in _GENERATED:
        methods: dict[str, object] = {trait: _forward(trait) for trait in traits}
        if "__iter__" not in traits:
            methods["__iter__" if "__getitem__" in traits else "_"] = _walk
        _GENERATED[traits] = type("Proxy", (Proxy,), {"__slots__": (), **methods})
    return _GENERATED[traits]


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
    """A special method that asks the candidate's process."""

    def unary(self: Proxy) -> object:
        return _checked(name, _peer(self).ask("operate", name, self, [])[0])

    def binary(self: Proxy, other: object) -> object:
        if not isinstance(other, Proxy):
            return NotImplemented
        return _peer(self).ask("operate", name, self, [other])[0]

    def call(self: Proxy, *args: object, **kwargs: object) -> object:
        return _peer(self).call(self, args, kwargs)

    def keyed(self: Proxy, *args: object) -> object:
        if name == "__exit__":
            args = (None, None, None) if args[0] is None else (RuntimeError, None, None)
        return _peer(self).ask("operate", name, self, list(args))[0]

    if name == "__call__":
        return call
    if name in UNARY:
        return unary
    return binary if name in BINARY else keyed


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
