"""The facade on a real port: formats, door, limits, faults, drain."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.integration.test_server_wire import launch
from tests.unit.test_judge_verifiers import FakeGenrm

from assay.clients.judging import AsyncJudgeClient
from assay.kit import tracing
from assay.kit.access import Access
from assay.kit.errors import ConfigError, refuse
from assay.kit.http.config import HttpConfig
from assay.kit.log_format import TextFormatter
from assay.kit.metrics import CallMetrics
from assay.kit.reasons import Reason
from assay.kit.serving import ServeConfig
from assay.kit.tls import ServerTls
from assay.kit.tokens import hash_token
from assay.kit.tracing_otel import OtelTracer
from assay.viewer.journals.reader import Reader
from certificates import make_certificates
from http_support import Answer, Facade, basic, item, serving

GYM = {
    "responses_create_params": {"input": "6 * 7?"},
    "response": {"output": [{"type": "message", "content": [{"type": "output_text",
                                                             "text": "42"}]}]},
}  # fmt: skip
GRADERS = "/v1/fine_tuning/alpha/graders/run"


def reason(answer: Answer) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json
    assert told["status"] == answer.status
    assert told["request_id"] == answer.headers["x-request-id"]
    return answer.status, told["reason"]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not holds():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


async def test_each_format_over_one_scoring_path(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    async with serving(journal=journal) as facade:
        await formats(facade)
        await faults(facade)
        await streams(facade)
        await pages(facade, journal)


async def formats(facade: Facade) -> None:
    batch = {"items": [item("42"), item("41", item_id="b"), item("fault WORKER_DIED", "obedient",
                                                                 "c")]}  # fmt: skip
    answer = await facade.post("/v1/score", batch, x_request_id="mine")
    assert (answer.status, answer.headers["x-request-id"]) == (200, "mine")
    results = answer.json["results"]
    assert [one.get("judgement", {}).get("reward") for one in results] == [1.0, 0.0, None]
    assert results[2]["fault"]["details"][0]["reason"] == "WORKER_DIED"
    assert "judgement" not in results[2]

    asked = {"query": ["6*7? 42</s>", "6*7? 41"], "prompts": ["6*7? "] * 2, "labels": ["42"] * 2}
    answer = await facade.post("/get_reward?verifier=exact", asked)
    assert answer.json["rewards"] == answer.json["scores"] == [1.0, 0.0]

    told = {"prompt": "6*7?", "response": "42", "label": 42}
    assert (await facade.post("/slime?task=exact", told)).json == 1.0
    whole = await facade.post("/slime?verifier=exact&as=dict", told)
    assert whole.json["verdict"] == "correct"

    gym = await facade.post("/verify?verifier=exact", {**GYM, "expected_answer": "42"})
    assert (gym.json["reward"], gym.json["response"]) == (1.0, GYM["response"])
    assert (await facade.post("/seed_session", {})).json == {}
    assert (await facade.get("/reverify_mode")).json == "stateless"
    assert (await facade.get("/")).json["phase"] == "serving"
    total = await facade.post("/aggregate_metrics", {"verify_responses": [gym.json]})
    assert total.json["key_metrics"]["mean/reward"] == 1.0

    check = {"type": "string_check", "name": "s", "operation": "eq", "reference": "{{item.x}}",
             "input": "{{sample.output_text}}"}  # fmt: skip
    multi = {
        "type": "multi",
        "name": "m",
        "graders": {"exact": check, "close": {**check, "operation": "ilike"},
                    "fuzzy": {"type": "text_similarity", "name": "f", "reference": "abd",
                              "input": "abc", "evaluation_metric": "fuzzy_match"}},
        "calculate_output": "0.5 * exact + 0.5 * close + 0 * fuzzy",
    }  # fmt: skip
    answer = await facade.post(
        GRADERS, {"grader": multi, "model_sample": "Abc", "item": {"x": "abc"}}
    )
    assert (answer.json["reward"], answer.json["sub_rewards"]["close"]) == (0.5, 1.0)
    listed = (await facade.get("/v1/verifiers")).json
    assert [one["name"] for one in listed["verifiers"]] == ["choice", "exact", "obedient"]


async def faults(facade: Facade) -> None:
    """What is no judgement is no number, in any format."""
    died = {"response": "fault WORKER_DIED", "label": "42"}
    assert reason(await facade.post("/slime?verifier=obedient", died)) == (500, "WORKER_DIED")
    late = {"query": ["fault ITEM_TIMEOUT", "fine"]}
    assert reason(await facade.post("/get_reward?verifier=obedient", late)) == (504, "ITEM_TIMEOUT")
    row = await facade.post("/verify?verifier=obedient", {
        **GYM, "response": {"output": [{"type": "message", "content": "fault WORKER_DIED"}]}
    })  # fmt: skip
    assert reason(row) == (500, "WORKER_DIED")
    for kind, flag in (("python", "python_grader_server_error"),
                       ("score_model", "model_grader_server_error")):  # fmt: skip
        grader = {"type": kind, "source": "x", "input": [], "model": "m", "name": "g"}
        answer = await facade.post(GRADERS, {"grader": grader, "model_sample": "x"})
        assert answer.json["reward"] is None
        assert answer.json["metadata"]["errors"][flag] is True
    await samples_bring_about_scores(facade)

    for path, body, wanted in (
        ("/nope", {}, (404, "UNKNOWN_METHOD")),
        ("/v1/score", b"{", (400, "MALFORMED_REQUEST")),
        ("/v1/score", {"items": []}, (400, "EMPTY_BATCH")),
        ("/v1/score:stream", {"items": []}, (400, "EMPTY_BATCH")),
        ("/slime", {"response": "x"}, (404, "UNKNOWN_TASK")),
        ("/slime?verifier=nope", {"response": "x"}, (404, "UNKNOWN_VERIFIER")),
        ("/slime?verifier=exact", {"response": "x"}, (400, "MISSING_REFERENCE")),
        (GRADERS, {"grader": {"type": "?"}, "model_sample": ""}, (400, "MALFORMED_REQUEST")),
    ):
        assert reason(await facade.post(path, body)) == wanted
    bad = await facade.post("/v1/score", {"items": [item("42")]}, x_timeout_s="-1")
    assert reason(bad) == (400, "INVALID_TIMEOUT")
    wrong = await facade.get("/v1/score")
    assert (reason(wrong)[0], wrong.headers["allow"]) == (405, "POST")
    for headers in ({"origin": "http://evil.example"}, {"origin": "http://["}, {"host": "["},
                    {"host": "evil.example"}):  # fmt: skip
        assert (await facade.get("/v1/verifiers", **headers)).status == 403
    slow = await facade.post("/v1/score", {"items": [item("sleep 9", "obedient")]},
                             x_timeout_s="0.3")  # fmt: skip
    assert slow.json["results"][0]["fault"]["details"][0]["reason"] == "DEADLINE_EXCEEDED"


async def samples_bring_about_scores(facade: Facade) -> None:
    """What a sample alone does to a grader is the lowest score; what the grader does is none."""
    check = {"type": "string_check", "name": "s", "operation": "ne", "reference": "x"}
    fuzzy = {"type": "text_similarity", "name": "f", "evaluation_metric": "fuzzy_match"}
    text, long = "{{sample.output_text}}", "x" * 9_000
    for grader, sample, reward in (
        ({**check, "input": "{{sample.output_json.a}}"}, "no JSON", 0.0),
        ({**check, "input": "{{sample.output_json.a}}"}, '{"a": "y"}', 1.0),
        ({**check, "input": "{{item.a}}"}, "no JSON", None),
        ({**fuzzy, "input": text, "reference": "x"}, long, 0.0),
        ({**fuzzy, "input": text, "reference": long}, "x", None),
        ({**fuzzy, "input": long + text, "reference": "x"}, long, None),
    ):
        answer = await facade.post(GRADERS, {"grader": grader, "model_sample": sample})
        assert answer.json["reward"] == reward
        flags = answer.json["metadata"]["errors"].values()
        assert any(flag is True for flag in flags) == (reward is None)


async def streams(facade: Facade) -> None:
    """Lines come as they are ready; a caller that goes away ends its call."""
    batch = {"items": [item("sleep 0.5", "obedient", "late"), item("42")]}
    lines = (await facade.post("/v1/score:stream", batch)).body.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["a", "late"]

    connection = facade.connect()
    body = json.dumps({"items": [item("sleep 60", "obedient", "forever"), item("42")]})
    await asyncio.to_thread(connection.request, "POST", "/v1/score:stream", body)
    response = await asyncio.to_thread(connection.getresponse)
    assert json.loads(await asyncio.to_thread(response.readline))["id"] == "a"
    given_up = facade.obedient.cancelled
    response.close()
    connection.close()
    await until(lambda: facade.obedient.cancelled == given_up + 1)

    connection, asked = facade.connect(), len(facade.obedient.asked)
    connection.request("POST", "/v1/score", json.dumps({"items": [item("sleep 60", "obedient")]}))
    await until(lambda: len(facade.obedient.asked) == asked + 1)
    connection.close()
    await until(lambda: facade.obedient.cancelled == given_up + 2)


async def pages(facade: Facade, journal: Path) -> None:
    paths = (await facade.get("/openapi.json")).json["paths"]
    assert {"/v1/score", "/healthz", "/slime"} <= paths.keys()
    docs = await facade.get("/docs")
    assert "default-src 'none'" in docs.headers["content-security-policy"]
    assert b"<script" not in docs.body
    assert b"/v1/score:stream" in docs.body
    assert (await facade.get("/", accept="text/html")).headers["location"] == "docs"
    metrics = (await facade.get("/metrics")).body.decode()
    for line in ('assay_rpc_calls_total{code="OK",method="/slime",reason="",tenant=""} 2.0',
                 'method="/v1/score",reason="CANCELLED",tenant=""',
                 "assay_rpc_serving 1.0"):  # fmt: skip
        assert line in metrics

    def kept() -> int:
        with Reader(journal) as reader:
            return reader.last_id()

    await until(lambda: kept() >= 10)
    assert (await facade.get("/journal")).headers["location"] == "journal/"
    page = await facade.get("/journal/")
    assert b"<html" in page.body
    assert "script-src 'self'" in page.headers["content-security-policy"]
    found = {"items": []}
    while len(found["items"]) < 10:
        found = (await facade.get("/journal/api/items?limit=100")).json
    shown = await facade.get(f"/journal/api/item?id={quote(found['items'][0]['id'])}")
    assert (shown.status, shown.json["item"]["id"]) == (200, found["items"][0]["id"])
    assert (await facade.get("/journal/api/item?id=nothing")).status == 400
    gone = found["items"][0]["id"].partition(":")[0] + ":4000000"
    assert (await facade.get(f"/journal/api/item?id={quote(gone)}")).status == 404
    assert (await facade.get("/journal/..%2fapp.py")).status == 404
    lines = (await facade.get("/journal/entries?after=2")).body.splitlines()
    head, *entries = map(json.loads, lines)
    assert [entry["id"] for entry in entries] == [*range(3, head["last"] + 1)]
    assert (await facade.get("/journal/entries?after=x")).status == 400
    logged_out = await facade.get("/journal/logout")
    assert (logged_out.status, "Basic" in logged_out.headers["www-authenticate"]) == (401, True)
    rows = (await facade.get("/journal/export?fault=any")).body.splitlines()
    assert rows
    assert all(json.loads(row)["fault"] for row in rows)
    connection = facade.connect()
    connection.request("GET", "/journal/events?verifier=exact")
    events = await asyncio.to_thread(connection.getresponse)
    assert (await asyncio.to_thread(events.readline)).startswith(b":")
    await facade.post("/v1/score", {"items": [item("42", item_id="news")]})
    found = ""
    while found != "news":  # entries of before may come late
        line = await asyncio.to_thread(events.readline)
        if line.startswith(b"data: "):
            found = json.loads(line.partition(b" ")[2])["item_id"]
    events.close()
    connection.close()
    await asyncio.to_thread(journal.unlink)
    for below in ("", "export", "events"):
        gone = await facade.get(f"/journal/{below}")
        assert (gone.status, b"No such file" in gone.body) == (503, True)


async def test_the_door_and_the_limits_are_those_of_grpc(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    names = ("a", "b", "default")
    tokens.write_text("".join(hash_token(name, f"{name}-token").line + "\n" for name in names))
    made = make_certificates(tmp_path)
    tls = ServerTls(made.server.cert_file, made.server.key_file, made.ca_file)
    access = Access(tokens_file=tokens, tenant_items_in_flight=2, tenant_calls=3)
    serve = ServeConfig(access=access, tls=tls, token="the-operator's")
    config = HttpConfig(0, max_body_bytes=4096)
    journal = tmp_path / "journal.db"
    async with serving(serve=serve, config=config, tls=tls, journal=journal) as facade:
        trusted = ssl.create_default_context(cafile=made.ca_file)
        facade.tls = trusted
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            await facade.get("/healthz")  # no certificate of the client
        trusted.load_cert_chain(made.client.cert_file, made.client.key_file)
        assert (await facade.get("/healthz")).status == 200
        asked = await facade.get("/v1/verifiers")
        assert reason(asked) == (401, "UNAUTHENTICATED")
        assert "Basic" in asked.headers["www-authenticate"]
        for wrong in ("Bearer a", basic("b"), "Basic !", "a-token"):
            assert (await facade.get("/v1/verifiers", authorization=wrong)).status == 401
        for right in ("Bearer a-token", "bearer a-token", basic("a-token"), basic("b-token", "")):
            assert (await facade.get("/v1/verifiers", authorization=right)).status == 200

        for token, wanted in (("a-token", 403), ("default-token", 403), ("the-operator's", 200)):
            shown = await facade.get("/journal/", authorization=basic(token))
            assert shown.status == wanted, "a tenant does not read what others wrote"

        facade.headers = {"authorization": basic("a-token")}
        held = asyncio.create_task(facade.post("/v1/score", {
            "items": [item("sleep 2", "obedient"), item("sleep 2", "obedient", "b")]
        }))  # fmt: skip
        await until(lambda: len(facade.obedient.asked) == 3)  # its own example is one
        full = await facade.post("/v1/score", {"items": [item("42")]})
        assert reason(full) == (429, "QUOTA_EXCEEDED")
        assert int(full.headers["retry-after"]) >= 1
        assert full.json["retryable"] is True
        other = await facade.post("/slime?verifier=exact", {"response": "42", "label": "42"},
                                  authorization="Bearer b-token")  # fmt: skip
        assert other.json == 1.0, "the other tenant has its own quota"
        assert (await held).status == 200
        large = await facade.post("/v1/score", {"items": [item("x" * 5000)]})
        assert reason(large) == (413, "MESSAGE_TOO_LARGE")


async def test_a_judge_gives_the_score_of_a_model_grader() -> None:
    judge = FakeGenrm()
    async with AsyncJudgeClient(transport=judge) as client, serving(genrm=client) as facade:
        grader = {
            "type": "score_model",
            "name": "judge",
            "model": "tiny",
            "input": [{"role": "system", "content": "Be strict."},
                      {"role": "user", "content": "Is {{sample.output_text}} {{item.x}}?"}],
            "range": [0, 10],
        }  # fmt: skip

        async def graded(sample: str) -> Any:
            body = {"grader": grader, "model_sample": sample, "item": {"x": "right"}}
            return (await facade.post(GRADERS, body)).json

        good = await graded("42")
        assert good["reward"] == pytest.approx(9.0)
        assert good["model_grader_token_usage_per_model"]["tiny"]["total_tokens"] == 100
        (_, asked) = judge.requests[-1]
        assert (asked.items[0].rubric, asked.settings.model) == ("Be strict.", "tiny")
        assert asked.items[0].prompt[0].content == "Is 42 right?"
        unread = await graded("mumble")
        assert unread["reward"] is None
        assert unread["metadata"]["errors"]["model_grader_parse_error"] is True
        judge.scalar = True
        logit = await graded("42")
        assert logit["reward"] is None, "a logit is no score from 0 to 1"
        assert "logits" in logit["metadata"]["errors"]["model_grader_server_error_details"]


async def test_a_grader_cannot_fill_the_memory_by_naming_a_sample_often() -> None:
    often = "{{ sample.output_text }}" * 60
    check = {"type": "string_check", "name": "s", "operation": "eq", "input": often,
             "reference": ""}  # fmt: skip
    spread = {**check, "input": often[: len(often) // 10]}
    multi = {"type": "multi", "name": "m", "calculate_output": "a",
             "graders": dict.fromkeys("abcdefghij", spread)}  # fmt: skip
    async with serving() as facade:
        for grader in (check, multi):
            asked = {"grader": grader, "model_sample": "x" * 300_000}
            refused = await facade.post(GRADERS, asked)
            assert reason(refused) == (400, "ITEM_TOO_LARGE")


class SlowGenrm(FakeGenrm):
    """Takes a second for each answer, and remembers how long it might have taken."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed_s: list[float] = []

    async def call(self, method: str, request: Any, *, timeout_s: float) -> Any:
        name = method.rpartition(".")[2]
        if name == "JudgeResponses":
            self.allowed_s.append(timeout_s)
            await asyncio.sleep(min(1.0, timeout_s))
            if timeout_s < 1.0:
                raise refuse(Reason.DEADLINE_EXCEEDED, "too late")
        return await super().call(method, request, timeout_s=timeout_s)


