"""Runs in the candidate's process: loads its program as a module, then calls it on request.

The module's name is `solution`, so a guarded main part, which would read stdin, does not run.

`protocol` defines the frames; the operations of a request are

    load                                    run the program; answers with the names that it defines
    lookup, names                           what the names stand for
    call, target, args, kwargs, fresh, tell call by name, dotted path or number; `fresh` makes an
                                            instance for "Class.method"; `tell` asks which arguments
                                            changed in place; a seventh part says what of the
                                            streams is replaced (`streams`)
    operate, name, object, args             a special method, getattr, isinstance, state, await...
    execute, text                           run a text as a module of its own; answers with what its
                                            names stand for
    bye                                     end

An object that is no plain value stays here and gets a number (`codec.Ref`) for later requests.

Covered: nothing. The candidate shares this process and may forge its answers, which count only as
what the program returned. No expected value and no test code come here.
Not covered: that the program answers truthfully about its own objects.
"""

from __future__ import annotations

import importlib
import operator
import os
import sys
import types
from _socket import socketpair
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from assay.sandbox.harness import script
from assay.sandbox.harness.codec import MAX_NAME, decode, encode
from assay.sandbox.harness.frames import Channel
from assay.sandbox.harness.protocol import ANSWER, CALLBACK, HELLO, NO_TAG, REQUEST, RESULT
from assay.sandbox.harness.references import CodecError, Ref
from assay.sandbox.harness.streams import Wanted, replaced

# Special methods that a proxy in the tester carries where the object's type has them.
UNARY: Final = (
    "__len__", "__iter__", "__next__", "__bool__", "__str__", "__repr__", "__int__", "__float__",
    "__index__", "__neg__", "__pos__", "__abs__", "__invert__", "__reversed__", "__enter__",
)  # fmt: skip
BINARY: Final = (
    "__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__pow__",
    "__matmul__", "__and__", "__or__", "__xor__", "__lshift__", "__rshift__", "__lt__", "__le__",
    "__gt__", "__ge__",
)  # fmt: skip
KEYED: Final = ("__getitem__", "__setitem__", "__delitem__", "__call__", "__exit__", "__format__")
CARRIED: Final = (*UNARY, *BINARY, *KEYED)
MODULE: Final = "solution"
_WARM_UP_ROUNDS: Final = 10  # the interpreter has settled on a function's form after eight calls
_WARM_UP: Final = """\
from typing import Dict, List, Optional, Tuple
import math
def f(a: List[int], b: Tuple, d: Optional[Dict] = None) -> list:
    found = [x for x in a if x]
    for i in range(len(a)):
        if a[i] == b:
            return [math.floor(i)]
    return sorted(str(x) for x in found) + [d]
"""
_MOST_BASES: Final = 50
_OWN: Final = frozenset({MODULE, "__main__", "executed"})
_CONTAINERS: Final[tuple[Any, ...]] = (list, set, bytearray, deque)
MUTABLE: Final = (list, dict, set, bytearray, tuple)
_SPECIAL: Final[dict[str, Callable[..., object]]] = {
    "__len__": len, "__iter__": iter, "__next__": next, "__bool__": bool, "__str__": str,
    "__repr__": repr, "__int__": int, "__float__": float, "__index__": operator.index,
    "__reversed__": reversed, "__format__": format, "getattr": getattr, "setattr": setattr,
    "delattr": delattr, "isinstance": isinstance, "issubclass": issubclass,
    **{name: getattr(operator, name) for name in (*BINARY, *UNARY[9:13], *KEYED[:3])},
}  # fmt: skip


class Missing(NameError):
    """The program does not define what was asked for."""


def main(channel_fd: int, argv: tuple[str, ...]) -> int:
    """Serves requests until the asker is gone or says bye; returns the exit code."""
    return _Candidate(Channel(channel_fd), argv).serve()


