"""The engines on CUDA: what they tell is what the weights say, whatever they compute in."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.paged import PagedEngine
from assay.trainer.engines.types import Request, Response
from rollouts_support import direct_logps, ignore, make_requests, random_model, sampler

pytestmark = pytest.mark.gpu
KINDS = [HfEngine, PagedEngine]
PRECISIONS = {"float32": 1e-3, "mixed": 0.05, "bfloat16": 0.1}
"""Nats a token, on average, from one pass in float32."""


def answered(kind: Any, model: Any, precision: str, **settings: Any) -> list[Response]:
    extra: dict[str, Any] = {}
    device = model.device.type
    if precision == "mixed":
        extra["autocast"] = lambda: torch.autocast(device, torch.bfloat16)
        extra["dtype"] = torch.bfloat16
    requests = make_requests(draws=8, samples=4)
    return sampler(kind, model, seed=3, **extra, **settings).generate(requests, ignore)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_are_those_of_the_weights(device: str, kind: Any, precision: str) -> None:
    model = random_model().to(device)
    exact = random_model()
    if precision == "bfloat16":
        model = model.to(torch.bfloat16)
    responses = answered(kind, model, precision)
    far = []
    for request, response in zip(make_requests(draws=8, samples=4), responses, strict=True):
        direct_TV = direct_logps(exact, request, response.ids)
        expected_T = direct_TV[range(len(response.ids)), response.ids]
        far.append((torch.tensor(response.logprobs) - expected_T).abs())
    assert torch.cat(far).mean() < PRECISIONS[precision]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_answers_the_same_twice(device: str, kind: Any) -> None:
    model = random_model().to(device)
    once, twice = (answered(kind, model, "float32") for _ in range(2))
    assert [one.ids for one in once] == [one.ids for one in twice]


@pytest.mark.parametrize("kind", KINDS)
def test_windows_and_batches_change_no_token_but_at_a_bound(device: str, kind: Any) -> None:
    """In float32 a number lies between two roundings for about 1 token in 100,000."""
    model, requests = random_model().to(device), make_requests(draws=8, samples=4)
    expected = answered(kind, model, "float32")
    assert [one.ids for one in answered(kind, model, "float32", rows=5)] == [
        one.ids for one in expected
    ]
    of = sampler(kind, model, seed=3)
    begun = of.generate([Request(r.draw, r.index, window=6) for r in requests], ignore)
    going = [
        Request(r.draw, r.index, b) for r, b in zip(requests, begun, strict=True) if not b.finished
    ]
    rest = iter(of.generate(going, ignore))
    whole = [b if b.finished else next(rest) for b in begun]
    assert [one.ids for one in whole] == [one.ids for one in expected]


def test_adapters_answer_on_the_device(device: str) -> None:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(random_model(), LoraConfig(r=2, target_modules=["q_proj"])).to(device)
    for kind in KINDS:
        responses = sampler(kind, model, seed=3, autocast=nullcontext).generate(
            make_requests(draws=2), ignore
        )
        assert all(response.ids for response in responses)
