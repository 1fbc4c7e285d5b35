"""What the rim does for each call, over the real wire and for all four kinds of methods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import wrappers_pb2

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients.core.failures import error_of_call
from assay.kit.calls import METADATA_KEY, add_log_fields, request_id_var
from assay.kit.channels import open_channel
from assay.kit.deadlines import remaining_s
from assay.kit.errors import CallError, refuse
from assay.kit.health import Health, check
from assay.kit.limits import MAX_MESSAGE_BYTES
from assay.kit.log_format import fields_of
from assay.kit.logs import CALL_LOGGER, RequestIdFilter
from assay.kit.reasons import Reason
from assay.kit.serving import ServeConfig, Service, start

NAME = "assay.test.Echo"
KINDS = ["UnaryUnary", "UnaryStream", "StreamUnary", "StreamStream"]
Text = wrappers_pb2.StringValue
Bytes = wrappers_pb2.BytesValue
log = logging.getLogger("assay.test")


class Echo:
    """Does what the text of the request says, in a method of each kind."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def _do(self, text: str, context: Any) -> str:
        self.entered.set()
        match text:
            case "refuse":
                raise refuse(Reason.QUEUE_FULL, "full", retry_after_s=0.25, depth="7")
            case "break":
                raise ValueError("the payload, word for word")
            case "abort":
                await context.abort(grpc.StatusCode.NOT_FOUND, "by hand")
            case "hang":
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
            case "inner":
                raise asyncio.CancelledError
            case "deadline":
                return str(remaining_s(context))
            case "note":
                add_log_fields(items=3)
                log.warning("in the call")
                return request_id_var.get()
            case "large":
                return "x" * MAX_MESSAGE_BYTES
        return text

    async def unary_unary(self, request: Text, context: Any) -> Text:
        return Text(value=await self._do(request.value, context))

    async def unary_stream(self, request: Text, context: Any) -> AsyncIterator[Text]:
        yield Text(value="first")
        yield Text(value=await self._do(request.value, context))

    async def stream_unary(self, requests: AsyncIterator[Text], context: Any) -> Text:
        texts = [request.value async for request in requests]
        return Text(value=await self._do(texts[-1], context))

    async def stream_stream(
        self, requests: AsyncIterator[Text], context: Any
    ) -> AsyncIterator[Text]:
        async for request in requests:
            yield Text(value=await self._do(request.value, context))

    def add_to_server(self, server: grpc.aio.Server) -> None:
        codec = (Text.FromString, Text.SerializeToString)
        handlers: dict[str, Any] = {
            "UnaryUnary": grpc.unary_unary_rpc_method_handler(self.unary_unary, *codec),
            "UnaryStream": grpc.unary_stream_rpc_method_handler(self.unary_stream, *codec),
            "StreamUnary": grpc.stream_unary_rpc_method_handler(self.stream_unary, *codec),
            "StreamStream": grpc.stream_stream_rpc_method_handler(self.stream_stream, *codec),
        }
        generic = grpc.method_handlers_generic_handler(NAME, handlers)
        server.add_generic_rpc_handlers((generic,))


