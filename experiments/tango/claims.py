"""What RL Tango (arXiv 2505.15034) says of class weights, in three places."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from experiments.claim import Claim
from experiments.miniature import Service, Shape, likely, pretrained, train, write_problems
from experiments.tango.contest import (
    COMPARE,
    STEP_SAYS,
    WORDS,
    asked,
    configured,
    drawn_problem,
    drawn_solution,
    is_right,
    probed,
    probes,
    problems,
)

STEPS = 60
"""Of the verifier."""
RIGHT = Shape(width=64, layers=2, context=32, steps=400, batch=128, learning_rate=3e-3)
SLIPS = 0.02
"""How often the generator goes wrong, after any digit."""
CAN_TELL, SOLVES = 0.9, 0.9
"""Chances that the pretrained models give, at least: the verifier, where it compares, of the truth
about a first step; the generator, after three right steps, of a right fourth."""
UNWEIGHTED = "method.cotraining.class_weights=false"
UNDIVIDED = "method.advantage.scale=none"
ARMS = {
    "unweighted": (UNWEIGHTED,),
    "on the advantage": (),
    "unweighted, undivided": (UNWEIGHTED, UNDIVIDED),
    "on the reward": (UNDIVIDED,),
    "on the sample": (UNWEIGHTED, "method.cotraining.draws_per_solution=8"),
}

SETUP = (
    "a verifier of 0.1 M weights, 60 steps of 32 solutions with five verifications each, learning"
    " alone on solutions of a generator that is right in 0.92 of cases"
)
POWER = (
    " F1, the harmonic mean of the recalls of right and of wrong solutions, on 400 probes is 0.49"
    " before training and 0 for a constant verdict, to which the pilots without weights come in ten"
    " steps. The pretrained verifier can tell: where it is asked to compare, its F1 is 0.85."
)
CLAIMS = (
    Claim(
        "tango-weights-on-the-advantage",
        "Class weights on the advantage keep the verifier from one verdict for everything.",
        "RL Tango, arXiv 2505.15034, and the authors' code, which weighs the policy loss",
        SETUP + "; 1 / sqrt(n) on the advantage, which is on the loss, or no weight.",
        "The published place." + POWER,
        "verifier_f1",
        "on the advantage",
        "unweighted",
        0.4,
        0.1,
    ),
    Claim(
        "tango-weights-on-the-reward",
        "Class weights on the reward keep the verifier from one verdict for everything.",
        "RL Tango, arXiv 2505.15034 (class-aware reweighting of the reward)",
        SETUP + "; 1 / sqrt(n) on the reward, or no weight, both without GRPO's division.",
        "Divided by the group's deviation, a weight on the reward is none: a group verifies one"
        " solution, so is of one class. Undivided it is a factor of the advantage, and is run as"
        " that." + POWER,
        "verifier_f1",
        "on the reward",
        "unweighted, undivided",
        0.4,
        0.1,
    ),
    Claim(
        "tango-classes-in-balance",
        "A batch with as many right as wrong solutions keeps the verifier from one verdict for"
        " everything.",
        "ours, for RL Tango's (arXiv 2505.15034) class weights",
        SETUP + "; of 256 solutions drawn 32 are verified, as many right as wrong ones, or of 32"
        " all, both without weights.",
        "The third place for a weight, how often a class is seen." + POWER,
        "verifier_f1",
        "on the sample",
        "unweighted",
        0.4,
        0.1,
    ),
)


def prepare(models: Path) -> None:
    """The verifier, a generator nine in ten of whose solutions are right, and their problems."""
    verifier, *_ = problems(models)
    told = [(text, STEP_SAYS[1, right[0]]) for text, right in probes(COMPARE)]
    starts = [(start, stride) for start in range(10) for stride in (1, 2, 3)]
    ends = [(_begun(start, stride), asked(start, stride)[1]) for start, stride in starts]
    for model, rows, least in (
        (verifier, write_problems(models / "tango-compare.jsonl", told), CAN_TELL),
        (generator(models), write_problems(models / "tango-ends.jsonl", ends), SOLVES),
    ):
        found = likely(model, rows)
        if found < least:
            raise RuntimeError(
                f"{model}: the right token has a chance of {found:.2f}, which is not the set-up of "
                f"the claims ({least}): remove it, and look at its Shape"
            )


def _begun(start: int, stride: int) -> str:
    """A solution without its last digit."""
    solution, _ = drawn_solution(start, stride, random.Random(0), slips_at={True: 0, False: 0})
    return f"{asked(start, stride)[0]}{solution[:-1]}"


def generator(models: Path) -> Path:
    """The model that is mostly right."""
    return pretrained(models / "tango-right", WORDS, drawn_right, RIGHT)


def drawn_right(dice: random.Random) -> tuple[str, str]:
    """A prompt and a solution of that model."""
    start, stride = drawn_problem(dice)
    chances = {True: SLIPS, False: SLIPS}
    return asked(start, stride)[0], drawn_solution(start, stride, dice, slips_at=chances)[0]


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """What the verifier says of the probes in the end. It learns alone: the generator's only step
    is the run's last."""
    own = (
        f"model.name={generator(models)}",
        f"method.cotraining.model={problems(models)[0]}",
        f"method.cotraining.warmup_steps={STEPS}",
        "eval.prompts=0",
    )
    config = configured(models, *own, *ARMS[arm], steps=1, seed=seed)
    train(config, folder, lambda: Service(is_right, rewards=(0.0, 1.0)))
    return probed(folder / "verifier" / "model")
