"""Traces in one process: what is kept of many items, how they are turned on, what they cost off."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from assay.kit import tracing
from assay.kit.errors import ConfigError, refuse
from assay.kit.gate import ServerCall
from assay.kit.interceptors import _facts
from assay.kit.reasons import Reason
from assay.kit.tracing_otel import OtelTracer
from assay.kit.trails import Stretch, Trail, item_stretch
from assay.trainer.records.callbacks import StepSpans

TIMES = st.floats(0, 1e3, allow_nan=False)
ITEMS = st.lists(st.tuples(TIMES, TIMES, st.booleans()), max_size=40)


@pytest.fixture
def made() -> Iterator[InMemorySpanExporter]:
    """What this process's spans are, while it has traces."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(OtelTracer("tests", provider), most_items=2)
    try:
        yield exporter
    finally:
        tracing.close()
        provider.shutdown()


@given(ITEMS, st.integers(0, 5))
def test_a_trail_counts_all_and_keeps_the_slowest_and_the_first_faults(
    items: list[tuple[float, float, bool]], most: int
) -> None:
    trail = Trail(most)
    asked: list[int] = []

    def describe(number: int) -> Stretch:
        asked.append(number)
        return Stretch(str(number), 0.0, 0.0)

    for wait_s, execution_s, fault in items:
        trail.add(100.0, 100.0 + wait_s, execution_s, fault=fault, describe=describe)
    kept = [int(stretch.name) for stretch in trail.kept()]
    assert (trail.items, trail.faults) == (len(items), sum(fault for *_, fault in items))
    assert kept == sorted(set(kept))
    assert set(kept) <= set(asked)
    assert len(kept) == min(len(kept), 2 * most)
    first = [number for number, item in enumerate(items) if item[2]][:most]
    assert set(first) <= set(kept)
    took = {
        number: max(0.0, (100.0 + item[0]) - 100.0) + item[1]
        for number, item in enumerate(items)
        if number not in first
    }
    slow = set(kept) - set(first)
    assert len(slow) == min(most, len(took))
    left = [took[number] for number in took if number not in slow]
    assert not left or not slow or min(took[number] for number in slow) >= max(left)
    assert trail.longest_execution_s == max([item[1] for item in items], default=0.0)


@given(TIMES, TIMES, TIMES)
def test_wait_and_execution_fill_an_item(arrived: float, started: float, execution: float) -> None:
    whole = item_stretch("v", arrived, started, execution, {})
    assert whole.began_s == whole.parts[0].began_s == arrived
    assert whole.parts[-1].ended_s == whole.ended_s >= whole.began_s
    assert [part.name for part in whole.parts] == ["queue", "execution"][: 1 + (execution > 0)]
    for before, after in zip(whole.parts, whole.parts[1:], strict=False):
        assert before.ended_s == after.began_s


def test_a_served_call_shows_its_items_at_its_end(made: InMemorySpanExporter) -> None:
    now_s = time.monotonic()
    with tracing.span("step"), tracing.calling("a.S/M") as call:
        carried = dict(call.headers())
    with tracing.serving("a.S/M", {**carried, "authorization": "Bearer secret"}) as served:
        trail = tracing.trail()
        assert trail is not None
        for number in range(5):
            reason = "ITEM_TIMEOUT" if number == 4 else ""
            stretch = item_stretch(
                "v", now_s, now_s + 1, number, {"assay.item": number}, reason=reason
            )
            trail.add(now_s, now_s + 1, number, fault=bool(reason), describe=lambda _, s=stretch: s)
        inner = dict(tracing.headers())
        served.note({"assay.tenant": "t"})
    assert tracing.trail() is None
    assert tracing.headers() == ()
    spans = {span.name: span for span in made.get_finished_spans()}
    assert len({span.context.trace_id for span in spans.values()}) == 1
    finished = made.get_finished_spans()
    [server] = [span for span in finished if span.kind.name == "SERVER"]
    assert server.parent.span_id == int(carried["traceparent"].split("-")[2], 16)
    assert int(inner["traceparent"].split("-")[2], 16) == server.context.span_id
    assert (server.attributes["assay.items"], server.attributes["assay.items.shown"]) == (5, 3)
    items = [span for span in finished if span.name == "item v"]
    assert [span.attributes["assay.item"] for span in items] == [2, 3, 4]
    assert [span.status.status_code for span in items] == [
        StatusCode.UNSET,
        StatusCode.UNSET,
        StatusCode.ERROR,
    ]
    assert [span.end_time - span.start_time for span in items] == pytest.approx(
        [3e9, 4e9, 5e9], rel=1e-6
    )
    assert "secret" not in "".join(span.to_json() for span in finished)


