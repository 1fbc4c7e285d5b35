"""What DAPO (arXiv 2503.14476) says of its techniques, together and by themselves."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from experiments.claim import Claim
from experiments.dapo.contest import ladder, one_run
from experiments.miniature import CONFIGS
from experiments.tasks import FAR, counting

STEPS, EVERY = 28, 4
OWN = (
    f"rollout.max_new_tokens={FAR.limit}",
    "method.shaping.overlong_cache=12",
    f"eval.every={EVERY}",
    "eval.samples=16",
)
REAL_STEPS = 10
CLIPS = {"smollm2 clip 0.28": 0.28, "smollm2 clip 0.2": 0.2}
REAL = (
    "optim.epochs=2",
    "optim.mini_batches=4",
    "optim.learning_rate=4e-4",
    "optim.schedule=constant",
    "rollout.temperature=1.0",
    "eval.prompts=0",
    f"run.steps={REAL_STEPS}",
    "run.checkpoint_every=0",
    "run.samples_every=0",
)
COUNTED = (
    f"Counting far: {FAR.steps[0]} to {FAR.steps[1]} steps in up to {FAR.limit} tokens, right one"
    f" time in five before training, a sixth of the responses cut; configs/ladders/dapo.toml,"
    f" {STEPS} steps of 32 x 8 responses, 16 updates each; held-out accuracy every {EVERY} steps"
)
WHY = (
    "The base is right one time in five, the first rung is far from its ceiling at the end, and"
    " prompts are as unlike as 2 steps and 24: some groups are all right, some all wrong. Held-out"
    " accuracy is averaged over the run, as single points of so short a curve vary by its seed."
)
SMOLLM2 = (
    "SmolLM2-135M-Instruct with its tokenizer of 49,152 tokens and low-rank adapters, the"
    f" quickstart's sums, {REAL_STEPS} steps of 8 x 6 responses, 8 updates each, temperature 1"
)
CLAIMS = (
    Claim(
        "dapo-ladder",
        "All techniques together are better than GRPO (50 against 30).",
        "DAPO, arXiv 2503.14476, table 1",
        COUNTED + ".",
        WHY,
        "over the run",
        "dynamic-sampling",
        "naive-grpo",
        0.06,
        0.06,
    ),
    Claim(
        "dapo-dynamic-sampling",
        "Dynamic sampling is worth 8 points to what has all else (50 against 42).",
        "DAPO, arXiv 2503.14476, table 1",
        COUNTED + ".",
        WHY,
        "over the run",
        "dynamic-sampling",
        "token-level-loss",
        0.06,
        0.06,
    ),
    Claim(
        "dapo-clip-higher-entropy",
        "Clip-higher keeps the entropy up.",
        "DAPO, arXiv 2503.14476, figure 2",
        SMOLLM2 + "; a bound of 0.28 or of 0.2 from above.",
        "Sums of one number may be written in many ways, and a real vocabulary has improbable"
        " tokens; entropy is the mean of the later half of the steps.",
        "entropy",
        "smollm2 clip 0.28",
        "smollm2 clip 0.2",
        0.05,
        0.03,
        guessed=True,
    ),
    Claim(
        "dapo-clipped-are-improbable",
        "Tokens that are clipped from above have probabilities below 0.2.",
        "DAPO, arXiv 2503.14476, section 3.1 and figure 3",
        SMOLLM2 + "; a bound of 0.2 from above.",
        "The claim is about improbable tokens, which a vocabulary of 16 words hardly has; the"
        " figure is 0.2 less the mean probability before the update.",
        "below",
        "smollm2 clip 0.2",
        "",
        0.05,
        0.03,
        guessed=True,
    ),
)


def prepare(models: Path) -> None:
    """The model that counts, and its problems."""
    counting(models, FAR)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """A rung on the counting task, or SmolLM2 with one of two bounds."""
    if arm in CLIPS:
        return _real(CLIPS[arm], seed, folder)
    rungs = ladder(models, (seed,), STEPS, FAR, *OWN).rungs
    config = next(rung for rung in rungs if rung.name == arm).configs[seed]
    found = one_run(config, folder)
    evals = [row["accuracy"] for row in read_rows(RunFolder(folder).evals)]
    kept = ("before", "after", "clipped_up", "clipped_probability")
    return {
        **{key: found[key] for key in kept},
        "over the run": statistics.fmean([*evals, found["after"]]),
    }


def _real(clip_high: float, seed: int, folder: Path) -> dict[str, float | None]:
    own = (f"method.loss.clip_high={clip_high}", f"run.seed={seed}", f"data.seed={seed}")
    config = configs.load(CONFIGS / "quickstart.toml", (*REAL, *own), saved=True)
    found = one_run(config, folder, judge=None)
    late = read_rows(RunFolder(folder).metrics)[REAL_STEPS // 2 :]
    probability = found["clipped_probability"]
    return {
        "entropy": statistics.fmean(row["entropy"] for row in late),
        "correct": statistics.fmean(row["correct"] for row in late),
        "clipped_up": found["clipped_up"],
        "clipped_probability": probability,
        "below": None if probability is None else 0.2 - probability,
    }
