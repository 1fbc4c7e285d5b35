"""What must stay true between judged rollouts and the loss, whatever was drawn and judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.trainer.algos import difficulty
from assay.trainer.core import batch as batches
from assay.trainer.core import objective
from assay.trainer.core.batch import Scored
from assay.trainer.core.hooks import Hooks, hooks_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.dense.settings import DenseConfig
from assay.trainer.methods.segments.collector import SegmentTokens
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.objective import AdvantageConfig, LossConfig
from assay.trainer.settings.sections import RolloutConfig

CPU = torch.device("cpu")
REWARDS = st.one_of(st.none(), st.floats(-1, 1, width=32))
OBJECTIVES = [
    LossConfig(),
    LossConfig(aggregation="seq-mean-token-mean", dual_clip=3.0, kl_coef=0.1),
    LossConfig(aggregation="seq-mean-token-sum", ratio="sequence", entropy_coef=0.01),
    LossConfig(aggregation="constant", objective="cispo", positive_lm_coef=0.1),
    LossConfig(
        importance_correction="token-truncate", pre_clip=1000.0, kl_coef=0.1, kl_estimator="k1"
    ),
    LossConfig(importance_correction="decoupled", importance_cap=5.0),
]


def scored(reward: float | None, length: int, *, draw: int = 0, step: int = 0) -> Scored:
    """A response of `length` tokens; its reward is its judgement's."""
    outcome: Judgement | Fault = (
        Fault("WORKER_DIED", "gone")
        if reward is None
        else Judgement(reward, "correct" if reward > 0 else "incorrect")
    )
    problem = Problem(f"p{draw}", "q", (("user", "q"),), "a", task=f"t{draw % 2}")
    response = Response(
        tuple(range(3, 3 + length)), "x", tuple(-0.5 - 0.1 * n for n in range(length)), False
    )
    request = Request(Draw(draw, problem, (1, 2, 3)[: 1 + draw % 3]), 0)
    return Scored(Rollout(request, response, Result("0", outcome), step), reward)


def hooks(group_size: int = 2, **tables: Any) -> tuple[Hooks, ...]:
    """What a run calls whose methods have these tables."""
    rollout = RolloutConfig(group_size=group_size)
    return hooks_of(Config(method=MethodSettings(**tables), rollout=rollout))


def padded(rows: Sequence[Scored], step: int = 0) -> dict[str, torch.Tensor]:
    return batches.pad(rows, pad_id=0, policy_step=step, device=CPU)


def with_model(batch: dict[str, torch.Tensor], seed: int = 0) -> dict[str, torch.Tensor]:
    """What models and estimators add, made up."""
    generator = torch.Generator().manual_seed(seed)
    shape = batch["completion_ids"].shape
    batch["old_logps"] = -torch.rand(shape, generator=generator) - 0.1
    batch["ref_logps"] = -torch.rand(shape, generator=generator) - 0.1
    batch["advantages"] = torch.randn(shape, generator=generator)
    return batch


def loss_of(
    batch: dict[str, torch.Tensor], logps: torch.Tensor, config: LossConfig, parts: int = 1
) -> torch.Tensor:
    """The loss of a mini-batch, cut into so many micro-batches of whole rows."""
    cut = [dict(zip(batch, part, strict=True)) for part in _cut(list(batch.values()), parts)]
    counts = [objective.count(micro) for micro in cut]
    total = objective.Counts(
        *(
            torch.stack([getattr(one, name) for one in counts]).sum()
            for name in ("tokens", "rows", "positive_tokens")
        )
    )
    losses = [
        objective.policy_loss(
            rows, torch.full_like(rows, 0.7), micro, config, total, max_length=9
        ).loss
        for micro, rows in zip(cut, logps.chunk(parts), strict=True)
    ]
    return torch.stack(losses).sum()


def _cut(tensors: list[torch.Tensor], parts: int) -> Any:
    return zip(*(tensor.chunk(parts) for tensor in tensors), strict=True)


