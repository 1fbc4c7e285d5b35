"""Values for a language's commands that depend on a program's files.

Pure. A plan never judges a program; where it misreads a text, the program only compiles slower, or
under the name that the caller should have given.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from assay.sandbox.languages.java_source import read_java
from assay.sandbox.languages.jvm_source import kotlin_main_class, scala_main_class
from assay.sandbox.languages.language import OURS, Layout, Values

# C and C++ ----------------------------------------------------------------------------------------

_STANDARD = re.compile(r"^\s*#\s*include\s*<bits/stdc\+\+\.h>", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ONLY_INCLUDES = re.compile(r"(?:\s*#\s*include\s*<[^>\n]*>[^\S\n]*\n)*\s*")


def cpp_plan(layout: Layout) -> Values:
    """`{early}`: read <bits/stdc++.h> first, where the program reads it and cannot notice.

    The compiler takes a precompiled header only as the very first thing. Only includes and comments
    may
    stand before it: a macro could be seen by a header.
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
"""Compiles Go's standard library where it came uncompiled, and lists where its parts lie.

The same for what most suites of tests import, where it is installed.
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

    A main file named *_test.go is built as `go test` would, so that running it runs its tests. A
    module, a file that embeds others, or one that imports beyond the standard library (its path
    begins
    with a host's name) is built by `go build`; everything else directly.
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
    """The command that compiles a program in Java; the product is packed as a tree."""
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
    """main.mjs for a program that imports and does not require, else main.js."""
    return "main.mjs" if _MODULE.search(text) and not _COMMON.search(text) else "main.js"


def typescript_plan(layout: Layout) -> Values:
    """`{output}`: the main file's name after compilation."""
    return {"output": str(PurePosixPath(layout.main).with_suffix(".js"))}


# Trees of files -----------------------------------------------------------------------------------

TREE_SCRIPT = (
    f'product=$1; shift; mkdir -p {OURS}/out\n"$@" && exec tar -cf "$product" -C {OURS}/out .\n'
)
"""Runs a compiler that fills a folder, and packs that: a box brings single files back."""

RACKET_SCRIPT = (
    "product=$1 racket=$2 main=$3\n"
    '"$racket" -l racket/base -l compiler/cm'
    " -e '(managed-compile-zo (vector-ref (current-command-line-arguments) 0))' \"$main\" &&\n"
    "find . -path ./.assay -prune -o -type f -path '*/compiled/*' -print0"
    ' | tar -cf "$product" --null -T -\n'
)
"""Compiles a Racket module and its requires, and packs the result."""

# C# -----------------------------------------------------------------------------------------------

_USES_SYSTEM = re.compile(r"\busing\s+(?:static\s+)?System\b")
_FIRST_OF_ALL = re.compile(r"^\s*#\s*(?:define|undef)\b", re.MULTILINE)  # nothing may precede it
_DEFAULT_USINGS = "".join(
    f"using {name};"
    for name in (
        "System", "System.IO", "System.Linq", "System.Collections.Generic", "System.Threading",
        "System.Threading.Tasks",
    )
)  # fmt: skip

CSHARP_SCRIPT = (
    f"product=$1 usings=$2 main=$3; shift 3; mkdir -p {OURS}/out\n"
    '{ printf \'%s\\n#line 1 "%s"\\n\' "$usings" "${main#./}"; cat "$main"; }'
    f" >{OURS}/main.cs &&\n"
    f'"$@" {OURS}/main.cs && exec tar -cf "$product" -C {OURS}/out .\n'
)
"""Compiles a C# program behind a line of ours."""


def csharp_plan(layout: Layout) -> Values:
    """`{usings}`: .NET's default ones where the program has none; `{others}`: its other files."""
    others = tuple(
        f"./{file.path}"
        for file in layout.files
        if file.path != layout.main and file.path.endswith(".cs")
    )
    own = _USES_SYSTEM.search(layout.text) or _FIRST_OF_ALL.search(layout.text)
    return {"usings": "//" if own else _DEFAULT_USINGS, "others": others}


# Scala and Kotlin ---------------------------------------------------------------------------------

_COMPILER_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx768m -Xss16m -Xlog:disable"
)
_ARCHIVE = "case $1 in -XX:*) archive=$1; shift;; *) archive=-Xlog:disable;; esac\n"
"""The JVM takes one option before the compiler's own: the archive of classes."""

