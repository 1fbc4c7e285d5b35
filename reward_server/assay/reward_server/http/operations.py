"""What OpenAPI says of each path: a table, for people and for tools. Data alone.

Foreign formats are described as far as they are read; what else a peer sends is left alone.
"""

from __future__ import annotations

from typing import Any

_Json = dict[str, Any]

DESCRIPTION = (
    "One scoring path, in the formats of several trainers. A fault is never a number: /v1 answers "
    "with it in the item's place, other formats with what they have for it, else with a status and "
    "a problem (RFC 9457) that holds the reason and whether the same request may be sent again."
)


def _ref(name: str) -> _Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _body(schema: _Json, media_type: str = "application/json") -> _Json:
    return {"required": True, "content": {media_type: {"schema": schema}}}


def _answers(schema: _Json, text: str, media_type: str = "application/json") -> _Json:
    problem = {"application/problem+json": {"schema": _ref("Problem")}}
    return {
        "200": {"description": text, "content": {media_type: {"schema": schema}}},
        "4XX": {"description": "The request is refused.", "content": problem},
        "5XX": {"description": "No answer is to be had now.", "content": problem},
    }


def _foreign(schema: _Json, text: str) -> _Json:
    """Answers of a format that has words of its own for what fails, beside problems."""
    other = {"application/json": {"schema": _OPEN}}
    answers = _answers(schema, text)
    for status in ("4XX", "5XX"):
        answers[status]["content"] |= other
    return answers


def _query(name: str, text: str, **schema: Any) -> _Json:
    return {
        "name": name,
        "in": "query",
        "description": text,
        "schema": {"type": "string", **schema},
    }


def _post(tag: str, summary: str, body: _Json, answers: _Json, *parameters: _Json) -> _Json:
    told = {"tags": [tag], "summary": summary, "requestBody": body, "responses": answers}
    return {"post": {**told, "parameters": [*parameters, _TIMEOUT, _REQUEST_ID]}}


def _get(tag: str, summary: str, answers: _Json) -> _Json:
    return {"get": {"tags": [tag], "summary": summary, "responses": answers}}


def _object(required: list[str], **properties: _Json) -> _Json:
    return {"type": "object", "required": required, "properties": properties}


_TEXT: _Json = {"type": "string"}
_NUMBER: _Json = {"type": "number"}
_ANY: _Json = {}
_OPEN: _Json = {"type": "object"}
_TEXTS: _Json = {"type": "array", "items": _TEXT}
_NUMBERS: _Json = {"type": "array", "items": _NUMBER}
_TIMEOUT: _Json = {
    "name": "x-timeout-s",
    "in": "header",
    "description": "Seconds until the call's deadline; --http-timeout-s where it is not sent.",
    "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
}
_REQUEST_ID: _Json = {
    "name": "x-request-id",
    "in": "header",
    "description": "Your name for the call; it comes back and is in the server's log.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"},
}
_VERIFIER = _query("verifier", "Who judges; /v1/verifiers lists the names.")
_TASK = _query("task", "The kind of task, where no verifier is named.")

_WAIT = _query("wait_s", "Seconds that the call may wait for a slot; 8 where it is not said.")
_SECONDS: _Json = {"type": "number", "exclusiveMinimum": 0, "default": 10}
_PROMPT = _object(["id", "prompt"], id={"type": ["integer", "string"]}, prompt=_TEXT, labels=_OPEN)
_COMMAND: _Json = {
    "type": ["object", "null"],
    "properties": {
        "status": {"enum": ["Finished", "Error", "TimeLimitExceeded"]},
        "execution_time": {"type": ["number", "null"]},
        "return_code": {"type": ["integer", "null"]},
        "stdout": {"type": ["string", "null"]},
        "stderr": {"type": ["string", "null"]},
    },
}

