"""open-r1's Codeforces package for Piston: a program against one test, judged there. Pure.

open-r1's reward asks Piston for `c++17` or `cf_python3` and sends, beside the program, `input.txt`,
`correct_output.txt`, `grader_config` (TIME_LIMIT in seconds, MEMORY_LIMIT in MB, INPUT_MODE "stdio"
or "file") and sometimes `checker.py`; the run's stdout is "1" or "0". This module answers like that
package (guipenedo/piston, `codeforces` 1.0.0), except:

1. The expected output and the checker are never where the program runs. There they lie in its
   folder, removed by a script that runs as the same user.
2. The stack is the sandbox's 64 MiB instead of unlimited; C++ is `-O2 -std=gnu++17`.
3. What the program may print is bounded at 1 MiB and twice what is expected.
4. A checker that prints no number has broken, which there is always "0". Here it runs once more on
   the correct output. If it does not accept that, the test is at fault, and so is the answer. If it
   does, or the correct output is empty, the program's output is wrong: "0". An output that leaves
   no room for the checker's run counts as one that breaks it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.clients.execution import (
    Execution,
    ExecutionJob,
    Limits,
    Program,
    SandboxInfo,
    SourceFile,
)
from assay.clients.faults import make_fault
from assay.clients.types import Fault
from assay.compat.fields import Fields
from assay.compat.piston.run import (
    COMPILE_TIMEOUT_MS,
    answer_parts,
    answer_stage,
    read_files,
)
from assay.compat.piston.versions import fits
from assay.compat.programs import MIB
from assay.kit.reasons import Reason

LANGUAGES = {"c++17": "cpp", "cf_c++17": "cpp", "cf_python3": "python"}
_VERSION = (1, 0, 0)

CHECKER_S = 10.0
_MAX_OUTPUT_BYTES = 16 * MIB
_INPUT, _OUTPUT, _EXPECTED = "input.txt", "output.txt", "correct_output.txt"
_CONFIG, _CHECKER = "grader_config", "checker.py"
_SETTING = re.compile(r"^([A-Z_]+)=(.*)$", re.MULTILINE)
_YES_NO = re.compile(r"\b(?:yes|no)\b", re.IGNORECASE)
_LATE, _ABORTED = 124, 134  # the package's own exit codes


@dataclass(frozen=True, slots=True)
class CodeforcesTask:
    """A program and one test.

    Attributes:
        language: as the caller named it.
        job: the program's run.
        time_limit_s: the problem's.
        memory_limit_mb: the problem's; 0 where it states none.
        by_file: it reads input.txt and writes output.txt.
        given: its input, with Unix line ends.
        expected: None: the output is only returned.
        checker: a Python program that decides; empty for none.
    """

    language: str
    job: ExecutionJob
    time_limit_s: float
    memory_limit_mb: float
    by_file: bool
    given: str
    expected: str | None
    checker: str


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """What the package's script prints, and its exit code."""

    stdout: str
    stderr: str
    code: int


def is_task(body: object) -> bool:
    """Whether the request is for this package."""
    return isinstance(body, dict) and body.get("language") in tuple(LANGUAGES)


def read_task(body: object, info: SandboxInfo) -> CodeforcesTask:
    """Reads a task; `info` gives the sandbox's languages and greatest limits.

    Raises:
        BadField: a field or a setting is missing or wrong, or the language is not served.
    """
    fields = Fields(body)
    language, selector = fields.text("language"), fields.text("version")
    if info.find(LANGUAGES[language]) is None or not fits(selector, _VERSION):
        raise fields.bad("language", f"{language}-{selector[:40]} runtime is unknown")
    contents = {file.name: file.content.decode() for file in read_files(fields) if file.is_text}
    settings = Fields(dict(_SETTING.findall(contents.get(_CONFIG, ""))), ("files", _CONFIG))
    time_s = _setting(settings, "TIME_LIMIT", info.max_limits.wall_time_s)
    memory_mb = _setting(settings, "MEMORY_LIMIT", (info.max_limits.memory_bytes or 0) / MIB)
    by_file = settings.raw("INPUT_MODE", "stdio") == "file"
    given = _unix(contents.get(_INPUT, ""))
    expected = contents.get(_EXPECTED)
    limits = Limits(
        wall_time_s=time_s,
        memory_bytes=int(memory_mb * MIB) or None,
        output_bytes=min(2 * len((expected or "").encode()) + MIB, _MAX_OUTPUT_BYTES),
        compile_wall_time_s=COMPILE_TIMEOUT_MS / 1000,
    )
    source = next(iter(contents.values()))
    files = (SourceFile(_INPUT, given.encode()),) if by_file else ()
    job = ExecutionJob(
        Program(LANGUAGES[language], source, files),
        stdin=b"" if by_file else given.encode(),
        limits=limits,
        fetch_paths=(_OUTPUT,) if by_file else (),
    )
    checker = contents.get(_CHECKER, "")
    return CodeforcesTask(language, job, time_s, memory_mb, by_file, given, expected, checker)


def _setting(settings: Fields, name: str, most: float | None) -> float:
    text = settings.text(name, "")
    if not text and name == "MEMORY_LIMIT":
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= (most or value):
        raise settings.bad(name, f"must be a number above 0 and at most {most:.15g}")
    return value


