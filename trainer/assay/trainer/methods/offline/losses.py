"""Declarations: losses over stored responses, and the baseline of their prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.settings.kinds import PositiveFloat, Strict
from assay.trainer.settings.method import Estimator, Loss
from assay.trainer.settings.part import Part, Switches, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_OBJECTIVE = "method.loss.objective"
_ROOM = "assay.trainer.methods.offline"
_ONE_RATIO = {"token-ratio": "it sums the log-ratios of tokens"}


@dataclass(frozen=True, slots=True)
class DpoConfig(Strict):
    """Direct preference optimisation."""

    beta: PositiveFloat = 0.1
    """Weight of the divergence from the reference; 0.1 is TRL's default."""


@dataclass(frozen=True, slots=True)
class PrdpConfig(Strict):
    """Reward difference prediction."""

    beta: PositiveFloat = 0.1
    """Weight of the divergence from the reference, in units of reward. Ours."""


@dataclass(frozen=True, slots=True)
class ALolConfig(Strict):
    """Advantage-leftover-lunch."""

    clip: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The ratio lies within 1 - clip and 1 + clip; 0.9 in the authors' code."""
    ratio: Literal["response", "token"] = "response"
    """token: each token has its own (A-LoL seq.)."""


@dataclass(frozen=True, slots=True)
class DirectAdvantageConfig(Strict):
    """Direct Advantage Policy Optimization."""

    beta: PositiveFloat = 0.1
    """Weight of the divergence from the reference, in units of reward. Ours."""


def _stored(config: Config, name: str, *, ratio: bool = True) -> str:
    if config.method.loss.objective != name:
        return ""
    offline = config.method.offline
    if not offline.rows:
        return f'{_OBJECTIVE} = "{name}" is for stored responses: set method.offline.rows'
    if ratio and offline.reference == "none":
        return (
            f'{_OBJECTIVE} = "{name}" goes by ratios to a reference: set method.offline.reference '
            'to "start" or "recorded"'
        )
    return ""


def _paired(config: Config, name: str) -> str:
    found = _stored(config, name)
    if found or config.method.loss.objective != name:
        return found
    if not config.method.offline.pairs:
        return f'{_OBJECTIVE} = "{name}" compares two responses: set method.offline.pairs'
    if config.method.loss.aggregation != "seq-mean-token-mean":
        return (
            f'{_OBJECTIVE} = "{name}" needs method.loss.aggregation = "seq-mean-token-mean": its '
            "loss is one number for a pair, whatever the lengths"
        )
    return ""


def _check_dpo(config: Config) -> str:
    found = _paired(config, "dpo")
    if not found and config.method.loss.objective == "dpo" and config.method.offline.ties:
        return (
            f'{_OBJECTIVE} = "dpo" needs a better response: set method.offline.ties = false, or '
            'use "prdp"'
        )
    return found


def _check_prdp(config: Config) -> str:
    found = _paired(config, "prdp")
    pairs = config.method.offline.pairs
    if not found and config.method.loss.objective == "prdp" and pairs != "reward":
        return f'{_OBJECTIVE} = "prdp" needs method.offline.pairs = "reward": it predicts rewards'
    return found


def _check_direct_advantage(config: Config) -> str:
    name, critic = "direct-advantage", config.method.critic
    found = _stored(config, name)
    if found or config.method.loss.objective != name or not config.method.has_critic:
        return found
    if not critic.pretrain_steps and critic.init == "policy":
        return (
            f'{_OBJECTIVE} = "{name}" learns from a critic that stands still: set '
            "method.critic.pretrain_steps, or a saved critic in method.critic.init"
        )
    return ""


def _without_dpo(config: Config) -> Switches:
    """As many responses, each by itself and right."""
    return {
        _OBJECTIVE: "sft",
        "method.loss.aggregation": "token-mean",
        "method.offline.pairs": "",
        "method.offline.margin": 0.0,
        "method.offline.keep": "correct",
        "rollout.group_size": 1,
        "rollout.prompts_per_step": config.samples_per_step,
    }


def _without_prdp(_config: Config) -> Switches:
    """The order of the rewards alone."""
    return {_OBJECTIVE: "dpo", "method.offline.ties": False}