SCHEMAS: _Json = {
    "RunCodeResponse": _object(
        ["status", "message"],
        status={"enum": ["Success", "Failed", "SandboxError"]},
        message=_TEXT,
        compile_result=_COMMAND,
        run_result=_COMMAND,
        files={"type": "object", "additionalProperties": _TEXT},
    ),
    "Problem": {
        "type": "object",
        "description": "Why there is no answer (RFC 9457).",
        "required": ["title", "status", "detail", "reason", "retryable", "request_id"],
        "properties": {
            "type": _TEXT,
            "title": {"type": "string", "description": "What the reason means."},
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "What happened, and the remedy."},
            "reason": {"type": "string", "description": "Of the lexicon in docs/errors.md."},
            "retryable": {"type": "boolean", "description": "The same request may be sent again."},
            "retry_after_s": {"type": "number", "description": "Not before so many seconds."},
            "request_id": _TEXT,
            "metadata": {"type": "object", "additionalProperties": _TEXT},
        },
    },
    "Grader": _object(
        ["type"],
        type={"enum": ["string_check", "text_similarity", "python", "score_model", "multi"]},
        name=_TEXT,
        input={"description": "A text with {{ templates }}; messages for score_model."},
        reference=_TEXT,
        operation={"enum": ["eq", "ne", "like", "ilike"]},
        evaluation_metric=_TEXT,
        source={"type": "string", "description": "Defines grade(sample, item) -> float."},
        model=_TEXT,
        range=_NUMBERS,
        graders={"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Grader"}},
        calculate_output=_TEXT,
    ),
}

