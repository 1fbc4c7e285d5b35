"""The languages beyond the first ten, in a real box: what they read, and where their limits are."""

# ruff: noqa: ISC004 - programs of several lines

from __future__ import annotations

import pytest

import sandbox_languages_samples as samples
import sandbox_languages_support as support
from assay.sandbox.domain import MIB, BoxFile, EndKind, RunLimits, RunRecord, SubmittedProgram
from assay.sandbox.languages import LANGUAGES
from sandbox_languages_support import Bench

bench = support.bench

COMPILE_S = 100.0


def limits(language: str, **changes: float) -> RunLimits:
    wide = LANGUAGES[language].limits.with_(compile_wall_s=COMPILE_S, wall_s=60.0, cpu_s=60.0)
    return wide.with_(**changes)


def run(bench: Bench, language: str, text: str, stdin: bytes = b"", **changes: float) -> RunRecord:
    program = SubmittedProgram(language, text)
    return bench.need(language).execute(program, stdin, limits=limits(language, **changes))


@pytest.mark.parametrize("language", samples.FAILING)
def test_a_failure_of_the_languages_own_is_told_on_stderr(bench: Bench, language: str) -> None:
    text, code = samples.FAILING[language]
    record = run(bench, language, text)
    assert (record.end, record.exit_code) == (EndKind.EXITED, code), record
    assert b"no such luck" in record.stderr.data
    assert record.stdout.data == b""


@pytest.mark.parametrize("language", samples.COUNTING)
def test_a_mebibyte_of_stdin_arrives(bench: Bench, language: str) -> None:
    stdin = (b"0123456789abcde\n" * 65536)[:MIB]
    record = run(bench, language, samples.COUNTING[language], stdin)
    assert (record.stdout.data, record.ok) == (b"%d\n" % MIB, True), record


@pytest.mark.parametrize("language", samples.MIRRORING)
def test_texts_are_utf_8(bench: Bench, language: str) -> None:
    stdin = "Grüße, 世界\n".encode()
    record = run(bench, language, samples.MIRRORING[language], stdin)
    assert (record.stdout.data, record.ok) == (stdin, True), record


@pytest.mark.parametrize("language", samples.ENDLESS)
def test_a_program_that_does_not_end_is_ended(bench: Bench, language: str) -> None:
    record = run(bench.need_jail(), language, samples.ENDLESS[language], cpu_s=1.5)
    assert record.end is EndKind.CPU_TIME_LIMIT, record


@pytest.mark.parametrize("language", samples.SLEEPING)
def test_a_program_that_sleeps_is_ended(bench: Bench, language: str) -> None:
    record = run(bench.need_jail(), language, samples.SLEEPING[language], wall_s=3.0)
    assert record.end is EndKind.WALL_TIME_LIMIT, record


@pytest.mark.parametrize("language", samples.HUNGRY)
def test_a_hungry_program_ends_and_takes_no_more(bench: Bench, language: str) -> None:
    record = run(bench.need_jail(), language, samples.HUNGRY[language], memory_bytes=256 * MIB)
    assert record.end in {EndKind.MEMORY_LIMIT, EndKind.EXITED, EndKind.SIGNALLED}, record
    assert not record.ok
    assert record.peak_memory_bytes <= 300 * MIB


@pytest.mark.parametrize("language", samples.LOUD)
def test_a_loud_program_is_ended(bench: Bench, language: str) -> None:
    text = samples.LOUD[language]
    record = run(bench.need_jail(), language, text, max_output_bytes=2 * MIB, output_bytes=4096)
    assert record.end is EndKind.OUTPUT_LIMIT, record
    assert record.stdout.data == b"x" * 4096


@pytest.mark.parametrize("language", samples.FORKING)
def test_processes_beyond_the_limit_are_refused(bench: Bench, language: str) -> None:
    text = samples.FORKING[language]
    record = run(bench.need_jail(), language, text, processes=64, wall_s=20.0)
    assert not record.ok, record
    calm = bench.execute(SubmittedProgram("bash", "echo calm"))
    assert calm.stdout.data == b"calm\n"


@pytest.mark.parametrize("language", samples.CONNECTING)
def test_no_network_is_reached(bench: Bench, language: str) -> None:
    record = run(bench.need_jail(), language, samples.CONNECTING[language], wall_s=30.0)
    assert (record.end, record.stdout.data) == (EndKind.EXITED, b""), record
    assert record.exit_code != 0


# What each of them has of its own -----------------------------------------------------------------