SFT = Loss(
    name="sft",
    formula=lambda _config: "log pi",
    function=f"{_ROOM}.surrogates:sft",
    part=Part(
        "sft",
        "loss",
        "The likelihood of stored responses is maximised.",
        "ours; TRL's SFTTrainer minimises the same",
        lambda c: c.method.loss.objective == "sft",
        None,
        code=(f"{_ROOM}.surrogates.sft",),
    ),
    check=lambda config: _stored(config, "sft", ratio=False),
)
DPO = Loss(
    name="dpo",
    settings=DpoConfig,
    formula=lambda c: (
        f"log sigmoid({c.method.dpo.beta:g} * (log r of the better response - that of the worse))"
    ),
    function=f"{_ROOM}.surrogates:dpo",
    part=Part(
        "dpo",
        "loss",
        "Of a pair the better response gains on the worse one, by a classifier's loss.",
        "DPO, arXiv 2305.18290, equation 7",
        lambda c: c.method.loss.objective == "dpo",
        _without_dpo,
        code=("algos.offline.dpo_losses",),
        needs=_ONE_RATIO,
    ),
    check=_check_dpo,
)
PRDP = Loss(
    name="prdp",
    settings=PrdpConfig,
    formula=lambda c: (
        f"-(difference of a pair's log r - difference of its rewards / {c.method.prdp.beta:g})^2"
    ),
    function=f"{_ROOM}.surrogates:prdp",
    part=Part(
        "prdp",
        "loss",
        "The log-ratios of a pair differ as their rewards do, by regression.",
        "PRDP, arXiv 2402.08714; the form is a derivation",
        lambda c: c.method.loss.objective == "prdp",
        _without_prdp,
        code=("algos.offline.prdp_losses",),
        needs={**_ONE_RATIO, "judged-rewards": "a pair's rewards are compared"},
    ),
    check=_check_prdp,
)
A_LOL = Loss(
    name="a-lol",
    settings=ALolConfig,
    formula=lambda c: (
        f"A * stop-gradient(clip(r of the {c.method.a_lol.ratio}, {1 - c.method.a_lol.clip:g}, "
        f"{1 + c.method.a_lol.clip:g})) * log pi, where A > 0"
    ),
    function=f"{_ROOM}.surrogates:a_lol",
    part=Part(
        "a-lol",
        "loss",
        "Advantage and clipped ratio to the reference weigh the likelihood of what was better than "
        "expected.",
        "A-LoL, arXiv 2305.14718, and the authors' code",
        lambda c: c.method.loss.objective == "a-lol",
        to(_OBJECTIVE, "sft"),
        code=("algos.offline.a_lol_token_losses",),
        needs=_ONE_RATIO,
    ),
    check=lambda config: _stored(config, "a-lol"),
)
DIRECT_ADVANTAGE = Loss(
    name="direct-advantage",
    settings=DirectAdvantageConfig,
    formula=lambda c: (
        f"-({c.method.direct_advantage.beta:g} * log r of a step - A of the step)^2 / 2, divided "
        "among its tokens"
    ),
    function=f"{_ROOM}.surrogates:direct_advantage",
    part=Part(
        "direct-advantage",
        "loss",
        "The log-ratio of each step is brought to its advantage, by regression; the critic stands "
        "still meanwhile.",
        "Direct Advantage Policy Optimization, arXiv 2412.18279; the form is a derivation",
        lambda c: c.method.loss.objective == "direct-advantage",
        to(_OBJECTIVE, "ppo"),
        code=("algos.offline.direct_advantage_losses",),
        needs={**_ONE_RATIO, "critic": "a step's advantage is a difference of values"},
    ),
    check=_check_direct_advantage,
)
STORED = Estimator(
    name="stored",
    credit="tokens",
    function=f"{_ROOM}.surrogates:stored_advantages",
    lines=lambda _config: ["A = R - mean reward of the stored responses to its prompt"],
    part=Part(
        "stored-baseline",
        "advantage",
        "The mean reward of all stored responses to a prompt is the baseline of each of them.",
        "ours, for the value head of A-LoL, arXiv 2305.14718",
        lambda c: c.method.advantage.estimator == "stored",
        None,
        code=(f"{_ROOM}.surrogates.stored_advantages",),
        needs={"judged-rewards": "its mean is of rewards as they were judged"},
        takes={
            "critic": "the prompt's mean is the baseline",
            "group-baseline": "the baseline is of all stored responses",
        },
    ),
)