def warm_up(path: str) -> None:
    """Serves a few requests in this process, so that its children's first ones cost less.

    Args:
        path: where a small program may be put meanwhile.
    """
    saved = sys.argv, list(sys.path), sys.modules["__main__"]
    with open(path, "w") as file:
        file.write(_WARM_UP)
    call = ["call", "f", [[1, 2.5, "a"], (None, True)], {"d": {"k": {1}}}, True, True]
    for _ in range(_WARM_UP_ROUNDS):
        ours, theirs = socketpair()
        for request in (["load"], ["lookup", ["f"]], call, call, ["bye"]):
            Channel(ours.fileno()).send(REQUEST, encode(request))
        main(theirs.fileno(), (path,))
        ours.close()
        theirs.close()
    os.unlink(path)
    sys.argv, sys.path[:], sys.modules["__main__"] = saved
    del sys.modules[MODULE]


class _Candidate:
    def __init__(self, channel: Channel, argv: tuple[str, ...]) -> None:
        self._channel = channel
        self._argv = argv
        self._namespace: dict[str, Any] = {}
        self._objects: list[object] = []
        self._numbers: dict[int, int] = {}
        self._process = os.getpid()
        self._leave, self._pid = os._exit, os.getpid
        self._tag = NO_TAG  # of the request in progress
        self._operations: dict[str, Callable[..., tuple[object, ...]]] = {
            "load": self._load,
            "lookup": self._lookup,
            "call": self._call,
            "operate": self._operate,
            "execute": self._execute,
        }

    def serve(self) -> int:
        try:
            self._channel.send(HELLO, b"")
            while True:
                kind, tag, content = self._channel.receive()
                if kind == REQUEST and not self._answer(tag, content):
                    break
        except (EOFError, OSError):
            pass
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:  # noqa: BLE001, S112 - the fault boundary: it is the program's
                continue
        return 0

    def _answer(self, tag: bytes, content: bytes) -> bool:
        """Carries out one request; False for bye."""
        request: Any = self._read(content)
        operation, *rest = request
        if operation == "bye":
            return False
        before, self._tag = self._tag, tag
        try:
            answer = ["value", *self._operations[operation](*rest)]
        except StopIteration as stop:
            answer = ["stop", stop.value]
        except BaseException as error:  # noqa: BLE001 - the fault boundary: anything may be raised
            answer = ["error", *_describe(error)]
        self._tag = before
        if self._pid() != self._process:
            self._leave(0)  # a fork of the program's came back here; only the first process answers
        self._channel.send(ANSWER, self._encoded(answer), tag)
        return True

    def _encoded(self, answer: list[object]) -> bytes:
        """The bytes of an answer; objects that are no plain values get numbers."""
        try:
            return encode(answer, self._opaque, self._derived)
        except (CodecError, RecursionError) as error:
            kept = answer[1]
            try:
                ref = self._opaque(kept, note=str(error))
                return encode([answer[0], ref, *answer[2:]], self._opaque)
            except (CodecError, RecursionError):
                rest = [[], -1, *answer[4:]] if len(answer) >= 4 else []
                return encode([answer[0], self._opaque(kept), *rest])

    def _load(self) -> tuple[object, ...]:
        path, *arguments = self._argv
        main_module = script.prepare_main(path, tuple(arguments))
        main_module.__name__ = MODULE
        sys.modules[MODULE] = main_module
        self._namespace = main_module.__dict__
        script.execute(path, self._namespace)
        return (_public(self._namespace),)

    def _lookup(self, names: list[str]) -> tuple[object, ...]:
        """What names stand for: [name, value] each, missing ones left out."""
        return ([self._named(name, self._namespace) for name in names if name in self._namespace],)

    def _named(self, name: str, namespace: dict[str, Any]) -> list[object]:
        """A name and its value. A class stays here: what it makes is the program's."""
        value = namespace[name]
        stays = isinstance(value, type) and not issubclass(value, BaseException)
        return [name, self._opaque(value) if stays else value]

    def _execute(self, text: str) -> tuple[object, ...]:
        namespace: dict[str, Any] = {"__name__": "executed"}
        exec(compile(text, "<executed>", "exec", dont_inherit=True), namespace)  # noqa: S102
        return ([self._named(name, namespace) for name in _public(namespace)],)

    def _find(self, target: object, fresh: bool) -> Any:
        if not isinstance(target, str):
            return target
        first, *rest = target.split(".")
        if first not in self._namespace:
            raise Missing(f"the program does not define {first!r}")
        found = self._namespace[first]
        if fresh and rest and isinstance(found, type):
            found = found()
        for name in rest:
            found = getattr(found, name)
        return found

    def _call(  # noqa: PLR0917 - the parts of the message, in its order
        self,
        target: object,
        args: list[Any],
        kwargs: dict[str, Any],
        fresh: bool,
        tell: bool,
        wanted: Wanted | None = None,
    ) -> tuple[object, ...]:
        function = self._find(target, fresh)
        if wanted is not None:
            with replaced(wanted) as told:
                answer = self._call(function, args, kwargs, fresh, tell)
            return (*answer, told)
        if not tell:
            return (function(*args, **kwargs),)
        given = [*args, *kwargs.values()]
        before = [_snapshot(value) for value in given]
        result = function(*args, **kwargs)
        changes: list[object] = []
        for index, (value, old) in enumerate(zip(given, before, strict=True)):
            if old is not None and (new := self._changed(value, old)):
                changes.append([index, new[0]])
        alias = next((i for i, v in enumerate(given) if v is result and isinstance(v, MUTABLE)), -1)
        return (None if alias >= 0 else result, changes, alias)

    def _changed(self, value: object, old: bytes) -> tuple[object] | None:
        try:
            return None if encode(value, self._opaque) == old else (value,)
        except (CodecError, RecursionError):
            return None

    def _operate(self, name: str, subject: object, args: list[Any]) -> tuple[object, ...]:
        if name == "state":
            return (_state(subject),)
        if name == "plain":
            return (_content(subject),)
        if name == "await":
            import asyncio  # noqa: PLC0415 - few programs need it

            return (asyncio.run(subject),)  # type: ignore[arg-type]
        if name in {"__enter__", "__exit__"}:
            return (getattr(type(subject), name)(subject, *args),)
        return (_SPECIAL[name](subject, *args),)

    def _opaque(self, value: object, note: str = "") -> Ref:
        if isinstance(value, _TesterObject):
            return _TesterObject.reference(value)
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        kind, traits = _kind(value)
        name = value.__name__ if isinstance(value, type) else type(value).__name__
        return Ref("c", number, note or kind, name[:100], traits)

    def _derived(self, value: object) -> Ref | None:
        """A reference to plain data whose class, the program's, does more than that."""
        kind = type(value)
        if kind.__module__ not in _OWN:
            return None
        classes = [part for part in kind.__mro__ if part.__module__ in _OWN]
        more = any(not name.startswith("_") for part in classes for name in vars(part))
        return self._opaque(value) if more else None

    def _read(self, content: bytes) -> object:
        return decode(
            content,
            resolve=self._resolve,
            rich=True,
            library=_of_library,
            carry=lambda ref, _: self._resolve(ref),
        )

    def _resolve(self, ref: Ref) -> object:
        if ref.side == "c":
            return self._objects[ref.number]
        kind = _TesterIterator if ref.kind == "iterator" else _TesterObject
        return kind(ref, self._call_back)

    def _call_back(self, *request: object) -> object:
        """Asks the tester for something, and serves its requests meanwhile."""
        self._channel.send(CALLBACK, encode(list(request), self._opaque), self._tag)
        while True:
            kind, tag, content = self._channel.receive()
            if kind == REQUEST:
                self._answer(tag, content)
            elif kind == RESULT:
                result: Any = self._read(content)
                outcome, *rest = result
                if outcome == "value":
                    return rest[0]
                if outcome == "stop":
                    raise StopIteration
                raise _REVIVED.get(rest[0], RuntimeError)(rest[1])


