"""OpenAI's graders: POST /v1/fine_tuning/alpha/graders/run, with the official SDK as its client.

Request:  {"grader": {...}, "model_sample": text, "item": any}
Answer:   {"reward": n, "sub_rewards": {...}, "model_grader_token_usage_per_model": {...},
           "metadata": {"name", "type", "execution_time", "scores", "errors": {...}, ...}}

    string_check       here
    text_similarity    here, or by the verifiers bleu and rouge; no cosine
    python             in the sandbox
    score_model        by a judge of the genrm service
    multi              its graders, put together by its formula

A grader that fails has an error flag that is true, which says whose fault it is, and `reward` is
null: a number would be taken for a score. A request without a grader is a problem with status 400.

What a sample alone brings about is the grader's lowest score: its JSON lacks what a template names,
or it is too long for the metric. A python grader states no lowest score: where grade() raises for a
sample there is none, so a grader should catch what its samples can make it raise.

Differences from OpenAI: a score_model grader is asked through our judge's prompt, with its messages
as the prompt and its system messages as the rubric, and its score from 0 to 1 is mapped to `range`;
images and audio are refused. `image_tag` of a python grader is ignored.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.api.reward.v1 import reward_pb2
from assay.clients.execution import ExecutionJob, Fault, Program, SourceFile
from assay.clients.judging import JudgeItem, JudgeSettings
from assay.compat.graders import formula, grading
from assay.compat.items import make_item, text_of
from assay.kit.errors import reason_of, refuse
from assay.kit.http import operations as op
from assay.kit.http.codec import malformed, read_object
from assay.kit.http.faces import Face
from assay.kit.limits import MAX_ITEM_BYTES
from assay.kit.reasons import Reason
from assay.reward_server.http.front import RewardFront

PATH = "/v1/fine_tuning/alpha/graders/run"
FLAGS = (
    "formula_parse_error",
    "invalid_variable_error",
    "model_grader_parse_error",
    "model_grader_refusal_error",
    "model_grader_server_error",
    "other_error",
    "python_grader_runtime_error",
    "python_grader_server_error",
    "sample_parse_error",
    "truncated_observation_error",
    "unresponsive_reward_error",
)
_DETAILS = (
    "model_grader_server_error_details",
    "python_grader_runtime_error_details",
    "python_grader_server_error_type",
)
_MAX_GRADERS = 16
_MAX_DETAIL_CHARS = 2_000
_MAX_RENDERED_CHARS = 4 * MAX_ITEM_BYTES
_GREATEST = 1e100
_RESULT = "assay-result.json"
_MAIN = """\
import json, math, sys
import grader
with open("assay-told.json", encoding="utf-8") as file:
    told = json.load(file)
found = float(grader.grade(told["sample"], told["item"]))
if not math.isfinite(found):
    sys.exit(f"grade() gave {found}, which is not finite")
with open("assay-result.json", "w", encoding="utf-8") as file:
    json.dump(found, file)
"""


@dataclass(slots=True)
class Graded:
    """What came of one grader.

    Attributes:
        reward: the score; None where there is none.
        errors: flags that are true, and details.
        sub_rewards: of the graders of a multi grader.
        tokens: that a judge used.
        model: that judged; empty for none.
    """

    reward: float | None = None
    errors: dict[str, Any] = field(default_factory=dict)
    sub_rewards: dict[str, float | None] = field(default_factory=dict)
    tokens: int = 0
    model: str = ""


def failed(flag: str, detail: str = "") -> Graded:
    """A grader that failed, with the detail where OpenAI has a field for it."""
    errors: dict[str, Any] = {flag: True}
    for name in _DETAILS:
        if detail and name.startswith(flag):
            errors[name] = detail[-_MAX_DETAIL_CHARS:]
    return Graded(errors=errors)


def answer(grader: dict[str, Any], graded: Graded, seconds: float) -> dict[str, Any]:
    """The answer."""
    errors: dict[str, Any] = dict.fromkeys(FLAGS, False) | dict.fromkeys(_DETAILS)
    name = str(grader.get("name", ""))
    return {
        "reward": graded.reward,
        "sub_rewards": graded.sub_rewards,
        "model_grader_token_usage_per_model": (
            {graded.model: {"total_tokens": graded.tokens}} if graded.model else {}
        ),
        "metadata": {
            "name": name,
            "type": grader.get("type"),
            "execution_time": seconds,
            "scores": graded.sub_rewards
            or ({} if graded.reward is None else {name: graded.reward}),
            "token_usage": graded.tokens or None,
            "sampled_model_name": graded.model or None,
            "errors": errors | graded.errors,
        },
    }


def routes(front: RewardFront) -> list[Route]:
    """The endpoint of the SDK's `client.fine_tuning.alpha.graders.run`."""

    async def run(request: Request) -> Response:
        body = await read_object(request)
        grader, sample = body.get("grader"), body.get("model_sample")
        if not isinstance(grader, dict) or not isinstance(sample, str):
            raise malformed("grader must be an object and model_sample a text")
        started = time.perf_counter()
        values = grading.namespace(sample, body.get("item"))
        graded = await _Grading(front, request, values).grade(grader)
        return JSONResponse(answer(grader, graded, time.perf_counter() - started))

    return [Route(PATH, run, methods=["POST"])]


