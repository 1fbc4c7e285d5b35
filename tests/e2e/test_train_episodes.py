"""Runs whose responses are episodes, in an environment of one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows
from trainer_support import SUMS

FILE = Path(__file__).with_name("environment_again.py")


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sums with columns of the environment's own; every tenth breaks it."""
    path = tmp_path_factory.mktemp("episodes") / "sums.jsonl"
    told = [
        {"question": f"{a}+{b}=", "answer": str(a + b), "level": n % 2, "breaks": n % 10 == 3}
        for n, (a, b) in enumerate(SUMS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in told), encoding="utf-8")
    return path


@pytest.fixture
def episodes(tiny_config: Any, rows_file: Path) -> Any:
    def make(kind: str = "Again", method: Any = None, **sections: Any) -> Any:
        own = {"episodes": {"environment": f"{FILE}:{kind}", "format": "tagged"}, **(method or {})}
        sections.setdefault("eval", {"prompts": 10})
        sections["run"] = {"steps": 2, **sections.get("run", {})}
        return tiny_config(data={"path": str(rows_file)}, method=own, **sections)

    return make


@pytest.mark.slow
def test_a_run_of_episodes_trains_and_says_what_they_did(
    episodes: Any, train: Any, tmp_path: Path
) -> None:
    rows = train(episodes(reward={"max_fault_ratio": 0.5}))
    assert [row["step"] for row in rows] == [1, 2]
    for row in rows:
        assert row["loss"] is not None
        ended = [row[name] for name in row if name in ("episodes_answered", "episodes_fault")]
        assert sum(ended) == pytest.approx(1.0)
        assert 1 < row["episodes_turns"] <= 2
        assert -0.25 <= row["episodes_turn_reward"] < 0
    samples = read_rows(tmp_path / "run" / "samples.jsonl")
    assert len(samples) == 64
    assert {one["fault"] for one in samples} <= {None, "ENVIRONMENT_FAILED"}
    assert {one["ending"] for one in samples} <= {"answered", "fault"}
    told = [one["turns"] for one in samples if one["ending"] == "answered"]
    assert all(1 <= len(turns) <= 2 for turns in told)
    assert any(len(turns) > 1 and turns[0]["reward"] for turns in told)
    before = json.loads((tmp_path / "run" / "report.json").read_text())["before"]
    assert before["prompts"] == 10


@pytest.mark.slow
def test_a_resumed_run_is_the_same(episodes: Any, train: Any, curve: Any) -> None:
    whole = {"steps": 3, "checkpoint_every": 1}
    plain = {"eval": {"prompts": 0}, "reward": {"max_fault_ratio": 0.5}}
    expected = train(episodes(run=whole, **plain), "whole")
    train(episodes(run={**whole, "steps": 2}, **plain), "parts")
    found = train(episodes(run=whole, **plain), "parts")
    for one, other in zip(curve(found), curve(expected), strict=True):
        # which requests are drawn together follows the clock, and with it a rounding of 1e-7
        differs = {k for k, v in one.items() if v != other[k]}
        assert differs <= {"drift_mean", "drift_max", "drift_kl"}
        assert abs(one["drift_max"] - other["drift_max"]) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        {"asynchrony": {"mode": "bounded", "max_staleness": 1}},
        {"asynchrony": {"mode": "periodic"}},
        {"advantage": {"estimator": "gae"}},
        {"dynamic_sampling": {"enabled": True}},
    ],
    ids=lambda method: next(iter(method)),
)
def test_episodes_compose_with_other_methods(method: Any, episodes: Any, train: Any) -> None:
    config = episodes(
        method=method,
        eval={"prompts": 0},
        optim={"micro_batch": 16},
        reward={"max_fault_ratio": 0.5},
    )
    rows = train(config)
    assert all(row["loss"] is not None and row["responses"] >= 64 for row in rows)
    assert all(row["episodes_turns"] > 1 for row in rows)


@pytest.mark.slow
def test_conversations_of_an_episode_train_as_sequences(episodes: Any, train: Any) -> None:
    config = episodes("Retelling", eval={"prompts": 0}, reward={"max_fault_ratio": 0.5})
    rows = train(config)
    assert all(1 < row["episodes_contexts"] <= 2 for row in rows)
    # what the engine drew under these very weights is as likely in training
    assert rows[0]["drift_max"] < 1e-4


def test_truncation_says_why_it_is_refused(episodes: Any) -> None:
    critic = {"critic": {"pretrain_steps": 1}, "advantage": {"estimator": "gae"}}
    method = {"truncation": {"window": 2}, **critic}
    with pytest.raises(ConfigError, match="an environment cannot wait for a later step"):
        episodes(method=method)
