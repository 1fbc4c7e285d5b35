"""First contact and `max_fault_ratio` of the adapters, on real servers and on what is none."""

from __future__ import annotations

import asyncio
import dataclasses
import http.server
import logging
import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.clients import AsyncRewardClient, EmbeddedServices, Item, RewardClient
from assay.clients.convert import server_info_from_proto
from assay.clients.testing import FakeRewardServer
from assay.clients.testing.fake import exact_info
from assay.clients.trainers.common import contact, fault_ratio
from assay.clients.trainers.common.contact import (
    Addressee,
    FirstContactError,
    meet_awaited,
    what_was_met,
)
from assay.clients.trainers.common.fault_ratio import TooManyFaultsError
from assay.clients.trainers.common.scoring import score, score_awaited
from assay.clients.trainers.common.settings import Settings, client_of, close_clients
from assay.kit.errors import AssayError
from certificates import make_certificates

pytestmark = pytest.mark.slow

RIGHT = r"so \boxed{4}"
ROWS = [Item(RIGHT, "4", task="math", id=str(n)) for n in range(2)]


@pytest.fixture(autouse=True)
def nothing_met() -> Iterator[None]:
    contact.forget()
    fault_ratio.forget()
    yield
    close_clients()
    contact.forget()


@pytest.fixture(scope="module")
def services() -> Iterator[EmbeddedServices]:
    with EmbeddedServices(("reward", "sandbox")) as running:
        yield running


@pytest.fixture
def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def told(caplog: pytest.LogCaptureFixture, level: str = "INFO") -> list[str]:
    return [
        one.getMessage()
        for one in caplog.records
        if one.levelname == level and one.name.endswith("common.contact")
    ]


