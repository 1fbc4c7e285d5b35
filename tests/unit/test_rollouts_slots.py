"""Truncated rollouts: what they go with, what they count, and what a checkpoint of them refuses."""

from __future__ import annotations

import pytest
import torch

from assay.clients import Fault, Result
from assay.kit.errors import ConfigError
from assay.trainer.core import batch as batches
from assay.trainer.core.batch import Scored
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.errors import OutageError
from assay.trainer.methods.turns.dialogues import Dialogues
from assay.trainer.rollouts.exchange import Exchange, Transcript
from assay.trainer.rollouts.types import Rollout, Unfinished
from assay.trainer.settings import config as configs
from rollouts_collecting_support import bernoulli, problems, result
from rollouts_slots_support import LIMIT, ContinuingGenerator, slots, whole
from rollouts_slots_support import Round as SlotsRound
from turns_support import RECONSIDERS, Round, decode

TRUNCATES = (
    "method.advantage.estimator=gae",
    "method.critic.pretrain_steps=5",
    "method.truncation.window=64",
)
TRUNCATION = "truncation (method.truncation.window)"
NEEDS = "method.truncation.window above 0 needs"


def test_truncation_needs_no_more_than_this() -> None:
    config = configs.build({}, TRUNCATES, origin="test")
    assert config.method.truncation.window == 64
    assert config.method.truncation.min_finished == 1
    configs.build({}, [*TRUNCATES, "rollout.backend=paged"], origin="test")
    fires = configs.build({}, [*TRUNCATES, "method.fire.enabled=true"], origin="test")
    assert fires.method.fire.enabled


