"""The value head on the policy: it sees the loss's own forward pass, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import critic_support as support
from assay.kit.errors import ConfigError
from assay.trainer.algos import packing
from assay.trainer.critic.trunk import TrunkCritic
from assay.trainer.settings.objective import CriticConfig

CONFIG = CriticConfig(sharing="trunk", learning_rate=1e-3, coef=0.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    support.policy(folder)
    return folder


def make(folder: Path, config: CriticConfig = CONFIG, *, zeros: bool = False) -> Any:
    """A policy with TRL's fused head, and a critic on it whose head is not zeros."""
    model = support.read_fused(folder)
    critic = TrunkCritic(model, config, support.accelerator())
    if not zeros:
        torch.manual_seed(0)
        torch.nn.init.normal_(critic.head.weight, std=0.3)
    return model, critic


def losses(model: Any, critic: TrunkCritic, batch: Any, rows: Any) -> tuple[Any, Any]:
    """A stand-in for the policy's loss, and the value loss of the same pass."""
    part, mask_BT = support.take(batch, rows), batch["completion_mask"]
    with critic.watch():
        logps_BT = support.logps_of(model, part)
    policy = -(logps_BT * part["completion_mask"]).sum() / mask_BT.sum()
    returns_BT = support.targets_of(batch)[rows]
    value, sums = critic.loss_from_last_forward(
        part, returns_BT, torch.zeros_like(returns_BT), mask_BT[rows], tokens=mask_BT.sum()
    )
    return policy, (value, sums)


def gradients(model: Any) -> dict[str, torch.Tensor]:
    return {name: w.grad.clone() for name, w in model.named_parameters() if w.grad is not None}


def test_values_are_those_of_the_losss_own_pass(folder: Path) -> None:
    model, critic = make(folder)
    batch = support.batch_of()
    values_BT = critic.values(batch, support.passes(batch, 3))
    _, (value, sums) = losses(model, critic, batch, slice(None))
    error = (values_BT - support.targets_of(batch))[batch["completion_mask"].bool()]
    assert float(sums["squared_error"]) == pytest.approx(float(error.square().sum()), rel=1e-5)
    assert value.item() == pytest.approx(0.5 * float(error.square().mean() / 2), rel=1e-5)
    assert model.training


def test_a_value_has_seen_only_what_is_before_its_token(folder: Path) -> None:
    _, critic = make(folder)
    batch = support.batch_of()
    batch["completion_mask"][:] = 1
    before = critic.values(batch, support.passes(batch, 8))
    batch["completion_ids"][:, 2] = 4
    after = critic.values(batch, support.passes(batch, 8))
    assert torch.equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).all()


def test_the_policy_loss_is_untouched(folder: Path) -> None:
    model, critic = make(folder)
    batch = support.batch_of()
    bare = support.read_fused(folder)
    with critic.watch():
        watched = support.logps_of(model, batch)
    assert torch.equal(watched, support.logps_of(bare, batch))
    assert torch.equal(watched, support.logps_of(model, batch))  # and outside of watch()


def test_the_value_gradient_reaches_head_and_trunk(folder: Path) -> None:
    model, critic = make(folder)
    _, (value, _) = losses(model, critic, support.batch_of(), slice(None))
    value.backward()
    assert critic.head.weight.grad is not None
    assert critic.head.weight.grad.abs().sum() > 0
    reached = gradients(model)
    assert "lm_head.weight" not in reached
    trunk = {name for name, _ in model.named_parameters()} - {"lm_head.weight"}
    assert reached.keys() == trunk
    assert all(g.abs().sum() > 0 for g in reached.values())


def test_a_head_of_zeros_does_not_push_the_trunk(folder: Path) -> None:
    model, critic = make(folder, zeros=True)
    assert not critic.values(support.batch_of(), support.passes(support.batch_of(), 8)).any()
    _, (value, _) = losses(model, critic, support.batch_of(), slice(None))
    value.backward()
    assert all(not g.any() for g in gradients(model).values())
    assert critic.step()["grad_norm"] > 0
    assert critic.head.weight.any()


