"""The table of languages: one entry each, the first ten here, the others in `table_*`.

Test kinds. Every language serves "stdio". "call" and "assertions" need a process that answers calls
over a private channel, so that expected values stay away from the candidate; only Python has one.
The others' assertion-style suites (a program with its own tests behind it, exit code 0) go through
Execute. There the tests share the candidate's process: a candidate that means to cheat exits with
code 0 before they run, or reads what they expect. A caller who trains on such suites should turn
them into stdin and stdout.

Choices, with their reasons:

* C and C++ at -O2, Rust at -O, as judges of contests do. <bits/stdc++.h> is precompiled (`Warm`).
* Java starts with assertions on: a suite of `assert` statements must not pass unread. javac itself
  stays in the JVM's first compiler; it never runs long enough for the second.
* TypeScript's types are checked: a type error is a compile error. The browser's declarations, which
  take most of the time and serve no program here, are left out; Node's and packages' are `any`.
* Go is compiled and linked by its tools directly; see `plans.go_plan`.
* SQL is SQLite on an empty database in memory. A test's stdin is SQL that runs first, to fill the
  tables; then the program runs, and its result is compared. Dot commands that reach outside (-safe
  forbids .shell, .read, .load) end it.
"""

from __future__ import annotations

from assay.sandbox.domain import BoxFile, SandboxFault
from assay.sandbox.languages import plans
from assay.sandbox.languages.language import (
    EVERY_KIND,
    MANAGED,
    OURS,
    Compile,
    Language,
    Tool,
    Warm,
    named,
)
from assay.sandbox.languages.libraries import (
    GO_LIBRARIES,
    GO_PATH,
    JAVA_CLASS_PATH,
    JAVA_TUPLES,
    NODE_PATH,
)
from assay.sandbox.languages.suites import SUITES
from assay.sandbox.languages.table_compiled import COMPILED
from assay.sandbox.languages.table_scripts import SCRIPTS

_MANAGED = MANAGED

_CXX_FLAGS = ("-O2", "-std=gnu++17", "-pipe", "-fmax-errors=20")

_NODE_DECLARATIONS = """\
declare var require: any, module: any, exports: any, process: any, Buffer: any, global: any;
declare var __dirname: string, __filename: string;
declare var console: any, performance: any, setImmediate: any, queueMicrotask: any;
declare var URL: any, URLSearchParams: any, TextEncoder: any, TextDecoder: any;
declare var structuredClone: any, AbortController: any, AbortSignal: any;
type Buffer = any; type URL = any; type URLSearchParams = any; type TextEncoder = any;
type TextDecoder = any; type AbortController = any; type AbortSignal = any;
declare module "*";
declare function setTimeout(handler: (...values: any[]) => void, ms?: number, ...rest: any[]): any;
declare function setInterval(handler: (...values: any[]) => void, ms?: number, ...rest: any[]): any;
declare function clearTimeout(timer: any): void;
declare function clearInterval(timer: any): void;
declare namespace NodeJS { type Timeout = any; type ReadableStream = any; }
""" + "".join(
    f'declare module "{prefix}{name}";\n'
    for name in (
        "assert", "assert/strict", "async_hooks", "buffer", "child_process", "cluster", "console",
        "crypto", "events", "fs", "fs/promises", "http", "https", "net", "os", "path",
        "perf_hooks", "process", "querystring", "readline", "readline/promises", "stream",
        "stream/promises", "string_decoder", "test", "timers", "timers/promises", "tty", "url",
        "util", "v8", "vm", "worker_threads", "zlib",
    )
    for prefix in ("", "node:")
)  # fmt: skip

