"""Services as processes, scraped over HTTP: what they count is what they answered."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from prometheus_client.metrics_core import Metric
from tests.integration.test_server_wire import batch, item, launch, ready
from tests.metrics_support import conserved, rows, scrape, total

import sandbox_service
from assay.api.execution.v1 import execution_pb2, execution_pb2_grpc
from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.cli.commands.stalls import look_at
from assay.kit.calls import METADATA_KEY
from assay.kit.limits import channel_options
from assay.kit.metrics import OTHER, UNKNOWN
from assay.kit.reasons import Reason
from chaos import install

NASTY = "sneaky-name-of-a-caller"
METRICS = ("--metrics-port", "0")


def metrics_address(process: subprocess.Popen[str], name: str) -> str:
    """From the line after the one that says that it serves."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(f"assay {name} metrics on ")
    return line.split()[-1]


def until(address: str, holds: Callable[[list[Metric]], bool]) -> list[Metric]:
    """Scrapes until it holds: a call is counted shortly after its caller has the answer."""
    ends_s = time.monotonic() + 20
    while not holds(families := scrape(address)) and time.monotonic() < ends_s:
        time.sleep(0.02)
    assert holds(families)
    return families


def labels_are_known(families: list[Metric], served: set[str]) -> None:
    """No label is a caller's: each is of the contract, of the lexicon, or of what is served."""
    codes = {code.name for code in grpc.StatusCode} | set(Reason)
    for family in families:
        for sample in family.samples:
            assert NASTY not in str(sample)
            for label, value in sample.labels.items():
                if label == "reason":
                    assert value in {"", OTHER, *Reason}
                elif label == "method":
                    assert value == UNKNOWN or value.startswith("/assay.api.")
                elif label == "code":
                    assert value in codes
                elif label in ("verifier", "language"):
                    assert value in {UNKNOWN, *served}


@contextlib.contextmanager
def reward_server(plug_ins: Path) -> Iterator[tuple[grpc.Channel, str, subprocess.Popen[str]]]:
    path = os.pathsep.join(filter(None, [str(plug_ins), os.environ.get("PYTHONPATH")]))
    with launch("--log-json", *METRICS, PYTHONPATH=path) as process:
        try:
            address = ready(process)
            metrics = metrics_address(process, "reward_server")
            with grpc.insecure_channel(address, options=channel_options()) as channel:
                yield channel, metrics, process
        finally:
            process.kill()


def test_the_reward_server_counts_what_it_answers(tmp_path: Path) -> None:
    with reward_server(install(tmp_path)) as (channel, metrics, process):
        stub = reward_pb2_grpc.RewardServiceStub(channel)
        known = rows()
        served = {
            one.name
            for one in stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=10).verifiers
        }
        request = batch(
            item("right"),
            item("wrong", response="41"),
            item("nobody", verifier=NASTY),
            item("dies", response="die now", verifier="chaos"),
            item("raises", response=f"raise {NASTY}", verifier="chaos"),
            *(item(f"same-{n}", response="fine", verifier="chaos") for n in range(3)),
        )
        answer = stub.BatchScore(request, timeout=30, metadata=((METADATA_KEY, "call-1"),))
        faults = [r for r in answer.results if r.WhichOneof("outcome") == "fault"]
        assert (len(answer.results), len(faults)) == (8, 3)
        streamed = stub.StreamScore(
            iter([reward_pb2.StreamScoreRequest(items=[item("a"), item("b", verifier=NASTY)])]),
            timeout=30,
        )
        assert sum(len(response.results) for response in streamed) == 2

        # What is refused as a whole has no items, and names of a caller's making no labels.
        same = [item(NASTY), item(NASTY)]
        for call, sent in ((stub.BatchScore, batch(*same)), (stub.BatchScore, batch())):
            with pytest.raises(grpc.RpcError):
                call(sent, timeout=10)
        with pytest.raises(grpc.RpcError):
            channel.unary_unary(f"/{NASTY}.Service/Do")(b"", timeout=10)
        # A caller that goes away leaves its items, which are nobody's fault.
        gone = stub.BatchScore.future(
            batch(item("slow", response="sleep 60", verifier="chaos"), item("quick")), timeout=90
        )
        until(metrics, lambda found: total(found, "assay_reward_workers_busy") == 1)
        gone.cancel()
        left = [item("quick"), item("slow", response="sleep 61", verifier="chaos")]
        stream = stub.StreamScore(iter([reward_pb2.StreamScoreRequest(items=left)]), timeout=90)
        assert [result.id for result in next(stream).results] == ["quick"]
        stream.cancel()

        families = until(
            metrics, lambda found: total(found, "assay_reward_abandoned_items_total") == 3
        )
        assert conserved(families, "reward", "judgements")
        told = {name: fine for name, _, fine in look_at([metrics], time.sleep, 0.01)}
        assert told["reward_server: state"]
        assert told["reward_server: queue"]
        assert told["reward_server: faults"] is False
        assert total(families, "assay_reward_items_total") == 14
        assert total(families, "assay_reward_faults_total") == 4
        by_verdict = {"verifier": "exact", "verdict": "correct"}
        assert total(families, "assay_reward_judgements_total", **by_verdict) == 3
        died = {"verifier": "chaos", "reason": "WORKER_DIED"}
        assert total(families, "assay_reward_faults_total", **died) == 1
        nobody = {"verifier": UNKNOWN, "reason": "UNKNOWN_VERIFIER"}
        assert total(families, "assay_reward_faults_total", **nobody) == 2
        assert total(families, "assay_reward_cache_hits_total", verifier="chaos") == 2
        assert total(families, "assay_reward_queue_wait_seconds_count") == 11
        restarts = "assay_reward_worker_restarts_total"
        families = until(
            metrics,
            lambda found: (
                total(found, restarts) >= 3 and not total(found, "assay_rpc_calls_running")
            ),
        )

        method = "/assay.api.reward.v1.RewardService/BatchScore"
        calls = "assay_rpc_calls_total"
        assert total(families, calls, method=method, code="OK") == 1
        assert total(families, calls, method=method, reason="DUPLICATE_ITEM_ID") == 1
        assert total(families, calls, method=method, reason="CANCELLED") == 1
        assert total(families, calls, method=UNKNOWN, code="UNIMPLEMENTED") == 1
        assert total(families, calls) == total(families, "assay_rpc_call_seconds_count")
        assert total(families, "assay_rpc_serving") == 1
        labels_are_known(families, served)
        shown = {family.name for family in families}
        for name, _, _, service, _ in known:
            if service in ("every service", "reward_server"):
                assert name.removesuffix("_total") in shown
        process.kill()
        assert process.stderr is not None
        said = [json.loads(line) for line in process.stderr.read().splitlines()]
    by_id = [line for line in said if line.get("request_id") == "call-1"]
    assert {"call"} <= {line["message"] for line in by_id}
    [call] = [line for line in by_id if line["message"] == "call"]
    assert (call["code"], call["items"], call["faults"], call["pid"]) == ("OK", 8, 3, process.pid)
    # The traceback of what a verifier raised is its worker's to tell, in the same form.
    raised = [line for line in said if "secret text" in line.get("exception", "")]
    assert raised
    assert process.pid not in {line["pid"] for line in raised}


