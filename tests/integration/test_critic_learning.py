"""A critic learns what decides the return, and several processes learn what one does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import critic_support as support
from assay.trainer.algos.packing import Packing
from assay.trainer.critic import objective
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.model import load_critic
from assay.trainer.critic.pretraining import (
    Experience,
    Updates,
    check_floor,
    measure,
    monte_carlo_returns,
    pretrain,
)
from assay.trainer.critic.trunk import TrunkCritic
from assay.trainer.settings.objective import CriticConfig
from genrm_support import make_model

ROWS, PROMPT, LENGTH = 32, 2, 6
FIRSTS = torch.tensor([20, 21, 22, 23])


@pytest.fixture(scope="module")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    support.policy(folder)
    return folder


def rollout(seed: int) -> Experience:
    """The first token decides the reward at the end, 1 or -1.

    No critic can know before that token: of six values five can be right, and the explained
    variance is at most 5 / 6.
    """
    batch = support.batch_of(ROWS, PROMPT, LENGTH, seed=seed)
    batch["completion_mask"][:] = 1
    batch["prompt_mask"][:] = 1
    generator = torch.Generator().manual_seed(seed)
    first_N = FIRSTS[torch.randint(len(FIRSTS), (ROWS,), generator=generator)]
    batch["completion_ids"][:, 0] = first_N
    rewards_BT = torch.zeros(ROWS, LENGTH)
    rewards_BT[:, -1] = 1.0 - 2.0 * (first_N % 2).float()
    return Experience(batch, rewards_BT, batch["completion_mask"].bool())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["mse", "hl-gauss"])
def test_it_learns_what_decides_the_return(policy_folder: Path, loss: Any, seed: int) -> None:
    config = CriticConfig(
        loss=loss, learning_rate=3e-3, pretrain_steps=60, pretrain_patience=60,
        bins=21, value_min=-1.5, value_max=1.5, min_explained_variance=0.5,
        below_minimum="refuse",
    )  # fmt: skip
    model = load_critic(config, support.read_policy(policy_folder), print)
    engine = support.accelerator()
    rows: list[Any] = []

    def stop_when_known(row: Any, _position: Any) -> None:
        rows.append(row)
        if row.explained_variance > 0.6:
            raise StopIteration

    with pytest.raises(StopIteration):
        pretrain(
            Critic(model, config, engine),
            lambda step: rollout(1000 * seed + step),
            config,
            Updates(packing=Packing(ROWS)),
            engine,
            on_step=stop_when_known,
        )
    assert len(rows) <= 60
    assert rows[0].explained_variance < 0.1
    assert rows[-1].value_loss < rows[0].value_loss
    assert check_floor(rows[-1].explained_variance, config) == ""


def test_pre_training_ends_by_itself_when_it_knows_all_there_is(policy_folder: Path) -> None:
    config = CriticConfig(learning_rate=3e-3, pretrain_steps=200, pretrain_patience=8)
    model = load_critic(config, support.read_policy(policy_folder), print)
    engine = support.accelerator()
    position = pretrain(
        Critic(model, config, engine), rollout, config, Updates(packing=Packing(ROWS)), engine
    )
    assert position.finished(config) == "plateau"
    assert position.plateau.best_explained > 0.6


def test_a_shared_trunk_learns_it_as_well(policy_folder: Path) -> None:
    config = CriticConfig(sharing="trunk", learning_rate=3e-3, coef=1.0)
    model = support.read_policy(policy_folder).model.train()
    engine = support.accelerator()
    critic = TrunkCritic(model, config, engine)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    explained = -1.0
    for step in range(60):
        experience = rollout(step)
        batch, mask_BT = experience.batch, experience.mask_BT
        returns_BT = monte_carlo_returns(experience.rewards_BT, mask_BT, gamma=1.0)
        values_BT = critic.values(batch, support.passes(batch, ROWS))
        explained = measure(values_BT, returns_BT, mask_BT, engine).explained_variance
        if explained > 0.6:
            break
        with critic.watch():
            model(**objective.model_inputs(batch))
        loss, _ = critic.loss_from_last_forward(
            batch, returns_BT, values_BT, mask_BT, tokens=mask_BT.sum()
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        critic.step()
    assert explained > 0.6


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Two processes on this machine, and what each of them found."""
    folder = tmp_path_factory.mktemp("processes")
    make_model(folder / "policy", "causal", hidden=32)
    make_model(folder / "reward", "scalar", hidden=32, seed=1)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {
        **os.environ,
        "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1",
        "PYTHONPATH": str(Path(support.__file__).parent),
    }  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, support.__file__, str(folder)],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        texts = [process.communicate(timeout=240)[0] for process in processes]
    finally:
        for process in processes:
            with process:  # waits for it, and closes its pipe
                process.kill()
    assert [p.returncode for p in processes] == [0, 0], "\n".join(t[-2000:] for t in texts)
    return folder, [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def norms(reports: list[dict[str, float]]) -> list[float]:
    return [report["grad_norm"] for report in reports]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["ranks", "fsdp2"])
def test_two_processes_learn_what_one_does(ranks: tuple[Path, list[Any]], mode: str) -> None:
    folder, found = ranks
    assert found[0][mode][:3] == found[1][mode][:3]
    reports, again, explained, _ = found[0][mode]
    config = CriticConfig(learning_rate=1e-3, init=str(folder / "reward"))
    saved = CriticConfig(init=str(folder / mode))
    policy, engine = support.read_policy(folder / "policy"), support.accelerator()
    critic = Critic(load_critic(config, policy, print), config, engine)
    assert norms(reports) == pytest.approx(norms(support.train(critic)), rel=1e-4)
    one, two = support.weights(critic.model), load_critic(saved, policy, print)
    for name, weight in support.weights(two).items():
        torch.testing.assert_close(weight, one[name], rtol=1e-3, atol=2e-5)
    # there it was saved, trained on and loaded before it went on
    assert norms(again) == pytest.approx(norms(support.train(critic)), rel=1e-2)
    assert explained == pytest.approx(explained_by(critic), rel=2e-2)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["ranks", "fsdp2"])
def test_a_shared_trunk_learns_with_two_what_it_does_with_one(
    ranks: tuple[Path, list[Any]], mode: str
) -> None:
    folder, found = ranks
    model = support.read_fused(folder / "policy")
    config = CriticConfig(sharing="trunk", learning_rate=1e-2)
    critic = TrunkCritic(model, config, support.accelerator())
    expected = support.train_trunk(model, critic)
    for number, (norm, values) in enumerate(expected):
        first, second = (rank[mode][3][number] for rank in found)
        assert first[0] == second[0]
        assert first[0] == pytest.approx(norm, rel=1e-3)
        assert first[1] + second[1] == pytest.approx(values, rel=1e-3)


def explained_by(critic: Critic) -> float:
    """Of the rows of both processes, whose responses are padded differently."""
    values, targets = [], []
    for rank in range(2):
        batch = support.batch_of(seed=rank, length=4 + rank)
        kept = batch["completion_mask"].bool()
        values.append(critic.values(batch, support.passes(batch, 8))[kept])
        targets.append(support.targets_of(batch, seed=rank)[kept])
    flat, goal = torch.cat(values)[None], torch.cat(targets)[None]
    found = measure(flat, goal, torch.ones_like(flat), support.accelerator())
    return found.explained_variance
