"""PROF (arXiv 2509.03403) beside GRPO and beside a blend, with step scores of a known noise.

    python -m experiments prof --out DIR --seeds 0,1,2

The task is "3+2=": to count on from 3 by twos, four times, in the last digit alone, and to say at
the end whether the last one is small (below 5) or big: "5;7;9;1=s". Only that word is judged right
or wrong, and half of what was counted wrongly ends on the right one: right answers by wrong steps,
which the outcome pays for as for others. The pretrained model goes wrong as that of
experiments/tango/contest.py does.

The judge scores each step 1 where its digit is where it should be and 0 elsewhere, and then turns
the score round with a chance of f: a hash of the seed, the prompt and the response as far as the
step's end, as a process reward model would be wrong about the same step again. A step that is not
one digit, and the fifth and later ones, are wrong.

    grpo          the outcome alone, 0 or 1; no score is looked at
    blend f       the outcome plus the mean score of the steps in the reward (the two as they are:
                  the paper's weights were not at hand)
    prof f        GRPO on half of each group, chosen by method.filter.prof = "both"
    prof-correct f  the same with "correct"

All generate as many responses in as many steps; the two with the filter train on half of them. At
f = 0.5 the scores say nothing, and what is left of the filter is that it evens the two sides.
"""

from __future__ import annotations

import hashlib
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.miniature import (
    Item,
    Service,
    Shape,
    as_data,
    begin,
    finished,
    job_of,
    keep,
    options,
    pretrained,
    told,
    train,
    write_problems,
)
from experiments.report import change, compare
from experiments.tango.contest import STEPS, asked, drawn_solution

CONFIG = Path(__file__).parents[2] / "configs" / "grpo.toml"
STRIDES, HELD_OUT = 6, 20
SIZES = {False: "b", True: "s"}
VAGUE = "?"
"""In place of a step's digit."""
WORDS = (*"0123456789", "+", "=", ";", *SIZES.values())
SHAPE = Shape(width=64, layers=2, context=32, steps=900, batch=128, learning_rate=5e-3)
LATE = 10
SMALL = (
    "ablate=kl",
    "data.template={question}",
    "reward.verifier=miniature",
    "model.gradient_checkpointing=false",
    "model.precision=float32",
    "optim.learning_rate=5e-4",
    "optim.micro_batch=0",
    "rollout.prompts_per_step=16",
    "rollout.group_size=8",
    "rollout.max_new_tokens=11",
    f"eval.prompts={HELD_OUT}",
    "eval.samples=16",
    "eval.batch_size=1000",
    "eval.show=0",
    "run.checkpoint_every=0",
    "run.samples_every=1",
    "run.report_to=[]",
)
METHODS: Mapping[str, tuple[str, ...]] = {
    "grpo": (),
    "blend": (),
    "prof": ("method.filter.prof=both",),
    "prof-correct": ("method.filter.prof=correct",),
}
FIGURES = ("accuracy", "right", "sound", "sound_of_right")


# The task.


def size_of(digit: str) -> str:
    """The word for a last digit."""
    return SIZES[int(digit) < 5]


def drawn(dice: random.Random, vague: float = 0.0) -> tuple[str, str]:
    """A prompt, and a response with the mistakes of the pretrained model; each of its steps is
    left vague with a chance, and the next goes on from what it would have been."""
    start, stride = dice.randrange(10), dice.randint(1, STRIDES)
    solution, _ = drawn_solution(start, stride, dice)
    steps = [VAGUE if vague and dice.random() < vague else one for one in solution.split(";")]
    return asked(start, stride)[0], f"{';'.join(steps)}={size_of(solution[-1])}"


