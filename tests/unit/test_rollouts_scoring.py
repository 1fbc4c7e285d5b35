"""A round of scoring against a service in this process."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from assay.api.reward.v1 import reward_pb2
from assay.clients.testing.fake import exact_info
from assay.kit.errors import ConfigError, refuse
from assay.kit.reasons import Reason
from assay.trainer.core.rewards import open_judge, own_services, sample_of
from assay.trainer.rollouts.scoring import BackgroundClient
from assay.trainer.settings.sections import RewardConfig
from rollouts_scoring_support import (
    QUICK,
    WrittenTransport,
    judge_over,
    judged,
    request,
    response,
    wait_until,
)


def scripted(answer: Any) -> BackgroundClient:
    return BackgroundClient("here", config=QUICK, transport=lambda: WrittenTransport(answer))


def all_judged(_stream: int, items: Any) -> list[reward_pb2.Result]:
    return [judged(item) for item in items]


def reasons(results: Any) -> list[str | None]:
    return [result.fault.reason if result.fault else None for result in results]


def test_what_the_service_is_asked() -> None:
    seen: list[Any] = []

    def answer(_stream: int, items: Any) -> list[reward_pb2.Result]:
        seen.extend(items)
        return [judged(item) for item in items]

    with scripted(answer) as client:
        round_ = judge_over(client).open_round(2)
        round_.submit(request(7, 1), response("01"))
        assert [result.reward for result in round_.results()] == [0.0]
    item = seen[0]
    assert (item.verifier, item.response, item.reference.text) == ("exact", "01", "1")
    assert [message.content for message in item.prompt] == ["1 or 0?"]
    assert (item.group_id, item.response_token_count, item.truncated) == ("7", 3, False)
    assert sample_of(request(7, 1), response("01")).group == "7"


def test_results_come_while_others_are_still_generated() -> None:
    with scripted(all_judged) as client, judge_over(client).open_round(4) as scoring:
        for number in range(4):
            scoring.submit(request(0, number), response("1" if number % 2 else "0"))
            wait_until(lambda due=number: scoring.ready() > due)  # type: ignore[misc]
        assert scoring.ready() == 4
        assert [result.reward for result in scoring.results()] == [0.0, 1.0, 0.0, 1.0]
        assert scoring.wait_s >= 0


def test_nothing_submitted_nothing_asked() -> None:
    transport = WrittenTransport(all_judged)
    with BackgroundClient("here", transport=lambda: transport) as client:
        assert judge_over(client).open_round(4).results() == []
    assert transport.streams == 0


def test_groups_are_sent_whole_and_only_then() -> None:
    chunks: list[list[str]] = []

    def answer(_stream: int, items: Any) -> list[reward_pb2.Result]:
        chunks.append([item.group_id for item in items])
        return [judged(item) for item in items]

    with scripted(answer) as client:
        scoring = judge_over(client, judges_groups=True).open_round(3)
        for number in (0, 1, 0, 1, 1):
            scoring.submit(request(number), response())
        wait_until(lambda: scoring.ready() == 3)
        assert chunks == [["1", "1", "1"]]
        scoring.submit(request(0), response("0"))
        scoring.submit(request(2), response())
        results = scoring.results()
    assert chunks == [["1", "1", "1"], ["0", "0", "0"]]
    assert [result.reward for result in results] == [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, None]
    assert results[-1].fault is not None
    assert results[-1].fault.message == "the group was not whole: 1 of 3 responses"


def test_a_stream_that_breaks_for_good_faults_what_it_took_and_no_more() -> None:
    def answer(stream: int, items: Any) -> list[reward_pb2.Result]:
        if stream == 0:
            raise refuse(Reason.INTERNAL, "told to")
        return [judged(item) for item in items]

    with scripted(answer) as client:
        scoring = judge_over(client).open_round(1)
        scoring.submit(request(0), response())
        wait_until(lambda: scoring.ready() == 1)
        scoring.submit(request(1), response())
        results = scoring.results()
    assert reasons(results) == ["INTERNAL", None]


def test_a_service_that_never_answers_is_waited_for_no_longer_than_allowed() -> None:
    with scripted(lambda _stream, _items: None) as client:
        scoring = judge_over(client, timeout_s=0.2).open_round(1)
        scoring.submit(request(0), response())
        scoring.submit(request(1), response())
        results = scoring.results()
    assert reasons(results) == ["DEADLINE_EXCEEDED"] * 2
    assert results[0].fault is not None
    assert "reward.timeout_s" in results[0].fault.message


def test_a_defect_is_no_fault() -> None:
    def answer(_stream: int, _items: Any) -> list[reward_pb2.Result]:
        raise AssertionError("told to")

    with scripted(answer) as client:
        scoring = judge_over(client).open_round(1)
        scoring.submit(request(0), response())
        with pytest.raises(AssertionError, match="told to"):
            scoring.results()


def test_an_interrupt_ends_the_waiting_and_leaves_nothing_behind() -> None:
    with scripted(lambda _stream, _items: None) as client:
        scoring = judge_over(client, timeout_s=60).open_round(1)
        scoring.submit(request(0), response())
        main = threading.main_thread().ident
        assert main is not None
        # what a shell starts in the background ignores the signal
        around = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            waiting = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
            waiting.start()
            with pytest.raises(KeyboardInterrupt):
                scoring.results()
        finally:
            waiting.join()
            signal.signal(signal.SIGINT, around)
        assert scoring.ready() == 0


def test_closing_the_client_faults_what_is_left() -> None:
    client = scripted(lambda _stream, _items: None)
    scoring = judge_over(client, timeout_s=60).open_round(1)
    scoring.submit(request(0), response())
    scoring.close()
    client.close()
    scoring.submit(request(1), response())
    assert reasons(scoring.results()) == ["DEADLINE_EXCEEDED"] * 2
    with pytest.raises(ConfigError, match="the client is closed"):
        judge_over(client).open_round(1)


def test_the_judge_closes_the_rounds_that_were_left_open() -> None:
    transport = WrittenTransport(all_judged)
    config = RewardConfig(verifier="exact")
    with open_judge(config, lambda: transport) as judge:
        scoring = judge.open_round(1)
        scoring.submit(request(0), response())
        wait_until(lambda: scoring.ready() == 1)
    assert transport.streams == 1
    assert scoring.results()[0].reward == 1.0


@pytest.mark.parametrize("needs_group", [False, True])
def test_the_server_says_whether_groups_are_judged_as_one(needs_group: bool) -> None:
    class Says(WrittenTransport):
        async def list_verifiers(self, _request: Any, *, timeout_s: float) -> Any:
            info = exact_info()
            info.needs_group = needs_group
            return reward_pb2.ListVerifiersResponse(verifiers=[info])

    with open_judge(RewardConfig(verifier="exact"), lambda: Says(all_judged)) as judge:
        scoring = judge.open_round(2)
        scoring.submit(request(0), response())
        assert [result.fault is None for result in scoring.results()] == [not needs_group]


def test_an_unknown_verifier_is_refused_before_any_work() -> None:
    config = RewardConfig(verifier="nobody")
    with (
        pytest.raises(ConfigError, match=r"'nobody' is not served at .*; it serves: exact"),
        open_judge(config, lambda: WrittenTransport(all_judged)),
    ):
        pass


def test_services_are_started_only_where_there_is_no_target() -> None:
    with own_services(RewardConfig(target="there:1")) as target:
        assert target == "there:1"
    with own_services(RewardConfig(), lambda: WrittenTransport(all_judged)) as target:
        assert target == ""
