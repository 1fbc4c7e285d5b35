"""Genrm when things break: killed workers, numbers that are none, full queues, bad models."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tests.genrm_service import Stubs, item, launch, running, stubs, workers
from tests.genrm_support import make_model, make_tokenizer

from assay.api.judge.v1 import judge_pb2
from assay.kit.errors import call_error, reason_of, status_sent

pytestmark = pytest.mark.timeout(300)  # a server's start is the first test's

TIMEOUT_S = 120.0
BAD_WORD = "~"  # one byte, one token: the judge's embedding of it is not a number


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge of which one word is poisoned, and one of which nothing is sound."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("judge", "rotten"):
        make_model(folder / name)
    _poison(folder / "judge", make_tokenizer().convert_tokens_to_ids(BAD_WORD))
    _poison(folder / "rotten", None)
    return folder


def _poison(model: Path, token: int | None) -> None:
    """Makes the embedding of a token, or of all, not a number."""
    from safetensors.torch import load_file, save_file

    weights = load_file(model / "model.safetensors")
    rows = slice(None) if token is None else token
    weights["model.embed_tokens.weight"][rows] = float("nan")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[tuple[Stubs, subprocess.Popen[str]]]:
    """A server with a short line, so that it can be filled."""
    models = folder / "models.toml"
    models.write_text('[model.judge]\npath = "./judge"\nmax_concurrent = 2\n', encoding="utf-8")
    flags = ("--models", models, "--queue-items", "8")
    with running(*flags) as (address, process), stubs(address) as made:
        yield made, process


def slow(count: int, tokens: int = 3000) -> judge_pb2.JudgeResponsesRequest:
    """Items on which the judge writes for long; greedy, so that it never says the bad word."""
    return judge_pb2.JudgeResponsesRequest(
        items=[item(f"{i}", f"Blue {i}.", ground_truth="blue") for i in range(count)],
        settings=judge_pb2.JudgeSettings(
            template="correctness-reasoned@1",
            scoring_mode=judge_pb2.SCORING_MODE_VOTES,
            temperature=0,
            max_tokens=tokens,
        ),
    )


def quick(*items: judge_pb2.JudgeItem) -> judge_pb2.JudgeResponsesRequest:
    return judge_pb2.JudgeResponsesRequest(items=items or [item("a", "Blue.")])


def reasons(response: judge_pb2.JudgeResponsesResponse) -> list[str]:
    return [
        reason_of(result.fault) if result.HasField("fault") else "judgement"
        for result in response.results
    ]


def test_a_worker_killed_in_mid_batch_costs_its_items_and_no_more(
    server: tuple[Stubs, subprocess.Popen[str]],
) -> None:
    service, process = server
    victims = workers(process.pid)
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)  # so that it is at work still when it dies
    call = service.judge.JudgeResponses.future(slow(2), timeout=TIMEOUT_S)
    time.sleep(3.0)  # texts become tokens beside the loop: one that is not at work would wait
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    ended = reasons(call.result())
    assert "ENGINE_DIED" in ended
    # On a busy machine one of the two is not at work yet; then it is its successor's.
    assert set(ended) <= {"ENGINE_DIED", "judgement"}
    # What comes next waits for the worker's successor.
    assert reasons(service.judge.JudgeResponses(quick(), timeout=TIMEOUT_S)) == ["judgement"]
    assert not set(workers(process.pid)) & set(victims)


def test_a_word_that_is_not_a_number_costs_the_items_that_say_it(
    server: tuple[Stubs, subprocess.Popen[str]],
) -> None:
    service, _ = server
    items = [item("a", "Blue."), item("b", f"Blue{BAD_WORD}"), item("c", "Red.")]
    response = service.judge.JudgeResponses(quick(*items), timeout=TIMEOUT_S)
    assert reasons(response) == ["judgement", "SCORE_NOT_FINITE", "judgement"]


@pytest.mark.slow
def test_a_full_queue_refuses_whole_calls_and_says_when_to_come_back(
    server: tuple[Stubs, subprocess.Popen[str]],
) -> None:
    service, _ = server
    taken = service.judge.JudgeResponses.future(slow(8), timeout=TIMEOUT_S)
    time.sleep(0.3)  # two of them are at work now, six wait
    with pytest.raises(grpc.RpcError) as caught:
        service.judge.JudgeResponses(slow(8), timeout=TIMEOUT_S)
    status = status_sent(caught.value)
    assert status is not None
    assert reason_of(status) == "QUEUE_FULL"
    error = call_error(status)
    assert error.retry_after_s is not None
    assert 0 < error.retry_after_s <= 30
    taken.cancel()
    # What was cancelled makes room at once, and nothing of it goes on.
    started = time.monotonic()
    assert reasons(service.judge.JudgeResponses(quick(), timeout=TIMEOUT_S)) == ["judgement"]
    assert time.monotonic() - started < 20


def test_a_short_call_does_not_wait_behind_a_long_one(
    server: tuple[Stubs, subprocess.Popen[str]],
) -> None:
    service, _ = server
    long = service.judge.JudgeResponses.future(slow(6, tokens=300), timeout=TIMEOUT_S)
    time.sleep(0.1)
    assert reasons(service.judge.JudgeResponses(quick(), timeout=TIMEOUT_S)) == ["judgement"]
    assert not long.done()
    assert len(long.result().results) == 6


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "there is no model to serve"),
        (("--model", "judge=/nowhere/at/all"), "model judge: model folder /nowhere/at/all"),
        pytest.param(
            ("--model", "judge={folder}/rotten"), "does not answer", marks=pytest.mark.slow
        ),
        (("--model", "judge={folder}/empty"), "model judge"),
    ],
)
def test_a_model_that_cannot_serve_ends_the_start_with_one_clear_line(
    folder: Path, flags: tuple[str, ...], said: str
) -> None:
    (folder / "empty").mkdir(exist_ok=True)
    with launch(*(flag.format(folder=folder) for flag in flags)) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("assay genrm: ")
    assert said in last


@pytest.mark.slow
def test_a_server_that_is_told_to_stop_lets_running_calls_end(folder: Path) -> None:
    port = folder / "port"
    flags = ("--model", f"judge={folder / 'judge'}", "--port-file", port)
    with running(*flags) as (address, process), stubs(address) as service:
        assert address.endswith(f":{port.read_text(encoding='ascii').strip()}")
        call = service.judge.JudgeResponses.future(slow(1, tokens=100), timeout=TIMEOUT_S)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert reasons(call.result()) != ["ENGINE_DIED"]
        assert process.wait(timeout=30) == 0
        assert not port.exists()


@pytest.mark.slow
def test_no_process_outlives_a_server_that_was_killed(folder: Path) -> None:
    with running("--model", f"judge={folder / 'judge'}") as (_, process):
        below = workers(process.pid)
        assert below
        process.kill()
        process.wait()
        deadline_s = time.monotonic() + 15
        while any(_alive(pid) for pid in below):
            assert time.monotonic() < deadline_s, "a worker outlives its server"
            time.sleep(0.1)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_many_callers_at_once_each_get_their_own(
    server: tuple[Stubs, subprocess.Popen[str]],
) -> None:
    service, _ = server
    found: dict[int, list[str]] = {}

    def call(number: int) -> None:
        response = service.judge.JudgeResponses(
            quick(item(f"{number}", f"Blue {number}.")), timeout=TIMEOUT_S
        )
        found[number] = [response.results[0].id, *reasons(response)]

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [f"{number}", "judgement"] for number in range(8)}
