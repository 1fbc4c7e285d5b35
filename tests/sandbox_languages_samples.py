"""Small programs in the languages of `table_scripts` and `table_compiled`, by what they show."""

# ruff: noqa: E501 - small programs stay on one line

from __future__ import annotations

from assay.sandbox.domain import BoxFile, SubmittedProgram

NAMES = (
    "perl", "ruby", "php", "lua", "r", "racket", "csharp", "d", "d_ut", "scala", "kotlin", "verilog",
)  # fmt: skip


def _file(path: str, text: str) -> BoxFile:
    return BoxFile(path, text.encode())


def _cs(body: str, using: str = "") -> str:
    return f"using System;{using} public class P {{ public static void Main(string[] a) {{ {body} }} }}"


def _scala(body: str) -> str:
    return f"object P {{ def main(a: Array[String]): Unit = {{ {body} }} }}"


def _kotlin(body: str) -> str:
    return f"fun main(a: Array<String>) {{ {body} }}"


def _d(body: str) -> str:
    return f"import std.stdio, std.string, core.stdc.stdlib;\nvoid main(string[] a) {{ {body} }}"


def _verilog(body: str) -> str:
    return f"module p;\n  initial begin {body} $finish; end\nendmodule\n"


BROKEN = {
    "racket": "#lang racket\n(define-syntax (f s) (raise-syntax-error #f \"an error\" s))\n(f)",
    "csharp": _cs("int x = \"a\";"),
    "d": _d("int x = \"a\";"),
    "d_ut": _d("int x = \"a\";"),
    "scala": _scala('val x: Int = "a"'),
    "kotlin": _kotlin('val x: Int = "a"'),
    "verilog": _verilog("nothing = ;"),
}  # fmt: skip
"""They do not compile, and the compiler says "error"."""

CRASHING = {
    "perl": 'print "a\\n"; exit 3;',
    "ruby": "puts 'a'\nexit 3",
    "php": "<?php echo \"a\\n\"; exit(3);",
    "lua": "print('a')\nos.exit(3)",
    "r": "cat('a\\n'); quit(status = 3)",
    "racket": "#lang racket\n(displayln 'a)\n(exit 3)",
    "csharp": _cs('Console.WriteLine("a"); Environment.Exit(3);'),
    "d": "import std.stdio; int main() { writeln(\"a\"); return 3; }",
    "d_ut": "import std.stdio; int main() { writeln(\"a\"); return 3; }",
    "scala": _scala('println("a"); sys.exit(3)'),
    "kotlin": _kotlin('println("a"); kotlin.system.exitProcess(3)'),
    "verilog": _verilog('$display("a"); $finish_and_return(3);'),
}  # fmt: skip
"""They write a line, and end with 3."""

FAILING = {
    "perl": ("die 'no such luck';", 255),
    "ruby": ("raise 'no such luck'", 1),
    "php": ("<?php throw new Exception('no such luck');", 255),
    "lua": ("error('no such luck')", 1),
    "r": ("stop('no such luck')", 1),
    "racket": ("#lang racket\n(error \"no such luck\")", 1),
    "csharp": (_cs('throw new Exception("no such luck");'), 1),
    "d": (_d('throw new Exception("no such luck");'), 1),
    "d_ut": ('unittest { assert(1 == 2, "no such luck"); }\nvoid main() {}', 1),
    "scala": (_scala('assert(1 == 2, "no such luck")'), 1),
    "kotlin": (_kotlin('throw Exception("no such luck")'), 1),
}  # fmt: skip
"""They fail by their language's own means, with what code, and the words are on stderr."""

