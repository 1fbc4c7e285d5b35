"""Ways to need less memory: gradient checkpointing, bfloat16, waiting in the host's memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from trainer_processes_support import same

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]


@pytest.fixture
def lengths() -> Iterator[Counter[tuple[bool, int]]]:
    """Counts calls of transformer layers, by whether a gradient is wanted and by tokens a row."""
    import torch
    from torch.nn.modules.module import register_module_forward_pre_hook

    seen: Counter[tuple[bool, int]] = Counter()

    def note(module: Any, inputs: tuple[Any, ...]) -> None:
        if type(module).__name__ == "LlamaDecoderLayer":
            seen[torch.is_grad_enabled(), inputs[0].shape[1]] += 1

    handle = register_module_forward_pre_hook(note)
    yield seen
    handle.remove()


@pytest.mark.slow
@pytest.mark.parametrize("lora", [0, 4])
def test_gradient_checkpointing_changes_nothing(
    tiny_config: MakeConfig,
    train: Train,
    curve: Curve,
    lengths: Counter[tuple[bool, int]],
    *,
    lora: int,
) -> None:
    """Neither the numbers, nor that generation computes one token at a time, from its cache."""

    def rows(*, checkpointing: bool) -> list[dict[str, Any]]:
        model = {"gradient_checkpointing": checkpointing, "lora": {"rank": lora}}
        method = {
            "advantage": {"estimator": "gae"},
            "critic": {"learning_rate": 1e-3},
            "loss": {"kl_coef": 0.05, "kl_place": "reward", "kl_estimator": "k1"},
        }
        config = tiny_config(model=model, method=method, eval={"prompts": 0}, run={"steps": 2})
        return curve(train(config, f"run-{checkpointing}"))

    plain = rows(checkpointing=False)
    generating = {key: count for key, count in lengths.items() if not key[0]}
    assert generating[False, 1] > 0
    with_gradient = sum(count for (grad, _), count in lengths.items() if grad)
    lengths.clear()
    same(rows(checkpointing=True), plain)
    assert {key: count for key, count in lengths.items() if not key[0]} == generating
    # each layer ran once more, in the backward pass
    again = sum(count for (grad, _), count in lengths.items() if grad)
    assert again == 2 * with_gradient


@pytest.mark.parametrize("precision", ["mixed", "bfloat16"])
def test_bfloat16_trains_and_drifts_little(
    tiny_config: MakeConfig, train: Train, precision: str
) -> None:
    """The sampler computes one token at a time and the trainer whole rows, each with its own
    rounding: bfloat16 has 8 bits."""
    rows, exact = (
        train(
            tiny_config(
                model={"precision": chosen},
                method={"loss": {"kl_coef": 0.05}},
                eval={"prompts": 0},
                run={"steps": 2},
            ),
            chosen,
        )
        for chosen in (precision, "float32")
    )
    assert all(row["grad_norm"] > 0 for row in rows)
    # How far they drift depends on the CPU: some round a token as they round a row of them.
    assert rows[0]["grad_norm"] != pytest.approx(exact[0]["grad_norm"], rel=1e-6)
    assert all(row["drift_mean"] < 0.05 for row in rows)
    assert rows[0]["kl"] == pytest.approx(0, abs=1e-3)


@pytest.mark.slow
def test_who_waits_in_the_host_memory_learns_the_same(
    tiny_config: MakeConfig, train: Train, curve: Curve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reference and critic, whose rests are during generation; on a CPU they move to where they
    are."""
    from assay.trainer.engines.hf import HfEngine
    from assay.trainer.engines.offload import OffloadedModel

    waiting: list[Any] = []
    away: list[bool] = []
    begin, generate = OffloadedModel.__init__, HfEngine._draw

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        waiting.append(self)

    def generated(self: Any, *args: Any, **kwargs: Any) -> Any:
        away.extend(not one.here for one in waiting)
        return generate(self, *args, **kwargs)

    monkeypatch.setattr(OffloadedModel, "__init__", init)
    monkeypatch.setattr(HfEngine, "_draw", generated)

    def rows(name: str, *offload: str) -> list[dict[str, Any]]:
        waiting.clear()
        away.clear()
        method = {
            "advantage": {"estimator": "gae"},
            "critic": {"learning_rate": 1e-3, "pretrain_steps": 1},
            "loss": {"kl_coef": 0.05},
        }
        optim = {"mini_batches": 2, "micro_batch": 8}
        model = {"offload": list(offload)}
        config = tiny_config(model=model, method=method, optim=optim, eval={"prompts": 0})
        return curve(train(config, name))

    kept = rows("kept")
    assert len(waiting) == 2
    assert not any(away)
    assert rows("moved", "reference", "critic") == kept
    assert len(away) >= 8
    assert all(away)


def test_frozen_weights_in_bfloat16_learn_by_float32_adapters(
    tiny_config: MakeConfig, train: Train, tmp_path: Any
) -> None:
    """A critic that begins from them is float32, and what is saved is what was trained."""
    import torch
    from safetensors.torch import load_file

    made = tiny_config(
        model={"lora": {"rank": 4, "base": "bfloat16"}},
        method={
            "advantage": {"estimator": "gae"},
            "critic": {"learning_rate": 1e-3},
            "loss": {"kl_coef": 0.05},
        },
        optim={"learning_rate": 1e-2},
        eval={"prompts": 0},
        run={"steps": 2},
    )
    rows = train(made)
    assert rows[0]["kl"] == pytest.approx(0, abs=1e-3)
    assert rows[-1]["kl"] > 0
    run = tmp_path / "run"
    dtypes = {
        folder: {value.dtype for value in load_file(run / folder / name).values()}
        for folder, name in (
            ("adapter", "adapter_model.safetensors"),
            ("critic", "model.safetensors"),
            ("model", "model.safetensors"),
        )
    }
    assert dtypes["adapter"] == dtypes["critic"] == {torch.float32}
    assert dtypes["model"] == {torch.float32}


def test_attention_of_another_kind_trains_to_the_same(
    tiny_config: MakeConfig, train: Train, curve: Curve
) -> None:
    def rows(name: str, attention: str) -> list[dict[str, Any]]:
        model = {"attention": attention}
        config = tiny_config(
            model=model, method={"loss": {"kl_coef": 0.05}}, eval={"prompts": 0}, run={"steps": 2}
        )
        return curve(train(config, name))

    eager = rows("eager", "eager")
    same(eager, rows("sdpa", "sdpa"))
    assert eager != rows("default", "")  # another order of the same sums
