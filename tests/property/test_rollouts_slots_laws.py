"""Laws of truncated rollouts: every token once, under the policy that drew it; order; resuming."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.core.batch import Scored, pad, scored_slots
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.types import Collected, OneRank, Rollout, Unfinished
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import bernoulli, on_ranks, one_run, stream
from rollouts_slots_support import LIMIT, ContinuingGenerator, Round, slots, whole

_SIZES = st.fixed_dictionaries(
    {
        "prompts": st.sampled_from([2, 4]),
        "group_size": st.integers(1, 3),
        "window": st.integers(1, LIMIT + 2),
    }
)
_OUTCOMES = st.builds(
    bernoulli,
    st.floats(0.1, 0.9),
    fault_rate=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1000),
)


def collected(of: Any, generator: ContinuingGenerator, steps: int) -> list[Collected]:
    found = []
    for step in range(steps):
        generator.step = step
        found.append(of.collect(step))
    return found


def in_loss(one: Collected, step: int) -> list[tuple[tuple[int, int], int, int, float]]:
    """Of each token in the policy loss: whose it is, its place, itself, its sampler's logp."""
    assert one.slot_rows is not None

    def score(groups: Any) -> list[Scored]:
        rollouts = [rollout for group in groups for rollout in group]
        judged = [rollout.result.judgement for rollout in rollouts]
        return [
            Scored(rollout, judgement and judgement.reward)
            for rollout, judgement in zip(rollouts, judged, strict=True)
        ]

    scored = scored_slots(one.slot_rows, score)
    batch = pad(scored, pad_id=0, policy_step=step, device=torch.device("cpu"))
    assert not batch["stale"].any()
    found = []
    for row, slot_row in enumerate(one.slot_rows):
        request = slot_row.row.request
        for place in torch.nonzero(batch["loss_mask"][row]).flatten().tolist():
            token = int(batch["completion_ids"][row, place])
            logp = float(batch["sampler_logps"][row, place])
            found.append(((request.draw.number, request.index), place, token, logp))
    return found


@settings(max_examples=60)
@given(_SIZES, st.integers(1, 6))
def test_every_token_is_in_the_loss_once_under_the_policy_that_drew_it(
    sizes: dict[str, Any], steps: int
) -> None:
    generator = ContinuingGenerator()
    of = slots(bernoulli(0.5), generator=generator, **sizes)
    drawn: dict[tuple[int, int], list[int]] = defaultdict(list)
    for step, one in enumerate(collected(of, generator, steps)):
        seen = in_loss(one, step)
        assert one.metrics["generated_tokens"] == len(seen)
        for who, place, token, logp in seen:
            assert place == len(drawn[who]), "each once, in order"
            assert logp == -1.0 - step, "under the policy of this step"
            drawn[who].append(token)
    for (draw, index), ids in drawn.items():
        assert tuple(ids) == whole(draw, index)[: len(ids)]
    going = {(slot.draw.number, slot.index): slot for slot in of._slots if slot is not None}
    for who, ids in drawn.items():
        if who in going:
            [begun] = going[who].transcript.turns
            assert begun.ids == tuple(ids)
            assert sum(tokens for _, tokens in going[who].versions) == len(ids)
            assert list(begun.logprobs or ()) == [
                -1.0 - step for step, tokens in going[who].versions for _ in range(tokens)
            ]
        else:
            assert len(ids) == min(LIMIT, len(whole(*who)))