def test_with_a_vanishing_coefficient_only_the_policy_loss_moves_the_trunk(folder: Path) -> None:
    batch, found = support.batch_of(), []
    for coef in (None, 1e-12, 0.5):
        model, critic = make(folder, CriticConfig(sharing="trunk", coef=coef or 1.0))
        policy, (value, _) = losses(model, critic, batch, slice(None))
        (policy + value if coef else policy).backward()
        found.append(gradients(model))
    for name, alone in found[0].items():
        torch.testing.assert_close(found[1][name], alone, rtol=1e-5, atol=1e-7)
    name = "model.layers.0.mlp.down_proj.weight"
    assert not torch.allclose(found[2][name], found[0][name], rtol=1e-2)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_splits_give_the_same_gradient(folder: Path, checkpointing: bool) -> None:
    batch, found = support.batch_of(), []
    for size in (8, 3):
        model, critic = make(folder)
        if checkpointing and size < 8:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        for part in torch.arange(8).split(size):
            policy, (value, _) = losses(model, critic, batch, part)
            (policy + value).backward()
        found.append({**gradients(model), "head": critic.head.weight.grad})
    for name, whole in found[0].items():
        torch.testing.assert_close(found[1][name], whole, rtol=1e-3, atol=1e-6)


def test_a_pass_in_chunks_is_one_pass(folder: Path) -> None:
    model, critic = make(folder)
    batch = support.batch_of()
    with critic.watch():
        rows = packing.laid(batch)
        for part in torch.arange(8).split(3):
            model(input_ids=rows.ids_SL[part], attention_mask=rows.mask_SL[part])
    mask_BT, targets_BT = batch["completion_mask"], support.targets_of(batch)
    chunked, _ = critic.loss_from_last_forward(
        batch, targets_BT, targets_BT, mask_BT, tokens=mask_BT.sum()
    )
    _, (whole, _) = losses(model, critic, batch, slice(None))
    torch.testing.assert_close(chunked, whole)


def test_nothing_watched_is_a_mistake(folder: Path) -> None:
    model, critic = make(folder)
    batch = support.batch_of()
    targets_BT, tokens = support.targets_of(batch), batch["completion_mask"].sum()
    support.logps_of(model, batch)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"within watch\(\)"):
            critic.loss_from_last_forward(
                batch, targets_BT, targets_BT, batch["completion_mask"], tokens=tokens
            )
        losses(model, critic, batch, slice(None))  # a pass is used up by its loss


def test_faulted_rows_push_neither_head_nor_trunk(folder: Path) -> None:
    model, critic = make(folder)
    batch = support.batch_of()
    nan_BT = torch.full((8, 6), float("nan"))
    with critic.watch():
        support.logps_of(model, batch)
    value, _ = critic.loss_from_last_forward(
        batch, nan_BT, nan_BT, torch.zeros(8, 6), tokens=torch.tensor(0)
    )
    value.backward()
    assert all(not g.any() for g in gradients(model).values())
    before = critic.head.weight.clone()
    assert critic.step() == {"grad_norm": 0.0, "lr": 0.0}
    assert torch.equal(critic.head.weight, before)


def test_a_saved_head_goes_on_bit_for_bit(folder: Path, tmp_path: Path) -> None:
    def train(model: Any, critic: TrunkCritic) -> list[float]:
        norms = []
        for seed in range(3):
            _, (value, _) = losses(model, critic, support.batch_of(seed=seed), slice(None))
            value.backward()
            norms.append(critic.step()["grad_norm"])
        return norms

    model, first = make(folder)
    train(model, first)
    first.save(tmp_path)
    second = TrunkCritic(model, CONFIG, support.accelerator())
    second.load(tmp_path)
    assert (first.steps, second.steps) == (3, 3)
    assert train(model, first) == train(model, second)
    assert torch.equal(first.head.weight, second.head.weight)
    with pytest.raises(ConfigError, match=r"has values of one output"):
        make(folder, CriticConfig(sharing="trunk", loss="two-hot"))[1].load(tmp_path)


def test_it_works_on_a_policy_with_adapters(folder: Path) -> None:
    peft = pytest.importorskip("peft", reason="PEFT is not installed")
    settings = peft.LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM")
    model = peft.get_peft_model(support.read_fused(folder), settings)
    critic = TrunkCritic(model, CONFIG, support.accelerator())
    torch.nn.init.ones_(critic.head.weight)
    batch = support.batch_of()
    assert critic.values(batch, support.passes(batch, 8)).any()
    _, (value, _) = losses(model, critic, batch, slice(None))
    value.backward()
    reached = gradients(model)
    assert reached
    assert all("lora" in name for name in reached)


def test_classes_of_returns_have_a_head_of_their_size(folder: Path) -> None:
    config = CriticConfig(sharing="trunk", loss="hl-gauss", bins=7, value_min=0.0)
    model, critic = make(folder, config, zeros=True)
    assert critic.head.out_features == 7
    values_BT = critic.values(support.batch_of(), support.passes(support.batch_of(), 8))
    kept = support.batch_of()["completion_mask"].bool()
    torch.testing.assert_close(values_BT[kept], torch.full((int(kept.sum()),), 0.5))
    losses(model, critic, support.batch_of(), slice(None))[1][0].backward()