class _TesterObject:
    """An object of the tester's, as the program sees it: called, and its public attributes."""

    __slots__ = ("_ask", "_ref")

    def __init__(self, ref: Ref, ask: Callable[..., object]) -> None:
        object.__setattr__(self, "_ref", ref)
        object.__setattr__(self, "_ask", ask)

    def reference(self) -> Ref:
        ref: Ref = object.__getattribute__(self, "_ref")
        return ref

    def _asked(self, operation: str, *rest: object) -> object:
        ask = object.__getattribute__(self, "_ask")
        answer: object = ask(operation, self.reference().number, *rest)
        return answer

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._asked("call", list(args), kwargs)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._asked("getattr", name)

    def __setattr__(self, name: str, value: object) -> None:
        self._asked("setattr", name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TesterObject) and other.reference() == self.reference()

    def __hash__(self) -> int:
        return hash(self.reference().number)


class _TesterIterator(_TesterObject):
    __slots__ = ()

    def __iter__(self) -> _TesterIterator:
        return self

    def __next__(self) -> object:
        return self._asked("next")


def _public(namespace: dict[Any, Any]) -> list[str]:
    names = [name for name in list(namespace) if isinstance(name, str) and len(name) <= MAX_NAME]
    return [name for name in names if not name.startswith("__")]


