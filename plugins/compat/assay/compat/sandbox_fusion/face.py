"""SandboxFusion's endpoints over the sandbox: /run_code, /submit, /run_jupyter, prompts, /v1/ping.

The mappings are in `run`, `submit`, `autoeval`, `prompts` and `jupyter`, whose cells run in a
session. What we could not run is SandboxError, never "Failed": under 504 where the same request may
go through later (the only status that verl tries again), 422 where the caller must change it, else
200.

None of the peer's clients says how long it waits. verl's gives up 10 s after its request's two
time-outs, so a call may spend 8 s in queues unless `?wait_s=` or the header `x-timeout-s` says
otherwise.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.clients.faults import fault_of_error
from assay.clients.types import Fault
from assay.compat.fields import BadField
from assay.compat.sandbox import Endpoint, NotRunError, Sandbox, deadline_s
from assay.compat.sandbox_fusion import autoeval, jupyter, prompts, run
from assay.compat.sandbox_fusion import submit as judge
from assay.compat.sandbox_fusion.custom import (
    LOGIC_TIMEOUT_S,
    LogicError,
    custom_job,
    read_blocks,
)
from assay.compat.sandbox_fusion.extract import CodeBlock
from assay.compat.sandbox_fusion.operations import OPERATIONS, SCHEMAS
from assay.compat.sessions import LocalSessions
from assay.kit.calls import add_log_fields
from assay.kit.errors import CallError
from assay.kit.http.codec import JSON, read_json, write
from assay.kit.http.faces import Face
from assay.sandbox.http import SandboxFront


def routes(front: SandboxFront) -> list[Route]:
    """The routes of the format."""
    box, sessions = Sandbox(front), LocalSessions(front)

    async def run_code(request: Request) -> Response:
        wanted = run.read_run_code(await read_json(request))
        runs_s = wanted.compile_timeout_s + wanted.run_timeout_s
        due_s = deadline_s(front, request, runs_s)
        [execution] = await box.execute([wanted.job], due_s)
        return _json(run.answer_run(wanted, execution))

    async def submit(request: Request) -> Response:
        body = await read_json(request)
        if autoeval.wanted_by(body):
            return await submit_autoeval(request, body)
        submission = judge.read_submit(body)
        runs_s = submission.compile_timeout_s + submission.run_timeout_s * max(
            1, len(submission.cases)
        )
        runs_s += 2 * LOGIC_TIMEOUT_S if submission.custom_logic else 0.0
        due_s = deadline_s(front, request, runs_s)
        return _json(await _judge(box, submission, due_s))

    async def submit_autoeval(request: Request, body: object) -> Response:
        wanted = autoeval.read_autoeval(body, secrets.token_hex(10))
        due_s = deadline_s(front, request, wanted.run.compile_timeout_s + wanted.run.run_timeout_s)
        [execution] = await box.execute([wanted.run.job], due_s)
        return _json(autoeval.answer_autoeval(wanted, execution))

    async def get_prompts(request: Request) -> Response:
        return _json(prompts.read_prompts(await read_json(request)))

    async def get_prompt_by_id(request: Request) -> Response:
        return _json(prompts.read_prompt(await read_json(request)))

    async def run_jupyter(request: Request) -> Response:
        wanted = jupyter.read_run_jupyter(await read_json(request))
        due_s = deadline_s(front, request, wanted.total_timeout_s)
        with await box.admit(1, due_s):
            book = await _run_cells(sessions, wanted, due_s)
        return _json(jupyter.answer_run_jupyter(book))

    async def ping(_: Request) -> Response:
        return JSONResponse("pong")

    return [
        Route("/run_code", _answering(run_code, run.fault_status), methods=["POST"]),
        Route("/submit", _answering(submit, _submit_status), methods=["POST"]),
        Route("/get_prompts", _answering(get_prompts, _submit_status), methods=["POST"]),
        Route("/get_prompt_by_id", _answering(get_prompt_by_id, _submit_status), methods=["POST"]),
        Route("/run_jupyter", _answering(run_jupyter, run.fault_status), methods=["POST"]),
        Route("/v1/ping", ping),
    ]


def _answering(endpoint: Endpoint, status_of: Callable[[Fault], int]) -> Endpoint:
    """The endpoint, with wrong requests and faults in the words of the format."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except BadField as error:
            return _json(run.refusal(error), 422)
        except NotRunError as error:
            return _json(run.fault_body(error.fault), status_of(error.fault))

    return answer