def test_d_runs_its_unit_tests_where_they_are_asked_for(bench: Bench) -> None:
    text = "import std.stdio;\nunittest { assert(1 + 1 == %d); }\nvoid main() { writeln(7); }"
    assert run(bench, "d_ut", text % 2).ok
    record = run(bench, "d_ut", text % 3)
    assert (record.end, record.exit_code) == (EndKind.EXITED, 1), record
    record = run(bench, "d", text % 3)
    assert (record.stdout.data, record.ok) == (b"7\n", True), record


def test_a_failed_assertion_of_csharp_ends_the_program(bench: Bench) -> None:
    text = (
        "using System; using System.Diagnostics; class P { static void Main() {"
        ' Console.Write("a"); Debug.Assert(1 == %d, "no such luck"); Console.Write("b"); } }'
    )
    record = run(bench, "csharp", text % 1)
    assert (record.stdout.data, record.ok) == (b"ab", True), record
    record = run(bench, "csharp", text % 2)
    assert (record.end, record.exit_code, record.stdout.data) == (EndKind.EXITED, 134, b"a")
    assert b"Assertion failed. no such luck" in record.stderr.data
    assert b"main.cs:1" in record.stderr.data


def test_csharp_without_a_using_has_the_usual_ones(bench: Bench) -> None:
    text = "class P { static void Main() { Console.WriteLine(new[] {3, 4}.Sum()); } }"
    record = run(bench, "csharp", text)
    assert (record.stdout.data, record.ok) == (b"7\n", True), record
    record = run(bench, "csharp", "class P {\nstatic void Main() { wrong }\n}")
    assert b"main.cs(2," in record.stderr.data


def test_verilog_starts_at_its_test_bench(bench: Bench) -> None:
    text = (
        'module tb; wire y; unit u(1\'b1, y); initial begin #1 $display("%b", y); end endmodule\n'
        "module unit(input a, output y); assign y = ~a; endmodule\n"
        'module stray; initial $display("stray"); endmodule\n'
    )
    record = run(bench, "verilog", text)
    assert (record.stdout.data, record.ok) == (b"0\n", True), record
    record = run(bench, "verilog", text.replace("module tb", "module other"))
    assert b"stray" in record.stdout.data


def test_a_kotlin_script_fails_with_its_own_exception(bench: Bench) -> None:
    script = BoxFile("main.kts", b'println(args.size)\nthrow Exception("no such luck")')
    program = SubmittedProgram("kotlin", "", (script,), "main.kts", ("a",))
    record = bench.need("kotlin").execute(program)
    assert (record.stdout.data, record.exit_code) == (b"1\n", 1), record
    assert b'Exception in thread "main" java.lang.Exception: no such luck' in record.stderr.data


def test_php_complains_on_stderr(bench: Bench) -> None:
    record = run(bench, "php", "before <?php echo $nothing; ?> behind")
    assert (record.stdout.data, record.ok) == (b"before  behind", True), record
    assert b"Undefined variable" in record.stderr.data


def test_a_failed_check_of_rackunit_is_told_on_stderr_and_ends_with_0(bench: Bench) -> None:
    record = run(bench, "racket", "#lang racket\n(require rackunit)\n(check-equal? 1 2)")
    assert (record.exit_code, b"FAILURE" in record.stderr.data) == (0, True), record


def test_a_racket_program_runs_its_main_module_after_itself(bench: Bench) -> None:
    text = "#lang racket\n(module+ main (displayln 2))\n(displayln 1)"
    record = run(bench, "racket", text)
    assert (record.stdout.data, record.ok) == (b"1\n2\n", True), record


SUITES = {
    "lua": (
        "luaunit.lua",
        "lu = require('luaunit')\n"
        "function test_a() lu.assertEquals(1, {}) end\n"
        "os.exit(lu.LuaUnit.run())",
    ),
    "perl": ("Test/Deep.pm", "use Test::Deep;\nexit(eq_deeply([1], [{}]) ? 0 : 1);"),
    "ruby": (
        "unit.rb",
        "require 'test/unit'\n"
        "class T < Test::Unit::TestCase\n  def test_a = assert_equal(1, {})\nend",
    ),
}


@pytest.mark.parametrize("language", SUITES)
def test_the_suites_of_multipl_e_find_their_libraries(bench: Bench, language: str) -> None:
    wanted, text = SUITES[language]
    for right in (True, False):
        record = run(bench, language, text.replace("{}", "1" if right else "2"))
        if wanted.encode() in record.stderr.data or b"cannot load such file" in record.stderr.data:
            pytest.skip(f"no {wanted} on this machine")
        assert (record.end, record.ok) == (EndKind.EXITED, right), record
