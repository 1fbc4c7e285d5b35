"""SandboxFusion's `/run_code`: its JSON to a job of the sandbox, and its outcome to JSON. Pure.

The format is that of github.com/bytedance/SandboxFusion, as of 2026-07 (469de08). Differences:

1. Time-outs and memory above the sandbox's maximum are refused. `memory_limit_MB` of 0 or less is
   the language's default limit.
2. Paths are relative to the program's folder, which is also /mnt: nothing outside it can be written
   or fetched.
3. A limit other than time (memory, output, processes) or a violation is an end by a signal, -9 or
   -31, and `message` says which limit it was.
4. TypeScript is compiled, so it has a `compile_result`. Its types are not checked, as there; the
   line that says so makes the compiler's line numbers one too high. C#, Kotlin's scripts and Racket
   have one too: the peer compiles them within the run, so `run_timeout` is for both.
5. Go's tests are compiled apart from their run, so `go_test` has a `compile_result`, and the last
   line of `go test` stands behind the program's own output.
6. A compiler that failed has the `return_code` 1. The `execution_time` of one that succeeded is
   what the sandbox spent besides the run.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

from assay.clients.execution import (
    Execution,
    ExecutionJob,
    Limits,
    Output,
    Program,
    SourceFile,
)
from assay.clients.types import Fault
from assay.compat.fields import BadField, Fields
from assay.compat.programs import DEFAULT_TIMEOUT_S, MIB, is_callers, is_retryable

# SandboxFusion's names, and those of ours that it lacks.
LANGUAGES = {
    "python": "python",
    "c": "c",
    "cpp": "cpp",
    "nodejs": "javascript",
    "js": "javascript",
    "javascript": "javascript",
    "ts": "typescript",
    "typescript": "typescript",
    "go": "go",
    "go_test": "go",
    "java": "java",
    "junit": "junit",
    "rust": "rust",
    "bash": "bash",
    "sql": "sql",
    "pytest": "pytest",
    "jest": "jest",
    "perl": "perl",
    "ruby": "ruby",
    "php": "php",
    "lua": "lua",
    "R": "r",
    "r": "r",
    "racket": "racket",
    "csharp": "csharp",
    "D_ut": "d_ut",
    "d_ut": "d_ut",
    "d": "d",
    "scala": "scala",
    "kotlin": "kotlin",
    "kotlin_script": "kotlin",
    "verilog": "verilog",
}
COMPILED = frozenset({
    "c", "cpp", "csharp", "d", "d_ut", "go", "java", "junit", "kotlin", "racket", "rust", "scala",
    "typescript", "verilog",
})  # fmt: skip
_MAIN_FILES = {"python": "main.py", "c": "main.c", "cpp": "main.cpp", "rust": "main.rs",
               "bash": "main.sh", "typescript": "main.ts", "go": "main.go", "perl": "main.pl",
               "ruby": "main.rb", "php": "main.php", "lua": "main.lua", "r": "main.R",
               "racket": "main.rkt", "csharp": "main.cs", "d": "main.d", "d_ut": "main.d",
               "scala": "main.scala", "kotlin": "main.kt", "verilog": "main.sv",
               "pytest": "test_main.py", "jest": "main.test.ts"}  # fmt: skip
# The peer's names that are another kind of program in a language, by its main file.
_KINDS = {"go_test": "main_test.go", "kotlin_script": "main.kts"}
# The peer compiles these within the run, so that its clients give the run the time for both.
_COMPILED_IN_RUN = frozenset({"csharp", "kotlin_script", "racket"})
_MOST_COMPILE_S = 60.0
_UNCHECKED = "// @ts-nocheck\n"
_IGNORED = "IGNORE_THIS_FILE"  # the peer's word for files that are not written
SIGKILL, SIGSYS = 9, 31


CommandResult = dict[str, object]


@dataclass(frozen=True, slots=True)
class RunCode:
    """A request of `/run_code`. Time-outs are by the clock.

    Attributes:
        job: what to run.
        compile_timeout_s: of the compilation.
        run_timeout_s: of the run.
        fetched: the caller's names of the files to bring back, by their paths.
    """

    job: ExecutionJob
    compile_timeout_s: float
    run_timeout_s: float
    fetched: dict[str, str]

    @property
    def compiled(self) -> bool:
        """Whether its language is compiled here."""
        return self.job.program.language in COMPILED


def read_run_code(body: object) -> RunCode:
    """Reads a request.

    Raises:
        BadField: a field is missing or wrong, or the language is not served.
    """
    fields = Fields(body)
    name = fields.text("language")
    compile_timeout_s = fields.positive("compile_timeout", DEFAULT_TIMEOUT_S)
    run_timeout_s = fields.positive("run_timeout", DEFAULT_TIMEOUT_S)
    compile_timeout_s = compile_time_s(name, compile_timeout_s, run_timeout_s)
    memory = fields.number("memory_limit_MB", -1)
    stdin = fields.text("stdin") if fields.has("stdin") else ""
    files = {path: data for path, data in fields.files("files").items() if _IGNORED not in path}
    fetched = {fields.own_path("fetch_files", path): path for path in
               fields.texts("fetch_files")}  # fmt: skip
    program = make_program(fields, name, fields.text("code"), files)
    return RunCode(
        make_job(
            program,
            stdin=stdin.encode(),
            compile_timeout_s=compile_timeout_s,
            run_timeout_s=run_timeout_s,
            memory_bytes=int(memory * MIB) if memory > 0 else None,
            fetch_paths=tuple(fetched),
        ),
        compile_timeout_s,
        run_timeout_s,
        fetched,
    )


def make_program(
    fields: Fields, language: str, code: str, files: dict[str, bytes], *, field: str = "language"
) -> Program:
    """The program of some code and files; `field` named the `language`, in the peer's words.

    Raises:
        BadField: the language is not served.
    """
    ours = LANGUAGES.get(language)
    if ours is None:
        raise fields.bad(field, f"{language[:60]!r} is not served; {_known()} are")
    main = _KINDS.get(language) or _MAIN_FILES.get(ours, "")
    beside = tuple(SourceFile(path, data) for path, data in files.items())
    if ours == "junit" and not code:
        first = next((path for path in files if path.endswith(".java")), "")
        return Program(ours, files=beside, entry_path=first)
    if ours == "typescript":
        code = _UNCHECKED + code
    elif language == "php" and "<?php" not in code:
        code = f"<?php {code}"
    if language in _KINDS or main in files:
        # Under a name of its own, since a file has the usual one.
        entry = main if main not in files else f"run_code_{main}"
        return Program(ours, files=(*beside, SourceFile(entry, code.encode())), entry_path=entry)
    return Program(ours, source=code, files=beside)


def compile_time_s(language: str, compile_timeout_s: float, run_timeout_s: float) -> float:
    """The compiler's time; where the peer has none, as long as the run's."""
    if language in _COMPILED_IN_RUN:
        return max(compile_timeout_s, min(run_timeout_s, _MOST_COMPILE_S))
    return compile_timeout_s


def _known() -> str:
    return ", ".join(sorted(LANGUAGES))


def make_job(
    program: Program,
    *,
    stdin: bytes,
    compile_timeout_s: float,
    run_timeout_s: float,
    memory_bytes: int | None = None,
    fetch_paths: tuple[str, ...] = (),
    output_bytes: int | None = None,
) -> ExecutionJob:
    """A job with the limits that the format knows."""
    return ExecutionJob(
        program,
        stdin=stdin,
        limits=Limits(
            wall_time_s=run_timeout_s,
            memory_bytes=memory_bytes,
            output_bytes=output_bytes,
            compile_wall_time_s=compile_timeout_s,
        ),
        fetch_paths=fetch_paths,
    )


def answer_run(request: RunCode, execution: Execution) -> dict[str, object]:
    """The response for a program that ran, or that did not compile."""
    compile_result, run_result, message = command_results(execution, request.compiled)
    if run_result and request.job.program.entry_path.endswith(_KINDS["go_test"]):
        _add_last_line(run_result)
    return {
        "status": "Success" if execution.ok else "Failed",
        "message": message,
        "compile_result": compile_result,
        "run_result": run_result,
        "executor_pod_name": None,
        "files": {
            request.fetched.get(file.path, file.path): base64.b64encode(file.content).decode()
            for file in execution.files
        },
    }


def _add_last_line(result: CommandResult) -> None:
    if result["status"] == "Finished":
        verdict = "FAIL" if result["return_code"] else "ok  "
        said = f"{verdict}\tcommand-line-arguments\t{result['execution_time']:.3f}s\n"
        result["stdout"] = f"{result['stdout']}{said}"


def answer_fault(fault: Fault) -> dict[str, object]:
    """The response for a program that we could not run."""
    return {
        "status": "SandboxError",
        "message": f"{fault.reason}: {fault.message}",
        "compile_result": None,
        "run_result": None,
        "executor_pod_name": None,
        "files": {},
    }


def fault_status(fault: Fault) -> int:
    """The HTTP status of a fault.

    504 where it may be tried again: the only one that verl's client tries again; ROLL's tries any.
    422 for what the caller must change, and 200 for the rest, as the peer has it.
    """
    if is_retryable(fault):
        return 504
    return 422 if is_callers(fault) else 200


def refusal(error: BadField) -> dict[str, object]:
    """The body of a 422, in the form of the peer's framework."""
    location = ["body", *error.path]
    return {"detail": [{"loc": location, "msg": error.problem, "type": "value_error"}]}