async def test_the_graders_of_a_multi_grader_share_one_deadline() -> None:
    judge = SlowGenrm()
    one = {"type": "score_model", "name": "j", "model": "tiny",
           "input": [{"role": "user", "content": "Is it right?"}]}  # fmt: skip
    multi = {"type": "multi", "name": "m", "calculate_output": "a",
             "graders": dict.fromkeys("abcdef", one)}  # fmt: skip
    async with AsyncJudgeClient(transport=judge) as client, serving(genrm=client) as facade:
        asked = {"grader": multi, "model_sample": "42"}
        late = await facade.post(GRADERS, asked, x_timeout_s="2.5")
    assert reason(late) == (504, "DEADLINE_EXCEEDED")
    assert len(judge.allowed_s) == 3
    assert sorted(judge.allowed_s, reverse=True) == judge.allowed_s


async def test_who_looks_at_the_journal_holds_no_drain_up(tmp_path: Path) -> None:
    async with serving(journal=tmp_path / "journal.db") as facade:
        connection = facade.connect()
        connection.request("GET", "/journal/events")
        events = await asyncio.to_thread(connection.getresponse)
        assert (await asyncio.to_thread(events.readline)).startswith(b":")
        async with asyncio.timeout(20):
            await facade.server.stop(40)
        rest = await asyncio.to_thread(events.read)
        assert set(rest.split()) <= {b":"}, "its end is a whole one"
        connection.close()


