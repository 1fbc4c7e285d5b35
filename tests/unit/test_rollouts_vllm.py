"""What goes to TRL's vLLM path, and what is made of its answers, without vLLM."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from assay.trainer.engines.types import FirstToken, Response
from assay.trainer.engines.vllm import VllmGenerator, base_weights_kept, keep_base_weights
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.sections import RolloutConfig
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


class Engine:
    """TRL's VLLMGeneration as far as FIRE touches it: its settings, read at each call."""

    def __init__(self, likely: dict[int, list[int]], broken: bool = False) -> None:
        self.temperature, self.top_k, self.top_p, self.max_completion_length = 0.8, 0, 1.0, 6
        self.logprobs = 0
        self.calls: list[tuple[list[list[int]], int, tuple[float, ...]]] = []
        self._likely, self._broken = likely, broken

    @property
    def settings(self) -> tuple[float, ...]:
        return (
            self.temperature,
            self.top_k,
            self.top_p,
            self.max_completion_length,
            self.logprobs,
        )

    def generate(self, prompts: list[list[int]], repeats: int) -> Any:
        self.calls.append(([list(p) for p in prompts], repeats, self.settings))
        if self._broken:
            return prompts, [], [], []
        if not self.logprobs:
            return prompts, [[6, 1]] * len(prompts), [[[-0.25], [-0.5]]] * len(prompts), []
        # The token that was drawn stands first, and is not one of the likeliest.
        ids = [[[99, *self._likely[p[0]]]] for p in prompts]
        logps = [[[-9.0, *(-0.5 * k for k in range(len(row[0]) - 1))]] for row in ids]
        return prompts, [[99]] * len(prompts), logps, ids

    def __call__(
        self, prompts: list[list[int]], repeats: int
    ) -> tuple[list[list[int]], list[list[float | None]]]:
        _, ids, logps, _ = self.generate(prompts, repeats)
        return ids, [[told[0] for told in row] for row in logps]


def fired(engine: Engine, **settings: Any) -> VllmGenerator:
    config = RolloutConfig(backend="vllm", group_size=3, max_new_tokens=6, **settings)
    first = FirstToken(temperature=30.0, top_k=3)
    return VllmGenerator(
        engine, NumberTokenizer(), config, end_ids=ENDS, engine=engine, seed=5, first=first
    )


def test_fire_draws_first_tokens_of_the_likeliest_and_goes_on_behind_them() -> None:
    requests = make_requests(draws=2, samples=3)
    one, other = (list(requests[n].draw.prompt_ids) for n in (0, 3))
    engine = Engine({one[0]: [7, 4, 5], other[0]: [1, 1, 1]})  # the other's responses end at once
    finished: list[int] = []
    responses = fired(engine).generate(requests, lambda place, _: finished.append(place))
    firsts = [response.ids[0] for response in responses]
    assert set(firsts[:3]) <= {4, 5, 7}
    assert engine.calls == [
        ([one, other], 1, (1.0, 0, 1.0, 1, 3)),
        ([[*one, first] for first in firsts[:3]], 1, (0.8, 0, 1.0, 5, 0)),
    ]
    assert engine.settings == (0.8, 0, 1.0, 6, 0)
    probs = torch.softmax(torch.tensor([0.0, -0.5, -1.0]) / 30, dim=0)
    told = dict(zip((7, 4, 5), probs.log().tolist(), strict=True))
    for response in responses[:3]:
        assert response.ids[1:] == (6, 1)
        assert response.logprobs is not None
        assert response.logprobs == pytest.approx((told[response.ids[0]], -0.25, -0.5))
    assert [response.ids for response in responses[3:]] == [(1,)] * 3
    assert not any(response.truncated for response in responses)
    assert finished == list(range(6))


def test_fire_s_tokens_follow_from_the_seed_and_are_about_equally_likely() -> None:
    requests = make_requests(draws=1, samples=300)
    likely = {requests[0].draw.prompt_ids[0]: [7, 4, 5]}
    firsts = [
        [response.ids[0] for response in fired(Engine(likely)).generate(requests, ignore)]
        for _ in range(2)
    ]
    assert firsts[0] == firsts[1]
    assert all(70 < firsts[0].count(token) < 130 for token in (4, 5, 7))


def test_fire_tells_the_first_log_probability_of_a_filtered_distribution_alone() -> None:
    requests = make_requests(draws=1, samples=3)
    engine = Engine({requests[0].draw.prompt_ids[0]: [7, 4, 5]})
    for response in fired(engine, top_p=0.9).generate(requests, ignore):
        assert response.logprobs is not None
        assert math.isfinite(response.logprobs[0])
        assert all(map(math.isnan, response.logprobs[1:]))


def test_fire_leaves_the_engine_s_settings_when_a_call_fails() -> None:
    engine = Engine({}, broken=True)
    with pytest.raises(TrainingStoppedError, match="of 5 prompts"):
        fired(engine).generate(make_requests(), ignore)
    assert engine.settings == (0.8, 0, 1.0, 6, 0)


def test_fire_is_never_silently_off() -> None:
    config = RolloutConfig(backend="vllm", group_size=3)
    with pytest.raises(ValueError, match="first tokens need the engine"):
        VllmGenerator(Echo(), NumberTokenizer(), config, end_ids=ENDS, first=FirstToken(30.0, 16))


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