def fault_body(fault: Fault) -> dict[str, object]:
    """The body that belongs to `fault_status`."""
    body = answer_fault(fault)
    if is_callers(fault):
        body["detail"] = [{"loc": ["body"], "msg": body["message"], "type": fault.reason}]
    return body


def command_results(
    execution: Execution, compiled: bool
) -> tuple[CommandResult | None, CommandResult | None, str]:
    """`compile_result`, `run_result` and `message`."""
    if execution.end == "compile-error":
        ended = _finished(execution.wall_time_s, 1, "", execution.compile_output.text)
        return ended, None, ""
    if execution.compiling:
        words = execution.compile_output.text
        result, message = _ended(execution, "", words)
        return result, None, f"while it was compiled: {message}" if message else ""
    run_result, message = _ended(execution, execution.stdout.text, execution.stderr.text)
    for name, output in (("stdout", execution.stdout), ("stderr", execution.stderr)):
        if output.truncated:
            message += _cut(name, output)
    compile_result = None
    if compiled:
        spent_s = max(0.0, execution.service_s - execution.wall_time_s)
        compile_result = _finished(spent_s, 0, "", execution.compile_output.text)
    return compile_result, run_result, message.strip()


def _ended(execution: Execution, stdout: str, stderr: str) -> tuple[CommandResult, str]:
    seconds = execution.wall_time_s
    match execution.end:
        case "exited":
            return _finished(seconds, execution.exit_code, stdout, stderr), ""
        case "signalled":
            return _finished(seconds, -execution.signal, stdout, stderr), ""
        case "cpu-time-limit" | "wall-time-limit":
            late = command_result("TimeLimitExceeded", seconds, None, stdout, stderr)
            return late, execution.end
        case "security-violation":
            return _finished(seconds, -SIGSYS, stdout, stderr), execution.end
    return _finished(seconds, -SIGKILL, stdout, stderr), execution.end


def _cut(name: str, output: Output) -> str:
    return f" {name} has {output.total_bytes} bytes, of which the first {len(output.data)} are kept"


def _finished(seconds: float, code: int, stdout: str, stderr: str) -> CommandResult:
    return command_result("Finished", seconds, code, stdout, stderr)


def command_result(
    status: str, seconds: float, code: int | None, stdout: str = "", stderr: str = ""
) -> CommandResult:
    """What a command came to, in the peer's words."""
    return {
        "status": status,
        "execution_time": seconds,
        "return_code": code,
        "stdout": stdout,
        "stderr": stderr,
    }