def _of_library(module: str, name: str) -> object:
    """A library's function or class that the tests hand over, as it is here."""
    found: object = importlib.import_module(module)
    for part in filter(None, name.split(".")):
        found = getattr(found, part)
    return found


_REVIVED: Final = {
    kind.__name__: kind
    for kind in vars(__import__("builtins")).values()
    if isinstance(kind, type) and issubclass(kind, Exception) and "Unicode" not in kind.__name__
}


def _snapshot(value: object) -> bytes | None:
    if not isinstance(value, MUTABLE):
        return None
    try:
        return encode(value)
    except (CodecError, RecursionError):
        return None


def _kind(value: object) -> tuple[str, tuple[str, ...]]:
    """What an object is, and what of it a proxy carries."""
    if isinstance(value, type):
        if issubclass(value, BaseException):
            return "exception-class", _lineage(value)
        return "class", ("__call__", *_traits(type(value), type))
    if isinstance(value, types.ModuleType):
        return "module", ()
    if isinstance(value, types.CoroutineType):
        return "coroutine", ()
    traits = _traits(type(value), object)
    if isinstance(value, types.GeneratorType):
        return "generator", traits
    return "function" if isinstance(value, types.FunctionType) else "instance", traits


def _traits(kind: type, base: type) -> tuple[str, ...]:
    """The special methods that a type has; of a class's own type, those beyond `type`'s."""
    has = [name for name in CARRIED if getattr(kind, name, None) is not None]
    return tuple(name for name in has if base is object or not hasattr(base, name))


def _lineage(kind: type) -> tuple[str, ...]:
    """An exception's classes, nearest first: built-in ones by name, others behind a ":".

    Before it stands the module, where the class is a library's.
    """
    names: list[str] = []
    for base in kind.__mro__[:_MOST_BASES]:
        module, name = base.__module__, base.__name__[:100]
        if module == "builtins":
            names.append(name)
        else:
            names.append(f":{name}" if module in _OWN else f"{str(module)[:90]}:{name}")
    return tuple(names)


def _content(value: Any) -> object:
    if isinstance(value, dict):
        return dict(dict.items(value))
    base = next(kind for kind in _CONTAINERS if isinstance(value, kind))
    return base(base.__iter__(value))


def _state(value: object) -> object:
    """Class and attributes of an instance whose class defines equality; else None."""
    kind = type(value)
    if kind.__eq__ is object.__eq__:
        return None
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    attributes = dict(getattr(value, "__dict__", {}))
    attributes.update({name: getattr(value, name) for name in slots if hasattr(value, name)})
    return [kind.__module__, kind.__qualname__, attributes]


def _describe(error: BaseException) -> list[object]:
    """An exception as plain data: class, built-in bases, text, line, arguments, attributes."""
    kind = type(error)
    try:
        text = str(error)[:1000]
    except BaseException:  # noqa: BLE001 - the fault boundary: its __str__ is the program's
        text = ""
    name = "NameError" if kind is Missing else kind.__name__[:200]
    plain = [_plain(lambda: list(error.args)), _plain(lambda: dict(vars(error)))]
    return [name, list(_lineage(kind)), text, _where(error), *plain]


def _plain(read: Callable[[], object]) -> object:
    try:
        content = read()
        encode(content)
    except BaseException:  # noqa: BLE001 - the fault boundary
        return None
    return content


def _where(error: BaseException) -> str:
    trace, line = error.__traceback__, 0
    while trace is not None:
        if "assay/sandbox/harness" not in trace.tb_frame.f_code.co_filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}" if line else ""
