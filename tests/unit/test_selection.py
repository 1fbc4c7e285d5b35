"""What each way to choose problems chooses, by numbers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.kit.errors import ConfigError
from assay.trainer.data.problems import Problem, Problems
from assay.trainer.methods.hints.hints import failed, with_hint
from assay.trainer.methods.pairwise.anchors import needed
from assay.trainer.rollouts.prompts import FORMS, PromptStream
from assay.trainer.selection.bayes import ByBelief
from assay.trainer.selection.choose import make_selector
from assay.trainer.selection.domains import Curriculum, Dads, Dump, Recap
from assay.trainer.selection.subsets import HardFocus, PrePpo, Subset, limr_scores
from assay.trainer.selection.types import Seen
from assay.trainer.selection.variance import VarianceAware, distinct_pairs
from assay.trainer.settings import config as configs
from assay.trainer.settings.method import Selection
from assay.trainer.settings.registry import every
from assay.trainer.settings.selecting import SelectionConfig
from rollouts_collecting_support import collector, encode, stream
from selection_support import LEARNING, first, forms, problems, selector, settings


def scores(found: dict[int, float | None]) -> list[Seen]:
    """One response a problem, without a judgement for None."""
    return [Seen(place, () if value is None else (value,)) for place, value in found.items()]


def right(place: int, correct: int, judged: int = 8) -> Seen:
    rewards = (1.0,) * correct + (0.0,) * (judged - correct)
    return Seen(place, rewards, correct)


def test_every_name_has_a_selector_and_uniform_none() -> None:
    assert {one.name for one in every(Selection)} == {*LEARNING, "limr"}
    assert make_selector(SelectionConfig(), problems(3), 0) is None


# -- MoPPS and VADE ------------------------------------------------------------------------------


def test_one_response_counts_as_one() -> None:
    """The authors' code sets both numbers to 8 where a group has one response."""
    of = ByBelief(settings("mopps").mopps, 3, 0)
    of.learn([Seen(1, (1.0,), 1), Seen(2, (0.0,), 0)])
    assert (of.beliefs.correct.tolist(), of.beliefs.wrong.tolist()) == ([0, 1, 0], [0, 0, 1])
    assert of.estimate(1) == pytest.approx(2 / 3)


def test_evidence_decays_as_the_paper_says() -> None:
    of = ByBelief(settings("mopps", mopps={"decay": 0.5}).mopps, 2, 0)
    of.learn([right(0, 6)])
    of.learn([right(0, 2)])
    # a = 0.5 * (1 + 6) + 0.5 * 1 + 2 = 6, b = 0.5 * (1 + 2) + 0.5 * 1 + 6 = 8
    assert of.beliefs.correct[0] + 1 == 6
    assert of.beliefs.wrong[0] + 1 == 8
    assert of.estimate(1) == 0.5


def test_mopps_takes_what_is_near_the_target_and_vade_what_it_has_not_seen_for_long() -> None:
    of = selector("mopps", 30)
    of.learn([right(n, 80 if n % 3 else 40, 80) for n in range(30)])
    assert all(n % 3 == 0 for n in first(of, 10))
    easy = selector("mopps", 30, mopps={"target": 1.0})
    easy.learn([right(n, 80 if n % 3 else 40, 80) for n in range(30)])
    assert all(n % 3 for n in first(easy, 20))
    aging = ByBelief(settings("vade", vade={"fast": 0.5, "slow": 0.9}).vade, 2, 0)
    for _ in range(3):
        aging.learn([right(0, 8)])
    aging.learn([right(1, 8)])
    assert aging.beliefs.correct.tolist() == pytest.approx([0.9 * (8 + 4 + 2), 8])


def test_a_threshold_takes_the_range_first_and_then_the_nearest() -> None:
    of = selector("mopps", 9, mopps={"rule": "threshold", "low": 0.4, "high": 0.6})
    of.learn([right(n, 1000 * n, 8000) for n in range(9)])
    places = first(of, 9)
    assert places[0] == 4
    assert set(places[:3]) == {3, 4, 5}
    assert set(places[-2:]) == {0, 8}