@given(st.lists(st.tuples(REWARDS, st.integers(1, 7)), min_size=4, max_size=4))
def test_padding_keeps_every_token_and_masks_the_rest(rows: list[tuple[Any, int]]) -> None:
    batch = padded([scored(reward, length) for reward, length in rows])
    lengths = torch.tensor([length for _, length in rows])
    assert batch["completion_mask"].sum(dim=1).equal(lengths)
    judged = torch.tensor([reward is not None for reward, _ in rows])
    assert batch["loss_mask"].any(dim=1).equal(judged)
    assert batch["loss_mask"].sum(dim=1).equal(lengths * judged)
    assert batch["rewards"].isnan().equal(~judged)


@pytest.mark.parametrize("config", OBJECTIVES, ids=range(len(OBJECTIVES)))
@settings(max_examples=30)
@given(
    st.lists(st.tuples(REWARDS, st.integers(1, 6)), min_size=6, max_size=6),
    st.sampled_from([2, 3, 6]),
)
def test_micro_batches_do_not_change_the_loss(
    config: LossConfig, rows: list[tuple[Any, int]], parts: int
) -> None:
    batch = with_model(padded([scored(*row) for row in rows]))
    logps = (batch["old_logps"] + 0.3 * torch.randn(batch["old_logps"].shape)).requires_grad_()
    whole = loss_of(batch, logps, config)
    split = loss_of(batch, logps, config, parts)
    torch.testing.assert_close(split, whole, atol=1e-5, rtol=1e-5)
    for one, other in zip(
        torch.autograd.grad(whole, logps), torch.autograd.grad(split, logps), strict=True
    ):
        torch.testing.assert_close(other, one, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("config", OBJECTIVES, ids=range(len(OBJECTIVES)))
@settings(max_examples=30)
@given(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3), st.integers(0, 2))
def test_a_faulted_row_is_as_if_it_had_never_been_drawn(
    config: LossConfig, rewards: list[float], place: int
) -> None:
    """The loss, its gradient, and the gradient of the faulted row itself."""
    rows = [scored(reward, 4) for reward in rewards]
    faulted = scored(None, 4)
    with_fault = with_model(padded([*rows[:place], faulted, *rows[place:]]))
    keep = [n for n in range(4) if n != place]
    without = {name: tensor[keep] for name, tensor in with_fault.items()}
    logps = (with_fault["old_logps"] + 0.2).requires_grad_()
    loss = loss_of(with_fault, logps, config)
    alone = logps.detach()[keep].requires_grad_()
    expected = loss_of(without, alone, config)
    torch.testing.assert_close(loss, expected)
    (gradient,) = torch.autograd.grad(loss, logps)
    (expected_gradient,) = torch.autograd.grad(expected, alone)
    torch.testing.assert_close(gradient[keep], expected_gradient)
    assert not gradient[place].any()


