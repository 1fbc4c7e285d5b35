"""Real engines: a request that comes late, and one with a limit of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from assay.trainer.engines.arrivals import Arrivals
from assay.trainer.engines.engine import Id
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.paged import PagedEngine
from assay.trainer.engines.types import Request, Response
from rollouts_support import ignore, make_requests, random_model, sampler

KINDS = [HfEngine, PagedEngine]


@pytest.fixture(scope="module")
def model() -> Any:
    return random_model()


@pytest.mark.parametrize("kind", KINDS)
def test_late_requests_are_answered_as_if_they_had_been_there(kind: Any, model: Any) -> None:
    requests = make_requests(draws=3, samples=2)
    plain = sampler(kind, model).generate(requests, ignore)
    found: dict[int, Response] = {}

    def follow(id_: Id, response: Response) -> Iterable[tuple[Id, Request]]:
        found[id_[0]] = response
        return ()

    arrivals = Arrivals()
    with ThreadPoolExecutor(4) as pool:
        for place, request in enumerate(requests[1:], start=1):
            future: Future[None] = pool.submit(time.sleep, 0.02 * place)
            arrivals.expect(future, lambda at=place, asked=request: [((at,), asked)])
        sampler(kind, model).serve([((0,), requests[0])], follow, arrivals)
    assert [found[n].ids for n in range(len(requests))] == [one.ids for one in plain]
    assert arrivals.outstanding == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_lower_limit_cuts_the_same_tokens(kind: Any, model: Any) -> None:
    requests = make_requests(draws=3, samples=2)
    of = sampler(kind, model)
    plain = of.generate(requests, ignore)
    limits = [1, 2, 3, 5, 8, 13]
    cut = of.generate(
        [replace(one, most=most) for one, most in zip(requests, limits, strict=True)], ignore
    )
    for whole, part, most in zip(plain, cut, limits, strict=True):
        assert part.ids == whole.ids[:most]
        assert part.finished
        assert part.truncated == (whole.truncated or len(whole.ids) > most)
