"""Containers killed or cut off in mid-batch: no fault is scored 0, nothing is lost, one client goes
on."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from assay.clients import Item, Result, RewardClient
from assay.clients.execution import CallTest, Limits, TestSuite, suite_to_proto
from compose_support import Stack, until

COUNT = 40
SLOW = "import time\n\ndef double(x):\n    time.sleep(0.5)\n    return x + x\n"
SUITE = suite_to_proto(TestSuite([CallTest("double", (3,), 6)], Limits(wall_time_s=30.0)))
PROMPT = [{"role": "user", "content": "What is 6 * 7?"}]


def programs() -> list[Item]:
    """All right: whatever reward but 1 comes of one, it is not its own."""
    text = f"```python\n{SLOW}```"
    return [Item(text, reference=SUITE, task="code", id=str(n)) for n in range(COUNT)]


def answers() -> list[Item]:
    """Beside them, such as no other service is asked for."""
    return [
        Item(f"\\boxed{{{n}}}", reference=str(n), task="math", id=f"math-{n}") for n in range(10)
    ]


def scored_while(
    client: RewardClient,
    items: list[Item],
    blow: Callable[[], object],
    timeout_s: float,
    after_s: float = 2.0,
) -> list[Result]:
    """Scores items; the blow falls when the first result is there, and so many seconds later."""
    results: list[Result] = []
    fallen = threading.Event()

    def strike() -> None:
        time.sleep(after_s)
        blow()
        fallen.set()

    striker = threading.Thread(target=strike)
    for result in client.stream(items, timeout_s=timeout_s):
        results.append(result)
        if striker.ident is None:
            striker.start()
    over = not fallen.is_set()
    striker.join()
    assert not over, "the batch was over before the blow"
    return results


def whole(results: list[Result], items: list[Item]) -> tuple[int, int]:
    """Judgements and faults; they are as many as the items, and every judgement is right."""
    assert sorted(result.id for result in results) == sorted(item.id for item in items)
    judged = [result for result in results if result.judgement is not None]
    faults = [result for result in results if result.fault is not None]
    assert len(judged) + len(faults) == len(items)
    assert {result.reward for result in judged} <= {1.0}, "a fault was scored"
    assert {result.reward for result in faults} <= {None}
    return len(judged), len(faults)


def test_a_killed_sandbox_makes_faults_and_comes_back(stack: Stack, client: RewardClient) -> None:
    items = [*programs(), *answers()]
    results = scored_while(client, items, lambda: stack.kill("sandbox"), 20.0)
    judged, faults = whole(results, items)
    assert faults > 0
    assert all(result.reward == 1.0 for result in results if result.id.startswith("math-"))
    reasons = {result.fault.reason for result in results if result.fault}
    print(f"\nsandbox killed: {judged} judged, {faults} faults: {sorted(reasons)}")
    stack.start("sandbox")
    again = client.score(items, timeout_s=120.0)
    assert whole(again, items) == (len(items), 0)


def test_a_killed_reward_server_makes_faults_and_comes_back(
    stack: Stack, client: RewardClient
) -> None:
    items = [*answers(), *programs()]
    results = scored_while(client, items, lambda: stack.kill("reward_server"), 20.0)
    judged, faults = whole(results, items)
    assert faults > 0
    reasons = {result.fault.reason for result in results if result.fault}
    print(f"\nreward server killed: {judged} judged, {faults} faults: {sorted(reasons)}")
    stack.start("reward_server")
    again = client.score(items, timeout_s=120.0)
    assert whole(again, items) == (len(items), 0)


def test_a_killed_judge_makes_faults_and_comes_back(stack: Stack, client: RewardClient) -> None:
    def judged_items(first: int, number: int = 200) -> list[Item]:
        return [
            Item(f"It is {n}.", reference="42", verifier="judge", prompt=PROMPT, id=str(n))
            for n in range(first, first + number)
        ]

    # Its first opinion takes long on a busy machine.
    assert client.score(judged_items(20_000)[:1], timeout_s=120.0)[0].fault is None
    items = judged_items(10_000, 800)  # some seconds of work, where nothing else runs
    try:
        results = scored_while(client, items, lambda: stack.kill("genrm"), 60.0, after_s=0.1)
    finally:
        stack.start("genrm")
    assert len(results) == len(items)
    faulted = {result.id for result in results if result.fault is not None}
    until(lambda: client.score(items[:1])[0].fault is None, 60.0)
    truth = {result.id: result.reward for result in client.score(items, timeout_s=120.0)}
    assert None not in truth.values()
    said = {result.id: result.reward for result in results if result.id not in faulted}
    assert said == pytest.approx({name: truth[name] for name in said}, abs=1e-5)
    print(f"\njudge killed: {len(said)} judged as ever, {len(faulted)} faults")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root ends another user's process")
def test_a_crash_is_mended_by_the_restart_policy(stack: Stack, client: RewardClient) -> None:
    """`docker kill` counts as the operator's wish; a process that dies by itself is started
    again."""
    state = stack.inspect("sandbox")["State"]
    pid, started = int(state["Pid"]), state["StartedAt"]
    items = [*programs(), *answers()]
    results = scored_while(client, items, lambda: os.kill(pid, signal.SIGKILL), 90.0)
    judged, faults = whole(results, items)
    print(f"\nsandbox crashed: {judged} judged, {faults} faults")
    until(lambda: stack.inspect("sandbox")["State"]["StartedAt"] != started, 60.0)
    stack.wait_healthy("sandbox")
    began_s = time.monotonic()
    assert whole(client.score(items, timeout_s=120.0), items) == (len(items), 0)
    print(f"all judged {time.monotonic() - began_s:.0f} s after it was healthy again")


def test_a_cut_network_makes_faults_and_heals(stack: Stack, client: RewardClient) -> None:
    """Between reward server and sandbox: packets vanish, nobody is told."""
    items = [*programs(), *answers()]
    try:
        results = scored_while(client, items, lambda: stack.cut("sandbox", "back"), 20.0)
        judged, faults = whole(results, items)
        assert faults > 0
        assert all(result.reward == 1.0 for result in results if result.id.startswith("math-"))
        reasons = {result.fault.reason for result in results if result.fault}
        print(f"\nnetwork cut: {judged} judged, {faults} faults: {sorted(reasons)}")
        # A batch that begins while it lasts; what was judged before is remembered.
        fresh = [dataclasses.replace(one, response=f"{one.response}\n\nAgain.") for one in items]
        assert whole(client.score(fresh, timeout_s=15.0), fresh) == (10, COUNT)
        assert stack.inspect("sandbox")["State"]["Health"]["Status"] == "healthy"
    finally:
        stack.heal("sandbox", "back")
    began_s = time.monotonic()
    until(lambda: client.score(items[:1], timeout_s=10.0)[0].fault is None, 120.0)
    print(f"verdicts again {time.monotonic() - began_s:.0f} s after it was healed")
    assert whole(client.score(fresh, timeout_s=120.0), fresh) == (len(items), 0)
