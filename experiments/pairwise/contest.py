"""Chances of winning against Bradley-Terry scores as rewards, in miniature (arXiv 2504.04950).

    python -m experiments pairwise --out DIR --seeds 0,1,2 --offsets 0,4
    python -m experiments pairwise --out DIR --arms bt,win --offset-of sign --pretrain 60

Synthetic preferences: a response of letters has a quality, the mean worth of its letters, and the
judge's score of it is that times `SHARPNESS`, plus an offset of the prompt, drawn once for each
prompt from a normal distribution with a deviation of s: what a Bradley-Terry model that was not
calibrated across prompts says. Of two responses to a prompt the judge prefers one with
sigmoid(score - score), where the offset is gone; asked in one order it leans to the first place,
and both orders are averaged. For each s:

    bt            the score as reward; a critic, one response to a prompt
    win           the chance of beating an anchor, a sample of the initial policy that the run draws
                  itself (anchors = "reference"); all else as in bt
    win-log-odds  the same chance by its log-odds, which does not level off where it nears 1
    win-even      the chance of beating `ANCHOR`, for every prompt the same (anchors = "data")
    bt-group      the score as reward, against the mean of the prompt's group
    win-group     each response against every other of its group (estimator = "symmetric")

All have equal steps of equally many responses, settings of configs/pairwise_ppo.toml and
pairwise_group.toml, no KL, and whitened advantages, so that the scale of a reward decides nothing.
What is compared is the quality of held-out samples afterwards, and of all that a run drew, which is
how fast it got there; runs are paired by seed.

Prompts come about once each: no critic can learn their offsets, and with one response to a prompt
they stay in the advantages. With --offset-of sign the offset is that of the prompt's first sign,
one of twenty, which a critic can learn if it is given the steps. Where the baseline is the prompt's
own group, the offset cancels in bt-group, too: there nothing should differ much.

Quality counts the first six letters and no more. A response may have a seventh in place of its end;
when that was worth something, whether a run found it out or not, one in six more, was by far the
greatest difference between seeds, and hid what is compared here.

Orderings and intervals are what this can show, and no magnitudes. The paper's text was not at hand;
the set-up is a derivation.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.claim import Runs
from experiments.miniature import (
    Item,
    Job,
    Service,
    Shape,
    begin,
    finished,
    job_of,
    keep,
    options,
    pretrained,
    train,
    write_problems,
)
from experiments.report import Points, compare, draw, leads

CONFIGS = Path(__file__).parents[2] / "configs"
ASKED, WRITTEN = "ABCDEFGHIJKLMNOPQRST", "abcdefghij"
LENGTH = 6
ANCHOR = "efefef"
"""As good as what the initial policy writes is on average."""
SHARPNESS = 8.0
"""The scores of two random responses to a prompt differ by about 1.5."""
LEANING = 1.0
"""What the first place is worth to the judge, in its score."""
PROMPTS, HELD_OUT = 4096, 64
SHAPE = Shape(width=64, layers=1, context=16, steps=200, batch=64)
SMALL = (
    "model.gradient_checkpointing=false",
    "model.precision=float32",
    "reward.verifier=miniature",
    "reward.parameters={}",
    "method.loss.kl_coef=0.0",
    "method.advantage.normalise=batch",
    "method.critic.learning_rate=1e-3",
    "method.critic.warmup_steps=0",
    "optim.learning_rate=5e-4",
    "optim.warmup_steps=0",
    "optim.mini_batches=2",
    "optim.micro_batch=0",
    f"rollout.max_new_tokens={LENGTH + 1}",
    f"eval.prompts={HELD_OUT}",
    "eval.samples=8",
    "eval.batch_size=256",
    "run.checkpoint_every=0",
    "run.samples_every=1",
    "run.report_to=[]",
)
SINGLE = ("rollout.prompts_per_step=64", "rollout.group_size=1")
GROUPS = ("rollout.prompts_per_step=8", "rollout.group_size=8")
SCORES = ("method.pairwise.against=none", "method.pairwise.anchors=none")
ANCHORED = ("method.pairwise.anchors=reference",)
ARMS = {
    "bt": ("pairwise_ppo", (*SINGLE, *SCORES)),
    "win": ("pairwise_ppo", (*SINGLE, *ANCHORED)),
    "win-log-odds": (
        "pairwise_ppo",
        (*SINGLE, *ANCHORED, "method.pairwise.reward=log-odds"),
    ),
    "win-even": ("pairwise_ppo", (*SINGLE, "method.pairwise.anchors=data")),
    "bt-group": (
        "pairwise_group",
        (*GROUPS, *SCORES, "method.advantage.estimator=group"),
    ),
    "win-group": ("pairwise_group", (*GROUPS, *ANCHORED)),
}
PAIRS = (
    ("win", "bt"),
    ("win-even", "bt"),
    ("win-even", "win"),
    ("win-log-odds", "win"),
    ("win-group", "bt-group"),
)
FIGURES = ("before", "after", "drawn")


def quality(response: str) -> float:
    """The mean worth of a response's first `LENGTH` letters, in [0, 1]; what is missing is worth
    nothing, and so is a letter more."""
    letters = [sign for sign in response if sign in WRITTEN][:LENGTH]
    return sum(WRITTEN.index(sign) for sign in letters) / (len(WRITTEN) - 1) / LENGTH


def offset(text: str, deviation: float) -> float:
    """Of a prompt, or of its first sign; the same on every machine."""
    dice = random.Random(hashlib.sha256(text.encode()).digest())
    return deviation * dice.gauss(0, 1)


def win(one: float, two: float) -> float:
    """The chance that the first score wins, by a judge that leans to the first place, in both
    orders."""
    forward = _sigmoid(one - two + LEANING)
    reverse = 1 - _sigmoid(two - one + LEANING)
    return (forward + reverse) / 2


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


class Preferences(Service):
    """The judge: scores, or chances of winning where there is something to beat.

    Args:
        deviation: s, of the offsets.
        whole: every prompt has an offset of its own; else those with the same first sign share one.
    """

    def __init__(self, deviation: float, *, whole: bool = True) -> None:
        super().__init__(lambda _item: True)
        self._deviation = deviation
        self._whole = whole

    def _judged(self, item: Item) -> reward_pb2.Result:
        result = reward_pb2.Result(id=item.id)
        judgement = result.judgement
        score = self._score(item, item.response)
        if item.reference.WhichOneof("kind") == "anchor_response":
            judgement.reward = win(score, self._score(item, item.reference.anchor_response))
            judgement.verdict = "better" if judgement.reward >= 0.5 else "worse"
        else:
            judgement.reward = score
            judgement.verdict = "scored"
        judgement.verifier.name = "miniature"
        return result

    def _score(self, item: Item, response: str) -> float:
        prompt = "".join(message.content for message in item.prompt)
        whose = prompt if self._whole else prompt[:1]
        return SHARPNESS * quality(response) + offset(whose, self._deviation)


def drawn(dice: random.Random) -> tuple[str, str]:
    """A prompt, and a response that knows nothing of worth."""
    prompt = "".join(dice.choices(ASKED, k=4))
    return prompt, "".join(dice.choices(WRITTEN, k=LENGTH))


def task(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones."""
    model = pretrained(folder / "letters", (*ASKED, *WRITTEN), drawn, SHAPE)
    dice = random.Random(0)
    prompts = list(dict.fromkeys(drawn(dice)[0] for _ in range(2 * (PROMPTS + HELD_OUT))))
    asked, held_out = prompts[:PROMPTS], prompts[PROMPTS : PROMPTS + HELD_OUT]
    return (
        model,
        write_problems(folder / "letters-train.jsonl", ((prompt, ANCHOR) for prompt in asked)),
        write_problems(folder / "letters-test.jsonl", ((prompt, ANCHOR) for prompt in held_out)),
    )


