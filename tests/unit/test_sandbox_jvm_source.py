"""What starts a program in Scala or Kotlin, and other plans of the languages beyond the first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.sandbox.domain import BoxFile
from assay.sandbox.languages.jvm_source import kotlin_main_class, scala_main_class
from assay.sandbox.languages.language import Layout
from assay.sandbox.languages.plans import (
    csharp_plan,
    kotlin_main,
    kotlin_plan,
    verilog_plan,
)

NOISE = st.lists(
    st.sampled_from([
        "// object No { def main( fun main(\n", "/* object No extends App { */",
        '"object No { fun main("', '"""package no\n}{"""', "'{'", "val x = 1\n", "import a.b.c\n",
    ])
).map(" ".join)  # fmt: skip


@given(NOISE, NOISE)
def test_comments_and_texts_change_nothing(before: str, inside: str) -> None:
    scala = f"{before}\nobject Other {{ {inside} }}\nobject Start {{ {inside} def main(a: Int) }}"
    assert scala_main_class(scala) == "Start"
    kotlin = f"package p\n{before}\nobject Start {{ {inside}\n @JvmStatic fun main(a: Int) {{}} }}"
    assert kotlin_main_class("main.kt", kotlin) == "p.Start"


@given(st.text(st.sampled_from("object main App{}\"/*\n '@."), max_size=200))
def test_any_text_names_a_class(text: str) -> None:
    assert scala_main_class(text)
    assert kotlin_main_class("main.kt", text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "Main"),
        ("object A { def main(a: Array[String]): Unit = {} }", "A"),
        ("object A extends App { }", "A"),
        ("object A extends B with App { }", "A"),
        ("object A extends scala.App { }", "A"),
        ("object A { object B extends App }\nobject C extends App", "C"),
        ("class A { def main(a: Int) = 1 }\nobject B { def main(a: Array[String]) = {} }", "B"),
        ("object A\nclass App\nclass D extends App\nobject E { def main(a: Any) = () }", "E"),
        ("package x.y\npackage z\nobject A extends App", "x.y.z.A"),
        ("object A {}\nobject B {}", "A"),
        ("case class P(x: Int)\ncase object Q\nobject R extends App", "R"),
    ],
)
def test_scala_names(text: str, name: str) -> None:
    assert scala_main_class(text) == name


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("main.kt", "", "MainKt"),
        ("main.kt", "fun main() {}", "MainKt"),
        ("app/start.kt", "package a.b\nfun main(a: Array<String>) {}", "a.b.StartKt"),
        ("to-do.kt", "fun main() {}", "To_doKt"),
        ("main.kt", '@file:JvmName("Begin")\nfun main() {}', "Begin"),
        ("main.kt", "object A { @JvmStatic fun main(a: Array<String>) {} }", "A"),
        ("main.kt", "class A { fun main() {} }\nfun main() {}", "MainKt"),
        ("main.kt", "class A { companion object { @JvmStatic fun main(a: A) {} } }", "A"),
        ("main.kts", "fun main() {}\nmain()", "Main"),
    ],
)
def test_kotlin_names(path: str, text: str, name: str) -> None:
    assert kotlin_main_class(path, text) == name


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fun main() = println(1)", "main.kt"),
        ("suspend fun main(a: Array<String>) {}", "main.kt"),
        ("object A { @JvmStatic fun main(a: Array<String>) {} }", "main.kt"),
        ("println(1)", "main.kts"),
        ("fun main() {}\nmain()\n", "main.kts"),
        ("", "main.kts"),
    ],
)
def test_a_kotlin_program_without_a_main_is_a_script(text: str, path: str) -> None:
    assert kotlin_main(text) == path


def layout(main: str, text: str, *others: str) -> Layout:
    files = tuple(BoxFile(path, text.encode()) for path in (main, *others))
    return Layout(main, text, files, warm=False)


def test_a_kotlin_script_is_compiled_with_what_starts_it() -> None:
    program = kotlin_plan(layout("main.kt", "fun main() {}", "lib/a.kt", "data.txt"))
    assert program == {
        "way": "direct", "units": ("./main.kt", "./lib/a.kt"), "start": "MainKt",
    }  # fmt: skip
    script = kotlin_plan(layout("main.kts", "println()", "a.kt"))
    assert script["way"] == "script"
    assert script["units"] == ("./main.kts", "./a.kt", ".assay/start.kt")
    assert script["start"] == ("-Dassay.script=Main", "AssayStart")


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("class P {}", True),
        ("using System;\nclass P {}", False),
        ("#define X\nusing System.Linq;\nclass P {}", False),
        ("using static System.Console;\nclass P {}", False),
        ("using Other;\nclass P {}", True),
        ("using Systems;\nclass P {}", True),
        ("#define X\nclass P {}", False),
    ],
)
def test_csharp_gets_usings_where_it_has_none_of_systems(text: str, *, added: bool) -> None:
    plan = csharp_plan(layout("main.cs", text, "b/c.cs", "d.txt"))
    assert ("using System;" in plan["usings"]) is added
    assert plan["others"] == ("./b/c.cs",)


@pytest.mark.parametrize(
    ("text", "top"),
    [
        ("module tb;", True),
        ("  module tb();", True),
        ("module tb2;", False),
        ("// module tb", False),
        ("", False),
    ],
)
def test_verilog_starts_at_a_module_tb(text: str, *, top: bool) -> None:
    assert bool(verilog_plan(layout("main.sv", text))["top"]) is top


@pytest.mark.parametrize("text", ['"' * 99_999, "/*" * 99_999, "object A " * 99_999, "{" * 99_999])
def test_long_texts_are_read_in_time(text: str) -> None:
    assert scala_main_class(text)
    assert kotlin_main_class("main.kt", text)