def written(task: CodeforcesTask, execution: Execution) -> str:
    """The program's output, without empty lines."""
    data = execution.stdout.data
    if task.by_file:
        data = next((file.content for file in execution.files if file.path == _OUTPUT), b"")
    text = data.decode("utf-8", "replace")
    return "".join(line for line in text.splitlines(keepends=True) if line.strip("\r\n"))


def failure(task: CodeforcesTask, execution: Execution) -> ScriptOutput | None:
    """The verdict on a program that did not end well; None for one that did."""
    match execution.end:
        case "exited" if execution.exit_code == 0:
            if execution.stdout.truncated:
                return ScriptOutput("0\n", "Output isn't correct (too long)\n", 0)
            return None
        case "exited":
            code = execution.exit_code
        case "cpu-time-limit" | "wall-time-limit":
            text = f"Time limit exceeded ({task.time_limit_s:g}s)\n"
            return ScriptOutput("0\n", execution.stderr.text + text, _LATE)
        case "memory-limit":
            text = f"Memory limit exceeded ({task.memory_limit_mb:g}MB)\n"
            return ScriptOutput("0\n", execution.stderr.text + text, _ABORTED)
        case "signalled":
            code = 128 + execution.signal
        case _:
            code = 128 + 9
    text = f"Runtime error with exit code {code}\n"
    return ScriptOutput("0\n", execution.stderr.text + text, code)


def compared(task: CodeforcesTask, output: str) -> ScriptOutput:
    """The verdict without a checker: equal words, YES and NO in any case."""
    if task.expected is None:
        return ScriptOutput(output, "", 0)
    right = _words(_unix(task.expected)) == _words(output)
    return _judged(right, "diff", 0)


def checker_job(task: CodeforcesTask, output: str) -> ExecutionJob:
    """The checker's run; its arguments are the names of input, expected output and output."""
    texts = {_INPUT: task.given, _EXPECTED: _unix(task.expected or ""), _OUTPUT: output}
    files = tuple(SourceFile(name, text.encode()) for name, text in texts.items())
    return ExecutionJob(
        Program("python", task.checker, files, arguments=(_INPUT, _EXPECTED, _OUTPUT)),
        limits=Limits(wall_time_s=CHECKER_S),
    )


def checked(execution: Execution) -> ScriptOutput | None:
    """The verdict of a checker, which prints 1 or 100 for a right output; None: it has broken."""
    said = execution.stdout.text.strip()
    try:
        float(said)
    except ValueError:
        return None
    return _judged(said in ("1", "100"), "checker", _checker_code(execution))


def accepts(execution: Execution | None) -> bool:
    """Whether a checker found an output right; None is one that had no room to run."""
    verdict = None if execution is None else checked(execution)
    return verdict is not None and verdict.stdout == "1\n"


def unreadable(execution: Execution | None) -> ScriptOutput:
    """The verdict on an output that breaks a sound checker."""
    code = _LATE if execution is None else _checker_code(execution)
    return _judged(False, "the checker could not read it", code)


def broken_checker(execution: Execution | None) -> Fault:
    """The fault of a test whose checker does not accept its correct output."""
    if execution is None:
        text = "the checker's files are larger than a job of the sandbox may be"
        return make_fault(Reason.ITEM_TOO_LARGE, text)
    words = execution.stderr.text.strip()[-200:] or execution.stdout.text.strip()[:200]
    ending = f"{execution.end}, exit code {execution.exit_code}"
    text = f"the checker does not accept the correct output ({ending}): {words}"
    return make_fault(Reason.INVALID_TEST, text)


def _checker_code(execution: Execution) -> int:
    return execution.exit_code if execution.end == "exited" else _LATE


def _judged(right: bool, by: str, code: int) -> ScriptOutput:
    if right:
        return ScriptOutput("1\n", f"Output is correct ({by})\n", code)
    return ScriptOutput("0\n", f"Output isn't correct ({by})\n", code)


def answer_task(
    task: CodeforcesTask, execution: Execution, verdict: ScriptOutput | None
) -> dict[str, object]:
    """The response; `verdict` is None where the program did not compile."""
    body: dict[str, object] = {"language": task.language, "version": ".".join(map(str, _VERSION))}
    if verdict is None:
        failed = answer_stage(execution, failed=True)
        return body | {"compile": failed, "run": failed}
    ran = answer_parts(
        verdict.stdout,
        verdict.stderr,
        code=verdict.code,
        status="RE" if verdict.code else None,
        message=f"Exited with error status {verdict.code}" if verdict.code else None,
        memory=execution.peak_memory_bytes or None,
        cpu_ms=execution.cpu_time_s * 1000,
        wall_ms=execution.wall_time_s * 1000,
    )
    compiled = answer_parts("", execution.compile_output.text, code=0)
    return body | {"compile": compiled, "run": ran}


def answer_runtimes(info: SandboxInfo) -> list[dict[str, object]]:
    """The package's languages, as Piston lists them."""
    version = ".".join(map(str, _VERSION))
    return [
        {"language": name, "version": version, "aliases": []}
        for name, ours in LANGUAGES.items()
        if info.find(ours) is not None
    ]


def _words(text: str) -> list[str]:
    return _YES_NO.sub(lambda found: found.group().upper(), text).split()


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")
