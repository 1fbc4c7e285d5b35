"""The middleware of HTTP: what each call passes before and after its endpoint.

In this order: request id, origin, bearer token, span, gate (starting, draining, full, too many of
the tenant), the size of the body, the endpoint, problem details for what failed, metrics, one line
in the log. When the caller goes away, the endpoint is cancelled. A WebSocket is one call for as
long as it is open, without span and body; its token may stand in the URL, as `?token=`.

Tokens come as "authorization: Bearer TOKEN", or as the password of Basic, whatever the user: peers
that send no headers of their own can have it in their URL (http://assay:TOKEN@host/...). Without
that, in one of the headers that clients of other services have for a key (`_KEYS`).

Covered: calls by a web page of another site, through a browser on this machine, are refused by
Origin and by the host's name, read as it stands: a Host with a user or a path is no name. A request
of two lengths (Transfer-Encoding beside Content-Length, or in HTTP/1.0) is refused and its
connection closed, so that a proxy and we agree on where the next request begins; h11 refuses what
else is unclear about a head. Not covered: headers that arrive slowly; uvicorn waits for them.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.kit import tracing
from assay.kit.calls import BY_CERTIFICATE, METADATA_KEY, accept_request_id, begin_call
from assay.kit.errors import CallError, outstayed, refuse
from assay.kit.gate import ServerCall
from assay.kit.http.config import HttpConfig
from assay.kit.http.front import OFFERED
from assay.kit.http.problems import (
    CLIENT_CLOSED_REQUEST,
    forbidden,
    is_retryable,
    problem_response,
)
from assay.kit.logs import call_ended
from assay.kit.reasons import Reason
from assay.kit.serving import Admission
from assay.kit.spans import TraceSpan

OPEN_PATHS = ("/healthz", "/readyz")
"""Readable by everybody, in every phase."""

CERTIFIED = "certified"
"""The key, in a call's state, of the tenant that a client's certificate names."""

_LOOPBACK = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{0,5})?", re.IGNORECASE)
_MAX_LOGGED_CHARS = 200
_KEYS = ("x-api-key", "x-access-token", "e2b-traffic-access-token")
_log = logging.getLogger(__name__)


class HttpMiddleware:
    """An ASGI application around the one that has the endpoints.

    Args:
        admission: gate, tokens, quotas and metrics, shared with gRPC.
        label_of: the path of a request's route as declared; empty for none.
        public: others than this machine's users reach it.
        absent: explanations by path, for what is not served there.
    """

    def __init__(
        self,
        app: ASGIApp,
        admission: Admission,
        config: HttpConfig,
        label_of: Callable[[Scope], str],
        *,
        public: bool,
        absent: Mapping[str, str],
    ) -> None:
        self._app = app
        self._admission = admission
        self._config = config
        self._label_of = label_of
        self._public = public
        self._absent = absent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one call."""
        if scope["type"] not in ("http", "websocket"):
            raise ValueError(f"there is nothing here that speaks {scope['type']}")
        if scope["type"] == "websocket":
            await self._converse(scope, receive, send)
            return
        headers = Headers(scope=scope)
        label = self._label_of(scope)
        call = ServerCall(
            method=label or _as_sent(scope),
            request_id=accept_request_id(headers.get(METADATA_KEY)),
            always_open=scope["path"] in OPEN_PATHS and scope["method"] in ("GET", "HEAD"),
        )
        run = _Run(call, receive, send, closes=_has_two_lengths(headers, scope))
        begin_call(call.request_id)
        try:
            if run.closes:
                raise refuse(
                    Reason.MALFORMED_REQUEST,
                    "the body has two lengths: send Content-Length or Transfer-Encoding, not both",
                )
            self._let_in(call, headers, scope)
        except CallError as error:
            await self._serve(call, run, scope, headers, refused=error)
            return
        call.known = bool(label)
        with self._span(call, scope, headers) as call.span:
            await self._serve(call, run, scope, headers)

    async def _converse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a WebSocket: one call for as long as it is open."""
        headers = Headers(scope=scope)
        label = self._label_of(scope)
        call = ServerCall(
            method=label or _as_sent(scope),
            request_id=accept_request_id(headers.get(METADATA_KEY)),
            always_open=False,
        )
        talk = _Conversation(call, scope, receive, send)
        begin_call(call.request_id)
        started = time.perf_counter()
        try:
            self._let_in(call, headers, scope)
            call.known = bool(label)
            call.fields = begin_call(call.request_id, call.tenant, call.label)
            self._admission.gate.admit(call)
            if not call.known:
                raise HTTPException(404)
            await self._app(scope, receive, talk.send)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not call.evicted or task is None or task.uncancel():
                raise
            await talk.refuse(outstayed())
        except CallError as error:
            await talk.refuse(error)
        except HTTPException as missed:
            await talk.refuse(_missed(missed, call.method, ""))
        except Exception as defect:  # noqa: BLE001 - the border, as below
            await talk.refuse(_defect(call, defect))
        finally:
            call.task = None
            self._admission.gate.leave(call)
            self._log_end(call, talk, scope, time.perf_counter() - started)

    def _span(self, call: ServerCall, scope: Scope, headers: Headers) -> TraceSpan:
        """The span of a call; none for a probe or an unknown path."""
        if call.known and not call.always_open:
            return tracing.serving(f"{scope['method']} {call.method}", headers)
        return TraceSpan()

    async def _serve(
        self,
        call: ServerCall,
        run: _Run,
        scope: Scope,
        headers: Headers,
        *,
        refused: CallError | None = None,
    ) -> None:
        started = time.perf_counter()
        try:
            if refused is not None:
                raise refused
            call.fields = begin_call(call.request_id, call.tenant, call.label)
            if trace_id := call.span.trace_id():
                call.fields["trace_id"] = trace_id
            self._admission.gate.admit(call)
            body = b"" if call.always_open else await self._read(headers, run.receive)
            await run.serve(self._app, scope, body)
        except asyncio.CancelledError:
            ended = run.ended_early()
            if ended is None:
                raise
            await run.refuse(ended)
        except CallError as error:
            await run.refuse(error)
        except HTTPException as missed:
            await run.refuse(
                _missed(missed, call.method, self._absent.get(scope["path"], "")), missed
            )
        except RecursionError:
            await run.refuse(refuse(Reason.MALFORMED_REQUEST, "the body is nested too deeply"))
        except Exception as defect:  # noqa: BLE001 - the border: nothing leaves it unmapped
            await run.refuse(_defect(call, defect))
        finally:
            call.task = None
            self._admission.gate.leave(call)
            self._log_end(call, run, scope, time.perf_counter() - started)

    def _let_in(self, call: ServerCall, headers: Headers, scope: Scope) -> None:
        """Finds the caller's tenant.

        Raises:
            CallError: another site's page calls, or the token is missing or unknown.
        """
        host = headers.get("host", "")
        origin = headers.get("origin")
        if origin is not None and _authority(origin).netloc.lower() != host.lower():
            raise forbidden("pages of other sites may not call this server")
        is_open = not (self._public or self._admission.door.asks or call.always_open)
        if is_open and host and not _LOOPBACK.fullmatch(host):
            raise forbidden(
                "this server needs no token and answers to localhost and 127.0.0.1 only, so "
                "that no other site's page reaches it by a name of its own: use one of them, "
                "or give it a token",
            )
        offered = offered_token(headers)
        if offered is None and scope["type"] == "websocket":  # browsers can send no header there
            asked = QueryParams(scope["query_string"])
            offered = f"Bearer {asked['token']}" if "token" in asked else None
        state = scope.setdefault("state", {})
        state[OFFERED] = offered
        tenant = "" if call.always_open else self._admission.door.tenant_of(offered)
        if tenant is None:
            raise refuse(Reason.UNAUTHENTICATED, "the bearer token is missing or unknown")
        call.tenant = tenant or state.get(CERTIFIED, "")
        call.label = tenant or (BY_CERTIFICATE if call.tenant else "")

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        limit = self._config.max_body_bytes
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limit:
            raise _too_large(limit)
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._config.body_timeout_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise refuse(Reason.CANCELLED, "the caller went away")
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > limit:
                        raise _too_large(limit)
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            raise refuse(
                Reason.DEADLINE_EXCEEDED,
                f"the body did not arrive within {self._config.body_timeout_s:g} s",
            ) from None

    def _log_end(
        self, call: ServerCall, run: _Run | _Conversation, scope: Scope, seconds: float
    ) -> None:
        if call.span.recording:
            tenant = {"assay.tenant": call.tenant} if call.tenant else {}
            call.span.note({"http.response.status_code": run.status,
                            "assay.request_id": call.request_id, **tenant})  # fmt: skip
            if run.code != "OK":
                call.span.fail(run.reason or run.code)
        if not call.always_open:
            self._admission.calls.ended(
                call.method if call.known else "", run.code, run.reason, seconds, call.label
            )
        client = scope.get("client")
        call_ended(
            method=call.method,
            code=run.code,
            reason=run.reason,
            duration_ms=seconds * 1000,
            peer_kind="ipv6" if client and ":" in client[0] else "ipv4",
            fields={"http_status": run.status, **call.fields},
            quiet=call.always_open,
        )


class _Run:
    """One answer on its way.

    Attributes:
        status: that was sent; 499 while there is none.
        code: name of the gRPC code that the call would have ended with.
        reason: of the lexicon; empty where it went well.
        closes: whether a refusal ends the connection, as the next request's beginning is unknown.
    """

    def __init__(self, call: ServerCall, receive: Receive, send: Send, *, closes: bool) -> None:
        self._call = call
        self.closes = closes
        self.receive = receive
        self._send = send
        self._begun = self._complete = self._gone = False
        self.status = CLIENT_CLOSED_REQUEST
        self.code, self.reason = "OK", ""

    async def serve(self, app: ASGIApp, scope: Scope, body: bytes) -> None:
        task = asyncio.current_task()
        watching = asyncio.create_task(self._watch(task))
        try:
            await app(scope, _replay(body), self.send)
        finally:
            watching.cancel()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            self.status = message["status"]
            MutableHeaders(scope=message)[METADATA_KEY] = self._call.request_id
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self._complete = True
        await self._send(message)

    async def refuse(self, error: CallError, missed: HTTPException | None = None) -> None:
        """Answers with a problem; an answer that has begun is left unfinished."""
        self.code, self.reason = error.code.name, error.reason
        if self._begun or self._gone:
            return
        status = missed.status_code if missed is not None else 0
        response: Response = problem_response(error, self._call.request_id, status)
        if missed is not None and missed.headers:
            response.headers.update(missed.headers)
        if self.closes:
            response.headers["connection"] = "close"
        await response({"type": "http"}, self.receive, self.send)

    def ended_early(self) -> CallError | None:
        """The error of a cancellation by the drain or by the caller; None for neither."""
        task = asyncio.current_task()
        ours = self._call.evicted + self._gone  # both, where a drain and a caller end it at once
        if task is None or not ours:
            return None
        for _ in range(ours):
            others = task.uncancel()
        if others:
            return None
        if self._gone:
            return refuse(Reason.CANCELLED, "the caller went away")
        return outstayed()

    async def _watch(self, task: asyncio.Task[Any] | None) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        if not self._complete and task is not None:
            self._gone = True
            task.cancel()


class _Conversation:
    """A WebSocket; attributes as of `_Run`."""

    def __init__(self, call: ServerCall, scope: Scope, receive: Receive, send: Send) -> None:
        self._call = call
        self._scope = scope
        self._receive = receive
        self._send = send
        self.status = 101
        self.code, self.reason = "OK", ""
        self._accepted = False

    async def send(self, message: Message) -> None:
        self._accepted = self._accepted or message["type"] == "websocket.accept"
        await self._send(message)

    async def refuse(self, error: CallError) -> None:
        """Answers with a problem, or closes what was accepted: 1012 where it may be tried again."""
        self.code, self.reason = error.code.name, error.reason
        if self._accepted:
            code = 1012 if is_retryable(error) else 1011
            with contextlib.suppress(RuntimeError):  # the caller has closed it
                await self._send({"type": "websocket.close", "code": code, "reason": error.reason})
            return
        response = problem_response(error, self._call.request_id)
        self.status = response.status_code
        await response(self._scope, self._receive, self._send)


def _has_two_lengths(headers: Headers, scope: Scope) -> bool:
    """Whether others may read another end of the body than h11 (RFC 9112, section 6.1)."""
    chunked = "transfer-encoding" in headers
    return chunked and ("content-length" in headers or scope["http_version"] == "1.0")


def _replay(body: bytes) -> Callable[[], Awaitable[Message]]:
    """A `receive` that gives the body, and then waits for ever."""
    parts = [body]

    async def receive() -> Message:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    return receive


def _as_sent(scope: Scope) -> str:
    """An unknown path for logs, percent-encoded, so that %0a makes no line of its own."""
    path: bytes = scope["raw_path"]
    return path[:_MAX_LOGGED_CHARS].decode("ascii", "backslashreplace")


def _authority(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def offered_token(headers: Headers) -> str | None:
    """The token of a request, as "Bearer TOKEN"; None for a request without one."""
    keys = [f"Bearer {headers[name]}" for name in _KEYS if name in headers]
    return _authorized(headers.get("authorization")) or next(iter(keys), None)


def _authorized(offered: str | None) -> str | None:
    scheme, _, rest = (offered or "").partition(" ")
    if scheme.lower() in ("bearer", "token"):
        return f"Bearer {rest}"
    if scheme.lower() != "basic":
        return offered
    try:
        pair = base64.b64decode(rest, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    password = pair.partition(":")[2]
    return f"Bearer {password}" if password else None


def _too_large(limit: int) -> CallError:
    return refuse(
        Reason.MESSAGE_TOO_LARGE, f"the body has more than {limit} bytes: send less at a time"
    )


def _missed(missed: HTTPException, method: str, hint: str) -> CallError:
    text = f"this server has no {method}"
    if hint:
        text += f": {hint}"
    if missed.status_code == 405:
        text = f"{method} does not answer this HTTP method"
    return refuse(Reason.UNKNOWN_METHOD, text)


def _defect(call: ServerCall, defect: Exception) -> CallError:
    _log.error("defect in %s", call.method, exc_info=defect)
    return refuse(
        Reason.INTERNAL,
        f"the server failed ({type(defect).__name__}); its log says more under request id "
        f"{call.request_id}",
        request_id=call.request_id,
    )