async def fine() -> None:
    """A self-test that passes."""


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What is logged meanwhile, as the handlers of `setup_logging` see it."""
    seen: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    handler, root = Keep(), logging.getLogger()
    handler.addFilter(RequestIdFilter())
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield seen
    root.removeHandler(handler)
    root.setLevel(level)


@asynccontextmanager
async def serving(
    config: ServeConfig | None = None, *, token: str | None = None
) -> AsyncIterator[tuple[Echo, Any]]:
    echo = Echo()
    service = Service(NAME, echo.add_to_server, fine)
    async with (
        await start([service], config or ServeConfig()) as server,
        open_channel(server.address, token=token) as channel,
    ):
        yield echo, channel


def begin(
    channel: Any, kind: str, text: str | Text, timeout_s: float | None = 30, **more: Any
) -> Any:
    """The call itself."""
    open_method = {
        "UnaryUnary": channel.unary_unary,
        "UnaryStream": channel.unary_stream,
        "StreamUnary": channel.stream_unary,
        "StreamStream": channel.stream_stream,
    }[kind]
    method = open_method(f"/{NAME}/{kind}", lambda sent: sent.SerializeToString(), Text.FromString)
    sent: Any = Text(value=text) if isinstance(text, str) else text
    return method(iter([sent]) if kind.startswith("Stream") else sent, timeout=timeout_s, **more)


async def answer_of(call: Any) -> str:
    """The last text that the call answers with."""
    if hasattr(call, "__aiter__"):
        return str([text.value async for text in call][-1])
    return str((await call).value)


async def failure_of(call: Any) -> tuple[CallError, dict[str, Any]]:
    """What the call ended with, and its trailing metadata."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answer_of(call)
    return error_of_call(caught.value, "the server", ""), dict(
        caught.value.trailing_metadata() or ()
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_goes_through(kind: str) -> None:
    async with serving() as (_, channel):
        assert await answer_of(begin(channel, kind, "hello")) == "hello"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_without_a_deadline_is_refused(kind: str) -> None:
    async with serving() as (echo, channel):
        error, _ = await failure_of(begin(channel, kind, "hello", timeout_s=None))
        assert error.code is grpc.StatusCode.INVALID_ARGUMENT
        assert error.reason == Reason.DEADLINE_REQUIRED
        assert not echo.entered.is_set()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_handler_sees_what_remains_of_the_deadline(kind: str) -> None:
    async with serving() as (_, channel):
        left_s = float(await answer_of(begin(channel, kind, "deadline", timeout_s=500)))
        assert 100 < left_s <= 501


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refusal_keeps_reason_wait_and_facts(kind: str) -> None:
    async with serving() as (_, channel):
        error, trailing = await failure_of(begin(channel, kind, "refuse"))
        assert error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (error.reason, str(error)) == (Reason.QUEUE_FULL, "full")
        assert (error.retry_after_s, error.metadata) == (0.25, {"depth": "7"})
        assert trailing[METADATA_KEY]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_unexpected_exception_shows_no_text(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as (_, channel):
        call = begin(channel, kind, "break", metadata=((METADATA_KEY, "call-7"),))
        error, trailing = await failure_of(call)
        assert error.code is grpc.StatusCode.INTERNAL
        assert error.reason == Reason.INTERNAL
        assert "ValueError" in str(error)
        assert "call-7" in str(error)
        assert "word for word" not in repr((str(error), error.metadata, trailing))
    assert "word for word" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
async def test_an_inner_cancellation_is_a_defect_not_a_silence(kind: str) -> None:
    async with serving() as (_, channel):
        error, _ = await failure_of(begin(channel, kind, "inner"))
        assert error.reason == Reason.INTERNAL


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handler_may_abort_by_itself(kind: str) -> None:
    async with serving() as (_, channel):
        error, _ = await failure_of(begin(channel, kind, "abort"))
        assert error.code is grpc.StatusCode.NOT_FOUND
        assert "by hand" in str(error)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancelled_call_cancels_its_handler(kind: str) -> None:
    async with serving() as (echo, channel):
        call = begin(channel, kind, "hang")
        waiting = asyncio.ensure_future(answer_of(call))
        await asyncio.wait_for(echo.entered.wait(), 20)
        call.cancel()
        await asyncio.wait_for(echo.cancelled.wait(), 20)
        with pytest.raises(asyncio.CancelledError):
            await waiting


@pytest.mark.parametrize("kind", KINDS)
async def test_a_passed_deadline_cancels_the_handler(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, CALL_LOGGER)
    async with serving() as (echo, channel):
        error, _ = await failure_of(begin(channel, kind, "hang", timeout_s=0.3))
        assert error.code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert error.reason == Reason.DEADLINE_EXCEEDED
        await asyncio.wait_for(echo.cancelled.wait(), 20)
    codes = [fields_of(record).get("code") for record in caplog.records]
    assert codes in (["DEADLINE_EXCEEDED"], ["CANCELLED"])


@pytest.mark.parametrize("kind", KINDS)
async def test_the_request_id_goes_round_and_into_every_record(
    kind: str, records: list[logging.LogRecord]
) -> None:
    async with serving() as (_, channel):
        call = begin(channel, kind, "note", metadata=((METADATA_KEY, "call-7"),))
        assert await answer_of(call) == "call-7"
        assert dict(await call.trailing_metadata())[METADATA_KEY] == "call-7"
        odd = begin(channel, kind, "note", metadata=((METADATA_KEY, "not sane"),))
        made = await answer_of(odd)
        assert len(made) == 32
        assert dict(await odd.trailing_metadata())[METADATA_KEY] == made
    ours = [record for record in records if record.name in {"assay.test", CALL_LOGGER}]
    ids = [getattr(record, "request_id", None) for record in ours]
    assert ids == ["call-7", "call-7", made, made]


@pytest.mark.parametrize("kind", KINDS)
async def test_each_call_is_one_line_of_facts(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, CALL_LOGGER)
    async with serving() as (_, channel):
        await answer_of(begin(channel, kind, "note"))
        await failure_of(begin(channel, kind, "refuse"))
    good, bad = (dict(fields_of(r)) for r in caplog.records if r.name == CALL_LOGGER)
    duration_ms = good.pop("duration_ms")
    assert isinstance(duration_ms, float)
    assert duration_ms >= 0
    assert good == {"method": f"/{NAME}/{kind}", "code": "OK", "peer": "ipv4", "items": 3}
    assert (bad["code"], bad["reason"]) == ("RESOURCE_EXHAUSTED", "QUEUE_FULL")


async def test_a_request_id_travels_on_with_calls_made_meanwhile() -> None:
    async with serving() as (_, channel):
        reset = request_id_var.set("outer-1")
        try:
            assert await answer_of(begin(channel, "UnaryUnary", "note")) == "outer-1"
        finally:
            request_id_var.reset(reset)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_past_the_limit_is_a_clear_error(kind: str) -> None:
    async with serving() as (_, channel):
        error, _ = await failure_of(begin(channel, kind, "large"))
        assert error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert error.reason == Reason.MESSAGE_TOO_LARGE
        assert error.retry_after_s is None
        assert str(MAX_MESSAGE_BYTES) in str(error)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_past_the_limit_is_a_clear_error(kind: str) -> None:
    async with serving() as (echo, channel):
        too_much = Text(value="x" * MAX_MESSAGE_BYTES)
        error, _ = await failure_of(begin(channel, kind, too_much))
        assert error.reason == Reason.MESSAGE_TOO_LARGE
        assert not echo.entered.is_set()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_server_too_refuses_a_request_past_the_limit(kind: str) -> None:
    echo = Echo()
    service = Service(NAME, echo.add_to_server, fine)
    unlimited = [("grpc.max_send_message_length", -1)]
    async with (
        await start([service], ServeConfig()) as server,
        grpc.aio.insecure_channel(server.address, options=unlimited) as channel,
    ):
        too_much = Text(value="x" * MAX_MESSAGE_BYTES)
        error, _ = await failure_of(begin(channel, kind, too_much))
        assert error.reason == Reason.MESSAGE_TOO_LARGE
        assert await answer_of(begin(channel, kind, "still here")) == "still here"


async def test_the_largest_message_goes_through() -> None:
    async with serving() as (_, channel):
        text = "x" * (MAX_MESSAGE_BYTES - 5)
        assert Text(value=text).ByteSize() == MAX_MESSAGE_BYTES
        assert await answer_of(begin(channel, "UnaryUnary", text)) == text


@pytest.mark.parametrize("kind", KINDS)
async def test_bytes_that_are_no_message_are_refused(kind: str) -> None:
    async with serving() as (_, channel):
        junk: Any = Bytes(value=b"\xff\xfe")  # not UTF-8, as a text must be
        error, _ = await failure_of(begin(channel, kind, junk))
        assert error.code is grpc.StatusCode.INVALID_ARGUMENT
        assert error.reason == Reason.MALFORMED_REQUEST


@pytest.mark.parametrize("kind", KINDS)
async def test_only_the_right_token_gets_in(kind: str) -> None:
    config = ServeConfig(token="right")
    async with serving(config, token="right") as (_, channel):
        assert await answer_of(begin(channel, kind, "hello")) == "hello"
    for wrong in (None, "wrong", "righ", "rightt"):
        async with serving(config, token=wrong) as (echo, channel):
            error, trailing = await failure_of(begin(channel, kind, "hello"))
            assert error.code is grpc.StatusCode.UNAUTHENTICATED
            assert error.reason == Reason.UNAUTHENTICATED
            assert trailing[METADATA_KEY]
            assert not echo.entered.is_set()
            assert await check(channel, NAME) is Health.SERVING


async def test_calls_above_the_limit_are_told_to_wait() -> None:
    async with serving(ServeConfig(max_concurrent_calls=1)) as (echo, channel):
        first = begin(channel, "UnaryUnary", "hang")
        await asyncio.wait_for(echo.entered.wait(), 20)
        error, _ = await failure_of(begin(channel, "UnaryUnary", "hello"))
        assert error.reason == Reason.QUEUE_FULL
        assert error.retry_after_s is not None
        assert await check(channel) is Health.SERVING
        first.cancel()
        await asyncio.wait_for(echo.cancelled.wait(), 20)
        for _ in range(500):
            try:
                assert await answer_of(begin(channel, "UnaryUnary", "hello")) == "hello"
                break
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.01)
        else:
            pytest.fail("the place of the cancelled call was never free again")


async def test_a_method_that_is_not_there_is_named() -> None:
    async with serving() as (_, channel):
        method = channel.unary_unary("/assay.test.Echo/Missing")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(b"", timeout=30)
        error = error_of_call(caught.value, "the server", "")
        assert error.code is grpc.StatusCode.UNIMPLEMENTED
        assert error.reason == Reason.UNKNOWN_METHOD
        assert "/assay.test.Echo/Missing" in str(error)


class Partial(reward_pb2_grpc.RewardServiceServicer):
    """Implements one method of three, with the writer API and a status of its own."""

    async def BatchScore(self, request: Any, context: Any) -> Any:
        context.set_code(grpc.StatusCode.NOT_FOUND)
        context.set_details("set by hand")

    def StreamScore(self, request_iterator: Any, context: Any) -> Any:
        return super().StreamScore(request_iterator, context)

    def ListVerifiers(self, request: Any, context: Any) -> Any:
        return super().ListVerifiers(request, context)


async def test_generated_services_are_served_whole() -> None:
    service = Service(
        "assay.api.reward.v1.RewardService",
        lambda server: reward_pb2_grpc.add_RewardServiceServicer_to_server(Partial(), server),
        fine,
    )
    async with (
        await start([service], ServeConfig()) as server,
        open_channel(server.address) as channel,
    ):
        stub: Any = reward_pb2_grpc.RewardServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.BatchScore(reward_pb2.BatchScoreRequest(), timeout=30)
        assert error_of_call(caught.value, "the server", "").code is grpc.StatusCode.NOT_FOUND
        assert caught.value.details() == "set by hand"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=30)
        assert error_of_call(caught.value, "the server", "").reason == Reason.UNKNOWN_METHOD
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.StreamScore(iter(()), timeout=30).read()
        assert error_of_call(caught.value, "the server", "").reason == Reason.UNKNOWN_METHOD


async def test_a_dead_address_is_unreachable() -> None:
    async with serving() as (_, channel):
        pass
    server = await start([], ServeConfig())
    await server.stop()
    async with open_channel(server.address) as channel:
        error, _ = await failure_of(begin(channel, "UnaryUnary", "hello"))
        assert error.code is grpc.StatusCode.UNAVAILABLE
        assert error.reason == Reason.UNREACHABLE