class _Grading:
    """Grades one sample, within one deadline for all that its grader is made of."""

    def __init__(self, front: RewardFront, request: Request, values: dict[str, Any]) -> None:
        self._front = front
        self._request = request
        self._values = values
        self._due_s = time.monotonic() + front.timeout_s(request)
        self._room = _MAX_RENDERED_CHARS

    def _left_s(self) -> float:
        left_s = self._due_s - time.monotonic()
        if left_s <= 0:
            raise refuse(Reason.DEADLINE_EXCEEDED, "the deadline came before all graders were done")
        return left_s

    async def grade(self, grader: dict[str, Any], *, inner: bool = False) -> Graded:
        """What a grader says.

        Raises:
            BadRequestError: MALFORMED_REQUEST: it is no grader; ITEM_TOO_LARGE: its templates
                are, once they are filled in.
        """
        try:
            return await self._graded(grader, inner=inner)
        except grading.SampleError:
            scored = grader.get("type") == "score_model"
            return Graded(_range(grader.get("range"))[0] if scored else 0.0)
        except grading.VariableError:
            return failed("invalid_variable_error")
        except grading.TooLongError as error:
            raise refuse(Reason.ITEM_TOO_LARGE, str(error)) from None

    async def _graded(self, grader: dict[str, Any], *, inner: bool) -> Graded:
        kind = grader.get("type")
        if kind == "string_check":
            return self._string_check(grader)
        if kind == "text_similarity":
            return await self._text_similarity(grader)
        if kind == "python":
            return await self._python(grader)
        if kind == "score_model":
            return await self._score_model(grader)
        if kind == "multi" and not inner:
            return await self._multi(grader)
        raise malformed(
            "grader.type must be string_check, text_similarity, python, score_model or multi"
        )

    def _string_check(self, grader: dict[str, Any]) -> Graded:
        operation = _text(grader, "operation")
        if operation not in grading.OPERATIONS:
            raise malformed(f"operation must be one of {', '.join(grading.OPERATIONS)}")
        text, reference = self._rendered(grader, "input"), self._rendered(grader, "reference")
        return Graded(grading.string_check(operation, text, reference))

    async def _text_similarity(self, grader: dict[str, Any]) -> Graded:
        metric = _text(grader, "evaluation_metric")
        text, reference = self._rendered(grader, "input"), self._rendered(grader, "reference")
        if metric in grading.VERIFIERS:
            name, told = metric.partition("_")[0], {"part": "whole", **grading.VERIFIERS[metric]}
            item = make_item("0", text, (name, ""), label=reference, parameters=told)
            (result,) = await self._front.score(self._request, [item], self._left_s())
            return _of_result(result)
        compare = grading.SIMILARITIES.get(metric)
        if compare is None:
            return failed("other_error")
        if max(len(text), len(reference)) > grading.MAX_CHARS:
            own = [self._bare(grader, name) for name in ("input", "reference")]
            return failed("other_error") if max(own) > grading.MAX_CHARS else Graded(0.0)
        with self._front.charged(1):
            return Graded(await asyncio.to_thread(compare, text, reference))

    async def _python(self, grader: dict[str, Any]) -> Graded:
        source = _text(grader, "source")
        if self._front.sandbox is None:
            return failed("python_grader_server_error", "no sandbox: --sandbox-target")
        told = json.dumps({"sample": self._values["sample"], "item": self._values["item"]})
        files = [
            SourceFile("grader.py", source.encode()),
            SourceFile("assay-told.json", told.encode()),
        ]
        job = ExecutionJob(Program("python", _MAIN, files=files), fetch_paths=(_RESULT,))
        with self._front.charged(1):
            (ran,) = await self._front.sandbox.execute([job], timeout_s=self._left_s())
        if isinstance(ran, Fault):
            return failed("python_grader_server_error", ran.reason)
        found = {file.path: file.content for file in ran.files}
        if ran.end != "exited" or ran.exit_code or _RESULT not in found:
            text = ran.stderr.text if ran.end == "exited" else f"{ran.end}: {ran.stderr.text}"
            return failed("python_grader_runtime_error", text or "grade() was not run")
        try:
            reward = float(json.loads(found[_RESULT]))
        except (ValueError, TypeError, OverflowError):
            reward = math.nan
        if not math.isfinite(reward):
            return failed("python_grader_runtime_error", "grade() did not give a finite number")
        return Graded(reward)

    async def _score_model(self, grader: dict[str, Any]) -> Graded:
        low, high = _range(grader.get("range"))
        messages = grader.get("input")
        if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
            raise malformed("input of a score_model grader must be a list of messages")
        if self._front.genrm is None:
            return failed("model_grader_server_error", "no judge: --genrm-target")
        parts = [(one.get("role"), self._filled(text_of(one.get("content")))) for one in messages]
        rubric = "\n\n".join(text for role, text in parts if role in ("system", "developer"))
        prompt = "\n\n".join(text for role, text in parts if role not in ("system", "developer"))
        response = self._values["sample"]["output_text"]
        item = JudgeItem(prompt, response, rubric=rubric or prompt)
        settings = JudgeSettings(model=_text(grader, "model"))
        with self._front.charged(1):
            (said,) = await self._front.genrm.judge_responses(
                [item], settings, timeout_s=self._left_s()
            )
        if isinstance(said, Fault):
            if said.reason == Reason.JUDGE_UNPARSED:
                return failed("model_grader_parse_error")
            return failed("model_grader_server_error", f"{said.reason}: {said.message}")
        if not 0 <= said.score <= 1:
            return failed("model_grader_server_error", "the model gives logits: it is no judge")
        tokens = said.usage.prompt + said.usage.completion
        return Graded(low + (high - low) * said.score, tokens=tokens, model=said.judge.model)

    async def _multi(self, grader: dict[str, Any]) -> Graded:
        written = _text(grader, "calculate_output")
        graders = grader.get("graders")
        if isinstance(graders, dict) and isinstance(graders.get("type"), str):
            graders = {_text(graders, "name"): graders}
        if not isinstance(graders, dict) or not 0 < len(graders) <= _MAX_GRADERS:
            raise malformed(f"graders must be an object of 1 to {_MAX_GRADERS} graders")
        found: dict[str, Graded] = {}
        for name, one in graders.items():
            if not isinstance(one, dict):
                raise malformed("each of graders must be an object")
            found[name] = await self.grade(one, inner=True)
        rewards = {name: one.reward for name, one in found.items()}
        errors = {flag: value for one in found.values() for flag, value in one.errors.items()}
        tokens = sum(one.tokens for one in found.values())
        model = next((one.model for one in found.values() if one.model), "")
        graded = Graded(errors=errors, sub_rewards=rewards, tokens=tokens, model=model)
        known = {name: reward for name, reward in rewards.items() if reward is not None}
        if len(known) == len(rewards):
            try:
                graded.reward = formula.evaluate(written, known)
            except formula.UnknownNameError:
                graded.errors["invalid_variable_error"] = True
            except formula.FormulaError:
                graded.errors["formula_parse_error"] = True
        return graded

    def _rendered(self, grader: dict[str, Any], name: str) -> str:
        return self._filled(_text(grader, name))

    def _bare(self, grader: dict[str, Any], name: str) -> int:
        """The filled template's length without the sample."""
        template = grading.without_sample(_text(grader, name))
        return len(grading.render(template, self._values, _MAX_RENDERED_CHARS))

    def _filled(self, template: str) -> str:
        """A template, filled in; all those of a call share one room."""
        text = grading.render(template, self._values, self._room)
        self._room -= len(text)
        return text


