"""LoRA: only the adapter learns, and what the run leaves can be loaded with and without PEFT."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Train = Callable[..., list[dict[str, Any]]]
MakeConfig = Callable[..., Any]
LORA = {"lora": {"rank": 4, "alpha": 8}}


def weights(folder: Path, name: str = "model.safetensors") -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / name)


def logits(model: Any) -> Any:
    import torch

    ids = torch.tensor([[52, 15, 56, 33], [50, 15, 50, 33]])
    with torch.no_grad():
        return model.eval()(input_ids=ids).logits


def test_model_is_whole_and_adapter_is_what_was_trained(
    tiny_config: MakeConfig, train: Train, tmp_path: Path, tiny_model: Path
) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    config = tiny_config(
        model=LORA,
        method={"loss": {"kl_coef": 0.05}},
        optim={"learning_rate": 1e-2},
        eval={"prompts": 0},
    )
    rows = train(config)
    run = tmp_path / "run"
    adapter = weights(run / "adapter", "adapter_model.safetensors")
    assert all("lora_" in name for name in adapter)
    assert {path.name for path in (run / "adapter").glob("*/")} == set()  # no second adapter
    load: Any = AutoModelForCausalLM.from_pretrained
    base, whole = load(tiny_model), load(run / "model")
    with_adapter: Any = PeftModel.from_pretrained(load(tiny_model), run / "adapter")
    torch.testing.assert_close(logits(whole), logits(with_adapter), rtol=0, atol=1e-5)
    assert (logits(whole) - logits(base)).abs().max() > 0.01
    # the reference is the model without its adapter
    assert rows[0]["kl"] == pytest.approx(0, abs=1e-9)
    assert rows[-1]["kl"] > 1e-5


def test_nothing_but_the_adapted_layers_moves(
    tiny_config: MakeConfig, train: Train, tmp_path: Path, tiny_model: Path
) -> None:
    import torch

    targets = {"rank": 2, "target_modules": ["q_proj", "down_proj"]}
    train(tiny_config(model={"lora": targets}, eval={"prompts": 0}))
    before, after = weights(tiny_model), weights(tmp_path / "run" / "model")
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {name for name in before if "q_proj" in name or "down_proj" in name}
    for name in moved:
        change = after[name].double() - before[name].double()
        assert torch.linalg.matrix_rank(change, atol=1e-6) <= 2


def test_a_critic_starts_from_the_weights_beneath_the_adapter(
    tiny_config: MakeConfig, train: Train, tmp_path: Path, tiny_model: Path
) -> None:
    """And learns with all of its own."""
    config = tiny_config(
        model=LORA,
        method={
            "advantage": {"estimator": "gae"},
            "critic": {"learning_rate": 1e-3},
            "loss": {"kl_coef": 0.05, "kl_place": "reward", "kl_estimator": "k1"},
        },
        eval={"prompts": 0},
    )
    rows = train(config)
    assert all(row["value_grad_norm"] > 0 and row["grad_norm"] > 0 for row in rows[1:])
    before, after = weights(tiny_model), weights(tmp_path / "run" / "critic")
    shared = before.keys() & after.keys()
    assert len(shared) == len(after) - 2  # all but the head's two
    changes = {name: (after[name] - before[name]).abs().max().item() for name in shared}
    assert all(0 < change < 0.01 for change in changes.values()), changes


def test_wrong_targets_are_answered_with_the_layers_there_are(
    tiny_config: MakeConfig, train: Train
) -> None:
    from assay.kit.errors import ConfigError

    config = tiny_config(model={"lora": {"rank": 2, "target_modules": ["query"]}})
    with pytest.raises(ConfigError, match=r"\['query'\] fits no layer; .* down_proj, gate_proj"):
        train(config)
