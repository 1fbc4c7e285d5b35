"""Settings that spare memory, the table [trl], and packages that are asked for in time."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.kit.errors import ConfigError
from assay.trainer.core.build import check_trl, grpo_config
from assay.trainer.critic.stepping import OPTIMIZERS
from assay.trainer.engines.offload import OffloadedModel
from assay.trainer.engines.requirements import check_installed
from assay.trainer.explain.explanation import explain
from assay.trainer.settings import config as configs
from assay.trainer.settings.trl_options import OWNED


def made(*overrides: str) -> configs.Config:
    return configs.build({}, overrides, origin="test")


def given(config: configs.Config) -> Any:
    return grpo_config(config, Path("out"), on_cuda=False, mixed=False)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["trl.learning_rate=1e-5"], "trl.learning_rate: assay sets it by optim.learning_rate"),
        (["trl.beta=0.1"], "trl.beta: assay sets it by method.loss.kl_coef"),
        (["trl.min_p=0.1"], "trl.min_p: assay samples by \\[rollout\\]"),
        (["trl.fsdp_config={}"], "trl.fsdp_config: the launcher's config says it"),
        (["trl.model_init_kwargs={}"], "trl.model_init_kwargs: assay sets it by model.attention"),
        (['model.lora.base="bfloat16"'], "model.lora.rank = 0 trains them; set model.lora.rank"),
        (["model.offload=[5]"], "model.offload"),
        (['optim.optimizer="adam8"'], "optim.optimizer: expected 'adamw', 'adamw-8bit'"),
    ],
)
def test_what_does_not_go_is_told_in_a_line(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made(*overrides)


def test_what_assay_owns_are_options_of_trl_and_all_that_a_run_sets() -> None:
    """A name that TRL drops, or that we begin to set, is seen here."""
    from trl.trainer.grpo_config import GRPOConfig

    known = {item.name for item in fields(GRPOConfig)}
    assert OWNED.keys() <= known
    seen: dict[str, Any] = {}
    begin = GRPOConfig.__init__

    def init(self: Any, **kwargs: Any) -> None:
        seen.update(kwargs)
        begin(self, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GRPOConfig, "__init__", init)
        given(made())
    assert seen.keys() <= OWNED.keys()


def test_other_options_reach_trl_and_unknown_ones_are_told() -> None:
    config = made("trl.adam_beta2=0.95", "trl.lr_scheduler_kwargs={}", "trl.disable_dropout=true")
    check_trl(config)
    args = given(config)
    assert args.adam_beta2 == 0.95
    assert args.disable_dropout
    assert "of TRL: adam_beta2 = 0.95" in "\n".join(explain(config).sections[-1].lines)
    with pytest.raises(ConfigError, match=r"trl.adam_betta2 is no option .* 'adam_beta2'"):
        check_trl(made("trl.adam_betta2=0.95"))


def test_names_of_optimizers_are_those_of_transformers() -> None:
    from transformers.training_args import OptimizerNames

    assert set(OPTIMIZERS.values()) <= {name.value for name in OptimizerNames}
    assert given(made("optim.optimizer=paged-adamw-8bit")).optim == "paged_adamw_8bit"
    assert given(made()).optim == "adamw_torch_fused"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["rollout.backend=vllm"], r"needs vllm, .* pip install './trainer\[vllm\]'"),
        (["optim.optimizer=adamw-8bit"], r"needs bitsandbytes, .* './trainer\[memory\]'"),
        (["model.liger=true"], r"needs liger-kernel, .* './trainer\[memory\]'"),
        (["model.attention=flash_attention_2"], "needs flash-attn, .* pip install flash-attn"),
        (["model.attention=org/kernel"], "needs kernels, .* pip install kernels"),
    ],
)
def test_a_missing_package_is_a_line_with_its_command(
    overrides: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.trainer.engines.requirements.find_spec", lambda _name: None)
    check_installed(made())
    with pytest.raises(ConfigError, match=message):
        check_installed(made(*overrides))
    monkeypatch.setattr("assay.trainer.engines.requirements.find_spec", lambda name: name)
    check_installed(made(*overrides))


def test_extras_of_the_trainer_name_what_is_asked_for(repository: Path) -> None:
    import tomllib

    extras = tomllib.loads((repository / "trainer" / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert any(name.startswith("vllm") for name in extras["vllm"])
    assert {name.partition(">")[0] for name in extras["memory"]} == {"bitsandbytes", "liger-kernel"}


def test_explained_is_what_spares_memory() -> None:
    config = made(
        "model.lora.rank=8", "model.lora.base=bfloat16", "model.gradient_checkpointing=true",
        "model.attention=flash_attention_2", "model.compile=true", "model.liger=true",
        "optim.optimizer=paged-adamw-8bit", "method.advantage.estimator=gae",
        'model.offload=["critic"]',
    )  # fmt: skip
    lines = "\n".join(explain(config).sections[-1].lines)
    for said in (
        "AdamW (paged-adamw-8bit) on low-rank", "bfloat16 beneath the adapters",
        "activation checkpointing", "attention flash_attention_2", "torch.compile",
        "kernels of liger", "critic in the host's memory",
    ):  # fmt: skip
        assert said in lines


def test_moments_come_for_a_step_and_counters_stay() -> None:
    """On the device "meta", which takes what is moved there away for good."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    waiting = OffloadedModel(model, torch.device("meta"), on=True)
    weights = list(model.parameters())
    waiting.moments(optimizer, here=True)
    states = [optimizer.state[weight] for weight in weights]
    assert {state["exp_avg"].device.type for state in states} == {"meta"}
    assert {state["step"].device.type for state in states} == {"cpu"}
    waiting.leave()
    assert not waiting.here
    assert {weight.device.type for weight in model.parameters()} == {"cpu"}
    waiting.come()
    assert {weight.device.type for weight in model.parameters()} == {"meta"}
    kept = torch.nn.Linear(3, 2)
    still = OffloadedModel(kept, torch.device("meta"), on=False)
    still.leave()
    still.come()
    assert kept.weight.device.type == "cpu"
