"""NeMo Gym's resources server: /verify, /seed_session, tools, /aggregate_metrics, /reverify_mode.

POST /verify takes a rollout ({"responses_create_params": ..., "response": an OpenAI Response, ...}
and its data set's fields) and returns it with `reward`, `reward_components` and the verdict. The
URL chooses the verifier (?verifier=math); else the fields of Gym's own environments do:

    verifier_metadata.unit_tests         code
    instruction_id_list (or there)       ifeval; grading_mode fraction is its scoring
    schema_str, schema_type json         json-schema
    verifier.type citation_if            citations
    metadata.source_dataset, answer      reasoning-gym; the whole text where it has no <answer>
    extraction_mode, expected_answer     match
    options, expected_answer             choice
    expected_answer                      --http-verifier, else math

The response is the text of its messages, without reasoning and tool calls.

A fault is an error of HTTP. With --http-mask-faults it is Gym's own failed row: HTTP 200, reward
0.0 because the format asks for a number, `_ng_failure_class` and `_ng_failure_judge_error`, by
which its collection drops the row and asks again, and `mask_sample`, at the top and in
`instance_config`, by which NeMo RL leaves it out of the loss *and counts its 0 in the baseline of
its group*. `_ng_failure_terminal` is set where asking again cannot help.
"""

from __future__ import annotations

import json
import statistics
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.api.execution.v1 import execution_pb2
from assay.api.reward.v1 import reward_pb2
from assay.clients.execution import CallTest, StdioTest, TestSuite, suite_to_proto
from assay.clients.trainers.common.gym_rows import FAILED_OVER_HTTP, unsaid
from assay.compat.items import Parameters, fault_of, make_item, text_of
from assay.compat.nemo_gym_tools import Tools, read_seat
from assay.kit.errors import CallError
from assay.kit.http import operations as op
from assay.kit.http.codec import malformed, read_object
from assay.kit.http.faces import Face
from assay.kit.http.problems import http_status
from assay.kit.reasons import Reason
from assay.reward_server.http.front import RewardFront
from assay.reward_server.http.operations import TASK, VERIFIER

_GREATEST = 1e100  # what is beyond is no measurement, and its square no number
TASK_INDEX = "_ng_task_index"
ROLLOUT_INDEX = "_ng_rollout_index"
_EXTRACT = {
    "boxed": "boxed",
    "final_answer": "auto",
    "last_line": "last-line",
    "full_response": "whole",
}
_ANSWERS = ("expected_answer", "expected_result", "answer", "ground_truth", "label")


def read(body: dict[str, Any], chosen: tuple[str, str], default: str = "") -> reward_pb2.Item:
    """The item of a rollout.

    Without `chosen` (verifier, task) its fields say who judges, or else `default`.

    Raises:
        BadRequestError: MALFORMED_REQUEST: there is no response, or a field has another shape.
    """
    response = body.get("response")
    asked = body.get("responses_create_params")
    if not isinstance(response, dict) or not isinstance(response.get("output"), list):
        raise malformed("response must be an object with the list output")
    if not isinstance(asked, dict):
        raise malformed("responses_create_params must be an object")
    text = response_text(response["output"])
    item: dict[str, Any] = {"prompt": asked.get("input")}
    if any(chosen):
        item["label"] = _label(body)
    else:
        name, found = _by_fields(body, text)
        chosen = (name or default or "math", "")
        item |= found
    made = make_item("0", text, chosen, **item)
    for part in response["output"]:
        if isinstance(part, dict) and part.get("type") == "function_call":
            made.tool_calls.add(name=str(part.get("name", "")), text=str(part.get("arguments", "")))
    return made


def response_text(output: list[Any]) -> str:
    """The texts of the assistant's messages, joined."""
    return "".join(
        text_of(part.get("content"))
        for part in output
        if isinstance(part, dict) and part.get("type", "message") == "message"
    )


def answer(body: dict[str, Any], result: reward_pb2.Result) -> dict[str, Any]:
    """The rollout with its outcome; what an earlier verification wrote is removed."""
    body = unsaid(body)
    error = fault_of([result])
    if error is not None:
        return {**body, **failure(error, body.get("instance_config"))}
    judgement = result.judgement
    said = {
        "reward": judgement.reward,
        "reward_components": {part.name: part.score for part in judgement.components},
        "verdict": judgement.verdict,
    }
    if judgement.HasField("extracted_answer"):
        said["extracted_answer"] = judgement.extracted_answer
    return {**body, **said}


def failure(error: CallError, instance: object = None) -> dict[str, Any]:
    """The fields of a failed row; NeMo RL looks for the mask in its `instance_config`."""
    row: dict[str, Any] = {
        "reward": 0.0,
        "_ng_failure_class": FAILED_OVER_HTTP,
        "_ng_failure_judge_error": f"{error.reason}: {error}",
        "mask_sample": True,
        "instance_config": {
            **(instance if isinstance(instance, dict) else {}),
            "mask_sample": True,
        },
    }
    if http_status(error) < 429 and error.reason != Reason.LEASE_EXPIRED:
        row["_ng_failure_terminal"] = True
    return row