async def _run_cells(
    sessions: LocalSessions, wanted: jupyter.RunJupyter, due_s: float
) -> jupyter.Notebook:
    """Runs the cells in a session of their own.

    Raises:
        NotRunError: a cell could not be run, or the session was lost.
    """
    book = jupyter.Notebook(wanted)
    try:
        opened = await sessions.create(wanted.session(await sessions.max_limits(due_s)), due_s)
        try:
            while (code := book.next_cell()) is not None:
                book.add(await sessions.run(opened.id, code, due_s, wall_s=book.allowed_s))
            if wanted.fetched and not book.late:
                book.files = await sessions.get(opened.id, list(wanted.fetched), due_s)
        finally:
            await sessions.close([opened.id])
    except CallError as error:
        add_log_fields(faults=1)
        raise NotRunError(fault_of_error(error)) from error
    return book


def _submit_status(fault: Fault) -> int:
    """As for `/run_code`, but never 200: this format has no SandboxError."""
    status = run.fault_status(fault)
    return 500 if status == 200 else status


async def _judge(box: Sandbox, submission: judge.Submission, due_s: float) -> dict[str, object]:
    custom = await _custom_blocks(box, submission, due_s) if submission.custom_logic else []
    code, kind = judge.extracted(submission, custom)
    if submission.has_cases:
        tests = await _cases(box, submission, code, due_s)
    elif code.strip():
        tests = [await _assertions(box, submission, code, due_s)]
    else:
        tests = [judge.answer_nothing()]
    return judge.answer_submit(submission, code, kind, tests)


async def _custom_blocks(
    box: Sandbox, submission: judge.Submission, due_s: float
) -> list[CodeBlock]:
    """What the caller's own logic finds; nothing where only this completion breaks it.

    Raises:
        BadField: the logic has worked on no completion, and breaks on a plain one too.
    """
    logic = submission.custom_logic
    try:
        blocks = await _extract(box, submission.completion, logic, due_s)
    except LogicError as error:
        if (logic,) not in box.sound:
            plain = f"```{submission.language}\n1\n```\n"
            try:
                await _extract(box, plain, logic, due_s)
            except LogicError:
                where = ("config", "custom_extract_logic")
                raise BadField(where, f"failed: {error}") from error
        blocks = []
    box.sound.add((logic,))
    return blocks


async def _extract(box: Sandbox, completion: str, logic: str, due_s: float) -> list[CodeBlock]:
    [execution] = await box.execute([custom_job(completion, logic)], due_s)
    return read_blocks(execution)


async def _cases(
    box: Sandbox, submission: judge.Submission, code: str, due_s: float
) -> list[dict[str, object]]:
    cases = submission.cases
    answers: list[dict[str, object]] = []
    for wave in judge.waves(
        cases, all_at_once=submission.run_all_cases, program_bytes=len(code.encode())
    ):
        runs = [judge.case_run(submission, code, cases[number]) for number in wave]
        ended = await box.execute([each.job for each in runs], due_s)
        for number, each, execution in zip(wave, runs, ended, strict=True):
            answers.append(judge.answer_case(submission, each, cases[number], execution))
            if not answers[-1]["passed"] and not submission.run_all_cases:
                return answers
    return answers


async def _assertions(
    box: Sandbox, submission: judge.Submission, code: str, due_s: float
) -> dict[str, object]:
    info = await box.info(due_s)
    job = judge.assertion_job(submission, code, info.max_limits)
    return judge.answer_assertions(await box.test(job, due_s))


def _json(body: object, status: int = 200) -> Response:
    return Response(write(body), status, media_type=JSON)


FACE = Face("SandboxFusion", routes, OPERATIONS, SCHEMAS)
