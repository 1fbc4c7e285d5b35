"""Methods of a formula or two train in a run, and are refused where they cannot be meant."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.kit.errors import ConfigError
from assay.trainer.core.batch import token_rewards
from e2e.test_train_resume import stopped_copy
from trainer_support import SUMS, ExactTransport, built_trainer

Train = Callable[..., list[dict[str, Any]]]
SMALL = {"prompts": 0}
SASR = {"rows": "x", "reference": "none", "mix": "sasr"}


def of(make: Callable[..., Any], *, steps: int = 2, **sections: Any) -> Any:
    """A run of a few steps without an evaluation."""
    run = {"steps": steps, "checkpoint_every": 0, **sections.pop("run", {})}
    return make(eval=SMALL, run=run, **sections)


def test_lengths_cost_by_difficulty_and_failures_earn_by_likeness(
    tiny_config: Callable[..., Any], train: Train
) -> None:
    shaping = {"budget_penalty": 0.5, "budget_least": 1, "progress": 0.5}
    shaping |= {"concise_bonus": 0.25, "concise_below": 3}
    method = {"shaping": shaping, "advantage": {"difficulty": "medium"}}
    config = of(tiny_config, method=method)
    rows = train(config)
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert any(row["grad_norm"] > 0 for row in rows)
    told = [row["shaped_reward"] for row in rows]
    assert all(abs(shaped - row["reward"]) > 1e-3 for shaped, row in zip(told, rows, strict=True))


def test_a_step_trains_on_its_tokens_and_the_rest_in_the_next(
    tiny_config: Callable[..., Any], train: Train
) -> None:
    config = of(tiny_config, steps=4, method={"token_budget": {"tokens": 64}})
    rows = train(config)
    assert all(row["tokens"] <= 64 for row in rows)
    assert all(row["budget_fill"] > 60 / 64 for row in rows)
    assert all(row["budget_waiting"] > 0 for row in rows)
    assert rows[0]["stale_groups"] == 0 < rows[1]["stale_groups"]
    assert rows[1]["responses"] < rows[0]["responses"], "what waits takes the place of new prompts"


PROGRESS = {"advantage": {"estimator": "gae"}, "progress": {"enabled": True, "step_end": ""}}


def test_steps_earn_by_their_progress_and_their_memory_is_saved(
    tiny_config: Callable[..., Any], train: Train
) -> None:
    rows = train(of(tiny_config, steps=8, method=PROGRESS))
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert rows[0]["progress_error"] == pytest.approx(rows[0]["reward"])  # 0 and 1, from nothing
    errors, rewards = (sum(row[key] for row in rows[1:]) for key in ("progress_error", "reward"))
    assert errors < rewards, "nearer than 0 is"
    assert all(1 <= row["progress_steps"] <= 4 for row in rows)


@pytest.mark.parametrize("world", ["responses", "episodes"])
def test_in_a_run_a_row_s_steps_earn_what_it_earned(
    tiny_config: Callable[..., Any], adding: Callable[..., Any], tmp_path: Path, world: str
) -> None:
    """Twice: before the estimate has learnt anything, and by what it learnt."""
    config = (
        of(tiny_config, method=PROGRESS) if world == "responses" else of(adding, method=PROGRESS)
    )
    with built_trainer(config, tmp_path, ExactTransport()) as trainer:
        for _ in range(2):
            batch = trainer.padded(trainer.source.collect(0))
            found = token_rewards(batch, config.method.loss, trainer.hooks, with_kl=False)
            torch.testing.assert_close(found.sum(dim=1), batch["rewards"])
            assert not found[~batch["progress_ends"]].any()
            assert bool((batch["progress_ends"] <= batch["own"]).all())
        assert len(trainer.source.state_dict()["progress"]["earned"]) > 0


CONSERVATIVE = {"advantage": {"estimator": "gae"}, "critic": {"conservative": 1.0}}


def test_tokens_earn_what_they_lost_against_the_likeliest_ones_and_the_policy_stands_still(
    tiny_config: Callable[..., Any], train: Train, tmp_path: Path
) -> None:
    """B-Coder's value head, on responses as they are drawn; before it in value pre-training."""
    pretrained = {**CONSERVATIVE["critic"], "pretrain_steps": 1}
    method = {**CONSERVATIVE, "critic": pretrained}
    config = of(tiny_config, method=method, optim={"learning_rate": 0.0})
    rows = train(config)
    assert all(math.isfinite(row["value_loss"]) and row["greedy_gap"] > 0 for row in rows)
    assert [row["learning_rate"] for row in rows] == [0.0, 0.0]
    with built_trainer(config, tmp_path / "once", ExactTransport()) as trainer:
        batch = trainer.padded(trainer.source.collect(0))
        found = token_rewards(batch, config.method.loss, trainer.hooks, with_kl=False)
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        with torch.no_grad():
            logps = trainer.model(
                input_ids=ids, attention_mask=mask, position_ids=positions
            ).logits.log_softmax(dim=-1)
        before = logps[:, batch["prompt_ids"].shape[1] - 1 : -1]
        own = before.gather(-1, batch["completion_ids"].unsqueeze(-1)).squeeze(-1)
        gaps = torch.where(batch["own"], before.amax(dim=-1) - own, 0.0)
        torch.testing.assert_close(
            found.sum(dim=1), batch["rewards"] + gaps.sum(dim=1), rtol=1e-3, atol=1e-4
        )