def test_what_is_raised_marks_a_span_by_its_reason_and_without_its_text(
    made: InMemorySpanExporter,
) -> None:
    with pytest.raises(ValueError, match="secret"), tracing.span("a"):
        raise ValueError("secret")
    with pytest.raises(Exception, match="secret"), tracing.calling("b"):
        raise refuse(Reason.QUEUE_FULL, "secret")
    failed = tracing.span("c")
    failed.fail("THE_CAUSE")
    with pytest.raises(ValueError, match="secret"), failed:
        raise ValueError("secret")
    found = made.get_finished_spans()
    assert [span.status.description for span in found] == ["ValueError", "QUEUE_FULL", "THE_CAUSE"]
    assert "secret" not in "".join(span.to_json() for span in found)


async def test_spans_stay_in_their_tasks(made: InMemorySpanExporter) -> None:
    async def work(name: str) -> None:
        with tracing.span(name):
            await asyncio.sleep(0.001)
            with tracing.span(f"in {name}"):
                await asyncio.sleep(0.001)

    await asyncio.gather(*(work(name) for name in "abc"))
    spans = {span.name: span for span in made.get_finished_spans()}
    for name in "abc":
        assert spans[f"in {name}"].parent.span_id == spans[name].context.span_id


def test_a_step_has_a_span_from_its_first_update_to_its_last(made: InMemorySpanExporter) -> None:
    class State:
        global_step = 0

    state: Any = State()
    spans = StepSpans(updates=2)
    for _ in range(4):
        spans.on_step_begin(None, state, None)  # type: ignore[arg-type]
        with tracing.span("generate"):
            pass
        state.global_step += 1
        spans.on_step_end(None, state, None)  # type: ignore[arg-type]
    found = made.get_finished_spans()
    steps = {s.context.span_id: s.attributes["assay.step"] for s in found if s.name == "step"}
    assert sorted(steps.values()) == [1, 2]
    below = [steps[span.parent.span_id] for span in found if span.name == "generate"]
    assert below == [1, 1, 2, 2]


def test_a_forked_child_has_no_traces(made: InMemorySpanExporter) -> None:
    read, write = os.pipe()
    if os.fork() == 0:
        with tracing.span("child") as span:
            os.write(write, b"on" if tracing.on() or span.recording else b"off")
        os._exit(0)
    os.wait()
    assert os.read(read, 10) == b"off"
    os.close(read)
    os.close(write)
    assert tracing.on()


def test_a_seeded_run_has_ids_of_its_own_and_draws_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    assert tracing.set_up("tests")
    try:
        ids = []
        for _ in range(2):
            random.seed(0)
            state = random.getstate()
            with tracing.span("a") as span:
                ids.append(span.headers()[0][1])
            assert random.getstate() == state
        assert len(set(ids)) == 2
    finally:
        monkeypatch.setattr(tracing, "_CLOSE_S", 0.0)  # nobody listens there
        tracing.close()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "say otlp, or none"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "4317"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "ASSAY_TRACE_ITEMS": "-1"}, "ASSAY_TRACE_ITEMS is '-1'"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "OTEL_"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], said: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=said) as refused:
        tracing.set_up("tests")
    assert "\n" not in str(refused.value)
    assert not tracing.on()


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"assay-rl-kit\[tracing\]"):
        tracing.set_up("tests")


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}]
)
def test_off_nothing_of_opentelemetry_is_loaded(settings: dict[str, str]) -> None:
    code = """
import sys
import assay.clients.reward, assay.clients.execution, assay.reward_server.server
from assay.kit import tracing
assert not tracing.set_up("tests")
with tracing.span("a") as span, tracing.serving("b", {"traceparent": "x"}), tracing.calling("c"):
    assert not span.recording and tracing.headers() == () and tracing.trail() is None
print([name for name in sys.modules if "opentelemetry" in name])
"""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_call_says_whose_it_is_and_nothing_of_its_token() -> None:
    call = ServerCall("/a.B/C", "id-1", always_open=False, tenant="team")
    call.headers = {"authorization": "Bearer secret"}
    assert _facts(call, "OK") == {
        "rpc.response.status_code": "OK",
        "assay.request_id": "id-1",
        "assay.tenant": "team",
    }
    assert "assay.tenant" not in _facts(ServerCall("/a.B/C", "id-1", always_open=False), "OK")
