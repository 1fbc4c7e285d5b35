"""Profiles on a real scorer: stages, parts in workers, faults of parts, deadlines, streams."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import ConfigError, error_info, reason_of
from assay.reward_server.config import ScorerConfig
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from chaos import install

PROFILES = """
[[profile]]
name = "gated"
description = "A word that is right, and then a worker's opinion."

[[profile.gate]]
name = "right"
verifier = "exact"
pass = ["correct"]
reward = -1.0

[[profile.component]]
name = "opinion"
verifier = "chaos"
weight = 0.5

[[profile.component]]
name = "glance"
verifier = "glancing"
weight = 0.25

[[profile]]
name = "lazily"
description = "A part that is slow to load."

[[profile.component]]
name = "slow"
verifier = "lazy"
"""


@pytest.fixture(autouse=True)
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed plug-ins that misbehave on demand, and a file of profiles over them."""
    monkeypatch.syspath_prepend(str(install(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "profiles.toml").write_text(PROFILES)


@contextlib.asynccontextmanager
async def scoring(tmp_path: Path, **settings: object) -> AsyncIterator[RewardScorer]:
    """A scorer with real workers and the profiles above."""
    config = ScorerConfig(**{"workers": 2, "item_timeout_s": 5.0, **settings})  # type: ignore[arg-type]  # named
    scorer = RewardScorer(config, registry=load_registry(profiles=[tmp_path / "profiles.toml"]))
    try:
        await scorer.start()
        yield scorer
    finally:
        await scorer.close()


def item(name: str, response: str, reference: str, profile: str = "gated") -> reward_pb2.Item:
    made = reward_pb2.Item(id=name, verifier=profile, response=response)
    made.reference.text = reference
    return made


def batch(*items: reward_pb2.Item) -> reward_pb2.BatchScoreRequest:
    return reward_pb2.BatchScoreRequest(items=items)


async def test_a_gate_keeps_the_rest_from_being_asked(tmp_path: Path) -> None:
    async with scoring(tmp_path) as scorer:
        request = batch(item("right", "fine", "fine"), item("wrong", "die", "fine"))
        right, wrong = (await scorer.batch_score(request, timeout_s=20)).results
        assert right.judgement.reward == 0.75
        weights = {c.name: c.weight for c in right.judgement.components}
        assert (weights["opinion"], weights["glance"]) == (0.5, 0.25)
        assert wrong.judgement.reward == -1.0  # and the worker that would have died was not asked
        assert "right" in wrong.judgement.explanation
        assert right.judgement.verifier.name == "gated"
        assert right.timings.HasField("execution")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("die", "WORKER_DIED"),
        ("raise", "VERIFIER_FAILED"),
        ("sleep 60", "ITEM_TIMEOUT"),
        ("unjudgeable", "UNSUPPORTED_INPUT"),
        ("refuse at a glance", "UNSUPPORTED_INPUT"),
    ],
)
async def test_the_fault_of_a_part_is_the_fault_of_the_whole(
    tmp_path: Path, response: str, reason: str
) -> None:
    async with scoring(tmp_path, item_timeout_s=1.0) as scorer:
        request = batch(item("bad", response, response), item("good", "fine", "fine"))
        bad, good = (await scorer.batch_score(request, timeout_s=20)).results
        assert reason_of(bad.fault) == reason
        assert error_info(bad.fault).metadata["component"] in ("opinion", "glance")
        assert good.judgement.reward == 0.75


async def test_a_lazy_part_is_loaded_at_its_first_use(tmp_path: Path) -> None:
    async with scoring(tmp_path) as scorer:
        request = batch(item("a", "x", "x", "lazily"))
        [result] = (await scorer.batch_score(request, timeout_s=20)).results
        assert result.judgement.reward == 1.0


async def test_the_deadline_makes_faults_of_what_is_not_done(tmp_path: Path) -> None:
    async with scoring(tmp_path, item_timeout_s=60.0) as scorer:
        request = batch(item("slow", "sleep 50", "sleep 50"), item("wrong", "a", "b"))
        slow, wrong = (await scorer.batch_score(request, timeout_s=1.5)).results
        assert reason_of(slow.fault) == "DEADLINE_EXCEEDED"
        assert wrong.judgement.reward == -1.0
        for _ in range(500):
            if not scorer.pool.running_pids():
                return
            await asyncio.sleep(0.02)
        pytest.fail("a worker still runs what nobody waits for")


async def test_more_parts_than_the_queue_holds_wait_for_room(tmp_path: Path) -> None:
    async with scoring(tmp_path, queue_items=4) as scorer:
        for start in range(0, 12, 4):
            request = batch(
                *(item(f"{i}", f"word {i}", f"word {i}") for i in range(start, start + 4))
            )
            results = (await scorer.batch_score(request, timeout_s=30)).results
            assert [result.judgement.reward for result in results] == [0.75] * 4


async def test_profiles_in_a_stream(tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        for k in range(3):
            made = [item(f"{k}-{i}", f"w {k}{i}", f"w {k}{i % 2}") for i in range(4)]
            yield reward_pb2.StreamScoreRequest(items=made)

    async with scoring(tmp_path) as scorer:
        answers = scorer.stream_score(chunks(), timeout_s=30)
        results = {r.id: r.judgement.reward async for part in answers for r in part.results}
        assert results == {f"{k}-{i}": 0.75 if i < 2 else -1.0 for k in range(3) for i in range(4)}


async def test_they_are_listed_as_profiles(tmp_path: Path) -> None:
    async with scoring(tmp_path) as scorer:
        listed = await scorer.list_verifiers(reward_pb2.ListVerifiersRequest(), timeout_s=5)
        info = {verifier.name: verifier for verifier in listed.verifiers}
        assert info["gated"].is_profile
        assert not info["chaos"].is_profile
        assert (info["gated"].min_reward, info["gated"].max_reward) == (-1.0, 0.75)
        assert "rtv-genrm" in info


async def test_a_judge_that_is_not_served_is_a_fault_and_not_a_zero(tmp_path: Path) -> None:
    async with scoring(tmp_path) as scorer:
        open_question = item("a", "an essay", "another essay", "rtv-genrm")
        [result] = (await scorer.batch_score(batch(open_question), timeout_s=10)).results
        assert result.HasField("fault")
        assert "judge" in result.fault.message


def test_a_broken_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(PROFILES.replace('verifier = "chaos"', 'verifier = "chaoss"'))
    with pytest.raises(ConfigError, match="chaoss") as trouble:
        load_registry(profiles=[path])
    assert "profiles.toml" in str(trouble.value)
