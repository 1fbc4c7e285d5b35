"""Credit of agents and turns in whole runs: real episodes of a tiny model, several agents,
conversations of a row, faults of one agent, with and without a critic."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer_support import ExactTransport, built_trainer

Train = Callable[..., list[dict[str, Any]]]
RELAY = f"{Path(__file__).parent.parent / 'relay.py'}:Relay"
AGENTS = ["asker", "solver#1", "solver#2"]
GAE = {"estimator": "gae"}
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # of the environment, of turn_credit, of advantage
    "whole": ({"fresh": True}, {}, {}),
    "agents": ({"agents": AGENTS, "own_rewards": True}, {"unit": "agent"}, {"scale": "none"}),
    "faults": (
        {"agents": AGENTS, "own_rewards": True, "faulty": "solver#1", "fresh": True},
        {"unit": "agent"},
        {"normalise": "role"},
    ),
    "turns": (
        {"turn_rewards": True},
        {"unit": "turn", "discount": 0.9, "episode_weight": 0.5},
        {"estimator": "rloo"},
    ),
    "states": ({"turn_rewards": True}, {"unit": "turn", "compare": "state"}, {}),
    "joined": ({"agents": AGENTS, "own_rewards": True}, {"unit": "agent"}, GAE),
    "independent": ({"turn_rewards": True, "fresh": True}, {"unit": "turn"}, GAE),
    "utterances": ({"turn_rewards": True}, {"unit": "turn", "values": "turns"}, GAE),
}


def config_of(tiny_config: Callable[..., Any], name: str) -> Any:
    settings, credit, advantage = WAYS[name]
    method = {
        "episodes": {"environment": RELAY, "settings": settings},
        "turn_credit": credit,
        "advantage": advantage,
    }
    if advantage.get("estimator") == "gae":
        method["critic"] = {"learning_rate": 1e-3}
    return tiny_config(method=method, eval={"prompts": 0}, run={"steps": 2})


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_it_trains(tiny_config: Callable[..., Any], train: Train, name: str) -> None:
    rows = train(config_of(tiny_config, name))
    assert [row["step"] for row in rows] == [1, 2]
    assert any(row["grad_norm"] > 0 for row in rows)
    assert all(math.isfinite(row["loss"]) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_a_batch_of_real_episodes_is_credited_as_it_says(
    tiny_config: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    with built_trainer(config_of(tiny_config, name), tmp_path, ExactTransport()) as trainer:
        batch = trainer._generate_and_score_completions([])
        fresh = WAYS[name][0].get("fresh", False)
        assert ("context" in batch) == (fresh or len(WAYS[name][0].get("agents", [])) > 1)
        own, trained = batch["own"], batch["loss_mask"]
        assert not (trained & ~own).any()
        assert trained.any()
        assert not batch["advantages"][~trained].isnan().any()
        for row in range(len(own)):  # the tokens of a turn have one advantage, but for a critic's
            for number in range(1, int(batch["turn"][row].max()) + 1):
                told = batch["advantages"][row][batch["turn"][row] == number]
                if name not in ("joined", "independent"):
                    assert (told == told[0]).all()
        if name == "faults":
            alone = (batch["own"] & ~batch["loss_mask"]).any(1)
            assert alone.any()
            assert batch["loss_mask"].any(1).all(), "the other agents stay"
        if name == "utterances":
            turns = (batch["turn"] > 0).sum()
            assert 0 < int(batch["value_mask"].sum()) < int(turns)
        if "context" in batch:  # the first token of a later conversation trains nothing
            starts = batch["context"][:, 1:] > batch["context"][:, :-1]
            assert not (trained[:, 1:] & starts).any()


@pytest.mark.slow
def test_phases_go_on_in_a_resumed_run(tiny_config: Callable[..., Any], train: Train) -> None:
    def config(steps: int) -> Any:
        method = {
            "episodes": {"environment": RELAY, "settings": WAYS["agents"][0]},
            "turn_credit": {"unit": "agent"},
            "phases": {
                "decides": ["solver"], "smoothing": 0.5, "least_steps": 1, "most_steps": 2,
                "play_from_accuracy": 0.99, "decide_from_error": 0.99,
            },
        }  # fmt: skip
        run = {"steps": steps, "checkpoint_every": 1}
        return tiny_config(method=method, eval={"prompts": 0}, run=run)

    def phases(rows: list[dict[str, Any]]) -> list[list[float]]:
        names = ("phases_play", "phases_accuracy", "phases_unsure")
        return [[row[name] for name in names] for row in rows]

    expected = phases(train(config(4), "whole"))
    assert [play for play, _, _ in expected] == [1.0, 1.0, 0.0, 0.0]
    assert 0 < expected[0][1] < 0.5
    train(config(1), "parts")
    assert phases(train(config(4), "parts")) == expected
