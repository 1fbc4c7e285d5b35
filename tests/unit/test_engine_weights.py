"""The weights of a policy for an engine, against those of a checkpoint and PEFT's own merge."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model

from assay.kit.errors import ConfigError
from assay.trainer.engines.weights import described, listed, weights
from rollouts_support import random_model
from vllm_support import tiny_policy


def adapted(model: Any, **settings: Any) -> Any:
    given_: dict[str, Any] = {"r": 4, "target_modules": "all-linear", **settings}
    found: Any = get_peft_model(model, LoraConfig(**given_))
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in found.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                parameter.normal_(std=0.2, generator=noise)
    return found


def merged(model: Any) -> dict[str, torch.Tensor]:
    """What PEFT makes of it, without its adapters; the model is used up."""
    state: dict[str, torch.Tensor] = model.merge_and_unload(safe_merge=True).state_dict()
    return state


@pytest.mark.parametrize("tied", [False, True])
def test_names_are_those_of_a_checkpoint_and_tied_weights_come_once(tied: bool) -> None:
    model = tiny_policy(tied=tied)
    found = dict(weights(model))
    state = model.state_dict()
    assert set(state) - set(found) == ({"lm_head.weight"} if tied else set())
    assert all(torch.equal(found[name], state[name]) for name in found)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"target_modules": ["q_proj", "down_proj"], "use_rslora": True},
        {"target_modules": ["embed_tokens", "o_proj"]},
        {"modules_to_save": ["lm_head"]},
        {"target_modules": ["q_proj"], "lora_bias": True},
    ],
    ids=["all-linear", "rslora", "embedding", "saved", "bias"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_merged_weights_are_peft_s_and_the_policy_is_untouched(
    settings: dict[str, Any], dtype: torch.dtype
) -> None:
    model = adapted(random_model(attention_bias=True).to(dtype), **settings)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    found = dict(weights(model))
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    plain = random_model(attention_bias=True).to(dtype).state_dict()
    assert set(found) == set(plain)
    assert any(not torch.equal(found[name], plain[name]) for name in found)
    wanted = merged(model)
    for name, tensor in found.items():
        assert torch.equal(tensor, wanted[name]), name


@given(st.integers(1, 6), st.integers(1, 64), st.sampled_from(["up_proj", "k_proj", "lm_head"]))
def test_merging_is_peft_s_whatever_the_rank(rank: int, alpha: int, target: str) -> None:
    model = adapted(random_model(), r=rank, lora_alpha=alpha, target_modules=[target])
    found = dict(weights(model))
    wanted = merged(model)
    assert set(found) == set(wanted)
    assert all(torch.equal(found[name], wanted[name]) for name in found)


def test_adapters_that_are_switched_off_are_not_merged() -> None:
    model = adapted(random_model())
    plain = random_model().state_dict()
    with model.disable_adapter():
        assert all(torch.equal(t, plain[name]) for name, t in weights(model))
    assert not all(torch.equal(t, plain[name]) for name, t in weights(model))


def test_what_is_described_is_what_comes() -> None:
    for model in (tiny_policy(tied=True), adapted(random_model(), modules_to_save=["lm_head"])):
        for dtype in (None, torch.bfloat16):
            found = [(name, t.dtype, tuple(t.shape)) for name, t in weights(model, dtype)]
            assert found == described(model, dtype)


def test_a_merged_tensor_is_gone_when_the_next_one_comes() -> None:
    earlier: list[Any] = []
    for _, tensor in weights(adapted(random_model())):
        assert not any(seen() is not None for seen in earlier)
        earlier.append(weakref.ref(tensor))
        del tensor
    assert len(earlier) > 10


@pytest.mark.parametrize("settings", [{"use_dora": True}, {"trainable_token_indices": [3]}])
def test_adapters_of_other_kinds_are_refused(settings: dict[str, Any]) -> None:
    model = adapted(random_model(), target_modules=["q_proj"], **settings)
    with pytest.raises(ConfigError, match=r'use rollout\.backend = "hf"'):
        dict(weights(model))


@pytest.fixture
def group() -> Iterator[None]:
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("lora", [False, True])
def test_sharded_weights_come_whole(lora: bool) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    def made() -> Any:
        model = tiny_policy(tied=True)
        return adapted(model) if lora else model

    model, wanted = made(), dict(weights(made()))
    mesh = init_device_mesh("cpu", (1,))
    for layer in model.get_submodule("base_model.model.model.layers" if lora else "model.layers"):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    assert any(isinstance(one.tensor, DTensor) for one in listed(model))
    found = dict(weights(model))
    assert set(found) == set(wanted)
    for name, tensor in found.items():
        assert not isinstance(tensor, DTensor)
        assert torch.equal(tensor, wanted[name]), name
