"""SandboxFusion's `/run_jupyter`: its JSON to a job of the sandbox, and results to JSON. Pure.

There is no kernel: the cells run as one program in one box, by `cells`, which says what is not
served. As there, a cell that raises does not end the others, and where the whole runs out of time,
no cell has a result.
"""

from __future__ import annotations

import base64
import inspect
import json
from dataclasses import dataclass
from functools import cache

from assay.clients.execution import Execution, ExecutionJob, Limits, Program, SourceFile
from assay.compat.fields import Fields
from assay.compat.programs import MIB
from assay.compat.sandbox_fusion import cells
from assay.compat.sandbox_fusion.run import command_results

TOTAL_TIMEOUT_S = 45.0


@dataclass(frozen=True, slots=True)
class RunJupyter:
    """A request of `/run_jupyter`.

    Attributes:
        job: what to run.
        total_timeout_s: by the clock, for all cells.
        fetched: the caller's names of the files to bring back, by their paths.
    """

    job: ExecutionJob
    total_timeout_s: float
    fetched: dict[str, str]


def read_run_jupyter(body: object) -> RunJupyter:
    """Reads a request.

    Raises:
        BadField: a field is missing or wrong.
    """
    fields = Fields(body)
    fields.raw("cells")
    texts = fields.texts("cells")
    given = {"cells": texts, "cell_timeout_s": max(0.0, fields.number("cell_timeout", 0))}
    total_s = fields.positive("total_timeout", TOTAL_TIMEOUT_S)
    memory = fields.number("memory_limit_MB", -1)
    if fields.text("kernel", "python3") != "python3":
        raise fields.bad("kernel", "must be python3")
    files = fields.files("files") | {cells.CELLS: json.dumps(given).encode()}
    fetched = {fields.own_path("fetch_files", path): path
               for path in fields.texts("fetch_files")}  # fmt: skip
    main = "assay_notebook.py"
    beside = tuple(SourceFile(path, data) for path, data in files.items())
    job = ExecutionJob(
        Program("python", files=(*beside, SourceFile(main, _source(texts))), entry_path=main),
        limits=Limits(wall_time_s=total_s, memory_bytes=int(memory * MIB) if memory > 0 else None),
        fetch_paths=(cells.RESULTS, *fetched),
    )
    return RunJupyter(job, total_s, fetched)


def _source(texts: tuple[str, ...]) -> bytes:
    """The cells stand in it as comments too, where the sandbox looks for their imports."""
    listed = "\n".join(f"# {line}" for text in texts for line in text.splitlines())
    return _runner() + listed.encode() + b"\n"


def answer_run_jupyter(request: RunJupyter, execution: Execution) -> dict[str, object]:
    """The response for cells that ran, or that ran out of something."""
    _, driver, message = command_results(execution, False)
    files = {file.path: file.content for file in execution.files}
    try:
        results = json.loads(files.pop(cells.RESULTS, b"")) if execution.ok else None
        # The cells may have written what no answer can hold.
        json.dumps([[[results]]], allow_nan=False)
    except (ValueError, RecursionError):
        results = None
    whole = isinstance(results, list)
    return {
        "status": "Success" if whole else "Failed",
        "message": message,
        "driver": driver,
        "cells": results if whole else [],
        "executor_pod_name": None,
        "files": {
            request.fetched.get(path, path): base64.b64encode(content).decode()
            for path, content in files.items()
            if whole
        },
    }


@cache
def _runner() -> bytes:
    return inspect.getsource(cells).encode()
