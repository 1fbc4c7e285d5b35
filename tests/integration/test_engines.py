"""What every engine does, with a real, if tiny, model: follow-ups, aborts, acts between passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch

from assay.trainer.engines.engine import Id, Sampler, StoppedError
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.paged import PagedEngine
from assay.trainer.engines.types import Request, Response
from rollouts_support import direct_logps, ignore, make_requests, random_model, sampler

KINDS = [HfEngine, PagedEngine]


def second(request: Request, first: Response) -> Request:
    """Another turn, behind what was said in the first."""
    ids = (*request.draw.prompt_ids, *first.ids, 7)
    return Request(replace(request.draw, prompt_ids=ids), request.index, turn=1)


def talk(of: Sampler, requests: list[Request]) -> dict[Id, Response]:
    """Every request with a second turn."""
    said: dict[Id, Response] = {}

    def follow(id_: Id, response: Response) -> Iterable[tuple[Id, Request]]:
        assert id_ not in said
        said[id_] = response
        return [((id_[0], 1), second(requests[id_[0]], response))] if not id_[1] else ()

    of.serve([((n, 0), request) for n, request in enumerate(requests)], follow)
    return said


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_from_an_answer_is_answered_as_if_it_had_been_asked_alone(kind: Any) -> None:
    model, requests = random_model(), make_requests(draws=4, samples=2)
    said = talk(sampler(kind, model, seed=3), requests)
    firsts = sampler(HfEngine, model, seed=3).generate(requests, ignore)
    seconds = [second(r, said[n, 0]) for n, r in enumerate(requests)]
    alone = [sampler(HfEngine, model, seed=3).generate([r], ignore)[0] for r in seconds]
    assert [said[n, 0].ids for n in range(len(requests))] == [r.ids for r in firsts]
    assert [said[n, 1].ids for n in range(len(requests))] == [r.ids for r in alone]
    assert len(said) == 2 * len(requests)


def test_a_dialogue_goes_on_while_others_are_in_their_first_turn() -> None:
    """Two at a time: the second turns of the first two come before the last first turns."""
    order: list[Id] = []
    requests = make_requests(draws=6, samples=1)

    def follow(id_: Id, response: Response) -> Iterable[tuple[Id, Request]]:
        order.append(id_)
        return [((id_[0], 1), second(requests[id_[0]], response))] if not id_[1] else ()

    of = sampler(PagedEngine, random_model(), rows=2)
    of.serve([((n, 0), request) for n, request in enumerate(requests)], follow)
    assert sorted(order) == sorted((n, turn) for n in range(6) for turn in range(2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [1, 5])
def test_an_act_between_passes_changes_no_token(kind: Any, passes: int) -> None:
    model, requests = random_model(), make_requests(draws=4, samples=2)
    expected = sampler(HfEngine, model, seed=3).generate(requests, ignore)
    of, acted = sampler(kind, model, seed=3), []
    after(model, passes, lambda: of.engine.between(lambda: acted.append(len(acted))))
    found = of.generate(requests, ignore)
    assert acted == [0]
    assert [one.ids for one in found] == [one.ids for one in expected]


def test_after_an_act_that_changes_the_weights_the_rest_is_drawn_with_these() -> None:
    """AReaL's interruption: what was drawn stays, with its log-probabilities."""
    old, new = random_model(seed=5), random_model(seed=6)
    model = random_model(seed=5)
    [request] = make_requests(draws=1, samples=1, first=3)
    of = sampler(HfEngine, model, end_ids=frozenset())
    after(model, 4, lambda: of.engine.between(lambda: model.load_state_dict(new.state_dict())))
    [response] = of.generate([request], ignore)
    assert len(response.ids) == 20
    told = torch.tensor(response.logprobs)
    for own, part in ((old, slice(0, 4)), (new, slice(4, 20))):
        direct_TV = direct_logps(own, request, response.ids)
        expected_T = direct_TV[range(20), response.ids]
        torch.testing.assert_close(told[part], expected_T[part], atol=1e-4, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_aborted_goes_on_from_where_it_was(kind: Any) -> None:
    model, requests = random_model(), make_requests(draws=4, samples=2)
    expected = sampler(HfEngine, model, seed=3).generate(requests, ignore)
    of = sampler(kind, model, seed=3)
    engine, partial = of.engine, {}
    after(model, 3, lambda: engine.between(lambda: partial.update(engine.abort())))
    found: dict[Id, Response] = {}
    for place, request in enumerate(requests):
        engine.submit((place,), request, of.sampling)
    while engine.busy:
        engine.poll(found.__setitem__)
    assert partial
    assert not set(partial) & set(found)
    for (place,), begun in partial.items():
        assert expected[place].ids[: len(begun.ids)] == begun.ids
        going = replace(requests[place], begun=begun if begun.ids else None)
        [found[place,]] = of.generate([going], ignore)
    assert [found[n,].ids for n in range(len(requests))] == [one.ids for one in expected]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_that_is_told_to_stop_stops_and_may_be_asked_again(kind: Any) -> None:
    model, requests = random_model(), make_requests(draws=3, samples=2)
    of = sampler(kind, model, seed=3)
    after(model, 2, of.engine.stop)
    with pytest.raises(StoppedError):
        of.generate(requests, ignore)
    assert not of.engine.busy
    assert model.training
    again = of.generate(requests, ignore)
    expected = sampler(HfEngine, model, seed=3).generate(requests, ignore)
    assert [one.ids for one in again] == [one.ids for one in expected]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_who_fails_at_an_answer_leaves_nothing_open(kind: Any) -> None:
    def fails(_place: int, _response: Response) -> None:
        raise ValueError("the weather")

    model, requests = random_model(), make_requests(draws=3, samples=2)
    of = sampler(kind, model)
    with pytest.raises(ValueError, match="the weather"):
        of.generate(requests, fails)
    assert not of.engine.busy
    assert model.training
    assert len(of.generate(requests, ignore)) == len(requests)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_asked_of_nobody(kind: Any) -> None:
    assert sampler(kind, random_model()).generate([], ignore) == []


def test_requests_that_cannot_be_answered_are_refused() -> None:
    of = sampler(HfEngine, random_model(), max_new_tokens=3)
    [request] = make_requests(draws=1, samples=1)
    of.engine.submit((0,), request, of.sampling)
    with pytest.raises(ValueError, match="is open"):
        of.engine.submit((0,), request, of.sampling)
    done = Response((4, 5, 6), "", (-1.0,) * 3, truncated=True)
    nothing = replace(request.draw, prompt_ids=())
    for bad in (replace(request, begun=done), replace(request, draw=nothing)):
        with pytest.raises(ValueError, match="nothing to read, or its response is finished"):
            of.engine.submit((1,), bad, of.sampling)


@pytest.mark.parametrize("kind", KINDS)
def test_the_likeliest_token_at_a_temperature_of_0(kind: Any) -> None:
    model, requests = random_model(), make_requests(draws=3, samples=1)
    for request, response in zip(
        requests,
        sampler(kind, model, temperature=0.0).generate(requests, ignore),
        strict=True,
    ):
        direct_TV = direct_logps(model, request, response.ids)
        assert direct_TV.argmax(dim=-1).tolist() == list(response.ids)
        expected_T = direct_TV[range(len(response.ids)), response.ids]
        torch.testing.assert_close(torch.tensor(response.logprobs), expected_T, atol=1e-4, rtol=0)


def after(model: Any, passes: int, act: Any) -> None:
    """Has something done in the forward pass of this number, from 1."""
    seen: list[None] = []

    def count(*_: Any) -> None:
        seen.append(None)
        if len(seen) == passes:
            act()

    model.register_forward_pre_hook(count)
