"""Piston's endpoints over the sandbox: /api/v2/execute, /api/v2/runtimes, /api/v2/packages.

The mapping is in `run`. A fault has no form of Piston's own ("XX" is for its isolate): it is a 503
or 504 where the same request may go through later, a 400 where the caller must change it, else a
500, with the reason. open-r1's client tries again on each.

Not served: /api/v2/connect, the interactive socket, and packages that are installed by callers.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.clients.execution import Execution
from assay.clients.types import Fault
from assay.compat.fields import BadField
from assay.compat.piston import codeforces, run
from assay.compat.programs import is_callers, is_retryable
from assay.compat.sandbox import WAIT, Endpoint, NotRunError, Sandbox, deadline_s
from assay.kit.http import operations as op
from assay.kit.http.codec import JSON, read_json, write
from assay.kit.http.faces import Face
from assay.kit.reasons import Reason
from assay.sandbox.http import SandboxFront

_LIST_S = 10.0
_PACKAGES = "languages are installed by the operator of this server; /api/v2/runtimes lists them"


def fault_status(fault: Fault) -> int:
    """The HTTP status of a fault."""
    if not is_retryable(fault):
        return 400 if is_callers(fault) else 500
    return {"DEADLINE_EXCEEDED": 504, "RESOURCE_EXHAUSTED": 429}.get(fault.code, 503)


def fault_body(fault: Fault) -> dict[str, object]:
    """The body of a fault."""
    return {
        "message": fault.message,
        "reason": fault.reason,
        "retryable": is_retryable(fault),
    }


def routes(front: SandboxFront) -> list[Route]:
    """The routes of the format."""
    box = Sandbox(front)

    async def execute(request: Request) -> Response:
        kind = request.headers.get("content-type", "")
        if not kind.startswith("application/json"):
            return _json({"message": "requests must be of type application/json"}, 415)
        body = await read_json(request)
        info = await box.info(_soon())
        if codeforces.is_task(body):
            return _json(await _judge(front, request, box, codeforces.read_task(body, info)))
        wanted = run.read_execute(body, info)
        due_s = deadline_s(front, request, wanted.compile_timeout_s + wanted.run_timeout_s)
        [execution] = await box.execute([wanted.job], due_s)
        return _json(run.answer_execute(wanted, execution))

    async def runtimes(_: Request) -> Response:
        info = await box.info(_soon())
        listed = run.answer_runtimes(run.runtimes_of(info.languages))
        return _json([*listed, *codeforces.answer_runtimes(info)])

    async def packages(_: Request) -> Response:
        info = await box.info(_soon())
        return _json(run.answer_packages(run.runtimes_of(info.languages)))

    async def no_packages(_: Request) -> Response:
        return _json({"message": _PACKAGES}, 501)

    path = "/api/v2"
    return [
        Route(f"{path}/execute", _answering(execute), methods=["POST"]),
        Route(f"{path}/runtimes", _answering(runtimes)),
        Route(f"{path}/packages", _answering(packages), methods=["GET"]),
        Route(f"{path}/packages", no_packages, methods=["POST", "DELETE"]),
    ]


async def _judge(
    front: SandboxFront, request: Request, box: Sandbox, task: codeforces.CodeforcesTask
) -> dict[str, object]:
    checkers_s = 2 * codeforces.CHECKER_S if task.checker else 0.0
    runs_s = run.COMPILE_TIMEOUT_MS / 1000 + task.time_limit_s + checkers_s
    due_s = deadline_s(front, request, runs_s)
    [execution] = await box.execute([task.job], due_s)
    if execution.end == "compile-error" or execution.compiling:
        return codeforces.answer_task(task, execution, None)
    verdict = codeforces.failure(task, execution)
    if verdict is None:
        output = codeforces.written(task, execution)
        if task.checker and task.expected is not None:
            verdict = await _check(box, task, output, due_s)
        else:
            verdict = codeforces.compared(task, output)
    return codeforces.answer_task(task, execution, verdict)


async def _check(
    box: Sandbox, task: codeforces.CodeforcesTask, output: str, due_s: float
) -> codeforces.ScriptOutput:
    execution = await _run_checker(box, task, output, due_s)
    verdict = None if execution is None else codeforces.checked(execution)
    if verdict is not None:
        return verdict
    test = (task.checker, task.given, task.expected or "")
    if task.expected and test not in box.sound:
        reference = await _run_checker(box, task, task.expected, due_s)
        if not codeforces.accepts(reference):
            raise NotRunError(codeforces.broken_checker(reference))
        box.sound.add(test)
    return codeforces.unreadable(execution)


async def _run_checker(
    box: Sandbox, task: codeforces.CodeforcesTask, output: str, due_s: float
) -> Execution | None:
    """A run of the checker; None where its files are more than the sandbox takes."""
    try:
        [execution] = await box.execute([codeforces.checker_job(task, output)], due_s)
    except NotRunError as error:
        if error.fault.reason == Reason.ITEM_TOO_LARGE:
            return None
        raise
    return execution


def _answering(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except BadField as error:
            return _json(run.refusal(error), 400)
        except NotRunError as error:
            return _json(fault_body(error.fault), fault_status(error.fault))

    return answer


def _soon() -> float:
    return asyncio.get_running_loop().time() + _LIST_S


def _json(body: object, status: int = 200) -> Response:
    return Response(write(body), status, media_type=JSON)


OPERATIONS: op.Json = {
    "/api/v2/execute": op.post(
        "Piston",
        "Runs a program.",
        op.body(
            op.object_of(
                ["language", "version", "files"],
                language=op.TEXT,
                version=op.TEXT,
                files={"type": "array", "items": op.object_of(["content"], content=op.TEXT)},
                stdin=op.TEXT,
                args=op.TEXTS,
            )
        ),
        op.foreign(
            op.object_of(["run"], run=op.ANY_OBJECT, compile=op.ANY_OBJECT), "How it ended."
        ),
        WAIT,
    ),
    "/api/v2/runtimes": op.get(
        "Piston",
        "The languages.",
        op.foreign({"type": "array", "items": op.ANY_OBJECT}, "By name."),
    ),
    "/api/v2/packages": op.get(
        "Piston",
        "The same, as packages.",
        op.foreign({"type": "array", "items": op.ANY_OBJECT}, "By name."),
    ),
}

FACE = Face("Piston", routes, OPERATIONS)
