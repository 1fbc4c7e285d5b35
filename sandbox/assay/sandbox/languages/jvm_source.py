"""Reads enough Scala and Kotlin to find the class that starts a program.

The text is cut into words without comments, strings and characters; declarations are those outside
all braces. A misread program does not start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath

_TOKEN = re.compile(
    r"""
    (?P<skip> //[^\n]* | /\*.*?(?:\*/|\Z) | \"\"\".*?(?:\"\"\"|\Z) | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])' )
  | (?P<word> @?[A-Za-z_$][\w$]*(?:\s*\.\s*[A-Za-z_$][\w$]*)* | [{}] )
    """,  # noqa: E501
    re.VERBOSE | re.DOTALL,
)
_JVM_NAME = re.compile(r'@file\s*:\s*JvmName\s*\(\s*"([\w$]+)"')
_SCRIPT_STEM = re.compile(r"[^\w$]")


def scala_main_class(text: str) -> str:
    """The full name of the object to start: one with a method `main`, or that is an `App`."""
    package, first, found, current = "", "", "", ""
    for depth, word, after in _declared(text):
        if depth == 0 and word == "package" and not found:
            package = ".".join(filter(None, (package, re.sub(r"\s", "", after))))
        elif depth == 0 and word in {"class", "trait"}:
            current = ""
        elif depth == 0 and word == "object":
            current = after
            first = first or after
        elif not found and current:
            app = depth == 0 and word in {"extends", "with"} and after.rpartition(".")[2] == "App"
            if app or (depth == 1 and (word, after) == ("def", "main")):
                found = current
    return ".".join(filter(None, (package, found or first or "Main")))


def kotlin_main_class(path: str, text: str) -> str:
    """The full name of the class that starts a file, a program's (.kt) or a script's (.kts)."""
    package, holder, found, outside = "", "", "", False
    for depth, word, after in _declared(text):
        if depth == 0 and word == "package":
            package = re.sub(r"\s", "", after)
        elif depth == 0 and word in {"object", "class"}:
            holder = after
        elif (word, after) == ("fun", "main"):
            outside = outside or depth == 0
            found = found or (holder if depth else "")
    stem = PurePosixPath(path).stem
    stem = _SCRIPT_STEM.sub("_", stem[:1].upper() + stem[1:])
    renamed = _JVM_NAME.search(text)
    if path.endswith(".kts"):
        name = stem
    elif found and not outside:
        name = found
    else:
        name = renamed[1] if renamed else f"{stem}Kt"
    return f"{package}.{name}" if package else name


def _declared(text: str) -> Iterator[tuple[int, str, str]]:
    """Each word with the number of braces around it and the word behind it."""
    words = [match["word"] for match in _TOKEN.finditer(text) if match["word"]]
    depth = 0
    for word, after in pairwise([*words, ""]):
        if word == "{":
            depth += 1
        elif word == "}":
            depth = max(0, depth - 1)
        else:
            yield depth, word, after
