"""SandboxFusion's `AutoEvalDataset` for `/submit`: a completion's code in a test program. Pure.

The row of the request holds the test program, with a mark where the code goes (before it, without a
mark), the files beside it, and the language of both. Differences:

1. A row in Java is refused: the peer takes classes out of texts by patterns of its own.
2. Go: where code and tests name different packages, the first counts.

The code runs in the process of its tests, whose exit code is the verdict: it can leave before they
run. `extra.append_flag` (Python) has the program print a word at its very end, without which it is
not accepted; that stops early leavers, but not code that reads the program's own file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from assay.clients.execution import Execution
from assay.compat.fields import Fields
from assay.compat.sandbox_fusion import extract
from assay.compat.sandbox_fusion.run import (
    RunCode,
    answer_run,
    make_job,
    make_program,
)

NAMES = ("AutoEvalDataset", "AutoEvalV4Dataset", "AutoEvalV5Dataset", "AutoEvalV6Dataset")
_INSERT = "#<INSERT>"
_COMPILE_S, _RUN_S = 40.0, 20.0
_JEST_REPORT = "jest-report.json"
_ENTRIES = {"python": 'if __name__ == "__main__":', "cpp": "int main()"}
_PACKAGE = re.compile(r"^[^\S\n]*package[^\S\n]+(\w+)[^\S\n]*;?", re.MULTILINE)
_IMPORT = re.compile(
    r'^[^\S\n]*import[^\S\n]*(?:\(([^()]*)\)|((?:[\w.]+[^\S\n]+)?"[^"\n]+"))', re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class AutoEval:
    """A request of `/submit` for an `AutoEvalDataset`.

    Attributes:
        id: the caller's name for the problem.
        run: what to run.
        code: the code that was taken.
        kind: how it was found.
        full_code: the program that is run.
        flag: what it must have printed; empty for nothing.
    """

    id: object
    run: RunCode
    code: str
    kind: str | None
    full_code: str
    flag: str


def wanted_by(body: object) -> bool:
    """Whether a request of `/submit` is one of these."""
    config = body.get("config") if isinstance(body, dict) else None
    return isinstance(config, dict) and config.get("dataset_type") in NAMES


def read_autoeval(body: object, flag: str) -> AutoEval:
    """Reads a request; `flag` is an unguessable word, for callers who want one printed.

    Raises:
        BadField: a field is missing or wrong, or a language is not served.
    """
    fields = Fields(body)
    config = fields.inner("config")
    extra = config.inner("extra", {})
    row = config.inner("provided_data")
    labels, test = row.loaded_object("labels"), row.loaded_object("test")
    written_in = labels.text("programming_language")
    language = labels.text("execution_language", written_in)
    if written_in == "java":
        raise labels.bad("programming_language", "may not be java: it is not served here")
    completion = fields.text("completion")
    found = extract.candidates(completion, written_in)
    code, kind = extract.choose(found, written_in)
    code = _without_entry(code, written_in)
    assets = test.loaded_object("asset").files() if test.has("asset") else {}
    text = test.text("code")
    if written_in == "html" and _INSERT not in text:
        assets["index.html"] = code.encode()
        full_code = text
    else:
        full_code = _inserted(code, text, quoted=extra.flag("repr_code"))
    if language in ("go", "go_test"):
        full_code = _one_go_file(full_code)
    if not (extra.flag("append_flag") and language == "python"):
        flag = ""
    if flag:
        full_code += f'\n\nprint("{flag}")'
    compile_s = config.seconds("compile_timeout", _COMPILE_S)
    run_s = config.seconds("run_timeout", _RUN_S)
    job = make_job(
        make_program(labels, language, full_code, assets, field="execution_language"),
        stdin=b"",
        compile_timeout_s=compile_s,
        run_timeout_s=run_s,
        fetch_paths=(_JEST_REPORT,) if language == "jest" else (),
    )
    run = RunCode(job, compile_s, run_s, {})
    return AutoEval(fields.identity("id"), run, code, kind, full_code, flag)


def _without_entry(code: str, language: str) -> str:
    for mark in filter(None, (_ENTRIES.get(language), "# Example usage")):
        if mark in code:
            code = code.partition(mark)[0].strip()
    return code


def _inserted(code: str, test: str, *, quoted: bool) -> str:
    before, mark, behind = test.partition(_INSERT)
    if not mark:
        code = code.partition("if __name__ ==")[0]
    if quoted:
        code = repr(code)
    return f"{before}{code}{behind.partition(_INSERT)[0]}" if mark else f"{code}\n{test}"


def _one_go_file(code: str) -> str:
    """One Go file of several: one package clause, then all imports, each once."""
    package = _PACKAGE.search(code)
    code = _PACKAGE.sub("", code)
    imports: dict[str, None] = {}
    for block, single in _IMPORT.findall(code):
        lines = (line.strip() for line in (block or single).splitlines())
        imports.update(dict.fromkeys(filter(None, lines)))
    listed = "".join(f"import {each}\n" for each in imports)
    name = package[1] if package else "main"
    return f"package {name}\n\n{listed}\n{_IMPORT.sub('', code)}"


def answer_autoeval(request: AutoEval, execution: Execution) -> dict[str, object]:
    """The response."""
    info = answer_run(request.run, execution)
    accepted = execution.ok and request.flag in execution.stdout.text
    report = next((file.content for file in execution.files if file.path == _JEST_REPORT), None)
    return {
        "id": request.id,
        "accepted": accepted,
        "extracted_code": request.code,
        "full_code": request.full_code,
        "test_code": None,
        "tests": [{"passed": accepted, "exec_info": info, "test_info": None}],
        "extracted_type": request.kind,
        "extra": {} if report is None else {"jest_cases": _jest_cases(report)},
    }


def _jest_cases(report: bytes) -> list[dict[str, object]]:
    """The tests of Jest's report, which the program may have forged."""
    try:
        return [
            {
                "passed": case["status"] == "passed",
                "full_name": _text(case["fullName"]),
                "file": _text(suite["testFilePath"]),
                "suite": " > ".join(case["ancestorTitles"]),
                "test": _text(case["title"]),
                "failure_messages": [_text(each) for each in case["failureMessages"]],
            }
            for suite in json.loads(report)["testResults"]
            for case in suite["testResults"]
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