_ENTRIES = (
    Language(
        name="python",
        aliases=("py", "python3"),
        tools=(),
        main=named("main.py"),
        run=(),
        version=(),
        self_test="print(sum(int(word) for word in input().split()))\n",
        test_kinds=EVERY_KIND,
    ),
    Language(
        name="c",
        tools=(Tool("gcc", "gcc"),),
        main=named("main.c"),
        compile=Compile(
            argv=(
                "{gcc}", "-O2", "-std=gnu17", "-pipe", "-fmax-errors=20",
                "-o", "{product}", "{sources}", "-lm", "-pthread",
            ),
            suffixes=(".c",),
        ),
        run=("main", "{arguments}"),
        version=("{gcc}", "--version"),
        self_test="""\
#include <stdio.h>
int main(void) {
    long a, b;
    if (scanf("%ld %ld", &a, &b) != 2) return 1;
    printf("%ld\\n", a + b);
}
""",
    ),
    Language(
        name="cpp",
        aliases=("c++", "cc", "cxx"),
        tools=(Tool("g++", "g++"),),
        main=named("main.cpp"),
        compile=Compile(
            argv=(
                "{g++}", *_CXX_FLAGS, "{if_warm}", "{early}",
                "-o", "{product}", "{sources}", "-pthread",
            ),
            suffixes=(".cpp", ".cc", ".cxx"),
        ),
        warm=Warm(
            files={
                "bits/standard.h": "#include <bits/stdc++.h>\n",
                # For where it is too late for the precompiled one, whose place is this.
                "bits/stdc++.h": "#include_next <bits/stdc++.h>\n",
            },
            commands=(
                (
                    "{g++}", *_CXX_FLAGS, "-pthread", "-x", "c++-header",
                    "{warm}/bits/standard.h", "-o", "{warm}/bits/stdc++.h.gch",
                ),
            ),
            arguments=("-I{warm}",),
        ),
        run=("main", "{arguments}"),
        version=("{g++}", "--version"),
        plan=plans.cpp_plan,
        self_test="""\
#include <bits/stdc++.h>
int main() {
    long a, b;
    std::cin >> a >> b;
    std::cout << a + b << "\\n";
}
""",
    ),
    Language(
        name="java",
        tools=(Tool("javac", "default-jdk-headless"), Tool("java", "default-jdk-headless")),
        libraries=(JAVA_TUPLES,),
        main=plans.java_main,
        compile=Compile(
            argv=plans.javac(JAVA_CLASS_PATH),
            tree=True,
            unpack_to=f"{OURS}/classes",
            suffixes=(".java",),
        ),
        run=(
            "{java}", "-Xmx{heap_mib}m", "-Xss64m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-ea",
            "-cp", f"{OURS}/classes:{JAVA_CLASS_PATH}", "{class}", "{arguments}",
        ),
        version=("{javac}", "-version"),
        read_only=(("/etc", "java*"),),
        limits=_MANAGED,
        plan=plans.java_plan,
        self_test="""\
import java.util.Scanner;
public class Sum {
    public static void main(String[] arguments) {
        Scanner in = new Scanner(System.in);
        System.out.println(in.nextLong() + in.nextLong());
    }
}
""",
    ),
    Language(
        name="javascript",
        aliases=("js", "node", "nodejs"),
        tools=(Tool("node", "nodejs"),),
        main=plans.javascript_main,
        run=("{node}", "--max-old-space-size={heap_mib}", "{main}", "{arguments}"),
        version=("{node}", "--version"),
        environment={"NODE_PATH": NODE_PATH},
        limits=_MANAGED,
        self_test="""\
const words = require("fs").readFileSync(0, "utf8").trim().split(/\\s+/);
console.log(words.map(Number).reduce((a, b) => a + b));
""",
    ),
    Language(
        name="typescript",
        aliases=("ts",),
        tools=(Tool("tsc", "node-typescript"), Tool("node", "nodejs")),
        main=named("main.ts"),
        compile=Compile(
            argv=(
                "/bin/sh", "-c", plans.TREE_SCRIPT, "sh", "{product}",
                "{node}", "{tsc}", "--target", "es2022", "--lib", "es2022",
                "--module", "commonjs", "--moduleDetection", "force", "--esModuleInterop",
                "--strict", "false", "--skipLibCheck", "--noEmitOnError", "--pretty", "false",
                "--rootDir", ".", "--outDir", f"{OURS}/out", f"{OURS}/node.d.ts", "{main}",
            ),
            tree=True,
            files=(BoxFile(f"{OURS}/node.d.ts", _NODE_DECLARATIONS.encode()),),
        ),
        run=("{node}", "--max-old-space-size={heap_mib}", "{output}", "{arguments}"),
        version=("{node}", "{tsc}", "--version"),
        environment={"NODE_PATH": NODE_PATH},
        limits=_MANAGED,
        plan=plans.typescript_plan,
        self_test="""\
import * as fs from "fs";
const words: string[] = fs.readFileSync(0, "utf8").trim().split(/\\s+/);
console.log(words.map(Number).reduce((a: number, b: number): number => a + b));
""",
    ),
    Language(
        name="go",
        aliases=("golang",),
        tools=(Tool("go", "golang-go"),),
        libraries=(GO_LIBRARIES,),
        main=named("main.go"),
        compile=Compile(
            argv=("/bin/sh", "-c", "{script}", "sh", "{go}", "{warm}", "{product}", "{units}"),
        ),
        warm=Warm(commands=(("/bin/sh", "-c", plans.GO_WARM, "sh", "{go}", "{warm}"),)),
        run=("main", "{arguments}"),
        version=("{go}", "version"),
        environment={
            "CGO_ENABLED": "0", "GOPATH": GO_PATH, "GO111MODULE": "auto",
            "GOMODCACHE": "/nonexistent", "GOPROXY": "off", "GOTOOLCHAIN": "local",
            "GOTELEMETRY": "off", "GOMEMLIMIT": "{heap_mib}MiB",
        },
        limits=_MANAGED,
        plan=plans.go_plan,
        self_test="""\
package main

import "fmt"

func main() {
	var a, b int
	fmt.Scan(&a, &b)
	fmt.Println(a + b)
}
""",
    ),
    Language(
        name="rust",
        aliases=("rs",),
        tools=(
            Tool("rustc", "rustc", proxy="rustup", sysroot=("--print", "sysroot")),
            Tool("gcc", "gcc"),
        ),
        main=named("main.rs"),
        compile=Compile(
            argv=(
                "{rustc}", "--edition", "2021", "--crate-name", "main", "-O", "-C", "strip=symbols",
                "-C", "linker={gcc}", "-o", "{product}", "{main}",
            ),
        ),
        run=("main", "{arguments}"),
        version=("{rustc}", "--version"),
        self_test="""\
use std::io::Read;
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let sum: i64 = text.split_whitespace().map(|word| word.parse::<i64>().unwrap()).sum();
    println!("{sum}");
}
""",
    ),
    Language(
        name="bash",
        aliases=("sh", "shell"),
        tools=(Tool("bash", "bash"),),
        main=named("main.sh"),
        run=("{bash}", "--norc", "--noprofile", "{main}", "{arguments}"),
        version=("{bash}", "--version"),
        self_test="read -r a b\necho $((a + b))\n",
    ),
    Language(
        name="sql",
        aliases=("sqlite", "sqlite3"),
        tools=(Tool("sqlite3", "sqlite3"),),
        main=named("main.sql"),
        run=("{sqlite3}", "-safe", "-batch", "-bail", ":memory:"),
        version=("{sqlite3}", "--version"),
        source_on_stdin=True,
        self_test="SELECT sum(value) FROM numbers;\n",
        self_test_stdin=b"CREATE TABLE numbers(value); INSERT INTO numbers VALUES (20), (22);",
    ),
    *SUITES,
    *SCRIPTS,
    *COMPILED,
)  # fmt: skip

LANGUAGES: dict[str, Language] = {language.name: language for language in _ENTRIES}
"""Every language that the sandbox knows, by name; its tools may be missing here."""

_BY_NAME = {
    alias: language for language in _ENTRIES for alias in (language.name, *language.aliases)
}


def find_language(name: str) -> Language:
    """The language of this name or alias, in whatever case.

    Raises:
        SandboxFault: UNKNOWN_LANGUAGE, there is none.
    """
    found = _BY_NAME.get(name.strip().lower())
    if found is None:
        known = ", ".join(sorted(LANGUAGES))
        message = f"The sandbox knows no language {name[:60]!r}; it knows {known}."
        raise SandboxFault("UNKNOWN_LANGUAGE", message, language=name[:60])
    return found
