"""A verifier with 30 % false negatives and 5 % false positives, and what corrects it (2510.00915).

    python -m experiments noise --out DIR --seeds 0,1,2,3,4 --jobs 0

A response is a digit, the sum of those that the problem shows, and may end in "?", which hedges; a
hedged response is wrong. Pretrained, a policy of 57,000 weights is right in 20 of 100 and hedges in
5. The judge refuses 30 % of what is right. Of what is wrong it accepts 5 % at the pretrained one,
and where these lie is the part's:

    hedges   the judge takes `FALLS` of the hedged responses for right, and no other wrong one. It
             says of each that it is hedged (a suspicion). Plain GRPO.
    even     it accepts 5 % of all that is wrong. Dr. GRPO with a KL to the pretrained policy.

Arms of `hedges`:

    clean     a judge without errors
    noisy     no correction
    pair      noise-backward with one pair of rates, 0.05 and 0.3
    classes   noise-backward with the rates of hedged responses, and of others
    forward   noise-forward with the same: no baseline, no deviation
    appeal    half of the refused and a fifth of the accepted are asked about anew, of a judge
              without errors; they weigh as method.noise.appeals has it, and no rate is known

Why: one pair of rates is an affine map of a group's rewards, which GRPO's mean and deviation take
out, so that `pair` is `noisy` (tests/property/test_noise_laws.py). Uniform noise slows learning
and does not turn it ("rate, not fate", arXiv 2601.04411). What turns it is a class of wrong
responses that the judge accepts more often, 0.8, than it accepts right ones, 0.7: the noisy
optimum is to hedge. Rates by class make hedging earn 0 in the mean, and so do appeals. For forward
nothing is expected: with rates by class its mean is not along the true gradient.

Arms of `even`: clean, noisy, backward with 0.05 and 0.3, `weaker`: noisy with 0.65 times the KL.
The noise makes rewards 0.65 times as large, and nothing divides them by a deviation; the KL stays.
The optimum has odds of p / (1 - p) e^(reward / KL): with p = 0.206 and `KL` 0.4 the clean one is
right in 0.76, the noisy one in 0.57. Backward must be clean, and `weaker` must be too: the
correction is worth as much as another coefficient of the KL.

The bar, over five seeds, by ratios to `clean` of the same seed, of held-out samples that are right
after 60 steps: noisy at most 0.80, classes, appeal and backward at least 0.95, in the mean; and
`pair` within 0.05 of noisy.

Pilots with seed 100, 60 steps: right in 0.90 clean, 0.01 noisy, 0.00 pair, 0.88 classes, 0.79
forward; even, with a KL of 0.33, 0.75 clean and 0.57 noisy. Before, on counting in ten tokens
(tasks) with 128 samples a step, `classes` under GRPO's deviation learned to hedge (62 of
100), as it shrinks the rare large losses of hedges most; without the deviation it did not, and
needed more samples a step than a clean judge to learn at all.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.records.folder import RunFolder
from experiments.claim import Runs
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
    over_seeds,
    pretrained,
    told,
    train,
    write_problems,
)
from experiments.report import compare
from experiments.tasks import coin

HEDGE, HEDGES, FALLS = "?", 0.05, 0.8
REFUSES, ACCEPTS = 0.3, 0.05
ASKED = {False: 0.5, True: 0.2}
"""The chance of an appeal, by the first verdict."""
KL = 0.4
LETTERS, DIGITS = "ABCDEFGH", "0123456789"
SUMS = [(f"{letter}n{n:02d}=", str((n // 10 + n) % 10)) for letter in LETTERS for n in range(100)]
WORDS = (*LETTERS, *(f"n{n:02d}" for n in range(100)), *DIGITS, "=", HEDGE)
KNOWS = 0.15
SHAPE = Shape(width=64, layers=1, context=16, steps=400, batch=256, learning_rate=5e-3)
HELD_OUT = 80
SMALL = (
    "data.source=jsonl",
    "data.template={question}",
    "model.precision=float32",
    "reward.verifier=miniature",
    "method.loss.aggregation=token-mean",
    "optim.learning_rate=1e-3",
    "rollout.max_new_tokens=3",
    "rollout.prompts_per_step=32",
    "rollout.group_size=8",
    f"eval.prompts={HELD_OUT}",
    "eval.samples=4",
    "eval.batch_size=1000",
    "eval.show=0",
    "run.checkpoint_every=0",
    "run.samples_every=0",
    "run.report_to=[]",
)
BACKWARD = (
    "method.noise.correction=backward",
    f"method.noise.false_positive={ACCEPTS}",
    f"method.noise.false_negative={REFUSES}",
)
CLASSES = (
    f"method.noise.false_negative={REFUSES}",
    f"method.noise.by_suspicion={{hedged=[{FALLS}, 0.0]}}",
)
UNSCALED = ("method.advantage.scale=none",)
TOWARDS = (*UNSCALED, "method.loss.aggregation=constant")
ARMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "hedges": {
        "clean": (),
        "noisy": (),
        "pair": BACKWARD,
        "classes": ("method.noise.correction=backward", *CLASSES),
        "forward": (
            "method.noise.correction=forward", *CLASSES, *UNSCALED,
            "method.advantage.estimator=plain",
        ),
        "appeal": ("method.noise.appeals=true",),
    },
    "even": {
        "clean": (*TOWARDS, f"method.loss.kl_coef={KL}"),
        "noisy": (*TOWARDS, f"method.loss.kl_coef={KL}"),
        "backward": (*TOWARDS, *BACKWARD, f"method.loss.kl_coef={KL}"),
        "weaker": (*TOWARDS, f"method.loss.kl_coef={KL * (1 - REFUSES - ACCEPTS):g}"),
    },
}  # fmt: skip
CORRECTED = {"hedges": ("classes", "appeal"), "even": ("backward",)}
FIGURES = ("before", "true", "hedged", "false_negatives", "false_positives")


def drawn(dice: random.Random) -> tuple[str, str]:
    """A prompt, and a response with the mistakes and the hedges of the pretrained model."""
    prompt, answer = dice.choice(SUMS)
    said = answer if dice.random() < KNOWS else dice.choice(DIGITS)
    return prompt, said + HEDGE * (dice.random() < HEDGES)


def problems(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones."""
    model = pretrained(folder / "sums", WORDS, drawn, SHAPE)
    rows = random.Random(0).sample(SUMS, len(SUMS))
    train_path = write_problems(folder / "train.jsonl", rows[HELD_OUT:])
    return model, train_path, write_problems(folder / "test.jsonl", rows[:HELD_OUT])


