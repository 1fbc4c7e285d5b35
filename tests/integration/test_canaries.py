"""Canaries of a running scorer: judged anew, beside live items, and nobody's but the operator's."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import ConfigError
from assay.reward_server import canaries
from assay.reward_server.canaries import CanaryWatch
from assay.reward_server.config import ScorerConfig
from assay.reward_server.counts import RewardMetrics
from assay.reward_server.domain import (
    Candidate,
    Component,
    Fault,
    Judgement,
    Lookup,
    RemoteOutcome,
    RemoteVerifier,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.pending import PendingScore, Served
from assay.reward_server.profiles import Profile, load_profiles
from assay.reward_server.profiles.model import CanaryRow
from assay.reward_server.registry import FAMILIES, Registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.verifiers.judges import JudgeVerifier
from metrics_support import total

PROFILE = """
[[profile]]
name = "judged"
description = "What the judge says."
canary = { file = "canaries.jsonl", share = SHARE }
[[profile.component]]
verifier = "oracle"
"""
CANARY = "a response that is judged for the operator"


class Oracle(RemoteVerifier):
    """Says what it is told to, and remembers what it was asked.

    Attributes:
        asked: the calls, each with its items and seconds.
        says: the verdict of an item, or a fault.
        opens: answers wait for it.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[VerifierItem], float]] = []
        self.says: Callable[[VerifierItem], str] = lambda _: "correct"
        self.opens = asyncio.Event()
        self.opens.set()
        self._spec = VerifierSpec(
            "oracle", "1", "An oracle.", (), 0.0, 1.0, ("correct", "incorrect"),
            needs_reference=False, isolation="remote",
        )  # fmt: skip

    @property
    def spec(self) -> VerifierSpec:
        return self._spec

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        return (VerifierExample(VerifierItem(Candidate("fine")), "correct"),)

    @property
    def canaries(self) -> list[VerifierItem]:
        items = (item for items, _ in self.asked for item in items)
        return [item for item in items if CANARY in str(item.candidate.text)]

    async def judge_all(
        self, items: Sequence[VerifierItem], timeout_s: float
    ) -> list[RemoteOutcome]:
        self.asked.append((items, timeout_s))
        if any(CANARY in str(item.candidate.text) for item in items):
            await self.opens.wait()
        return [RemoteOutcome(self._outcome(item)) for item in items]

    def _outcome(self, item: VerifierItem) -> Judgement | Fault:
        verdict = self.says(item)
        if verdict.isupper():
            return Fault(verdict, "told so")
        return Judgement.composed(verdict, (Component("truth", float(verdict == "correct")),))


def rows(count: int = 20, **more: object) -> str:
    return "\n".join(
        json.dumps({"response": f"{CANARY} {place}", "verdict": "correct", **more})
        for place in range(count)
    )


def profile_in(folder: Path, text: str, share: float = 0.2) -> Path:
    (folder / "canaries.jsonl").write_text(text)
    file = folder / "profiles.toml"
    file.write_text(PROFILE.replace("SHARE", str(share)))
    return file


def known_to(oracle: Oracle) -> Lookup:
    """The oracle, beside what the shipped profiles need."""
    ours = {one.spec.name: one for family in FAMILIES.values() for one in family}
    return lambda name: oracle if name == "oracle" else ours.get(name)


def profile_of(files: list[Path], known: Lookup) -> Profile:
    return next(one for one in load_profiles(files, known) if one.spec.name == "judged")


def read(collectors: Iterable[Collector]) -> list[Metric]:
    return [family for collector in collectors for family in collector.collect()]


def samples(counts: RewardMetrics) -> list[Sample]:
    return [sample for family in read(counts.collectors) for sample in family.samples]


@contextlib.asynccontextmanager
async def serving(folder: Path, oracle: Oracle, text: str = "") -> AsyncIterator[RewardScorer]:
    known = known_to(oracle)
    registry = Registry([oracle, profile_of([profile_in(folder, text or rows())], known)])
    scorer = RewardScorer(ScorerConfig(workers=1), registry=registry)
    await scorer.start()
    try:
        yield scorer
    finally:
        await scorer.close()


def item(name: str, **more: object) -> reward_pb2.Item:
    made = reward_pb2.Item(id=name, verifier="judged", response="live")
    made.MergeFrom(reward_pb2.Item(**more))  # type: ignore[arg-type]
    return made


async def score(scorer: RewardScorer, *items: reward_pb2.Item) -> list[reward_pb2.Result]:
    request = reward_pb2.BatchScoreRequest(items=items)
    return list((await scorer.batch_score(request, timeout_s=60)).results)


async def settled(scorer: RewardScorer) -> None:
    assert scorer.canaries is not None
    while scorer.canaries._open:
        await asyncio.wait(scorer.canaries._open)


def fates(scorer: RewardScorer) -> dict[str, float]:
    found = read(scorer.counts.collectors)
    return {
        fate: total(found, "assay_reward_canaries_total", verifier="judged", fate=fate)
        for fate in ("agreed", "disagreed", "fault", "unasked", "dropped")
    }


