"""Reads enough Java to name a program's file and to find the class that starts it.

javac wants a public class in a file of its name, and `java` wants a class with a main method. The
text is cut into tokens without comments, strings and characters; declarations are those outside all
braces.

Not covered: unicode escapes in names, and the rest of the grammar. A misread program fails to
compile or to start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<skip> //[^\n]* | /\*.*?(?:\*/|\Z) | \"\"\".*?(?:(?<!\\)\"\"\"|\Z) | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'? )
  | (?P<word> @\s*interface\b | [A-Za-z_$][\w$]*(?:\s*\.\s*[A-Za-z_$][\w$]*)* | [{}()@;] )
    """,  # noqa: E501
    re.VERBOSE | re.DOTALL,
)
_MAX_NAME_BYTES = 250
_KINDS = frozenset({"class", "interface", "enum", "record"})


@dataclass(frozen=True, slots=True)
class JavaClass:
    """A class that is declared outside all others."""

    name: str
    public: bool
    starts: bool
    """It declares a method `void main`."""


@dataclass(frozen=True, slots=True)
class JavaSource:
    """What a file declares."""

    package: str
    classes: tuple[JavaClass, ...]

    @property
    def file_name(self) -> str:
        """The name that javac wants the file to have; Main.java where no file can have it."""
        public = next((found.name for found in self.classes if found.public), "Main")
        return f"{public}.java" if len(public.encode()) <= _MAX_NAME_BYTES else "Main.java"

    @property
    def main_class(self) -> str:
        """The full name of the class to start."""
        order = sorted(self.classes, key=lambda found: (not found.starts, not found.public))
        name = order[0].name if order else "Main"
        return f"{self.package}.{name}" if self.package else name


def read_java(text: str) -> JavaSource:
    """Reads a file's package and outermost classes."""
    tokens = [match["word"] for match in _TOKEN.finditer(text) if match["word"]]
    package, classes, depth = "", list[JavaClass](), 0
    public = False
    for index, word in enumerate(tokens):
        after = tokens[index + 1] if index + 1 < len(tokens) else ""
        if word == "{":
            depth += 1
        elif word == "}":
            depth = max(0, depth - 1)
        elif depth == 0 and word == "package":
            package = re.sub(r"\s", "", after)
        elif depth == 0 and word == ";":
            public = False
        elif depth == 0 and word == "public":
            public = True
        elif depth == 0 and word in _KINDS and after.isidentifier():
            classes.append(JavaClass(after, public, starts=False))
            public = False
        elif depth == 1 and classes and (word, after) == ("void", "main"):
            classes[-1] = JavaClass(classes[-1].name, classes[-1].public, starts=True)
    return JavaSource(package, tuple(classes))
