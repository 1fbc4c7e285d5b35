"""Generation by transformers with a real, if tiny, model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.types import Request, Response
from assay.trainer.errors import TrainingStoppedError
from rollouts_support import (
    ENDS,
    VOCABULARY,
    direct_logps,
    ignore,
    make_requests,
    random_model,
    sampler,
)


def generate(
    model: Any, requests: list[Request], *, on_finished: Any = ignore, **settings: Any
) -> list[Response]:
    return sampler(HfEngine, model, **settings).generate(requests, on_finished)


# Another batch shape pads more to the left and sums in another order, which moves a float32
# log-probability by about 1e-6. A token changes only when its random number lies that close to a
# bound: a chance of about 1e-5 a token, and what is tested here is fixed by its seeds.
@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.6, "top_k": 9, "top_p": 0.9}])
def test_a_response_does_not_depend_on_what_is_generated_with_it(settings: dict[str, Any]) -> None:
    model, requests = random_model(), make_requests(draws=6, samples=3)
    whole = generate(model, requests, **settings)
    backwards = generate(model, requests[::-1], **settings)[::-1]
    for batch in (1, 4, 7):
        _same(whole, generate(model, requests, rows=batch, **settings))
    _same(whole, backwards)
    for place in (0, 8, 17):
        _same([whole[place]], generate(model, [requests[place]], **settings))
    assert len({response.ids for response in whole}) > 10


def test_another_seed_answers_differently_and_the_same_one_alike() -> None:
    model, requests = random_model(), make_requests()
    first = generate(model, requests)
    assert generate(model, requests) == first
    assert generate(model, requests, seed=1) != first


def test_samples_of_a_group_differ() -> None:
    responses = generate(random_model(), make_requests(draws=1, samples=8))
    assert len({response.ids for response in responses}) == 8


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_log_probabilities_are_those_of_a_direct_forward_pass(temperature: float) -> None:
    model, requests = random_model(), make_requests()
    filters: list[dict[str, Any]] = [{}, {"top_k": 5, "top_p": 0.8}]
    for settings in filters:
        responses = generate(model, requests, temperature=temperature, **settings)
        for request, response in zip(requests, responses, strict=True):
            direct_TV = direct_logps(model, request, response.ids, temperature=temperature)
            expected_T = direct_TV[range(len(response.ids)), response.ids]
            torch.testing.assert_close(
                torch.tensor(response.logprobs), expected_T, atol=1e-4, rtol=0
            )


def test_only_the_top_tokens_are_drawn() -> None:
    model, requests = random_model(), make_requests()
    for settings in ({"top_k": 3}, {"top_p": 0.5}):
        responses = generate(model, requests, **settings)
        for request, response in zip(requests, responses, strict=True):
            direct_TV = direct_logps(model, request, response.ids)
            for token, logps_V in zip(response.ids, direct_TV, strict=True):
                better = logps_V > logps_V[token] + 1e-4
                if "top_k" in settings:
                    assert int(better.sum()) < 3
                else:
                    assert float(logps_V[better].exp().sum()) < 0.5 + 1e-3


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_frequencies_are_the_model_s_distribution(temperature: float) -> None:
    model, count = random_model(), 4000
    [request] = make_requests(draws=1, samples=1)
    requests = [Request(request.draw, index) for index in range(count)]
    responses = generate(model, requests, max_new_tokens=1, temperature=temperature)
    expected_V = direct_logps(model, request, [0], temperature=temperature)[0].exp() * count
    counts_V = torch.bincount(
        torch.tensor([response.ids[0] for response in responses]), minlength=VOCABULARY
    )
    common = expected_V >= 5
    rest = expected_V[~common].sum()
    chi2 = ((counts_V - expected_V)[common] ** 2 / expected_V[common]).sum()
    chi2 += (counts_V[~common].sum() - rest) ** 2 / rest
    assert int(common.sum()) <= 23
    assert chi2 < 49.7  # at most 23 df, p = 0.001


def test_a_response_ends_with_its_end_token_or_is_cut() -> None:
    responses = generate(random_model(), make_requests(draws=8))
    for response in responses:
        ended = response.ids[-1] in ENDS
        assert not set(response.ids[:-1]) & ENDS
        assert response.truncated == (not ended)
        assert ended or len(response.ids) == 20
        assert response.text == "".join(chr(94 + i) for i in response.ids if i > 2)
        assert response.logprobs is not None
        assert len(response.logprobs) == len(response.ids)
    assert {response.truncated for response in responses} == {True, False}


def test_each_response_is_handed_over_once_and_as_soon_as_it_is_complete() -> None:
    model, requests = random_model(), make_requests(draws=6)
    passes = 0

    def count(*_: Any) -> None:
        nonlocal passes
        passes += 1

    model.register_forward_pre_hook(count)
    finished: dict[int, Response] = {}

    def on_finished(place: int, response: Response) -> None:
        assert place not in finished
        assert passes == len(response.ids)  # one pass a token, and none after the last
        finished[place] = response

    responses = generate(model, requests, on_finished=on_finished)
    assert [finished[place] for place in range(len(requests))] == responses
    assert list(finished) != sorted(finished)
    assert passes == max(len(response.ids) for response in responses)


def test_one_part_is_handed_over_before_the_next_begins() -> None:
    model, requests = random_model(), make_requests(draws=3, samples=2)
    seen: list[str] = []
    model.register_forward_pre_hook(
        lambda _module, _args, kwargs: seen.append("pass" * (kwargs["input_ids"].shape[1] > 1)),
        with_kwargs=True,
    )
    generate(
        model,
        [Request(r.draw, r.index) for r in requests if len(r.draw.prompt_ids) > 1],
        rows=2,
        on_finished=lambda place, _: seen.append(str(place)),
    )
    events = [event for event in seen if event]
    assert [e for e in events if e == "pass"] == ["pass"] * 2
    second = events.index("pass", 1)
    assert sorted(events[:second]) == ["0", "1", "pass"]
    assert sorted(events[second:]) == ["2", "3", "pass"]


def test_one_token_of_one_prompt() -> None:
    [response] = generate(random_model(), make_requests(draws=1, samples=1), max_new_tokens=1)
    assert len(response.ids) == 1


def test_without_end_tokens_all_responses_are_cut() -> None:
    responses = generate(random_model(), make_requests(), end_ids=frozenset(), max_new_tokens=5)
    assert {(len(response.ids), response.truncated) for response in responses} == {(5, True)}


def test_the_model_s_own_generation_settings_do_not_apply_and_stay() -> None:
    model, requests = random_model(), make_requests()
    plain = generate(model, requests)
    own = model.generation_config
    own.update(
        repetition_penalty=1.8, temperature=0.1, do_sample=True, suppress_tokens=[4, 5, 6, 7],
        min_new_tokens=9, forced_eos_token_id=1, no_repeat_ngram_size=1, max_length=4,
    )  # fmt: skip
    assert generate(model, requests) == plain
    assert model.generation_config is own
    assert own.repetition_penalty == 1.8


def test_dropout_is_off_and_modes_come_back() -> None:
    requests = make_requests()
    model = random_model(dropout=0.5)
    model.model.layers[1].eval()
    modes = [module.training for module in model.modules()]
    _same(generate(model, requests), generate(random_model(), requests))
    assert [module.training for module in model.modules()] == modes
    assert True in modes
    assert False in modes


def test_the_global_random_state_is_neither_read_nor_moved() -> None:
    model, requests = random_model(), make_requests()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = generate(model, requests)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert generate(model, requests) == first


def test_the_cache_is_used_under_gradient_checkpointing() -> None:
    model, requests = random_model(), make_requests(draws=2)
    plain = generate(model, requests)
    model.gradient_checkpointing_enable()
    model.config.use_cache = False  # as transformers' Trainer sets it
    widths: list[int] = []
    model.register_forward_pre_hook(
        lambda _module, _args, kwargs: widths.append(kwargs["input_ids"].shape[1]),
        with_kwargs=True,
    )
    assert generate(model, requests) == plain
    assert set(widths[1:]) == {1}


def test_adapters_answer_too() -> None:
    from peft import LoraConfig, get_peft_model

    requests = make_requests()
    plain = generate(random_model(), requests)
    model = get_peft_model(random_model(), LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    own = model.generation_config
    _same(generate(model, requests), plain)  # an adapter starts at zero
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=1.0)
    assert generate(model, requests) != plain
    assert model.generation_config is own


def test_mixed_precision_answers_in_bfloat16() -> None:
    model, requests = random_model(), make_requests()
    kinds: set[torch.dtype] = set()
    model.lm_head.register_forward_hook(lambda _m, _a, out: kinds.add(out.dtype))

    def autocast() -> AbstractContextManager[Any]:
        return torch.autocast("cpu", torch.bfloat16)

    responses = generate(model, requests, autocast=autocast)
    assert kinds == {torch.bfloat16}
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert generate(model, requests[:1], autocast=autocast)[0].ids
    assert all(response.logprobs for response in responses)


def test_weights_that_are_not_numbers_stop_the_run_and_the_model_is_put_back() -> None:
    model = random_model()
    own = model.generation_config
    torch.nn.init.constant_(model.lm_head.weight, float("nan"))
    with pytest.raises(TrainingStoppedError, match="logits are not numbers"):
        generate(model, make_requests())
    assert model.training
    assert model.generation_config is own


def _same(left: list[Response], right: list[Response]) -> None:
    """The same tokens, and log-probabilities up to rounding."""
    assert [(r.ids, r.text, r.truncated) for r in left] == [
        (r.ids, r.text, r.truncated) for r in right
    ]
    for a, b in zip(left, right, strict=True):
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)
