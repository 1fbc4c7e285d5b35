"""The policy verifies itself: training, evaluation, faults on purpose, and a resumed run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from experiments.miniature import Shape
from experiments.pag.contest import REVISE, VERIFY, problems

from assay.kit.errors import ConfigError
from assay.trainer.settings import config as configs
from e2e.test_train_faults import gradient, trainer_and_batch
from e2e.test_train_truncated import OF_GROUPS, OF_TRUNCATION

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A policy that answers, verifies and revises, and problems for it."""
    torch.set_num_threads(1)
    shape = Shape(width=32, layers=1, context=32, steps=60, batch=32, learning_rate=1e-2)
    return problems(tmp_path_factory.mktemp("verifier"), shape)


@pytest.fixture
def dialogues(repository: Path, verifier: tuple[Path, Path, Path]) -> Callable[..., configs.Config]:
    """A preset with that policy; everything of the method stays."""

    def make(name: str, *overrides: str) -> configs.Config:
        model, rows, held_out = verifier
        asks = [f"method.turns.verify_prompt={VERIFY}", f"method.turns.revise_prompt={REVISE}"]
        if name != "pag":
            asks = [f"method.turns.reconsider_prompt={REVISE}"]
        small = (
            f"data={rows}",
            f"data.eval_path={held_out}",
            "data.template={question}",
            f"model={model}",
            "model.device=cpu",
            "model.precision=float32",
            "model.gradient_checkpointing=false",
            "reward=exact",
            *asks,
            "method.critic.learning_rate=1e-3",
            "optim.mini_batches=1",
            "optim.micro_batch=0",
            "optim.learning_rate=1e-3",
            "rollout.prompts_per_step=8",
            "rollout.group_size=4",
            "rollout.max_new_tokens=6",
            "eval.prompts=10",
            "eval.samples=2",
            "eval.temperature=1.0",
            "run.steps=3",
            "run.checkpoint_every=0",
            "run.report_to=[]",
        )
        path = repository / "configs" / f"{name}.toml"
        return configs.load(path, [*small, *overrides])

    return make


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("pag", ()),
        ("pag", ("ablate=turn-independence,selective-revision",)),
        ("pag", ("method.critic.sharing=trunk",)),
        pytest.param("pag", ("rollout.backend=paged",), marks=pytest.mark.slow),
        ("score", ("method.loss.kl_coef=0.1", "method.turns.kl=first")),
    ],
    ids=["pag", "joined, always revised", "trunk", "paged", "score's first stage"],
)
def test_a_policy_in_dialogue_with_itself_trains(
    dialogues: Callable[..., configs.Config],
    train: Train,
    tmp_path: Path,
    name: str,
    overrides: tuple[str, ...],
) -> None:
    config = dialogues(name, "run.samples_every=1", *overrides)
    rows = train(config)
    assert [row["step"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert row["grad_norm"] > 0
        assert row["fault_ratio"] == 0
        assert row["correct"] == row["turns_final_correct"]
        assert 0 <= row["turns_first_correct"] <= 1
        assert row["response_length"] <= 3 * 6, "what stands between turns is not counted"
        assert row["drift_mean"] < 1e-4
        assert row["tokens"] == row["generated_tokens"]
    samples = (tmp_path / "run" / "samples.jsonl").read_text().splitlines()
    roles = {turn["role"] for line in samples for turn in json.loads(line)["turns"]}
    always = config.method.turns.revise == "always" or name == "score"
    if name == "pag":
        assert roles == {"attempt", "verification"}
        assert all(row["turns_verifier_accuracy"] > 0 for row in rows)
        assert all((row["turns_revised"] == 1) == always for row in rows)
    else:
        assert roles == {"attempt"}
        assert all(row["turns_verifier_accuracy"] is None for row in rows)
        assert all(row["turns_revised"] == 1 for row in rows)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    for when in ("before", "after"):
        told = report[when]["turns"]
        assert report[when]["accuracy"] == pytest.approx(told["turns_final_correct"])
        chosen = [told.get(f"turns_{how}") for how in ("best_of_n", "first_majority")]
        assert all(0 <= share <= 1 for share in chosen) if name == "pag" else chosen == [None, None]


WINDOW = ("method.critic.pretrain_steps=1", "method.truncation.window=4")
KEEPS = (
    "method.dynamic_sampling.enabled=true",
    "method.dynamic_sampling.keep_surplus=true",
    "method.dynamic_sampling.max_rounds=50",
    "method.replay.groups=8",
    "rollout.prompts_per_step=4",
    "rollout.group_size=8",
)
AHEAD = ("method.asynchrony.mode=bounded", "method.asynchrony.max_staleness=2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "shows"),
    [((), ""), (WINDOW, "slot_age_max"), (KEEPS, "surplus"), (AHEAD, "staleness")],
    ids=["plain", "windows", "surplus and replay", "drawn ahead"],
)
def test_a_resumed_run_matches_an_uninterrupted_one(
    dialogues: Callable[..., configs.Config],
    train: Train,
    curve: Curve,
    tmp_path: Path,
    *,
    more: tuple[str, ...],
    shows: str,
) -> None:
    """To the last bit, in all that is written; dialogues of earlier steps are in the checkpoint."""
    config = dialogues(
        "pag",
        "run.checkpoint_every=1",
        "run.keep_checkpoints=3",
        "run.samples_every=1",
        "optim.mini_batches=2",
        "optim.micro_batch=8",
        *more,
    )
    whole = train(config, "whole")
    if shows:
        assert any(row[shows] for row in whole)
    copy = tmp_path / "stopped"
    shutil.copytree(tmp_path / "whole", copy)
    for checkpoint in ("checkpoint-4", "checkpoint-6"):
        shutil.rmtree(copy / "checkpoints" / checkpoint)
    for name in ("report.json", "report.md", "eval_after.json"):
        (copy / name).unlink()
    for name in ("model", "critic"):
        shutil.rmtree(copy / name)
    assert curve(train(config, "stopped")) == curve(whole)
    names = ("eval_after.json", "samples.jsonl", "model/model.safetensors")
    for name in (*names, "critic/model.safetensors"):
        assert (copy / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("independent", ["true", "false"])
def test_a_window_of_the_longest_dialogue_is_the_untruncated_trainer_to_the_bit(
    dialogues: Callable[..., configs.Config],
    train: Train,
    curve: Curve,
    tmp_path: Path,
    independent: str,
) -> None:
    """Of all metrics that both have, and of the weights of policy and critic."""
    more = (
        f"method.turns.independent={independent}",
        "method.critic.pretrain_steps=1",
        "optim.micro_batch=8",
        "eval.prompts=0",
    )
    plain = curve(train(dialogues("pag", *more), "plain"))
    found = curve(train(dialogues("pag", *more, "method.truncation.window=18"), "window"))
    for one, other in zip(found, plain, strict=True):
        assert (one["finished_share"], one["slot_age_max"]) == (1.0, None)
        assert one["grad_norm"] > 0
        shared = set(other) - OF_TRUNCATION - OF_GROUPS
        assert {key: one[key] for key in shared} == {key: other[key] for key in shared}
    for kind in ("model", "critic"):
        name = f"{kind}/model.safetensors"
        whole = (tmp_path / "plain" / name).read_bytes()
        assert (tmp_path / "window" / name).read_bytes() == whole, name


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("pag", ("method.turns.first_reward=verification",)),
        ("pag", ("ablate=turn-independence,selective-revision",)),
        pytest.param("pag", ("rollout.backend=paged",), marks=pytest.mark.slow),
        ("score", ()),
    ],
    ids=["first reward passed on", "joined", "paged", "second attempt"],
)
def test_dialogues_that_go_on_are_trained_on_token_by_token(
    dialogues: Callable[..., configs.Config], train: Train, name: str, more: tuple[str, ...]
) -> None:
    """No fault is allowed, and what goes on is none; each token on the policy that drew it."""
    window = 2
    config = dialogues(
        name,
        "method.critic.pretrain_steps=1",
        f"method.truncation.window={window}",
        "reward.max_fault_ratio=0.0",
        "eval.prompts=0",
        "run.steps=8",
        *more,
    )
    rows = train(config)
    slots = config.samples_per_step
    for row in rows:
        assert row["tokens"] == row["generated_tokens"] <= window * slots
        assert row["responses"] == round(row["finished_share"] * slots)
        assert row["drift_mean"] < 1e-4, "neither tokens of earlier steps nor what lies between"
        assert row["ratio_max"] == pytest.approx(1, abs=1e-3)
    assert rows[0]["responses"] < slots
    assert rows[-1]["prefix_tokens"] > 0
    assert any(row["responses"] and row["value_grad_norm"] > 0 for row in rows)
    assert any(row["turns_final_correct"] is not None for row in rows)


ALWAYS = "ablate=selective-revision"
ROWS = 32


def test_a_faulted_first_attempt_takes_the_dialogue_out(
    dialogues: Callable[..., configs.Config], exact_transport: Any, tmp_path: Path
) -> None:
    """Loss and gradient are those of the batch without these rows."""
    transport = exact_transport(lambda _call, item: int(item.id) < ROWS and int(item.id) % 4 == 1)
    with trainer_and_batch(dialogues("pag", ALWAYS), tmp_path, transport) as (trainer, batch):
        judged_B = ~batch["rewards"].isnan()
        assert transport.faults == ROWS // 4 == int((~judged_B).sum())
        assert not batch["loss_mask"][~judged_B].any()
        assert not batch["value_mask"][~judged_B].any()
        assert not batch["advantages"][~judged_B].any()
        loss, grad = gradient(trainer, dict(batch))
        without = {name: value[judged_B] for name, value in batch.items()}
        without_loss, without_grad = gradient(trainer, without)
        assert loss == pytest.approx(without_loss, abs=1e-6)
        assert grad.norm() > 0
        assert torch.allclose(grad, without_grad, atol=1e-6)


def test_a_faulted_second_attempt_leaves_the_loss_alone(
    dialogues: Callable[..., configs.Config], exact_transport: Any, tmp_path: Path
) -> None:
    transport = exact_transport(lambda _call, item: int(item.id) >= ROWS)
    with trainer_and_batch(dialogues("pag", ALWAYS), tmp_path, transport) as (trainer, batch):
        assert transport.faults == ROWS
        assert not batch["rewards"].isnan().any()
        assert all(rollout.result.fault for rollout in trainer.collected.judged)
        second_BT = batch["turn"] == 3
        assert second_BT.any(dim=1).all()
        assert torch.equal(batch["loss_mask"], (batch["turn"] > 0) & ~second_BT)
        loss, grad = gradient(trainer, dict(batch))
        assert grad.norm() > 0
        other = dict(batch)
        other["completion_ids"] = torch.where(second_BT, 5, batch["completion_ids"])
        other["advantages"] = torch.where(second_BT, 9.0, batch["advantages"])
        other_loss, other_grad = gradient(trainer, other)
        assert loss == pytest.approx(other_loss, abs=1e-7)
        assert torch.allclose(grad, other_grad, atol=1e-7)
    joined = dialogues("pag", "ablate=selective-revision,turn-independence")
    with trainer_and_batch(joined, tmp_path / "joined", transport) as (_, batch):
        assert batch["rewards"].isnan().all(), "what would have reached all turns is not known"


def test_what_stands_between_turns_is_in_no_loss(
    dialogues: Callable[..., configs.Config], exact_transport: Any, tmp_path: Path
) -> None:
    with trainer_and_batch(dialogues("pag", ALWAYS), tmp_path, exact_transport()) as (
        trainer,
        batch,
    ):
        between_BT = (batch["turn"] == 0) & batch["completion_mask"].bool()
        assert between_BT.any(dim=1).all()
        assert batch["sampler_logps"][between_BT].isnan().all()
        loss, grad = gradient(trainer, dict(batch))
        changed = {
            name: torch.where(between_BT, 50.0, batch[name])
            for name in ("advantages", "sampler_logps")
        }
        other_loss, other_grad = gradient(trainer, {**batch, **changed})
        assert other_loss == loss
        assert torch.equal(grad, other_grad)


def test_faults_of_turns_are_counted_and_the_rest_is_trained_on(
    dialogues: Callable[..., configs.Config], train: Train, exact_transport: Any
) -> None:
    config = dialogues("pag", "reward.max_fault_ratio=0.9", "eval.prompts=0", ALWAYS)
    rows = train(
        config, transport=lambda: exact_transport(lambda _call, item: int(item.id) % 16 == 0)
    )
    for row in rows:
        # 2 first attempts and 2 second ones, of the same dialogues or of others
        assert 2 <= row["faults"]["WORKER_DIED"] <= 4
        assert 0 < row["fault_ratio"] <= 4 / 32
        assert row["grad_norm"] > 0
        assert row["turns_first_correct"] is not None


def test_a_dialogue_that_does_not_fit_the_context_is_refused(
    dialogues: Callable[..., configs.Config], train: Train
) -> None:
    with pytest.raises(ConfigError, match="32 tokens in all turns, leaves no room for a prompt"):
        train(dialogues("pag", "rollout.max_new_tokens=10"))
