"""T-PPO in the whole trainer: what it is without truncation, and what its batches hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.kit.errors import ConfigError
from trainer_support import built_trainer

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]

OF_TRUNCATION = {
    *("finished_share", "tokens_per_decode_step", "prefix_tokens", "slot_age_mean"),
    *("slot_age_max", "value_skipped"),
}
OF_GROUPS = {
    *("keep_rate", "groups_all_correct", "groups_all_wrong", "groups_faulted", "surplus"),
    *("stale_groups", "generated_per_used", "signal_ratio"),
}


@pytest.fixture
def make(tiny_config: MakeConfig) -> MakeConfig:
    """Settings of a run with a window; other sections as for tiny_config."""

    def made(window: int, **sections: Any) -> Any:
        method: dict[str, Any] = {
            "advantage": {"estimator": "gae", "lam": 0.95},
            "critic": {"learning_rate": 1e-2, "pretrain_steps": 2},
            "truncation": {"window": window},
        }
        for name, values in sections.pop("method", {}).items():
            method.setdefault(name, {}).update(values)
        sections = {"eval": {"prompts": 0}, "run": {"steps": 3}, **sections}
        return tiny_config(method=method, **sections)

    return made


@pytest.mark.slow
@pytest.mark.parametrize("group_size", [1, 4])
def test_a_window_of_the_limit_is_the_untruncated_trainer_to_the_bit(
    make: MakeConfig, train: Train, curve: Curve, tmp_path: Path, group_size: int
) -> None:
    """Of all metrics that both have, and of the weights of policy and critic."""
    sections: dict[str, Any] = {
        "optim": {"mini_batches": 2, "epochs": 2, "micro_batch": 8},
        "rollout": {"prompts_per_step": 32 // group_size, "group_size": group_size},
        "method": {"loss": {"kl_coef": 0.05, "clip_high": 0.28, "positive_lm_coef": 0.1}},
    }
    plain = curve(train(make(0, **sections), "plain"))
    found = curve(train(make(4, **sections), "window"))
    assert len(plain) == 3
    for one, other in zip(found, plain, strict=True):
        assert (one["finished_share"], one["slot_age_max"]) == (1.0, None)
        assert other["finished_share"] is None
        assert one["grad_norm"] > 0
        shared = set(other) - OF_TRUNCATION - OF_GROUPS
        assert {key: one[key] for key in shared} == {key: other[key] for key in shared}
    for kind in ("model", "critic"):
        name = f"{kind}/model.safetensors"
        whole = (tmp_path / "plain" / name).read_bytes()
        assert (tmp_path / "window" / name).read_bytes() == whole, name


def test_tokens_of_responses_that_go_on_are_trained_on_and_are_no_faults(
    make: MakeConfig, train: Train
) -> None:
    """With a window of one token most rows of a step have no judgement, and no fault is allowed."""
    config = make(1, reward={"max_fault_ratio": 0.0, "verifier": "exact"})
    rows = train(config)
    slots = config.samples_per_step
    for row in rows:
        assert row["tokens"] == row["generated_tokens"] == slots
        assert row["tokens_per_decode_step"] == slots
        assert row["responses"] == round(row["finished_share"] * slots)
        assert row["fault_ratio"] in (0, None)
        assert row["drift_mean"] < 1e-3, "tokens of earlier steps are not compared"
        assert row["ratio_max"] == pytest.approx(1, abs=1e-4), "on the policy that drew it"
    assert rows[0]["responses"] < slots
    assert rows[-1]["responses"] > 0
    assert rows[-1]["prefix_tokens"] > 0
    assert max(row["slot_age_max"] for row in rows) == 2
    assert rows[-1]["grad_norm"] > 0


def test_a_step_in_which_too_few_end_teaches_the_critic_nothing_and_the_policy_all_the_same(
    make: MakeConfig, train: Train, tmp_path: Path
) -> None:
    few = {"truncation": {"min_finished": 65}}
    rows = train(make(1, method=few, run={"steps": 2}), "few")
    assert [row["value_skipped"] for row in rows] == [1.0, 1.0]
    assert all(row["value_grad_norm"] == 0 and row["grad_norm"] > 0 for row in rows)
    trained = (tmp_path / "few" / "critic" / "model.safetensors").read_bytes()
    assert trained == (tmp_path / "few/critic-pretrained/model.safetensors").read_bytes()


def test_a_critic_below_the_floor_stops_the_run_before_the_policy_moves(
    make: MakeConfig, train: Train, tmp_path: Path
) -> None:
    floor = {"critic": {"min_explained_variance": 0.99, "below_minimum": "refuse"}}
    with pytest.raises(ConfigError, match=r"explained variance is .* below .* = 0\.99"):
        train(make(2, method=floor))
    assert (tmp_path / "run" / "pretraining.jsonl").is_file()
    assert not list((tmp_path / "run" / "checkpoints").glob("*"))


@contextmanager
def batches_of(config: Any, folder: Path, transport: Any, steps: int) -> Iterator[list[Any]]:
    """Of a policy and a critic that stand still: what each step collected, and its batch."""
    with built_trainer(config, folder, transport) as trainer:
        made = []
        for _ in range(steps):
            batch = trainer._generate_and_score_completions([])
            made.append((trainer.collected, batch))
        yield made


def test_two_masks(make: MakeConfig, tmp_path: Path, exact_transport: Any) -> None:
    """Policy: what this step drew. Critic: all of what ended in it, its target the reward. A fault
    is in neither; what goes on is no fault, and its last token has no advantage."""
    transport = exact_transport(lambda _call, item: int(item.group_id) % 5 == 1)
    drawn = 0
    with batches_of(make(1), tmp_path, transport, steps=4) as made:
        for collected, batch in made:
            kinds = {"whole": 0, "fault": 0, "going": 0}
            for row, slot_row in enumerate(collected.slot_rows):
                length = len(slot_row.row.response.ids)
                loss_T, value_T = batch["loss_mask"][row], batch["value_mask"][row]
                last_T = torch.arange(loss_T.shape[0]) == length - 1
                result = getattr(slot_row.row, "result", None)
                if result is None:
                    kinds["going"] += 1
                    assert loss_T.equal(last_T)
                    assert not value_T.any()
                    assert batch["advantages"][row, length - 1] == 0
                    assert batch["rewards"][row].isnan()
                    assert not batch["correct"][row]
                elif result.judgement is None:
                    kinds["fault"] += 1
                    assert not loss_T.any()
                    assert not value_T.any()
                else:
                    kinds["whole"] += 1
                    reward = result.judgement.reward
                    assert loss_T.equal(last_T)
                    assert value_T.equal(torch.arange(loss_T.shape[0]) < length)
                    returns_T = batch["returns"][row, :length]
                    torch.testing.assert_close(returns_T, torch.full((length,), reward))
                    gain = reward - batch["values"][row, length - 1]
                    torch.testing.assert_close(batch["advantages"][row, length - 1], gain)
                drawn += slot_row.drawn * (result is None or result.judgement is not None)
        assert all(kinds.values()), "the last step has all three"
        assert drawn == sum(int(batch["loss_mask"].sum()) for _, batch in made)
    assert transport.faults == sum(
        rollout.result.fault is not None for collected, _ in made for rollout in collected.judged
    )


def test_with_frozen_weights_the_responses_are_those_of_whole_rollouts(
    make: MakeConfig, tmp_path: Path, exact_transport: Any
) -> None:
    found: dict[tuple[int, int], Any] = {}
    with batches_of(make(1), tmp_path, exact_transport(), steps=6) as made:
        for collected, _ in made:
            for rollout in collected.judged:
                found[rollout.request.draw.number, rollout.request.index] = rollout
    with batches_of(make(0), tmp_path, exact_transport(), steps=3) as made:
        whole = [rollout for collected, _ in made for rollout in collected.judged]
    known = {(r.request.draw.number, r.request.index): r for r in whole}
    both = found.keys() & known.keys()
    assert len(both) > 80
    assert len({len(known[who].response.ids) for who in both}) > 1
    for who in both:
        one, other = found[who], known[who]
        assert (one.response.ids, one.response.text) == (other.response.ids, other.response.text)
        assert one.result.judgement.reward == other.result.judgement.reward