ECHOING = {
    "perl": "print \"['$ARGV[0]', '$ARGV[1]'] $ENV{MOOD}\\n\";",
    "ruby": "puts \"['#{ARGV[0]}', '#{ARGV[1]}'] #{ENV['MOOD']}\"",
    "php": "<?php echo \"['$argv[1]', '$argv[2]'] \", getenv('MOOD'), \"\\n\";",
    "lua": "print(\"['\" .. arg[1] .. \"', '\" .. arg[2] .. \"'] \" .. os.getenv('MOOD'))",
    "r": "a <- commandArgs(TRUE); cat(sprintf(\"['%s', '%s'] %s\\n\", a[1], a[2], Sys.getenv('MOOD')))",
    "racket": "#lang racket\n(define a (current-command-line-arguments))\n(printf \"['~a', '~a'] ~a\\n\" (vector-ref a 0) (vector-ref a 1) (getenv \"MOOD\"))",
    "csharp": _cs("Console.WriteLine(\"['\" + a[0] + \"', '\" + a[1] + \"'] \" + Environment.GetEnvironmentVariable(\"MOOD\"));"),
    "d": "import std.stdio, std.process;\nvoid main(string[] a) { writefln(\"['%s', '%s'] %s\", a[1], a[2], environment[\"MOOD\"]); }",
    "d_ut": "import std.stdio, std.process;\nvoid main(string[] a) { writefln(\"['%s', '%s'] %s\", a[1], a[2], environment[\"MOOD\"]); }",
    "scala": _scala("println(s\"['${a(0)}', '${a(1)}'] ${sys.env(\"MOOD\")}\")".replace("\"MOOD\"", "{\"MOOD\"}")),
    "kotlin": _kotlin("println(\"['${a[0]}', '${a[1]}'] ${System.getenv(\"MOOD\")}\")"),
}  # fmt: skip

SEVERAL_FILES = {
    "perl": SubmittedProgram("perl", "use lib '.'; use Other; print Other::f(), \"\\n\";", (_file("Other.pm", "package Other; sub f { 7 } 1;"),)),
    "ruby": SubmittedProgram("ruby", "require_relative 'lib/other'\nputs f", (_file("lib/other.rb", "def f = 7"),)),
    "php": SubmittedProgram("php", "<?php require 'lib/other.php'; echo f(), \"\\n\";", (_file("lib/other.php", "<?php function f() { return 7; }"),)),
    "lua": SubmittedProgram("lua", "print(require('lib.other').f())", (_file("lib/other.lua", "return { f = function() return 7 end }"),)),
    "r": SubmittedProgram("r", "source('other.R'); cat(f(), '\\n', sep = '')", (_file("other.R", "f <- function() 7"),)),
    "racket": SubmittedProgram("racket", "#lang racket\n(require \"lib/other.rkt\")\n(displayln (f))", (_file("lib/other.rkt", "#lang racket/base\n(provide f)\n(define (f) 7)\n"),)),
    "csharp": SubmittedProgram("csharp", _cs("Console.WriteLine(Other.F());"), (_file("lib/other.cs", "static class Other { public static int F() { return 7; } }"),)),
    "d": SubmittedProgram("d", "import std.stdio, lib.other;\nvoid main() { writeln(f()); }", (_file("lib/other.d", "module lib.other;\nint f() { return 7; }"),)),
    "scala": SubmittedProgram("scala", "package q\nobject Start extends App { println(Other.f) }", (_file("q/Other.scala", "package q\nobject Other { def f = 7 }"),)),
    "kotlin": SubmittedProgram("kotlin", "package q\nfun main() { println(f()) }", (_file("q/other.kt", "package q\nfun f() = 7"),)),
    "kotlin script": SubmittedProgram("kotlin", "", (_file("start-me.kts", "val x = 5\nfun f() = x + 2\nprintln(f())"),), "start-me.kts"),
    "verilog": SubmittedProgram("verilog", _verilog("$display(\"%0d\", o.value);").replace("module p;", "module p; other o();"), (_file("other.v", "module other; localparam value = 7; endmodule"),)),
}  # fmt: skip
"""They print 7."""

