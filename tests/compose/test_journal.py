"""The verdict journal in a container: by a variable on its volume, and on a disk that is full."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.clients import Item, RewardClient
from compose_support import Stack, until

# Smaller than the least that a journal may be bounded to, so that the disk ends first.
FULL = """
services:
  reward_server:
    tmpfs:
      - /full:size=3m,mode=1777
"""


@pytest.fixture(scope="module", autouse=True)
def as_before(stack: Stack) -> Iterator[None]:
    """Afterwards the reward server is as compose.yaml has it."""
    yield
    stack.renew("reward_server")


def answers(first: int, count: int, padding: int) -> list[Item]:
    return [
        Item(f"{'x' * padding} \\boxed{{{n}}}", reference=str(n), task="math", id=str(n))
        for n in range(first, first + count)
    ]


def rewards(client: RewardClient, items: list[Item]) -> set[float | None]:
    return {result.reward for result in client.score(items, timeout_s=120.0)}


def test_a_journal_by_one_variable_outlives_its_container(
    stack: Stack, client: RewardClient
) -> None:
    def entries() -> list[str]:
        ask = ("exec", stack.container("reward_server"), "/opt/assay/bin/assay", "journal")
        return stack.docker(*ask, "export", "/journal/verdicts.sqlite").splitlines()

    on = {"ASSAY_REWARD_JOURNAL": "/journal/verdicts.sqlite"}
    stack.renew("reward_server", **on)
    first = stack.container("reward_server")
    assert rewards(client, answers(0, 20, 10)) == {1.0}
    until(lambda: len(entries()) == 20, 20.0, entries)
    stack.docker("rm", "-f", first)
    stack.renew("reward_server", **on)
    assert stack.container("reward_server") != first
    assert rewards(client, answers(20, 5, 10)) == {1.0}
    until(lambda: len(entries()) == 25, 20.0, entries)
    assert {json.loads(line)["reward"] for line in entries()} == {1.0}


def test_a_full_disk_ends_the_journal_and_not_the_scoring(
    stack: Stack, client: RewardClient, tmp_path: Path
) -> None:
    """Said once, counted, and every verdict as ever."""
    override = tmp_path / "full.yaml"
    override.write_text(FULL)
    stack.renew("reward_server", str(override), ASSAY_REWARD_JOURNAL="/full/verdicts.sqlite")
    container = stack.container("reward_server")
    total = 0
    for round_ in range(8):
        assert rewards(client, answers(1000 * round_, 200, 8000)) == {1.0}
        total += 200
    until(lambda: "disk is full" in stack.logs(container), 30.0, lambda: stack.logs(container))
    assert rewards(client, answers(100_000, 50, 10)) == {1.0}
    total += 50
    stack.docker("stop", "-t", "20", container)
    said = stack.logs(container)
    assert said.count("off until the next start") == 1, said
    [(written, dropped)] = re.findall(r"the journal ends: (\d+) written, (\d+) dropped", said)
    assert int(written) > 0
    assert int(dropped) > 0
    assert int(written) + int(dropped) == total
    print(f"\n{written} entries on a disk of 3 MB, {dropped} dropped, all {total} scored")