async def test_callers_get_their_own_results_and_nothing_else(tmp_path: Path) -> None:
    oracle = Oracle()
    oracle.says = lambda one: "incorrect" if CANARY in str(one.candidate.text) else "correct"
    async with serving(tmp_path, oracle) as scorer:
        for call in range(20):
            results = await score(scorer, *(item(f"{call}-{n}") for n in range(10)))
            assert [one.id for one in results] == [f"{call}-{n}" for n in range(10)]
            assert {one.judgement.verdict for one in results} == {"correct"}
            await settled(scorer)
        found = fates(scorer)
        assert 10 <= found["disagreed"] == len(oracle.canaries) <= 80
        assert sum(found.values()) == found["disagreed"] + found["dropped"]
        assert scorer.counts.verdicts == {("judged", "correct"): 200}
        assert total(read(scorer.counts.collectors), "assay_reward_items_total") == 200


async def test_a_caller_waits_for_no_canary_and_a_busy_server_drops_them(tmp_path: Path) -> None:
    oracle = Oracle()
    oracle.opens.clear()
    async with serving(tmp_path, oracle) as scorer:
        for call in range(10):
            assert len(await score(scorer, *(item(f"{call}-{n}") for n in range(20)))) == 20
        assert scorer.canaries is not None
        assert len(scorer.canaries._open) == canaries.MAX_OPEN
        assert fates(scorer)["dropped"] > 0
        oracle.opens.set()
        await settled(scorer)
        assert fates(scorer)["agreed"] == canaries.MAX_OPEN
        scorer.canaries._most_queued = 0  # so half of the workers' queue is taken
        oracle.asked.clear()
        await score(scorer, *(item(str(n)) for n in range(100)))
        assert not oracle.canaries


async def test_a_fault_is_no_disagreement(tmp_path: Path) -> None:
    oracle = Oracle()
    said = {False: "correct"}
    oracle.says = lambda one: said[CANARY in str(one.candidate.text)]
    async with serving(tmp_path, oracle) as scorer:
        for reason, fate in (("JUDGE_UNPARSED", "fault"), ("QUEUE_FULL", "dropped")):
            said[True] = reason
            before = fates(scorer)[fate]
            oracle.asked.clear()
            for call in range(10):
                await score(scorer, *(item(f"{call}-{n}") for n in range(10)))
                await settled(scorer)
            assert fates(scorer)[fate] - before >= len(oracle.canaries) > 0
            assert not fates(scorer)["disagreed"]
        names = {one.name for one in samples(scorer.counts)}
        assert "assay_reward_canary_agreement" not in names


async def test_a_canary_is_judged_anew_where_a_live_item_is_not(tmp_path: Path) -> None:
    """Its parts are cacheable, and equal to live items that are known."""
    (tmp_path / "canaries.jsonl").write_text(rows(reference="x"))
    text = PROFILE.replace("SHARE", "0.2").replace("oracle", "exact")
    (tmp_path / "profiles.toml").write_text(text)
    known = known_to(Oracle())
    exact = known("exact")
    assert exact is not None
    asked: list[VerifierItem] = []

    class Counted(Verifier):
        spec = dataclasses.replace(exact.spec, cacheable=True)
        examples = exact.examples

        def judge(self, one: VerifierItem) -> Judgement:
            asked.append(one)
            return exact.judge(one)

    profile = profile_of([tmp_path / "profiles.toml"], known)
    scorer = RewardScorer(ScorerConfig(workers=1), registry=Registry([Counted(), profile]))
    await scorer.start()
    asked.clear()
    try:
        reference = reward_pb2.Reference(text="x")
        for call in range(20):
            live = [
                item(f"{call}-{n}", response=f"{CANARY} {n}", reference=reference)
                for n in range(20)
            ]
            await score(scorer, *live)
            await settled(scorer)
        found = fates(scorer)
        assert found["disagreed"] > 20
        # Live items are judged once each, here or by a worker.
        assert found["disagreed"] <= len(asked) <= 20 + found["disagreed"]
    finally:
        await scorer.close()


async def test_a_judge_is_told_the_same_of_a_canary_as_of_what_it_came_with(tmp_path: Path) -> None:
    """What is left to tell them by is the text, and that it stands alone in its call."""
    oracle = Oracle()
    timeout = {"timeout": {"seconds": 7}}
    async with serving(tmp_path, oracle) as scorer:
        for call in range(40):
            live = item(str(call), labels={"run": f"run {call}", "step": "3"}, **timeout)
            await score(scorer, live)
            await settled(scorer)
        calls = [items for items, _ in oracle.asked]
        assert {len(items) for items in calls} == {1}
        live_one = None
        for (one,) in calls:
            if CANARY not in str(one.candidate.text):
                live_one = one
            elif live_one is not None:
                assert one == dataclasses.replace(live_one, candidate=one.candidate)
        assert oracle.canaries
        assert {limit_s <= 60 for _, limit_s in oracle.asked} == {True}