COUNTING = {
    "perl": "my $n = 0; while (<STDIN>) { $n += length } print \"$n\\n\";",
    "ruby": "puts $stdin.read.bytesize",
    "php": "<?php echo strlen(stream_get_contents(STDIN)), \"\\n\";",
    "lua": "print(#io.read('a'))",
    "r": "x <- readLines(file('stdin')); cat(sum(nchar(x)) + length(x), '\\n', sep = '')",
    "racket": "#lang racket\n(displayln (bytes-length (port->bytes)))",
    "csharp": _cs("Console.WriteLine(Console.In.ReadToEnd().Length);"),
    "d": _d("size_t n; foreach (line; stdin.byLine(KeepTerminator.yes)) n += line.length; writeln(n);"),
    "scala": _scala("println(io.Source.stdin.mkString.length)"),
    "kotlin": _kotlin("println(System.`in`.readBytes().size)"),
    "verilog": "module p; integer c, n = 0; initial begin c = $fgetc(32'h8000_0000); while (c != -1) begin n = n + 1; c = $fgetc(32'h8000_0000); end $display(\"%0d\", n); end endmodule",
}  # fmt: skip
"""They print how many bytes stdin has."""

MIRRORING = {
    "perl": "print scalar <STDIN>;",
    "ruby": "line = gets\nputs line if line.chomp.length == 9",
    "php": "<?php echo fgets(STDIN);",
    "lua": "local line = io.read('L')\nassert(utf8.len(line) == 10)\nio.write(line)",
    "r": "x <- readLines(file('stdin')); stopifnot(nchar(x) == 9); cat(x, '\\n', sep = '')",
    "racket": "#lang racket\n(define line (read-line))\n(when (= (string-length line) 9) (displayln line))",
    "csharp": _cs("Console.WriteLine(Console.ReadLine());"),
    "d": _d("write(readln());"),
    "scala": _scala("println(scala.io.StdIn.readLine())"),
    "kotlin": _kotlin("println(readLine())"),
    "verilog": "module p; integer c; initial begin c = $fgetc(32'h8000_0000); while (c != -1) begin $write(\"%c\", c); c = $fgetc(32'h8000_0000); end end endmodule",
}  # fmt: skip
"""They print the line that they read; where they count characters, it has nine."""

ENDLESS = {
    "perl": "1 while 1;",
    "ruby": "loop {}",
    "php": "<?php while (true);",
    "lua": "while true do end",
    "r": "while (TRUE) {}",
    "racket": "#lang racket\n(let loop () (loop))",
    "csharp": _cs("while (true) {}"),
    "d": _d("size_t n; while (true) { ++n; if (n == 0) writeln(n); }"),
    "scala": _scala("while (true) {}"),
    "kotlin": _kotlin("while (true) {}"),
    "verilog": "module p; reg c = 0; always #1 c = ~c; endmodule",
}  # fmt: skip
"""They use the processor and do not end."""

SLEEPING = {
    "perl": "sleep 99;",
    "ruby": "sleep 99",
    "php": "<?php sleep(99);",
    "lua": "os.execute('sleep 99')",
    "r": "Sys.sleep(99)",
    "racket": "#lang racket\n(sleep 99)",
    "csharp": _cs("System.Threading.Thread.Sleep(99000);"),
    "d": "import core.thread; void main() { Thread.sleep(99.seconds); }",
    "scala": _scala("Thread.sleep(99000)"),
    "kotlin": _kotlin("Thread.sleep(99000)"),
}  # fmt: skip

HUNGRY = {
    "perl": "my @l; push @l, 'x' x (1 << 20) while 1;",
    "ruby": "l = []\nloop { l << 'x' * (1 << 20) }",
    "php": "<?php $l = []; while (true) $l[] = str_repeat(chr(count($l) % 90 + 33), 1 << 20);",
    "lua": "local l = {}\nwhile true do l[#l + 1] = string.rep('x', 1 << 20) .. #l end",
    "r": "l <- list(); repeat l[[length(l) + 1]] <- runif(1e5)",
    "racket": "#lang racket\n(let loop ([l '()]) (loop (cons (make-bytes (expt 2 20) 7) l)))",
    "csharp": _cs("var l = new List<byte[]>(); while (true) { var b = new byte[1 << 20]; for (int i = 0; i < b.Length; i += 512) b[i] = 1; l.Add(b); }", "using System.Collections.Generic;"),
    "d": _d("ubyte[][] l; while (true) { auto b = new ubyte[1 << 20]; b[] = 7; l ~= b; }"),
    "scala": _scala("var l = List[Array[Long]](); while (true) l = Array.fill(1 << 16)(7L) :: l"),
    "kotlin": _kotlin("val l = ArrayList<LongArray>(); while (true) l.add(LongArray(1 shl 16) { 7L })"),
}  # fmt: skip

