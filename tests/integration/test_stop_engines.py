"""Stop texts in every engine: the response is that without them, cut behind the text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.paged import PagedEngine
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Response, Sampling
from rollouts_support import NumberTokenizer, ignore, make_requests, random_model, sampler

KINDS = [HfEngine, PagedEngine]


def text_of(response: Response) -> str:
    return str(NumberTokenizer().decode(response.ids, skip_special_tokens=False))


def cut(response: Response, stops: tuple[str, ...]) -> tuple[int, ...]:
    ends = [
        n for n in range(len(response.ids) + 1) if any(s in text_of(response)[:n] for s in stops)
    ]
    return response.ids[: ends[0]] if ends else response.ids


def some_stops(responses: list[Response]) -> tuple[str, ...]:
    """A text of two tokens in the middle of a response, and one that is another's first token."""
    long = max(responses, key=lambda one: len(one.ids))
    return text_of(long)[5:7], text_of(responses[0])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_ends_behind_the_token_that_completes_a_text(kind: Any) -> None:
    model, requests = random_model(), make_requests(draws=5, samples=3)
    whole = sampler(HfEngine, model, seed=3).generate(requests, ignore)
    stops = some_stops(whole)
    stopped = sampler(kind, model, seed=3, stops=stops).generate(requests, ignore)
    expected = [cut(one, stops) for one in whole]
    assert [one.ids for one in stopped] == expected
    assert sum(len(a) < len(b.ids) for a, b in zip(expected, whole, strict=True)) >= 2
    for before, now in zip(whole, stopped, strict=True):
        shorter = any(stop in text_of(now) for stop in stops)
        assert now.finished
        assert now.truncated == (before.truncated and not shorter)
        assert now.logprobs == pytest.approx((before.logprobs or ())[: len(now.ids)], abs=1e-4)
        assert now.text == NumberTokenizer().decode(now.ids, skip_special_tokens=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_begins_in_an_earlier_step_ends_the_response(kind: Any) -> None:
    model, requests = random_model(), make_requests(draws=4, samples=1)
    whole = sampler(HfEngine, model, seed=3).generate(requests, ignore)
    place = max(range(4), key=lambda n: len(whole[n].ids))
    stops = (text_of(whole[place])[5:7],)
    of = sampler(kind, model, seed=3, stops=stops)
    [part] = of.generate([replace(requests[place], window=6)], ignore)
    assert (part.finished, part.ids) == (False, whole[place].ids[:6])
    [rest] = of.generate([replace(requests[place], begun=part)], ignore)
    assert (rest.finished, rest.truncated) == (True, False)
    assert rest.ids == cut(whole[place], stops) == whole[place].ids[:7]


def test_evicted_rows_notice_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import ContinuousBatchingConfig

    from assay.trainer.engines import paged

    monkeypatch.setattr(
        paged,
        "cache_config",
        lambda *_: ContinuousBatchingConfig(
            page_size=4, num_blocks=24, max_batch_tokens=32, return_logprobs=True, seed=0
        ),
    )
    model, requests = random_model(), make_requests(draws=5, samples=3)
    whole = sampler(HfEngine, model, seed=3).generate(requests, ignore)
    stops = (text_of(max(whole, key=lambda one: len(one.ids)))[15:17],)
    of = sampler(PagedEngine, model, seed=3, stops=stops)
    stopped = of.generate(requests, ignore)
    assert of.engine.preemptions
    assert [one.ids for one in stopped] == [cut(one, stops) for one in whole]


def test_a_script_is_cut_too() -> None:
    said = Response((5, 6, 7, 8), "", None, truncated=False)
    engine = ScriptedEngine(lambda _: said, tokenizer=NumberTokenizer())
    stop = NumberTokenizer().decode([6, 7], skip_special_tokens=False)
    [one] = Sampler(engine, Sampling(9, stops=(stop,))).generate(make_requests(1, 1), ignore)
    assert (one.ids, one.finished, one.truncated) == ((5, 6, 7), True, False)
