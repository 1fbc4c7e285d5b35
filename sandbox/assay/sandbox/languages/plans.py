"""The thinking that a table cannot hold: values for a language's commands out of a program's files.

All of it is pure. A plan never judges a program; where it reads a text wrongly, the program only
compiles slower, or under the name that the caller should have given.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from assay.sandbox.languages.java_source import read_java
from assay.sandbox.languages.language import OURS, Layout, Values

# C and C++ ----------------------------------------------------------------------------------------

_STANDARD = re.compile(r"^\s*#\s*include\s*<bits/stdc\+\+\.h>", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ONLY_INCLUDES = re.compile(r"(?:\s*#\s*include\s*<[^>\n]*>[^\S\n]*\n)*\s*")


def cpp_plan(layout: Layout) -> Values:
    """`{early}`: read <bits/stdc++.h> first, where the program reads it and nothing can tell.

    The compiler takes the precompiled header only as the very first thing. Nothing can tell when
    before it there are other includes and comments only: no macro that a header could look at.
    """
    found = _STANDARD.search(layout.text)
    if found is None or not layout.warm:
        return {"early": ()}
    before = _COMMENT.sub(" ", layout.text[: found.start()]) + "\n"
    early = _ONLY_INCLUDES.fullmatch(before) is not None
    return {"early": ("-include", "bits/stdc++.h") if early else ()}


# Go -----------------------------------------------------------------------------------------------

GO_WARM = (
    'go=$1; export GOCACHE="$2/cache" HOME="$2"\n'
    "testify=github.com/stretchr/testify\n"
    'if test -d "$GOPATH/src/$testify"; then "$go" build "$testify/..."; fi\n'
    'exec "$go" list -export -f "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}" std'
    ' >"$2/importcfg"\n'
)
"""Compiles the standard library, where it did not come compiled, and lists what lies where.

Also what most suites of tests import, where it is installed; without it they compile slower.
"""

_GO_ARGUMENTS = "go=$1 warm=$2 product=$3; shift 3\n"
_GO_CACHE = (
    'export GOCACHE="$PWD/.assay/cache"\n'
    'if test -d "$warm/cache"; then cp -rs "$warm/cache" "$GOCACHE"; fi\n'
)
# The compiler and the linker alone, on the standard library as `Warm` found it: a fifth of the time
# of `go build`, which asks first whether the library is up to date.
_GO_DIRECT = (
    _GO_ARGUMENTS
    + '"$go" tool compile -p main -complete -pack -importcfg "$warm/importcfg"'
    + ' -o .assay/main.a "$@" &&\n'
    + 'exec "$go" tool link -s -w -importcfg "$warm/importcfg" -o "$product" .assay/main.a\n'
)
_GO_BUILD = _GO_ARGUMENTS + _GO_CACHE + 'exec "$go" build -ldflags="-s -w" -o "$product" "$@"\n'
_GO_TEST = _GO_ARGUMENTS + _GO_CACHE + 'exec "$go" test -c -vet=off -o "$product" "$@"\n'
_GO_NEEDS_BUILD = re.compile(
    r'^//go:embed|^import\s+"C"|^\s*"C"\s*$'
    r'|^(?:import)?\s*(?:[\w.]+\s+)?"[\w-]+(?:\.[\w-]+)+/[^"\n]*"',
    re.MULTILINE,
)


def go_plan(layout: Layout) -> Values:
    """`{script}` and `{units}`: how a program is built, and of which files.

    A main file whose name ends in _test.go is built as `go test` would, so that running it runs its
    tests. A module, a file that embeds others, or one that imports what is not of the standard
    library (its path begins with a host's name) is built by `go build`; everything else directly.
    """
    beside = PurePosixPath(layout.main).parent
    paths = [PurePosixPath(file.path) for file in layout.files]
    here = [path for path in paths if path.suffix == ".go" and path.parent == beside]
    if layout.main.endswith("_test.go"):
        return {"script": _GO_TEST, "units": tuple(f"./{path}" for path in here)}
    units = [f"./{path}" for path in here if not path.name.endswith("_test.go")]
    if any(path.name == "go.mod" for path in paths):
        return {"script": _GO_BUILD, "units": (f"./{beside}",)}
    texts = (file.content.decode(errors="replace") for file in layout.files)
    if not layout.warm or any(_GO_NEEDS_BUILD.search(text) for text in texts):
        return {"script": _GO_BUILD, "units": tuple(units)}
    return {"script": _GO_DIRECT, "units": tuple(units)}


# Java ---------------------------------------------------------------------------------------------


def java_main(text: str) -> str:
    """The file's name: javac wants that of the public class."""
    return read_java(text).file_name


def java_plan(layout: Layout) -> Values:
    """`{class}`: the class to start; `{jars}`: the program's own .jar files, for the class path."""
    jars = (file.path for file in layout.files if file.path.endswith(".jar"))
    return {
        "class": read_java(layout.text).main_class,
        "jars": "".join(f":{path}" for path in jars),
    }


def javac(class_path: str) -> tuple[str, ...]:
    """The command that compiles a program in Java; what it makes is packed as a tree."""
    jvm = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-J-XX:-UsePerfData", "-J-Xmx768m")
    return (
        *("/bin/sh", "-c", TREE_SCRIPT, "sh", "{product}"),
        *("{javac}", *jvm, "-proc:none", "-encoding", "UTF-8", "-nowarn"),
        *("-cp", class_path, "-d", f"{OURS}/out", "{sources}"),
    )


# JavaScript and TypeScript ------------------------------------------------------------------------

_MODULE = re.compile(r"""^(?:import\s+[\w{*"']|export\s+[\w{*])""", re.MULTILINE)
_COMMON = re.compile(r"\brequire\s*\(|\bmodule\.exports\b")


def javascript_main(text: str) -> str:
    """main.mjs for a program that imports and does not require, else main.js: Node goes by it."""
    return "main.mjs" if _MODULE.search(text) and not _COMMON.search(text) else "main.js"


def typescript_plan(layout: Layout) -> Values:
    """`{output}`: what the main file is called after compilation."""
    return {"output": str(PurePosixPath(layout.main).with_suffix(".js"))}


# Trees of files -----------------------------------------------------------------------------------

TREE_SCRIPT = (
    f'product=$1; shift; mkdir -p {OURS}/out\n"$@" && exec tar -cf "$product" -C {OURS}/out .\n'
)
"""Runs a compiler that fills a folder, and packs that: a box brings single files back."""
