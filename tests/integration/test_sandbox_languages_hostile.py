"""Programs that attack their compiler end as their author's doing, and the next one compiles."""

# ruff: noqa: E501, ISC004 - small programs stay on one line

from __future__ import annotations

import pytest

import sandbox_languages_support as support
from assay.sandbox.domain import MIB, EndKind, RunLimits, SubmittedProgram
from assay.sandbox.languages import LANGUAGES
from assay.sandbox.prepared import CompileFailed
from sandbox_languages_support import Bench

bench = support.bench

LIMITS = RunLimits(compile_wall_s=6.0)
ENDS = {
    EndKind.COMPILE_ERROR,
    EndKind.WALL_TIME_LIMIT,
    EndKind.CPU_TIME_LIMIT,
    EndKind.MEMORY_LIMIT,
    EndKind.OUTPUT_LIMIT,
    EndKind.PROCESS_LIMIT,
}

ATTACKS = {
    "reads stdin": ("c", '#include "/dev/stdin"\nint main(void) { return y; }'),
    "reads an endless device": ("c", '#include "/dev/zero"\nint main(void) { return 0; }'),
    "embeds an endless device": (
        "c",
        '__asm__(".incbin \\"/dev/zero\\"");\nint main(void) { return 0; }',
    ),
    "includes itself": ("c", '#include "main.c"\n#include "main.c"\nint main(void) {}'),
    "a product of gigabytes": ("c", "char a[3u << 30] = {1};\nint main(void) { return a[5]; }"),
    "macros that double": (
        "c",
        "#define A(x) x x x x x x x x\n#define B(x) A(A(A(x)))\n#define C(x) B(B(B(B(x))))\n"
        "int main(void) { C(C(1;)) }",
    ),
    "a constant that never ends": (
        "cpp",
        "constexpr int f() { long i = 0; while (true) ++i; return i; }\nint main() { constexpr int x = f(); }",
    ),
    "types that double": (
        "cpp",
        "template<int n> struct A { A<n-1> a; A<n-2> b; static const int v = A<n-1>::v + A<n-2>::v; };\n"
        "template<class T, int n> struct B { typedef typename B<B<T, n-1>, n-1>::t t; };\n"
        "int main() { return A<900>::v + sizeof(B<int, 100>::t); }",
    ),
    "an error without end": (
        "cpp",
        "template<class T> struct X : X<T*> {};\nint main() { X<int> x; }",
    ),
    "a type without end in Rust": (
        "rust",
        "trait T { fn f(&self, n: u64); }\nimpl<X> T for X { fn f(&self, n: u64) { (self, self).f(n + 1) } }\nfn main() { 1.f(1) }",
    ),
    "a constant without end in Rust": (
        "rust",
        "const fn f(mut i: u64) -> u64 { loop { i = i.wrapping_add(1); if i == 0 { return i } } }\n"
        "#[allow(long_running_const_eval)]\nconst X: u64 = f(1);\nfn main() { println!(\"{}\", X) }",
    ),
    "embeds a device in Rust": ("rust", 'fn main() { println!("{}", include_bytes!("/dev/zero").len()) }'),
    "a constant too large for Java": (
        "java",
        "class A { void f() { " + "if (x) {" * 9000 + "}" * 9000 + " } }",
    ),
    "a type without end in TypeScript": (
        "typescript",
        "type T<N extends any[]> = N['length'] extends 999 ? N : T<[...N, any]>;\n"
        "type U<A, B extends any[] = []> = A extends 1 ? U<A, [...B, ...B, 1]> : 1;\n"
        "let x: T<[]> = 1; let y: U<1> = 2;",
    ),
    "an array without end in Go": (
        "go",
        "package main\nvar a = [1 << 33]byte{1 << 32: 1}\nfunc main() { println(a[5]) }",
    ),
    "a macro without end in Racket": (
        "racket",
        "#lang racket\n(define-syntax (f s) (let loop () (loop)))\n(f)",
    ),
    "a macro that starts processes in Racket": (
        "racket",
        "#lang racket\n(require (for-syntax racket))\n"
        "(define-syntax (f s) (let loop () (process* \"/bin/sleep\" \"99\") (loop)))\n(f)",
    ),
    "a constant without end in D": (
        "d",
        "int f() { int i; while (true) ++i; return i; }\nenum x = f();\nvoid main() {}",
    ),
    "a generator without end in Verilog": (
        "verilog",
        "module m; genvar i; generate for (i = 0; i >= 0; i = i + 1) begin : g reg [99:0] r; end endgenerate endmodule",
    ),
    "embeds an endless device in Verilog": ("verilog", '`include "/dev/zero"\nmodule m; endmodule'),
    "types without end in Scala": (
        "scala",
        "object A { class C[T]; implicit def f[T](implicit c: C[C[T]]): C[T] = null\n"
        "def main(a: Array[String]): Unit = implicitly[C[Int]] }",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_the_compiler_ends_by_its_limits(bench: Bench, name: str) -> None:
    language, text = ATTACKS[name]
    bench.need(language).need_jail()
    with pytest.raises(CompileFailed) as caught:
        bench.preparer.prepare(SubmittedProgram(language, text), LIMITS)
    record = caught.value.record
    assert record.end in ENDS
    assert len(record.stderr.data) <= 2 * 64 * 1024
    calm = bench.execute(SubmittedProgram("c", "int main(void) { return 0; }"))
    assert calm.ok


def test_a_compiler_finds_no_secret(bench: Bench) -> None:
    bench.need("c").need_jail()
    for path in ("/etc/shadow", "/root/.ssh/id_rsa", "/proc/1/environ", "/proc/self/environ"):
        text = f'__asm__(".incbin \\"{path}\\"");\nint main(void) {{ return 0; }}'
        try:
            bench.preparer.prepare(SubmittedProgram("c", text), LIMITS)
        except CompileFailed as error:
            ends = {error.record.end}
        else:
            ends = set()
        own = path.startswith("/proc/")  # it may read what is its own
        assert ends == {EndKind.COMPILE_ERROR} or own


HUNGRY = {
    "c": "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }",
    "java": "class A { public static void main(String[] a) { var l = new java.util.ArrayList<long[]>(); while (true) l.add(new long[1 << 16]); } }",
    "javascript": "const l = []; while (true) l.push(new Array(1 << 16).fill(1));",
    "go": "package main\nfunc main() { var l [][]byte; for { b := make([]byte, 1 << 20); for i := range b { b[i] = 1 }; l = append(l, b) } }",
    "rust": "fn main() { let mut l = Vec::new(); loop { l.push(vec![1u8; 1 << 20]); } }",
    "bash": "a=x; while :; do a=$a$a; done",
    "sql": "WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM t) SELECT length(group_concat(a || zeroblob(99999))) FROM t;",
}  # fmt: skip


@pytest.mark.parametrize("language", HUNGRY)
def test_a_hungry_program_ends_and_takes_no_more(bench: Bench, language: str) -> None:
    bench.need(language).need_jail()
    limits = LANGUAGES[language].limits.with_(
        memory_bytes=256 * MIB, wall_s=20.0, cpu_s=20.0, compile_wall_s=60.0
    )
    record = bench.execute(SubmittedProgram(language, HUNGRY[language]), limits=limits)
    assert not record.ok
    assert record.peak_memory_bytes <= 300 * MIB


@pytest.mark.parametrize("language", ["java", "javascript", "go"])
def test_threads_beyond_the_limit_do_not_hang(bench: Bench, language: str) -> None:
    text = {
        "java": "class A { public static void main(String[] a) { for (int i = 0; i < 5000; i++) new Thread(() -> { try { Thread.sleep(99999); } catch (Exception e) {} }).start(); } }",
        "javascript": "const { Worker } = require('worker_threads'); for (let i = 0; i < 500; i++) new Worker('setInterval(() => {}, 9999)', { eval: true });",
        "go": 'package main\nimport ("runtime"; "time")\nfunc main() { for i := 0; i < 5000; i++ { go func() { runtime.LockOSThread(); time.Sleep(99 * time.Second) }() }; time.Sleep(99 * time.Second) }',
    }[language]  # fmt: skip
    bench.need(language).need_jail()
    limits = LANGUAGES[language].limits.with_(wall_s=5.0, compile_wall_s=60.0)
    assert not bench.execute(SubmittedProgram(language, text), limits=limits).ok