@given(st.lists(REWARDS, min_size=8, max_size=8), st.sampled_from(["group", "rloo"]))
def test_advantages_of_a_group_ignore_its_faults(rewards: list[Any], estimator: Any) -> None:
    config = AdvantageConfig(estimator=estimator)
    batch = padded([scored(reward, 3, draw=n // 4) for n, reward in enumerate(rewards)])
    advantages = batches.group_advantages(batch, config, 4)[:, 0]
    for group in range(2):
        judged = [r for r in rewards[4 * group : 4 * group + 4] if r is not None]
        mine = advantages[4 * group : 4 * group + 4]
        faults = torch.tensor([r is None for r in rewards[4 * group : 4 * group + 4]])
        assert not mine[faults].any()
        if len(judged) < 2:
            assert not mine.any()
        else:
            assert abs(float(mine.sum())) < 1e-3


def test_stale_responses_start_from_what_their_sampler_said() -> None:
    batch = padded([scored(1.0, 3, step=0), scored(0.0, 3, step=2)], step=2)
    assert batch["stale"].tolist() == [True, False]
    old = batches.old_logps(batch, None, decoupled=False)
    torch.testing.assert_close(old[0], batch["sampler_logps"][0])
    assert bool(old[1].isnan().all())
    computed = torch.full_like(old, -2.0)
    old = batches.old_logps(batch, computed, decoupled=False)
    torch.testing.assert_close(old[0], batch["sampler_logps"][0])
    assert bool((old[1] == -2.0).all())
    assert bool((batches.old_logps(batch, computed, decoupled=True) == -2.0).all())


def test_the_reward_lies_on_the_last_token_and_spans_where_they_end() -> None:
    row = scored(1.0, 4)
    dense = dataclasses.replace(
        row, token_rewards=[0.0, 0.5, 0.0, 0.25], ends=[False, True, False, True]
    )
    batch = padded([dense, scored(None, 2)])
    on = hooks(dense=DenseConfig(weight=2.0))
    rewards = batches.token_rewards(batch, LossConfig(), on)
    assert rewards.tolist() == [[0.0, 1.0, 0.0, 1.5], [0.0, 0.0, 0.0, 0.0]]
    plain = batches.token_rewards(batch, LossConfig(), hooks())
    assert plain.tolist() == [[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]


def test_dense_rewards_reach_the_tokens_before_them() -> None:
    rows = []
    for reward, steps in ((1.0, [1.0, 1.0]), (0.0, [1.0, 0.0])):
        rows.append(
            dataclasses.replace(
                scored(reward, 4),
                token_rewards=[0.0, steps[0], 0.0, steps[1]],
                ends=[False, True, False, True],
            )
        )
    config, on = AdvantageConfig(scale="none"), hooks(dense=DenseConfig(weight=1.0))
    batch = padded(rows)
    advantages = batches.group_advantages(batch, config, 2, hooks=on)
    plain = batches.group_advantages(batch, config, 2)
    extra = advantages - plain
    # steps 1, 1, 1, 0: mean 0.75, deviation 0.5
    torch.testing.assert_close(extra[0], torch.tensor([1.0, 1.0, 0.5, 0.5]), atol=1e-4, rtol=0)
    torch.testing.assert_close(extra[1], torch.tensor([-1.0, -1.0, -1.5, -1.5]), atol=1e-4, rtol=0)


@given(st.lists(st.floats(-1, 1, width=32), min_size=8, max_size=8))
def test_whitening_over_two_processes_is_that_over_one(rewards: list[float]) -> None:
    rows = [scored(reward, 1 + n % 3, draw=n // 2) for n, reward in enumerate(rewards)]
    whole = padded(rows)
    halves = [padded(rows[:4]), padded(rows[4:])]
    config = AdvantageConfig(normalise="task", max_sigma=1.5)
    advantages = torch.randn(whole["completion_mask"].shape, generator=torch.Generator())
    expected = batches.refined(advantages, whole, config)
    widths = [half["completion_mask"].shape[1] for half in halves]
    parts = [advantages[:4, : widths[0]], advantages[4:, : widths[1]]]

    def gathered(index: int) -> batches.Across:
        def gather(mine: torch.Tensor) -> torch.Tensor:
            if mine.dim() == 1:
                return whole["task"]
            source = parts if mine is parts[index] else [h["loss_mask"].float() for h in halves]
            width = max(part.shape[1] for part in source)
            return torch.cat(
                [torch.nn.functional.pad(part, (0, width - part.shape[1])) for part in source]
            )

        return batches.Across(gather, index)

    for index, half in enumerate(halves):
        got = batches.refined(parts[index], half, config, gathered(index))
        rows_of = slice(4 * index, 4 * index + 4)
        torch.testing.assert_close(got, expected[rows_of, : widths[index]])


def test_a_batch_is_weighed_by_its_prompts_tasks() -> None:
    rows = [scored(reward, 3, draw=n // 3) for n, reward in enumerate([1.0, -1.0, -1.0] * 2)]
    batch = padded(rows)
    plain = AdvantageConfig(scale="task")
    heavy = AdvantageConfig(scale="task", difficulty="exp")
    one, two = (batches.group_advantages(batch, config, 3) for config in (plain, heavy))
    rewards, correct, tasks = (batch[name].view(2, 3) for name in ("rewards", "correct", "task"))
    expected = difficulty.weights(rewards, correct, tasks[:, 0], form="exp").reshape(-1, 1)
    torch.testing.assert_close(two, one * expected)
    assert not torch.equal(one, two)


def test_what_a_source_leaves_out_counts_for_its_group_and_trains_nothing() -> None:
    rows = [scored(reward, 2, draw=n) for n, reward in enumerate([1.0, -1.0, None])]
    collected = Collected([], [], left_out=frozenset({(0, 0), (2, 0)}))
    batch = padded(batches.without_left_out(rows, collected))
    assert batch["loss_mask"].any(dim=1).tolist() == [False, True, False]
    assert batch["rewards"][:2].tolist() == [1.0, -1.0]


def test_segments_train_where_both_their_ends_have_a_value() -> None:
    rows = [scored(1.0, 3, draw=0), scored(0.0, 2, draw=1), scored(None, 2, draw=2)]
    nan = float("nan")
    found = {
        (0, 0): SegmentTokens((0.0, 0.5, nan), (True, True, True)),
        (1, 0): SegmentTokens((0.25, -0.25), (False, True)),
    }
    config = AdvantageConfig(estimator="segments", scale="none")
    [segments_on] = hooks(advantage=config)
    batch = segments_on.mark(padded(rows), rows, Collected([], [], notes={"segments": found}))
    advantages = batches.group_advantages(batch, config, 1)
    assert batch["loss_mask"].tolist() == [
        [True, True, False], [False, True, False], [False, False, False]
    ]  # fmt: skip
    assert advantages.tolist() == [[0.0, 0.5, 0.0], [0.0, -0.25, 0.0], [0.0, 0.0, 0.0]]
    faults = [scored(None, 2)]
    without = segments_on.mark(padded(faults), faults, Collected([], []))
    assert not batches.group_advantages(without, config, 1).any(), "all faulted: nothing to value"


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.sampled_from([0.0, 0.9]))
def test_a_length_adaptive_lambda_has_the_paper_s_values_unless_a_floor_is_set(
    lengths: list[int], floor: float
) -> None:
    """1 - 1 / (alpha L) from L = 1 / alpha on, and 0 below, where it would be negative."""
    chosen = {"min_lam": floor} if floor else {}
    config = MethodSettings(
        advantage=AdvantageConfig(estimator="gae", length_adaptive_alpha=0.05, **chosen)
    )
    batch = padded([scored(1.0, length) for length in lengths])
    batch["values"] = torch.zeros_like(batch["sampler_logps"])
    _, _, lam_B = batches.critic_advantages(batch, config, ())
    formula = [1 - 20 / length for length in lengths]
    assert lam_B.tolist() == pytest.approx([max(value, floor, 0.0) for value in formula])


COEFFICIENTS = st.sampled_from([0.0, 1e-5, 0.1, 0.5])


@given(
    st.lists(st.tuples(REWARDS, st.integers(1, 5), st.integers(0, 1)), min_size=2, max_size=6),
    COEFFICIENTS,
    COEFFICIENTS,
)
def test_a_task_s_own_kl_coefficient_is_that_of_a_run_of_this_task(
    rows: list[tuple[Any, int, int]], own: float, common: float
) -> None:
    """In the loss and in the reward; rows of the other task have the common one."""
    items = [scored(reward, length, draw=draw) for reward, length, draw in rows]
    both = LossConfig(kl_coef=common, kl_coef_by_task={"t1": own})
    for draw, coef in ((0, common), (1, own)):
        chosen = [item for item, row in zip(items, rows, strict=True) if row[2] == draw]
        if not chosen:
            continue
        batch = with_model(padded(chosen))
        batch["kl_logps"] = batch["old_logps"]
        logps = (batch["old_logps"] + 0.2).requires_grad_()
        alone = LossConfig(kl_coef=coef)
        if both.kl_most == 0:
            assert alone.kl_most == 0
            continue
        losses = [loss_of(batch, logps, config) for config in (both, alone)]
        assert losses[0].equal(losses[1])
        if losses[0].requires_grad:
            slopes = [torch.autograd.grad(loss, logps)[0] for loss in losses]
            assert slopes[0].equal(slopes[1])
        rewards = [
            batches.token_rewards(batch, dataclasses.replace(config, kl_place="reward"))
            for config in (both, alone)
        ]
        assert rewards[0].equal(rewards[1])
