"""The critic that is a model of its own: what each value has seen, and what moves it."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.utils import DistributedType
from torch import Tensor, nn

import critic_support as support
from assay.kit.errors import ConfigError
from assay.trainer.critic import objective
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.model import load_critic
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.objective import CriticConfig

CONFIG = CriticConfig(learning_rate=1e-3)
LOSSES: tuple[Any, ...] = ("mse", "clipped", "hl-gauss", "two-hot")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return support.policy(tmp_path_factory.mktemp("policy"))


def make(policy: Any, config: CriticConfig = CONFIG, *, head: int | None = 0) -> Critic:
    """A critic; its head is random by a seed, for one of zeros is blind to what is below."""
    torch.manual_seed(head or 0)
    model = load_critic(config, policy, print)
    if head is not None:
        nn.init.normal_(model.score.weight, std=0.3)
    return Critic(model, config, support.accelerator())


class PrefixSum(nn.Module):
    """Its output at a position is the sum of the tokens up to there, and no other."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        seen = (input_ids * attention_mask).cumsum(dim=1).float()
        assert input_ids.shape[1] == attention_mask.sum(1).max(), "as wide as the longest row"
        return types.SimpleNamespace(logits=(self.scale * seen).unsqueeze(-1))


def test_a_value_has_seen_the_prompt_and_the_tokens_before_it() -> None:
    critic = Critic(PrefixSum(), CONFIG, support.accelerator())
    batch = {
        "prompt_ids": torch.tensor([[0, 7, 9], [1, 2, 3]]),
        "prompt_mask": torch.tensor([[0, 1, 1], [1, 1, 1]]),
        "completion_ids": torch.tensor([[100, 200, 400, 800], [1000, 2000, 0, 0]]),
        "completion_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
    }
    expected = [[16.0, 116.0, 316.0, 716.0], [6.0, 1006.0, 0.0, 0.0]]
    assert critic.values(batch, support.passes(batch, 1)).tolist() == expected
    assert critic.values(batch, support.passes(batch, 2)).tolist() == expected


@pytest.mark.parametrize("changed", range(6))
def test_a_changed_token_changes_only_later_values(policy: Any, changed: int) -> None:
    critic = make(policy)
    batch = support.batch_of()
    batch["completion_mask"][:] = 1
    before = critic.values(batch, support.passes(batch, 8))
    batch["completion_ids"][:, changed] = 4
    after = critic.values(batch, support.passes(batch, 8))
    assert torch.equal(before[:, : changed + 1], after[:, : changed + 1])
    assert (before[:, changed + 1 :] != after[:, changed + 1 :]).all()


@pytest.mark.parametrize("kind", ["rotary", "absolute"])
def test_padding_does_not_move_a_value(policy: Any, kind: str) -> None:
    critic = make(policy) if kind == "rotary" else absolute_positions()
    batch = support.batch_of()
    wider = {
        **{key: nn.functional.pad(batch[key], (5, 0)) for key in ("prompt_ids", "prompt_mask")},
        **{
            key: nn.functional.pad(batch[key], (0, 3))
            for key in ("completion_ids", "completion_mask")
        },
    }
    narrow, wide = (critic.values(one, support.passes(one, 8)) for one in (batch, wider))
    torch.testing.assert_close(wide[:, :6], narrow, rtol=1e-4, atol=1e-5)
    assert (wide[:, 6:] == 0).all()
    one = support.take(batch, slice(3, 4))
    alone = critic.values(one, support.passes(one, 1))
    torch.testing.assert_close(alone, narrow[3:4], rtol=1e-4, atol=1e-5)


def absolute_positions() -> Critic:
    from transformers import GPT2Config, GPT2ForTokenClassification

    torch.manual_seed(0)
    shape = GPT2Config(
        vocab_size=300, n_positions=64, n_embd=32, n_layer=1, n_head=2, num_labels=1,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, classifier_dropout=0.0,
        initializer_range=0.5,
    )  # fmt: skip
    return Critic(GPT2ForTokenClassification(shape), CONFIG, support.accelerator())