def aggregate(responses: list[dict[str, Any]]) -> dict[str, Any]:
    """Gym's base statistics over verified rollouts, by task and over all, without failed rows.

    Raises:
        BadRequestError: MALFORMED_REQUEST: an index is no number.
    """
    kept = [row for row in responses if "_ng_failure_class" not in row]
    if not all(isinstance(row.get(TASK_INDEX, 0), int) for row in kept):
        raise malformed(f"{TASK_INDEX} must be a whole number")
    tasks: dict[int, list[dict[str, Any]]] = {}
    for row in kept:
        tasks.setdefault(row.get(TASK_INDEX, 0), []).append(row)
    groups = [
        {TASK_INDEX: task, "num_rollouts": len(rows), **_statistics(rows)}
        for task, rows in sorted(tasks.items())
    ]
    overall = _statistics(kept)
    return {
        "group_level_metrics": groups,
        "agent_metrics": overall,
        "key_metrics": {name: value for name, value in overall.items() if name.startswith("mean/")},
    }


def routes(front: RewardFront) -> list[Route]:
    """/verify, /seed_session, the tools, /aggregate_metrics, /reverify_mode."""
    tools = Tools(front)

    async def verify(request: Request) -> Response:
        body = await read_object(request)
        seat = read_seat(request.cookies)
        await tools.close(seat)
        if seat.error is not None:
            if not front.mask_faults:
                raise seat.error
            return JSONResponse(
                {**unsaid(body), **failure(seat.error, body.get("instance_config"))}
            )
        chosen = request.query_params.get("verifier", ""), request.query_params.get("task", "")
        item = read(body, chosen, front.verifier)
        results = await front.score(request, [item])
        error = fault_of(results)
        if error is not None and not front.mask_faults:
            raise error
        return JSONResponse(answer(body, results[0]))

    async def seed_session(request: Request) -> Response:
        body = await read_object(request) if await request.body() else {}
        return await tools.seed(request, body)

    async def aggregate_metrics(request: Request) -> Response:
        rows = (await read_object(request)).get("verify_responses")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise malformed("verify_responses must be a list of objects")
        return JSONResponse(aggregate(rows))

    async def reverify_mode(_: Request) -> Response:
        return JSONResponse("stateless")

    return [
        Route("/verify", verify, methods=["POST"]),
        Route("/seed_session", seed_session, methods=["POST"]),
        Route("/execute_python", tools.execute_python, methods=["POST"]),
        Route("/stateful_python_code_exec", tools.stateful_python, methods=["POST"]),
        Route("/end_session", tools.end_session, methods=["POST"]),
        Route("/aggregate_metrics", aggregate_metrics, methods=["POST"]),
        Route("/reverify_mode", reverify_mode),
    ]


def _by_fields(body: dict[str, Any], text: str) -> tuple[str, dict[str, Any]]:
    """The verifier by the fields, empty for none, and the rest of the item."""
    metadata = body.get("verifier_metadata")
    fields = {**body, **(metadata if isinstance(metadata, dict) else {})}
    parameters: Parameters
    if isinstance(fields.get("unit_tests"), dict):
        return "code", {"tests": _tests(fields["unit_tests"])}
    if "instruction_id_list" in fields:
        data = {name: fields.get(name) for name in ("instruction_id_list", "kwargs")}
        parameters = {"scoring": "fraction"} if fields.get("grading_mode") == "fraction" else {}
        return "ifeval", {"data": data, "parameters": parameters}
    row = fields.get("verifier")
    if isinstance(row, dict) and row.get("type") == "citation_if":
        return "citations", {"data": row}
    if "schema_str" in fields:
        return "json-schema", {"data": _schema(fields)}
    return _by_answer(fields, text)


def _by_answer(fields: dict[str, Any], text: str) -> tuple[str, dict[str, Any]]:
    """As `_by_fields`, of environments that compare a response with an answer."""
    parameters: Parameters
    source = fields.get("metadata")
    if isinstance(source, dict) and "source_dataset" in source:
        data = {name: fields.get(name) for name in ("question", "answer")} | {"metadata": source}
        parameters = {} if "<answer>" in text else {"extract": "whole"}  # as the environment does
        return "reasoning-gym", {"data": data, "parameters": parameters}
    extract = _EXTRACT.get(str(fields.get("extraction_mode")))
    if extract is not None:
        parameters = {"extract": extract, "numbers": True}
        if fields.get("case_sensitive") is True:
            parameters = {**parameters, "case_sensitive": True}
        return "match", {"label": _label(fields), "parameters": parameters}
    options = _options(fields.get("options"))
    if options:
        return "choice", {"label": _label(fields), "parameters": {"choices": options}}
    return "", {"label": _label(fields)}


