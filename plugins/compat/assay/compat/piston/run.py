"""Piston's `/api/v2/execute`: its JSON to a job of the sandbox, and what came of it to JSON. Pure.

The format is that of github.com/engineer-man/piston (0a844d0, API v2). What differs:

1. `output` is stdout with stderr behind it: the sandbox keeps the two apart, and not their order.
2. Without `run_cpu_time` a program may use the CPU time of four cores for its time on the clock;
   there it is 3 s, whatever `run_timeout` says.
3. Without a memory limit (0, -1) the language's default is in force, not none.
4. `compile_memory_limit` and `compile_cpu_time` are checked and not passed on: compilers have
   limits of the sandbox's own.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assay.clients.execution import (
    Execution,
    ExecutionJob,
    LanguageInfo,
    Limits,
    Program,
    SandboxInfo,
    SourceFile,
)
from assay.compat.fields import BadField, Fields
from assay.compat.piston.versions import Version, fits, read_version
from assay.compat.programs import CPU_SHARE
from assay.compat.sandbox_fusion.run import COMPILED

COMPILE_TIMEOUT_MS = 10_000.0
RUN_TIMEOUT_MS = 3_000.0

# Piston's name and aliases for each language of the sandbox.
_NAMES: dict[str, tuple[str, ...]] = {
    "python": ("python", "py", "py3", "python3", "python3.11"),
    "c": ("c", "gcc"),
    "cpp": ("c++", "cpp", "g++"),
    "java": ("java",),
    "javascript": ("javascript", "js", "node", "nodejs", "node-javascript", "node-js"),
    "typescript": ("typescript", "ts", "node-ts", "tsc", "typescript3", "typescript4"),
    "go": ("go", "golang"),
    "rust": ("rust", "rs"),
    "bash": ("bash", "sh", "shell"),
    "sql": ("sqlite3", "sqlite", "sql"),
    "perl": ("perl", "pl"),
    "ruby": ("ruby", "ruby3", "rb"),
    "php": ("php",),
    "lua": ("lua",),
    "r": ("rscript", "r"),
    "racket": ("racket", "rkt"),
    "csharp": ("csharp", "mono", "mono-csharp", "mono-c#", "mono-cs", "c#", "cs"),
    "d": ("d", "dlang"),
    "scala": ("scala", "sc"),
    "kotlin": ("kotlin", "kt"),
    "verilog": ("iverilog", "verilog", "vvp"),
}
_SUFFIXES = {"c": ".c", "cpp": ".cpp", "java": ".java", "go": ".go", "rust": ".rs",
             "typescript": ".ts", "javascript": ".js", "racket": ".rkt", "csharp": ".cs",
             "d": ".d", "d_ut": ".d", "scala": ".scala", "kotlin": ".kt",
             "verilog": ".sv"}  # fmt: skip
_OTHER_SUFFIXES = (".mjs", ".cjs", ".cc", ".cxx", ".kts", ".v")
_NAMED_BY_CONTENT = frozenset({"java", "sql"})
_KILLED = {"cpu-time-limit": ("TO", "Time limit exceeded"),
           "wall-time-limit": ("TO", "Time limit exceeded (wall clock)"),
           "output-limit": ("OL", "stdout length exceeded"),
           "memory-limit": ("SG", "Caught fatal signal 9 (memory limit exceeded)"),
           "process-limit": ("SG", "Caught fatal signal 9 (too many processes)")}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Runtime:
    """A language as Piston lists it.

    Attributes:
        ours: its name in the sandbox.
        version: of its toolchain.
    """

    ours: str
    version: Version

    @property
    def language(self) -> str:
        """Piston's name."""
        return _NAMES.get(self.ours, (self.ours,))[0]

    @property
    def aliases(self) -> tuple[str, ...]:
        """Piston's other names."""
        return _NAMES.get(self.ours, (self.ours,))[1:]

    @property
    def version_text(self) -> str:
        """The version as text."""
        return ".".join(map(str, self.version))


@dataclass(frozen=True, slots=True)
class Execute:
    """A request of `/api/v2/execute`.

    Attributes:
        runtime: the language that was chosen.
        job: what to run.
        compile_timeout_s: time on the clock for compilation, in seconds.
        run_timeout_s: time on the clock for the run, in seconds.
    """

    runtime: Runtime
    job: ExecutionJob
    compile_timeout_s: float
    run_timeout_s: float


