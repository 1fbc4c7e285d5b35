"""Lays out a program's files as its language wants them, and refuses malformed ones.

Malformed is what nobody could run, e.g. a path that leaves the folder: a fault. An empty or
senseless program runs, and fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from assay.sandbox.domain import BoxFile, SandboxFault, SubmittedProgram
from assay.sandbox.languages.language import OURS, Language, Layout

PATH_BYTES = 1024
PART_BYTES = 255
FILES = 4096


def arrange(program: SubmittedProgram, language: Language, *, warm: bool) -> Layout:
    """The program's files, its source among them under the name that the language gives it.

    Raises:
        SandboxFault: INVALID_PROGRAM, with what is wrong.
    """
    _check_environment(program.environment)
    check_arguments(program.arguments)
    files = {file.path: file for file in program.files}
    if len(files) < len(program.files):
        raise invalid("two of its files have the same path")
    if len(files) > FILES:
        raise invalid(f"it has more than {FILES} files")
    main = language.main(program.source)
    if program.entry_path and program.entry_path != main:
        if program.entry_path not in files:
            raise invalid(f"its entry path {program.entry_path[:100]!r} is none of its files")
    elif not program.source and files and main not in files:
        raise invalid(f"it has neither a source nor an entry path, nor a file {main!r}")
    if program.source or not (program.entry_path or main in files):
        if main in files:
            raise invalid(f"its source and a file of its own are both called {main!r}")
        files[main] = BoxFile(main, _encoded(program.source))
    _check_paths(files)
    entry = program.entry_path or main
    text = files[entry].content.decode(errors="replace")
    return Layout(main=entry, text=text, files=tuple(files.values()), warm=warm)


def sources(layout: Layout, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """The main file, and the other files of these suffixes; no name can pass for an option."""
    others = (file.path for file in layout.files if file.path != layout.main)
    picked = [layout.main, *(path for path in others if PurePosixPath(path).suffix in suffixes)]
    return tuple(f"./{path}" for path in picked)


def check_arguments(arguments: Iterable[str]) -> None:
    """Refuses arguments that no program can be given.

    Raises:
        SandboxFault: INVALID_PROGRAM.
    """
    for argument in arguments:
        if b"\0" in _encoded(argument):
            raise invalid("one of its arguments holds a NUL")


def invalid(what: str) -> SandboxFault:
    """The fault for a program that cannot be run as it was sent."""
    return SandboxFault("INVALID_PROGRAM", f"The program cannot be run: {what}.")


def _check_environment(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not name or "=" in name or b"\0" in _encoded(name) + _encoded(value):
            raise invalid(f"{name[:100]!r} cannot be a variable of its environment")


def _check_paths(files: Mapping[str, BoxFile]) -> None:
    folders: set[str] = set()
    for path in files:
        parts = path.split("/")
        long = len(_encoded(path)) > PATH_BYTES or any(
            len(_encoded(part)) > PART_BYTES for part in parts
        )
        if long or "\0" in path or any(part in {"", ".", ".."} for part in parts):
            raise invalid(f"{path[:100]!r} is no path inside its folder")
        if parts[0] == OURS:
            raise invalid(f"the folder {OURS!r} is the sandbox's own")
        folders.update("/".join(parts[:count]) for count in range(1, len(parts)))
    both = folders & files.keys()
    if both:
        raise invalid(f"{min(both)[:100]!r} is a file and a folder")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise invalid("a text of it is not Unicode (it holds a lone surrogate)") from error