def _label(fields: dict[str, Any]) -> Any:
    return next((fields[name] for name in _ANSWERS if fields.get(name) is not None), None)


def _options(options: object) -> list[str]:
    if not isinstance(options, list):
        return []
    pairs = [pair for one in options if isinstance(one, dict) for pair in one.items()]
    return [str(text) for _, text in sorted(pairs, key=lambda pair: str(pair[0])) if text]


def _schema(fields: dict[str, Any]) -> Any:
    if fields.get("schema_type", "json") != "json":
        raise malformed("schema_type must be json: there is no verifier of the others")
    try:
        return json.loads(str(fields["schema_str"]))
    except ValueError:
        raise malformed("schema_str is not JSON") from None


def _tests(unit_tests: dict[str, Any]) -> execution_pb2.TestSuite:
    """Tests by stdin and stdout, or calls of fn_name with a JSON value a line."""
    inputs, outputs = unit_tests.get("inputs"), unit_tests.get("outputs")
    name = unit_tests.get("fn_name")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise malformed("unit_tests must hold the lists inputs and outputs")
    if len(inputs) != len(outputs) or not inputs:
        raise malformed("inputs and outputs of unit_tests must be as many, and at least one")
    pairs = zip(inputs, outputs, strict=True)
    if not name:
        return suite_to_proto(
            TestSuite([StdioTest(str(given).encode(), str(want).encode()) for given, want in pairs])
        )
    try:
        calls = [CallTest(str(name), *_call(given, want)) for given, want in pairs]
        return suite_to_proto(TestSuite(calls))
    except (TypeError, ValueError, RecursionError) as error:
        raise malformed(f"unit_tests: {error}") from None


def _call(given: object, want: object) -> tuple[list[Any], Any]:
    if isinstance(given, str):
        return [json.loads(line) for line in given.splitlines() if line], json.loads(str(want))
    return (given if isinstance(given, list) else [given]), want


def _statistics(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Mean, least, greatest, median and deviation of each numeric field."""
    columns: dict[str, list[float]] = {}
    for row in rows:
        response = row.get("response")
        usage = response.get("usage") if isinstance(response, dict) else None
        for name, value in {**row, **(usage if isinstance(usage, dict) else {})}.items():
            number = isinstance(value, int | float) and abs(value) < _GREATEST
            if number and name not in (TASK_INDEX, ROLLOUT_INDEX):
                columns.setdefault(name, []).append(float(value))
    found: dict[str, float] = {}
    for kind, function in (
        ("mean", statistics.fmean),
        ("max", max),
        ("min", min),
        ("median", statistics.median),
        ("std", statistics.stdev),
    ):
        least = 2 if kind == "std" else 1
        found |= {
            f"{kind}/{name}": function(values)
            for name, values in columns.items()
            if len(values) >= least
        }
    return found


_CODE = op.body(op.object_of(["code"], code=op.TEXT))
OPERATIONS: op.Json = {
    "/verify": op.post(
        "NeMo Gym",
        "Verifies a rollout, as a resources server of NeMo Gym.",
        op.body(
            op.object_of(
                ["responses_create_params", "response"],
                responses_create_params=op.ANY_OBJECT,
                response=op.object_of(["output"], output={"type": "array"}),
            )
        ),
        op.answers(op.object_of(["reward"], reward=op.NUMBER), "The rollout, with its reward."),
        VERIFIER,
        TASK,
    ),
    "/seed_session": op.post(
        "NeMo Gym",
        "Opens a rollout's session, where it has a tool of ours; the cookie names it.",
        op.body(op.ANY_OBJECT),
        op.answers(op.ANY_OBJECT, "{}"),
    ),
    "/execute_python": op.post(
        "NeMo Gym",
        "Runs Python in the rollout's session, as the environment math_with_code.",
        _CODE,
        op.answers(op.ANY_OBJECT, "What it wrote and its value."),
    ),
    "/stateful_python_code_exec": op.post(
        "NeMo Gym",
        "Runs Python in the rollout's session, as the environment ns_tools.",
        _CODE,
        op.answers(op.TEXT, "What a notebook shows below the cell.", "text/plain"),
    ),
    "/end_session": op.post(
        "NeMo Gym",
        "Ends the rollout's session.",
        op.body(op.ANY_OBJECT),
        op.answers(op.ANY_OBJECT, "It has ended."),
    ),
    "/aggregate_metrics": op.post(
        "NeMo Gym",
        "Base statistics of verified rollouts.",
        op.body(
            op.object_of(
                ["verify_responses"], verify_responses={"type": "array", "items": op.ANY_OBJECT}
            )
        ),
        op.answers(op.ANY_OBJECT, "By task, and over all."),
    ),
    "/reverify_mode": op.get(
        "NeMo Gym", "Rollouts may be verified again.", op.answers(op.TEXT, "stateless")
    ),
}

FACE = Face("NeMo Gym", routes, OPERATIONS)