def test_the_sandbox_counts_runs_by_how_they_ended() -> None:
    flags = ("--slots", "1", "--languages", "python", *METRICS)
    with sandbox_service.running(*flags) as (address, process):
        metrics = metrics_address(process, "sandbox")
        with grpc.insecure_channel(address, options=channel_options()) as channel:
            stub = execution_pb2_grpc.ExecutionServiceStub(channel)

            def job(name: str, source: str, language: str = "python") -> execution_pb2.ExecutionJob:
                made = execution_pb2.ExecutionJob(id=name)
                made.program.language, made.program.source = language, source
                made.limits.wall_time.nanos = 500_000_000
                return made

            request = execution_pb2.ExecuteRequest(
                jobs=[
                    job("fine", "print(1)"),
                    job("alias", "print(1)", "py"),
                    job("slow", "import time; time.sleep(60)"),
                    job("odd", "x", NASTY),
                ]
            )
            assert len(stub.Execute(request, timeout=60).results) == 4
            suite = execution_pb2.TestJob(id="suite")
            suite.program.language, suite.program.source = "python", "print(input())"
            for expected in (b"1\n", b"2\n"):
                test = suite.suite.tests.add(name=expected.decode().strip())
                test.stdio.stdin, test.stdio.expected_stdout = b"1\n", expected
            chunks = iter([execution_pb2.StreamRunTestsRequest(jobs=[suite])])
            streamed = list(stub.StreamRunTests(chunks, timeout=60))
            assert sum(len(one.results) for one in streamed) == 1
            slow = job("gone", "import time; time.sleep(60)")
            slow.limits.wall_time.seconds = 60
            gone = stub.Execute.future(execution_pb2.ExecuteRequest(jobs=[slow]), timeout=60)
            until(metrics, lambda found: total(found, "assay_sandbox_items_total") == 6)
            gone.cancel()
            families = until(
                metrics, lambda found: total(found, "assay_sandbox_abandoned_items_total") == 1
            )
    assert conserved(families, "sandbox", "runs", "suites")
    assert total(families, "assay_sandbox_runs_total", language="python") == 3
    assert total(families, "assay_sandbox_runs_total", end="wall-time-limit") == 1
    assert total(families, "assay_sandbox_faults_total", language=UNKNOWN) == 1
    assert total(families, "assay_sandbox_suites_total", result="failed") == 1
    tests = "assay_sandbox_tests_total"
    assert total(families, tests, verdict="passed", end="exited") == 1
    assert total(families, tests, verdict="wrong-answer") == 1
    assert total(families, "assay_sandbox_execution_seconds_count") == 4
    labels_are_known(families, {"python"})