@pytest.mark.parametrize(
    ("bind", "access", "trouble"),
    [("0.0.0.0", Access(), "is not loopback"), ("no.such.host.invalid", Access(), "invalid")],
)
async def test_a_network_is_not_served_without_a_door(
    bind: str, access: Access, trouble: str
) -> None:
    with pytest.raises(ConfigError, match=trouble):
        async with serving(config=HttpConfig(0, bind), access=access):
            pass


async def test_a_drain_waits_for_calls_and_then_ends_them() -> None:
    async with serving() as facade:
        slow = {"items": [item("sleep 1", "obedient"), item("42", item_id="b")]}
        stuck = {"items": [item("sleep 60", "obedient")]}
        calls = [asyncio.create_task(facade.post("/v1/score", body)) for body in (slow, stuck)]
        await until(lambda: len(facade.obedient.asked) == 3)
        stopping = asyncio.create_task(facade.server.stop(2.5))
        await asyncio.sleep(0.1)
        assert (await facade.get("/healthz")).status == 200
        ready = await facade.get("/readyz")
        assert (ready.status, ready.json["status"]) == (503, "draining")
        refused = await facade.get("/v1/verifiers")
        assert reason(refused) == (503, "DRAINING")
        assert refused.headers["connection"] == "close"
        done, evicted = await asyncio.gather(*calls)
        assert len(done.json["results"]) == 2
        assert reason(evicted) == (503, "DRAINING")
        await stopping
        with pytest.raises(ConnectionError):
            await facade.get("/healthz")


