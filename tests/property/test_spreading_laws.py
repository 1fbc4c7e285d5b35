"""Laws of batches that are spread over workers: what one process gives, whatever the split."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import Candidate, Message, VerifierItem
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.workers import wire
from spreading_support import sent, spread_everything

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ANSWERS = st.sampled_from(
    ["4", r"\boxed{4}", "It is 3 or 4.", r"\boxed{\frac12}", "é 4", r"\boxed{\sum_{k=1}^n k}"]
)
VERIFIERS = {
    "math": {"extract": "strict"},
    "exact": {"case_sensitive": False},
    "rouge": {},
    "json-schema": {},
    "gone": {},
}
REFERENCES = st.sampled_from(["4", "0.5", "é", '{"type": "integer"}', "", r"\frac{n(n+1)}{2}"])


@st.composite
def batches(draw: st.DrawFn) -> list[reward_pb2.Item]:
    """Items of several verifiers, with repeats, some of them wrong."""
    made = []
    for index in range(draw(st.integers(1, 60))):
        name = draw(st.sampled_from(list(VERIFIERS)))
        item = reward_pb2.Item(id=f"i{index}", verifier=name)
        item.response = draw(ANSWERS | TEXTS)
        item.reference.text = draw(REFERENCES)
        if draw(st.booleans()):
            for key, value in VERIFIERS[name].items():
                kind = "bool_value" if isinstance(value, bool) else "string_value"
                setattr(item.parameters[key], kind, value)
        if draw(st.booleans()):
            item.prompt.add(role="user", content=draw(TEXTS))
        item.truncated = draw(st.booleans())
        made.append(item)
    return made


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def scorers(loop: asyncio.AbstractEventLoop) -> Iterator[tuple[RewardScorer, RewardScorer]]:
    """One that sends all it can to workers, and one that sends nothing; neither has a cache."""
    registry = load_registry(profiles=())
    alone = RewardScorer(ScorerConfig(workers=1, cache_entries=0), registry=registry)
    with pytest.MonkeyPatch.context() as patch:
        spread_everything(patch)
        spread = RewardScorer(ScorerConfig(workers=2, cache_entries=0), registry=registry)
        for one in (spread, alone):
            loop.run_until_complete(one.start())
        alone.dispatcher.spreading = None
        yield spread, alone
        for one in (spread, alone):
            loop.run_until_complete(one.close())


def said(response: reward_pb2.BatchScoreResponse) -> list[dict[str, object]]:
    """The results without their times."""
    for result in response.results:
        assert result.timings.HasField("execution")
        result.ClearField("timings")
    return [MessageToDict(result) for result in response.results]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=batches())
def test_every_item_gets_what_one_process_gives(
    loop: asyncio.AbstractEventLoop,
    scorers: tuple[RewardScorer, RewardScorer],
    batch: list[reward_pb2.Item],
) -> None:
    request = reward_pb2.BatchScoreRequest(items=batch)
    spread, alone = [
        loop.run_until_complete(one.batch_score(request, timeout_s=60)) for one in scorers
    ]
    assert said(spread) == said(alone)


def test_items_did_go_to_workers(
    loop: asyncio.AbstractEventLoop, scorers: tuple[RewardScorer, RewardScorer]
) -> None:
    before = sent(scorers[0])
    request = reward_pb2.BatchScoreRequest()
    for index in range(100):
        item = request.items.add(id=str(index), verifier="math", response=rf"\boxed{{{index}}}")
        item.reference.text = "42"
    response = loop.run_until_complete(scorers[0].batch_score(request, timeout_s=60))
    assert [r.judgement.verdict for r in response.results].index("correct") == 42
    assert sent(scorers[0]) > before


@pytest.mark.slow
@given(
    texts=st.lists(st.none() | st.text(max_size=20), max_size=6),
    number=st.none() | st.integers(0, 9),
    truncated=st.booleans(),
    group=TEXTS,
    data=st.sampled_from([None, {"a": [1, False]}, False, 0, ""]),
)
def test_a_parcel_reaches_the_worker_as_it_was(
    texts: list[str | None], number: int | None, truncated: bool, group: str, data: object
) -> None:
    registry = load_registry(profiles=())
    specs = [one.spec for one in registry if one.spec.name in ("math", "exact")]
    items = [
        (
            specs[index % 2],
            VerifierItem(
                Candidate(text, () if text is not None else (Message("user", "x", False),)),
                references=("é", "\ud800"),
                prompt=(Message("system", "s", False),) if truncated else (),
                parameters=specs[index % 2].complete({}),
                group_id=group,
                response_token_count=number,
                truncated=truncated,
                data=data,  # type: ignore[arg-type]  # JSON
                task=group,
            ),
        )
        for index, text in enumerate(texts)
    ]
    names, read = wire.read_parcel(wire.pack_parcel(items))
    assert [names[place] for place, _ in read] == [spec.name for spec, _ in items]
    by_name = {spec.name: spec for spec in specs}
    assert [wire.read_item(body, by_name[names[place]]) for place, body in read] == [
        item for _, item in items
    ]