@pytest.mark.parametrize(
    ("override", "needed"),
    [
        (
            "method.advantage.estimator=group",
            (
                f"{TRUNCATION} needs a critic: only a critic values what has not ended; with "
                "group-normalisation, the group is the baseline"
            ),
        ),
        (
            "method.advantage.estimator=rloo",
            (
                f"{TRUNCATION} needs a critic: only a critic values what has not ended; with "
                "leave-one-out (method.advantage.estimator), the group is the baseline"
            ),
        ),
        (
            "method.dynamic_sampling.enabled=true",
            (
                "dynamic-sampling (method.dynamic_sampling.enabled) needs the collector of single "
                "responses, which draws on and keeps groups: it draws on when it knows which "
                f"prompts to keep; with {TRUNCATION}, responses come from slots"
            ),
        ),
        (
            "method.filter.min_group_std=0.1",
            (
                "spread-filter (method.filter.min_group_std) needs all samples of a prompt in one "
                "step: it compares the samples of a prompt; "
                f"with {TRUNCATION}, samples of a prompt end in different steps"
            ),
        ),
        (
            "data.selection.name=mopps",
            (
                "mopps (data.selection.name) needs what came of a step before the next prompts are "
                "chosen: a selector learns from what came of each step; "
                f"with {TRUNCATION}, there are no whole groups to learn from"
            ),
        ),
        ("method.critic.pretrain_steps=0", f"{NEEDS} method.critic.pretrain_steps above 0: an"),
        ("method.advantage.gamma=0.99", f"{NEEDS} method.advantage.gamma = 1: a discount"),
        (
            "method.loss={kl_coef=0.1, kl_place='reward'}",
            f'{NEEDS} method.loss.kl_place = "loss", or kl_coef = 0: rewards',
        ),
        (
            "method.loss.ratio=sequence",
            (
                f"{TRUNCATION} needs a ratio for each token: the ratio of a response needs the "
                "whole response; with sequence-ratio (method.loss.ratio), there is one for a"
            ),
        ),
    ],
)
def test_what_truncation_does_not_go_with_is_refused_in_one_line(
    override: str, needed: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        configs.build({}, [*_without_what_nothing_reads(override), override], origin="test")
    message = str(caught.value)
    assert message.startswith(f"test: {needed}")
    assert "\n" not in message
    others = _without_what_nothing_reads(override)
    configs.build({}, [*others, override, "method.truncation.window=0"], origin="test")


def _without_what_nothing_reads(override: str) -> list[str]:
    """Another estimator has no critic."""
    estimator = override.startswith("method.advantage.estimator")
    return [one for one in TRUNCATES if not estimator or "truncation" in one]


def test_a_critic_that_shares_the_trunk_cannot_be_pretrained_and_so_not_truncated() -> None:
    with pytest.raises(ConfigError, match=r"needs method\.critic\.sharing"):
        configs.build({}, [*TRUNCATES, "method.critic.sharing=trunk"], origin="test")


def test_what_a_step_counts() -> None:
    window = 3
    of = slots(bernoulli(1.0), prompts=2, group_size=2, window=window)
    lengths = [min(LIMIT, len(whole(n // 2, n % 2))) for n in range(4)]
    drawn = [min(window, length) for length in lengths]
    going = [length for length in lengths if length > window]
    assert 0 < len(going) < 4, "some end, some do not"
    assert of.collect(0).metrics == {
        "draws": 2.0,
        "rounds": 1.0,
        "generated_tokens": float(sum(drawn)),
        "finished_share": 1 - len(going) / 4,
        "tokens_per_decode_step": sum(drawn) / window,
        "prefix_tokens": 0.0,
        "slot_age_mean": 1.0,
        "slot_age_max": 1.0,
    }
    assert of.collect(1).metrics["prefix_tokens"] == window * len(going)


def test_decode_steps_are_those_of_each_batch() -> None:
    lengths = [min(LIMIT, len(whole(n, 0))) for n in range(4)]
    pairs = max(lengths[:2]) + max(lengths[2:])
    assert pairs > max(lengths)
    of = slots(bernoulli(1.0), prompts=4, group_size=1, window=LIMIT, batch=2)
    assert of.collect(0).metrics["tokens_per_decode_step"] == sum(lengths) / pairs


def test_an_age_is_how_many_steps_a_response_was_drawn_over() -> None:
    generator = ContinuingGenerator()
    of = slots(bernoulli(1.0), prompts=4, group_size=1, window=1, generator=generator)
    for step in range(LIMIT - 1):
        metrics = of.collect(step).metrics
        going = [slot for slot in of._slots if slot is not None]
        assert metrics["slot_age_max"] == max(slot.transcript.tokens for slot in going)
    for slot in going:
        steps = [step for step, _ in slot.versions]
        assert steps == list(range(steps[0], LIMIT - 1))


def test_a_checkpoint_of_other_slots_is_refused() -> None:
    state = slots(bernoulli(1.0), prompts=4, group_size=2, window=2).state_dict()
    other = slots(bernoulli(1.0), prompts=4, group_size=1, window=2)
    with pytest.raises(ConfigError, match="holds 8 slots, this run has 4: resume with"):
        other.load_state_dict(state)
    del state["slots"]
    with pytest.raises(ConfigError, match="holds no slots"):
        other.load_state_dict(state)


def test_a_checkpoint_of_longer_responses_is_refused() -> None:
    of = slots(bernoulli(1.0), prompts=4, group_size=2, window=LIMIT - 1)
    of.collect(0)
    state = of.state_dict()
    assert any(state["slots"])
    shorter = slots(bernoulli(1.0), prompts=4, group_size=2, window=2, limit=LIMIT - 1)
    with pytest.raises(ConfigError, match="an unfinished response of 7 tokens, which"):
        shorter.load_state_dict(state)


def rows(drawn: tuple[int, ...] = (4, 2, 2)) -> list[Scored]:
    """Of four tokens each: one whole, one that goes on, one that ended in this step."""
    made = []
    for n, last in enumerate(drawn):
        request = Request(Draw(n, problems(3)[n], (5, 6)), 0)
        if n == 1:
            response = Response((7, 8, 9, 10), "", (-1.0,) * 4, False, finished=False)
            made.append(Scored(Unfinished(request, response, 3), None, drawn=last))
        else:
            response = Response((7, 8, 9, 1), "text", (-1.0,) * 4, False)
            rollout = Rollout(request, response, result(request, "correct"), 3)
            made.append(Scored(rollout, 1.0, drawn=last))
    return made


def test_the_last_token_of_what_goes_on_has_no_advantage() -> None:
    """EGAE, arXiv 2506.15050: the golden row of it, between finished ones."""
    batch = batches.pad(rows(), pad_id=0, policy_step=3, device=torch.device("cpu"))
    assert batch["unfinished"].tolist() == [False, True, False]
    assert batch["loss_mask"].tolist() == [
        [True] * 4, [False, False, True, True], [False, False, True, True],
    ]  # fmt: skip
    assert batch["correct"].tolist() == [True, False, True]
    batch["values"] = torch.tensor([[0.2, 0.4, 0.5, 0.7]] * 3)
    config = configs.build({}, TRUNCATES, origin="test").method
    advantages_BT, returns_BT, _ = batches.critic_advantages(batch, config)
    assert advantages_BT[1, 3] == 0
    expected = torch.tensor([0.4755, 0.29, 0.2, 0.0])
    torch.testing.assert_close(advantages_BT[1], expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(returns_BT[0], torch.ones(4))
    assert advantages_BT[0].equal(advantages_BT[2]), "over the whole response, masked afterwards"
    assert advantages_BT[0, 3] == pytest.approx(0.3)


def test_what_a_turn_leaves_of_a_window_the_next_draws() -> None:
    """Two attempts of five tokens and of six, four tokens at a time."""
    lengths = {0: 5, 1: 6}
    request, talk = Request(Draw(0, problems(1)[0], (5, 6)), 0), Dialogues(RECONSIDERS, decode)
    said, asked, drawn = Transcript(), [], []
    while not said.whole:
        judges = Round(lambda *_: "correct")
        exchange = Exchange([request], judges, talk, earlier=[said], window=4)
        open_ = exchange.first()
        assert not exchange.whole
        with pytest.raises(RuntimeError, match="0 of 1 requests were answered"):
            exchange.transcripts()
        before = said.tokens
        while open_:
            [((_, turn), one)] = open_
            begun = () if one.begun is None else one.begun.ids
            ids = tuple(range(10, 10 + lengths[turn]))[: len(begun) + one.window]
            assert begun == ids[: len(begun)]
            asked.append((turn, len(begun), one.window))
            whole_turn = len(ids) == lengths[turn]
            text = f"0/0/{turn}" if whole_turn else ""
            response = Response(ids, text, None, truncated=False, finished=whole_turn)
            open_ = exchange.follow((0, turn), response)
        [said] = exchange.transcripts()
        drawn.append(said.tokens - before)
        with pytest.raises(RuntimeError, match="was not asked for, or was answered twice"):
            exchange.follow((0, turn), response)
    assert asked == [(0, 0, 4), (0, 4, 4), (1, 0, 3), (1, 3, 4)]
    assert drawn == [4, 4, 3]
    assert sorted(said.results) == [0, 1]
    with pytest.raises(RuntimeError, match="nothing follows in sample 0"):
        Exchange([request], Round(lambda *_: "correct"), talk, earlier=[said]).first()


def test_a_sample_whose_window_ends_with_its_turn_waits_between_two() -> None:
    request, talk = Request(Draw(0, problems(1)[0], (5, 6)), 0), Dialogues(RECONSIDERS, decode)
    exchange = Exchange([request], Round(lambda *_: "incorrect"), talk, window=2)
    exchange.first()
    assert exchange.follow((0, 0), Response((7, 8), "0/0/0", None, truncated=False)) == []
    [said] = exchange.transcripts()
    assert not said.whole
    row = talk.unfinished(request, said.turns, said.results, 0)
    assert row.response.ids == (7, 8), "what asks for the next turn is said with it"
    assert [turn.finished for turn in row.turns] == [True]
    [(id_, following)] = Exchange(
        [request], Round(lambda *_: "correct"), talk, earlier=[said], window=2
    ).first()
    assert (id_, following.begun, following.window) == ((0, 1), None, 2)
    assert following.draw.prompt_ids == (5, 6, 7, 8, *RECONSIDERS.between[0])


def test_an_outage_that_was_given_up_ends_the_step_and_not_the_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = slots(bernoulli(1.0), prompts=2, group_size=2, window=3)
    of.collect(0)
    state = of.state_dict()
    away = Fault("UNREACHABLE", "nobody answers", "UNAVAILABLE", {"outage": "over"})
    with monkeypatch.context() as patch:
        patch.setattr(
            SlotsRound, "results", lambda self: [Result("0", away) for _ in self.requests]
        )
        with pytest.raises(OutageError):
            of.collect(1)
    assert of.state_dict() == state
    assert all(row.result.fault is None for row in of.collect(1).judged)