async def test_a_stream_that_a_drain_ends_says_so_in_its_last_line() -> None:
    async with serving() as facade:
        connection = facade.connect()
        body = json.dumps({"items": [item("sleep 60", "obedient", "forever"), item("42")]})
        await asyncio.to_thread(connection.request, "POST", "/v1/score:stream", body)
        response = await asyncio.to_thread(connection.getresponse)
        assert json.loads(await asyncio.to_thread(response.readline))["id"] == "a"
        stopping = asyncio.create_task(facade.server.stop(0.1))
        told = json.loads(await asyncio.to_thread(response.readline))["error"]
        assert (told["reason"], told["retryable"]) == ("DRAINING", True)
        with pytest.raises(http.client.IncompleteRead):
            await asyncio.to_thread(response.read)
        await stopping
        connection.close()


async def test_a_caller_who_goes_as_the_drain_ends_its_call_is_cancelled() -> None:
    async with serving() as facade:
        host, port = facade.address.split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps({"items": [item("sleep 60", "obedient")]}).encode()
        head = f"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await until(lambda: facade.obedient.asked[-1] == "sleep 60")
        (call,) = facade.server._gate._running
        assert call.task is not None
        writer.transport.abort()
        while not call.task.cancelling():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0)
        call.evicted = True  # what a drain does, before the call has come to its end
        call.task.cancel()
        await until(lambda: not facade.server._gate.running)
        metrics = (await facade.get("/metrics")).body.decode()
    assert 'code="CANCELLED",method="/v1/score",reason="CANCELLED",tenant=""} 1.0' in metrics
    assert 'code="OK",method="/v1/score"' not in metrics


