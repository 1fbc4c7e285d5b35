"""Runs inside of a jailed program: the candidate's side of the channel, in the program's hands.

The text of this file is put before a hostile program (`sandbox_fuzz`, `forgery_tricks`), which
then reads and writes the frames itself. It knows the protocol and nothing of the expected values.
`frame` is the one writer of frames, `receive` the one reader: length (4 bytes, big-endian), kind
(1), tag (8), content as JSON.

Standard library only.
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
from collections.abc import Callable
from typing import Any

CHANNEL = 3
NAMES = ("f", "Stack", "Solution")
NO_ARGUMENTS: dict[str, Any] = {"d": []}
TRAITS = (
    "__len__", "__iter__", "__next__", "__bool__", "__str__", "__repr__", "__int__", "__float__",
    "__index__", "__abs__", "__add__", "__sub__", "__lt__", "__getitem__", "__call__", "__enter__",
    "__exit__", "__format__", "__eq__", "__hash__", "__class__",
)  # fmt: skip


def frame(kind: bytes, tag: Any, content: Any) -> bytes:
    """A frame's bytes; content is a tree for JSON, or bytes that are taken as they are."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    body = kind + _eight(tag) + text
    return struct.pack("!I", len(body)) + body


def _eight(tag: Any) -> bytes:
    return tag if isinstance(tag, bytes) else str(tag).encode()[:8].ljust(8, b"0")


def write(data: bytes) -> None:
    """All of the bytes, to the channel."""
    left = memoryview(data)
    while left:
        left = left[os.write(CHANNEL, left) :]


def receive() -> tuple[bytes, Any, Any]:
    """The next frame's kind, tag and content."""
    (size,) = struct.unpack("!I", _exactly(4))
    body = _exactly(size)
    kind = body[:1]
    return kind, body[1:9], json.loads(body[9:] or b"null")


