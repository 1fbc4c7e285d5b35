"""Continuous batching answers as generate does, on CPU."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch.distributed.fsdp import FSDPModule
from transformers import ContinuousBatchingConfig

from assay.kit.errors import ConfigError
from assay.trainer.engines import paged
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.types import Request, Response
from assay.trainer.errors import TrainingStoppedError
from rollouts_support import ignore, make_requests, random_model, sampler


def generate(
    kind: Any, model: Any, requests: list[Request], *, on_finished: Any = ignore, **settings: Any
) -> list[Response]:
    return sampler(kind, model, seed=3, **settings).generate(requests, on_finished)


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.6, "top_k": 9, "top_p": 0.9}, {"rows": 4}]
)
def test_responses_are_those_of_generate(settings: dict[str, Any]) -> None:
    model, requests = random_model(), make_requests(draws=5, samples=3)
    _same(
        generate(paged.PagedEngine, model, requests, **settings),
        generate(HfEngine, model, requests, **settings),
    )


def test_each_response_is_handed_over_once_and_the_shorter_ones_first() -> None:
    finished: dict[int, Response] = {}

    def on_finished(place: int, response: Response) -> None:
        assert place not in finished
        finished[place] = response

    requests = make_requests(draws=5)
    responses = generate(paged.PagedEngine, random_model(), requests, on_finished=on_finished)
    assert [finished[place] for place in range(len(requests))] == responses
    lengths = [len(response.ids) for response in finished.values()]
    pairs = list(itertools.combinations(lengths, 2))
    # On a busy machine the loop takes up a request or two a step late.
    assert sum(one > other for one, other in pairs) < 0.1 * len(pairs)
    assert {response.truncated for response in responses} == {True, False}


def test_a_cache_too_small_for_all_rows_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    evicted: list[str] = []
    from transformers.generation.continuous_batching.requests import RequestState

    start_over = RequestState.create_equivalent_initial_request

    def noted(state: RequestState) -> RequestState:
        evicted.append(state.request_id)
        return start_over(state)

    monkeypatch.setattr(RequestState, "create_equivalent_initial_request", noted)
    monkeypatch.setattr(
        paged,
        "cache_config",
        lambda *_: ContinuousBatchingConfig(
            page_size=4, num_blocks=24, max_batch_tokens=32, return_logprobs=True, seed=0
        ),
    )
    model, requests = random_model(), make_requests(draws=5, samples=3)
    of = sampler(paged.PagedEngine, model, seed=3)
    small = of.generate(requests, ignore)
    assert evicted
    assert of.engine.preemptions == len(evicted)
    _same(small, generate(HfEngine, model, requests))


def test_the_model_and_the_global_random_state_are_put_back() -> None:
    model = random_model(dropout=0.5)
    model.model.layers[1].eval()
    modes = [module.training for module in model.modules()]
    own, attention = model.generation_config, model.config._attn_implementation
    before = torch.get_rng_state()
    generate(paged.PagedEngine, model, make_requests(draws=2))
    assert torch.equal(torch.get_rng_state(), before)
    assert [module.training for module in model.modules()] == modes
    assert model.generation_config is own
    assert model.config._attn_implementation == attention


def test_weights_may_be_cast_for_as_long_as_the_policy_answers() -> None:
    model, requests = random_model(), make_requests()
    before = {name: (p, p.data_ptr(), p.detach().clone()) for name, p in model.named_parameters()}
    kinds: set[torch.dtype] = set()
    model.lm_head.register_forward_hook(lambda _m, _a, out: kinds.add(out.dtype))
    responses = generate(paged.PagedEngine, model, requests, dtype=torch.bfloat16)
    assert kinds == {torch.bfloat16}
    assert len(responses) == len(requests)
    for name, parameter in model.named_parameters():
        same, address, value = before[name]
        assert parameter is same
        assert parameter.data_ptr() == address
        assert torch.equal(parameter, value)


def test_adapters_answer_too() -> None:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(random_model(), LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=1.0, generator=torch.Generator().manual_seed(0))
    requests = make_requests()
    _same(generate(paged.PagedEngine, model, requests), generate(HfEngine, model, requests))


def test_weights_that_are_not_numbers_stop_the_run() -> None:
    model = random_model()
    torch.nn.init.constant_(model.lm_head.weight, float("nan"))
    with pytest.raises(TrainingStoppedError, match="logits are not numbers"):
        generate(paged.PagedEngine, model, make_requests())
    assert model.training


def test_a_loop_that_breaks_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("out of pages")

    monkeypatch.setattr(paged.PagedDraws, "sample", broken)
    model = random_model()
    with pytest.raises(TrainingStoppedError, match="out of pages"):
        generate(paged.PagedEngine, model, make_requests(draws=2))
    assert model.training


def test_sharded_weights_are_refused() -> None:
    class Sharded(FSDPModule):
        def __new__(cls) -> Any:
            return object.__new__(cls)

    with pytest.raises(ConfigError, match=r'rollout\.backend = "paged" needs all weights'):
        generate(paged.PagedEngine, Sharded(), make_requests())


def _same(left: list[Response], right: list[Response]) -> None:
    assert [(r.ids, r.text, r.truncated) for r in left] == [
        (r.ids, r.text, r.truncated) for r in right
    ]
    for a, b in zip(left, right, strict=True):
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)
