"""Segments, recomposition and void turns in the whole trainer: what its batches hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.trainer.recipes.starts.choosing import StartsPlan, write_starts
from trainer_support import ExactTransport, built_trainer

MakeConfig = Callable[..., Any]


def steps_of(config: Any, folder: Path, transport: Any, steps: int) -> list[tuple[Any, Any]]:
    """What each step collected, and its batch; weights stand still."""
    with built_trainer(config, folder, transport) as trainer:
        made = []
        for _ in range(steps):
            batch = trainer._generate_and_score_completions([])
            made.append((trainer.collected, batch))
        return made


def test_segments_are_valued_by_judged_continuations_and_faults_make_nothing_up(
    tiny_config: MakeConfig, tmp_path: Path
) -> None:
    """Every fifth item faults, continuations among them."""
    asked = 0

    def faulty(_call: int, _item: Any) -> bool:
        nonlocal asked
        asked += 1
        return asked % 5 == 0

    config = tiny_config(
        method={
            "advantage": {"estimator": "segments", "scale": "none"},
            "segments": {"unsure_per_segment": 1, "continuations": 4},
        },
        rollout={"prompts_per_step": 4, "group_size": 2},
    )
    transport = ExactTransport(faulty)
    [(collected, batch)] = steps_of(config, tmp_path, transport, 1)
    count = int(collected.metrics["continuations"])
    assert asked == 8 + count, "each is judged as any response is"
    assert transport.faults == round(collected.metrics["continuation_faults"] * count) + sum(
        rollout.result.fault is not None for rollout in collected.judged
    )
    assert 0 < collected.metrics["continuation_faults"] < 1
    assert len(collected.judged) == 8
    limit = torch.log(torch.tensor(0.9))
    moved = 0
    for row, rollout in enumerate(collected.rows):
        length = len(rollout.response.ids)
        advantages_T = batch["advantages"][row, :length]
        trained_T = batch["loss_mask"][row, :length]
        if rollout.result.judgement is None:
            assert not trained_T.any()
            continue
        found = collected.notes["segments"][rollout.request.draw.number, rollout.request.index]
        told_T = torch.tensor(found.advantages)
        unsure_T = torch.tensor(rollout.response.logprobs) < limit
        assert trained_T.equal(unsure_T & ~told_T.isnan())
        torch.testing.assert_close(advantages_T[trained_T], told_T[trained_T])
        assert bool((advantages_T.abs() <= 1).all()), "differences of mean rewards of 0 and 1"
        moved += int((advantages_T[trained_T] != 0).sum())
    assert moved


def test_a_tree_trains_each_segment_once_and_says_what_it_drew(
    tiny_config: MakeConfig, tmp_path: Path
) -> None:
    """Every fifth leaf faults."""
    judged = 0

    def faulty(_call: int, _item: Any) -> bool:
        nonlocal judged
        judged += 1
        return judged % 5 == 0

    drawn = []
    for backend in ("hf", "paged"):
        config = tiny_config(
            method={
                "advantage": {"estimator": "tree", "scale": "none"},
                "tree": {"branches": [3, 2], "segment_tokens": 1, "mask_sure": False},
            },
            rollout={"prompts_per_step": 4, "group_size": 6, "backend": backend},
        )
        [(collected, batch)] = steps_of(config, tmp_path, ExactTransport(faulty), 1)
        drawn.append([rollout.response.ids for rollout in collected.rows])
        segments = {
            (place // 2 if depth == 0 else place, depth)
            for place, rollout in enumerate(collected.rows)
            for depth in range(2)
            if len(rollout.response.ids) > depth
        }
        assert collected.metrics["tree_calls"] == len(segments)
        mask_BT, advantages_BT = batch["loss_mask"], batch["advantages"]
        assert 0 < int(mask_BT.sum()) < collected.metrics["tree_tokens"]
        assert collected.metrics["tree_tokens"] < batch["completion_mask"].sum()
        assert not mask_BT[batch["rewards"].isnan()].any()
        assert not advantages_BT[~mask_BT].any()
        first_BT = mask_BT[:, 0].view(-1, 2)
        assert bool((first_BT.sum(dim=1) <= 1).all()), "two leaves share their first token"
        assert bool((advantages_BT[mask_BT].abs() <= 1).all())
        assert advantages_BT[mask_BT].any()
    assert drawn[0] == drawn[1], "the engines grow the same trees"
    assert drawn[0][::2] != drawn[0][1::2]


class AnotherLook(ExactTransport):
    """Right is the very reference, and behind a question mark whatever is of even length."""

    def _judge(self, item: Any, result: Any) -> None:
        super()._judge(item, result)
        if "?" in item.response and len(item.response) % 2 == 0:
            result.judgement.reward, result.judgement.verdict = 1.0, "correct"


def test_responses_go_on_behind_their_end_and_the_trigger_is_not_trained(
    tiny_config: MakeConfig, tmp_path: Path
) -> None:
    drawn = []
    for backend in ("hf", "paged"):
        config = tiny_config(
            method={"rethinking": {"share": 0.8, "triggers": ["?"]}},
            rollout={"prompts_per_step": 4, "max_new_tokens": 8, "backend": backend},
        )
        [(collected, batch)] = steps_of(config, tmp_path, AnotherLook(), 1)
        drawn.append([rollout.response.ids for rollout in collected.rows])
        kept = [row for row, rollout in enumerate(collected.rows) if rollout.turns]
        assert kept
        for row, rollout in enumerate(collected.rows):
            own_T = batch["loss_mask"][row, : len(rollout.response.ids)]
            if row not in kept:
                assert "?" not in rollout.response.text
                continue
            assert rollout.result.judgement.verdict == "correct"
            assert rollout.response.text.count("?") >= 1
            assert own_T.tolist().count(False) == 1
            assert not own_T[rollout.turns[0].end]
        measured = collected.metrics
        assert measured["rethinking_tried"] * measured["rethinking_kept"] == pytest.approx(
            len(kept) / len(collected.rows)
        )
        assert 0 < measured["rethinking_corrected"] <= 1
    assert drawn[0] == drawn[1], "the engines go on alike"


def test_responses_begin_with_what_their_row_holds(tiny_config: MakeConfig, tmp_path: Path) -> None:
    """Sums above 9, whose answers begin with a 1; half of the rows tell it."""
    rows = [(a, b) for a in range(10) for b in range(10) if a + b > 9]
    path = tmp_path / "starts.jsonl"
    told = [
        {"question": f"{a}+{b}=", "answer": str(a + b), "begun": "1" if a % 2 else ""}
        for a, b in rows
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in told))
    drawn = []
    for backend in ("hf", "paged"):
        config = tiny_config(
            method={"starts": {"column": "begun"}},
            data={"path": str(path)},
            rollout={"prompts_per_step": 8, "backend": backend},
        )
        [(collected, batch)] = steps_of(config, tmp_path, ExactTransport(), 1)
        drawn.append([rollout.response.ids for rollout in collected.rows])
        begun = [int(one.request.draw.problem.question[0]) % 2 == 1 for one in collected.rows]
        for row, (rollout, given) in enumerate(zip(collected.rows, begun, strict=True)):
            length = len(rollout.response.ids)
            assert batch["loss_mask"][row, :length].tolist() == [not given] + [True] * (length - 1)
            assert not given or rollout.response.text.startswith("1")
        assert 0 < collected.metrics["started"] == sum(begun) / len(begun) < 1
        assert collected.metrics["started_tokens"] == 1
        assert any(one.result.judgement.reward for one in collected.rows)
    assert drawn[0] == drawn[1], "the engines go on alike"


def test_a_run_s_rollouts_become_beginnings_that_a_run_trains_from(
    tiny_config: MakeConfig, train: Callable[..., Any], tmp_path: Path
) -> None:
    train(tiny_config(run={"steps": 2, "rollouts": "all"}, eval={"prompts": 0}), "first")
    out = tmp_path / "starts.jsonl"
    plan = StartsPlan(tmp_path / "first", separator="1", share=1.0)
    tally = write_starts(plan, out)
    assert 0 < tally.kept < tally.prompts
    assert tally.starts
    config = tiny_config(
        method={"starts": {"column": "begun"}},
        data={"path": str(out), "columns": {"prompt": "prompt", "reference": "reference"}},
        run={"steps": 2},
        eval={"prompts": 0},
    )
    rows = train(config, "second")
    assert all(0 < row["started"] < 1 for row in rows)
    assert any(row["grad_norm"] > 0 for row in rows)


def test_recomposed_batches_are_as_large_and_remainders_start_from_their_sampler(
    tiny_config: MakeConfig, tmp_path: Path
) -> None:
    config = tiny_config(
        method={"recomposition": {"groups": 16, "first": 0.25, "last": 0.25}},
        rollout={"prompts_per_step": 4, "group_size": 8},
    )
    with built_trainer(config, tmp_path, ExactTransport()) as trainer:
        first = trainer._generate_and_score_completions([])
        trainer.state.global_step = 1
        second = trainer._generate_and_score_completions([])
        collected = trainer.collected
    assert not first["stale"].any()
    assert len(first["rewards"]) == len(second["rewards"]) == 32
    assert second["stale"].sum() == 8, "one group of four"
    assert len(collected.judged) == 24, "whose prompt was not drawn"
    stale_BT = second["stale"][:, None] & second["completion_mask"].bool()
    assert second["old_logps"][stale_BT].equal(second["sampler_logps"][stale_BT])
    some_B = second["loss_mask"].any(dim=1)
    left_out = [(r.request.draw.number, r.request.index) in collected.left_out
                for r in collected.rows]  # fmt: skip
    assert (~some_B).tolist() == left_out
    assert 0 < sum(left_out) < 32
    assert not second["rewards"].isnan().any(), "they count for their groups"


def test_void_responses_are_in_no_loss_and_in_their_groups_mean(
    tiny_config: MakeConfig, tmp_path: Path
) -> None:
    """An answer is one of two digits here."""
    config = tiny_config(method={"filter": {"void": "text", "void_answer": r"^\d\d$"}})
    plain = tiny_config()
    [(_, filtered)] = steps_of(config, tmp_path / "one", ExactTransport(), 1)
    [(collected, whole)] = steps_of(plain, tmp_path / "two", ExactTransport(), 1)
    void_B = torch.tensor([re.search(r"^\d\d$", r.response.text) is None for r in collected.rows])
    assert 0 < int(void_B.sum()) < len(void_B)
    assert (~filtered["loss_mask"].any(dim=1)).equal(void_B)
    assert filtered["advantages"].equal(whole["advantages"])
