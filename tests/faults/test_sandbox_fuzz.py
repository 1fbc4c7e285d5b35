"""A minute of the fuzzer: see `bench.sandbox_fuzz`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench import sandbox_fuzz

from assay.clients import EmbeddedServices
from assay.clients.execution import ExecutionClient

SEED = 1


@pytest.fixture(scope="module")
def client() -> Iterator[ExecutionClient]:
    flags = ("--slots", "2", "--languages", "python", "--log-level", "ERROR")
    with (
        EmbeddedServices(("sandbox",), arguments={"sandbox": flags}) as services,
        ExecutionClient(services.address_of("sandbox"), timeout_s=100.0) as client,
    ):
        yield client


def test_a_seed_draws_the_same_games() -> None:
    games = [sandbox_fuzz.game(SEED, number) for number in range(200)]
    assert games == [sandbox_fuzz.game(SEED, number) for number in range(200)]
    suites = {job.id.split(" ", 1)[1] for job in games}
    assert suites == {*sandbox_fuzz.SUITES, *sandbox_fuzz.CALLS}


@pytest.mark.slow
def test_a_program_that_knows_passes(client: ExecutionClient) -> None:
    """The games are lost for want of knowledge, not because these suites cannot be passed."""
    jobs = [sandbox_fuzz.neighbour(number) for number in range(4)]
    assert [sandbox_fuzz._trouble(result) for result in client.run_tests(jobs)] == ["PASSED"] * 4


@pytest.mark.slow
def test_no_game_is_won_or_void(client: ExecutionClient) -> None:
    tally = sandbox_fuzz.fuzz(client, SEED, seconds=45.0)
    assert tally.games >= sandbox_fuzz.BATCH
    # The games are worth playing: many get as far as an answer that is judged.
    assert tally.verdicts["wrong-answer"] > tally.games / 20
    assert tally.findings == [], "\n".join(tally.findings)
