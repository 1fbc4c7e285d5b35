"""A language as data: its tools, how its programs compile and start.

A command is a template: a tuple of arguments in which `{name}` stands for a value. An argument that
is nothing but `{name}` may become several, or none. The names that every language has:

* `{main}`: path of the file that starts the program; `{sources}`: it and the others to compile.
* `{arguments}`: the program's command-line arguments.
* `{product}`: where the compilation puts its product.
* `{heap_mib}`: three quarters of the run's memory, for runtimes that must be told their heap.
* `{warm}`: the language's folder of files made in advance, see `Warm`; `{if_warm}`: the arguments
  of `Warm.arguments` where that folder exists, nothing where it does not.
* `{COMMAND}` for each of its tools, e.g. `{gcc}`, and `{NAME}` for each of its libraries that is
  there: the absolute path.

A language may add names of its own with `plan`. Doubled braces are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from assay.sandbox.domain import MIB, BoxFile, RunLimits

OURS = ".assay"
"""Our own folder in the working directory of a compilation or a run; no program may use it."""

Values = Mapping[str, str | tuple[str, ...]]

COMPILER_LIMITS = RunLimits(
    cpu_s=120.0,
    memory_bytes=1536 * MIB,
    output_bytes=64 * 1024,
    max_output_bytes=16 * MIB,
    disk_bytes=256 * MIB,
    processes=128,
)
"""What a compiler may use. The caller sets only its wall time, compile_wall_s."""

COMMON_LIMITS = RunLimits()
"""What a run may use where neither the caller nor the language says."""

MANAGED = RunLimits(memory_bytes=1024 * MIB)
"""For runtimes with a garbage collector and a compiler of their own."""

STDIO = ("stdio",)
EVERY_KIND = ("stdio", "call", "assertions")


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that a language needs.

    Attributes:
        command: its name on the PATH.
        package: the Debian package that brings it.
        proxy: the launcher that the command may be a link to (rustup); `sysroot` then finds the
            real
            one.
        sysroot: arguments that make the launcher print the folder above the real one's "bin".
    """

    command: str
    package: str
    proxy: str = ""
    sysroot: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Library:
    """Files that a language's programs use beside its commands.

    Attributes:
        name: in templates.
        places: absolute paths or glob patterns; the first that matches is the library.
        package: the Debian package that brings it.
        needed: the language is not served without it; else it only enters the compilation's key.
    """

    name: str
    places: tuple[str, ...]
    package: str
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Warm:
    """Files that make every compilation faster, made once by our own commands.

    Attributes:
        commands: run one after the other, `{warm}` being the folder.
        files: written into the folder before.
        arguments: `{if_warm}` of the compilation.
    """

    commands: tuple[tuple[str, ...], ...]
    files: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compile:
    """How programs are compiled.

    Attributes:
        argv: the command; exit code 0 and a product, or the program does not compile.
        tree: the product is a tar archive of files for `unpack_to` in the run's folder; else it is
            one
            executable, kept in memory.
        files: files of ours that the compiler reads.
        suffixes: files of these kinds are `{sources}` besides the main one.
        limits: what the compiler may use.
    """

    argv: tuple[str, ...]
    tree: bool = False
    unpack_to: str = ""
    files: tuple[BoxFile, ...] = ()
    suffixes: tuple[str, ...] = ()
    limits: RunLimits = COMPILER_LIMITS


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one program, arranged: the input of `plan`.

    Attributes:
        main: path of the file that starts it.
        text: that file's text.
        files: all files, the main one among them.
        warm: there is a folder of files made in advance.
    """

    main: str
    text: str
    files: tuple[BoxFile, ...]
    warm: bool


def _no_plan(_: Layout) -> Values:
    return {}


@dataclass(frozen=True, slots=True)
class Language:
    """One language.

    Attributes:
        main: name of the main file, from its text.
        tools: needed commands, the most particular first; the others are taken from beside it where
            they are there.
        libraries: files it needs, or makes use of.
        distributions: Python packages of the service's environment that it needs.
        run: the command that starts a program. Empty: the zygote's own interpreter runs it. With a
            compiled executable: that one's own argv.
        starter: a file of ours that the zygote's interpreter runs instead, with the program's path
            as
            its first argument.
        files: files of ours that a run finds.
        version: the command that prints the toolchain's version.
        self_test: a program that reads two whole numbers and prints their sum.
        self_test_stdin: its input; the answer is always 42.
        failing_suite: of a language of suites: one that must fail. Its `self_test` is then one that
            must pass, without input and output.
        warm: what can be made in advance.
        environment: a template, for the compilation and the run.
        read_only: files and folders outside /usr that the toolchain reads: folder and glob pattern.
        limits: a run's defaults.
        source_on_stdin: the program itself is fed on stdin, after the test's stdin.
        plan: more values for the templates.
    """

    name: str
    tools: tuple[Tool, ...]
    main: Callable[[str], str]
    run: tuple[str, ...]
    version: tuple[str, ...]
    self_test: str
    aliases: tuple[str, ...] = ()
    libraries: tuple[Library, ...] = ()
    distributions: tuple[str, ...] = ()
    starter: str = ""
    files: tuple[BoxFile, ...] = ()
    failing_suite: str = ""
    compile: Compile | None = None
    warm: Warm | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    read_only: tuple[tuple[str, str], ...] = ()
    limits: RunLimits = COMMON_LIMITS
    test_kinds: tuple[str, ...] = STDIO
    self_test_stdin: bytes = b"20 22\n"
    source_on_stdin: bool = False
    plan: Callable[[Layout], Values] = _no_plan


def named(path: str) -> Callable[[str], str]:
    """A main file whose name never changes."""
    return lambda _: path


_PLACE = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_+]*)\}(?!\})")


def fill(template: tuple[str, ...], values: Values) -> tuple[str, ...]:
    """Puts values into a command.

    Raises:
        KeyError: the template names an unknown value: a defect of the table.
        TypeError: a value of several arguments stands inside an argument.
    """
    filled: list[str] = []
    for argument in template:
        whole = _PLACE.fullmatch(argument)
        if whole and isinstance(value := values[whole[1]], tuple):
            filled.extend(value)
        else:
            filled.append(fill_text(argument, values))
    return tuple(filled)


def fill_text(template: str, values: Values) -> str:
    """Puts values into one text; see `fill`."""

    def value(match: re.Match[str]) -> str:
        found = values[match[1]]
        if isinstance(found, tuple):
            raise TypeError(f"{match[0]} stands for several arguments, in {template!r}")
        return found

    return _PLACE.sub(value, template)
