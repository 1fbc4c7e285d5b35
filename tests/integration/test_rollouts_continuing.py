"""With weights that stand still, responses drawn window by window are those drawn at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.paged import PagedEngine
from assay.trainer.engines.types import Request, Response
from rollouts_support import (
    direct_logps,
    ignore,
    make_requests,
    random_model,
    sampler,
)


def generator(kind: Any, model: Any, **settings: Any) -> Sampler:
    return sampler(kind, model, seed=3, **settings)


def in_windows(kind: Any, model: Any, requests: list[Request], window: int) -> list[Response]:
    """Each response, drawn on until it is finished; those that are done leave."""
    going = dict(enumerate(requests))
    done: dict[int, Response] = {}
    while going:
        asked = [Request(r.draw, r.index, r.begun, window) for r in going.values()]
        reported: dict[int, Response] = {}
        found = generator(kind, model).generate(asked, reported.__setitem__)
        assert [reported[place] for place in range(len(asked))] == found
        for (place, request), response in zip(list(going.items()), found, strict=True):
            begun = len(request.begun.ids) if request.begun else 0
            drawn = len(response.ids) - begun
            if response.finished:
                done[place] = response
                del going[place]
                assert 1 <= drawn <= window
            else:
                assert (drawn, response.text, response.truncated) == (window, "", False)
                going[place] = Request(request.draw, request.index, response)
    return [done[place] for place in range(len(requests))]


@pytest.mark.parametrize(
    ("kind", "window"),
    [(HfEngine, 1), (HfEngine, 7), (HfEngine, 20), (PagedEngine, 9)],
)
def test_windows_change_no_response(kind: Any, window: int) -> None:
    model, requests = random_model(), make_requests(draws=4, samples=3)
    expected = generator(kind, model).generate(requests, ignore)
    assert len({len(response.ids) for response in expected}) > 4
    for one, other in zip(in_windows(kind, model, requests, window), expected, strict=True):
        assert (one.ids, one.text, one.truncated, one.finished) == (
            other.ids, other.text, other.truncated, True,
        )  # fmt: skip
        torch.testing.assert_close(
            torch.tensor(one.logprobs), torch.tensor(other.logprobs), atol=1e-4, rtol=0
        )


def test_what_was_drawn_before_keeps_its_log_probabilities_and_the_rest_has_the_new_weights() -> (
    None
):
    [request] = make_requests(draws=1, samples=1, first=3)
    old, new = random_model(seed=5), random_model(seed=6)
    [begun] = generator(HfEngine, old).generate([Request(request.draw, 0, window=4)], ignore)
    assert not begun.finished
    [response] = generator(HfEngine, new).generate([Request(request.draw, 0, begun)], ignore)
    assert response.ids[:4] == begun.ids
    assert response.logprobs is not None
    assert response.logprobs[:4] == begun.logprobs
    direct_TV = direct_logps(new, request, response.ids)
    expected_T = direct_TV[range(len(response.ids)), response.ids]
    torch.testing.assert_close(
        torch.tensor(response.logprobs[4:]), expected_T[4:], atol=1e-4, rtol=0
    )


def test_rows_with_little_left_do_not_hold_up_the_others_and_no_pass_is_wasted() -> None:
    """One row has its whole response before it, another one token: together they take as many
    passes as the longest needs, and alone one."""
    model = random_model(seed=5)
    requests = make_requests(draws=4, samples=1)
    settings = {"max_new_tokens": 9}
    begun = generator(HfEngine, model, max_new_tokens=9).generate(
        [Request(r.draw, 0, window=8) for r in requests], ignore
    )
    left = [Request(r.draw, 0, b) for r, b in zip(requests, begun, strict=True) if not b.finished]
    assert left
    passes = 0

    def count(*_: Any) -> None:
        nonlocal passes
        passes += 1

    model.register_forward_pre_hook(count)
    found = generator(HfEngine, model, **settings).generate(left, ignore)
    assert passes == 1
    assert {len(response.ids) for response in found} == {9}
    passes = 0
    mixed = generator(HfEngine, model, **settings).generate([*left, *requests], ignore)
    assert [m.ids for m in mixed[: len(left)]] == [f.ids for f in found]
    assert passes == max(len(m.ids) for m in mixed[len(left) :])