def runtimes_of(languages: Iterable[LanguageInfo]) -> list[Runtime]:
    """The languages of a sandbox."""
    return [Runtime(info.name, read_version(info.toolchain_version)) for info in languages]


def answer_runtimes(runtimes: Iterable[Runtime]) -> list[dict[str, object]]:
    """The response of `/api/v2/runtimes`."""
    return [
        {"language": each.language, "version": each.version_text, "aliases": list(each.aliases)}
        for each in runtimes
    ]


def answer_packages(runtimes: Iterable[Runtime]) -> list[dict[str, object]]:
    """The response of `/api/v2/packages`: all that there is, is installed."""
    return [
        {"language": each.language, "language_version": each.version_text, "installed": True}
        for each in runtimes
    ]


def find_runtime(fields: Fields, runtimes: Iterable[Runtime]) -> Runtime:
    """The language that a request names.

    Raises:
        BadField: there is none of that name and version.
    """
    name, selector = fields.text("language"), fields.text("version")
    for runtime in runtimes:
        if name in (runtime.language, *runtime.aliases):
            try:
                if fits(selector, runtime.version):
                    return runtime
            except ValueError as error:
                raise fields.bad("version", str(error)) from error
    raise fields.bad("language", f"{name[:60]}-{selector[:40]} runtime is unknown")


def read_execute(body: object, info: SandboxInfo) -> Execute:
    """Reads a request; `info` gives the sandbox's languages and greatest limits.

    Raises:
        BadField: a field is missing or wrong, or the language is not served.
    """
    fields = Fields(body)
    runtime = find_runtime(fields, runtimes_of(info.languages))
    files = read_files(fields)
    most = info.max_limits
    run_s = _seconds(fields, "run_timeout", most.wall_time_s, RUN_TIMEOUT_MS)
    compile_s = _seconds(fields, "compile_timeout", most.compile_wall_time_s, COMPILE_TIMEOUT_MS)
    free_s = min(run_s * CPU_SHARE, most.cpu_time_s or run_s)
    cpu_s = _seconds(fields, "run_cpu_time", most.cpu_time_s, free_s * 1000)
    memory = _limit(fields, "run_memory_limit", most.memory_bytes)
    for name in ("compile_cpu_time", "compile_memory_limit"):
        _limit(fields, name, None)
    stdin = fields.text("stdin") if fields.has("stdin") else ""
    arguments = fields.texts("args") if fields.has("args") else ()
    return Execute(
        runtime,
        ExecutionJob(
            _program(fields, runtime.ours, files, arguments),
            stdin=(stdin if stdin.endswith("\n") else f"{stdin}\n").encode(),  # as Piston does
            limits=Limits(
                cpu_time_s=cpu_s,
                wall_time_s=run_s,
                memory_bytes=int(memory) if memory else None,
                compile_wall_time_s=compile_s,
            ),
        ),
        compile_s,
        run_s,
    )


@dataclass(frozen=True, slots=True)
class File:
    """A file of a request.

    Attributes:
        name: its path.
        content: its bytes.
        is_text: it was sent as text.
    """

    name: str
    content: bytes
    is_text: bool


def read_files(fields: Fields) -> list[File]:
    """The files of a request, at least one of which is a text.

    Raises:
        BadField: one of them is wrong, or none is a text.
    """
    found = fields.raw("files")
    if not isinstance(found, list):
        raise fields.bad("files", "is required as an array")
    files = [_file(Fields(value, ("files", n)), n) for n, value in enumerate(found)]
    if not any(file.is_text for file in files):
        raise fields.bad("files", "must include at least one utf8 encoded file")
    return files


def _file(fields: Fields, number: int) -> File:
    name = fields.text("name") if fields.has("name") else ""
    path = fields.relative_path("name", name or f"file{number}.code")
    text = fields.text("content")
    encoding = fields.raw("encoding", "utf8")
    try:
        if encoding == "base64":
            return File(path, base64.b64decode(text, validate=True), is_text=False)
        if encoding == "hex":
            return File(path, bytes.fromhex(text), is_text=False)
    except (binascii.Error, ValueError) as error:
        raise fields.bad("content", f"is not {encoding}: {error}") from error
    return File(path, text.encode(), is_text=True)