async def test_a_path_writes_no_line_of_its_own_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "assay.kit.calls")
    caplog.handler.setFormatter(TextFormatter())
    async with serving() as facade:
        path = "/%0a12:00:00%20ERROR%20forged%1b%5b31m"
        assert reason(await facade.get(path)) == (404, "UNKNOWN_METHOD")
    (line,) = [line for line in caplog.text.splitlines() if "forged" in line]
    assert f"call method={path} " in line


async def test_a_defect_is_a_problem_without_its_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as facade:

        async def fail(*_: object, **__: object) -> Any:
            raise KeyError("a secret")

        monkeypatch.setattr("assay.reward_server.scorer.RewardScorer.batch_score", fail)
        answer = await facade.post("/v1/score", {"items": [item("42")]})
        assert reason(answer) == (500, "INTERNAL")
        assert b"secret" not in answer.body
        assert "defect in /v1/score" in caplog.text
        assert isinstance(facade.server._calls, CallMetrics)


@pytest.mark.slow
def test_the_command_serves_both_and_ends_by_signal(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    with launch("--http-port", "0", "--http-verifier", "exact", "--port-file", str(port_file),
                "--workers", "1") as process:  # fmt: skip
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        assert lines[0].startswith("assay reward_server ready on 127.0.0.1:")
        assert lines[1].startswith("assay reward_server http on 127.0.0.1:")
        address = lines[1].split()[-1]
        with contextlib.closing(http.client.HTTPConnection(address, timeout=20)) as connection:
            connection.request("POST", "/slime", json.dumps({"response": "42", "label": "42"}))
            assert connection.getresponse().read() == b"1.0"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


async def test_a_certificate_names_the_tenant(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    tls = ServerTls(made.server.cert_file, made.server.key_file, made.ca_file)
    access = Access(tenant_items_in_flight=1)
    async with serving(serve=ServeConfig(access=access, tls=tls), tls=tls) as facade:
        facade.tls = ssl.create_default_context(cafile=made.ca_file)
        facade.tls.load_cert_chain(made.client.cert_file, made.client.key_file)
        calling = facade.post("/v1/score", {"items": [item("sleep 1", "obedient")]})
        held = asyncio.create_task(calling)
        await until(lambda: len(facade.obedient.asked) == 2)
        assert facade.server._quotas.in_flight("client") == 1
        assert (await held).status == 200


async def test_a_call_is_a_span_of_its_callers_trace() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(OtelTracer("tests", provider))
    trace = "0af7651916cd43dd8448eb211c80319c"
    try:
        async with serving() as facade:
            told = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "x_request_id": "mine"}
            await facade.post("/v1/score", {"items": [item("42")]}, **told)
            await facade.post("/slime?verifier=obedient", {"response": "fault WORKER_DIED"}, **told)
            await facade.get("/healthz", **told)
            await facade.get("/nope", **told)
    finally:
        tracing.use(None)
        provider.shutdown()
    spans = [one for one in exporter.get_finished_spans() if f"{one.context.trace_id:x}" in trace]
    spans = [one for one in spans if one.name.startswith(("GET", "POST"))]
    assert [one.name for one in spans] == ["POST /v1/score", "POST /slime"]
    facts = [dict(one.attributes or {}) for one in spans]
    assert [fact["http.response.status_code"] for fact in facts] == [200, 500]
    assert all(fact["assay.request_id"] == "mine" for fact in facts)
    assert [one.status.description for one in spans] == [None, "WORKER_DIED"]