def config_of(arm: str, *, models: Path, steps: int, seed: int, pretrain: int) -> Config:
    """The settings of a contestant."""
    model, problems, held_out = task(models)
    preset, own = ARMS[arm]
    return configs.load(
        CONFIGS / f"{preset}.toml",
        (
            *SMALL,
            *own,
            f"model.name={model}",
            f"data.path={problems}",
            f"data.eval_path={held_out}",
            f"method.critic.pretrain_steps={pretrain}",
            f"run.steps={steps}",
            f"run.seed={seed}",
        ),
        saved=True,
    )


def one_run(config: Config, judge: Preferences, folder: Path) -> dict[str, Any]:
    """Trains, and says how good held-out samples were before and are afterwards, and how good those
    were that each step drew."""
    report = train(config, folder, lambda: judge)
    made = RunFolder(folder)
    found: dict[str, Any] = {
        when: statistics.fmean(
            quality(answer["response"])
            for answer in json.loads(made.evaluation(when).read_text())["answers"]
        )
        for when in ("before", "after")
    }
    drawn_by_step: dict[int, list[float]] = defaultdict(list)
    for row in read_rows(made.samples):
        drawn_by_step[row["step"]].append(quality(row["response"]))
    curve = [statistics.fmean(drawn_by_step[step]) for step in sorted(drawn_by_step)]
    explained = [row["explained_variance"] for row in read_rows(made.metrics)]
    return {
        **found,
        "drawn": statistics.fmean(curve),
        "curve": curve,
        "explained_variance": explained,
        "train_s": report["run"]["train_s"],
    }


