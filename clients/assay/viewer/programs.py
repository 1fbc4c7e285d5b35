"""Tests and programs made readable: no base64, words marked by their kind. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import json_format

from assay.api.execution.v1 import execution_pb2
from assay.clients.rows.tests import read_tests
from assay.kit.plain import from_plain

MOST_TESTS = 500
MOST_CODE = 50_000
_MOST_SHOWN = 100_000
_FENCE = re.compile(r"^(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+#.-]{0,20})[^\n]*\n", re.MULTILINE)
_ALIASES = {"": "python", "py": "python", "python3": "python", "c++": "cpp", "sh": "bash"}
_COARSE = (
    ("Comment", "comment"), ("Keyword", "keyword"), ("Literal.String", "string"),
    ("Literal.Number", "number"), ("Name.Builtin", "builtin"), ("Name.Function", "function"),
    ("Name.Class", "function"), ("Name.Decorator", "function"), ("Operator.Word", "keyword"),
    ("Operator", "operator"),
)  # fmt: skip


def readable_tests(value: Any) -> list[dict[str, Any]]:
    """Tests of a row or of a suite, in any shape of `assay.clients.rows.tests`.

    Where they are none, one entry with `kind` "unreadable" says why.
    """
    try:
        suite = read_tests(value)
        return [_test(number, test) for number, test in enumerate(suite.tests[:MOST_TESTS])]
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        return [{"name": "", "kind": "unreadable", "why": f"{type(error).__name__}: {error}"[:500]}]


def _test(number: int, test: execution_pb2.TestCase) -> dict[str, Any]:
    kind = test.WhichOneof("kind") or "none"
    told: dict[str, Any] = {"name": test.name or f"test {number + 1}", "kind": kind}
    if kind == "stdio":
        told |= {
            "stdin": as_text(test.stdio.stdin),
            "expected": as_text(test.stdio.expected_stdout),
            "arguments": list(test.stdio.arguments),
        }
        told |= _comparison(test.stdio)
    elif kind == "call":
        arguments = [shown(one) for one in test.call.arguments]
        arguments += [
            f"{name}={shown(one)}" for name, one in sorted(test.call.keyword_arguments.items())
        ]
        told |= {
            "code": f"{test.call.function}({', '.join(arguments)})",
            "expected": shown(test.call.expected),
            "pieces": pieces(f"{test.call.function}({', '.join(arguments)})", "python"),
        }
        told |= _comparison(test.call)
    elif kind == "assertions":
        code = test.assertions.code[:_MOST_SHOWN]
        told |= {
            "code": code,
            "entry_point": test.assertions.entry_point,
            "pieces": pieces(code, "python"),
        }
    return told


def _comparison(message: Any) -> dict[str, Any]:
    if not message.HasField("comparison"):
        return {}
    told = json_format.MessageToDict(message.comparison)
    return {"comparison": told} if told else {}


def as_text(data: bytes) -> str:
    """Bytes as they read; what is no UTF-8 as escapes."""
    return data[:_MOST_SHOWN].decode("utf-8", "backslashreplace")


def shown(value: execution_pb2.PlainValue) -> str:
    """A plain value as Python writes it."""
    try:
        return repr(from_plain(value))[:_MOST_SHOWN]
    except (ValueError, TypeError, RecursionError):
        return str(value)[:_MOST_SHOWN]


def programs_in(text: str) -> Iterator[dict[str, Any]]:
    """The fenced programs of a text: `start` and `end` in code points, `language`, `pieces`."""
    place = 0
    while len(text) > place:
        fence = _FENCE.search(text, place)
        if fence is None:
            return
        begin = fence.end()
        close = re.compile(rf"^{re.escape(fence[1])}[ \t]*$", re.MULTILINE).search(text, begin)
        end = len(text) if close is None else close.start()
        language = fence[2].lower()
        if language not in ("output", "text"):
            yield program(text[begin:end], language, begin)
        place = end if close is None else close.end()


def program(code: str, language: str = "", start: int = 0) -> dict[str, Any]:
    """One program of a text that begins at `start`."""
    language = _ALIASES.get(language, language)
    told = {"start": start, "end": start + len(code), "language": language}
    return {**told, "pieces": pieces(code, language)}


def pieces(code: str, language: str) -> list[list[str]]:
    """[kind, text] of each piece; joined, the texts are the code. One piece where no lexer is."""
    if len(code) > MOST_CODE:
        return [["", code]]
    try:
        from pygments.lexers import get_lexer_by_name  # noqa: PLC0415  # an extra
        from pygments.util import ClassNotFound  # noqa: PLC0415
    except ImportError:
        return [["", code]]
    try:
        lexer = get_lexer_by_name(language or "python", stripnl=False, ensurenl=False)
    except ClassNotFound:
        return [["", code]]
    found: list[list[str]] = []
    for _, token, part in lexer.get_tokens_unprocessed(code):
        kind = _coarse(str(token))
        if found and found[-1][0] == kind:
            found[-1][1] += part
        elif part:
            found.append([kind, part])
    return found if "".join(part for _, part in found) == code else [["", code]]


def _coarse(token: str) -> str:
    name = token.removeprefix("Token.")
    return next((short for long, short in _COARSE if name.startswith(long)), "")


def reference_of(kind: str, value: Any) -> dict[str, Any]:
    """A reference to show: its kind, its text, or its parts where it is several."""
    if isinstance(value, str):
        return {"kind": kind or "text", "text": value, "parts": []}
    if isinstance(value, list):
        texts = [one if isinstance(one, str) else repr(one) for one in value]
        return {"kind": kind or "texts", "text": "", "parts": texts}
    if isinstance(value, Mapping):
        return {"kind": kind or "data", "text": "", "parts": [], "data": value}
    return {"kind": kind or "none", "text": "" if value is None else repr(value), "parts": []}