def _of_result(result: reward_pb2.Result) -> Graded:
    if result.WhichOneof("outcome") == "judgement":
        return Graded(result.judgement.reward)
    if reason_of(result.fault) == Reason.UNKNOWN_VERIFIER:
        raise malformed(result.fault.message)
    return failed("other_error")


def _range(found: object) -> tuple[float, float]:
    if found is None:
        return 0.0, 1.0
    if isinstance(found, list) and len(found) == 2:
        low, high = found
        numbers = isinstance(low, int | float) and isinstance(high, int | float)
        if numbers and -_GREATEST <= low < high <= _GREATEST:
            return float(low), float(high)
    raise malformed("range must be two numbers up to 1e100, the lesser first")


def _text(grader: dict[str, Any], name: str) -> str:
    found = grader.get(name)
    if not isinstance(found, str):
        raise malformed(f"{name} of the grader must be a text")
    return found


OPERATIONS: op.Json = {
    PATH: op.post(
        "OpenAI",
        "Runs a grader.",
        op.body(
            op.object_of(
                ["grader", "model_sample"],
                grader=op.ref("Grader"),
                model_sample=op.TEXT,
                item=op.ANY,
            )
        ),
        op.answers(
            op.object_of(
                ["reward", "metadata"], reward={"type": ["number", "null"]}, metadata=op.ANY_OBJECT
            ),
            "The reward; null where an error flag is true.",
        ),
    ),
}

SCHEMAS: op.Json = {
    "Grader": op.object_of(
        ["type"],
        type={"enum": ["string_check", "text_similarity", "python", "score_model", "multi"]},
        name=op.TEXT,
        input={"description": "A text with {{ templates }}; messages for score_model."},
        reference=op.TEXT,
        operation={"enum": ["eq", "ne", "like", "ilike"]},
        evaluation_metric=op.TEXT,
        source={"type": "string", "description": "Defines grade(sample, item) -> float."},
        model=op.TEXT,
        range=op.NUMBERS,
        graders={"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Grader"}},
        calculate_output=op.TEXT,
    ),
}

FACE = Face("OpenAI graders", routes, OPERATIONS, SCHEMAS)
