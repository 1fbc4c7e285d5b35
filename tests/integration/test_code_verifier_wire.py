"""`code` as users have it: a reward server and a sandbox, started together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.clients import AsyncRewardClient, EmbeddedServices, Item, RewardClient
from assay.clients.execution import CallTest, Limits, TestSuite, suite_to_proto
from sandbox_service import ANY_FLOOR

TESTS = suite_to_proto(
    TestSuite([CallTest("double", (n,), 2 * n) for n in (1, 2, 3, 4)], Limits(wall_time_s=5.0))
)
RIGHT = "So:\n```python\ndef double(x):\n    return x + x\n```"
HALF = "```python\ndef double(x):\n    return 2 * x if x < 3 else 0\n```"
CHEAT = """```python
class Always(int):
    __eq__ = lambda self, other: True
def double(x):
    return Always()
```"""


@pytest.fixture(scope="module")
def services() -> Iterator[EmbeddedServices]:
    flags = {"sandbox": [*ANY_FLOOR, "--languages", "python", "--slots", "2"]}
    with EmbeddedServices(("reward", "sandbox"), arguments=flags) as services:
        yield services


def test_programs_are_judged_by_their_tests(services: EmbeddedServices) -> None:
    with RewardClient(services.address) as client:
        assert "code" in [verifier.name for verifier in client.list_verifiers().verifiers]
        results = client.score(
            [
                Item(RIGHT, reference=TESTS, task="code"),
                Item(HALF, reference=TESTS, task="code"),
                Item(HALF, reference=TESTS, task="code", parameters={"scoring": "fraction"}),
                Item(CHEAT, reference=TESTS, task="code"),
                Item("I give up.", reference=TESTS, task="code"),
                Item(RIGHT, reference=TESTS, task="code", parameters={"language": "cobol"}),
            ]
        )
    assert [result.reward for result in results] == [1.0, 0.0, 0.5, 0.0, 0.0, None]
    assert results[2].judgement is not None
    assert "first failure: test 3, wrong-answer" in results[2].judgement.explanation
    assert results[4].judgement is not None
    assert results[4].judgement.verdict == "unparsed"
    assert results[5].fault is not None
    assert results[5].fault.reason == "UNKNOWN_LANGUAGE"


@pytest.mark.slow
async def test_many_groups_at_once(services: EmbeddedServices) -> None:
    items = [
        Item(RIGHT if n % 2 else HALF, reference=TESTS, task="code", group_id=str(n // 8))
        for n in range(160)
    ]
    async with AsyncRewardClient(services.address, timeout_s=90.0) as client:
        results = await client.score(items)
    assert [result.reward for result in results] == [float(n % 2) for n in range(160)]


@pytest.mark.slow
def test_a_sandbox_that_goes_away_makes_faults(services: EmbeddedServices) -> None:
    flags = {"reward": ["--sandbox-target", "127.0.0.1:1"]}
    with (
        EmbeddedServices(("reward",), arguments=flags) as alone,
        RewardClient(alone.address, timeout_s=5.0) as client,
    ):
        [code, exact] = client.score(
            [
                Item(RIGHT, reference=TESTS, verifier="code"),
                Item("4", reference="4", verifier="exact"),
            ]
        )
    assert code.fault is not None
    assert code.fault.reason == "UNREACHABLE"
    assert exact.reward == 1.0
