"""A caller's own logic of extraction, `custom_extract_logic`, run in the sandbox. Pure.

The peer executes it in its own server. Here it is a program: it sees the completion and the
functions of `extract`, and submits its blocks in a file. Logic that breaks on a completion has
found nothing in it; logic that has never worked, and breaks on a plain fenced block too, is the
caller's mistake.
"""

from __future__ import annotations

import inspect
import json
from functools import cache

from assay.clients.execution import Execution, ExecutionJob, Limits, Program, SourceFile
from assay.compat.sandbox_fusion import extract
from assay.compat.sandbox_fusion.extract import CodeBlock

LOGIC_TIMEOUT_S = 10.0
"""For one completion, in seconds."""

_MODULE = "assay_extract"
_BLOCKS = "assay_blocks.json"
_DRIVER = f"""\
import json
import sys

import {_MODULE} as extract

given = json.load(sys.stdin)
blocks = []
context = {{
    "completion": given["completion"],
    "submit_code_blocks": blocks.extend,
    "CodeBlock": extract.CodeBlock,
    "extract_fenced_code": extract.extract_fenced_code,
    "extract_heuristic_code": extract.extract_heuristic_code,
}}
exec(compile(given["logic"], "custom_extract_logic", "exec"), context)
with open({_BLOCKS!r}, "w", encoding="utf-8") as file:
    json.dump([[int(b.priority), str(b.code), str(b.language)] for b in blocks], file)
"""


class LogicError(ValueError):
    """The caller's logic failed; the message says how."""


def custom_job(completion: str, logic: str) -> ExecutionJob:
    """The job that runs some logic on a completion."""
    return ExecutionJob(
        Program("python", _DRIVER, files=(SourceFile(f"{_MODULE}.py", _source()),)),
        stdin=json.dumps({"completion": completion, "logic": logic}).encode(),
        limits=Limits(cpu_time_s=LOGIC_TIMEOUT_S, wall_time_s=LOGIC_TIMEOUT_S),
        fetch_paths=(_BLOCKS,),
    )


def read_blocks(execution: Execution) -> list[CodeBlock]:
    """The blocks that the logic submitted.

    Raises:
        LogicError: it raised, reached a limit, or submitted something else.
    """
    if not execution.ok:
        last = execution.stderr.text.strip().rpartition("\n")[2][:200]
        raise LogicError(last or f"it ended by {execution.end}")
    try:
        found = json.loads(next(file.content for file in execution.files))
        return [CodeBlock(int(priority), str(code), str(tag)) for priority, code, tag in found]
    except (StopIteration, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise LogicError("it left no readable list of blocks") from error


@cache
def _source() -> bytes:
    return inspect.getsource(extract).encode()
