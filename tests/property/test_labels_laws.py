"""Laws of labels: bounded, echoed, merged under an item's own, and never judged by."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.test_client_conservation import CONFIG, FATES, Scripted
from tests.property.test_server_scoring import Fickle, items

from assay.api.reward.v1 import reward_pb2
from assay.clients import AsyncRewardClient, Item, LocalTransport, RewardClient
from assay.kit.errors import ConfigError, reason_of
from assay.kit.labels import MAX_LABELS, MAX_VALUE_BYTES, read_labels, trouble_of
from assay.reward_server import convert
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import (
    Candidate,
    Component,
    Judgement,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.equality import item_key
from assay.reward_server.registry import Registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.verifiers.exact import exact
from assay.reward_server.verifiers.math import MathVerifier

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8"), max_size=64)
LABELS = st.dictionaries(NAMES, VALUES, max_size=MAX_LABELS)
FEW = st.dictionaries(st.sampled_from(["run", "step", "model"]), VALUES, max_size=3)
WRONG = st.sampled_from([
    {"": "x"}, {"1st": "x"}, {"a b": "x"}, {"n\u00e4me": "x"}, {"a" * 65: "x"}, {"a\n": "x"},
    {"run": "x" * 257}, {"run": "\u4e2d" * 86}, {f"n{n}": "" for n in range(17)},
])  # fmt: skip
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(st.dictionaries(st.text(max_size=70) | NAMES, VALUES | st.text(min_size=80, max_size=300)))
def test_what_is_within_the_bounds_is_taken_and_all_else_is_said(labels: dict[str, str]) -> None:
    fits = (
        len(labels) <= MAX_LABELS
        and all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", name) for name in labels)
        and all(len(v.encode("utf-8", "surrogatepass")) <= MAX_VALUE_BYTES for v in labels.values())
    )
    assert (trouble_of(labels) == "") == fits
    assert len(trouble_of(labels)) < 300


@given(LABELS)
def test_pairs_of_a_command_line_are_read(labels: dict[str, str]) -> None:
    told = {name: value.strip() for name, value in labels.items()}
    assert read_labels([f"{name}={value}" for name, value in labels.items()], "--label") == told


@pytest.mark.parametrize("pairs", [["run"], ["a b=1"], ["run=a", "run=b"], ["run=" + "x" * 300]])
def test_other_pairs_are_refused(pairs: list[str]) -> None:
    with pytest.raises(ConfigError, match="--label"):
        read_labels(pairs, "--label")


class Counting(Verifier):
    """Notes what it judges."""

    seen: ClassVar[list[str]] = []
    spec = VerifierSpec(
        "counting", "1", "For tests.", ("counting",), 0.0, 1.0, ("fine",), isolation="inline",
        needs_reference=False,
    )  # fmt: skip
    examples = (VerifierExample(VerifierItem(Candidate("fine")), "fine"),)

    def judge(self, item: VerifierItem) -> Judgement:
        self.seen.append(item.response())
        return Judgement.composed("fine", (Component("a", 1.0),))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def scorer(loop: asyncio.AbstractEventLoop) -> Iterator[RewardScorer]:
    registry = Registry([Fickle(), exact, MathVerifier(), Counting()])
    scorer = RewardScorer(ScorerConfig(workers=2, item_timeout_s=20.0), registry=registry)
    loop.run_until_complete(scorer.start())
    yield scorer
    loop.run_until_complete(scorer.close())


def labelled(
    batch: list[reward_pb2.Item], labels: list[Mapping[str, str]]
) -> list[reward_pb2.Item]:
    made = []
    for number, item in enumerate(batch):
        copy = reward_pb2.Item()
        copy.CopyFrom(item)
        copy.labels.update(labels[number % len(labels)])
        made.append(copy)
    return made


def bare(result: reward_pb2.Result) -> reward_pb2.Result:
    copy = reward_pb2.Result()
    copy.CopyFrom(result)
    for name in ("labels", "timings", "from_cache"):
        copy.ClearField(name)
    return copy


async def streamed(
    scorer: RewardScorer, batch: list[reward_pb2.Item]
) -> dict[str, reward_pb2.Result]:
    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        for item in batch:
            yield reward_pb2.StreamScoreRequest(items=[item])

    found = {}
    async for response in scorer.stream_score(chunks(), timeout_s=60):
        found.update({result.id: result for result in response.results})
    return found


@SETTINGS
@given(batch=items(), labels=st.lists(LABELS, min_size=1, max_size=4))
def test_labels_change_nothing_and_come_back(
    loop: asyncio.AbstractEventLoop,
    scorer: RewardScorer,
    batch: list[reward_pb2.Item],
    labels: list[Mapping[str, str]],
) -> None:
    def score(sent: list[reward_pb2.Item]) -> list[reward_pb2.Result]:
        request = reward_pb2.BatchScoreRequest(items=sent)
        response = loop.run_until_complete(scorer.batch_score(request, timeout_s=60))
        return list(response.results)

    sent = labelled(batch, labels)
    plain, told = score(batch), score(sent)
    assert [bare(result) for result in told] == [bare(result) for result in plain]
    assert not any(result.labels for result in plain)
    assert [dict(result.labels) for result in told] == [dict(item.labels) for item in sent]
    found = loop.run_until_complete(streamed(scorer, sent))
    assert [bare(found[item.id]) for item in sent] == [bare(result) for result in plain]
    assert {name: dict(one.labels) for name, one in found.items()} == {
        item.id: dict(item.labels) for item in sent
    }


@SETTINGS
@given(batch=items(), wrong=st.lists(WRONG, min_size=1, max_size=3), place=st.integers(0, 24))
def test_a_wrong_label_is_a_fault_of_its_item_alone(
    loop: asyncio.AbstractEventLoop,
    scorer: RewardScorer,
    batch: list[reward_pb2.Item],
    wrong: list[Mapping[str, str]],
    place: int,
) -> None:
    place %= len(batch)
    spoilt = [*batch[:place], *labelled(batch[place : place + 1], wrong), *batch[place + 1 :]]
    answers = []
    for sent in (batch, spoilt):
        request = reward_pb2.BatchScoreRequest(items=sent)
        response = loop.run_until_complete(scorer.batch_score(request, timeout_s=60))
        answers.append(list(response.results))
    for number, (plain, told) in enumerate(zip(*answers, strict=True)):
        if number != place:
            assert bare(plain) == bare(told)
            continue
        assert reason_of(told.fault) == "INVALID_LABEL"
        assert "label" in told.fault.message
        assert not told.labels


@given(st.lists(LABELS, min_size=2, max_size=5))
def test_items_that_differ_in_labels_alone_are_one_judgement(
    loop: asyncio.AbstractEventLoop, scorer: RewardScorer, labels: list[Mapping[str, str]]
) -> None:
    item = reward_pb2.Item(verifier="counting", response=f"new {len(Counting.seen)}")
    batch = []
    for number, own in enumerate(labels):
        batch += labelled([item], [own])
        batch[-1].id = str(number)
    spec = Counting.spec
    keys = {item_key(spec, convert.item_from_proto(one, spec)) for one in batch}
    assert len(keys) == 1
    before = len(Counting.seen)
    request = reward_pb2.BatchScoreRequest(items=batch)
    response = loop.run_until_complete(scorer.batch_score(request, timeout_s=60))
    assert [dict(one.labels) for one in response.results] == [dict(one) for one in labels]
    assert len(Counting.seen) == before + 1, "judged once"
    assert [one.from_cache for one in response.results] == [False] + [True] * (len(labels) - 1)


class Noted(Scripted):
    """Notes the labels that arrive; like a server of before, it echoes none."""

    def __init__(self, seed: int, refusals: int, max_items: int) -> None:
        super().__init__(seed, refusals, max_items)
        self.seen: dict[str, dict[str, str]] = {}

    def _results(self, item: reward_pb2.Item) -> list[reward_pb2.Result]:
        self.seen[item.response] = dict(item.labels)
        return super()._results(item)


@SETTINGS
@given(
    st.lists(st.tuples(FATES, FEW), min_size=1, max_size=12), FEW, st.integers(0, 9),
    st.integers(0, 2), st.integers(1, 9),
)  # fmt: skip
def test_a_result_has_its_items_labels_over_the_clients(
    told: list[tuple[str, dict[str, str]]],
    common: dict[str, str],
    seed: int,
    refusals: int,
    max_items: int,
) -> None:
    batch = [
        Item(str(n), "r", verifier="exact", parameters={"fate": fate}, labels=labels)
        for n, (fate, labels) in enumerate(told)
    ]
    wanted = [{**common, **labels} for _, labels in told]

    async def main() -> None:
        scorer = Noted(seed, refusals, max_items)
        transport = LocalTransport(scorer)
        async with AsyncRewardClient(transport=transport, config=CONFIG, labels=common) as client:
            assert [dict(r.labels) for r in await client.score(batch)] == wanted
            ones = await asyncio.gather(*(client.score_one(item) for item in batch))
            assert [dict(r.labels) for r in ones] == wanted

            async def source() -> AsyncIterator[Item]:
                for item in batch:
                    yield item

            found = {r.id: dict(r.labels) async for r in client.stream(source())}
            assert [found[str(n)] for n in range(len(batch))] == wanted
            lost = await client.score([Item("\ud800", labels={"run": "lost"})])
            assert (lost[0].fault is not None, lost[0].labels["run"]) == (True, "lost")
        assert [scorer.seen[str(n)] for n in range(len(batch))] == wanted

    asyncio.run(main())


def test_wrong_labels_are_refused_where_they_are_given() -> None:
    for kind in (AsyncRewardClient, RewardClient):
        with pytest.raises(ConfigError, match="the client's labels: a label has the name 'a b'"):
            kind("127.0.0.1:1", labels={"a b": "x"})
    with pytest.raises(TypeError, match=r"Item\.labels has 'step': 3"):
        Item("x", labels={"step": 3})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"Item\.labels is list"):
        Item("x", labels=["run"])  # type: ignore[arg-type]
