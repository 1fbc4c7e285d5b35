"""Laws of dialogues: masks, credit, faults, and independence of processes and interruptions."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.algos.turns import turn_gae
from assay.trainer.core import batch as batches
from assay.trainer.core.batch import Across
from assay.trainer.core.build import scorer
from assay.trainer.core.hooks import Hooks, hooks_of
from assay.trainer.data.problems import Problem
from assay.trainer.methods.dynamic_sampling.settings import DynamicSamplingConfig
from assay.trainer.methods.hints.hints import failed, with_hint
from assay.trainer.methods.replay.replay import make_replay
from assay.trainer.methods.replay.settings import ReplayConfig
from assay.trainer.methods.turns.credit import (
    ATTEMPT,
    VERIFICATION,
    rewards_of,
    turn_metrics,
)
from assay.trainer.methods.turns.settings import TurnsConfig
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.objective import AdvantageConfig, CriticConfig, LossConfig
from rollouts_collecting_support import on_ranks, one_run, problems, stream
from turns_support import (
    RECONSIDERS,
    VERIFIES,
    Speaker,
    chance,
    collector,
    dialogue,
)

_OUTCOMES = st.sampled_from(["correct", "incorrect", "fault"])
_VERDICTS = st.sampled_from(["correct", "wrong", "unparsed"])
_VERIFIED = st.builds(dialogue, _OUTCOMES, _VERDICTS, st.none() | _OUTCOMES)
_RECONSIDERED = st.builds(dialogue, _OUTCOMES, st.none(), _OUTCOMES)
_DIALOGUES = st.lists(_VERIFIED, min_size=1, max_size=8) | st.lists(
    _RECONSIDERED, min_size=1, max_size=8
)
_SETTINGS = st.builds(
    TurnsConfig,
    mode=st.just("verify"),
    independent=st.booleans(),
    reward=st.sampled_from(["turns", "final"]),
    first_reward=st.sampled_from(["accuracy", "verification", "none"]),
    verifier_reward=st.booleans(),
    shaping=st.sampled_from([0.0, 1.0, 5.0]),
)


def method(turns: TurnsConfig, **advantage: Any) -> MethodSettings:
    return MethodSettings(
        advantage=AdvantageConfig(estimator="gae", lam=1.0, **advantage),
        critic=CriticConfig(lam=1.0),
        turns=turns,
    )


def hooks(turns: TurnsConfig) -> tuple[Hooks, ...]:
    return hooks_of(Config(method=method(turns)))


def padded(rollouts: Sequence[Rollout], turns: TurnsConfig) -> batches.Batch:
    """As a run scores, pads and marks them."""
    on = hooks(turns)
    scored = scorer(on)([(rollout,) for rollout in rollouts])
    batch = batches.pad(scored, pad_id=0, policy_step=0, device=torch.device("cpu"))
    for hook in on:
        batch = hook.mark(batch, scored, Collected([], []))
    generator = torch.Generator().manual_seed(0)
    batch["values"] = torch.randn(batch["loss_mask"].shape, generator=generator)
    return batch


@given(_DIALOGUES, _SETTINGS)
def test_only_the_policys_judged_turns_are_in_the_loss(
    rollouts: list[Rollout], turns: TurnsConfig
) -> None:
    batch = padded(rollouts, turns)
    policy_BT = batch["own"]
    assert not (batch["loss_mask"] & ~policy_BT).any()
    assert torch.equal(batches.value_mask(batch), batch["loss_mask"])
    assert policy_BT.sum().item() == sum(rollout.length for rollout in rollouts)
    for row, rollout in enumerate(rollouts):
        earned = rewards_of(rollout.turns, turns)
        for number, (turn, reward) in enumerate(zip(rollout.turns, earned, strict=True), start=1):
            inside = slice(turn.start, turn.end)
            assert (batch["turn"][row, inside] == number).all()
            role = ATTEMPT if turn.verdict is None else VERIFICATION
            assert (batch["role"][row, inside] == role).all()
            assert (batch["loss_mask"][row, inside] == (reward is not None)).all()
            rewards_BT = batches.token_rewards(batch, LossConfig(), hooks(turns))
            rewards_T = rewards_BT[row, inside]
            assert rewards_T.tolist() == [0.0] * (turn.end - turn.start - 1) + [reward or 0.0]
    sampled = batch["sampler_logps"].shape
    assert sampled == batch["completion_mask"].shape


@given(_VERIFIED | _RECONSIDERED, _SETTINGS)
def test_a_fault_never_becomes_a_number(rollout: Rollout, turns: TurnsConfig) -> None:
    """What any judgement in its place would have changed is not known."""
    earned = rewards_of(rollout.turns, turns)
    faulted = [n for n, turn in enumerate(rollout.turns) if turn.result and turn.result.fault]
    if not faulted:
        assert None not in earned
        return
    assert earned[faulted[-1]] is None
    others = []
    for outcome in ("correct", "incorrect"):
        said: list[Any] = [turn.verdict for turn in rollout.turns if turn.verdict]
        attempts = [
            outcome if turn.result.fault else turn.result.judgement.verdict
            for turn in rollout.turns
            if turn.result is not None
        ]
        judged = dialogue(attempts[0], (said or [None])[0], (attempts[1:] or [None])[0])
        others.append(rewards_of(judged.turns, turns))
    for n, reward in enumerate(earned):
        if reward is not None:
            assert [other[n] for other in others] == [reward, reward]
            assert turns.independent, "returns of this turn hold those of the faulted one"


@given(_DIALOGUES, _SETTINGS, st.integers(1, 3))
def test_a_turns_advantage_does_not_depend_on_later_turns(
    rollouts: list[Rollout], turns: TurnsConfig, last: int
) -> None:
    """Nor on their values; where turns are not independent, it does on their rewards."""
    batch = padded(rollouts, turns)
    config, on = method(turns), hooks(turns)
    before_BT, targets_BT, _ = batches.critic_advantages(batch, config, on)
    later_BT = batch["turn"] > last
    batch["turn_rewards"] = torch.where(later_BT, 7.0, batch["turn_rewards"])
    batch["values"] = torch.where(later_BT, -3.0, batch["values"])
    after_BT, after_targets_BT, _ = batches.critic_advantages(batch, config, on)
    earlier_BT = (batch["turn"] > 0) & ~later_BT
    same = torch.equal(before_BT[earlier_BT], after_BT[earlier_BT])
    same_targets = torch.equal(targets_BT[earlier_BT], after_targets_BT[earlier_BT])
    if turns.independent:
        assert same
        assert same_targets
    else:
        judged_B = ~batch["rewards"].isnan()
        reached_B = (later_BT & batch["loss_mask"]).any(dim=1) & judged_B
        assert same == (not reached_B.any())
    assert not after_BT[batch["turn"] == 0].any()


@given(st.integers(0, 10_000), st.booleans())
def test_joined_turns_are_one_response(seed: int, trailing: bool) -> None:
    """Without what lies between, each row is a response of plain GAE; padding changes nothing."""
    from assay.trainer.algos.gae import decoupled_gae

    generator = torch.Generator().manual_seed(seed)
    mask_BT = torch.rand(3, 11, generator=generator) < 0.7
    mask_BT[:, 0] = True
    mask_BT[:, -1] = trailing
    rewards_BT, values_BT = torch.randn(2, 3, 11, generator=generator, dtype=torch.float64)
    found = turn_gae(
        rewards_BT, values_BT, mask_BT, independent=False, gamma=0.9, lam_actor=0.8, lam_critic=0.7
    )
    for row in range(3):
        keep_T = mask_BT[row]
        plain = decoupled_gae(
            rewards_BT[row, keep_T][None],
            values_BT[row, keep_T][None],
            torch.ones(1, int(keep_T.sum())),
            gamma=0.9,
            lam_actor=0.8,
            lam_critic=0.7,
        )
        for mine_BT, theirs_BT in zip(found, plain, strict=True):
            assert torch.allclose(mine_BT[row, keep_T], theirs_BT[0], atol=1e-12)
            assert not mine_BT[row, ~keep_T].any()


@given(st.lists(_VERIFIED, min_size=4, max_size=8), st.integers(1, 2))
def test_roles_are_whitened_by_themselves_over_all_processes(
    rollouts: list[Rollout], processes: int
) -> None:
    turns = TurnsConfig(mode="verify", shaping=1.0)
    rollouts = rollouts[: len(rollouts) // processes * processes]
    config = method(turns, normalise="role")
    batch = padded(rollouts, turns)
    advantages_BT, _, _ = batches.critic_advantages(batch, config, hooks(turns))
    whole_BT = batches.refined(advantages_BT, batch, config.advantage)
    for role in (ATTEMPT, VERIFICATION):
        its_BT = batch["loss_mask"] & (batch["role"] == role)
        raw_N, ours_N = advantages_BT[its_BT].double(), whole_BT[its_BT].double()
        if len(ours_N) > 1:
            # eps = 1e-8 in the denominator is all that keeps the variance from 1
            assert ours_N.mean().abs() < 1e-6
            assert abs(ours_N.var() - raw_N.var() / (raw_N.var() + 1e-8)) < 1e-6
    assert not whole_BT[~batch["loss_mask"]].any()

    share = len(rollouts) // processes
    for index in range(processes):
        rows = slice(index * share, (index + 1) * share)
        mine = {name: tensor[rows] for name, tensor in batch.items()}
        everyone = iter([advantages_BT, batch["loss_mask"].float(), batch["role"]])
        across = Across(lambda _mine, everyone=everyone: next(everyone), index)
        refined_BT = batches.refined(advantages_BT[rows], mine, config.advantage, across)
        assert torch.equal(refined_BT, whole_BT[rows])


@given(_DIALOGUES)
def test_faulted_dialogues_are_in_no_metric(rollouts: list[Rollout]) -> None:
    told = turn_metrics(rollouts)
    judged = [rollout for rollout in rollouts if rollout.result.fault is None]
    alone = turn_metrics(judged)
    for name in told:
        if name != "turns_unparsed":
            assert told[name] == alone[name]
            assert 0 <= told[name] <= 1
    if judged:
        firsts = [r.turns[0].result.judgement.verdict for r in judged]  # type: ignore[union-attr]
        assert told["turns_first_correct"] == firsts.count("correct") / len(judged)
        assert told["turns_final_correct"] == pytest.approx(
            sum(r.result.judgement.verdict == "correct" for r in judged)  # type: ignore[union-attr]
            / len(judged)
        )


_PLAYS = st.fixed_dictionaries(
    {
        "protocol": st.sampled_from([VERIFIES, RECONSIDERS]),
        "prompts": st.sampled_from([2, 4]),
        "group_size": st.integers(1, 3),
    }
)


def play(seed: int, settings_: dict[str, Any], ranks: Any = None) -> tuple[Any, Speaker]:
    speaker = Speaker(
        chance(seed, "correct", "wrong", "unparsed"), verifies=settings_["protocol"].verifies
    )
    outcome = chance(seed, "correct", "correct", "incorrect", "fault")
    return collector(speaker, outcome, ranks=ranks, **settings_), speaker


@settings(max_examples=30)
@given(st.integers(0, 1000), _PLAYS)
def test_a_dialogue_is_what_was_said_in_order(seed: int, settings_: dict[str, Any]) -> None:
    of, speaker = play(seed, settings_)
    protocol = settings_["protocol"]
    collected = of.collect(5)
    assert len(collected.groups) == settings_["prompts"]
    outcome = chance(seed, "correct", "correct", "incorrect", "fault")
    for rollout in (rollout for group in collected.groups for rollout in group):
        number, index = rollout.request.draw.number, rollout.request.index
        assert rollout.policy_step == 5
        assert rollout.response.logprobs is not None
        due = protocol.verifies and speaker.says(number, index) == "wrong"
        assert len(rollout.turns) == (2 + due if protocol.verifies else 2)
        at = 0
        for turn, said in enumerate(rollout.turns):
            told = speaker.response(number, index, turn)
            assert rollout.response.ids[said.start : said.end] == told.ids
            assert rollout.response.logprobs[said.start : said.end] == told.logprobs
            between = rollout.response.ids[at : said.start]
            if turn:
                assert between == protocol.between[turn - 1]
                assert all(p != p for p in rollout.response.logprobs[at : said.start])  # noqa: PLR0124
            else:
                assert between == ()
            shown = (*rollout.request.draw.prompt_ids, *rollout.response.ids[: said.start])
            assert speaker.prompts[number, index, turn] == shown
            at = said.end
            if said.result is None:
                assert said.verdict == speaker.says(number, index)
            else:
                fault = said.result.fault is not None
                assert fault == (outcome(number, index, turn) == "fault")
        assert at == len(rollout.response.ids)


@settings(max_examples=20)
@given(st.integers(0, 1000), _PLAYS)
def test_on_two_processes_it_is_the_same_run(seed: int, settings_: dict[str, Any]) -> None:
    def run(ranks: Any) -> tuple[list[Collected], Any, Counter[tuple[int, int, int]]]:
        of, speaker = play(seed, settings_, ranks)
        steps = [of.collect(step) for step in range(2)]
        asked = Counter((r.draw.number, r.index, r.turn) for r in speaker.engine.asked)
        return steps, of.state_dict(), asked

    alone, state, asked = run(None)
    together = on_ranks(2, run)
    for step, collected in enumerate(alone):
        shares = [steps[step].groups for steps, *_ in together]
        assert repr([group for share in shares for group in share]) == repr(collected.groups)
        one_run([steps[step] for steps, *_ in together], collected)
        for steps, *_ in together:
            assert turn_metrics(steps[step].judged) == turn_metrics(collected.judged)
    assert together[0][1] == state
    assert together[0][2] + together[1][2] == asked


@settings(max_examples=20)
@given(st.integers(0, 1000), _PLAYS)
def test_no_dialogue_waits_for_another(seed: int, settings_: dict[str, Any]) -> None:
    """All together take as many passes as the one in which the policy says most."""
    of, speaker = play(seed, settings_)
    collected = of.collect(0)
    said = [rollout.length for group in collected.groups for rollout in group]
    assert len(speaker.engine.passes) == max(said)
    assert sum(map(len, speaker.engine.passes)) == sum(said)


@settings(max_examples=20)
@given(st.integers(0, 1000), _PLAYS, st.integers(0, 2))
def test_interrupted_and_resumed_it_is_the_same_run(
    seed: int, settings_: dict[str, Any], before: int
) -> None:
    whole, _ = play(seed, settings_)
    expected = [whole.collect(step) for step in range(before + 2)]
    first, _ = play(seed, settings_)
    second, _ = play(seed, settings_)
    for step in range(before):
        first.collect(step)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    for step in range(before, before + 2):
        assert repr(second.collect(step)) == repr(expected[step])


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.integers(0, 1000),
    _PLAYS,
    st.sampled_from(["groups", "success"]),
    st.booleans(),
    st.integers(0, 3),
)
def test_dialogues_that_are_kept_for_later_steps_survive_a_checkpoint(
    seed: int, settings_: dict[str, Any], mode: Any, dynamic: bool, before: int
) -> None:
    """Surplus of dynamic sampling, and what is replayed: turn by turn as they were."""

    def made() -> Any:
        speaker = Speaker(
            chance(seed, "correct", "wrong", "unparsed"), verifies=settings_["protocol"].verifies
        )
        return collector(
            speaker,
            chance(seed, "correct", "incorrect", "incorrect", "fault"),
            **{**settings_, "group_size": 4},
            prompted=stream(6),
            keepers=[make_replay(ReplayConfig(groups=4, mode=mode), seed)],
            dynamic=DynamicSamplingConfig(enabled=True, keep_surplus=True, max_rounds=99)
            if dynamic
            else None,
        )

    whole, first, second = made(), made(), made()
    expected = [whole.collect(step) for step in range(before + 3)]
    for step in range(before):
        first.collect(step)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    known = {id_of(r): r for one in expected for r in one.judged}
    for step in range(before, before + 3):
        found = second.collect(step)
        assert repr(found) == repr(expected[step])
        for rollout in (rollout for group in found.groups for rollout in group):
            assert repr(rollout) == repr(known[id_of(rollout)]), "as it was judged"
            assert rollout.policy_step <= step
        batch = padded([r for group in found.groups for r in group], TurnsConfig(mode="verify"))
        assert not (batch["loss_mask"] & batch["sampler_logps"].isnan()).any()


def id_of(rollout: Rollout) -> tuple[int, int]:
    return rollout.request.draw.number, rollout.request.index


@given(_DIALOGUES, _SETTINGS)
def test_a_dialogue_that_its_source_leaves_out_trains_nothing_and_changes_no_other(
    rollouts: list[Rollout], turns: TurnsConfig
) -> None:
    on = hooks(turns)
    numbered = [replace(r, request=replace(r.request, index=n)) for n, r in enumerate(rollouts)]
    out = frozenset(id_of(r) for r in numbered[::2])
    marked = []
    for left_out in (frozenset[tuple[int, int]](), out):
        one = Collected([tuple(numbered)], [], left_out=left_out)
        scored = batches.without_left_out(scorer(on)(one.groups), one)
        batch = batches.pad(scored, pad_id=0, policy_step=0, device=torch.device("cpu"))
        for hook in on:
            batch = hook.mark(batch, scored, one)
        marked.append(batch)
    whole, left = marked
    for name in ("loss_mask", "value_mask"):
        assert not left[name][::2].any()
        assert torch.equal(left[name][1::2], whole[name][1::2])
    for name in ("rewards", "turn_rewards", "turn", "role"):
        assert torch.equal(left[name].nan_to_num(-7.0), whole[name].nan_to_num(-7.0))


@settings(max_examples=25)
@given(st.integers(0, 1000), _PLAYS)
def test_what_nobody_solved_is_asked_again_with_all_its_turns(
    seed: int, settings_: dict[str, Any]
) -> None:
    """By the last attempts; each turn reads the prompt of its own form."""
    hinted = [replace(p, solution="two and two") for p in problems(12)]
    shares = (0.4, 1.0)
    of_stream = PromptStream(
        hinted, encode_all, seed=seed, forms=(2, lambda p, form: with_hint(p, shares[form - 1]))
    )
    speaker = Speaker(
        chance(seed, "correct", "wrong", "unparsed"), verifies=settings_["protocol"].verifies
    )
    outcome = chance(seed, "correct", "incorrect", "incorrect", "incorrect")
    play_ = {**settings_, "group_size": 2}
    of = collector(speaker, outcome, prompted=of_stream, again=failed, **play_)
    collected = of.collect(0)
    assert len(collected.groups) == play_["prompts"]
    assert collected.metrics["hinted_groups"] == sum(
        group[0].request.draw.hint for group in collected.groups
    )
    for group in collected.groups:
        assert not failed(group) or group[0].request.draw.hint == 2, "it has been told all"
    for rollout in (rollout for group in collected.groups for rollout in group):
        draw = rollout.request.draw
        assert draw.prompt_ids == tuple(encode_all(draw.problem))
        for turn, said in enumerate(rollout.turns):
            shown = (*draw.prompt_ids, *rollout.response.ids[: said.start])
            assert speaker.prompts[draw.number, rollout.request.index, turn] == shown


def encode_all(problem: Problem) -> list[int]:
    return list("".join(content for _, content in problem.messages).encode())
