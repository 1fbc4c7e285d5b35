"""`math-verify` on answers that never end: the worker is killed, the item is a fault.

The library runs them for ever, or until memory is gone, when its alarms are off; a server that
called it in its own process would stop with them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.math_rows import ENDLESS, PAYLOADS, boxed

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.clients.types import Result

TIMEOUT_S = 1.0
SLACK_S = 20.0
WORKER_MB = 768
OURS = {"ITEM_TIMEOUT", "WORKER_DIED", "VERIFIER_FAILED"}


@pytest.fixture(scope="module")
def services() -> Iterator[EmbeddedServices]:
    flags = ("--log-level", "ERROR", "--worker-memory-mb", str(WORKER_MB), "--worker-items", "5")
    with EmbeddedServices(arguments={"reward": flags}) as started:
        yield started


@pytest.fixture(scope="module")
def client(services: EmbeddedServices) -> Iterator[RewardClient]:
    with RewardClient(services.address, timeout_s=200.0) as made:
        made.score([Item("\\boxed{1}", reference="$1$", verifier="math-verify")])
        yield made


def hasty(response: str, reference: str) -> Item:
    return Item(response, reference=reference, verifier="math-verify", timeout_s=TIMEOUT_S)


def descendants(pid: int) -> Iterator[int]:
    """The processes below one."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield int(child)
        yield from descendants(int(child))


def resident_mb(pid: int) -> float:
    """The most resident memory that a process had."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def faults(results: list[Result]) -> list[str]:
    return [result.fault.reason for result in results if result.fault is not None]


def test_an_answer_without_end_is_a_fault_within_the_time_out(client: RewardClient) -> None:
    items = [hasty(boxed(answer), "$40320.5$") for _, answer in ENDLESS[:4]]
    started_s = time.monotonic()
    results = client.score(items)
    assert time.monotonic() - started_s < len(items) * TIMEOUT_S + SLACK_S
    assert all(result.reward is None for result in results)
    assert set(faults(results)) <= OURS


def test_the_server_goes_on_with_new_workers_and_little_memory(
    client: RewardClient, services: EmbeddedServices
) -> None:
    right = [
        Item(boxed(f"\\frac{{{k}}}{{{2 * k}}}"), reference="$0.5$", verifier="math-verify")
        for k in range(2, 26)
    ]
    client.score([hasty(boxed(ENDLESS[0][1]), "$4$"), right[0]])
    workers = set(descendants(services.pid()))
    assert [result.reward for result in client.score(right[1:])] == [1.0] * 23
    # After five items each worker has made room for another.
    assert set(descendants(services.pid())) != workers
    assert all(resident_mb(pid) < WORKER_MB for pid in descendants(services.pid()))
    assert resident_mb(services.pid()) < WORKER_MB


@pytest.mark.slow
def test_a_program_is_not_right(client: RewardClient) -> None:
    results = client.score([hasty(boxed(program), f"${gold}$") for gold, program in PAYLOADS])
    assert not any(result.reward for result in results)