def _exactly(size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        chunk = os.read(CHANNEL, min(size - len(parts), 1 << 20))
        if not chunk:
            os._exit(0)
        parts += chunk
    return parts


def tags() -> list[Any]:
    """What looks like a tag in the frames above; that of the request in progress comes first."""
    named: list[Any] = []
    others: list[Any] = []
    above: Any = sys._getframe()  # noqa: SLF001 - that is what it is for
    while above is not None:
        for name, value in list(above.f_locals.items()):
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if _is_tag(item):
                    (named if "tag" in name else others).append(item)
        above = above.f_back
    return [*named, *others]


def _is_tag(value: Any) -> bool:
    return isinstance(value, bytes) and len(value) == 8


def answer(tag: Any, *content: Any) -> None:
    """Sends an answer."""
    write(frame(b"A", tag, list(content)))


def mine(number: int = 0, kind: str = "function", *traits: str) -> Any:
    """A reference to an object of the program's."""
    return {"h": ["c", number, kind, kind, list(traits or ("__call__",))]}


def theirs(number: Any, kind: str = "", name: str = "", traits: Any = ()) -> Any:
    """A reference to an object of the tests'."""
    return {"h": ["t", number, kind, name, list(traits)]}


def rows(names: list[str]) -> list[Any]:
    """The answer to a look-up: each name is a function of the program's."""
    return [[name, mine()] for name in names]


def call_back(tag: Any, *content: Any) -> Any:
    """Asks the tester for something; the value that came back, or None where it refused.

    Requests that arrive meanwhile are answered with None.
    """
    write(frame(b"K", tag, [_bare(part) for part in content]))
    while True:
        kind, inner, tree = receive()
        if kind == b"R":
            return tree[1] if tree[0] == "value" else None
        answer(inner, "value", None, [], -1)


def _bare(part: Any) -> Any:
    """A reference to an object of the tests' as a call-back's subject: its number."""
    is_theirs = isinstance(part, dict) and list(part) == ["h"] and part["h"][:1] == ["t"]
    return part["h"][1] if is_theirs else part


def returned(tag: Any, request: list[Any], value: Any) -> None:
    """Answers a request with a value, in the form that its operation has."""
    extra = ([], -1) if request[0] == "call" else ()
    answer(tag, "value", value, *extra)


def take_over(
    serve: Callable[[Any, list[Any]], object],
    look_up: Callable[[list[str]], list[Any]] = rows,
    public: Any = NAMES,
) -> None:
    """Answers the request in progress, which loads the program, then serves in its stead.

    Args:
        serve: takes the tag and the content of each request but look-ups, and sends what it likes.
        look_up: makes the rows of a look-up.
        public: the names that the program says it defines.
    """
    for tag in tags()[:1]:
        answer(tag, "value", list(public))
    while True:
        kind, tag, request = receive()
        if kind != b"Q":
            continue
        if request[0] == "bye":
            os._exit(0)
        if request[0] == "lookup":
            answer(tag, "value", look_up(request[1]))
        else:
            serve(tag, request)


class Player:
    """Plays at random, the same game for the same seed: what it says is right in form or is not."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._wild = self._random.choice((0.0, 0.005, 0.02, 0.1, 0.5))
        self._known: list[Any] = [mine(0)]
        if self._chance(self._wild):
            self._known += [theirs(0), theirs(1), {"y": "type"}]
        self._sent: list[bytes] = []
        self._tags: list[Any] = []
        self._held: list[tuple[Any, Any]] = []
        self._moves = 0

    def play(self) -> None:
        """Takes the channel over and plays until the end."""
        self._tags += tags()
        if self._tags and not self._chance(0.05):
            self._say(b"A", self._tags[0], ["value", self._names()])
        while self._moves < 400:
            self._turn()

    def _turn(self) -> None:
        kind, tag, request = receive()
        self._moves += 1
        if kind == b"R":
            self._learn(request)
            return
        self._tags.append(tag)
        if request and request[0] == "bye":
            os._exit(self._random.randrange(2))
        self._learn(request)
        for _ in range(self._random.choice((0, 0, 0, 1, 1, 2, 5))):
            self._ask(tag)
        if self._chance(self._wild):
            self._strange(tag)
        if self._chance(self._wild / 5):
            self._held.append((tag, request))
            return
        self._say(b"A", tag, self._answer(request))
        if self._held and self._chance(0.3):
            late, earlier = self._held.pop()
            self._say(b"A", late, self._answer(earlier))

    def _answer(self, request: Any) -> list[Any]:
        if request and request[0] == "lookup" and not self._chance(self._wild):
            return ["value", self._rows(request[1])]
        if self._chance(0.08):
            return self._error()
        if self._chance(0.02):
            return ["stop", self._tree(2)]
        value = self._random.choice(self._known) if self._chance(0.4) else self._tree(3)
        if request and request[0] == "call":
            changes = [] if self._chance(0.8) else [[self._number(), self._tree(2)]]
            alias = self._number() if self._chance(self._wild) else -1
            return ["value", value, changes, alias]
        return ["value", value]

    def _rows(self, names: Any) -> list[Any]:
        found: list[Any] = [[name, mine(self._random.randrange(3))] for name in names]
        if self._chance(self._wild):
            extra = ("abs", "all", "check", "__builtins__", "isinstance", "unittest", "same")
            for _ in range(self._random.randrange(1, 4)):
                name = self._random.choice((*extra, *names))
                parts = [name, self._tree(2), self._tree(1)]
                found.append(parts[: self._random.choice((2, 2, 3))])
        return found

    def _names(self) -> Any:
        return list(NAMES) if not self._chance(self._wild) else [self._tree(1) for _ in range(3)]

    def _error(self) -> list[Any]:
        kinds = (
            "ValueError",
            "AssertionError",
            "SystemExit",
            "StopIteration",
            "SkipTest",
            "Skipped",
        )
        kind = self._random.choice((*kinds, "print", "type", "ExceptionGroup", "NameError"))
        bases = [self._random.choice((*kinds, "Exception", "type", "object"))]
        arguments = self._random.choice((None, [self._tree(2)]))
        attributes = {"d": ["code", self._tree(1), "with_traceback", self._tree(1)]}
        known = [kind, bases, "x", "", arguments, attributes]
        if self._chance(self._wild):
            known[self._random.randrange(len(known))] = self._tree(2)
        return ["error", self._tree(2)] if self._chance(self._wild) else ["error", *known]

    def _ask(self, tag: Any) -> None:
        """A call-back; what came back is known from then on."""
        given = [_bare(known) for known in self._known if isinstance(_bare(known), int)]
        subject = self._random.choice(given) if given else self._random.randrange(3)
        if self._chance(self._wild):
            subject = self._random.choice((*self._known, self._number()))
        operation = self._random.choice(("call", "call", "call", "getattr", "setattr", "next"))
        if self._chance(self._wild):
            operation = "x"
        names = ("x", "total", "__class__", "__dict__", "append", "m", "expected", "")
        name = self._tree(1) if self._chance(self._wild) else self._random.choice(names)
        content: list[Any] = [operation, subject]
        if operation == "call":
            content += [[self._tree(2) for _ in range(self._random.randrange(4))], NO_ARGUMENTS]
            if subject == {"y": "type"} or self._chance(self._wild):
                content[1:3] = [{"y": "type"}, self._class()]
        elif operation in {"getattr", "setattr"}:
            content += [name, self._tree(1)][: 1 + (operation == "setattr")]
        if self._chance(self._wild):
            content = content[: self._random.randrange(len(content))]
        self._say(b"K", tag, content)
        for _ in range(20):
            kind, inner, tree = receive()
            self._learn(tree)
            if kind != b"Q":
                return
            self._tags.append(inner)
            self._say(b"A", inner, self._answer(tree))

    def _class(self) -> list[Any]:
        bases = [{"y": self._random.choice(("object", "int", "str", "list", "type", "Exception"))}]
        names = (
            "__eq__",
            "__ne__",
            "__bool__",
            "__sub__",
            "__lt__",
            "__hash__",
            "__len__",
            "__iter__",
        )
        members: list[Any] = []
        for name in self._random.sample(names, self._random.randrange(1, len(names))):
            members += [name, {"y": self._random.choice(("type", "bool", "str", "slice", "int"))}]
        return ["E", {"t": bases}, {"d": members}]

    def _strange(self, tag: Any) -> None:
        """Something out of turn."""
        pick = self._random.randrange(10)
        other = self._random.choice(self._tags)
        if pick == 0 and self._sent:
            write(self._random.choice(self._sent))
        elif pick == 1:
            self._say(b"A", other, ["value", self._tree(2), [], -1])
        elif pick == 2:
            self._say(self._random.choice((b"Q", b"D", b"B", b"H", b"R", b"Z")), tag, self._tree(2))
        elif pick == 3:
            self._say(b"A", tag, self._random.randbytes(self._random.randrange(40)))
        elif pick == 4:
            write(struct.pack("!I", self._random.choice((0, 1, 9, 2**26, 2**32 - 1))) + b"A")
        elif pick == 5:
            self._say(b"A", tag, b"[" * self._random.choice((10, 99, 101, 5_000)))
        elif pick == 6:
            self._say(b"K", other, ["call", self._tree(1), [], NO_ARGUMENTS])
        elif pick == 7 and self._chance(0.2):
            os._exit(self._random.choice((0, 1, 137)))
        elif pick == 8 and self._sent:
            write(self._random.choice(self._sent)[: self._random.randrange(1, 20)])
        else:
            self._say(b"A", tag, ["value", self._tree(4), [], -1])

    def _say(self, kind: bytes, tag: Any, content: Any) -> None:
        data = frame(kind, tag, content)
        self._sent.append(data)
        write(data)

    def _learn(self, tree: Any) -> None:
        """Keeps the references in what came."""
        level = [tree]
        while level:
            item = level.pop()
            if isinstance(item, dict):
                if "h" in item and item not in self._known:
                    self._known += [item, item]
                level += item.values()
            elif isinstance(item, list):
                level += item

    def _number(self) -> Any:
        wild = (-1, -(2**63), 2**63 - 1, 10**30, True, 1.5, None, "0", {"i": "f" * 5_000})
        return self._random.choice(wild) if self._chance(self._wild) else self._random.randrange(4)

    def _tree(self, depth: int) -> Any:
        """A value as JSON, mostly well-formed."""
        plain = (None, True, False, 0, 1, -1, 3, 2**63 - 1, 0.5, 1e308, "", "x", "3", "\x00", "é")
        if depth <= 0 or self._chance(0.4):
            return self._random.choice(plain)
        inner = [self._tree(depth - 1) for _ in range(self._random.randrange(4))]
        flat = inner if len(inner) % 2 == 0 else inner[1:]
        number = self._number()
        traits = self._random.sample(TRAITS, self._random.randrange(len(TRAITS)))
        kind = self._random.choice(
            ("instance", "generator", "exception-class", "coroutine", "class")
        )
        name = self._random.choice(("E", "AssertionError", "int", "type", "SystemExit"))
        whole: list[Any] = [
            inner, {"t": inner}, {"q": inner}, {"r": [0, number, 1]}, {"i": "f" * 17}, {"x": "nan"},
            {"x": "inf"}, {"u": "00d80000"}, {"c": [0.5, 1.5]}, {"D": "1E9999"}, {"D": "-Infinity"},
            {"T": ["date", "2000-01-01"]}, {"b": "ff00"}, {"y": "int"}, {"y": "ValueError"},
            {"i": "f" * 4_000}, {"F": [5, 7]}, {"n": ["int64", [1, 2]]}, {"n": ["object", ["x"]]},
            {"h": ["c", self._random.randrange(5), kind, name, traits]},
            {"p": [["c", self._random.randrange(5), "instance", "L", traits], inner]},
            self._random.choice(self._known),
        ]  # fmt: skip
        spoilt: list[Any] = [
            {"s": inner}, {"f": inner}, {"d": flat}, {"n": ["object", inner]}, {"n": ["U9", inner]},
            {"k": [self._random.choice(("Counter", "defaultdict", "OrderedDict")), "int", flat]},
            {"F": [number, self._number()]}, {"i": "f" * 5_000}, {"x": "1"}, {"D": "sNaN"},
            {"y": self._random.choice(("type", "object", "slice", "SystemExit"))},
            {"h": [self._random.choice("tc"), number, kind, name, traits]},
            {"p": [["t", number, kind, name, traits], inner]}, {"l": ["os", "abort"]},
            {self._random.choice("tsdhFZ"): self._random.choice(plain)},
        ]  # fmt: skip
        return self._random.choice(spoilt if self._chance(self._wild) else whole)

    def _chance(self, part: float) -> bool:
        return self._random.random() < part
