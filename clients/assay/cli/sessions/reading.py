"""Text as cells and commands: of a script, and of a prompt. Pure, but for asking bash."""

from __future__ import annotations

import codeop
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator

_MARK = re.compile(r"# ?%%")
_COMMAND = re.compile(r":[a-z]")
_UNFINISHED = ("unexpected end of file", "unexpected EOF", "here-document")


def parts_of(script: str) -> Iterator[str]:
    """The cells and commands of a script, in order; a command begins with ":".

    A line that begins with ":" and a letter is a command, a line that begins with "# %%" ends a
    cell; all else is one cell.
    """
    lines: list[str] = []
    for line in script.splitlines():
        if _COMMAND.match(line) or _MARK.match(line):
            yield from _cell(lines)
            lines = []
            if _COMMAND.match(line):
                yield line.strip()
        else:
            lines.append(line)
    yield from _cell(lines)


def _cell(lines: list[str]) -> Iterator[str]:
    if any(line.strip() for line in lines):
        yield "\n".join(lines)


def is_command(text: str) -> bool:
    """Whether a line is one of ours, and no cell."""
    return _COMMAND.match(text) is not None


def is_whole(language: str, text: str) -> bool:
    """Whether a cell is complete, as the language's own prompt takes it."""
    return _whole_bash(text) if language == "bash" else _whole_python(text)


def _whole_python(text: str) -> bool:
    try:
        return codeop.compile_command(text, "<cell>", "single") is not None
    except (SyntaxError, ValueError, OverflowError):
        return True  # the session says what is wrong with it


def _whole_bash(text: str) -> bool:
    if text.endswith("\\"):
        return False
    bash = shutil.which("bash")
    if bash is None:
        return True
    checked = subprocess.run(  # noqa: S603  # it parses and runs nothing
        [bash, "-n"], input=text.encode(), capture_output=True, check=False, env={"LC_ALL": "C"}
    )
    said = checked.stderr.decode(errors="replace")
    return not any(sign in said for sign in _UNFINISHED)


def read_cell(language: str, ask: Callable[[str], str]) -> str:
    """One cell or command, line by line.

    Args:
        language: whose prompts are shown.
        ask: shows a prompt and returns a line; EOFError at the end of all.
    """
    first, more = ("$ ", "> ") if language == "bash" else (">>> ", "... ")
    text = ask(first)
    if is_command(text):
        return text
    while text.strip() and not is_whole(language, text):
        text = f"{text}\n{ask(more)}"
    return text