PATHS: _Json = {
    "/v1/score": _post(
        "assay",
        "Scores a batch.",
        _body(_ref("reward.v1.BatchScoreRequest")),
        _answers(_ref("reward.v1.BatchScoreResponse"), "A result for each item, in their order."),
    ),
    "/v1/score:stream": _post(
        "assay",
        "Scores a batch; results come as they are ready, one JSON a line.",
        _body(_ref("reward.v1.BatchScoreRequest")),
        _answers(
            _ref("reward.v1.Result"),
            'A result a line; {"error": Problem} as the last line if it had to end early.',
            "application/x-ndjson",
        ),
    ),
    "/v1/verifiers": _get(
        "assay",
        "Who judges here, and the limits of a batch.",
        _answers(_ref("reward.v1.ListVerifiersResponse"), "The verifiers and profiles, by name."),
    ),
    "/get_reward": _post(
        "OpenRLHF",
        "OpenRLHF's remote reward model.",
        _body(_object(["query"], query=_TEXTS, prompts=_TEXTS, labels={"type": "array"})),
        _answers(
            _object(
                ["rewards", "scores"],
                rewards=_NUMBERS,
                scores=_NUMBERS,
                extra_logs={"type": "object", "additionalProperties": _NUMBERS},
            ),
            "Rewards of all queries.",
        ),
        _VERIFIER,
        _TASK,
        _query("response_after", "The response follows the last occurrence of this."),
    ),
    "/slime": _post(
        "slime",
        "slime's remote reward model.",
        _body(_object(["response"], prompt=_ANY, response=_TEXT, label=_ANY)),
        _answers({"type": ["number", "object"]}, "The reward, or with as=dict an object."),
        _VERIFIER,
        _TASK,
        _query("as", "What is answered.", enum=["number", "dict"], default="number"),
    ),
    "/verify": _post(
        "NeMo Gym",
        "Verifies a rollout, as a resources server of NeMo Gym.",
        _body(
            _object(
                ["responses_create_params", "response"],
                responses_create_params=_OPEN,
                response=_object(["output"], output={"type": "array"}),
            )
        ),
        _answers(_object(["reward"], reward=_NUMBER), "The rollout, with its reward."),
        _VERIFIER,
        _TASK,
    ),
    "/seed_session": _post(
        "NeMo Gym", "Nothing is kept for a session.", _body(_OPEN), _answers(_OPEN, "{}")
    ),
    "/aggregate_metrics": _post(
        "NeMo Gym",
        "Base statistics of verified rollouts.",
        _body(_object(["verify_responses"], verify_responses={"type": "array", "items": _OPEN})),
        _answers(_OPEN, "By task, and over all."),
    ),
    "/reverify_mode": _get(
        "NeMo Gym", "Rollouts may be verified again.", _answers(_TEXT, "stateless")
    ),
    "/v1/fine_tuning/alpha/graders/run": _post(
        "OpenAI",
        "Runs a grader.",
        _body(_object(["grader", "model_sample"], grader=_ref("Grader"), model_sample=_TEXT,
                      item=_ANY)),
        _answers(
            _object(["reward", "metadata"], reward={"type": ["number", "null"]}, metadata=_OPEN),
            "The reward; null where an error flag is true.",
        ),
    ),
    "/run_code": _post(
        "SandboxFusion",
        "Runs a program.",
        _body(
            _object(
                ["code", "language"],
                code=_TEXT,
                language=_TEXT,
                stdin={"type": ["string", "null"]},
                compile_timeout=_SECONDS,
                run_timeout=_SECONDS,
                memory_limit_MB={"type": "integer", "default": -1},
                files={"type": "object", "additionalProperties": {"type": ["string", "null"]}},
                fetch_files=_TEXTS,
            )
        ),
        _foreign(_ref("RunCodeResponse"), "How it ended; SandboxError where we could not run it."),
        _WAIT,
    ),
    "/submit": _post(
        "SandboxFusion",
        "Holds the code of a completion against tests that come with it.",
        _body(
            _object(
                ["dataset", "id", "completion", "config"],
                dataset=_TEXT,
                id={"type": ["integer", "string"]},
                completion=_TEXT,
                config=_object(["provided_data"], provided_data=_OPEN, dataset_type=_TEXT),
            )
        ),
        _foreign(_object(["accepted"], accepted={"type": "boolean"}), "Whether it passes."),
        _WAIT,
    ),
    "/get_prompts": _post(
        "SandboxFusion",
        "What to ask, from rows that come with the request.",
        _body(
            _object(
                ["config"],
                config=_object(
                    ["dataset_type", "provided_data"],
                    dataset_type=_TEXT,
                    provided_data={"type": "array", "items": _OPEN},
                ),
            )
        ),
        _foreign({"type": "array", "items": _PROMPT}, "A prompt for each row."),
    ),
    "/get_prompt_by_id": _post(
        "SandboxFusion",
        "The same of one row.",
        _body(
            _object(
                ["config"],
                config=_object(
                    ["dataset_type", "provided_data"], dataset_type=_TEXT, provided_data=_OPEN
                ),
            )
        ),
        _foreign(_PROMPT, "Its prompt."),
    ),
    "/run_jupyter": _post(
        "SandboxFusion",
        "Runs the cells of a notebook, in Python and not IPython.",
        _body(
            _object(
                ["cells"],
                cells=_TEXTS,
                total_timeout=_SECONDS,
                cell_timeout=_NUMBER,
                files={"type": "object", "additionalProperties": _TEXT},
                fetch_files=_TEXTS,
            )
        ),
        _foreign(
            _object(["status", "cells"], status=_TEXT, cells={"type": "array", "items": _OPEN}),
            "What each cell wrote, showed and raised.",
        ),
        _WAIT,
    ),
    "/v1/ping": _get("SandboxFusion", "It is there.", _answers(_TEXT, "pong")),
    "/api/v2/execute": _post(
        "Piston",
        "Runs a program.",
        _body(
            _object(
                ["language", "version", "files"],
                language=_TEXT,
                version=_TEXT,
                files={"type": "array", "items": _object(["content"], content=_TEXT)},
                stdin=_TEXT,
                args=_TEXTS,
            )
        ),
        _foreign(_object(["run"], run=_OPEN, compile=_OPEN), "How it ended."),
        _WAIT,
    ),
    "/api/v2/runtimes": _get(
        "Piston", "The languages.", _foreign({"type": "array", "items": _OPEN}, "By name.")
    ),
    "/api/v2/packages": _get(
        "Piston", "The same, as packages.", _foreign({"type": "array", "items": _OPEN}, "By name.")
    ),
    "/healthz": _get("probes", "The process lives.", _answers(_OPEN, "Always.")),
    "/readyz": _get("probes", "The server serves.", _answers(_OPEN, "503 while it does not.")),
    "/metrics": _get("probes", "Metrics for Prometheus.", _answers(_TEXT, "Text.", "text/plain")),
}  # fmt: skip
"""Path to path item. A path that no route has is left out of the document."""