def test_a_pool_is_looked_at_before_the_rest() -> None:
    of = selector("mopps", 100, mopps={"pool": 20})
    places = first(of, 100)
    assert sorted(places) == list(range(100))
    assert sorted(first(of, 200)[100:]) == list(range(100))
    distances = of._distance(of.beliefs.drawn(np.random.default_rng(0)))  # type: ignore[attr-defined]
    assert distances.shape == (100,)


# -- tasks ---------------------------------------------------------------------------------------


def test_dump_is_its_formula_over_the_latest_advantages() -> None:
    labels = ["a"] * 4 + ["b"] * 4
    of = Dump(settings("dump", dump={"window": 8, "tau": 1.0}).dump, labels, 0)
    of.learn([right(0, 0), right(4, 8), right(5, 4)])
    size = 1 / (np.std([1.0] * 4 + [0.0] * 4, ddof=1) + 1e-6) / 2
    counts, means = np.array([8, 16]), np.array([0.0, size])  # the window holds place 5 only
    ucb = means + np.sqrt(2 * np.log(counts.sum() + 1) / (counts + 1))
    assert of.weights() == pytest.approx(np.exp(ucb) / np.exp(ucb).sum(), rel=1e-12)


def test_dads_means_are_weighted_means_and_an_unseen_task_is_as_bad_as_the_worst() -> None:
    labels = ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    of = Dads(settings("dads", dads={"decay": 0.5, "tau": 1.0}).dads, labels, 0)
    of.learn([right(0, 8), right(3, 2)])
    of.learn([right(0, 4)])
    mean_a = (0.5 * 8 + 4) / (0.5 * 8 + 8)
    below = np.array([1 - mean_a, 1 - 2 / 8, 1 - 2 / 8])
    assert of.weights() == pytest.approx(np.exp(below) / np.exp(below).sum(), rel=1e-12)


def test_the_first_tasks_come_alone_at_first_and_as_in_the_data_at_last() -> None:
    config = settings("curriculum", curriculum={"until_step": 10, "tasks": ["math"]}).curriculum
    labels = [problem.task for problem in problems(300)]
    of = Curriculum(config, labels, 0)
    shares = []
    for _ in range(12):
        places = first(of, 600, 0)
        shares.append(sum(labels[place] == "math" for place in places) / 600)
        of.learn([Seen(place) for place in places])
    assert shares[0] == 1
    assert shares[5] == pytest.approx(0.5 * 1 + 0.5 / 3, abs=0.06)
    assert shares[-1] == pytest.approx(1 / 3, abs=0.06)
    assert of.share == pytest.approx(1 / 3)


