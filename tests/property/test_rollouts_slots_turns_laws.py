"""Laws of dialogues that are drawn a window a step: every token once, credit, faults, resuming."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.algos import gae
from assay.trainer.algos.turns import turn_gae
from assay.trainer.core import batch as batches
from assay.trainer.core.batch import scored_slots, without_left_out
from assay.trainer.core.build import scorer
from assay.trainer.core.hooks import Hooks, hooks_of
from assay.trainer.methods.turns.credit import rewards_of, turn_tokens
from assay.trainer.methods.turns.settings import TurnsConfig
from assay.trainer.rollouts.types import Collected, Rollout, Unfinished
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.objective import AdvantageConfig, CriticConfig
from rollouts_collecting_support import on_ranks, one_run
from turns_support import (
    LONGEST,
    RECONSIDERS,
    VERIFIES,
    ContinuingSpeaker,
    Round,
    chance,
    collector,
    slots,
)

_PLAYS = st.fixed_dictionaries(
    {
        "protocol": st.sampled_from([VERIFIES, RECONSIDERS]),
        "prompts": st.sampled_from([2, 4]),
        "group_size": st.integers(1, 3),
    }
)
_WINDOWS = st.integers(1, 3 * LONGEST + 2)
_SEEDS = st.integers(0, 1000)
_WITHOUT_FAULTS = ("correct", "incorrect")
_WITH_FAULTS = ("correct", "correct", "incorrect", "fault")
_SETTINGS = st.builds(
    TurnsConfig,
    mode=st.just("verify"),
    independent=st.booleans(),
    reward=st.sampled_from(["turns", "final"]),
    first_reward=st.sampled_from(["accuracy", "verification", "none"]),
    verifier_reward=st.booleans(),
    shaping=st.sampled_from([0.0, 1.0, 5.0]),
)
_Who = tuple[int, int]


def speaker_of(seed: int, play: dict[str, Any]) -> ContinuingSpeaker:
    verifies = play["protocol"].verifies
    return ContinuingSpeaker(chance(seed, "correct", "wrong", "unparsed"), verifies=verifies)


def played(
    seed: int,
    play: dict[str, Any],
    window: int,
    steps: int,
    *,
    ranks: Any = None,
    outcomes: tuple[str, ...] = _WITH_FAULTS,
) -> tuple[list[Collected], Any, ContinuingSpeaker]:
    speaker = speaker_of(seed, play)
    of = slots(speaker, chance(seed, *outcomes), window=window, ranks=ranks, **play)
    return [collected(of, speaker, step) for step in range(steps)], of, speaker


def collected(of: Any, speaker: ContinuingSpeaker, step: int) -> Collected:
    speaker.step = step
    found: Collected = of.collect(step)
    return found


def hooks(turns: TurnsConfig) -> tuple[Hooks, ...]:
    return hooks_of(Config(method=method(turns)))


def method(turns: TurnsConfig) -> MethodSettings:
    return MethodSettings(
        advantage=AdvantageConfig(estimator="gae", lam=0.9),
        critic=CriticConfig(lam=1.0),
        turns=turns,
    )


def padded(one: Collected, turns: TurnsConfig, step: int) -> batches.Batch:
    """As the trainer scores, pads and marks what a step collected."""
    on = hooks(turns)
    scored = (
        without_left_out(scorer(on)(one.groups), one)
        if one.slot_rows is None
        else scored_slots(one.slot_rows, scorer(on))
    )
    batch = batches.pad(scored, pad_id=0, policy_step=step, device=torch.device("cpu"))
    for hook in on:
        batch = hook.mark(batch, scored, one)
    generator = torch.Generator().manual_seed(0)
    batch["values"] = torch.randn(batch["loss_mask"].shape, generator=generator)
    return batch


def who(row: Rollout | Unfinished) -> _Who:
    return row.request.draw.number, row.request.index


@settings(max_examples=25)
@given(_SEEDS, _PLAYS, _WINDOWS, st.integers(1, 8), _SETTINGS)
def test_every_token_of_the_policy_is_in_the_loss_once_under_the_policy_that_drew_it(
    seed: int, play: dict[str, Any], window: int, steps: int, turns: TurnsConfig
) -> None:
    found, of, speaker = played(seed, play, window, steps, outcomes=_WITHOUT_FAULTS)
    drawn: dict[_Who, list[tuple[int, int]]] = defaultdict(list)
    for step, one in enumerate(found):
        assert one.slot_rows is not None
        batch = padded(one, turns, step)
        assert not batch["stale"].any()
        assert int(batch["loss_mask"].sum()) == one.metrics["generated_tokens"]
        for row, slot_row in enumerate(one.slot_rows):
            places = torch.nonzero(batch["loss_mask"][row]).flatten().tolist()
            assert 1 <= len(places) <= window
            if isinstance(slot_row.row, Unfinished):
                assert len(places) == window, "a sample that waits has had its window"
            for place in places:
                assert float(batch["sampler_logps"][row, place]) == -1.0 - step
                turn, token = int(batch["turn"][row, place]), batch["completion_ids"][row, place]
                drawn[who(slot_row.row)].append((turn, int(token)))
    going = {(slot.draw.number, slot.index): slot for slot in of._slots if slot is not None}
    for one_, seen in drawn.items():
        whole = [
            (turn + 1, token)
            for turn in range(speaker.turns(*one_, play["protocol"]))
            for token in speaker.response(*one_, turn).ids
        ]
        assert seen == whole[: len(seen)], "each once, in order"
        if one_ in going:
            assert sum(tokens for _, tokens in going[one_].versions) == len(seen)
        else:
            assert len(seen) == len(whole)


@settings(max_examples=20)
@given(_SEEDS, _PLAYS, st.integers(3 * LONGEST, 99), st.integers(1, 3), _SETTINGS)
def test_a_window_of_the_longest_dialogue_is_a_collector_to_the_bit(
    seed: int, play: dict[str, Any], window: int, steps: int, turns: TurnsConfig
) -> None:
    speaker = speaker_of(seed, play)
    plain = collector(speaker, chance(seed, *_WITH_FAULTS), **play)
    found, _, _ = played(seed, play, window, steps)
    config, on = method(turns), hooks(turns)
    for step, one in enumerate(found):
        other = collected(plain, speaker, step)
        assert repr(one.rows) == repr(other.rows)
        assert repr(one.judged) == repr(other.judged)
        assert one.metrics["draws"] == other.metrics["draws"]
        mine, theirs = padded(one, turns, step), padded(other, turns, step)
        assert not mine.pop("turn_open").any()
        assert mine.keys() == theirs.keys()
        for name, tensor in theirs.items():
            assert torch.equal(mine[name].nan_to_num(-7.0), tensor.nan_to_num(-7.0)), name
        for ours, its in zip(
            batches.critic_advantages(mine, config, on),
            batches.critic_advantages(theirs, config, on),
            strict=True,
        ):
            assert torch.equal(ours, its)


@settings(max_examples=20)
@given(_SEEDS, _PLAYS, _WINDOWS, st.integers(1, 8))
def test_an_attempt_is_judged_once_in_the_step_in_which_it_ends(
    seed: int, play: dict[str, Any], window: int, steps: int
) -> None:
    speaker = speaker_of(seed, play)
    rounds: list[Round] = []
    of = slots(speaker, chance(seed, *_WITH_FAULTS), window=window, rounds=rounds, **play)
    verifies = play["protocol"].verifies
    before: dict[_Who, int] = {}
    for step in range(steps):
        found = collected(of, speaker, step)
        ended: list[str] = []
        for row in found.rows:
            number, index = who(row)
            attempts = [
                turn
                for turn, said in enumerate(row.turns)
                if said.finished and not (verifies and turn == 1)
            ]
            ended += [
                f"{number}/{index}/{turn}"
                for turn in attempts
                if turn >= before.get((number, index), 0)
            ]
            before[number, index] = sum(turn.finished for turn in row.turns)
            for turn in attempts:
                assert row.turns[turn].result is not None
        assert sorted(rounds[step].texts) == sorted(ended)


@settings(max_examples=25)
@given(_SEEDS, _PLAYS, _WINDOWS, _SETTINGS)
def test_what_a_turn_earns_is_what_it_earns_of_the_whole_dialogue(
    seed: int, play: dict[str, Any], window: int, turns: TurnsConfig
) -> None:
    """Where it is known. What a later fault takes out had been trained on by then; what an earlier
    one does is out at once, and is no number."""
    found, _, _ = played(seed, play, window, 12)
    whole = {who(row): row for one in found for row in one.rows if isinstance(row, Rollout)}
    for row in (row for one in found for row in one.rows if who(row) in whole):
        earned = rewards_of(whole[who(row)].turns, turns)
        tokens, _ = turn_tokens(row, turns)
        faulted = any(turn.result and turn.result.fault for turn in row.turns)
        for said, reward in zip(row.turns, earned, strict=False):
            last = said.end - 1
            trained = tokens.trained[said.start : said.end]
            assert len(set(trained)) == 1
            if isinstance(row, Rollout):
                assert not tokens.open[last]
                assert trained[0] == (reward is not None)
            elif faulted:
                assert reward is None or trained[0]
                assert not tokens.rewards[last] or trained[0]
            else:
                assert trained[0], "no fault is known"
            known = said.finished and not (tokens.open[last] and turns.independent)
            if trained[0] and reward is not None and known:
                assert tokens.rewards[last] == reward
            if isinstance(row, Unfinished) and not said.finished:
                assert tokens.open[last]
                assert tokens.rewards[last] == 0


@settings(max_examples=20)
@given(_SEEDS, _PLAYS, _WINDOWS, _SETTINGS)
def test_turns_whose_reward_is_known_have_the_advantages_of_the_whole_dialogue(
    seed: int, play: dict[str, Any], window: int, turns: TurnsConfig
) -> None:
    """Where turns are independent; the last token of an open one has none."""
    found, _, _ = played(seed, play, window, 6, outcomes=_WITHOUT_FAULTS)
    config, on = method(turns), hooks(turns)
    for step, one in enumerate(found):
        batch = padded(one, turns, step)
        advantages_BT, _, _ = batches.critic_advantages(batch, config, on)
        assert not (batch["value_mask"] & batch["unfinished"].unsqueeze(1)).any()
        for row, slot_row in enumerate(one.slot_rows or ()):
            if isinstance(slot_row.row, Rollout):
                assert int(batch["value_mask"][row].sum()) == slot_row.row.length
                continue
            for number, said in enumerate(slot_row.row.turns, start=1):
                at = slice(said.start, said.end)
                values_T = batch["values"][row, at]
                opened = bool(batch["turn_open"][row, said.end - 1])
                if opened:
                    earned = float(batch["turn_rewards"][row, said.end - 1])
                    got = float(advantages_BT[row, said.end - 1])
                    assert got == pytest.approx(earned, abs=1e-6)
                if not turns.independent:
                    assert opened == (number == len(slot_row.row.turns))
                    continue
                rewards_T = batch["turn_rewards"][row, at]
                expected_BT = gae.gae(
                    rewards_T[None],
                    values_T[None],
                    torch.ones(1, len(values_T)),
                    lam=0.9,
                    bootstrap_B=values_T[-1:].double() if opened else None,
                )
                torch.testing.assert_close(advantages_BT[row, at], expected_BT[0])


def test_an_open_turn_is_the_golden_row_of_egae() -> None:
    """arXiv 2506.15050: as a response of one turn that goes on; behind a turn that has ended."""
    values_BT = torch.tensor([[0.9, 0.3, 0.2, 0.4, 0.5, 0.7]], dtype=torch.float64)
    mask_BT = torch.tensor([[True, False, True, True, True, True]])
    rewards_BT = torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    open_BT = torch.tensor([[False, False, False, False, False, True]])
    found_BT, _ = turn_gae(
        rewards_BT, values_BT, mask_BT, independent=True, lam_actor=0.95, open_BT=open_BT
    )
    expected = torch.tensor([[0.1, 0.0, 0.4755, 0.29, 0.2, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(found_BT, expected, atol=1e-4, rtol=0)


@given(_SEEDS)
def test_joined_turns_that_go_on_are_one_response_that_does(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    mask_BT = torch.rand(3, 11, generator=generator) < 0.7
    mask_BT[:, 0] = True
    rewards_BT, values_BT = torch.randn(2, 3, 11, generator=generator, dtype=torch.float64)
    last_B = mask_BT.long().mul(torch.arange(1, 12)).argmax(dim=1)
    open_BT = torch.arange(11) == last_B.unsqueeze(1)
    found_BT, _ = turn_gae(
        rewards_BT, values_BT, mask_BT, independent=False, lam_actor=0.8, open_BT=open_BT
    )
    for row in range(3):
        keep_T = mask_BT[row]
        values_1T, ones_1T = values_BT[row, keep_T][None], torch.ones(1, int(keep_T.sum()))
        after_1 = gae.boundary_values(values_1T, ones_1T, torch.tensor([True]))
        plain_1T = gae.gae(
            rewards_BT[row, keep_T][None], values_1T, ones_1T, lam=0.8, bootstrap_B=after_1
        )
        torch.testing.assert_close(found_BT[row, keep_T], plain_1T[0])


@settings(max_examples=20)
@given(_SEEDS, _PLAYS, _WINDOWS, st.integers(0, 4), st.integers(1, 3))
def test_interrupted_and_resumed_it_is_the_same_run(
    seed: int, play: dict[str, Any], window: int, before: int, after: int
) -> None:
    expected, uninterrupted, _ = played(seed, play, window, before + after)
    _, first, _ = played(seed, play, window, before)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    _, second, speaker = played(seed, play, window, 0)
    second.load_state_dict(torch.load(file, weights_only=True))
    for step in range(before, before + after):
        one, other = collected(second, speaker, step), expected[step]
        assert repr(one.slot_rows) == repr(other.slot_rows)
        assert one.metrics == other.metrics
    assert repr(second.state_dict()) == repr(uninterrupted.state_dict())


@settings(max_examples=20)
@given(_SEEDS, _PLAYS, _WINDOWS, st.integers(1, 4))
def test_on_two_processes_it_is_the_same_run(
    seed: int, play: dict[str, Any], window: int, steps: int
) -> None:
    def run(ranks: Any) -> tuple[list[Collected], Any]:
        found, of, _ = played(seed, play, window, steps, ranks=ranks)
        return found, of.state_dict()

    alone, state = run(None)
    together = on_ranks(2, run)
    for step, one in enumerate(alone):
        shares = [found[step].rows for found, _ in together]
        assert repr([row for share in shares for row in share]) == repr(one.rows)
        one_run([found[step] for found, _ in together], one)
    assert repr(together[0][1]) == repr(state)


@settings(max_examples=20)
@given(_SEEDS, _PLAYS, _WINDOWS, st.integers(0, 3))
def test_a_step_that_failed_can_be_repeated(
    seed: int, play: dict[str, Any], window: int, before: int
) -> None:
    _, of, speaker = played(seed, play, window, before)
    state = repr(of.state_dict())
    speaker.fails = True
    with pytest.raises(RuntimeError, match="told to"):
        of.collect(before)
    assert repr(of.state_dict()) == state
    speaker.fails = False
    expected = played(seed, play, window, before + 1)[0][before]
    assert repr(collected(of, speaker, before).rows) == repr(expected.rows)