@pytest.mark.parametrize("loss", LOSSES)
def test_it_starts_from_zero(policy: Any, loss: Any) -> None:
    critic = make(policy, CriticConfig(loss=loss), head=None)
    assert (
        critic.values(support.batch_of(), support.passes(support.batch_of(), 3)).abs().max() < 1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("split", [1, 3, 8])
def test_splits_give_the_same_gradient(policy: Any, loss: Any, split: int) -> None:
    config = CriticConfig(loss=loss, clip=0.05)
    batch, returns_BT = support.batch_of(), support.targets_of(support.batch_of())
    gradients = []
    for size in (8, split):
        critic = make(policy, config)
        old_BT = critic.values(batch, support.passes(batch, 8)) + 0.1
        for part in torch.arange(8).split(size):
            critic.backward(
                support.take(batch, part), returns_BT[part], old_BT[part],
                batch["completion_mask"][part], tokens=batch["completion_mask"].sum(),
            )  # fmt: skip
        gradients.append({name: w.grad for name, w in critic.model.named_parameters()})
    for name, whole in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], whole, rtol=1e-3, atol=1e-6)


def test_the_gradient_is_of_the_mean_over_the_mini_batch(policy: Any) -> None:
    critic = make(policy)
    batch, returns_BT = support.batch_of(), support.targets_of(support.batch_of())
    mask_BT = batch["completion_mask"]
    sums = critic.backward(batch, returns_BT, returns_BT, mask_BT, tokens=mask_BT.sum())
    found = critic.model.score.bias.grad.clone()
    values_BT = critic.values(batch, support.passes(batch, 8))
    error_N = (values_BT - returns_BT)[mask_BT.bool()]
    torch.testing.assert_close(found, error_N.mean().view(1))  # d/db of mean (V - R)^2 / 2
    assert float(sums["loss"]) == pytest.approx(float(error_N.square().sum() / 2), rel=1e-5)
    assert float(sums["squared_error"]) == pytest.approx(2 * float(sums["loss"]), rel=1e-5)
    assert float(sums["tokens"]) == int(mask_BT.sum())


@pytest.mark.parametrize("loss", LOSSES)
def test_faulted_rows_never_move_it(policy: Any, loss: Any) -> None:
    batch, returns_BT = support.batch_of(), support.targets_of(support.batch_of())
    old_BT = torch.zeros_like(returns_BT)
    mask_BT = batch["completion_mask"].clone()
    mask_BT[[1, 4]] = 0
    moved = []
    for poison in (0.0, float("nan"), 1e9):
        critic = make(policy, CriticConfig(loss=loss, learning_rate=1e-3))
        returns_BT[[1, 4]] = old_BT[[1, 4]] = poison
        sums = critic.backward(batch, returns_BT, old_BT, mask_BT, tokens=mask_BT.sum())
        assert all(torch.isfinite(x) for x in sums.values())
        assert critic.step()["grad_norm"] > 0
        moved.append(support.weights(critic.model))
    kept = torch.tensor([0, 2, 3, 5, 6, 7])  # and without these rows at all
    critic = make(policy, CriticConfig(loss=loss, learning_rate=1e-3))
    critic.backward(
        support.take(batch, kept), returns_BT[kept], old_BT[kept], mask_BT[kept],
        tokens=mask_BT.sum(),
    )  # fmt: skip
    critic.step()
    for name, weight in support.weights(critic.model).items():
        assert torch.equal(moved[0][name], moved[1][name])
        assert torch.equal(moved[0][name], moved[2][name])
        # a first step of Adam is lr * sign(gradient), so tiny gradients may differ by that
        assert (moved[0][name] - weight).abs().max() <= 2e-3


@pytest.mark.parametrize("before", [0, 2])
def test_a_mini_batch_without_value_tokens_moves_nothing(policy: Any, before: int) -> None:
    critic = make(policy, CriticConfig(learning_rate=1e-3, weight_decay=0.1))
    if before:
        support.train(critic)
    weights, steps = support.weights(critic.model), critic.steps
    moments = repr(critic._stepper.optimizer.state_dict())
    batch = support.batch_of()
    nan_BT = torch.full((8, 6), float("nan"))
    sums = critic.backward(batch, nan_BT, nan_BT, torch.zeros(8, 6), tokens=torch.tensor(0))
    assert float(sums["tokens"]) == 0
    assert critic.step() == {"grad_norm": 0.0, "lr": 0.0}
    assert critic.step() == {"grad_norm": 0.0, "lr": 0.0}  # nor without any backward pass
    assert critic.steps == steps
    assert repr(critic._stepper.optimizer.state_dict()) == moments
    assert all(torch.equal(w, weights[name]) for name, w in critic.model.named_parameters())


