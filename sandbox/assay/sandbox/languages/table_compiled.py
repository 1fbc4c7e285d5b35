"""Entries of the table that are compiled, beyond the first ten: C#, D, Scala, Kotlin, Verilog.

Choices, with their reasons:

* C# is Mono's: C# 7, the class library of .NET Framework. A failed `Debug.Assert` ends the program
  with exit code 134 and its message on stderr, as .NET's does and Mono's own does not. A program
  without any `using System` gets the namespaces that .NET's projects have by default.
* `d` and `d_ut` differ in one flag: with unit tests compiled in, the run-time runs those and leaves
  `main` out where there are any.
* Scala's and Kotlin's compilers are Java programs of ten thousand classes. They start in the JVM's
  first compiler, from an archive of their classes (`Warm`), in half the time. Kotlin's scripts
  (.kts) are compiled by way of its preloader, whose classes cannot be archived.
* Verilog is elaborated from the module `tb` where there is one, as VerilogEval does; the simulation
  reads stdin through file descriptor 32'h8000_0000 and never stops for a prompt (`vvp -n`).
"""

from __future__ import annotations

import dataclasses

from assay.sandbox.domain import BoxFile
from assay.sandbox.languages import plans
from assay.sandbox.languages.language import (
    MANAGED,
    OURS,
    Compile,
    Language,
    Tool,
    Warm,
    named,
)

_JVM = "default-jre-headless"
_JVM_RUN = ("-Xmx{heap_mib}m", "-Xss64m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-ea")

_ASSERTIONS = b"""\
namespace AssaySandbox
{
    sealed class Assertions : System.Diagnostics.TraceListener
    {
        public override void Write(string text) { System.Console.Error.Write(text); }
        public override void WriteLine(string text) { System.Console.Error.WriteLine(text); }
        public override void Fail(string text, string detail)
        {
            System.Console.Out.Flush();
            System.Console.Error.WriteLine(("Assertion failed. " + text + " " + detail).Trim());
            System.Console.Error.WriteLine(new System.Diagnostics.StackTrace(true));
            System.Environment.Exit(134);
        }
    }
}
"""
_LISTENERS = b"""\
<configuration><system.diagnostics><trace autoflush="true"><listeners><clear/>
<add name="assertions" type="AssaySandbox.Assertions, main"/>
</listeners></trace></system.diagnostics></configuration>
"""

_START_SCRIPT = b"""\
@file:JvmName("AssayStart")
fun main(arguments: Array<String>) {
    try {
        Class.forName(System.getProperty("assay.script"))
            .getConstructor(Array<String>::class.java)
            .newInstance(arguments)
    } catch (error: java.lang.reflect.InvocationTargetException) {
        throw error.targetException
    }
}
"""

_D = Language(
    name="d",
    aliases=("dlang",),
    tools=(Tool("ldc2", "ldc"), Tool("gcc", "gcc")),
    main=named("main.d"),
    compile=Compile(
        argv=(
            "{ldc2}", "-O2", "-gcc={gcc}", f"-od={OURS}/objects", "-of={product}", "{sources}",
        ),
        suffixes=(".d",),
    ),
    run=("main", "{arguments}"),
    version=("{ldc2}", "--version"),
    read_only=(("/etc", "ldc2.conf"),),
    limits=MANAGED,
    self_test="""\
import std.algorithm, std.array, std.conv, std.stdio;
void main() { readln.split.map!(to!long).sum.writeln; }
""",
)  # fmt: skip
assert _D.compile is not None  # noqa: S101 - for the type checker