def test_within_a_task_every_problem_comes_in_turn() -> None:
    of = selector("dump", 30)
    places: list[int] = []
    while len(places) < 90:
        now = first(of, 9, len(places))
        of.learn([Seen(place) for place in now])
        places += now
    for task in range(3):
        own = [place for place in places if place % 3 == task]
        whole = len(own) // 10 * 10
        assert set(Counter(own[:whole]).values()) <= {len(own) // 10}


def test_recap_weighs_what_falls_back_or_wavers_and_leaves_each_its_floor() -> None:
    labels = ["falls"] * 2 + ["rises"] * 2 + ["still"] * 2 + ["wavers"] * 2
    chosen = {"decay": 0.9, "tau": 0.1, "floor": 0.2}
    of = Recap(settings("recap", recap=chosen).recap, labels, 0)
    assert of.weights() == pytest.approx([0.25] * 4)
    for step in range(20):
        rewards = (1 - 0.05 * step, 0.05 * step, 0.5, float(step % 2))
        of.learn([Seen(2 * task, (reward,)) for task, reward in enumerate(rewards)])
    falls, rises, still, wavers = of.weights()
    assert falls > rises >= 0.2 / 4
    assert wavers > still >= 0.2 / 4
    before = of.weights()
    of.learn([Seen(0), Seen(2, (1.0,))])  # a fault, and tasks that were not drawn
    changed = of.weights() / of.weights()[2] / (before / before[2])
    assert changed[1] != pytest.approx(1)


@pytest.mark.parametrize("name", ["dump", "dads", "recap"])
def test_one_task_is_nothing_to_choose_from(name: str) -> None:
    alike = [Problem(str(n), "q", (("user", "q"),), "1") for n in range(4)]
    with pytest.raises(ConfigError, match="give rows a column `task`"):
        make_selector(settings(name), alike, 0)


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (["math", "law"], "no row has the task 'law'"),
        (["math", "code", "chat"], "no row has another"),
    ],
)
def test_a_curriculum_needs_its_tasks_and_others(tasks: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_selector(settings("curriculum", curriculum={"tasks": tasks}), problems(9), 0)


# -- parts of the data ---------------------------------------------------------------------------


def test_the_golden_selection_takes_from_both_tasks_and_a_fault_is_no_low_score() -> None:
    labels = ["x"] * 3 + ["y"] * 3
    rates: dict[int, float | None] = dict(
        enumerate([0.9, 0.1, 0.8, 0.3, 0.2, 0.95])
    )  # papers.md, section 7.7
    of = PrePpo(settings("pre-ppo", pre_ppo={"fraction": 0.34}).pre_ppo, labels, 0)
    assert list(of.unscored) == list(range(6))
    with pytest.raises(RuntimeError, match="not scored"):
        of.order(0)
    of.score(scores(rates))
    assert of.kept == (1, 4)
    assert not of.unscored
    other = PrePpo(settings("pre-ppo", pre_ppo={"fraction": 0.5}).pre_ppo, labels, 0)
    other.score(scores({**rates, 1: None, 4: None}))
    assert other.kept is not None
    assert not {1, 4} & set(other.kept)


def test_among_equal_scores_the_seed_chooses_and_not_the_order_of_the_rows() -> None:
    """A verifier of 0 and 1: 60 of 100 problems of two tasks are answered wrongly."""
    labels = [("x", "y")[n % 2] for n in range(100)]
    rates: dict[int, float | None] = {n: float(n >= 60) for n in range(100)}

    def kept(seed: int) -> tuple[int, ...]:
        of = PrePpo(settings("pre-ppo", pre_ppo={"fraction": 0.1}).pre_ppo, labels, seed)
        of.score(scores(rates))
        assert of.kept is not None
        return of.kept

    runs = [kept(seed) for seed in range(40)]
    assert runs == [kept(seed) for seed in range(40)]
    assert all(len(run) == 10 and max(run) < 60 for run in runs), "no right one before a wrong one"
    assert len(set(runs)) == 40
    counts = Counter(place for run in runs for place in run)
    assert len(counts) > 55, "each of the 60 comes under some seed"
    assert abs(sum(counts[n] for n in range(30)) - 200) < 50, (
        "the first half as often as the second"
    )


def test_the_data_of_before_stay_whole() -> None:
    config = settings("pre-ppo", pre_ppo={"fraction": 0.1, "keep_tasks": ["math"]})
    of = make_selector(config, problems(30), 0)
    assert isinstance(of, PrePpo)
    assert all(place % 3 for place in of.unscored)
    of.score(scores(dict.fromkeys(of.unscored, 0.5) | {1: 0.1, 2: 0.0}))
    assert of.kept == tuple(sorted({*range(0, 30, 3), 1, 2}))


def test_nothing_but_faults_is_an_error() -> None:
    of = PrePpo(settings("pre-ppo").pre_ppo, ["a"] * 3, 0)
    with pytest.raises(ConfigError, match="every response was a fault"):
        of.score(scores(dict.fromkeys(range(3))))


def test_limr_scores_are_the_paper_s() -> None:
    visits = {"as all": [0.2, 0.4, 0.6], "flat": [0.2, 0.2, 0.2], "once": [1.0]}
    found = limr_scores(visits)
    average = [(0.2 + 0.2 + 1.0) / 3, 0.3, 0.4]
    for name in ("as all", "flat"):
        apart = sum((r - m) ** 2 for r, m in zip(visits[name], average, strict=True))
        assert found[name] == pytest.approx(1 - apart / sum((1 - m) ** 2 for m in average))
    assert "once" not in found


def records(path: Path, rewards: dict[str, list[list[float | None]]]) -> Path:
    """samples.jsonl: for each question its visits' rewards."""
    rows = [
        {"question": question, "draw": visit * 100 + n, "reward": reward}
        for n, (question, visits) in enumerate(rewards.items())
        for visit, group in enumerate(visits)
        for reward in group
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_limr_keeps_the_problems_of_an_earlier_run_that_learnt_as_the_average(
    tmp_path: Path,
) -> None:
    asked = problems(4)
    rising: list[list[float | None]] = [[0.0, 0.2], [0.5, None], [1.0, 0.8]]
    told: dict[str, list[list[float | None]]] = {
        asked[0].question: rising,
        asked[1].question: rising,
        asked[2].question: [[1.0], [0.0], [-1.0]],
        asked[3].question: [[None], [0.4]],
        "of other data": rising,
    }
    file = records(tmp_path / "samples.jsonl", told)
    for where in (file, tmp_path):
        of = make_selector(settings("limr", limr={"records": str(where)}), asked, 0)
        assert isinstance(of, Subset)
        assert of.kept == (0, 1)
    with pytest.raises(ConfigError, match="lower the threshold"):
        make_selector(settings("limr", limr={"records": str(file), "threshold": 0.999}), asked, 0)
    with pytest.raises(ConfigError, match=r"run\.samples_every=1"):
        make_selector(settings("limr", limr={"records": str(tmp_path / "none")}), asked, 0)
    with pytest.raises(ConfigError, match=r"needs data\.selection\.limr\.records"):
        configs.build({"data": {"selection": {"name": "limr"}}}, origin="test")


def test_the_hardest_stay_and_what_was_never_judged_stays_too() -> None:
    of = HardFocus(settings("hard-focus").hard_focus, 10, 0)  # looks after steps 2, 4, ...
    of.learn([right(n, n - 1) for n in range(1, 9)])
    assert set(first(of, 10)) == set(range(10))
    of.learn([right(9, 8), Seen(0)])
    assert set(first(of, 10)) == {0, 1, 2, 3, 4}
    of.learn([right(1, 8)])
    of.learn([right(2, 0)])
    assert set(first(of, 10)) == {0, 2, 3}
    assert of.estimate(3) == 2 / 8
    for _ in range(6):
        of.learn([])
    assert len(set(first(of, 10))) == 3, "no look leaves fewer than `least`"


# -- VAS -----------------------------------------------------------------------------------------


def test_pairs_are_counted_within_responses() -> None:
    assert distinct_pairs([(1, 2, 3), (1, 2, 3)]) == 0.5
    assert distinct_pairs([(1, 2), (2, 3)]) == 1
    assert distinct_pairs([(1,), ()]) == 0


def test_the_share_that_goes_by_the_score_is_exact_and_goes_to_the_unsure() -> None:
    of = VarianceAware(settings("vas", vas={"share": 0.5, "diversity": 0.0}).vas, 40, 0)
    of.score([right(n, 4 if n < 10 else 8) for n in range(40)])
    of.learn([right(n, 4) for n in range(40)])
    assert of.scores()[:10] == pytest.approx(0.8 * 0.25)
    weighed = Counter(n for place in range(50) for n in first(of, 10, place)[1::2])
    even = first(of, 120)[0::2]  # the second half of a pass, and a whole one
    assert set(weighed) <= set(range(10)), "every second draw"
    assert sorted(even[20:]) == list(range(40)), "the others in turn"
    assert len(set(even[:20])) == 20


def test_the_score_of_vas_is_its_formula() -> None:
    of = VarianceAware(settings("vas").vas, 3, 0)
    of.score([Seen(0, (1.0, 0.0, 0.0, 0.0), 1, of.measure(((1, 2, 3), (1, 2, 3))))])
    assert of.scores()[0] == pytest.approx(0.8 * 0.25 * 0.75 + 0.2 * 0.5)
    assert of.scores()[1] == pytest.approx(0.8 * 0.25 + 0.2)


def test_all_are_answered_anew_after_so_many_steps_and_estimates_stand_until_then() -> None:
    of = VarianceAware(settings("vas", vas={"refresh_every": 3, "samples": 8}).vas, 4, 0)
    assert (list(of.unscored), of.samples) == ([0, 1, 2, 3], 8), "before the first step"
    for correct in (2, 6):
        of.score([right(n, correct) if n else Seen(0) for n in range(4)])
        assert (of.estimate(0), of.estimate(1)) == (None, correct / 8), "a fault says nothing"
        before = of.scores().tolist()
        for step in range(3):
            assert not of.unscored, step
            of.learn([right(1, 0), right(2, 8)])
            assert of.scores().tolist() == before, "what the training draws is no survey"
        assert list(of.unscored) == [0, 1, 2, 3]


def test_without_a_refresh_the_latest_group_of_the_training_counts() -> None:
    of = VarianceAware(settings("vas", vas={"refresh_every": 0}).vas, 4, 0)
    for correct in (2, 6):
        assert not of.unscored
        of.learn([right(1, correct)])
        assert (of.estimate(0), of.estimate(1)) == (None, correct / 8)


# -- hints ---------------------------------------------------------------------------------------


def hinted_stream(count: int = 10, **more: Any) -> PromptStream:
    return PromptStream(problems(count), encode_all, seed=1, forms=forms("hints"), **more)


def test_a_draw_shows_more_and_more_of_its_solution_and_then_no_more() -> None:
    of = hinted_stream()
    draw = next(of.draw(n) for n in range(10) if of.draw(n).problem.solution)
    shown = [draw]
    while (more := of.again(shown[-1])) is not None:
        shown.append(more)
    assert [one.hint for one in shown] == [0, 1, 2, 3]
    assert [one.number for one in shown] == [draw.number + n * FORMS for n in range(4)]
    assert [of.draw(one.number) for one in shown] == shown, "a checkpoint has the number alone"
    assert len({one.prompt_ids for one in shown}) == len({one.number for one in shown}) == 4
    bare = next(of.draw(n) for n in range(10) if not of.draw(n).problem.solution)
    assert of.again(bare) is None
    assert stream().again(stream().draw(0)) is None


def test_a_group_without_two_judgements_is_not_answered_again_and_the_last_group_trains() -> None:
    def outcome(draw: int, index: int) -> str:
        level, number = divmod(draw, FORMS)
        if number == 0:
            return "fault" if index else "incorrect"
        return "correct" if index == 0 and level >= number else "incorrect"

    of = hinted_stream(12)
    solvable = [of.draw(n).problem.solution != "" for n in range(4)]
    made = collector(outcome, stream=of, again=failed, prompts=4, group_size=3, enabled=False)
    collected = made.collect(0)
    levels = [group[0].request.draw.hint for group in collected.groups]
    assert levels == [0, *(n if solvable[n] else 0 for n in (1, 2, 3))]
    assert collected.metrics["hinted_groups"] == sum(levels) > 2
    assert len(collected.judged) == 3 * (4 + sum(levels))
    assert collected.metrics["groups_faulted"] == 1
    assert collected.metrics["draws"] == 4 + sum(levels)
    faults = [r for r in collected.judged if r.result.fault is not None]
    assert len(faults) == 2


def test_a_hint_is_the_beginning_of_the_solution_in_the_prompt() -> None:
    problem = Problem("1", "q", (("system", "s"), ("user", "q")), "6", solution="2 +\n4 is  6 ")
    for share, shown in ((0.25, "2"), (0.5, "2 +"), (0.75, "2 +\n4"), (1.0, "2 +\n4 is  6")):
        hinted = with_hint(problem, share)
        assert hinted.messages[0] == ("system", "s")
        assert hinted.messages[1][1].startswith("q\n\n")
        assert hinted.messages[1][1].endswith("\n\n" + shown)
        assert (hinted.reference, hinted.question) == ("6", "q")
    bare = Problem("1", "q", (("user", "q"),), "6")
    assert with_hint(bare, 0.5) == bare


def test_a_prompt_must_have_room_for_its_longest_hint() -> None:
    few = problems(3)
    hints = {"enabled": True, "shares": [0.25, 0.75]}
    longest = max(len(encode_all(with_hint(problem, 0.75))) for problem in few)
    for room, fits in ((longest, True), (longest - 1, False)):
        of = PromptStream(
            few, encode_all, seed=0, forms=forms("hints", hints=hints), max_prompt_tokens=room,
        )  # fmt: skip
        if fits:
            of.check()
        else:
            with pytest.raises(ConfigError, match=rf"has {longest} tokens"):
                of.check()


def encode_all(problem: Problem) -> list[int]:
    return list("".join(content for _, content in problem.messages).encode())


def test_hints_and_anchors_do_not_go_together() -> None:
    tree = {
        "data": {
            "source": "jsonl",
            "path": "rows.jsonl",
            "columns": {"solution": "solution", "anchor": "anchor"},
        },
        "method": {
            "hints": {"enabled": True},
            "pairwise": {"against": "anchor", "anchors": "data"},
        },
        "reward": {"parameters": {"max_order_gap": 0.5}},
    }
    needs = r"hints \(method\.hints\.enabled\) needs rewards that say right or wrong"
    with pytest.raises(ConfigError, match=f"{needs}.* chances of beating an anchor"):
        configs.build(tree, origin="test")


# -- in the stream -------------------------------------------------------------------------------


def test_a_checkpoint_of_another_choice_is_refused() -> None:
    chosen = PromptStream(problems(12), encode, seed=0, selector=selector("mopps"))
    plain = PromptStream(problems(12), encode, seed=0)
    for one, other in ((chosen, plain), (plain, chosen)):
        with pytest.raises(ConfigError, match=r"another data\.selection\.name"):
            one.load_state_dict(other.state_dict())
    assert "selection" not in stream().state_dict()


def test_learning_changes_what_comes_and_the_metrics_say_how() -> None:
    def outcome(draw: int, index: int) -> str:
        return "correct" if index % 2 == 0 else "incorrect"

    of = PromptStream(problems(100), encode, seed=0, selector=selector("mopps", 100))
    untaught = first(selector("mopps", 100), 8, 8)
    of_run = collector(outcome, stream=of, prompts=8, enabled=False)
    collected = of_run.collect(0)
    assert collected.metrics["selection_estimate"] == 0.5
    assert collected.metrics["selection_reached"] == 0.08
    assert collected.metrics["selection_entropy"] == pytest.approx(np.log(8) / np.log(100))
    now = [of.draw(n) for n in range(8, 16)]
    assert [of.problems.index(draw.problem) for draw in now] != untaught


@pytest.mark.parametrize("name", ["mopps", "pre-ppo"])
def test_where_a_selector_chooses_any_problem_may_need_an_anchor(name: str) -> None:
    asked = tuple(problems(40))
    run = configs.build({"run": {"steps": 1}, "eval": {"prompts": 0}}, origin="test")
    plain = PromptStream(asked, encode, seed=0)
    made = make_selector(settings(name), asked, 0)
    chosen = PromptStream(asked, encode, seed=0, selector=made)
    assert len(needed(Problems(asked, ()), plain, run)) == run.rollout.prompts_per_step < 40
    assert len(needed(Problems(asked, ()), chosen, run)) == 40


def test_a_uniform_run_has_no_metrics_of_choice() -> None:
    metrics: dict[str, Any] = collector(lambda _d, _i: "correct", enabled=False).collect(0).metrics
    assert not [name for name in metrics if name.startswith("selection")]