def test_a_gradient_that_is_no_number_stops_the_run_and_moves_nothing(policy: Any) -> None:
    critic = make(policy)
    support.train(critic)
    weights = support.weights(critic.model)
    batch = support.batch_of()
    nan_BT = torch.full((8, 6), float("nan"))  # within the mask: somebody's mistake
    critic.backward(batch, nan_BT, nan_BT, batch["completion_mask"], tokens=torch.tensor(9))
    with pytest.raises(TrainingStoppedError, match=r"the gradient of the critic is nan; lower"):
        critic.step()
    assert all(torch.equal(w, weights[name]) for name, w in critic.model.named_parameters())
    assert support.train(critic)[0]["grad_norm"] > 0  # and nothing of it is left


def test_the_rate_rises_to_a_constant(policy: Any) -> None:
    critic = make(policy, CriticConfig(learning_rate=0.4, warmup_steps=4, max_grad_norm=1e-6))
    rates = [report["lr"] for report in support.train(critic) + support.train(critic)]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4, 0.4])


def test_gradients_are_clipped_and_reported_before(policy: Any) -> None:
    def one_step(limit: float) -> tuple[float, Tensor]:
        critic = make(policy, CriticConfig(learning_rate=1e-3, max_grad_norm=limit))
        report = support.train(critic)[0]
        moments = critic._stepper.optimizer.state[critic.model.score.weight]
        return report["grad_norm"], moments["exp_avg"].norm()

    free, freely = one_step(0.0)
    clipped, barely = one_step(1e-3)
    assert clipped == pytest.approx(free)
    assert barely < freely / 10


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["mse", "two-hot"])
@pytest.mark.parametrize("trained", [False, True])
def test_a_saved_critic_goes_on_bit_for_bit(
    policy: Any, tmp_path: Path, loss: Any, trained: bool
) -> None:
    config = CriticConfig(loss=loss, learning_rate=1e-3, warmup_steps=5, weight_decay=0.01)
    first = make(policy, config)
    if trained:
        support.train(first)
    first.save(tmp_path / "critic")
    second = make(policy, config, head=7)
    if trained:
        support.train(second, micro_batch=1)  # whatever it was before
    second.load(tmp_path / "critic")
    assert second.steps == first.steps
    reports = support.train(first), support.train(second)
    assert reports[0] == reports[1]
    other = support.weights(second.model)
    assert all(torch.equal(w, other[name]) for name, w in support.weights(first.model).items())


def test_a_saved_critic_of_another_meaning_is_refused(policy: Any, tmp_path: Path) -> None:
    make(policy, CriticConfig(loss="hl-gauss")).save(tmp_path)
    with pytest.raises(ConfigError, match=r"51 bins from -1.0 to 1.0.*reads one output"):
        make(policy, CONFIG).load(tmp_path)
    make(policy, CriticConfig(loss="two-hot")).load(tmp_path)  # the same histogram


def test_engines_that_hold_one_model_only_are_refused() -> None:
    for kind, word in ((DistributedType.DEEPSPEED, "DeepSpeed"), (DistributedType.FSDP, "FSDP2")):
        engine = types.SimpleNamespace(distributed_type=kind, is_fsdp2=False)
        with pytest.raises(ConfigError, match=word):
            Critic(PrefixSum(), CONFIG, engine)


def test_the_policy_stays_as_it_is(policy: Any) -> None:
    before = support.weights(policy.model)
    support.train(make(policy))
    assert all(torch.equal(w, before[name]) for name, w in policy.model.named_parameters())


def test_only_the_moved_and_the_outside_are_counted() -> None:
    outputs = torch.tensor([[0.5, 0.0, 9.0]]).unsqueeze(-1)
    old, returns = torch.zeros(1, 3), torch.tensor([[0.0, 2.0, 3.0]])
    mask = torch.tensor([[1, 1, 0]])
    clipped = CriticConfig(loss="clipped", clip=0.2)
    _, sums = objective.value_loss(outputs, old, returns, mask, clipped)
    assert (float(sums["clipped"]), float(sums["outside"])) == (1.0, 0.0)
    logits = torch.zeros(1, 3, 51)
    _, sums = objective.value_loss(logits, old, returns, mask, CriticConfig(loss="hl-gauss"))
    assert (float(sums["clipped"]), float(sums["outside"])) == (0.0, 1.0)
