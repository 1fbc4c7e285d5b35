"""One trace from the trainer's round to the run in the sandbox, by real services and over OTLP."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients import EmbeddedServices, Item, RewardClient
from assay.clients.execution import CallTest, Limits, TestSuite, suite_to_proto
from assay.kit import health, tracing
from assay.kit.calls import METADATA_KEY
from assay.kit.limits import channel_options
from assay.kit.spans import TRACEPARENT
from assay.trainer.rollouts.scoring import BackgroundClient
from chaos import install
from rollouts_scoring_support import judge_over, request, response
from sandbox_service import ANY_FLOOR
from tracing_support import Collector, Seen, collecting

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SECRET = "squeamish-ossifrage"
TESTS = suite_to_proto(
    TestSuite([CallTest("double", (n,), 2 * n) for n in (1, 2)], Limits(wall_time_s=5.0))
)
PROGRAM = f"```python\n# {SECRET}\ndef double(x):\n    return x + x\n```"
REWARD = "assay.api.reward.v1.RewardService"
SHOWN = 3


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[EmbeddedServices, Collector, Path]]:
    """Services with traces, what they send, and where they log; this process has traces too."""
    folder = tmp_path_factory.mktemp("tracing")
    plug_ins, logs = install(tmp_path_factory.mktemp("plug-ins")), folder / "logs"
    flags = {
        "reward": ("--log-json", "--workers", "2", "--cache-entries", "0"),
        "sandbox": (*ANY_FLOOR, "--log-json", "--languages", "python", "--slots", "1"),
    }
    path = os.pathsep.join(filter(None, [str(plug_ins), os.environ.get("PYTHONPATH")]))
    with pytest.MonkeyPatch.context() as patch, collecting() as (collector, environment):
        for name, value in {
            **environment,
            tracing.ITEMS_VARIABLE: str(SHOWN),
            "OTEL_SERVICE_NAME": "the trainer",
            "PYTHONPATH": path,
            "OMP_NUM_THREADS": "1",
        }.items():
            patch.setenv(name, value)
        assert tracing.set_up("nobody")
        try:
            with EmbeddedServices(
                ("reward", "sandbox"), arguments=flags, log_dir=logs, start_timeout_s=280
            ) as services:
                yield services, collector, logs
        finally:
            tracing.close()


def has(*names: tuple[str, str]) -> object:
    """Whether these spans of these services are there."""

    def whole(spans: list[Seen]) -> bool:
        return set(names) <= {(span.service, span.name) for span in spans}

    return whole


def test_one_trace_from_the_round_to_the_run(
    stack: tuple[EmbeddedServices, Collector, Path],
) -> None:
    services, collector, logs = stack
    with (
        BackgroundClient(services.address) as client,
        tracing.span("step", {"assay.step": 1}) as step,
    ):
        trace = step.trace_id()
        with judge_over(client, 60.0).open_round(0) as scoring:
            for number in range(6):
                scoring.submit(request(number), response(SECRET))
            assert len(scoring.results()) == 6
        results = client.score(
            [
                Item(PROGRAM, verifier="code", reference=TESTS),
                Item(f"sleep 0.3 {SECRET}", verifier="chaos", reference=SECRET),
                Item(f"raise {SECRET}", verifier="chaos"),
                Item(SECRET, verifier=SECRET),
            ]
        )
    assert [result.fault.reason if result.fault else "" for result in results] == [
        "",
        "",
        "VERIFIER_FAILED",
        "UNKNOWN_VERIFIER",
    ]
    batch, execution = f"{REWARD}/BatchScore", "assay.api.execution.v1.ExecutionService/RunTests"
    tree = collector.until(
        trace,
        has(  # type: ignore[arg-type]
            ("the trainer", "step"),
            ("the trainer", batch),
            ("reward_server", batch),
            ("reward_server", f"{REWARD}/StreamScore"),
            ("sandbox", execution),
            ("reward_server", "ask code"),
            ("reward_server", execution),
            ("the trainer", "scoring"),
        ),
    )
    root = ("the trainer", "step")
    served = [("reward_server", batch), ("the trainer", batch), ("the trainer", "score"), root]
    [run] = tree.named("item python", "sandbox")
    asked = [("sandbox", execution), ("reward_server", execution), ("reward_server", "ask code")]
    assert tree.above(run) == [*asked, *served]
    assert (run.facts["assay.tests"], run.facts["assay.tests.passed"]) == (2, 2)
    streamed = f"{REWARD}/StreamScore"
    [stream] = tree.named(streamed, "reward_server")
    assert tree.above(stream) == [("the trainer", streamed), ("the trainer", "scoring"), root]
    # A call shows its slowest items and its faults, and counts them all.
    assert (stream.facts["assay.items"], stream.facts["assay.items.shown"]) == (6, SHOWN)
    assert len([span for span in tree.below(stream) if span.name == "item exact"]) == SHOWN
    assert tree.one("scoring").facts["assay.items"] == 6

    [call] = tree.named(batch, "reward_server")
    items = [span for span in tree.below(call) if span.name.startswith("item ")]
    failed = {span.failed for span in items}
    assert failed == {"", "VERIFIER_FAILED", "UNKNOWN_VERIFIER"}
    [slow] = [span for span in items if span.name == "item chaos" and not span.failed]
    [waited, executed] = sorted(tree.below(slow), key=lambda span: span.name, reverse=True)
    assert (waited.name, executed.name) == ("queue", "execution")
    assert 0.1 < executed.seconds <= slow.seconds  # by the clock of whoever waits for the worker
    assert executed.proto.start_time_unix_nano == waited.proto.end_time_unix_nano
    assert executed.proto.end_time_unix_nano == slow.proto.end_time_unix_nano
    assert slow.facts["assay.verdict"] == "fine"
    assert slow.facts["assay.isolation"] == "process"
    assert call.facts["assay.faults"] == 2
    ids = {span.facts["assay.request_id"] for span in tree.named(batch)}
    assert len(ids) == 1
    # Nothing that a caller wrote is in a span, here or of another trace.
    assert all(SECRET not in str(span.proto) for span in collector.spans)
    worker_has_logged(logs / "reward.err", ids.pop(), services.pid(), trace)


def worker_has_logged(path: Path, request_id: str, server: int, trace: str) -> None:
    """The traceback of the verifier that raised bears the call's id, as the call's line does."""
    said = [json.loads(line) for line in path.read_text().splitlines()]
    [raised] = [one for one in said if one["message"] == "verifier chaos failed"]
    assert (raised["request_id"], raised["pid"] == server) == (request_id, False)
    [call] = [one for one in said if one.get("trace_id") and one["request_id"] == request_id]
    assert (call["trace_id"], call["items"]) == (trace, 4)


def test_a_caller_who_is_not_sampled_leaves_no_spans(
    stack: tuple[EmbeddedServices, Collector, Path],
) -> None:
    services, collector, _ = stack
    message = reward_pb2.BatchScoreRequest(
        items=[reward_pb2.Item(id="1", verifier="exact", response="a", reference={"text": "a"})]
    )
    quiet, loud = "1" * 32, "2" * 32
    with grpc.insecure_channel(services.address, options=channel_options()) as channel:
        stub = reward_pb2_grpc.RewardServiceStub(channel)
        for parent in (
            f"00-{quiet}-{'3' * 16}-00",
            "nonsense",
            f"00-{'0' * 32}-{'0' * 16}-01",
            f"00-{loud}-{'3' * 16}-01",
        ):
            metadata = ((METADATA_KEY, "call"), (TRACEPARENT, parent))
            assert (
                stub.BatchScore(message, timeout=30, metadata=metadata)
                .results[0]
                .HasField("judgement")
            )
    name = f"{REWARD}/BatchScore"
    tree = collector.until(loud, has(("reward_server", name)))  # type: ignore[arg-type]
    assert tree.one(name).parent == "3" * 16
    assert not collector.of(quiet)
    assert not collector.of("0" * 32)


def test_health_is_in_no_trace_and_refusals_fail_theirs(
    stack: tuple[EmbeddedServices, Collector, Path],
) -> None:
    services, collector, _ = stack
    assert asyncio.run(health.check(services.address, timeout_s=10.0)) is health.Health.SERVING
    with grpc.insecure_channel(services.address, options=channel_options()) as channel:
        stub = reward_pb2_grpc.RewardServiceStub(channel)
        trace = "4" * 32
        metadata = ((TRACEPARENT, f"00-{trace}-{'5' * 16}-01"),)
        with pytest.raises(grpc.RpcError):
            stub.BatchScore(reward_pb2.BatchScoreRequest(), timeout=10, metadata=metadata)
    name = f"{REWARD}/BatchScore"
    tree = collector.until(trace, has(("reward_server", name)))  # type: ignore[arg-type]
    call = tree.one(name)
    assert (call.failed, call.facts["rpc.response.status_code"]) == (
        "EMPTY_BATCH",
        "INVALID_ARGUMENT",
    )
    assert not [span for span in collector.spans if "Health" in span.name]


def test_a_collector_that_is_gone_costs_no_judgement(tmp_path: Path) -> None:
    """Nobody listens there, and next to nothing may wait: spans go, judgements stay."""
    del tmp_path
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_TRACES_EXPORTER", "otlp")
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        patch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
        patch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
        began = time.monotonic()
        with EmbeddedServices(arguments={"reward": ("--workers", "1")}) as services:
            with RewardClient(services.address) as client:
                items = [Item("a", reference="a", verifier="exact")] * 64
                for _ in range(5):
                    assert all(r.fault is None for r in client.score(items))
            services.stop(grace_s=60.0)
            assert not services.dead()
        assert time.monotonic() - began < 60.0