# All runs.


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("pairwise", steps=40)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--offsets", default="0,4", help="deviations of the offsets")
    parser.add_argument("--offset-of", choices=("prompt", "sign"), default="prompt")
    parser.add_argument("--pretrain", type=int, default=5, help="steps of the critic's alone")
    chosen = parser.parse_args(words)
    environment.calm()
    found: dict[str, Any] = {}
    panels: dict[str, dict[str, list[Points]]] = {}
    task(chosen.out / "models")
    for deviation in (float(word) for word in chosen.offsets.split(",")):
        jobs = {
            (arm, seed): _job(arm, deviation, seed, chosen)
            for seed in plan.read_seeds(chosen.seeds)
            for arm in chosen.arms.split(",")
        }
        said = f"offsets of each {chosen.offset_of} with a deviation of {deviation:g}"
        print(f"\n{said}, {chosen.steps} steps, seeds {chosen.seeds}")
        runs = finished(jobs, chosen.jobs, main)
        found[f"{deviation:g}"] = _table(runs)
        panels[said] = {
            arm: [list(enumerate(one["curve"], start=1)) for one in by_seed.values()]
            for arm, by_seed in runs.items()
        }
    keep(chosen.out / f"pairwise-{chosen.offset_of}.json", found)
    draw(chosen.out / f"pairwise-{chosen.offset_of}.png", panels, y="quality of samples")


def _table(runs: Runs) -> dict[str, Any]:
    """Quality of samples: means over seeds, and differences paired by seed."""
    found = compare(runs, FIGURES, next(iter(runs)), ())
    run = [pair for pair in PAIRS if set(pair) <= set(runs)]
    return found | leads(runs, run, ("after", "drawn"))


def _job(arm: str, deviation: float, seed: int, chosen: argparse.Namespace) -> Job:
    kind = f"{chosen.offset_of}-{deviation:g}-steps{chosen.steps}-pretrain{chosen.pretrain}"
    return job_of(
        "pairwise", f"{arm}, offsets {deviation:g}, seed {seed}",
        chosen.out / kind / f"{arm}-{seed}",
        arm=arm, deviation=deviation, offset_of=chosen.offset_of, seed=seed, steps=chosen.steps,
        pretrain=chosen.pretrain, models=str(chosen.out / "models"),
    )  # fmt: skip


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """One run."""
    config = config_of(
        wanted["arm"],
        models=Path(wanted["models"]),
        steps=wanted["steps"],
        seed=wanted["seed"],
        pretrain=wanted["pretrain"],
    )
    judge = Preferences(wanted["deviation"], whole=wanted["offset_of"] == "prompt")
    return one_run(config, judge, Path(wanted["folder"]))


if __name__ == "__main__":
    begin(main)