@settings(max_examples=60)
@given(_OUTCOMES, _SIZES, st.integers(1, 6))
def test_slots_are_never_idle_and_take_samples_in_the_order_of_the_stream(
    outcome: Any, sizes: dict[str, Any], steps: int
) -> None:
    generator = ContinuingGenerator()
    of = slots(outcome, generator=generator, **sizes)
    begun: list[tuple[int, int]] = []
    for one, call in zip(collected(of, generator, steps), generator.calls, strict=False):
        assert one.slot_rows is not None
        assert len(one.slot_rows) == sizes["prompts"] * sizes["group_size"] == len(call)
        begun += [who for who in call if who not in begun]
        for slot_row in one.slot_rows:
            if isinstance(slot_row.row, Unfinished):
                assert slot_row.drawn == sizes["window"]
            else:
                assert 1 <= slot_row.drawn <= sizes["window"]
    size = sizes["group_size"]
    assert begun == [(n // size, n % size) for n in range(len(begun))]
    assert of.state_dict()["stream"]["cursor"] == -(-len(begun) // size)


@settings(max_examples=60)
@given(_OUTCOMES, _SIZES, st.integers(1, 6))
def test_what_finished_is_judged_once_and_what_did_not_is_no_fault(
    outcome: Any, sizes: dict[str, Any], steps: int
) -> None:
    generator = ContinuingGenerator()
    of = slots(outcome, generator=generator, **sizes)
    judged: list[tuple[int, int]] = []
    for step, one in enumerate(collected(of, generator, steps)):
        rows = one.rows
        assert one.judged == [row for row in rows if isinstance(row, Rollout)]
        assert one.metrics["finished_share"] == pytest.approx(len(one.judged) / len(rows))
        for rollout in one.judged:
            who = (rollout.request.draw.number, rollout.request.index)
            judged.append(who)
            told = "fault" if rollout.result.judgement is None else rollout.result.judgement.verdict
            assert told == outcome(*who)
            assert rollout.response.truncated == (len(whole(*who)) > LIMIT)
        faulted = {id(r) for r in one.judged if r.result.fault is not None}
        left_out = {id(row) for row in rows} - faulted
        expected = sum(s.drawn for s in one.slot_rows or () if id(s.row) in left_out)
        assert len(in_loss(one, step)) == expected, "a fault's tokens leave, nothing else does"
    assert len(set(judged)) == len(judged)


@settings(max_examples=40)
@given(
    _OUTCOMES, st.sampled_from([2, 4]), st.integers(1, 3), st.integers(LIMIT, 99), st.integers(1, 4)
)
def test_a_window_of_the_limit_is_a_collector(
    outcome: Any, prompts: int, group_size: int, window: int, steps: int
) -> None:
    config = RolloutConfig(prompts_per_step=prompts, group_size=group_size, max_new_tokens=LIMIT)
    generator = ContinuingGenerator()
    plain = Collector(
        stream(), generator, lambda: Round(outcome),
        config=config, ranks=OneRank(),
    )  # fmt: skip
    expected = collected(plain, generator, steps)
    generator = ContinuingGenerator()
    sizes = {"prompts": prompts, "group_size": group_size, "window": window}
    found = collected(slots(outcome, generator=generator, **sizes), generator, steps)
    for one, other in zip(found, expected, strict=True):
        assert one.rows == other.rows
        assert one.judged == other.judged
        assert one.metrics["draws"] == other.metrics["draws"]


@settings(max_examples=40)
@given(_OUTCOMES, _SIZES, st.sampled_from([1, 2]), st.integers(1, 4))
def test_on_several_processes_it_is_the_same_run(
    outcome: Any, sizes: dict[str, Any], batch: int, steps: int
) -> None:
    def run(ranks: Any) -> tuple[list[Collected], dict[str, Any], list[int]]:
        generator = ContinuingGenerator()
        of = slots(outcome, ranks=ranks, generator=generator, **sizes)
        found = collected(of, generator, steps)
        return found, of.state_dict(), [*map(len, generator.calls)]

    alone, state, _ = run(None)
    together = on_ranks(2, run)
    for step, one in enumerate(alone):
        shares = [found[step].rows for found, _, _ in together]
        assert [row for share in shares for row in share] == one.rows
        assert len({len(share) for share in shares}) == 1, "each has as many rows"
        one_run([found[step] for found, _, _ in together], one)
    assert together[0][1] == state, "the first process saves for all"
    assert together[0][2] == together[1][2]


@settings(max_examples=40)
@given(_OUTCOMES, _SIZES, st.integers(0, 4), st.integers(1, 3))
def test_interrupted_and_resumed_it_is_the_same_run(
    outcome: Any, sizes: dict[str, Any], before: int, after: int
) -> None:
    generator = ContinuingGenerator()
    uninterrupted = slots(outcome, generator=generator, **sizes)
    expected = collected(uninterrupted, generator, before + after)
    generator = ContinuingGenerator()
    first = slots(outcome, generator=generator, **sizes)
    collected(first, generator, before)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = slots(outcome, generator=generator, **sizes)
    second.load_state_dict(torch.load(file, weights_only=True))
    for step in range(before, before + after):
        generator.step = step
        one, other = second.collect(step), expected[step]
        assert one.slot_rows == other.slot_rows
        assert (one.judged, one.metrics) == (other.judged, other.metrics)
    assert second.state_dict() == uninterrupted.state_dict()


@given(_OUTCOMES, _SIZES, st.integers(0, 3))
def test_a_step_that_failed_can_be_repeated(
    outcome: Any, sizes: dict[str, Any], before: int
) -> None:
    generator = ContinuingGenerator()
    of = slots(outcome, generator=generator, **sizes)
    collected(of, generator, before)
    state = of.state_dict()
    generator.fails = True
    with pytest.raises(RuntimeError, match="told to"):
        of.collect(before)
    assert of.state_dict() == state
