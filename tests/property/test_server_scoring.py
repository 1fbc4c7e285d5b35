"""Laws of the reward server: conservation, order, equality of repeats; and of its pure parts."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import reason_of
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import (
    Candidate,
    Component,
    Judgement,
    Unjudgeable,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.registry import Registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.verifiers.exact import exact, normalise
from assay.reward_server.verifiers.math import MathVerifier
from assay.reward_server.workers import wire

TEXTS = st.text(max_size=40)
RESPONSES = st.sampled_from(["fine", "raise", "refuse", "nan", "range", "verdict", "shape"]) | TEXTS


class Fickle(Verifier):
    """Fails in the way that the response asks for."""

    spec = VerifierSpec(
        "fickle", "1", "For tests.", ("trying",), 0.0, 1.0, ("fine",), isolation="inline"
    )
    examples = (VerifierExample(VerifierItem(Candidate("fine")), "fine"),)

    def judge(self, item: VerifierItem) -> Judgement:
        wrong = {
            "range": Judgement(2.0, "fine", (Component("a", 2.0),)),
            "verdict": Judgement(1.0, "odd", (Component("a", 1.0),)),
            "shape": None,
        }
        response = item.response()
        if response == "raise":
            raise KeyError(response)
        if response == "nan":
            return Judgement(float("nan"), "fine", (Component("a", 1.0),))
        if response == "refuse":
            raise Unjudgeable("UNUSABLE_REFERENCE", "no")
        if response in wrong:
            return wrong[response]  # type: ignore[return-value]  # wrong on purpose
        return Judgement.composed("fine", (Component("a", 0.25), Component("b", 0.5, 0.1)))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def scorer(loop: asyncio.AbstractEventLoop) -> Iterator[RewardScorer]:
    """A real scorer with real workers, shared by all examples."""
    registry = Registry([Fickle(), exact, MathVerifier()])
    scorer = RewardScorer(ScorerConfig(workers=2, item_timeout_s=20.0), registry=registry)
    loop.run_until_complete(scorer.start())
    yield scorer
    loop.run_until_complete(scorer.close())


@st.composite
def items(draw: st.DrawFn) -> list[reward_pb2.Item]:
    """Items of every kind, good and bad, with many repeats."""
    count = draw(st.integers(1, 25))
    made = []
    for index in range(count):
        item = reward_pb2.Item(id=f"i{index}")
        item.verifier = draw(st.sampled_from(["fickle", "exact", "math", "", "unknown"]))
        item.task = draw(st.sampled_from(["", "trying", "gsm8k", "unknown"]))
        if draw(st.integers(0, 9)):
            numbers = st.integers(0, 3).map(lambda n: rf"\boxed{{{n}}}")
            item.response = draw(numbers if item.verifier == "math" else RESPONSES)
        if draw(st.integers(0, 9)):
            item.reference.text = draw(st.sampled_from(["1", "fine", "", r"\frac{1}{2}"]))
        if not draw(st.integers(0, 9)):
            item.timeout.seconds = draw(st.sampled_from([-1, 0, 5, 601]))
        if not draw(st.integers(0, 9)):
            item.parameters["strip"].bool_value = True
        made.append(item)
    return made


def outcomes(results: list[reward_pb2.Result]) -> list[tuple[str, float | str]]:
    return [
        (r.id, r.judgement.reward if r.HasField("judgement") else reason_of(r.fault))
        for r in results
    ]


SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(batch=items())
def test_judgements_and_faults_are_the_items_in_order(
    loop: asyncio.AbstractEventLoop, scorer: RewardScorer, batch: list[reward_pb2.Item]
) -> None:
    request = reward_pb2.BatchScoreRequest(items=batch)
    response = loop.run_until_complete(scorer.batch_score(request, timeout_s=60))
    assert [r.id for r in response.results] == [i.id for i in batch]
    assert all(r.WhichOneof("outcome") in ("judgement", "fault") for r in response.results)
    for result in response.results:
        assert result.HasField("timings")
        if result.HasField("judgement"):
            judgement = result.judgement
            total = 0.0
            for component in judgement.components:
                total += component.weight * component.score
            assert judgement.reward == total
            assert judgement.verifier.name in ("fickle", "exact", "math")
        else:
            assert reason_of(result.fault) != "DEADLINE_EXCEEDED"
            assert not result.from_cache
    again = loop.run_until_complete(scorer.batch_score(request, timeout_s=60))
    assert outcomes(list(again.results)) == outcomes(list(response.results))


@pytest.mark.slow
@SETTINGS
@given(batch=items(), cuts=st.lists(st.integers(0, 25), max_size=4))
def test_a_stream_says_the_same_as_a_batch(
    loop: asyncio.AbstractEventLoop,
    scorer: RewardScorer,
    batch: list[reward_pb2.Item],
    cuts: list[int],
) -> None:
    bounds = sorted({0, len(batch), *(cut for cut in cuts if cut < len(batch))})

    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        for start, end in pairwise(bounds):
            yield reward_pb2.StreamScoreRequest(items=batch[start:end])

    async def stream() -> list[reward_pb2.Result]:
        parts = [part async for part in scorer.stream_score(chunks(), timeout_s=60)]
        assert all(part.results for part in parts)
        return [result for part in parts for result in part.results]

    request = reward_pb2.BatchScoreRequest(items=batch)
    whole = loop.run_until_complete(scorer.batch_score(request, timeout_s=60))
    streamed = loop.run_until_complete(stream())
    assert sorted(outcomes(streamed), key=str) == sorted(outcomes(list(whole.results)), key=str)


@given(text=TEXTS, strip=st.booleans())
def test_normal_form_is_a_normal_form(text: str, strip: bool) -> None:
    once = normalise(text, case_sensitive=True, strip=strip)
    assert unicodedata.is_normalized("NFC", once)
    verifier = exact
    parameters = verifier.spec.complete({"strip": strip})
    if text.strip():
        item = VerifierItem(Candidate(text), references=("~no~", text), parameters=parameters)
        assert verifier.judge(item).verdict == "correct"


@given(
    response=TEXTS,
    references=st.lists(TEXTS, max_size=3),
    words=st.lists(TEXTS, max_size=3),
    number=st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1),
)
def test_a_job_reaches_the_worker_as_it_was(
    response: str, references: list[str], words: list[str], number: float
) -> None:
    item = VerifierItem(
        Candidate(response),
        references=tuple(references),
        parameters={"words": tuple(words), "number": number},
    )
    packed = wire.pack(wire.pack_item(item, exact.spec), 10**6)
    assert wire.read_item(json.loads(packed), exact.spec) == item
