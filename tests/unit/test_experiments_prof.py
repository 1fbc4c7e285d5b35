"""The bench of PROF: what its judge takes for right, and how often it is wrong about a step."""

from __future__ import annotations

import random
import statistics

import pytest
from experiments.miniature import tokenizer_of
from experiments.prof import contest as bench

from assay.api.reward.v1 import reward_pb2
from assay.trainer.settings import config as configs

RIGHT = "5;7;9;1=s"


def item(response: str, reference: str = "s", *, truncated: bool = False) -> reward_pb2.Item:
    made = reward_pb2.Item(id="0", response=response, truncated=truncated)
    made.prompt.add(role="user", content="3+2=")
    made.reference.text = reference
    return made


def judged(response: str, flips: float, *, blend: bool = False, seed: int = 0) -> reward_pb2.Result:
    return bench.Steps(bench.Judged(seed, flips, blend=blend))._judged(item(response))


def test_right_is_the_word_and_sound_are_the_steps() -> None:
    assert bench.is_right(item(RIGHT))
    assert not bench.is_right(item(RIGHT, truncated=True))
    assert not bench.is_right(item("5;7;9;1=b"))
    assert not bench.is_right(item("5;7;9;1"))
    assert bench.is_right(item("5;8;0;2=s")), "right by wrong steps"
    assert bench.is_sound("3+2=", RIGHT)
    for wrong in ("5;8;0;2=s", "5;7;9=s", "5;7;9;1;3=s", "=s", ""):
        assert not bench.is_sound("3+2=", wrong)


def test_the_pretraining_is_right_by_its_steps_and_by_luck() -> None:
    dice, tokenizer = random.Random(0), tokenizer_of(bench.WORDS)
    right = sound = 0
    for _ in range(2000):
        prompt, response = bench.drawn(dice)
        start, stride = map(int, prompt.rstrip("=").split("+"))
        right += response[-1] == bench.size_of(str((start + bench.STEPS * stride) % 10))
        sound += bench.is_sound(prompt, response)
        assert len(tokenizer(response)["input_ids"]) == 2 * bench.STEPS + 1
    assert 0.2 < sound / 2000 < 0.6
    assert right - sound > 0.3 * (2000 - sound), "about half of what is not sound"


def test_without_noise_the_scores_are_the_truth_and_the_blend_adds_their_mean() -> None:
    result = judged("5;7;0;2=s", 0.0).judgement
    assert [span.reward for span in result.spans] == [1, 1, 0, 0]
    assert ["5;7;0;2=s"[s.range.start : s.range.end] for s in result.spans] == list("5702")
    assert (result.reward, result.verdict) == (1, "correct")
    assert judged("5;7;0;2=s", 0.0, blend=True).judgement.reward == pytest.approx(1.5)
    assert judged("=s", 0.0, blend=True).judgement.reward == 1
    assert not bench.Steps(bench.Judged(0, None, blend=False))._judged(item(RIGHT)).judgement.spans


@pytest.mark.parametrize("flips", [0.2, 0.4])
def test_a_score_is_turned_round_as_often_as_said_and_always_the_same(flips: float) -> None:
    dice, turned = random.Random(1), []
    for _ in range(500):
        text = ";".join(str(dice.randrange(10)) for _ in range(4)) + "=s"
        truth, scores = ([s.reward for s in judged(text, f).judgement.spans] for f in (0.0, flips))
        assert scores == [s.reward for s in judged(text, flips).judgement.spans]
        turned += [a != b for a, b in zip(truth, scores, strict=True)]
    # A few hundred beginnings, some of which come often: 0.06 is more than two deviations.
    assert statistics.fmean(turned) == pytest.approx(flips, abs=0.06)
    texts = [f"{n};{n};{n};{n}=s" for n in range(10)]
    first, second = (
        [s.reward for t in texts for s in judged(t, flips, seed=k).judgement.spans] for k in (0, 1)
    )
    assert first != second


@pytest.mark.parametrize("method", bench.METHODS)
def test_the_arms_differ_by_the_filter_alone(method: str) -> None:
    given = ("model.name=m", "data.path=rows.jsonl", "data.eval_path=rows.jsonl")
    config = configs.load(bench.CONFIG, (*bench.SMALL, *given, *bench.METHODS[method]))
    chosen = {"prof": "both", "prof-correct": "correct"}.get(method, "none")
    assert config.method.filter.prof == chosen
    assert not config.method.dense.weight
    assert not config.method.loss.kl_coef
