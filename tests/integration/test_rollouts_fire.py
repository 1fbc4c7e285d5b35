"""FIRE's first tokens: their distribution, and everything after them as without FIRE."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch

from assay.trainer.algos.sampling import fire_first_token_probs
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.paged import PagedEngine
from assay.trainer.engines.seeded import choose, draw_first, not_numbers, uniforms
from assay.trainer.engines.types import Draw, FirstToken, Request, Response
from assay.trainer.errors import TrainingStoppedError
from rollouts_support import (
    ENDS,
    direct_logps,
    ignore,
    make_requests,
    random_model,
    sampler,
)

FIRE = FirstToken(temperature=30.0, top_k=6)
BACKENDS = [HfEngine, PagedEngine]


def generate(
    kind: Any,
    model: Any,
    requests: list[Request],
    *,
    first: FirstToken | None = FIRE,
    **settings: Any,
) -> list[Response]:
    settings = {"max_new_tokens": 12, **settings}
    return sampler(kind, model, seed=3, first=first, **settings).generate(requests, ignore)


def first_logits(model: Any, request: Request) -> torch.Tensor:
    """Log-probabilities at temperature 1, which are logits but for a constant."""
    return direct_logps(model, request, [3])[0]


@pytest.mark.parametrize("kind", BACKENDS)
def test_first_tokens_come_from_the_flat_distribution_of_the_likeliest_few(kind: Any) -> None:
    model, count = random_model(), 600
    [request] = make_requests(draws=1, samples=1)
    requests = [Request(request.draw, index) for index in range(count)]
    responses = generate(kind, model, requests, max_new_tokens=2)
    probs_V = fire_first_token_probs(first_logits(model, request), temperature=30.0, top_k=6)
    counts = Counter(response.ids[0] for response in responses)
    assert set(counts) == set(probs_V.nonzero().flatten().tolist())
    chi2 = sum((counts[t] - count * p) ** 2 / (count * p) for t, p in enumerate(probs_V) if p)
    assert chi2 < 20.5  # 5 degrees of freedom, p = 0.001
    for response in responses:
        told = response.logprobs
        assert told is not None
        assert told[0] == pytest.approx(math.log(probs_V[response.ids[0]]), abs=1e-4)


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7, "top_k": 9, "top_p": 0.9}])
def test_given_its_first_token_the_rest_is_drawn_as_without_fire(settings: dict[str, Any]) -> None:
    model, requests = random_model(), make_requests(draws=6, samples=4)
    responses = generate(HfEngine, model, requests, **settings)
    rows = zip(requests, responses, strict=True)
    for request, response in rows:
        if len(response.ids) == 1:
            continue
        temperature = settings.get("temperature", 1.0)
        logits_TV = direct_logps(model, request, response.ids)
        numbers_T = torch.from_numpy(uniforms(3, request.draw.number, request.index, 12))
        own = numbers_T[1 : len(response.ids)]
        tokens_T, logps_T = choose(logits_TV[1:], own, **settings)
        assert tuple(tokens_T.tolist()) == response.ids[1:]
        assert response.logprobs is not None
        assert response.logprobs[1:] == pytest.approx(logps_T.tolist(), abs=1e-4), temperature


def test_where_the_first_token_happens_to_be_the_same_so_is_the_response() -> None:
    model, requests = random_model(), make_requests(draws=20, samples=8)
    with_fire = generate(HfEngine, model, requests)
    without = generate(HfEngine, model, requests, first=None)
    alike = [(a, b) for a, b in zip(with_fire, without, strict=True) if a.ids[0] == b.ids[0]]
    assert 10 < len(alike) < len(requests)
    for a, b in alike:
        assert a.ids == b.ids
        assert a.text == b.text


def test_both_back_ends_draw_the_same() -> None:
    model, requests = random_model(), make_requests(draws=5, samples=3)
    left = generate(HfEngine, model, requests)
    for batch in (0, 4):
        right = generate(PagedEngine, model, requests, rows=batch)
        assert [r.ids for r in left] == [r.ids for r in right]
        for a, b in zip(left, right, strict=True):
            assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)


@pytest.mark.parametrize("kind", BACKENDS)
def test_an_end_as_first_token_ends_the_response(kind: Any) -> None:
    model = random_model()
    [request] = make_requests(draws=1, samples=1)
    with torch.no_grad():  # the end is about as likely as the likeliest, so that FIRE draws it
        head = model.lm_head.weight
        head[1] = head[int(first_logits(model, request).argmax())] * 1.01
    requests = [Request(request.draw, index) for index in range(40)]
    ended = [r for r in generate(kind, model, requests) if r.ids[0] in ENDS]
    assert ended
    for response in ended:
        assert len(response.ids) == 1
        assert not response.truncated
        assert response.text == ""


@pytest.mark.parametrize("kind", BACKENDS)
def test_weights_that_are_not_numbers_stop_the_run(kind: Any) -> None:
    model = random_model()
    torch.nn.init.constant_(model.lm_head.weight, float("nan"))
    with pytest.raises(TrainingStoppedError, match=str(not_numbers())[:30]):
        generate(kind, model, make_requests(draws=1))


def test_a_draw_is_the_golden_distribution_inverted() -> None:
    logits_V = torch.tensor([10.0, 8.0, 6.0, 4.0, 2.0])
    probs = [0.275527, 0.257757, 0.241134, 0.225582, 0.0]  # papers.md, section 8.4
    edges = [0.0, 0.27, 0.28, 0.53, 0.54, 0.774, 0.775, 1 - 2**-53]
    numbers = torch.tensor(edges, dtype=torch.float64)
    tokens, logps = draw_first(logits_V.expand(8, 5), numbers, temperature=30.0, top_k=4)
    assert tokens.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert logps.exp().tolist() == pytest.approx([probs[t] for t in tokens], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize("window", [1, 3])
def test_in_windows_only_the_window_that_begins_a_response_is_fired(kind: Any, window: int) -> None:
    """Slots go on where they were: fired once, then drawn as without FIRE, side by side."""
    model, requests = random_model(), make_requests(draws=3, samples=3)
    whole = generate(kind, model, requests)
    begun: list[Response | None] = [None] * len(requests)
    for step in range(13):
        going = [n for n, one in enumerate(begun) if one is None or not one.finished]
        if not going:
            break
        # one row begins a step later than the others, in the midst of rows that go on
        asked = going[1:] if step == 0 else going
        drawn = generate(
            kind,
            model,
            [Request(requests[n].draw, requests[n].index, begun[n], window=window) for n in asked],
        )
        for n, response in zip(asked, drawn, strict=True):
            before = begun[n]
            if before is not None:
                assert response.ids[: len(before.ids)] == before.ids
            begun[n] = response
    for one, other in zip(begun, whole, strict=True):
        assert one is not None
        assert (one.ids, one.text, one.truncated) == (other.ids, other.text, other.truncated)
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    assert max(len(one.ids) for one in whole) > window, "some go on"


@pytest.mark.parametrize("kind", BACKENDS)
def test_a_response_that_has_begun_goes_on_as_without_fire(kind: Any) -> None:
    model, requests = random_model(), make_requests(draws=20, samples=8)
    fired = generate(kind, model, requests)
    going = [
        Request(one.draw, one.index, Response(r.ids[:1], "", (r.logprobs or ())[:1], False, False))
        for one, r in zip(requests, fired, strict=True)
        if len(r.ids) > 1
    ]
    assert len(going) > 20
    with_fire, without = (generate(kind, model, going, first=first) for first in (FIRE, None))
    assert [one.ids for one in with_fire] == [one.ids for one in without]
    for one, other in zip(with_fire, without, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def test_a_first_token_does_not_depend_on_its_batch() -> None:
    model, requests = random_model(), make_requests(draws=4, samples=3)
    whole = generate(HfEngine, model, requests)
    alone = [generate(HfEngine, model, [request])[0] for request in requests]
    assert [r.ids for r in whole] == [r.ids for r in alone]
    other = Draw(99, requests[0].draw.problem, requests[0].draw.prompt_ids)
    assert generate(HfEngine, model, [Request(other, 0)])[0].ids != whole[0].ids