def problems(folder: Path, vague: float = 0.0) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones (a third)."""
    name, words = ("vague", (*WORDS, VAGUE)) if vague else ("prof", WORDS)
    model = pretrained(folder / name, words, partial(drawn, vague=vague), SHAPE)
    every = [asked(start, stride) for start in range(10) for stride in range(1, STRIDES + 1)]
    rows = [(prompt, size_of(last)) for prompt, last in every]
    random.Random(0).shuffle(rows)
    learnt = write_problems(folder / "prof-train.jsonl", rows[HELD_OUT:])
    return model, learnt, write_problems(folder / "prof-test.jsonl", rows[:HELD_OUT])


def is_right(item: Item) -> bool:
    """It ended by itself with the right word; the steps are not looked at."""
    return not item.truncated and item.response.rpartition("=")[2] == item.reference.text


def steps_of(prompt: str, response: str) -> list[tuple[int, int, bool]]:
    """Where the steps of a response begin and end, and whether each is what it should be."""
    start, stride = map(int, prompt.rstrip("=").split("+"))
    found, at = [], 0
    for n, said in enumerate(response.partition("=")[0].split(";"), start=1):
        right = n <= STEPS and said == str((start + n * stride) % 10)
        if said:
            found.append((at, at + len(said), right))
        at += len(said) + 1
    return found


def is_sound(prompt: str, response: str) -> bool:
    """As many steps as there should be, each of them right."""
    right = [yes for *_, yes in steps_of(prompt, response)]
    return len(right) == STEPS and all(right)


@dataclass(frozen=True, slots=True)
class Judged:
    """How responses are judged.

    Attributes:
        seed: of the noise.
        flips: the chance that a step's score is turned round, 0 to 1; None for no scores.
        blend: whether the mean score is part of the reward.
        misled: the chance that a vague step is scored as right.
        vague: of each step of the pretrained model.
    """

    seed: int
    flips: float | None
    blend: bool
    misled: float = 0.0
    vague: float = 0.0


class Steps(Service):
    """A judge of outcomes with a judge of steps that errs."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(is_right, rewards=(0.0, 1.0))
        self._how = judged

    def _judged(self, item: Item) -> reward_pb2.Result:
        result = super()._judged(item)
        if self._how.flips is None:
            return result
        prompt, text, scores = item.prompt[0].content, item.response, []
        for start, end, right in steps_of(prompt, text):
            chance = self._how.misled if text[start:end] == VAGUE else self._how.flips
            wrongly = self._drawn(prompt + text[:end]) < chance
            scores.append(float(right != wrongly))
            span = result.judgement.spans.add(reward=scores[-1], label="step")
            span.range.start, span.range.end = start, end
        if self._how.blend:
            mean = statistics.fmean(scores) if scores else 0.0
            result.judgement.reward += mean
            result.judgement.components.add(name="steps", score=mean, weight=1.0)
        return result

    def _drawn(self, text: str) -> float:
        digest = hashlib.sha256(f"{self._how.seed}/{text}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


# Runs.


def one_run(method: str, judged: Judged, folder: Path, models: Path, steps: int) -> dict[str, Any]:
    """Trains, and says what was right, and what was right by its steps."""
    config = settings(method, problems(models, judged.vague), judged.seed, steps)
    report = train(config, folder, lambda: Steps(judged))
    rows = read_rows(RunFolder(folder).samples)
    late = [row for row in rows if row["step"] > config.run.steps - LATE]
    right = [row["verdict"] == "correct" for row in late]
    sound = [is_sound(row["question"], row["response"]) for row in late]
    paid = [ok for ok, yes in zip(sound, right, strict=True) if yes]
    return {
        "before": report["before"]["accuracy"],
        "accuracy": report["after"]["accuracy"],
        "right": statistics.fmean(right),
        "sound": statistics.fmean(sound),
        "sound_of_right": statistics.fmean(paid) if paid else None,
        "train_s": report["run"]["train_s"],
    }


def settings(method: str, made: tuple[Path, Path, Path], seed: int, steps: int) -> Config:
    """Of one run."""
    model, rows, held_out = made
    own = (
        f"model.name={model}",
        f"data.path={rows}",
        f"data.eval_path={held_out}",
        f"run.steps={steps}",
        f"run.seed={seed}",
    )
    return configs.load(CONFIG, (*SMALL, *own, *METHODS[method]))


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("prof", steps=120)
    parser.add_argument("--flips", default="0,0.2,0.4")
    parser.add_argument("--methods", default="blend,prof,prof-correct", help="beside grpo")
    chosen = parser.parse_args(words)
    environment.calm()
    seeds, models = plan.read_seeds(chosen.seeds), chosen.out / "models"
    problems(models)
    levels = [float(word) for word in chosen.flips.split(",")]
    arms: dict[str, tuple[str, float | None]] = {"grpo": ("grpo", None)}
    for level in levels:
        for method in chosen.methods.split(","):
            arms[f"{method} {level:g}"] = method, level
    jobs = {
        (name, seed): job_of(
            "prof", f"{name}, seed {seed}",
            chosen.out / f"{chosen.steps}-steps" / f"{name.replace(' ', '-')}-{seed}",
            method=method, flips=flips, seed=seed, steps=chosen.steps, models=str(models),
        )
        for seed in seeds
        for name, (method, flips) in arms.items()
    }  # fmt: skip
    runs = finished(jobs, chosen.jobs, main)
    found = compare(runs, FIGURES, "grpo")
    print("\nless the blend of the same noise")
    for name, (method, level) in arms.items():
        if method.startswith("prof") and f"blend {level:g}" in runs:
            ahead = {key: change(runs, name, f"blend {level:g}", key) for key in FIGURES}
            found[name]["less_blend"] = {key: as_data(value) for key, value in ahead.items()}
            print(f"    {name:<18}" + "   ".join(f"{k} {told(v)}" for k, v in ahead.items()))
    keep(chosen.out / f"prof-{chosen.steps}.json", found)


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run."""
    judged = Judged(wanted["seed"], wanted["flips"], blend=wanted["method"] == "blend")
    folder, models = Path(wanted["folder"]), Path(wanted["models"])
    return one_run(wanted["method"], judged, folder, models, wanted["steps"])


if __name__ == "__main__":
    begin(main)
