"""What goes to TRL's vLLM path, and what is made of its answers, without vLLM."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from assay.trainer.config import RolloutConfig
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.rollouts.types import Response
from assay.trainer.rollouts.vllm import VllmGenerator, base_weights_kept, keep_base_weights
from rollouts_support import ENDS, NumberTokenizer, ignore, make_requests, random_model


class Echo:
    """Answers each prompt with its first token and an end, and notes what it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def __call__(
        self, prompts: list[list[int]], repeats: int
    ) -> tuple[list[list[int]], list[list[float | None]] | None]:
        self.calls.append((len(prompts), repeats))
        return [[p[0], 1] for p in prompts], [[-0.5, None] for _ in prompts]


def generator(echo: Any, **settings: Any) -> VllmGenerator:
    config = RolloutConfig(backend="vllm", **{"group_size": 3, **settings})
    return VllmGenerator(echo, NumberTokenizer(), config, end_ids=ENDS)


def test_answers_become_responses() -> None:
    echo, requests = Echo(), make_requests(draws=2, samples=3)
    finished: list[tuple[int, Response]] = []
    responses = generator(echo).generate(requests, lambda p, r: finished.append((p, r)))
    assert echo.calls == [(6, 3)]
    assert finished == list(enumerate(responses))
    first = requests[0].draw.prompt_ids[0]
    assert responses[0].ids == (first, 1)
    assert responses[0].text == chr(94 + first)
    assert not responses[0].truncated
    assert responses[0].logprobs is not None
    assert responses[0].logprobs[0] == -0.5
    assert math.isnan(responses[0].logprobs[1])


@pytest.mark.parametrize(("batch", "sizes"), [(0, [12]), (1, [3] * 4), (7, [9, 3]), (99, [12])])
def test_parts_hold_whole_groups(batch: int, sizes: list[int]) -> None:
    echo = Echo()
    responses = generator(echo, batch=batch).generate(make_requests(draws=4, samples=3), ignore)
    assert echo.calls == [(size, 3) for size in sizes]
    assert len(responses) == 12


def test_requests_that_are_no_groups_are_asked_one_by_one() -> None:
    for requests in (make_requests(draws=3, samples=2), make_requests(draws=2, samples=4)):
        echo = Echo()
        generator(echo).generate(requests, ignore)
        assert {repeats for _, repeats in echo.calls} == {1}


@pytest.mark.parametrize("settings", [{"top_k": 5}, {"top_p": 0.9}])
def test_log_probabilities_of_a_filtered_distribution_are_not_passed_on(
    settings: dict[str, Any],
) -> None:
    responses = generator(Echo(), **settings).generate(make_requests(), ignore)
    assert all(response.logprobs is None for response in responses)


def test_a_response_without_an_end_was_cut() -> None:
    [response, *_] = generator(lambda p, _n: ([[5, 6]] * len(p), None)).generate(
        make_requests(), ignore
    )
    assert response.truncated
    assert response.logprobs is None


@pytest.mark.parametrize("answers", [[], [[5]], [[5]] * 14 + [[]]])
def test_missing_answers_stop_the_run(answers: list[list[int]]) -> None:
    with pytest.raises(TrainingStoppedError, match="of 15 prompts"):
        generator(lambda _p, _n: (answers, None)).generate(make_requests(), ignore)


def test_merging_adapters_for_a_sync_leaves_the_weights_as_they_were() -> None:
    from peft import LoraConfig, get_peft_model

    model: Any = get_peft_model(
        random_model().bfloat16(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"])
    )
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}

    class Sync:
        merged: torch.Tensor

        def __init__(self) -> None:
            self.model = model

        def sync_weights(self) -> None:
            model.merge_adapter()
            self.merged = base.weight.detach().clone()
            model.unmerge_adapter()

    base = model.base_model.model.model.layers[0].self_attn.q_proj.base_layer
    plain = Sync()
    plain.sync_weights()
    assert any(not torch.equal(p, before[n]) for n, p in model.named_parameters())  # why it is done
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(before[name])

    sync = Sync()
    keep_base_weights(sync)
    for _ in range(3):
        sync.sync_weights()
    assert not torch.equal(sync.merged, before[_name(model, base.weight)])
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())


def test_a_model_without_adapters_is_left_alone() -> None:
    layer = torch.nn.Linear(2, 2)
    with base_weights_kept(layer):
        torch.nn.init.zeros_(layer.weight)
    assert not layer.weight.any()


def _name(model: Any, wanted: torch.Tensor) -> str:
    return next(str(name) for name, parameter in model.named_parameters() if parameter is wanted)
