"""Runs on what was chosen: FIRE's first tokens, selectors, filters, replay."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows
from assay.trainer.errors import TrainingStoppedError
from trainer_support import SUMS, ExactTransport

Train = Callable[..., list[dict[str, Any]]]
MakeConfig = Callable[..., Any]
FIRE = {"enabled": True, "temperature": 30.0, "top_k": 8}


@pytest.fixture
def tasks_file(tmp_path: Path) -> Path:
    """Sums with a task: those of less than ten, and the others."""
    path = tmp_path / "tasks.jsonl"
    rows = (
        {"question": f"{a}+{b}=", "answer": str(a + b), "task": "low" if a + b < 10 else "high"}
        for a, b in SUMS
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def sizes(**more: Any) -> dict[str, Any]:
    run = {"steps": 2, "samples_every": 1, **more.pop("run", {})}
    return {"eval": {"prompts": 0}, "run": run, **more}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "mode"), [("hf", "mask"), ("hf", "exact"), ("hf", "parity"), ("paged", "mask")]
)
def test_a_run_with_fire(
    tiny_config: MakeConfig, train: Train, tmp_path: Path, backend: str, mode: str
) -> None:
    sections = {"rollout": {"backend": backend}, "method": {"fire": {**FIRE, "mode": mode}}}
    rows = train(tiny_config(**sizes(**sections, optim={"mini_batches": 2})))
    samples = read_rows(tmp_path / "run" / "samples.jsonl")
    assert len(samples) == 2 * 64
    for row in rows:
        assert math.isfinite(row["loss"])
        # first tokens have a chance of 1/8 where the policy's was next to nothing: not the
        # sampler's drift, and not seen by it
        assert row["drift_max"] < 1e-3
        drawn, responses = row["generated_tokens"], row["responses"]
        assert row["tokens"] == (drawn - responses if mode == "mask" else drawn)
    assert all((row["first_weight"] is not None) == (mode == "exact") for row in rows)
    if mode == "exact":
        assert all(0 < row["first_weight"] < 1 for row in rows)
    firsts = {sample["response"][:1] for sample in samples}
    assert len(firsts) > 8, "digits that no sum begins with, and others"


def test_the_evaluation_decodes_regularly(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    answers = {}
    for name, fire in (("with", FIRE), ("without", {})):
        config = tiny_config(
            method={"fire": fire}, run={"steps": 1}, eval={"prompts": 20, "samples": 4}
        )
        train(config, name)
        answers[name] = (tmp_path / name / "eval_before.json").read_text(encoding="utf-8")
    assert answers["with"] == answers["without"]


def test_variance_aware_sampling_answers_all_problems_anew(
    tiny_config: MakeConfig, train: Train
) -> None:
    """Before the first step, which is no step's, and every two steps; none of it is trained on."""
    asked: list[str] = []

    def faulty(_call: int, item: Any) -> bool:
        asked.append(item.id)
        return False

    selection = {"name": "vas", "vas": {"refresh_every": 2, "samples": 3}}
    config = tiny_config(**sizes(data={"selection": selection}, run={"steps": 5}))
    rows = train(config, transport=lambda: ExactTransport(faulty))
    assert [row["surveyed"] for row in rows] == [None, None, 300, None, 300]
    assert len(asked) == 300 + 5 * 64 + 2 * 300
    assert all(row["responses"] == 64 for row in rows)
    assert all(0 <= row["selection_estimate"] <= 1 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mopps", "vade", "dump", "dads", "hard-focus"])
def test_a_run_that_learns_what_to_choose(
    tiny_config: MakeConfig, train: Train, tasks_file: Path, tmp_path: Path, name: str
) -> None:
    config = tiny_config(
        **sizes(data={"path": str(tasks_file), "selection": {"name": name}}, run={"steps": 3})
    )
    rows = train(config, transport=lambda: ExactTransport(lambda call, item: item.id == "3"))
    for row in rows:
        assert math.isfinite(row["loss"])
        assert 0 < row["selection_reached"] <= 1
        assert 0 < row["selection_entropy"] <= 1
        assert sum(row["tasks"].values()) == 64
    if name in ("mopps", "vade"):
        assert rows[0]["selection_estimate"] == 0.5


def test_a_task_has_a_kl_coefficient_of_its_own(
    tiny_config: MakeConfig, train: Train, tasks_file: Path
) -> None:
    """Every task's own is a run of it; one of two is neither run; a misspelt task is refused."""

    def losses(name: str, **loss: Any) -> list[float]:
        config = tiny_config(
            **sizes(
                data={"path": str(tasks_file)},
                method={"loss": loss},
                optim={"mini_batches": 2, "learning_rate": 1e-2},
            )
        )
        return [row["loss"] for row in train(config, name)]

    common, own = losses("common", kl_coef=0.5), {"low": 0.5, "high": 0.5}
    assert losses("own", kl_coef_by_task=own) == common
    mixed = losses("mixed", kl_coef=0.5, kl_coef_by_task={"low": 0.0})
    assert mixed[-1] not in (common[-1], losses("none")[-1])
    with pytest.raises(ConfigError, match="no row has the task 'lo'; rows have 'high', 'low'"):
        losses("misspelt", kl_coef_by_task={"lo": 0.5})


def test_a_curriculum_begins_with_its_tasks(
    tiny_config: MakeConfig, train: Train, tasks_file: Path
) -> None:
    selection = {"name": "curriculum", "curriculum": {"tasks": ["low"], "until_step": 2}}
    config = tiny_config(**sizes(data={"path": str(tasks_file), "selection": selection}))
    first, second = train(config)
    assert first["tasks"] == {"low": 64}
    assert sum(second["tasks"].values()) == 64


def test_pre_ppo_scores_once_and_trains_on_the_hardest(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    selection = {"name": "pre-ppo", "pre_ppo": {"fraction": 0.1, "samples": 2}}
    asked: list[str] = []

    def faulty(_call: int, item: Any) -> bool:
        asked.append(item.prompt[0].content)
        return False

    config = tiny_config(**sizes(data={"selection": selection}, run={"steps": 3}))
    train(config, transport=lambda: ExactTransport(faulty))
    samples = read_rows(tmp_path / "run" / "samples.jsonl")
    assert len(asked) == 2 * 100 + 3 * 64
    assert len({sample["question"] for sample in samples}) == 10


def test_what_nobody_answers_rightly_is_answered_again_with_a_hint_that_is_in_no_loss(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    path = tmp_path / "hard.jsonl"
    rows = (
        {"question": f"{a}+{b}=", "answer": "no", "solution": f"{a} {b} {a + b} x"}
        for a, b in SUMS[:20]
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    data = {
        "path": str(path),
        "columns": {"solution": "solution"},
    }
    method = {"hints": {"enabled": True}}
    rollout = {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 4}
    rows_ = train(tiny_config(**sizes(data=data, method=method, rollout=rollout, run={"steps": 3})))
    samples = read_rows(tmp_path / "run" / "samples.jsonl")
    for row in rows_:
        own = [sample for sample in samples if sample["step"] == row["step"]]
        assert row["hinted_groups"] == 6, "two problems, three shares each"
        assert [s["hint"] for s in own] == [0] * 8 + [1] * 8 + [2] * 8 + [3] * 8
        assert len({s["problem"] for s in own}) == 2
        assert row["draws"] == row["groups_all_wrong"] == 8
        trained = [s for s in own if s["hint"] == 3]
        assert row["tokens"] == sum(sample["tokens"] for sample in trained)
        assert all((s["shaped_reward"] is None) == (s["hint"] < 3) for s in own)
    assert len({s["problem"] for s in samples}) == 6, "each step has problems of its own"


class Steps(ExactTransport):
    """Judges two steps as well."""

    def _judge(self, item: Any, result: Any) -> None:
        super()._judge(item, result)
        if result.HasField("judgement"):
            for n in range(2):
                reward = float(len(item.response) % 3) / 2
                span = result.judgement.spans.add(reward=reward, label="step")
                span.range.start, span.range.end = n, n + 1


def test_filtered_responses_are_as_if_they_had_not_been_drawn(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    method = {"filter": {"prof": "both", "prof_keep": 4}}
    rows = train(tiny_config(**sizes(method=method)), transport=Steps)
    samples = read_rows(tmp_path / "run" / "samples.jsonl")
    for row in rows:
        own = [sample for sample in samples if sample["step"] == row["step"]]
        stays = [sample for sample in own if sample["shaped_reward"] is not None]
        assert len(stays) < len(own) == 64
        assert row["tokens"] == sum(sample["tokens"] for sample in stays)
        assert row["fault_ratio"] == 0
    with pytest.raises(TrainingStoppedError, match="judges none"):
        train(tiny_config(**sizes(method=method)), "without-steps")


def test_groups_without_advantage_give_way_to_earlier_ones(
    tiny_config: MakeConfig, train: Train
) -> None:
    config = tiny_config(
        **sizes(
            method={"replay": {"groups": 16}},
            rollout={"prompts_per_step": 16, "group_size": 2},
            run={"steps": 4},
        )
    )
    rows = train(config)
    plain = train(
        tiny_config(**sizes(rollout={"prompts_per_step": 16, "group_size": 2}, run={"steps": 1})),
        "plain",
    )
    assert rows[0]["replayed_groups"] == 0
    assert rows[0]["signal_ratio"] == plain[0]["signal_ratio"] < 1
    assert sum(row["replayed_groups"] for row in rows) > 0
    for row in rows[1:]:
        assert row["stale_groups"] == row["replayed_groups"]
        assert math.isfinite(row["loss"])
    assert rows[-1]["signal_ratio"] == 1, "there are enough to replay by then"


def test_an_earlier_success_joins_a_group_of_its_problem_in_which_nobody_was_right(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    path = tmp_path / "few.jsonl"
    rows = ({"question": f"{a}+{b}=", "answer": str(a + b)} for a, b in SUMS[:8])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = tiny_config(
        **sizes(
            data={"path": str(path)},
            method={"replay": {"groups": 8, "mode": "success"}},
            rollout={"prompts_per_step": 8, "group_size": 2},
            run={"steps": 8},
        )
    )
    rows_ = train(config)
    assert rows_[0]["replayed_groups"] == 0
    assert sum(row["replayed_groups"] for row in rows_) > 0
    for row in rows_:
        assert row["stale_groups"] == row["replayed_groups"]
        assert math.isfinite(row["loss"])
        # every group whose own responses were wrong and that took a success has an advantage
        assert row["signal_ratio"] >= row["replayed_groups"] / 8
