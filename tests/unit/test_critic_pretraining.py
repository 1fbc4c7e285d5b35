"""When value pre-training stops, what it reports, and what it asks for before the policy moves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import critic_support as support
from assay.kit.errors import ConfigError
from assay.trainer.algos.gae import explained_variance
from assay.trainer.algos.packing import Packing
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.model import load_critic
from assay.trainer.critic.pretraining import (
    Experience,
    Plateau,
    Position,
    PretrainingStep,
    Updates,
    check_floor,
    measure,
    monte_carlo_returns,
    pretrain,
)
from assay.trainer.settings.objective import CriticConfig

UPDATES = Updates(mini_batches=2, packing=Packing(2), epochs=2, seed=5)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return support.policy(tmp_path_factory.mktemp("policy"))


def make(policy: Any, config: CriticConfig) -> Critic:
    return Critic(load_critic(config, policy, print), config, support.accelerator())


def collect(step: int) -> Experience:
    """A rollout that the step's number decides: the reward is at the end, 1 or 0."""
    batch = support.batch_of(seed=step)
    mask_BT = batch["completion_mask"].bool()
    rewards_BT = torch.zeros(mask_BT.shape)
    ends = mask_BT.sum(dim=1) - 1
    rewards_BT[torch.arange(8), ends] = (batch["completion_ids"][:, 0] > 150).float()
    return Experience(batch, rewards_BT, mask_BT)


def run(
    critic: Critic, config: CriticConfig, **settings: Any
) -> tuple[list[PretrainingStep], Position]:
    rows: list[PretrainingStep] = []
    position = pretrain(
        critic, settings.pop("collect", collect), config, UPDATES, support.accelerator(),
        on_step=lambda row, _: rows.append(row), **settings,
    )  # fmt: skip
    return rows, position


def test_it_stops_at_its_limit_and_reports_every_step(policy: Any) -> None:
    config = CriticConfig(learning_rate=1e-3, pretrain_steps=4)
    critic = make(policy, config)
    rows, position = run(critic, config)
    assert [row.step for row in rows] == [1, 2, 3, 4]
    assert position.finished(config) == "steps"
    assert critic.steps == 4 * UPDATES.mini_batches * UPDATES.epochs
    assert rows[0].explained_variance == pytest.approx(0.0)  # V is 0 before the first update
    assert all(row.lr == 1e-3 and row.grad_norm > 0 and row.tokens > 8 for row in rows)


def test_explained_variance_is_of_the_critic_before_it_has_learnt(policy: Any) -> None:
    config = CriticConfig(learning_rate=1e-3, pretrain_steps=3)
    critic = make(policy, config)
    expected = []

    def spied(step: int) -> Experience:
        experience = collect(step)
        returns_BT = monte_carlo_returns(experience.rewards_BT, experience.mask_BT, gamma=1.0)
        values_BT = critic.values(experience.batch, support.passes(experience.batch, 8))
        expected.append(float(explained_variance(values_BT, returns_BT, experience.mask_BT)))
        return experience

    rows, position = run(critic, config, collect=spied)
    assert [row.explained_variance for row in rows] == pytest.approx(expected, abs=1e-5)
    assert position.explained == rows[-1].explained_variance


def test_it_stops_where_nothing_improves(policy: Any) -> None:
    config = CriticConfig(learning_rate=1e-9, pretrain_steps=50, pretrain_patience=3)
    rows, position = run(make(policy, config), config, collect=lambda _: collect(1))
    assert len(rows) == 4  # the first sets both bests
    assert position.finished(config) == "plateau"


def test_the_targets_are_the_rewards_to_go(policy: Any) -> None:
    rewards = torch.tensor([[0.0, 1.0, 0.0, 4.0], [9.0, 2.0, 9.0, 9.0]])
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 0, 0]])
    found = monte_carlo_returns(rewards, mask, gamma=0.5)
    assert found.tolist() == [[1.0, 2.0, 2.0, 4.0], [0.0, 2.0, 0.0, 0.0]]


