"""What OpenAPI says of SandboxFusion's endpoints. Data alone."""

from __future__ import annotations

from assay.compat.sandbox import WAIT
from assay.kit.http import operations as op

_SECONDS: op.Json = {"type": "number", "exclusiveMinimum": 0, "default": 10}
_PROMPT = op.object_of(
    ["id", "prompt"], id={"type": ["integer", "string"]}, prompt=op.TEXT, labels=op.ANY_OBJECT
)
_COMMAND: op.Json = {
    "type": ["object", "null"],
    "properties": {
        "status": {"enum": ["Finished", "Error", "TimeLimitExceeded"]},
        "execution_time": {"type": ["number", "null"]},
        "return_code": {"type": ["integer", "null"]},
        "stdout": {"type": ["string", "null"]},
        "stderr": {"type": ["string", "null"]},
    },
}

OPERATIONS: op.Json = {
    "/run_code": op.post(
        "SandboxFusion",
        "Runs a program.",
        op.body(
            op.object_of(
                ["code", "language"],
                code=op.TEXT,
                language=op.TEXT,
                stdin={"type": ["string", "null"]},
                compile_timeout=_SECONDS,
                run_timeout=_SECONDS,
                memory_limit_MB={"type": "integer", "default": -1},
                files={"type": "object", "additionalProperties": {"type": ["string", "null"]}},
                fetch_files=op.TEXTS,
            )
        ),
        op.foreign(
            op.ref("RunCodeResponse"), "How it ended; SandboxError where we could not run it."
        ),
        WAIT,
    ),
    "/submit": op.post(
        "SandboxFusion",
        "Holds the code of a completion against tests that come with it.",
        op.body(
            op.object_of(
                ["dataset", "id", "completion", "config"],
                dataset=op.TEXT,
                id={"type": ["integer", "string"]},
                completion=op.TEXT,
                config=op.object_of(
                    ["provided_data"], provided_data=op.ANY_OBJECT, dataset_type=op.TEXT
                ),
            )
        ),
        op.foreign(op.object_of(["accepted"], accepted={"type": "boolean"}), "Whether it passes."),
        WAIT,
    ),
    "/get_prompts": op.post(
        "SandboxFusion",
        "What to ask, from rows that come with the request.",
        op.body(
            op.object_of(
                ["config"],
                config=op.object_of(
                    ["dataset_type", "provided_data"],
                    dataset_type=op.TEXT,
                    provided_data={"type": "array", "items": op.ANY_OBJECT},
                ),
            )
        ),
        op.foreign({"type": "array", "items": _PROMPT}, "A prompt for each row."),
    ),
    "/get_prompt_by_id": op.post(
        "SandboxFusion",
        "The same of one row.",
        op.body(
            op.object_of(
                ["config"],
                config=op.object_of(
                    ["dataset_type", "provided_data"],
                    dataset_type=op.TEXT,
                    provided_data=op.ANY_OBJECT,
                ),
            )
        ),
        op.foreign(_PROMPT, "Its prompt."),
    ),
    "/run_jupyter": op.post(
        "SandboxFusion",
        "Runs the cells of a notebook, in Python and not IPython.",
        op.body(
            op.object_of(
                ["cells"],
                cells=op.TEXTS,
                total_timeout=_SECONDS,
                cell_timeout=op.NUMBER,
                files={"type": "object", "additionalProperties": op.TEXT},
                fetch_files=op.TEXTS,
            )
        ),
        op.foreign(
            op.object_of(
                ["status", "cells"], status=op.TEXT, cells={"type": "array", "items": op.ANY_OBJECT}
            ),
            "What each cell wrote, showed and raised.",
        ),
        WAIT,
    ),
    "/v1/ping": op.get("SandboxFusion", "It is there.", op.answers(op.TEXT, "pong")),
}

SCHEMAS: op.Json = {
    "RunCodeResponse": op.object_of(
        ["status", "message"],
        status={"enum": ["Success", "Failed", "SandboxError"]},
        message=op.TEXT,
        compile_result=_COMMAND,
        run_result=_COMMAND,
        files={"type": "object", "additionalProperties": op.TEXT},
    ),
}