@pytest.fixture
def demonstrations(tmp_path: Path) -> dict[str, Any]:
    """Right answers to all sums, as SASR's table; nothing of it is held out."""
    rows = (
        {"prompt": f"{a}+{b}=", "response": str(a + b), "reward": 1.0, "verdict": "correct"}
        for a, b in SUMS
    )
    path = tmp_path / "demonstrations.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"rows": str(path), "reference": "none", "mix": "sasr", "mix_warmup": 2}


def test_supervised_steps_and_others_take_turns_by_the_gradient_s_norm(
    tiny_config: Callable[..., Any], train: Train, demonstrations: dict[str, Any]
) -> None:
    rows = train(of(tiny_config, steps=10, method={"offline": demonstrations}))
    kinds = [row["sft_step"] for row in rows]
    assert kinds[:2] == [1, 1]
    assert {*kinds[2:]} == {0, 1}
    warm = (rows[0]["grad_norm"] + rows[1]["grad_norm"]) / 2
    latest = rows[1]["grad_norm"]
    for row in rows[2:]:
        assert row["sft_grad_norm"] == pytest.approx(latest)
        assert row["sft_chance"] == pytest.approx(latest / (latest + warm))
        latest = row["grad_norm"] if row["sft_step"] else latest
    for row in rows:
        assert math.isfinite(row["loss"])
        assert bool(row["responses"]) != bool(row["sft_step"]), (
            "demonstrations are not the policy's"
        )


def test_supervision_teaches_what_the_rows_say(
    tiny_config: Callable[..., Any], train: Train, demonstrations: dict[str, Any]
) -> None:
    """The policy's own responses are right more often behind the warm-up than before it."""
    told = demonstrations | {"mix_warmup": 20, "mix_gamma": 1e9}
    method = {"offline": told, "advantage": {"normalise": "batch"}}
    rows = train(of(tiny_config, steps=21, method=method, optim={"learning_rate": 3e-3}))
    untaught = train(of(tiny_config, steps=1), "untaught")
    assert [row["sft_step"] for row in rows] == [1] * 20 + [0]
    assert rows[20]["correct"] > untaught[0]["correct"] + 0.15


def test_a_mixed_run_goes_on_where_it_stopped(
    tiny_config: Callable[..., Any], train: Train, tmp_path: Path, demonstrations: dict[str, Any]
) -> None:
    run = {"checkpoint_every": 1, "keep_checkpoints": 5, "rollouts": "none"}
    config = tiny_config(method={"offline": demonstrations}, run={"steps": 5, **run})
    train(config, "whole")
    copy = stopped_copy(tmp_path / "whole", tmp_path / "stopped", update=3)
    train(config, "stopped")
    weights = "model/model.safetensors"
    assert (copy / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"shaping": {"concise_bonus": 0.5}}, "needs method.shaping.concise_below"),
        ({"shaping": {"budget_penalty": 0.5, "budget_least": 9}}, "budget_most = 4"),
        (
            {
                "advantage": {"estimator": "gae"},
                "turns": {"mode": "verify"},
                "shaping": {"progress": 0.5},
            },
            "self-reference .* needs one reward for a whole response",
        ),
        ({"offline": {"mix": "sasr"}}, "is read only where method.offline.rows is not"),
        ({"offline": {"mix": "sasr", "rows": "x"}}, 'reference = "none"'),
        (
            {"offline": SASR, "loss": {"objective": "sft"}},
            "needs a loss and an estimator of drawn responses",
        ),
        ({"offline": {**SASR, "mix_brake": 1.0}}, "method.loss.kl_coef above 0"),
        ({"offline": SASR, "fire": {"enabled": True}}, "needs first tokens that the policy drew"),
        ({"progress": {"enabled": True}}, "progress-attribution .* needs a critic"),
        (
            {**PROGRESS, "turns": {"mode": "verify"}},
            "progress-attribution .* needs one reward for a whole response",
        ),
        (CONSERVATIVE, "method.critic.conservative = 1 needs optim.learning_rate = 0"),
        ({"token_budget": {"tokens": 3}}, "must hold one whole response"),
        (
            {"token_budget": {"tokens": 64}, "recomposition": {"groups": 8}},
            "needs groups that no other part trains in pieces",
        ),
        (
            {"token_budget": {"tokens": 64}, "asynchrony": {"mode": "bounded"}},
            "token-budget .* needs the collector",
        ),
        (
            {"advantage": {"estimator": "gae", "difficulty": "medium"}},
            'estimator = "group" or "rloo"',
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    tiny_config: Callable[..., Any], method: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        of(tiny_config, method=method)
