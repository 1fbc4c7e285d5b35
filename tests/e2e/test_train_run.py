"""Whole runs of the tiny model: it learns, it repeats, and the network makes no difference to
it."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]


def mean_reward(rows: list[dict[str, Any]]) -> float:
    return statistics.fmean(row["reward"] for row in rows)


@pytest.mark.slow
def test_the_reward_rises(tiny_config: MakeConfig, train: Train, tmp_path: Path) -> None:
    """Seen with seeds 0 to 2: from about 0.2 to about 0.45 in 80 steps."""
    config = tiny_config(
        rollout={"prompts_per_step": 32},
        method={"loss": {"kl_coef": 0.001}},
        run={"steps": 80, "report_to": ["tensorboard"]},
    )
    rows = train(config)
    assert [row["step"] for row in rows] == list(range(1, 81))
    assert mean_reward(rows[-10:]) - mean_reward(rows[:10]) > 0.1
    assert rows[-1]["entropy"] < rows[0]["entropy"]
    assert rows[-1]["kl"] > rows[0]["kl"] >= 0
    assert all(row["fault_ratio"] == 0 and row["faults"] == {} for row in rows)
    assert all(sum(row["verdicts"].values()) == 256 for row in rows)
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))


@pytest.mark.usefixtures("drawn")
def test_a_run_leaves_a_complete_folder(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    from assay.trainer.settings import config as configs

    config = tiny_config(run={"samples_every": 2, "checkpoint_every": 2})
    train(config)
    folder = tmp_path / "run"
    assert configs.load(folder / "config.toml") == config
    session = json.loads((folder / "run.json").read_text())["sessions"][0]
    assert session["versions"]["trl"] == "1.16.0"
    assert session["seed"] == 0
    told = session["data"]
    assert told["source"] == config.data.source
    digest = hashlib.sha256(Path(config.data.path).read_bytes()).hexdigest()
    assert told["digest"] == f"sha256:{digest}"
    assert (told["prompt"], told["reference"]) == ("question", "answer")
    report = json.loads((folder / "report.json").read_text())
    assert (
        report["before"]["judged"] + report["before"]["faults"] == report["before"]["prompts"] == 20
    )
    assert (
        0
        <= report["after"]["accuracy_low"]
        <= report["after"]["accuracy"]
        <= report["after"]["accuracy_high"]
        <= 1
    )
    assert report["data"] == told
    text = (folder / "report.md").read_text()
    assert f"sha256:{digest}" in text
    assert f"for example: {told['example']['prompt']} -> " in text
    assert text.count("- before (") == text.count("- after (") == 3
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    assert {row["step"] for row in samples} == {1, 2, 4}
    assert all((row["verdict"] is None) == (row["fault"] is not None) for row in samples)
    assert (folder / "model" / "model.safetensors").is_file()
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {
        "checkpoint-2",
        "checkpoint-4",
    }
    held_out = {
        row["question"] for row in json.loads((folder / "eval_after.json").read_text())["answers"]
    }
    assert not held_out & {row["question"] for row in samples}
    _every_rollout_is_kept(folder, samples, config)


def _every_rollout_is_kept(folder: Path, samples: list[dict[str, Any]], config: Any) -> None:
    from assay.kit.runs.rollouts import read_rollouts, read_timeline

    rows = list(read_rollouts(folder, phase="train"))
    count = config.rollout.prompts_per_step * config.rollout.group_size
    assert [row["step"] for row in rows] == [step for step in (1, 2, 3, 4) for _ in range(count)]
    by_place = {(row["step"], row["draw"], row["sample"]): row for row in rows}
    assert len(by_place) == len(rows)
    for sample in samples:
        row = by_place[sample["step"], sample["draw"], sample["sample"]]
        for name in ("question", "response", "reward", "truncated", "tokens", "policy_step"):
            assert row[name] == sample[name]
        assert (row["fault"] is None) == (sample["fault"] is None)
        if sample["shaped_reward"] is not None:
            assert row["shaped_reward"] == pytest.approx(sample["shaped_reward"], abs=1e-5)
        trained = sum(end - start for start, end in row["trained"])
        total = sum((end - start) * value for start, end, value in row["advantages"])
        mean = sample["advantage"] or 0.0
        assert total / max(trained, 1) == pytest.approx(mean, abs=1e-3)
        assert len(row["logprobs"]) == len(row["ids"]) == row["own"][0][1]
        assert all(value <= 0 for value in row["logprobs"])
        assert row["prompt_ids"]
    held_out = list(read_rollouts(folder, phase="eval"))
    assert [row["step"] for row in held_out] == [0] * 20 + [4] * 20
    answers = json.loads((folder / "eval_after.json").read_text())["answers"]
    assert [row["response"] for row in held_out[20:]] == [one["response"] for one in answers]
    spans = read_timeline(folder / "rollouts")
    assert {row["what"] for row in spans} >= {"collect", "generate", "score", "update", "step"}
    steps = [row for row in spans if row["what"] == "step"]
    assert [row["step"] for row in steps] == [1, 2, 3, 4]
    for span in spans:
        whole = steps[span["step"] - 1]
        assert whole["start"] - 0.01 <= span["start"] <= span["end"] <= whole["end"] + 0.01


@pytest.mark.slow
def test_a_seed_repeats_exactly(tiny_config: MakeConfig, train: Train, curve: Curve) -> None:
    first = train(tiny_config(), "first")
    again = train(tiny_config(), "again")
    other = train(tiny_config(run={"seed": 1}), "other")
    assert curve(first) == curve(again)
    assert curve(first) != curve(other)


@pytest.mark.slow
def test_the_network_changes_nothing(tiny_config: MakeConfig, train: Train, curve: Curve) -> None:
    """The same 20 steps with the reward server in this process, and as a service over the
    network."""
    from assay.clients import LocalTransport
    from assay.reward_server.config import ScorerConfig
    from assay.reward_server.scorer import RewardScorer

    config = tiny_config(run={"steps": 20})
    here = train(
        config, "here", transport=lambda: LocalTransport(RewardScorer(ScorerConfig(workers=1)))
    )
    there = train(config, "there", transport=None)
    assert len(here) == 20
    assert [row["loss"] for row in here] == [row["loss"] for row in there]
    assert curve(here) == curve(there)


@pytest.mark.parametrize("aggregation", ["seq-mean-token-mean", "constant"])
def test_every_loss_runs(tiny_config: MakeConfig, train: Train, aggregation: str) -> None:
    config = tiny_config(
        method={"loss": {"aggregation": aggregation}, "advantage": {"scale": "none"}},
        model={"precision": "mixed"},
        optim={
            "micro_batch": 16,
            "mini_batches": 2,
            "epochs": 2,
            "schedule": "linear",
            "warmup_steps": 1,
        },
        eval={"prompts": 0},
        run={"steps": 2},
    )
    rows = train(config)
    assert [row["step"] for row in rows] == [1, 2]
    assert [row["kl"] for row in rows] == [None] * 2
    assert all(row["grad_norm"] > 0 and row["ratio_max"] > 1 for row in rows)