_SCALAC = (
    "lib=${1%/bin/*}/lib java=$2; shift 2\n"
    + _ARCHIVE
    + f'exec "$java" "$archive" {_COMPILER_JVM} -cp "'
    + ":".join(
        f"$lib/scala-{name}.jar"
        for name in ("library", "compiler", "reflect", "xml", "parser-combinators")
    )
    + '" scala.tools.nsc.Main -usejavacp "$@"\n'
)
SCALA_RUN = (
    'lib=${1%/bin/*}/lib java=$2; shift 2\nexec "$java"'
    f' -cp "{OURS}/classes:.:$lib/scala-library.jar:$lib/scala-reflect.jar" "$@"\n'
)
SCALA_SAMPLE = """\
import scala.collection.mutable
case class Point(x: Int, y: Int)
object Sample {
  def sorted(points: List[Point]): Seq[String] =
    points.sortBy(_.x).zipWithIndex.collect { case (Point(x, _), n) if n > 0 => s"$x at $n" }
  def main(arguments: Array[String]): Unit = {
    val counts = mutable.Map[String, Int]().withDefaultValue(0)
    for (word <- arguments; letter <- word) counts(letter.toString) += 1
    assert(counts.values.forall(_ >= 0))
    println(sorted(List(Point(1, 2))).mkString(",") + math.max(1, 2))
  }
}
"""
"""A program that uses the compiler's classes which the archive is to hold."""


def scalac(*options: str) -> tuple[str, ...]:
    """The command of Scala's compiler, without its shell script."""
    return ("/bin/sh", "-c", _SCALAC, "sh", "{scalac}", "{java}", *options)


def scala_plan(layout: Layout) -> Values:
    """`{class}`: the object to start."""
    return {"class": scala_main_class(layout.text)}


_KOTLIN_COMPILER = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"
KOTLINC = (
    "home=${1%/bin/*} java=$2 way=$3; lib=$home/lib; shift 3\n"
    + _ARCHIVE
    + "if test $way = script; then\n"
    + 'set -- "$lib/kotlin-preloader.jar" org.jetbrains.kotlin.preloading.Preloader'
    + f' -cp "$lib/kotlin-compiler.jar" {_KOTLIN_COMPILER} "$@"\nelse\nset -- "'
    + ":".join(
        f"$lib/{name}.jar"
        for name in (
            "kotlin-compiler", "kotlin-stdlib", "kotlin-reflect", "kotlin-script-runtime",
            "trove4j", "annotations-13.0", "kotlinx-coroutines-core-jvm",
        )
    )
    + f'" {_KOTLIN_COMPILER} "$@"\nfi\n'
    + f'exec "$java" "$archive" {_COMPILER_JVM} -cp "$@"'
    + ' -kotlin-home "$home" -no-reflect -nowarn -jvm-target 1.8\n'
)  # fmt: skip
KOTLIN_RUN = (
    "lib=${1%/bin/*}/lib java=$2; shift 2\n"
    f'exec "$java" -cp "{OURS}/classes:.:'
    + ":".join(
        f"$lib/kotlin-{name}.jar"
        for name in ("stdlib", "stdlib-jdk7", "stdlib-jdk8", "reflect", "script-runtime")
    )
    + '" "$@"\n'
)
KOTLIN_SAMPLE = """\
data class Point(val x: Int, val y: Int)
fun sorted(points: List<Point>) = points.sortedBy { it.x }.mapIndexed { n, p -> "${p.y} at $n" }
fun main(arguments: Array<String>) {
    val counts = mutableMapOf<Char, Int>()
    for (word in arguments) for (letter in word) counts[letter] = (counts[letter] ?: 0) + 1
    check(counts.values.all { it > 0 })
    println(sorted(listOf(Point(1, 2))).joinToString() + maxOf(1, 2) + readLine()?.trim().orEmpty())
}
"""
"""As `SCALA_SAMPLE`."""


_KOTLIN_PROGRAM = re.compile(r"^[^\n]*\bfun\s+main\s*\(", re.MULTILINE)
_KOTLIN_SCRIPT = re.compile(r"^main\s*\(", re.MULTILINE)


def kotlin_main(text: str) -> str:
    """main.kt for a program; main.kts for a script, without `main` or calling it itself."""
    program = _KOTLIN_PROGRAM.search(text) and not _KOTLIN_SCRIPT.search(text)
    return "main.kt" if program else "main.kts"


def kotlin_plan(layout: Layout) -> Values:
    """`{way}` and `{units}` of a program or a script, and `{start}`: what starts it."""
    name = kotlin_main_class(layout.main, layout.text)
    paths = [file.path for file in layout.files if file.path != layout.main]
    units = tuple(f"./{path}" for path in (layout.main, *paths) if path.endswith((".kt", ".kts")))
    if not layout.main.endswith(".kts"):
        return {"way": "direct", "units": units, "start": name}
    start = (f"-Dassay.script={name}", "AssayStart")
    return {"way": "script", "units": (*units, f"{OURS}/start.kt"), "start": start}


# Verilog ------------------------------------------------------------------------------------------

_TEST_BENCH = re.compile(r"^\s*module\s+tb\b", re.MULTILINE)


def verilog_plan(layout: Layout) -> Values:
    """`{top}`: the module to elaborate, where it is the usual test bench; else every free one."""
    return {"top": ("-s", "tb") if _TEST_BENCH.search(layout.text) else ()}