def _program(
    fields: Fields, language: str, files: list[File], arguments: tuple[str, ...]
) -> Program:
    """The first text is the program; compilers want its name to say its language."""
    main = next(file for file in files if file.is_text)
    others = [file for file in files if file is not main]
    if len({file.name for file in files}) < len(files):
        raise fields.bad("files", "two of them have the same name")
    beside = tuple(SourceFile(file.name, file.content) for file in others)
    if language in _NAMED_BY_CONTENT:
        return Program(language, main.content.decode(), beside, arguments=arguments)
    suffix = _SUFFIXES.get(language, "")
    known = posixpath.splitext(main.name)[1] in (suffix, *_OTHER_SUFFIXES)
    # A name that was not given ends in ".code", and D makes no module of a name with two dots.
    stem = main.name.replace(".", "_") if suffix == ".d" else main.name
    name = main.name if not suffix or known else stem + suffix
    return Program(
        language,
        files=(SourceFile(name, main.content), *beside),
        entry_path=name,
        arguments=arguments,
    )


def _seconds(fields: Fields, name: str, most_s: float | None, default_ms: float) -> float:
    stated = _limit(fields, name, None if most_s is None else most_s * 1000)
    return (stated or default_ms) / 1000


def _limit(fields: Fields, name: str, most: float | None) -> float:
    """0 where it is not stated, 0, or -1."""
    stated = fields.number(name) if fields.has(name) else 0.0
    if stated == -1:
        return 0.0
    if stated < 0:
        raise fields.bad(name, "must be non-negative")
    if most is not None and stated > most:
        raise fields.bad(name, f"cannot exceed the configured limit of {most:.15g}")
    return stated


def answer_execute(request: Execute, execution: Execution) -> dict[str, object]:
    """The response for a program that ran, or that did not compile."""
    compiled = request.runtime.ours in COMPILED
    failed = execution.end == "compile-error" or execution.compiling
    stage = answer_stage(execution, failed=failed)
    body: dict[str, object] = {
        "run": stage,
        "language": request.runtime.language,
        "version": request.runtime.version_text,
    }
    if failed:
        body["compile"] = stage
    elif compiled:
        body["compile"] = answer_parts("", execution.compile_output.text, code=0)
    return body


def answer_stage(execution: Execution, *, failed: bool) -> dict[str, object]:
    """The answer of a run, or of the compiler where it failed."""
    stdout = "" if failed else execution.stdout.text
    stderr = execution.compile_output.text if failed else execution.stderr.text
    code: int | None = None
    name = message = status = None
    match execution.end:
        case "exited" | "compile-error":
            code = execution.exit_code if execution.end == "exited" else 1
            if code:
                status, message = "RE", f"Exited with error status {code}"
        case "signalled":
            name, status = _signal_name(execution.signal), "SG"
            message = f"Caught fatal signal {execution.signal}"
        case "security-violation":
            name, status, message = "SIGSYS", "SG", "Caught fatal signal 31"
        case end:
            status, message = _KILLED[end]
            name = "SIGKILL"
            if (
                end == "output-limit"
                and execution.stderr.total_bytes > execution.stdout.total_bytes
            ):
                status, message = "EL", "stderr length exceeded"
    return answer_parts(
        stdout,
        stderr,
        code=code,
        signal_name=name,
        message=message,
        status=status,
        memory=execution.peak_memory_bytes or None,
        cpu_ms=execution.cpu_time_s * 1000,
        wall_ms=execution.wall_time_s * 1000,
    )


def answer_parts(
    stdout: str,
    stderr: str,
    *,
    code: int | None,
    signal_name: str | None = None,
    message: str | None = None,
    status: str | None = None,
    memory: int | None = None,
    cpu_ms: float | None = None,
    wall_ms: float | None = None,
) -> dict[str, object]:
    """A stage of its parts."""
    return {
        "stdout": stdout,
        "stderr": stderr,
        "output": stdout + stderr,
        "code": code,
        "signal": signal_name,
        "message": message,
        "status": status,
        "memory": memory,
        "cpu_time": cpu_ms,
        "wall_time": wall_ms,
    }


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def refusal(error: BadField) -> Mapping[str, object]:
    """The body of a 400. A caller switches on nothing but the message."""
    known = {"language", "version", "files"}
    plain = len(error.path) == 1 and error.path[0] in known and "runtime" in error.problem
    return {"message": error.problem if plain else str(error)}
