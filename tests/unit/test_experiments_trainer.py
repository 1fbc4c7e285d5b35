"""The parts of the trainer's miniatures that can be wrong without anyone noticing."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from bench import __main__ as bench
from experiments import __main__ as experiments
from experiments import errands, tasks
from experiments.areal.claims import LATE, summary
from experiments.dapo.contest import mixed
from experiments.dr_mas import contest as agents
from experiments.episodes import (
    ANSWERS,
    PROSE,
    SIGNS,
    Counters,
    Cues,
    Flaky,
    FlakySettings,
    Lookup,
    Recall,
    RecallSettings,
    bit_of,
    counted,
)
from experiments.miniature import Item, Job, Service, finished, job_of, keep, tokenizer_of, work_off
from experiments.noise import contest as noise
from experiments.report import compare, draw
from experiments.simple_tir import contest as void
from experiments.supo import contest as summaries
from experiments.t_ppo.contest import Lengths, simulated, steps_of
from experiments.tango import contest as tango
from experiments.vapo.contest import toy

from assay.api.reward.v1 import reward_pb2
from assay.environments import Observation, Reply
from assay.trainer.methods.cotraining.protocol import read


def item(response: str, reference: str = "", *, truncated: bool = False, name: str = "0") -> Item:
    made = Item(id=name, group_id="3", response=response, truncated=truncated)
    made.reference.text = reference
    return made


COUNTINGS = (tasks.NEAR, tasks.FAR, tasks.AGAIN)


@pytest.mark.parametrize(
    ("kind", "a", "b"), [(kind, a, b) for kind in COUNTINGS for a, b in kind.problems]
)
def test_the_right_response_to_every_problem_is_right(kind: tasks.Counting, a: int, b: int) -> None:
    right = tasks.counted(a, b)
    reference = str((a + b) % 10)
    assert tasks.counts_right(item(right, reference))
    assert tasks.counts_right(item(f"1=1;{right}", reference))
    assert not tasks.counts_right(item(f"{right};", reference, truncated=True))
    assert not tasks.counts_right(item(right, str((a + b + 1) % 10)))
    assert len(right) < kind.limit


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [(tasks.NEAR, 0.1, 0.4), (tasks.FAR, 0.1, 0.3), (tasks.AGAIN, 0.1, 0.5)],
)
def test_the_pretraining_miscounts_and_rambles(
    kind: tasks.Counting, least: float, most: float
) -> None:
    dice = random.Random(0)
    drawn = [kind.draw(dice) for _ in range(2000)]
    sums = [tuple(map(int, question[:-1].split("+"))) for question, _ in drawn]
    said = [response.rpartition("=")[2] for _, response in drawn]
    cut = [len(response) >= kind.limit for _, response in drawn]
    right = [
        last == str((a + b) % 10) and not late
        for (a, b), last, late in zip(sums, said, cut, strict=True)
    ]
    assert least < sum(right) / len(drawn) < most
    assert 0.03 < sum(cut) / len(drawn) < 0.3


def test_a_chain_is_right_once_in_four_or_five_and_slips_where_it_says() -> None:
    dice = random.Random(0)
    drawn = [tasks.drawn_chain(dice) for _ in range(1000)]
    right = [tasks.chain_right(item(text, tasks.chained(asked[0]))) for asked, text in drawn]
    assert 0.17 < sum(right) / len(drawn) < 0.3
    assert {len(text) for _, text in drawn} == {4 * tasks.LINKS}  # a link: three digits, a letter
    whole = tasks.chained("a")
    assert whole.startswith("001b002c")
    assert whole.endswith("g")
    assert not tasks.chain_right(item(whole[:-4], whole))


def test_no_way_on_the_short_road_is_as_good_as_the_whole_long_one() -> None:
    right = tasks.roads_right(0)
    whole = "L" + "".join(f"{n:03d}" for n in range(1, tasks.LONG[0] + 1))

    def rate(response: str, *, truncated: bool = False) -> float:
        judged = [right(item(response, truncated=truncated, name=str(n))) for n in range(3000)]
        return sum(judged) / len(judged)

    assert rate(whole) == pytest.approx(tasks.RIGHT_LONG, abs=0.03)
    assert rate("S001002") == pytest.approx(tasks.RIGHT_SHORT, abs=0.03)
    assert rate("L001002") == pytest.approx(tasks.RIGHT_SHORT, abs=0.03)
    assert rate(whole, truncated=True) == 0


def test_a_response_is_right_the_more_often_the_later_the_stop_it_ends_at() -> None:
    right = tasks.stops_right(0)

    def rate(stop: int, *, truncated: bool = False) -> float:
        marks = "".join(f"{n:03d}" for n in range(1, tasks.STOP_EVERY * stop + 1))
        judged = [right(item(marks, truncated=truncated, name=str(n))) for n in range(2000)]
        return sum(judged) / len(judged)

    assert [rate(stop) for stop in (1, 5, 9)] == pytest.approx([0.1, 0.5, 0.9], abs=0.03)
    assert rate(9, truncated=True) == 0


def test_the_pretraining_ends_at_stops_and_nowhere_else() -> None:
    dice = random.Random(0)
    lengths = [len(response) // 3 for _, response in (tasks.drawn_stops(dice) for _ in range(2000))]
    assert set(lengths) == {tasks.STOP_EVERY * stop for stop in range(1, tasks.LAST_STOP + 1)}
    assert lengths.count(tasks.STOP_EVERY) / len(lengths) == pytest.approx(tasks.STOPS, abs=0.03)
    assert max(lengths) < tasks.ROAD_LIMIT


def test_words_survive_the_tokenizer() -> None:
    for words in (tasks.COUNTING_WORDS, tasks.ROAD_WORDS):
        tokenizer = tokenizer_of(words)
        text = "".join(words)
        ids = tokenizer(text)["input_ids"]
        assert len(ids) == len(words)
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("right", range(7))
def test_mixed_counts_the_mixed_groups(right: int) -> None:
    responses = [n < right for n in range(6)]
    groups = list(combinations(responses, 3))
    assert mixed(right, 6, 3) == pytest.approx(sum(0 < sum(g) < 3 for g in groups) / len(groups))


def test_decoupling_mends_the_first_tokens_advantage_and_one_lambda_does_not() -> None:
    rows = {row["sweeps"]: row for row in toy()}
    truth = 2 * (tasks.RIGHT_LONG - tasks.RIGHT_SHORT)
    assert rows[0]["critic_1"] < 0
    assert rows[10]["critic_0.95"] < 0
    assert rows[10]["critic_1"] == pytest.approx(truth, abs=0.01)
    assert rows[100]["critic_0.95"] == pytest.approx(truth, abs=0.01)


def test_windows_draw_as_many_tokens_a_pass_as_the_design_s_simulation_says() -> None:
    """Its table: 2.69, 2.37, 2.11 and 1.85 at a window of a third. [computed there]"""
    for mean, sigma, ratio in ((4e3, 0.8, 2.69), (6e3, 0.8, 2.37), (8e3, 0.8, 2.11)):
        assert simulated(Lengths(mean, sigma, 24_576), 8192) == pytest.approx(ratio, abs=0.03)
    assert simulated(Lengths(1e4, 0.7, 24_576), 8192) == pytest.approx(1.85, abs=0.03)
    alike = Lengths(1e5, 0.01, 5000)  # nothing to gain where all are as long
    assert simulated(alike, 2500, slots=256) == pytest.approx(1)


def test_tangos_pretraining_solves_badly_verifies_leniently_and_can_tell() -> None:
    dice = random.Random(0)
    texts = [tango.drawn_text(dice) for _ in range(3000)]
    solved = [(p, r) for p, r in texts if not p.endswith((tango.VERIFY, tango.COMPARE))]
    right = [
        tango.is_right(item(text, str((int(p[0]) + tango.STEPS * int(p[2])) % 10)))
        for p, text in solved
    ]
    assert 0.25 < sum(right) / len(right) < 0.5
    called: dict[tuple[str, bool], list[bool]] = {}
    for prompt, text in texts:
        ask = prompt[-1]
        if ask in (tango.VERIFY, tango.COMPARE):
            truth = prompt[-2] == str((int(prompt[0]) + tango.STEPS * int(prompt[2])) % 10)
            said = read(text, tango.STEPS, "strict")
            assert said.steps is not None
            assert said.form == 1
            called.setdefault((ask, truth), []).append(said.final == "wrong")
    shares = {key: sum(values) / len(values) for key, values in called.items()}
    assert shares[tango.COMPARE, False] == 1
    assert shares[tango.COMPARE, True] == 0
    assert shares[tango.VERIFY, True] < 0.2
    assert 0.2 < shares[tango.VERIFY, False] < 0.6


def test_steps_to_the_threshold() -> None:
    rows = [{"correct": value} for value in (0.0, 1.0, 0.7, 0.9, 0.8, 0.9, 0.0)]
    assert tango.steps_to(rows) == 6
    assert tango.steps_to(rows[:5]) is None


def test_errands_have_a_long_tail_and_the_first_token_decides() -> None:
    dice = random.Random(0)
    lengths = [errands.drawn_number(dice) + 1 for _ in range(4000)]
    assert 0.08 < sum(length > errands.LIMIT / 3 for length in lengths) / 4000 < 0.2
    assert 0.002 < sum(length > errands.LIMIT for length in lengths) / 4000 < 0.02
    right = errands.errands_right(0)

    def rate(response: str, *, truncated: bool = False) -> float:
        judged = [right(item(f"{response}{n:03d}", truncated=truncated)) for n in range(3000)]
        return sum(judged) / len(judged)

    assert rate(errands.counted_down(3, "A")) == pytest.approx(errands.RIGHT_A, abs=0.03)
    assert rate(errands.counted_down(3, "B")) == pytest.approx(errands.RIGHT_B, abs=0.03)
    assert rate("A002001", truncated=True) == 0
    assert errands.counted_down(3, "A") == "A002001"
    assert 30 < steps_of("windows", 30) < 40
    assert steps_of("whole", 30) == 30


@pytest.mark.parametrize("item_s", [0.0, 0.001])
async def test_the_judge_answers_every_item_once(item_s: float) -> None:
    service = Service(lambda one: one.response == "x", item_s=item_s, workers=2)

    async def requests():
        for n in range(3):
            items = [item("xy"[k % 2], name=f"{n}-{k}") for k in range(4)]
            yield reward_pb2.StreamScoreRequest(items=items)
            await asyncio.sleep(0)

    found = {}
    async for response in service.stream_score(requests(), timeout_s=1):
        for result in response.results:
            assert result.id not in found
            found[result.id] = result.judgement.reward
    assert found == {f"{n}-{k}": 1.0 - 2 * (k % 2) for n in range(3) for k in range(4)}


def test_a_run_that_fails_is_told_and_one_that_is_done_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path / "done.json", {})
    code = "import pathlib; pathlib.Path({!r}).write_text('{{}}')"
    jobs = [
        Job("done", ("-c", "raise SystemExit('not again')"), tmp_path / "done.json"),
        Job("fails", ("-c", "raise SystemExit('no luck')"), tmp_path / "fails.json"),
        Job("works", ("-c", code.format(str(tmp_path / "works.json"))), tmp_path / "works.json"),
    ]
    assert [job.label for job in work_off(jobs, 2)] == ["done", "works"]
    assert "fails: failed: no luck" in capsys.readouterr().out


def test_runs_in_this_process_are_kept_and_not_repeated(tmp_path: Path) -> None:
    def one(wanted: dict[str, Any]) -> dict[str, Any]:
        assert Path(wanted["folder"]).parent == tmp_path
        return {"score": wanted["ahead"] + wanted["seed"]}

    jobs = {
        (name, seed): job_of("none", name, tmp_path / f"{name}-{seed}", ahead=ahead, seed=seed)
        for name, ahead in (("first.5", 0.0), ("second", 0.5))
        for seed in range(3)
    }
    keep(tmp_path / "second-2.json", {"score": 4.5})
    runs = finished(jobs, 0, one)
    assert runs["second"] == {0: {"score": 0.5}, 1: {"score": 1.5}, 2: {"score": 4.5}}
    assert finished(jobs, 0, lambda _wanted: {}) == runs
    told = compare(runs, ("score",), "first.5")
    assert told["first.5"]["change"] == {}
    change = told["second"]["change"]["score"]
    assert (change["mean"], change["n"]) == (pytest.approx((0.5 + 0.5 + 2.5) / 3), 3)
    draw(tmp_path / "curves.png", {"one": {"a": [[(1, 0.5), (2, 0.6)], []]}, "two": {"a": []}})
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_runs_of_a_contestant_share_a_process_and_what_is_done_is_left_out(tmp_path: Path) -> None:
    one = "lambda wanted: {'process': os.getpid(), 'seed': wanted['seed']}"
    code = f"import os; from experiments.miniature import begin; begin({one})"
    jobs = {}
    for name, seed in (("a", 0), ("a", 1), ("a", 2), ("b", 0)):
        job = job_of("none", name, tmp_path / f"{name}-{seed}", seed=seed)
        jobs[name, seed] = replace(job, arguments=("-c", code, *job.arguments[2:]))
    keep(tmp_path / "a-1.json", {"process": 0})
    runs = finished(jobs, 2, dict, together=True)
    assert runs["a"][1] == {"process": 0}
    assert runs["a"][0]["process"] == runs["a"][2]["process"] != runs["b"][0]["process"]
    assert [runs["a"][0]["seed"], runs["a"][2]["seed"]] == [0, 2]


@pytest.mark.parametrize("eta", [0, 8])
def test_a_stale_run_s_figures_begin_where_its_queue_is_full(eta: int) -> None:
    filling = [(age, 0.1) for age in range(eta)]
    full = [(eta, right) for right in (*[0.5] * LATE, *[0.9] * LATE)]
    rows = [
        {"staleness": age, "correct": right, "entropy": 1.0, "clip_low": 0.25, "clip_high": 0.25}
        for age, right in (*filling, *full)
    ]
    kept = summary(rows, eta)
    assert kept["late"] == pytest.approx(0.9)
    assert kept["mean"] == pytest.approx(0.7)
    assert kept["clipped"] == 0.5
    with pytest.raises(ValueError, match="steps old"):
        summary(rows, eta + 1)


def test_options_go_to_one_measurement_that_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["wire", "--out", "x"]) == 2
    assert bench.main(["trainer-update", "trainer-step", "--jobs", "2"]) == 2
    assert bench.main(["nothing"]) == 2
    assert "trainer-update" in capsys.readouterr().out
    assert experiments.main(["nothing"]) == 2
    assert "dapo" in capsys.readouterr().out


def test_two_agents_earn_apart_and_are_right_one_time_in_four_at_first() -> None:
    game = Counters()
    game.reset({"prompt": "9"})
    following = game.turn(Reply("012", agent="up"))
    assert following is not None
    assert (following.agent, following.messages[0].content) == ("down", "9-")
    assert game.turn(Reply("877", agent="down")) is None
    assert game.reward() == {"up": 10.0, "down": 0.0}
    dice, names = random.Random(0), {sign: agent for agent, sign in SIGNS.items()}
    drawn = [agents.drawn(dice) for _ in range(2000)]
    right = [text == counted(int(prompt[0]), names[prompt[1]]) for prompt, text in drawn]
    assert sum(right) / 2000 == pytest.approx((1 - agents.MISCOUNTS) ** 3, abs=0.04)


@pytest.mark.parametrize("length", summaries.LENGTHS)
@pytest.mark.parametrize("kept", ["9", "0"])
def test_a_talk_goes_on_from_its_summary_and_its_last_conversation_earns(
    length: int, kept: str
) -> None:
    talk = Recall(RecallSettings(earns="last"))
    said: Observation | None = talk.reset({"prompt": "9" + "1" * (length - 1)})
    asked, known, agents_of = 0, "-", []
    while said is not None:
        read = said.messages[-1].content
        if said.messages[0].role == "system" and asked:
            assert f"<summary>\n{kept}\n" in read
            known = kept
        agents_of.append((asked, said.agent))
        asked += talk.is_asked
        said = talk.turn(Reply(kept if talk.is_asked else known, answer=kept))
    assert asked == length // 5
    assert all((agent == "last") == (before == asked) for before, agent in agents_of)
    assert talk.reward() == {"policy": 0.0, "last": float(kept == "9")}


@pytest.mark.parametrize("failures", range(4))
def test_a_row_alone_decides_how_often_its_tool_fails(failures: int) -> None:
    printed = []
    for _ in range(2):
        world = Flaky(FlakySettings(failures=failures))
        world.reset({"prompt": "12*34="})
        printed.append([world.python("12*34") for _ in range(failures + 1)])
        assert world.python("print(1)").startswith(PROSE)
    assert printed[0] == printed[1]
    assert printed[0][-1] == "408"


def test_a_turn_in_seven_is_void_and_tracebacks_are_not_what_a_policy_was_taught() -> None:
    dice = random.Random(0)
    turns = [void.drawn(dice) for _ in range(4000)]
    ended = [not said.endswith((void.OVER, void.CLOSE)) for _, said in turns]
    assert sum(ended) / 4000 == pytest.approx(0.145, abs=0.02)
    reads = [read for read, _ in turns if void.SHOWN in read]
    assert all(read.split(void.SHOWN)[1].split("\n")[1].isdigit() for read in reads)


def test_a_talk_of_cues_tells_how_many_were_right_and_earns_their_share() -> None:
    talk, cues = Cues(), "hgfe"
    assert talk.reset({"prompt": cues}) == "0h"
    told = [talk.turn(Reply(f"{ANSWERS[c] if n % 2 else 'x'}yz")) for n, c in enumerate(cues)]
    assert told == ["0g", "1f", "1e", None]
    assert talk.reward() == 0.5


@pytest.mark.parametrize("part", noise.ARMS)
def test_the_noisy_judge_errs_as_often_as_it_is_planted(part: str) -> None:
    judge = noise.Judge(part, "appeal", 0)
    dice = random.Random(0)
    seen: dict[str, list[Any]] = {"right": [], "hedged": [], "wrong": []}
    for number in range(6000):
        prompt, response = noise.drawn(dice)
        reference = dict(noise.SUMS)[prompt]
        made = item(response, reference, name=str(number))
        kind = "right" if response == reference else "hedged" if "?" in response else "wrong"
        seen[kind].append(judge._judged(made).judgement)
    first = {
        kind: [one.appeal.first.reward if one.HasField("appeal") else one.reward for one in judged]
        for kind, judged in seen.items()
    }
    means = {kind: sum(values) / len(values) for kind, values in first.items()}
    assert means["right"] == pytest.approx(0.7, abs=0.04)
    assert means["hedged"] == pytest.approx(0.8 if part == "hedges" else 0.05, abs=0.06)
    assert means["wrong"] == pytest.approx(0.0 if part == "hedges" else 0.05, abs=0.01)
    wrong = first["hedged"] + first["wrong"]
    assert sum(wrong) / len(wrong) == pytest.approx(0.05, abs=0.015)
    assert all(list(one.suspicions) == ["hedged"] for one in seen["hedged"])
    asked = [one.appeal for one in seen["right"] if one.HasField("appeal")]
    assert all(one.second.reward == 1 for one in asked)
    assert {one.probability for one in asked} == {0.2, 0.5}


@pytest.mark.parametrize(("part", "arm"), [(p, a) for p, arms in noise.ARMS.items() for a in arms])
def test_each_arm_of_the_noisy_judge_has_settings_that_load(part: str, arm: str) -> None:
    wanted = {"part": part, "arm": arm, "seed": 0, "steps": 2}
    config = noise.config_of(wanted, (Path("m"), Path("rows.jsonl"), Path("held.jsonl")))
    corrected = config.method.noise.correction != "none" or config.method.noise.appeals
    assert corrected == (arm not in ("clean", "noisy", "weaker"))
    assert (config.method.loss.kl_coef > 0) == (part == "even")


def test_a_look_up_works_by_chance_and_tells_the_key_s_bit() -> None:
    """By the variable's name, which no policy could know; and always the same."""
    told = []
    for key in range(300):
        for name in "abc":
            world = Lookup()
            world.reset({"prompt": f"{key:03d}"})
            said = world.python(f"{name}={key:03d}\n")
            assert said == world.python(f"{name}={key:03d}\n")
            assert said == bit_of(f"{key:03d}") or set(said.split()) <= {w.strip() for w in PROSE}
            told.append(said.isdigit())
    assert sum(told) / len(told) == pytest.approx(0.35, abs=0.06)
    assert not world.python("z=001").isdigit()