LOUD = {
    "perl": "print 'x' x 65536 while 1;",
    "ruby": "loop { $stdout.write('x' * 65536) }",
    "php": "<?php while (true) echo str_repeat('x', 65536);",
    "lua": "while true do io.write(string.rep('x', 65536)) end",
    "r": "x <- strrep('x', 65536); repeat cat(x)",
    "racket": "#lang racket\n(let loop () (write-string (make-string 65536 #\\x)) (loop))",
    "csharp": _cs("while (true) Console.Write(new string('x', 65536));"),
    "d": _d("while (true) write(\"x\".replicate(65536));").replace("std.string", "std.array"),
    "scala": _scala("while (true) print(\"x\" * 65536)"),
    "kotlin": _kotlin("while (true) print(\"x\".repeat(65536))"),
    "verilog": "module p; initial forever $write(\"%s\", {8192{\"x\"}}); endmodule",
}  # fmt: skip
"""They write without end."""

FORKING = {
    "perl": "while (1) { my $p = fork; die 'refused' unless defined $p; if (!$p) { sleep 99; exit } }",
    "ruby": "loop { fork { sleep 99 } }",
    "lua": "for i = 1, 4000 do assert(os.execute('sleep 99 &')) end",
    "r": "for (i in 1:4000) if (system('sleep 99 &') != 0) quit(status = 9)",
    "racket": "#lang racket\n(for ([i 4000]) (process* \"/bin/sleep\" \"99\"))",
    "csharp": _cs("for (int i = 0; i < 4000; i++) System.Diagnostics.Process.Start(\"/bin/sleep\", \"99\");"),
    "d": "import std.process; void main() { foreach (i; 0 .. 4000) spawnProcess([\"/bin/sleep\", \"99\"]); }",
    "scala": _scala("for (i <- 0 to 4000) new ProcessBuilder(\"/bin/sleep\", \"99\").start()"),
    "kotlin": _kotlin("for (i in 0..4000) ProcessBuilder(\"/bin/sleep\", \"99\").start()"),
}  # fmt: skip
"""They start processes without end, and fail where they may not."""

CONNECTING = {
    "perl": "use IO::Socket::INET; my $s = IO::Socket::INET->new(PeerAddr => '192.0.2.1', PeerPort => 80, Timeout => 20) or die \"refused: $@\"; print 'out';",
    "ruby": "require 'socket'\nSocket.tcp('192.0.2.1', 80, connect_timeout: 20)\nputs 'out'",
    "php": "<?php $s = stream_socket_client('tcp://192.0.2.1:80', $n, $e, 20); echo $s ? 'out' : ''; exit($s ? 0 : 1);",
    "r": "s <- socketConnection('192.0.2.1', 80, timeout = 20); cat('out')",
    "racket": "#lang racket\n(tcp-connect \"192.0.2.1\" 80)\n(display \"out\")",
    "csharp": _cs("new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp).Connect(System.Net.IPAddress.Parse(\"192.0.2.1\"), 80); Console.Write(\"out\");", "using System.Net.Sockets;"),
    "d": "import std.socket, std.stdio; void main() { new TcpSocket(new InternetAddress(\"192.0.2.1\", 80)); write(\"out\"); }",
    "scala": _scala("new java.net.Socket(\"192.0.2.1\", 80); print(\"out\")"),
    "kotlin": _kotlin("java.net.Socket(\"192.0.2.1\", 80); print(\"out\")"),
}  # fmt: skip
"""They try to reach another machine; Lua and Verilog have no sockets of their own."""