def refusal(target: str, rows: list[Item] = ROWS, **settings: Any) -> str:
    with pytest.raises(FirstContactError) as caught:
        score(Settings(target, **{"task": "math", "timeout_s": 1.5, **settings}), rows)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_one_line_says_who_judges(
    services: EmbeddedServices, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = Settings(services.address, task="math")
    for _ in range(3):
        assert [result.reward for result in score(settings, ROWS)] == [1.0, 1.0]
    [line] = told(caplog)
    assert re.fullmatch(
        rf"first contact with the reward server {services.address} \(\S+\): "
        r"math \(version \S+\) judges the task 'math'",
        line,
    )


def test_without_logging_the_line_goes_to_stderr(services: EmbeddedServices) -> None:
    code = (
        "from assay.clients.trainers.trl import sync_reward_function as f\n"
        f"reward = f('{services.address}', verifier='exact')\n"
        "print(reward(['p'], ['4'], reference=['4']), reward(['p'], ['5'], reference=['4']))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[1.0] [0.0]\n"
    [line] = [line for line in run.stderr.splitlines() if "contact" in line]
    assert line.endswith("exact (version 1) judges")


class Counting:
    """A fake server that counts how often it was asked for its verifiers."""

    def __init__(self, fake: FakeRewardServer) -> None:
        self.asked = 0
        infos = list(fake.verifiers)
        counter = self

        class Verifiers(list[Any]):
            def __iter__(self) -> Iterator[Any]:
                counter.asked += 1
                return iter(infos)

        fake.verifiers = Verifiers()


EQUAL = [Item("4", "4", "exact", id=str(n)) for n in range(2)]


def test_it_costs_no_call() -> None:
    """The client asks a server for its limits in any case; first contact is that same call."""
    with FakeRewardServer() as plain, RewardClient(plain.address) as client:
        alone = Counting(plain)
        client.score(EQUAL)
    with FakeRewardServer() as fake:
        counting = Counting(fake)
        settings = Settings(fake.address, verifier="exact")
        for _ in range(20):
            score(settings, EQUAL)
            score(settings, EQUAL[:1])
            asyncio.run(score_awaited(settings, EQUAL))
        assert counting.asked == alone.asked == 1
        assert len(fake.requests) == 60


def test_threads_and_loops_share_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with FakeRewardServer() as fake:
        counting = Counting(fake)
        settings = Settings(fake.address, verifier="exact")
        together = threading.Barrier(16)

        def work(number: int) -> list[float | None]:
            together.wait()
            if number % 2:
                return [result.reward for result in score(settings, EQUAL)]
            return [one.reward for one in asyncio.run(score_awaited(settings, EQUAL))]

        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(work, range(16))) == [[1.0, 1.0]] * 16
        assert counting.asked == 1
    assert len(told(caplog)) == 1


def test_a_forked_child_makes_its_own_also_while_the_parent_makes_one(tmp_path: Path) -> None:
    with FakeRewardServer() as fake:
        settings = Settings(fake.address, verifier="exact", timeout_s=20.0)
        score(settings, EQUAL)
        dead = Settings("127.0.0.1:1", verifier="exact", timeout_s=3.0)

        def wait() -> None:
            with pytest.raises(FirstContactError):
                score(dead, EQUAL)

        waiting = threading.Thread(target=wait)
        waiting.start()
        child = os.fork()
        if child == 0:
            logging.basicConfig(filename=tmp_path / "log", level=logging.INFO, force=True)
            scored = [result.reward for result in score(settings, EQUAL)]
            os._exit(0 if scored == [1.0, 1.0] else 1)
        assert os.waitpid(child, 0)[1] == 0
        waiting.join()
        assert (tmp_path / "log").read_text().count("first contact with the reward server") == 1


async def test_a_cancelled_caller_leaves_the_others_their_contact(free_port: int) -> None:
    settings = Settings(f"127.0.0.1:{free_port}", verifier="exact", timeout_s=20.0)
    one, other = (asyncio.create_task(score_awaited(settings, EQUAL)) for _ in range(2))
    await asyncio.sleep(0.2)
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    async with FakeRewardServer(port=free_port):
        assert [result.reward for result in await other] == [1.0, 1.0]


async def test_a_client_of_the_callers_own_loop() -> None:
    async with FakeRewardServer() as fake, AsyncRewardClient(fake.address) as client:
        await meet_awaited(client, Addressee(fake.address, "exact"), EQUAL)
        with pytest.raises(FirstContactError, match=r"no verifier 'exakt', .*\?"):
            await meet_awaited(client, Addressee(fake.address, "exakt"), [Item("4", "4", "exakt")])


def test_a_server_that_is_not_up_yet_is_waited_for(
    free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(f"127.0.0.1:{free_port}", verifier="exact")
    with ThreadPoolExecutor(1) as pool:
        scored = pool.submit(score, settings, EQUAL)
        while not told(caplog, "WARNING"):
            time.sleep(0.05)
            assert not scored.done()
        with FakeRewardServer(port=free_port):
            assert [result.reward for result in scored.result()] == [1.0, 1.0]
    [waited] = told(caplog, "WARNING")
    assert waited.startswith(f"waiting for 127.0.0.1:{free_port} (")
    assert "start one with `assay serve reward`" in waited


def test_nobody_is_there(free_port: int, caplog: pytest.LogCaptureFixture) -> None:
    said = refusal(f"127.0.0.1:{free_port}")
    assert f"no reward server answers at 127.0.0.1:{free_port}" in said
    assert told(caplog, "ERROR") == [said]
    assert [refusal(f"127.0.0.1:{free_port}") for _ in range(50)] == [said] * 50
    assert len(told(caplog, "ERROR")) < 10, "what has just failed is not tried 50 times"


def test_it_is_tried_again_after_a_while(free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "_AGAIN_S", 0.0)
    target = f"127.0.0.1:{free_port}"
    settings = Settings(target, verifier="exact", timeout_s=1.0)
    with pytest.raises(FirstContactError):
        score(settings, EQUAL)
    with FakeRewardServer(port=free_port):
        assert [result.reward for result in score(settings, EQUAL)] == [1.0, 1.0]


def test_another_program_has_the_port() -> None:
    class Web(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    class Chatty(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

    for kind in (Web, Chatty):
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), kind) as other:
            threading.Thread(target=other.serve_forever, daemon=True).start()
            said = refusal(f"127.0.0.1:{other.server_address[1]}")
            other.shutdown()
        assert "answers, but not in gRPC" in said, said
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = refusal(f"127.0.0.1:{silent.getsockname()[1]}")
    assert "takes connections but does not answer: another program" in said


def test_another_service_of_ours_has_the_port(services: EmbeddedServices) -> None:
    said = refusal(services.address_of("sandbox"))
    assert "is no reward server" in said
    assert "correct the address" in said


def test_names_that_the_server_does_not_know(services: EmbeddedServices) -> None:
    said = refusal(services.address, [Item("4", "4", task="maths")], task="maths")
    assert "it has no task 'maths', and `assay verifiers --target" in said
    assert said.endswith("; did you mean 'math'?")
    said = refusal(services.address, [Item("4", "4", "exat")] * 2, task="")
    assert "it has no verifier 'exat'" in said
    said = refusal(services.address, [Item("4", "4")] * 2, task="")
    assert "rows name neither verifier nor task" in said


def test_a_column_without_references(services: EmbeddedServices) -> None:
    rows = [Item(RIGHT, task="math", id=str(n)) for n in range(2)]
    assert "2 of 2 rows have no reference, which is needed; give the rows" in refusal(
        services.address, rows
    )
    from assay.clients.trainers.trl import sync_reward_function

    function = sync_reward_function(services.address, task="math", name="mine")
    with pytest.raises(FirstContactError, match="'answer', but: gold; name it with reference_col"):
        function(["p", "p"], [RIGHT, RIGHT], gold=["4", "4"])
    function.client.close()


def test_what_is_wrong_with_one_row_is_that_rows_fault(
    services: EmbeddedServices, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(services.address, timeout_s=20.0)
    rows = [*ROWS, Item("4", "4", "no-such"), Item(RIGHT, task="math")]
    assert [result.reward for result in score(settings, rows)] == [1.0, 1.0, None, None]
    [doubt] = told(caplog, "WARNING")
    assert "but it has no verifier 'no-such'" in doubt
    assert "1 of 4 rows have no reference" in doubt
    contact.forget()
    assert score(settings, [Item("4", "4", "no-such")])[0].fault is not None


def test_tokens_and_tls(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    token = tmp_path / "token"
    token.write_text("a-token-of-thirty-two-characters!\n")
    token.chmod(0o600)
    arguments = ["--token-file", str(token)]
    arguments += ["--tls-cert", str(made.server.cert_file), "--tls-key", str(made.server.key_file)]
    with EmbeddedServices(arguments={"reward": arguments}) as guarded:
        assert "it may want TLS" in refusal(guarded.address)
        contact.forget()
        ca = {"tls_ca": str(made.ca_file)}
        said = refusal(guarded.address, **ca, token="a-wrong-one-of-32-characters-xxx")
        assert "the bearer token is missing or unknown" in said
        assert "ASSAY_TOKEN" in said
        assert "a-wrong-one" not in said
        contact.forget()
        right = Settings(guarded.address, task="math", token=token.read_text().strip(), **ca)
        assert [result.reward for result in score(right, ROWS)] == [1.0, 1.0]


def test_tls_towards_a_server_without(services: EmbeddedServices, tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    assert "does not speak TLS" in refusal(services.address, tls_ca=str(made.ca_file))


def test_a_broken_setting_reaches_every_caller(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(AssayError, match=r"no-such\.pem"):
            score(Settings("127.0.0.1:1", tls_ca=str(tmp_path / "no-such.pem")), ROWS)


NAMES = st.sampled_from(["exact", "length", "nobody", ""])


@given(
    st.lists(st.tuples(NAMES, NAMES, st.sampled_from([None, "4"])), min_size=1, max_size=8),
    NAMES,
)
def test_it_stops_only_where_no_row_can_be_judged(
    rows: list[tuple[str, str, str | None]], own: str
) -> None:
    length = reward_pb2.VerifierInfo(name="length", version="1", tasks=["length"])
    info = server_info_from_proto(
        reward_pb2.ListVerifiersResponse(verifiers=[exact_info(), length], server_version="9")
    )
    items = [Item("4", reference, verifier, task) for verifier, task, reference in rows]
    found = [info.find(item.verifier, item.task) for item in items]
    judged = [
        one is not None and (item.reference is not None or not one.needs_reference)
        for one, item in zip(found, items, strict=True)
    ]
    try:
        said, doubts = what_was_met(info, Addressee("a:1", own), items)
    except FirstContactError:
        assert not any(judged)
        return
    assert said.startswith("first contact with the reward server a:1 (9): ")
    assert bool(doubts) == (not all(judged))
    if not any(judged):
        several_reasons = len(set(found)) > 1
        assert len(items) == 1 or several_reasons


def test_a_server_that_is_killed_in_the_middle_of_a_run_ends_it() -> None:
    with EmbeddedServices() as services:
        settings = Settings(services.address, task="math")
        batch = [Item(RIGHT, "4", task="math", id=str(n)) for n in range(32)]
        for _ in range(4):
            score(settings, batch)
        os.kill(services.pid(), 9)
        settings = dataclasses.replace(settings, timeout_s=0.5)
        for _ in range(4):  # as many as were good
            assert all(result.fault for result in score(settings, batch))
        with pytest.raises(TooManyFaultsError, match="160 of the last 288 samples had no"):
            score(settings, batch)
        assert client_of(settings).target == services.address


def test_a_verifier_that_always_faults_ends_the_run_and_one_bad_batch_does_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(
        "def broken(response, reference):\n"
        "    if response == 'break':\n"
        "        raise RuntimeError('the index is gone')\n"
        "    return 1.0\n"
    )
    arguments = {"reward": ["--verifier", f"{tmp_path}/mine.py:broken"]}
    with EmbeddedServices(arguments=arguments) as services:
        settings = Settings(services.address, verifier="broken")

        def step(response: str) -> None:
            score(settings, [Item(response, "4", "broken", id=str(n)) for n in range(64)])

        for response in ("fine", "fine", "break", "fine", "break", "break"):
            step(response)
        with pytest.raises(TooManyFaultsError, match=r"RuntimeError at mine\.py:3"):
            step("break")
