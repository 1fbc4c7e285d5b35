"""Judged responses that do not train, and groups that come again."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from assay.clients import Component, Fault, Judgement, Result, Span
from assay.kit.errors import ConfigError
from assay.trainer.core.batch import Scored
from assay.trainer.core.build import check_judge
from assay.trainer.core.hooks import hooks_of
from assay.trainer.engines.types import Request, Response
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.filter.filters import filtered, is_void, without_void
from assay.trainer.methods.filter.settings import FilterConfig
from assay.trainer.methods.replay.replay import Replay, ReplayedSuccesses, size_of
from assay.trainer.methods.replay.settings import ReplayConfig
from assay.trainer.rollouts.sharing import saved_groups
from assay.trainer.rollouts.types import OneRank, PolicyTurn, Rollout
from assay.trainer.settings import config as configs
from assay.trainer.settings.registry import parts_on
from rollouts_collecting_support import stream

PLAIN = partial(saved_groups, ranks=OneRank())


def scored(correct: bool | None, steps: float | None = 0.5, reward: float | None = None) -> Scored:
    """One response; None is a fault."""
    outcome: Judgement | Fault = Fault("SANDBOX_LOST", "gone", "UNAVAILABLE", {})
    value = float(bool(correct)) if reward is None else reward
    if correct is not None:
        spans = () if steps is None else (Span(0, 1, steps - 0.1, "step"), Span(1, 2, steps + 0.1))
        outcome = Judgement(
            value, "correct" if correct else "incorrect", (Component("prm", value, 1.0),),
            spans, "4", "", "prm", "1", (),
        )  # fmt: skip
    rollout = Rollout(
        Request(stream().draw(0), 0), Response((5, 6), "x", (-1.0, -1.0), False),
        Result("0", outcome, 0.0, 0.0, False), 0,
    )  # fmt: skip
    return Scored(rollout, None if correct is None else value)


def kept(groups: list[list[Scored]], **settings: Any) -> list[int]:
    """Places of those that train."""
    found = filtered(groups, FilterConfig(**settings))
    assert [item.rollout for item in found] == [item.rollout for group in groups for item in group]
    assert all(item.in_loss == (item.reward is not None) for item in found if not item.in_loss)
    return [n for n, item in enumerate(found) if item.in_loss and item.reward is not None]


GROUP = [
    scored(True, 0.9), scored(True, 0.2), scored(True, 0.8), scored(True, 0.6),
    scored(False, 0.1), scored(False, 0.7), scored(False, 0.3), scored(False, 0.9),
]  # fmt: skip


def test_without_a_filter_everything_stays() -> None:
    assert kept([GROUP]) == list(range(8))


def test_prof_keeps_responses_whose_steps_agree_with_their_outcome() -> None:
    assert kept([GROUP], prof="both") == [0, 2, 4, 6]
    assert kept([GROUP], prof="both", prof_keep=6) == [0, 2, 3, 4, 5, 6]
    assert kept([GROUP], prof="correct") == [0, 2, 4, 5], "the incorrect by their drawing"
    assert kept([GROUP, GROUP[:4]], prof="both") == [0, 2, 4, 6, 8, 9, 10, 11]


def test_prof_leaves_faults_faults_and_what_has_no_steps_out() -> None:
    group = [scored(None), scored(True, None), scored(True, 0.4), scored(False, 0.2)]
    assert kept([group], prof="both", prof_keep=2) == [2, 3]
    assert kept([group], prof="both", prof_keep=4) == [2, 3]
    with pytest.raises(TrainingStoppedError, match="'prm' judges none"):
        kept([[scored(True, None), scored(False, None)]], prof="both")
    assert kept([[scored(None), scored(None)]], prof="both") == []


def test_groups_whose_rewards_hardly_differ_are_left_out() -> None:
    flat = [scored(True, reward=0.50), scored(True, reward=0.55), scored(None)]
    wide = [scored(True, reward=0.5), scored(True, reward=0.7), scored(None)]
    single = [scored(True, reward=0.5), scored(None), scored(None)]
    assert kept([flat, wide, single], min_group_std=0.05) == [3, 4]
    assert kept([flat, wide, single], min_group_std=0.02) == [0, 1, 3, 4]


SILENT = ("rollout.backend=vllm", "rollout.vllm.draws=engine")
"""With a filter, an engine that tells no log-probabilities."""


@pytest.mark.parametrize(
    "overrides",
    [
        ["method.filter.prof=both", "rollout.group_size=2"],
        ["method.filter.prof=both", "method.filter.prof_keep=9"],
        ["method.replay.groups=4", "rollout.group_size=1", "method.advantage.estimator=gae"],
        ["method.replay.groups=4", *SILENT, "rollout.top_k=5"],
        ["data.selection.name=mopps", "data.selection.mopps.low=0.8"],
        ["method.hints.enabled=true"],
        ["data.columns.solution=solution"],
        ["data.selection.name=nearest"],
        ["method.filter.void=text", "method.filter.void_answer=("],
        ["method.episodes.environment=python", "method.episodes.answer=("],
        ["method.dynamic_sampling={enabled=true, min_accuracy=0.6, max_accuracy=0.7}"],
        [
            "method.filter.void=text",
            "method.truncation.window=4",
            "method.advantage.estimator=gae",
            "method.critic.pretrain_steps=1",
        ],
        ["method.advantage.difficulty=exp", "method.advantage.estimator=gae"],
        [
            "method.advantage.difficulty=linear",
            "method.pairwise.against=anchor",
            "method.pairwise.anchors=reference",
        ],
        ["method.recomposition.groups=8", "method.advantage.estimator=gae"],
        ["method.recomposition.groups=8", *SILENT, "rollout.top_p=0.9"],
        ["method.recomposition.groups=8", "method.recomposition.last=0.5"],
        *(
            ["method.advantage.estimator=segments", "method.advantage.scale=none", more]
            for more in (
                "method.advantage.scale=group",
                "method.advantage.difficulty=exp",
                "method.shaping.cosine=true",
                "method.dense.weight=0.5",
                "method.replay.groups=4",
                "method.recomposition.groups=4",
                "method.dynamic_sampling={enabled=true, keep_surplus=true}",
                "method.truncation.window=4",
                "method.turns.mode=verify",
                "method.fire.enabled=true",
                "method.segments.threshold=0",
            )
        ),
    ],
)
def test_what_does_not_go_together_is_refused(overrides: list[str]) -> None:
    with pytest.raises(ConfigError):
        configs.build({}, overrides, origin="test")


SEGMENTS = "method.advantage={estimator='segments', scale='none'}"


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ("method.recomposition.groups=8 method.replay.groups=8", "recomposition replay"),
        ("method.recomposition.groups=8 method.filter.prof=both", "recomposition prof-filter"),
        ("method.recomposition.groups=8 method.fire.enabled=true", "recomposition fire"),
        ("method.filter.min_group_std=0.1", "segment-advantages spread-filter"),
        ("data.selection.name=mopps", "segment-advantages mopps"),
        ("method.dynamic_sampling.enabled=true", "segment-advantages dynamic-sampling"),
    ],
)
def test_what_needs_nothing_that_the_other_takes_goes_together(overrides: str, named: str) -> None:
    more = [SEGMENTS] if "segment" in named else []
    config = configs.build({}, [*more, *overrides.split()], origin="test")
    assert {part.name for part in parts_on(config)} >= set(named.split())


def test_a_verifier_of_whole_groups_cannot_judge_continuations() -> None:
    config = configs.build(
        {},
        ["method.advantage.estimator=segments", "method.advantage.scale=none"],
        origin="test",
    )
    judge: Any = SimpleNamespace(judges_groups=True)
    hooks = hooks_of(config)
    with pytest.raises(ConfigError, match=r"each continuation judged by itself; set method\.adv"):
        check_judge(config, judge, hooks)
    check_judge(config, SimpleNamespace(judges_groups=False), hooks)  # type: ignore[arg-type]


def group(number: int, *correct: bool | None) -> tuple[Rollout, ...]:
    draw = stream().draw(number)
    rollouts = (scored(one).rollout for one in correct)
    return tuple(
        dataclasses.replace(rollout, request=Request(draw, n)) for n, rollout in enumerate(rollouts)
    )


def test_the_size_of_a_group_is_its_mean_advantage_without_its_faults() -> None:
    assert size_of(group(0, True, True, None)) == 0
    assert size_of(group(0, None, None)) == 0
    assert size_of(group(0, True, None)) == 0
    even, uneven = group(0, True, True, False, False), group(0, True, False, False, False)
    assert size_of(even) == pytest.approx(0.5 / (1 / 3) ** 0.5, rel=1e-5)
    assert size_of((*even, group(0, None)[0])) == size_of(even)
    assert 0 < size_of(uneven) < size_of(even)


def test_replay_prefers_large_advantages_and_keeps_the_latest() -> None:
    even, uneven = group(1, True, True, False, False), group(2, True, False, False, False)
    silent, telling = group(3, True, True, True, True), group(5, True, False)
    for alpha, low, high in ((0.0, 0.42, 0.58), (8.0, 0.65, 1.0)):
        replay = Replay(ReplayConfig(groups=2, alpha=alpha), 0)
        assert replay.mix([silent], 0) == [silent], "nothing to replay yet"
        replay.keep([even, silent, uneven])
        drawn = Counter(replay.mix([silent, telling], n)[0] == even for n in range(400))
        assert low < drawn[True] / 400 < high
        assert all(replay.mix([silent, telling], n)[1] == telling for n in range(20))
        assert replay.mix([silent, even], 0) == [uneven, even], "nor beside itself"
    assert replay.mix([silent] * 3, 0)[2] == silent, "none comes twice"
    replay.keep([uneven, group(4, True, False)])
    assert [saved["draw"] for saved in replay.state_dict(PLAIN)] == [2, 4], "each once"


def later(earlier: tuple[Rollout, ...], *correct: bool | None) -> tuple[Rollout, ...]:
    """Another draw of the same problem."""
    draw = earlier[0].request.draw
    again = dataclasses.replace(draw, number=draw.number + 50)
    return tuple(
        dataclasses.replace(rollout, request=Request(again, n))
        for n, rollout in enumerate(group(0, *correct))
    )


def test_of_so_many_problems_the_latest_success_joins_a_failed_group_of_the_same_problem() -> None:
    replay = ReplayedSuccesses(ReplayConfig(groups=2, mode="success"), 0)
    first, second, third = (group(n, True, False) for n in (1, 2, 3))
    replay.keep([first, second, third])
    assert [saved["draw"] for saved in replay.state_dict(PLAIN)] == [2, 3]
    failed = later(third, False, False, None)
    forgotten = later(first, False, False, None)
    assert replay.mix([failed, forgotten], 0) == [(*failed[:2], third[0]), forgotten]
    whole = later(second, False, False, False)
    places = Counter(
        n for first_ in range(90) for n in range(3)
        if replay.mix([whole], first_)[0][n] == second[0]
    )  # fmt: skip
    assert places.total() == 90
    assert min(places.values()) > 15
    for other in (later(third, True, False), later(third, None, None, False)):
        assert replay.mix([other], 0) == [other], "it has a success, or too few judgements"
    newer = later(third, False, True)
    replay.keep([newer])
    assert replay.mix([failed], 0) == [(*failed[:2], newer[1])]
    hinted = tuple(
        dataclasses.replace(
            one, request=Request(dataclasses.replace(one.request.draw, prompt_ids=(1, 2)), n)
        )
        for n, one in enumerate(failed)
    )
    assert replay.mix([hinted], 0) == [hinted], "it was shown another prompt"


@pytest.mark.parametrize(
    ("text", "void"),
    [
        ("```python\nprint(1)\n```", False),
        ("first\n```\nx = 1\ny = 2\n```\nthen", False),
        ("so it is \\boxed{4}", False),
        ("so it is 4", True),
        ("```python\nprint(1)", True),  # never closed: cut, or given up
        ("`print(1)`", True),
        ("", True),
    ],
)
def test_a_turn_is_void_without_code_and_without_an_answer(text: str, void: bool) -> None:
    assert is_void(text, FilterConfig(void="text")) == void
    asks_the_verifier = FilterConfig(void="verifier")
    code = text.count("```") == 2
    assert not is_void(text, asks_the_verifier, "4")
    assert is_void(text, asks_the_verifier, None) == is_void(text, asks_the_verifier, "") != code


def answering(item: Scored, text: str, extracted: str | None = None) -> Scored:
    assert isinstance(item.rollout, Rollout)
    outcome = item.rollout.result.outcome
    if isinstance(outcome, Judgement):
        outcome = dataclasses.replace(outcome, extracted_answer=extracted)
    rollout = dataclasses.replace(
        item.rollout,
        response=dataclasses.replace(item.rollout.response, text=text),
        result=dataclasses.replace(item.rollout.result, outcome=outcome),
    )
    return dataclasses.replace(item, rollout=rollout)


def test_void_responses_leave_the_loss_and_their_rewards_stay() -> None:
    items = [
        answering(scored(True), "\\boxed{4}"),
        answering(scored(False), "no idea"),
        answering(scored(None), "no idea"),
        answering(scored(False), "it is 5", "5"),
    ]
    for void, trains in (
        ("none", [True, True, True, True]),
        ("text", [True, False, False, False]),
        ("verifier", [False, False, False, True]),
    ):
        found = without_void(items, FilterConfig(void=void))  # type: ignore[arg-type]
        assert [item.in_loss for item in found] == trains
        assert [item.reward for item in found] == [item.reward for item in items]
    assert items[2].reward is None


def test_a_dialogue_is_dropped_for_any_void_attempt_and_for_no_verification() -> None:
    one = scored(True)
    assert isinstance(one.rollout, Rollout)
    result = one.rollout.result

    def dialogue(*texts: str) -> Scored:
        assert isinstance(one.rollout, Rollout)
        first, verification, last = texts
        turns = (
            PolicyTurn(0, 1, first, False, result=result),
            PolicyTurn(1, 2, verification, False, verdict="wrong"),
            PolicyTurn(2, 3, last, False, result=result),
        )
        return dataclasses.replace(one, rollout=dataclasses.replace(one.rollout, turns=turns))

    yes, no = "\\boxed{4}", "hm"
    dialogues = [dialogue(yes, no, yes), dialogue(no, yes, yes), dialogue(yes, no, no)]
    found = without_void(dialogues, FilterConfig(void="text"))
    assert [item.in_loss for item in found] == [True, False, False]