@pytest.mark.slow
async def test_a_swapped_judge_sets_the_alarm_and_a_changed_profile_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canaries, "REFERENCE", 60)
    oracle = Oracle()
    async with serving(tmp_path, oracle) as scorer:

        async def work(calls: int) -> float:
            for call in range(calls):
                await score(scorer, *(item(f"{call}-{n}") for n in range(20)))
                await settled(scorer)
            found = read(scorer.counts.collectors)
            return total(found, "assay_reward_canary_alarm", verifier="judged")

        assert not await work(60)
        found = read(scorer.counts.collectors)
        assert total(found, "assay_reward_canary_agreement", verifier="judged") == 1
        oracle.says = lambda one: ("correct", "incorrect")[len(str(one.candidate.text)) % 2]
        assert await work(40) == 1
        assert total(read(scorer.counts.collectors), "assay_reward_canary_kappa") == 0
        file = profile_in(tmp_path, rows(21))
        await scorer._take_profiles([profile_of([file], known_to(oracle))])
        assert not await work(1)


def watch_of(*before: Sequence[str]) -> CanaryWatch:
    nothing = VerifierItem(Candidate(""))
    return CanaryWatch(
        [CanaryRow(VerifierExample(nothing, "correct"), tuple(looks)) for looks in before],
        random.Random(0),
    )


def test_each_row_is_looked_at_once_before_any_is_drawn_again() -> None:
    watch = watch_of(*([()] * 50))
    assert sorted(watch.draw() for _ in range(50)) == list(range(50))
    assert len({watch.draw() for _ in range(50)}) < 50


def test_looks_of_before_are_the_reference() -> None:
    watch = watch_of(*([["correct"] * 11] * 50))
    assert watch.watches["wrong"].bound == watch.watches["changed"].bound < 0.02
    for _ in range(100):
        watch.take(watch.draw(), "incorrect")
    assert watch.alarm


def test_another_judge_of_equal_quality_is_seen_by_what_has_changed() -> None:
    """Each is wrong on a tenth of the rows, and on rows of its own."""
    looks = [["incorrect" if place % 10 == 0 else "correct"] * 13 for place in range(50)]
    watch = watch_of(*looks)
    for _ in range(500):
        place = watch.draw()
        watch.take(place, "incorrect" if place % 10 == 1 else "correct")
    assert watch.watches["changed"].alarm
    assert not watch.watches["wrong"].alarm


@pytest.mark.parametrize(
    ("text", "share", "said"),
    [
        (rows(), 0.5, "at most 0.2"),
        (rows(), 0.0, "above 0"),
        (rows(5), 0.1, "5 rows; give 20 to 10,000"),
        (rows(verdict="fine"), 0.1, "gives no verdict 'fine'"),
        (rows(colour="red"), 0.1, "key 'colour' is not one"),
        (rows(before=["wrong"]), 0.1, "gives no verdict 'wrong'"),
        (rows(params={"x": 1}), 0.1, "key 'params' is not one"),
        (rows() + "\n" + rows(1, before=["correct"]), 0.1, "equally many"),
        ("no JSON", 0.1, "canaries.jsonl:1: not JSON"),
    ],
)
def test_what_is_wrong_with_canaries_is_said(
    tmp_path: Path, text: str, share: float, said: str
) -> None:
    file = profile_in(tmp_path, text, share)
    with pytest.raises(ConfigError, match=said):
        profile_of([file], known_to(Oracle()))


def test_canaries_are_no_other_version(tmp_path: Path) -> None:
    def profile(share: float) -> Profile:
        file = profile_in(tmp_path, rows(), share)
        return profile_of([file], known_to(Oracle()))

    assert profile(0.1).spec.version == profile(0.2).spec.version
    assert not profile(0.1).equals(profile(0.2))


def test_a_profile_that_is_gone_is_shown_no_longer() -> None:
    counts = RewardMetrics()
    watch = watch_of(*([["correct"] * 13] * 50))
    watch.take(0, "incorrect")
    counts.canaries_seen("judged", watch)
    assert total(read(counts.collectors), "assay_reward_canary_evidence") != 0
    counts.canaries_gone("judged")
    assert not any(one.name.startswith("assay_reward_canary_") for one in samples(counts))


@pytest.mark.parametrize(
    ("seconds", "unasked"), [((), True), ((0.5,), False), ((0.5, None), False)]
)
def test_an_answer_that_genrm_had_kept_is_none(
    seconds: tuple[float | None, ...], unasked: bool
) -> None:
    """A judge that was asked took a moment; one that answers what it knows took none."""
    judge = Served.of(JudgeVerifier(None))  # type: ignore[arg-type]  # it is not asked
    rule = Served.of(FAMILIES["text"][0])
    parts = []
    for served, took in ((rule, None), *((judge, one) for one in seconds or (None,))):
        spent = () if took is None else (Component("judge-seconds", took, 0.0),)
        part = PendingScore("", 0.0, served=served)
        part.settle(Judgement(1.0, "correct", (Component("x", 1.0), *spent)))
        parts.append(part)
    assert canaries._unasked(parts) is unasked
    assert not canaries._unasked(parts[:1])
