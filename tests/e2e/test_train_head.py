"""The output layer in float32, in the sampler and in the trainer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.kit.errors import ConfigError
from assay.trainer.engines.head import head_in_float32

MakeConfig = Callable[..., Any]
Train = Callable[..., list[dict[str, Any]]]


def loaded_model(folder: Path, *, tied: bool, dtype: torch.dtype) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    settings = AutoConfig.from_pretrained(folder)
    settings.tie_word_embeddings = tied
    return AutoModelForCausalLM.from_config(settings, dtype=dtype).eval()


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_logits_are_those_of_a_head_in_float32(
    tiny_model: Path, tied: bool, dtype: torch.dtype
) -> None:
    """Of bfloat16 weights, and of float32 ones that compute in bfloat16; the rest is as it was."""
    model = loaded_model(tiny_model, tied=tied, dtype=dtype)
    ids = torch.arange(4, 40).view(2, 18)
    mixed = dtype is torch.float32
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        before = model(ids)
        hidden = model.base_model(ids).last_hidden_state
        assert before.logits.dtype is torch.bfloat16
        head_in_float32(model)
        after = model(ids).logits
        again = model.base_model(ids).last_hidden_state
        assert after.dtype is torch.float32
        assert torch.equal(hidden, again)
    exact = hidden.double() @ model.get_output_embeddings().weight.double().T
    assert (after - exact).abs().max() < 1e-5 * exact.abs().max()
    assert (before.logits - exact).abs().max() > 1e-4 * exact.abs().max()
    assert model.get_output_embeddings().weight.dtype is torch.float32


def test_a_head_with_adapters_is_refused(tiny_model: Path) -> None:
    from assay.trainer.engines.models import with_adapters
    from assay.trainer.settings.sections import LoraConfig

    model = loaded_model(tiny_model, tied=False, dtype=torch.float32)
    with pytest.raises(ConfigError, match=r"the output layer is a .*model\.lora\.target_modules"):
        head_in_float32(with_adapters(model, LoraConfig(rank=2, target_modules=("lm_head",))))


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 2])
def test_sampler_and_trainer_have_one_head(
    tiny_config: MakeConfig,
    train: Train,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rank: int,
) -> None:
    """In mixed precision, with all weights and with adapters; where only the trainer's fused head
    is in float32, as TRL alone has it, the two drift apart."""

    def first(precision: str, name: str) -> dict[str, Any]:
        config = tiny_config(
            model={"precision": "mixed", "head_precision": precision, "lora": {"rank": rank}},
            method={"loss": {"kl_coef": 0.01, "importance_correction": "icepop"}},
            run={"steps": 2, "checkpoint_every": 1},
            eval={"prompts": 0},
        )
        return train(config, name)[0]

    plain, exact = first("auto", "plain"), first("float32", "exact")
    assert exact["entropy"] != plain["entropy"]
    assert exact["drift_max"] < 1e-5
    assert exact["importance_outside"] == 0
    assert exact["importance_ratio"] == pytest.approx(1, abs=1e-5)
    assert (tmp_path / "exact" / "model" / "model.safetensors").is_file()
    monkeypatch.setattr("assay.trainer.core.build.head_in_float32", lambda _model: None)
    assert first("float32", "half")["drift_max"] > 1e-4