def is_right(response: str, reference: str, *, truncated: bool) -> bool:
    """The truth: the digit, not hedged."""
    return not truncated and response.strip() == reference


class Judge(Service):
    """A verifier with errors of the part, a coin for each response, and appeals of the arm."""

    def __init__(self, part: str, arm: str, seed: int) -> None:
        super().__init__(lambda _item: False, rewards=(0.0, 1.0))
        self._part, self._arm, self._seed = part, arm, seed
        self._asked = random.Random(seed)

    def _judged(self, item: Item) -> reward_pb2.Result:
        truth = is_right(item.response, item.reference.text, truncated=item.truncated)
        hedged = item.response.endswith(HEDGE)
        said = truth if self._arm == "clean" else self._says(item, truth, hedged)
        self._is_right = lambda _item: said
        result = super()._judged(item)
        if hedged:
            result.judgement.suspicions.append("hedged")
        if self._arm == "appeal" and self._asked.random() < ASKED[said]:
            appeal = result.judgement.appeal
            for opinion, verdict in ((appeal.first, said), (appeal.second, truth)):
                opinion.verdict = "correct" if verdict else "incorrect"
                opinion.reward = float(verdict)
            appeal.drawn, appeal.probability = said, ASKED[said]
            result.judgement.reward = appeal.second.reward
            result.judgement.verdict = appeal.second.verdict
        return result

    def _says(self, item: Item, truth: bool, hedged: bool) -> bool:
        if item.truncated:
            return False
        if truth:
            return coin(self._seed, item) >= REFUSES
        falls = ACCEPTS if self._part == "even" else FALLS if hedged else 0
        return coin(self._seed, item) < falls