def test_interrupted_and_resumed_is_uninterrupted(policy: Any, tmp_path: Path) -> None:
    config = CriticConfig(learning_rate=1e-3, pretrain_steps=5, pretrain_patience=4)
    whole = make(policy, config)
    rows, final = run(whole, config)

    class StopError(Exception):
        pass

    saved: list[Any] = []

    def save_and_stop(row: PretrainingStep, position: Position) -> None:
        if row.step == 2:
            first.save(tmp_path)
            saved.append(position.state_dict())
            raise StopError

    first = make(policy, config)
    with pytest.raises(StopError):
        pretrain(first, collect, config, UPDATES, support.accelerator(), on_step=save_and_stop)
    torch.save(saved[0], tmp_path / "position.pt")  # plain data
    state = torch.load(tmp_path / "position.pt", weights_only=True)
    second = make(policy, config)
    second.load(tmp_path)
    rest, position = run(second, config, position=Position.from_state(state))
    assert rest == rows[2:]
    assert position == final
    other = support.weights(second.model)
    assert all(torch.equal(w, other[name]) for name, w in support.weights(whole.model).items())


def test_a_rollout_of_faults_alone_moves_and_counts_nothing(policy: Any) -> None:
    config = CriticConfig(learning_rate=1e-3, pretrain_steps=3, pretrain_patience=1)

    def faulted(step: int) -> Experience:
        experience = collect(step)
        return Experience(
            experience.batch,
            torch.full_like(experience.rewards_BT, float("nan")),
            torch.zeros_like(experience.mask_BT),
        )

    critic = make(policy, config)
    before = support.weights(critic.model)
    rows, position = run(critic, config, collect=faulted)
    assert len(rows) == 3
    assert position.plateau == Plateau(1)
    assert math.isnan(position.explained)
    assert all(row.tokens == 0 and math.isnan(row.value_loss) for row in rows)
    assert critic.steps == 0
    assert all(torch.equal(w, before[name]) for name, w in critic.model.named_parameters())


def test_nothing_is_left_to_do_at_the_end(policy: Any) -> None:
    config = CriticConfig(pretrain_steps=3)
    done = Position(3, Plateau(10), 0.4)
    assert run(make(policy, config), config, position=done) == ([], done)


def test_measured_are_the_value_tokens_alone() -> None:
    values = torch.tensor([[1.0, 2.0, 50.0], [3.0, 40.0, 60.0]])
    returns = torch.tensor([[1.0, 3.0, float("nan")], [3.0, float("nan"), 7.0]])
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    found = measure(values, returns, mask, support.accelerator())
    assert found.returns_mean == pytest.approx(7 / 3)
    assert found.values_mean == pytest.approx(2.0)
    assert found.returns_std == pytest.approx(torch.tensor([1.0, 3, 3]).std(correction=0).item())
    assert found.explained_variance == pytest.approx(1 - (1 / 3) / (4 / 3))


FLOOR = CriticConfig(min_explained_variance=0.3)


@pytest.mark.parametrize("explained", [0.29, -5.0, float("nan")])
def test_below_the_floor_it_warns_refuses_or_ignores(explained: float) -> None:
    text = check_floor(explained, FLOOR)
    assert "below method.critic.min_explained_variance = 0.3" in text
    assert "method.critic.pretrain_steps" in text
    assert ("all returns are equal" in text) == math.isnan(explained)
    refusing = CriticConfig(min_explained_variance=0.3, below_minimum="refuse")
    with pytest.raises(ConfigError, match=r'below_minimum = "warn"'):
        check_floor(explained, refusing)
    ignoring = CriticConfig(min_explained_variance=0.3, below_minimum="ignore")
    assert check_floor(explained, ignoring) == ""


def test_at_the_floor_it_is_silent() -> None:
    assert check_floor(0.3, FLOOR) == ""
    assert check_floor(1.0, CriticConfig(min_explained_variance=0.3, below_minimum="refuse")) == ""
