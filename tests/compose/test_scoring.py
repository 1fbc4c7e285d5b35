"""The stack as its users have it: real answers through the published port, with the real client."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from assay.clients import Item, RewardClient
from assay.clients.execution import AssertTest, Limits, TestSuite, suite_to_proto
from assay.kit.errors import CallError
from compose_support import Stack

GSM8K_ROWS = 200
HUMANEVAL_ROWS = 164


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def test_gsm8k_answers_get_their_rewards(client: RewardClient, shared_data: Path) -> None:
    problems = rows(shared_data, "gsm8k_test")[:GSM8K_ROWS]
    right = [Item(row["solution"], reference=row["answer"], task="math") for row in problems]
    wrong = [
        Item(f"So it is \\boxed{{{float(row['answer'].replace(',', '')) + 1:g}}}.",
             reference=row["answer"], task="math")
        for row in problems
    ]  # fmt: skip
    rewards = [result.reward for result in client.score([*right, *wrong])]
    assert rewards == [1.0] * len(right) + [0.0] * len(wrong)


def test_humaneval_programs_get_their_rewards(client: RewardClient, shared_data: Path) -> None:
    """Canonical solutions pass; the same functions that return nothing do not."""
    problems = rows(shared_data, "humaneval")[:HUMANEVAL_ROWS]
    items = []
    for body in ("{canonical_solution}", "    return None\n"):
        for row in problems:
            suite = TestSuite(
                (AssertTest(row["test"], row["entry_point"]),),
                Limits(cpu_time_s=30.0, wall_time_s=60.0),
            )
            program = row["prompt"] + (body if "return" in body else row["canonical_solution"])
            items.append(
                Item(f"```python\n{program}\n```", reference=suite_to_proto(suite), task="code")
            )
    results = client.score(items, timeout_s=600.0)
    assert [result.fault for result in results if result.fault] == []
    rewards = [result.reward for result in results]
    assert rewards == [1.0] * len(problems) + [0.0] * len(problems)


def test_a_model_judges_behind_the_reward_server(client: RewardClient) -> None:
    """Its opinions mean nothing, being random; that they arrive, and are repeated, does."""
    prompt = [{"role": "user", "content": "What is 6 * 7?"}]
    items = [Item(f"It is {n}.", reference="42", verifier="judge", prompt=prompt) for n in range(8)]
    first, again = client.score(items), client.score(items)
    assert [result.fault for result in first if result.fault] == []
    rewards = [result.reward for result in first]
    assert all(reward is not None and 0.0 <= reward <= 1.0 for reward in rewards)
    assert len(set(rewards)) > 1
    assert rewards == pytest.approx([result.reward for result in again])


def test_without_the_token_nothing_is_judged(stack: Stack) -> None:
    for token in (None, "wrong", stack.sandbox_token):
        with (
            RewardClient(stack.target, token=token, timeout_s=10.0) as stranger,
            pytest.raises(CallError) as caught,
        ):
            stranger.list_verifiers()
        assert caught.value.reason == "UNAUTHENTICATED"