COMPILED = (
    Language(
        name="csharp",
        aliases=("c#", "cs", "mono"),
        tools=(
            Tool("mcs", "mono-mcs"), Tool("mono", "mono-runtime"),
        ),
        main=named("main.cs"),
        compile=Compile(
            argv=(
                "/bin/sh", "-c", plans.CSHARP_SCRIPT, "sh", "{product}", "{usings}", "{main}",
                "{mcs}", "-optimize+", "-debug", "-define:DEBUG;TRACE", "-nowarn:105",
                "-r:System.Core,System.Numerics", f"-out:{OURS}/out/main.exe",
                f"{OURS}/assertions.cs", "{others}",
            ),
            tree=True,
            unpack_to=OURS,
            files=(
                BoxFile(f"{OURS}/assertions.cs", _ASSERTIONS),
                BoxFile(f"{OURS}/out/main.exe.config", _LISTENERS),
            ),
        ),
        run=("{mono}", "--debug", f"{OURS}/main.exe", "{arguments}"),
        version=("{mcs}", "--version"),
        environment={
            "MONO_GC_PARAMS": "max-heap-size={heap_mib}m",
            "MONO_LOG_DEST": "/dev/null",  # it tells stdout that it may not set priorities
        },
        read_only=(("/etc", "mono"),),
        limits=MANAGED,
        plan=plans.csharp_plan,
        self_test="""\
using System;
using System.Linq;
public class Sum {
    public static void Main() {
        Console.WriteLine(Console.ReadLine().Split(' ').Select(long.Parse).Sum());
    }
}
""",
    ),
    _D,
    dataclasses.replace(
        _D,
        name="d_ut",
        aliases=(),
        compile=dataclasses.replace(
            _D.compile, argv=(_D.compile.argv[0], "-unittest", *_D.compile.argv[1:])
        ),
    ),
    Language(
        name="scala",
        tools=(Tool("scalac", "scala"), Tool("java", _JVM)),
        main=named("main.scala"),
        compile=Compile(
            argv=(
                "/bin/sh", "-c", plans.TREE_SCRIPT, "sh", "{product}",
                *plans.scalac("{if_warm}"), "-encoding", "UTF-8", "-nowarn",
                "-d", f"{OURS}/out", "{sources}",
            ),
            tree=True,
            unpack_to=f"{OURS}/classes",
            suffixes=(".scala",),
        ),
        warm=Warm(
            files={"warm.scala": plans.SCALA_SAMPLE},
            commands=(
                (
                    *plans.scalac("-XX:ArchiveClassesAtExit={warm}/classes.jsa"),
                    "-d", "{warm}", "{warm}/warm.scala",
                ),
            ),
            arguments=("-XX:SharedArchiveFile={warm}/classes.jsa",),
        ),
        run=(
            "/bin/sh", "-c", plans.SCALA_RUN, "sh", "{scalac}",
            "{java}", *_JVM_RUN, "{class}", "{arguments}",
        ),
        version=plans.scalac("-version"),
        read_only=(("/etc", "java*"),),
        limits=MANAGED,
        plan=plans.scala_plan,
        self_test="""\
object Sum {
  def main(arguments: Array[String]): Unit =
    println(scala.io.StdIn.readLine().split(" ").map(_.toLong).sum)
}
""",
    ),
    Language(
        name="kotlin",
        aliases=("kt", "kts", "kotlin_script"),
        tools=(Tool("kotlinc", "kotlin"), Tool("java", _JVM)),
        main=plans.kotlin_main,
        compile=Compile(
            argv=(
                "/bin/sh", "-c", plans.TREE_SCRIPT, "sh", "{product}",
                "/bin/sh", "-c", plans.KOTLINC, "sh", "{kotlinc}", "{java}", "{way}", "{if_warm}",
                "-d", f"{OURS}/out", "{units}",
            ),
            tree=True,
            unpack_to=f"{OURS}/classes",
            files=(BoxFile(f"{OURS}/start.kt", _START_SCRIPT),),
        ),
        warm=Warm(
            files={"warm.kt": plans.KOTLIN_SAMPLE},
            commands=(
                (
                    "/bin/sh", "-c", plans.KOTLINC, "sh", "{kotlinc}", "{java}", "direct",
                    "-XX:ArchiveClassesAtExit={warm}/classes.jsa",
                    "-d", "{warm}/out", "{warm}/warm.kt",
                ),
            ),
            arguments=("-XX:SharedArchiveFile={warm}/classes.jsa",),
        ),
        run=(
            "/bin/sh", "-c", plans.KOTLIN_RUN, "sh", "{kotlinc}",
            "{java}", *_JVM_RUN, "{start}", "{arguments}",
        ),
        version=("/bin/sh", "-c", plans.KOTLINC, "sh", "{kotlinc}", "{java}", "direct", "-version"),
        read_only=(("/etc", "java*"),),
        limits=MANAGED,
        plan=plans.kotlin_plan,
        self_test='fun main() = println(readLine()!!.split(" ").map { it.toLong() }.sum())\n',
    ),
    Language(
        name="verilog",
        aliases=("systemverilog", "iverilog"),
        tools=(Tool("iverilog", "iverilog"), Tool("vvp", "iverilog")),
        main=named("main.sv"),
        compile=Compile(
            argv=(
                "/bin/sh", "-c", plans.TREE_SCRIPT, "sh", "{product}",
                "{iverilog}", "-Wall", "-Winfloop", "-Wno-timescale", "-g2012", "{top}",
                "-o", f"{OURS}/out/main.vvp", "{sources}",
            ),
            tree=True,
            unpack_to=OURS,
            suffixes=(".v", ".sv"),
        ),
        run=("{vvp}", "-n", f"{OURS}/main.vvp", "{arguments}"),
        version=("{iverilog}", "-V"),
        plan=plans.verilog_plan,
        self_test="""\
module sum;
  integer a, b, n;
  initial begin
    n = $fscanf(32'h8000_0000, "%d %d", a, b);
    $display("%0d", a + b);
    $finish;
  end
endmodule
""",
    ),
)  # fmt: skip
