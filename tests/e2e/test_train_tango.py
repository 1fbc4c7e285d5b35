"""A generator and its verifier in turns: training, faults on purpose, and a resumed run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from experiments.miniature import Shape
from experiments.tango.contest import SMALL, problems

from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows
from assay.trainer.core.build import check_processes
from assay.trainer.core.hooks import hooks_of
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings import config as configs

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer than the steps."""
    monkeypatch.setattr("assay.trainer.records.plots.draw", lambda *_args, **_kwargs: None)


@pytest.fixture(scope="session")
def counting(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A model that solves and verifies, badly, and problems for it."""
    torch.set_num_threads(1)
    shape = Shape(width=32, layers=1, context=32, steps=60, batch=32, learning_rate=1e-2)
    return problems(tmp_path_factory.mktemp("tango"), shape)


@pytest.fixture
def together(repository: Path, counting: tuple[Path, Path, Path]) -> Callable[..., configs.Config]:
    """The preset with that model; everything of the method stays."""

    def make(*overrides: str) -> configs.Config:
        model, rows, held_out = counting
        small = (
            f"data={rows}",
            f"data.eval_path={held_out}",
            f"model={model}",
            "model.device=cpu",
            "reward=exact",
            "method.cotraining.warmup_steps=2",
            "method.cotraining.prompts_per_step=6",
            "rollout.prompts_per_step=4",
            "optim.mini_batches=2",
            "eval.prompts=0",
            "run.steps=5",
        )
        path = repository / "configs" / "tango.toml"
        return configs.load(path, [*SMALL, "reward.verifier=exact", *small, *overrides])

    return make


def last_step_right(transport: Any) -> Any:
    """A judge of solutions: the last step is the reference; and faults where told to."""

    class Judges(transport):  # type: ignore[misc]
        def _judge(self, item: Any, result: Any) -> None:
            item.response = item.response.rpartition(";")[2]
            super()._judge(item, result)

    return Judges


def test_both_policies_are_sampled_by_the_paged_engine(
    together: Callable[..., configs.Config], train: Train, exact_transport: Any, tmp_path: Path
) -> None:
    """Each from a cache of its own: what it drew is what its own weights say."""
    config = together("rollout.backend=paged", "run.steps=3")
    rows = train(config, "paged", last_step_right(exact_transport))
    verifier = read_rows(tmp_path / "paged" / "verifier" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert len(verifier) >= 2
    for row in (*rows, *verifier):
        assert row["grad_norm"] > 0
        assert row["fault_ratio"] == 0
        assert row["drift_mean"] < 1e-4


@pytest.mark.slow
def test_both_roles_learn_in_turns_and_a_resumed_run_matches(
    together: Callable[..., configs.Config],
    train: Train,
    curve: Curve,
    exact_transport: Any,
    tmp_path: Path,
) -> None:
    """Resumed to the last bit, in all that is written of either role."""
    config = together("run.checkpoint_every=2", "run.keep_checkpoints=9", "run.samples_every=1")
    judge = last_step_right(exact_transport)
    rows = train(config, "whole", judge)
    whole = tmp_path / "whole"
    verifier = read_rows(whole / "verifier" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["step"] for row in verifier] == [1, 2, 3], "two to warm up, one after three steps"
    assert rows[0]["step_weight"] == 0.1
    assert rows[-1]["step_weight"] == pytest.approx(1e-3)
    for row in (*rows, *verifier):
        assert row["grad_norm"] > 0
        assert row["fault_ratio"] == 0
        assert row["drift_mean"] < 1e-4
        assert 0 <= row["verifier_accuracy"] <= 1
    assert all(row["verifier_reach"] == 1 for row in rows)
    for row in verifier:
        assert row["correct"] == row["verifier_accuracy"]
        assert row["responses"] == 30
        p = row["solutions_correct"]
        if 0 < p < 1:
            assert (row["verifier_weight_correct"] > 1) == (row["verifier_weight_wrong"] < 1)
    spans = [
        len(json.loads(line)["spans"])
        for line in (whole / "samples.jsonl").read_text().splitlines()
    ]
    assert any(spans), "no verification was read"
    samples = [
        json.loads(line) for line in (whole / "verifier" / "samples.jsonl").read_text().splitlines()
    ]
    for row in samples:
        assert row["reward"] == pytest.approx(
            sum(part["score"] * part["weight"] for part in row["components"])
        )
        assert row["reference"] in ("correct", "wrong")
    told = json.loads((whole / "report.json").read_text())["verifier"]
    assert told["steps"] == 3
    assert (whole / "model").is_dir()
    assert (whole / "verifier" / "model").is_dir()

    found = {
        role: sorted(path.name for path in (whole / role / "checkpoints").iterdir())
        for role in ("", "verifier")
    }
    assert found[""] == ["checkpoint-10", "checkpoint-4", "checkpoint-8"]
    assert found["verifier"] == ["checkpoint-4", "checkpoint-6"], "after its second and third step"
    # as a kill in the fifth step would have left it: and once more, in the verifier's third
    for name, gone in (
        ("late", ["checkpoints/checkpoint-10"]),
        (
            "early",
            [
                "checkpoints/checkpoint-10",
                "checkpoints/checkpoint-8",
                "verifier/checkpoints/checkpoint-6",
            ],
        ),
    ):
        copy = tmp_path / name
        shutil.copytree(whole, copy)
        for path in (*gone, "model", "verifier/model"):
            shutil.rmtree(copy / path)
        assert curve(train(config, name, judge)) == curve(rows)
        assert curve(read_rows(copy / "verifier" / "metrics.jsonl")) == curve(verifier)
        for path in ("samples.jsonl", "model/model.safetensors"):
            for role in ("", "verifier/"):
                same = (copy / f"{role}{path}").read_bytes() == (
                    whole / f"{role}{path}"
                ).read_bytes()
                assert same, f"{name}: {role}{path}"


def test_a_faulted_solution_takes_its_verifications_out(
    together: Callable[..., configs.Config], train: Train, exact_transport: Any, tmp_path: Path
) -> None:
    """No truth, no verdict on the verdict; and a run of nothing else stops, and can go on."""
    judge = last_step_right(exact_transport)
    config = together(
        "run.steps=1", "method.cotraining.warmup_steps=1", "reward.max_fault_ratio=0.9"
    )
    rows = train(config, transport=lambda: judge(lambda _call, item: int(item.id) % 3 == 0))
    (row,) = read_rows(tmp_path / "run" / "verifier" / "metrics.jsonl")
    assert row["faults"] == {"WORKER_DIED": 10}, "two of six solutions, five verifications each"
    assert row["fault_ratio"] == pytest.approx(1 / 3)
    assert row["grad_norm"] > 0
    assert rows[0]["faults"] == {"WORKER_DIED": 7}

    config = together("run.steps=2", "reward.fault_window=1")
    with pytest.raises(TrainingStoppedError, match=r"after step 1 of the verifier: .*WORKER_DIED"):
        train(config, "stopped", lambda: judge(lambda _call, _item: True))
    assert not list((tmp_path / "stopped" / "checkpoints").glob("*"))
    assert (tmp_path / "stopped" / "verifier" / "checkpoints" / "checkpoint-2").is_dir()
    assert [row["step"] for row in train(config, "stopped", judge)] == [1, 2]


def test_what_cannot_be_cotrained_is_told_before_anything_is_trained(
    together: Callable[..., configs.Config], train: Train, exact_transport: Any
) -> None:
    with pytest.raises(ConfigError, match="max_new_tokens = 32 leaves no room for a prompt in the"):
        train(together("method.cotraining.max_new_tokens=32"), "long")
    with pytest.raises(ConfigError, match="model folder /no/such/model does not exist"):
        train(together("method.cotraining.model=/no/such/model"), "absent")

    class OfGroups(exact_transport):  # type: ignore[misc]
        async def list_verifiers(self, request: Any, *, timeout_s: float) -> Any:
            response = await super().list_verifiers(request, timeout_s=timeout_s)
            response.verifiers[0].needs_group = True
            return response

    with pytest.raises(ConfigError, match=r"one another, .* method\.cotraining\.enabled = false"):
        train(together(), "groups", OfGroups)
    with pytest.raises(ConfigError, match="needs a run of one process, and this one has 2"):
        check_processes(together(), 2, hooks_of(together()))
