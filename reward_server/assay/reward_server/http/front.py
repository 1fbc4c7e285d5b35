"""What a wire format may use: one scoring path, the caller's limits, the services behind.

Each format is a module with

    def routes(front: Front) -> list[Route]

whose endpoints take a Starlette request and return a response. An endpoint raises `refuse(...)`, or
any CallError, to end the call: the rim makes a problem of it. Which caller it is, is known
(`assay.rpc.calls`); nobody gets here who was not let in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import grpc
from starlette.requests import Request

from assay.api.reward.v1 import reward_pb2
from assay.clients.execution import AsyncExecutionClient
from assay.clients.judging import AsyncJudgeClient
from assay.reward_server.http.config import MAX_TIMEOUT_S, HttpConfig
from assay.reward_server.scorer import RewardScorer
from assay.rpc.calls import add_faults, add_log_fields, tenant_var
from assay.rpc.errors import CallError, call_error, make_status, refuse
from assay.rpc.limits import MAX_BATCH_ITEMS
from assay.rpc.quotas import Meter
from assay.rpc.reasons import Reason
from assay.rpc.serving import Rim

TIMEOUT_HEADER = "x-timeout-s"
OFFERED = "authorization"
"""Under this name the state of a call has what it offered as its token."""

_SHOWN_CHARS = 200
_MAX_CONTAINERS = 500_000


class Front:
    """The reward server as the formats see it.

    Args:
        scorer: does the work.
        rim: gate, door, quotas and metrics, shared with gRPC.
        config: the settings.
        sandbox: runs programs; None where the operator named no sandbox.
        genrm: asks judges that are models; None where the operator named none.
        journal: file of the journal that is kept; None for none.
        public: others than this machine's users reach the server.

    Attributes:
        scorer: as above.
        rim: as above.
        config: as above.
        sandbox: as above.
        genrm: as above.
        journal: as above.
        public: as above.
    """

    def __init__(
        self,
        scorer: RewardScorer,
        rim: Rim,
        config: HttpConfig,
        *,
        sandbox: AsyncExecutionClient | None = None,
        genrm: AsyncJudgeClient | None = None,
        journal: Path | None = None,
        public: bool = False,
    ) -> None:
        self.scorer = scorer
        self.rim = rim
        self.config = config
        self.sandbox = sandbox
        self.genrm = genrm
        self.journal = journal
        self.public = public

    def timeout_s(self, request: Request) -> float:
        """Seconds until the call's deadline: the header `x-timeout-s`, else --http-timeout-s.

        Raises:
            BadRequestError: INVALID_TIMEOUT.
        """
        offered = request.headers.get(TIMEOUT_HEADER)
        if offered is None:
            return self.config.timeout_s
        try:
            seconds = float(offered)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds <= MAX_TIMEOUT_S:
            raise refuse(
                Reason.INVALID_TIMEOUT,
                f"{TIMEOUT_HEADER} must be seconds above 0 and at most {MAX_TIMEOUT_S:g}",
            )
        return seconds

    def chosen(self, request: Request) -> tuple[str, str]:
        """The verifier and the task that the URL names; the verifier of --http-verifier else.

        Raises:
            BadRequestError: UNKNOWN_TASK where nothing says who judges.
        """
        verifier = request.query_params.get("verifier", "")
        task = request.query_params.get("task", "")
        if not verifier and not task:
            verifier = self.config.verifier
        if not verifier and not task:
            raise refuse(
                Reason.UNKNOWN_TASK,
                "say who judges: ?verifier=NAME or ?task=NAME in the URL, or --http-verifier "
                "of the server; /v1/verifiers lists the names",
            )
        return verifier, task

    def need_operator(self, request: Request) -> None:
        """Sees to it that the caller may read what others had scored.

        That is who has the one token of --token-file, or a user of this machine where no token is
        asked for; never somebody whom a tokens file or a certificate gives the operator's name.

        Raises:
            UnauthenticatedError: it is a tenant among others, or anybody.
        """
        is_open = not (self.public or self.rim.door.asks or tenant_var.get())
        if not is_open and not self.rim.door.is_operator(request.scope["state"][OFFERED]):
            raise forbidden("only the token of --token-file opens this: it shows what all wrote")

    async def score(
        self,
        request: Request,
        items: Sequence[reward_pb2.Item],
        timeout_s: float | None = None,
    ) -> Sequence[reward_pb2.Result]:
        """Scores items: one result for each, in their order, a judgement or a fault.

        Args:
            request: the call that they came with.
            items: with ids that are unique.
            timeout_s: seconds until the deadline; None: those that the call says.

        Raises:
            CallError: the call as a whole is refused; no item was judged.
        """
        batch = reward_pb2.BatchScoreRequest(items=items)
        if timeout_s is None:
            timeout_s = self.timeout_s(request)
        with self.charged(len(items)):
            response = await self.scorer.batch_score(batch, timeout_s=timeout_s)
        add_faults(response.results)
        return response.results

    @contextmanager
    def charged(self, items: int) -> Iterator[Meter]:
        """Holds so many items of the caller's quota while the block runs.

        Raises:
            OverloadedError: QUOTA_EXCEEDED.
        """
        add_log_fields(items=items)
        with closing(Meter(self.rim.quotas, tenant_var.get())) as meter:
            meter.admit(SimpleNamespace(items=range(items)))
            yield meter

    def need_sandbox(self) -> AsyncExecutionClient:
        """The client of the sandbox.

        Raises:
            UnavailableError: the operator named no sandbox.
        """
        if self.sandbox is None:
            raise refuse(
                Reason.UNREACHABLE,
                "this server has no sandbox to run programs in: start it with --sandbox-target",
            )
        return self.sandbox


async def read_json(request: Request) -> Any:
    """The JSON of a request's body.

    Raises:
        BadRequestError: MALFORMED_REQUEST: the body is not JSON in UTF-8, or holds NaN or lone
            surrogates, which JSON in UTF-8 cannot hold. BATCH_TOO_LARGE: it has too many parts.
    """
    return parse_json(await request.body())


async def read_object(request: Request) -> dict[str, Any]:
    """The JSON object of a request's body.

    Raises:
        BadRequestError: MALFORMED_REQUEST: as `read_json`, or the body is no object.
    """
    found = await read_json(request)
    if not isinstance(found, dict):
        raise malformed("the body must be a JSON object")
    return found


def parse_json(body: bytes) -> Any:
    """As `read_json`, of bytes."""
    try:
        text = body.decode()
        found = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise malformed("the body is nested too deeply") from None
    except ValueError as error:
        raise malformed(f"the body is not JSON: {error}") from None
    if _is_crumbled(found):
        raise refuse(
            Reason.BATCH_TOO_LARGE,
            f"the body has more than {_MAX_CONTAINERS} objects and lists: send less at a time",
        )
    return found


def check_count(items: int) -> None:
    """Refuses a batch that is too large before an item is made of it: that takes its time.

    Raises:
        BadRequestError: BATCH_TOO_LARGE.
    """
    if items > MAX_BATCH_ITEMS:
        raise refuse(
            Reason.BATCH_TOO_LARGE,
            f"the request has {items} items, and at most {MAX_BATCH_ITEMS} are taken: split it",
        )


def malformed(text: str) -> CallError:
    """The exception for a body that is not of the format; one line, cut to be shown."""
    return refuse(Reason.MALFORMED_REQUEST, " ".join(text.split())[:_SHOWN_CHARS])


def _is_crumbled(found: Any) -> bool:
    """Whether it has so many objects and lists that to make messages of them would take minutes."""
    waiting, seen = [found], 0
    while waiting and seen + len(waiting) <= _MAX_CONTAINERS:
        one = waiting.pop()
        seen += 1
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        containers = (value for value in inner if isinstance(value, dict | list))
        waiting.extend(islice(containers, _MAX_CONTAINERS))
    return bool(waiting)


def _finite(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ValueError(f"{text[:40]} is too large a number")
    return found


def forbidden(text: str) -> CallError:
    """The exception for a caller who is known, and may not; status 403."""
    code = grpc.StatusCode.PERMISSION_DENIED
    return call_error(make_status(Reason.UNAUTHENTICATED, text, code=code))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
