"""Scoring over real gRPC while responses are still being generated, and servers that fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from assay.clients import Fault, Judgement, Result
from assay.clients.testing import FakeRewardServer, Knobs
from assay.clients.testing.fake import exact_info
from assay.kit.errors import ConfigError
from assay.trainer.core.rewards import Judge, Reach, Sample, open_judge, own_services
from assay.trainer.rollouts.scoring import BackgroundClient
from assay.trainer.settings.sections import RewardConfig
from rollouts_scoring_support import QUICK, judge_over, request, response, wait_until

LIMIT_S = 30.0


def reasons(results: list[Result]) -> list[str | None]:
    return [result.fault.reason if result.fault else None for result in results]


def on_server(server: FakeRewardServer, work: Callable[[Judge], Any], timeout_s: float = 30) -> Any:
    with BackgroundClient(server.address, config=QUICK) as client:
        return work(judge_over(client, timeout_s))


def test_judging_and_generating_go_on_at_the_same_time() -> None:
    """Response k + 1 is not finished before the judging of k began, nor k judged before k + 1 was
    finished: each step would wait for ever if one of the two waited for the other to end."""
    count = 6
    begun = [threading.Event() for _ in range(count)]
    finished = [threading.Event() for _ in range(count + 1)]
    finished[count].set()

    def judge(item: Any) -> Judgement | Fault:
        number = int(item.group_id)
        begun[number].set()
        overlapped = finished[number + 1].wait(LIMIT_S)
        return Judgement(float(overlapped), "correct", verifier="exact")

    with FakeRewardServer(judge=judge) as server:
        with (
            open_judge(RewardConfig(verifier="exact", target=server.address)) as service,
            service.open_round(1) as scoring,
        ):
            for number in range(count):
                finished[number].set()
                scoring.submit(request(number), response())
                assert begun[number].wait(LIMIT_S)
            wait_until(lambda: scoring.ready() >= count - 1)
            results = scoring.results()
        assert [result.reward for result in results] == [1.0] * count


def test_only_what_came_last_is_waited_for() -> None:
    with FakeRewardServer(knobs=Knobs(delay_s=0.05)) as server:

        def work(judge: Judge) -> list[Result]:
            with judge.open_round(1) as scoring:
                for number in range(5):
                    scoring.submit(request(number), response())
                    wait_until(lambda due=number: scoring.ready() == due + 1)  # type: ignore[misc]
                return scoring.results()

        assert [result.reward for result in on_server(server, work)] == [1.0] * 5
        assert [len(items) for items in server.requests] == [1] * 5


def test_many_at_once_share_messages() -> None:
    with FakeRewardServer() as server:

        def work(judge: Judge) -> list[Result]:
            scoring = judge.open_round(1)
            for number in range(500):
                scoring.submit(request(number), response("1" if number % 3 else "0"))
            return scoring.results()

        results = on_server(server, work)
        assert [result.reward for result in results] == [float(n % 3 > 0) for n in range(500)]
        assert len(server.requests) < 500


def test_a_group_travels_in_one_message() -> None:
    info = exact_info()
    info.needs_group = True
    with FakeRewardServer(verifiers=[info]) as server:
        config = RewardConfig(verifier="exact", target=server.address)
        with open_judge(config) as judge, judge.open_round(8) as scoring:
            assert judge.verifier is not None
            assert judge.verifier.name == config.verifier
            for index in range(8):
                for number in range(20):
                    scoring.submit(request(number, index), response())
            assert all(result.reward == 1.0 for result in scoring.results())
        for number in map(str, range(20)):
            held = [[item.group_id for item in items].count(number) for items in server.requests]
            assert [count for count in held if count] == [8]


def test_whatever_the_answer_looks_like_each_response_gets_its_own() -> None:
    knobs = Knobs(
        shuffle=True,
        unknown_results=2,
        drop_ids=frozenset({"3"}),
        fault_ids=frozenset({"4"}),
        nan_ids=frozenset({"5"}),
        duplicate_ids=frozenset({"6"}),
    )
    with FakeRewardServer(knobs=knobs) as server:

        def work(judge: Judge) -> list[Result]:
            scoring = judge.open_round(1)
            for number in range(10):
                scoring.submit(request(number), response("1" if number % 2 else "0"))
            return scoring.results()

        results = on_server(server, work)
    assert [result.id for result in results] == [str(number) for number in range(10)]
    assert reasons(results)[3:7] == ["MISSING_RESULT", "VERIFIER_FAILED", *["INTERNAL"] * 2]
    rest = [n for n in range(10) if n not in (3, 4, 5, 6)]
    assert [results[n].reward for n in rest] == [float(n % 2) for n in rest]


def test_an_overloaded_server_is_asked_again() -> None:
    with FakeRewardServer(knobs=Knobs(queue_full=2, unavailable=1)) as server:

        def work(judge: Judge) -> list[Result]:
            scoring = judge.open_round(1)
            scoring.submit(request(0), response())
            return scoring.results()

        assert on_server(server, work)[0].reward == 1.0


def test_a_server_that_stays_overloaded_faults() -> None:
    with FakeRewardServer(knobs=Knobs(queue_full=1000)) as server:

        def work(judge: Judge) -> list[Result]:
            scoring = judge.open_round(1)
            for number in range(3):
                scoring.submit(request(number), response())
            return scoring.results()

        assert reasons(on_server(server, work)) == ["QUEUE_FULL"] * 3


def test_a_server_that_hangs_is_given_up_and_told() -> None:
    with FakeRewardServer(knobs=Knobs(hang=1)) as server:

        def work(judge: Judge) -> list[Result]:
            scoring = judge.open_round(1)
            scoring.submit(request(0), response())
            scoring.submit(request(1), response())
            results = scoring.results()
            wait_until(lambda: server.cancelled == 1)
            return results

        assert reasons(on_server(server, work, timeout_s=0.5)) == ["DEADLINE_EXCEEDED"] * 2


def test_a_round_that_is_left_gives_up_what_the_server_still_judges() -> None:
    with FakeRewardServer(knobs=Knobs(hang=1)) as server:

        def work(judge: Judge) -> None:
            with judge.open_round(1) as scoring:
                scoring.submit(request(0), response())
                wait_until(lambda: len(server.requests) == 1)
            wait_until(lambda: server.cancelled == 1)

        on_server(server, work)


def test_a_server_that_dies_faults_and_one_in_its_place_judges_the_rest() -> None:
    with FakeRewardServer(knobs=Knobs(die=1)) as server:
        port = int(server.address.rpartition(":")[2])
        with BackgroundClient(server.address, config=QUICK) as client:
            scoring = judge_over(client).open_round(1)
            client.list_verifiers()
            scoring.submit(request(0), response())
            wait_until(lambda: scoring.ready() == 1)
            with FakeRewardServer(port=port) as other:
                wait_until(lambda: _answers(client))
                scoring.submit(request(1), response())
                results = scoring.results()
                assert len(other.requests) == 1
    assert reasons(results) == ["UNREACHABLE", None]


def _answers(client: BackgroundClient) -> bool:
    client.wait_ready(LIMIT_S)
    return True


@pytest.mark.slow
def test_a_run_of_several_processes_shares_the_services_of_one() -> None:
    """What one process started answers the judges of all; its own verifiers judge."""
    with own_services(RewardConfig(verifier="math")) as target:
        config = RewardConfig(verifier="math")
        for _process in range(2):
            with open_judge(config, target=target) as judge, judge.open_round(2) as scoring:
                for number, text in enumerate(["so \\boxed{1}", "\\boxed{2}"]):
                    scoring.submit(request(number), response(text))
                assert [result.reward for result in scoring.results()] == [1.0, 0.0]


def test_a_server_that_was_away_for_a_part_of_the_time_is_asked_again() -> None:
    """It comes back within the time-out, and has too little of it left to judge."""
    said: list[str] = []
    with ExitStack() as first, ExitStack() as second:
        address = first.enter_context(FakeRewardServer()).address
        config = RewardConfig(verifier="exact", target=address, timeout_s=3.0)
        with open_judge(config) as judge:
            judge.patience.say = said.append
            scoring = judge.open_round(1)
            scoring.submit(request(0), response())
            wait_until(lambda: scoring.ready() == 1)
            first.close()
            scoring.submit(request(1), response("0"))
            time.sleep(1.5)
            slow = FakeRewardServer(port=int(address.rpartition(":")[2]), knobs=Knobs(delay_s=2.0))
            second.enter_context(slow)
            assert [result.reward for result in scoring.results()] == [1.0, 0.0]
            # asked a first time where it came back soon enough for that
            assert {len(items) for items in slow.requests} == {1}
            assert len(slow.requests) in {1, 2}
    assert "not judged within 3 s after the last response, part of which it was away" in said[0]
    assert said[-1].endswith("; 1 responses asked again")


@pytest.mark.slow
def test_services_for_several_machines_answer_beyond_loopback_and_ask_for_a_token() -> None:
    """All of 127.0.0.0/8 is this machine; what is bound to 127.0.0.1 does not answer there."""
    config = RewardConfig(verifier="math", timeout_s=20)
    reach = Reach("127.0.0.2", "a-token-of-the-run")
    with own_services(config, reach=reach) as target:
        assert target.startswith("127.0.0.2:")
        with open_judge(config, target=target, reach=reach) as judge:
            (result,) = judge.score([Sample("1+1=", "\\boxed{2}", "2")])
            assert result.judgement is not None
            assert result.judgement.reward == 1
        with pytest.raises(ConfigError, match="token"), open_judge(config, target=target):
            pass
    with own_services(config) as target:
        assert target.startswith("127.0.0.1:")