def config_of(wanted: Mapping[str, Any], made: tuple[Path, Path, Path]) -> Any:
    """The settings of a run."""
    from assay.trainer.settings import config as configs  # noqa: PLC0415

    model, rows, held_out = made
    own = (
        f"model.name={model}",
        f"data.path={rows}",
        f"data.eval_path={held_out}",
        f"data.seed={wanted['seed']}",
        f"run.steps={wanted['steps']}",
        f"run.seed={wanted['seed']}",
    )
    arm = ARMS[wanted["part"]][wanted["arm"]]
    return configs.build({}, (*SMALL, *own, *arm), origin="bench")


def one_run(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Trains, and says how much is right before and after, and how the judge erred at first."""
    folder, made = Path(wanted["folder"]), problems(Path(wanted["models"]))
    judge = Judge(wanted["part"], wanted["arm"], wanted["seed"])
    train(config_of(wanted, made), folder, lambda: judge)
    run = RunFolder(folder)
    before, after = (
        json.loads(run.evaluation(when).read_text())["answers"] for when in ("before", "after")
    )
    rows = list(read_rows(run.metrics))
    return {
        "before": _share(map(_true, before)),
        "true": _share(map(_true, after)),
        "hedged": _share(HEDGE in one["response"] for one in after),
        "false_negatives": _share(one["verdict"] != "correct" for one in before if _true(one)),
        "false_positives": _share(one["verdict"] == "correct" for one in before if not _true(one)),
        "reward": [row.get("reward") for row in rows],
        "appealed_fn": [row.get("noise_appealed_fn") for row in rows][-1],
    }


def _true(one: Mapping[str, Any]) -> bool:
    return is_right(one["response"], one["reference"], truncated=one["truncated"])


def _share(values: Iterable[bool]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("noise", steps=60, seeds="0,1,2,3,4")
    parser.add_argument("--parts", default="hedges,even")
    chosen = parser.parse_args(words)
    environment.calm()
    problems(chosen.out / "models")
    for part in chosen.parts.split(","):
        print(f"\n{part}")
        runs = _finished(chosen, part)
        found = compare(runs, FIGURES, "clean")
        keep(chosen.out / f"{part}-{chosen.steps}.json", found | {"ratios": _ratios(part, runs)})


def _finished(chosen: argparse.Namespace, part: str) -> dict[str, dict[int, dict[str, Any]]]:
    folder = chosen.out / f"{chosen.steps}-steps"
    jobs = {
        (arm, seed): job_of(
            "noise", f"{part}, {arm}, seed {seed}", folder / f"{part}-{arm}-{seed}",
            part=part, arm=arm, seed=seed, steps=chosen.steps, models=str(chosen.out / "models"),
        )
        for seed in plan.read_seeds(chosen.seeds)
        for arm in ARMS[part]
    }  # fmt: skip
    return finished(jobs, chosen.jobs, one_run, together=True)


def _ratios(part: str, runs: Runs) -> dict[str, Any]:
    """What is right by what is right with a judge without errors; printed with the bar."""
    found = {}
    for arm in ARMS[part]:
        ratio = over_seeds(
            {
                seed: one["true"] / runs["clean"][seed]["true"]
                for seed, one in runs[arm].items()
                if seed in runs["clean"]
            }
        )
        met = ""
        if ratio is not None and arm == "noisy":
            met = f"   at most 0.80: {'yes' if ratio.mean <= 0.8 else 'no'}"
        elif ratio is not None and arm in CORRECTED[part]:
            met = f"   at least 0.95: {'yes' if ratio.mean >= 0.95 else 'no'}"
        print(f"{arm} by clean: {told(ratio)}{met}")
        found[arm] = as_data(ratio)
    return found


if __name__ == "__main__":
    begin(one_run)
