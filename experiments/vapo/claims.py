"""What VC-PPO (arXiv 2503.01491) and VAPO (arXiv 2504.05118) say of the critic and of lambda."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.claim import Claim
from experiments.miniature import TINY
from experiments.tasks import stops
from experiments.vapo.contest import CONFIGS, GROUPS, OWN, PRETRAIN, SINGLE, one_run, with_critic

STEPS = {"lambda": 25, "critic": 40}
"""Of a run about the policy's lambda, and of one about the critic."""
LAMBDAS = {
    "lambda adaptive": (
        "method.advantage.length_adaptive_alpha=1.0",
        "method.advantage.min_lam=0.0",
    ),
    "lambda 0.95": ("method.advantage.length_adaptive_alpha=0.0",),
}
COLD, COUPLED = "method.critic.pretrain_steps=0", "method.critic.lam=0.95"
CRITICS = {
    "critic pretrained, lambda 1": (PRETRAIN,),
    "critic pretrained, lambda 0.95": (PRETRAIN, COUPLED),
    "critic cold, lambda 1": (COLD,),
    "critic cold, lambda 0.95": (COLD, COUPLED),
}
STOPS = (
    "nine stops, 32 tokens apart, at each of which a response of up to 288 tokens may end; it is"
    " right the more often the later it does; the critic starts as a reward model that takes what"
    " does not end for bad"
)
CROSSED = (
    STOPS + "; `vc_ppo`, 40 steps of 64 responses, critic's rate twice the policy's; value"
    " pre-training of 50 steps on or off, crossed with lambda 1 or 0.95 for the critic"
)
CLAIMS = (
    Claim(
        "vapo-length-adaptive",
        "A lambda that grows with the length is better than 0.95 (60 against 45).",
        "VAPO, arXiv 2504.05118, table 1",
        STOPS + "; `vapo`, 25 steps of 8 x 8 responses, both arms with the same pre-trained critic;"
        " alpha 1 and no floor",
        "With alpha 1 lambda is 0.97 to 0.997 at 32 to 288 tokens, as with the paper's 0.05 at 640"
        " to 5,760. With alpha 0.05 it would be below 0.95 here, and the comparison turned round.",
        "accuracy",
        "lambda adaptive",
        "lambda 0.95",
        0.06,
        0.06,
    ),
    Claim(
        "vc-ppo-pretraining",
        "Value pre-training is what PPO on long responses lacks most (60 against 11).",
        "VC-PPO, arXiv 2503.01491; VAPO, arXiv 2504.05118, table 1",
        CROSSED + ".",
        "The critic begins wrong by construction, and must be put right before the policy follows"
        " it: nine decisions of which each is made again and again.",
        "accuracy",
        "critic pretrained, lambda 1",
        "critic cold, lambda 1",
        0.1,
        0.06,
    ),
    Claim(
        "vc-ppo-decoupled-cold",
        "A lambda of 1 for the critic's targets keeps it right, where nothing else does.",
        "VC-PPO, arXiv 2503.01491, reward-signal decay",
        CROSSED + ".",
        "With 0.95 the reward of the end weighs 0.95^200 at the first stop, so that a critic that"
        " begins wrong stays so, by its own targets.",
        "accuracy",
        "critic cold, lambda 1",
        "critic cold, lambda 0.95",
        0.1,
        0.06,
    ),
    Claim(
        "vapo-decoupled",
        "Decoupled GAE is worth 27 points to a critic that is pre-trained (60 against 33).",
        "VAPO, arXiv 2504.05118, table 1",
        CROSSED + ".",
        "Each arm pre-trains its critic by its own lambda, as a run without the part would: with"
        " 0.95 the reward model's fault is in the targets of both phases.",
        "accuracy",
        "critic pretrained, lambda 1",
        "critic pretrained, lambda 0.95",
        0.1,
        0.06,
    ),
)


def prepare(models: Path) -> None:
    """The policy, its reward model, and the problems."""
    stops(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """A run of either kind."""
    kind = arm.partition(" ")[0]
    if kind == "critic":
        made = _config("vc_ppo", models, (*SINGLE, *CRITICS[arm]), seed, STEPS[kind])
        return _figures(one_run("stops", made, folder))
    made = _config("vapo", models, (*GROUPS, PRETRAIN, *LAMBDAS[arm]), seed, STEPS[kind])
    return _figures(one_run("stops", with_critic(made, str(_critic(made, models))), folder))


def _figures(found: Mapping[str, Any]) -> dict[str, float | None]:
    return {key: found[key] for key in ("before", "accuracy", "goes_long", "response_length")}


def _config(preset: str, models: Path, own: tuple[str, ...], seed: int, steps: int) -> Config:
    model, reward_model, problems, held_out = stops(models)
    given = (
        *TINY,
        *OWN,
        f"model.name={model}",
        f"method.critic.init={reward_model}",
        "method.critic.learning_rate=4e-4",
        f"data.path={problems}",
        f"data.eval_path={held_out}",
        *own,
        f"run.steps={steps}",
        f"run.seed={seed}",
    )
    return configs.load(CONFIGS / f"{preset}.toml", given, saved=True)


def _critic(config: Config, models: Path) -> Path:
    """The critic of a seed, pre-trained once; both arms of the seed start with it."""
    kept = models / f"critic-{config.run.seed}"
    if not kept.is_dir():
        folder = models / f".pretraining-{config.run.seed}-{os.getpid()}"
        one_run("stops", replace(config, run=replace(config.run, steps=1)), folder)
        RunFolder(folder).pretrained_critic.rename(kept)
        shutil.rmtree(folder)
    return kept
