"""What values tokens: `method.critic`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.objective import CriticConfig
from assay.trainer.settings.part import Part, Switches, to
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_VAPO = "VAPO, arXiv 2504.05118"

_VC_PPO = "VC-PPO, arXiv 2503.01491"


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    critic = config.method.critic
    if critic.value_min >= critic.value_max:
        return (
            f"method.critic.value_min = {critic.value_min:g} is not below value_max = "
            f"{critic.value_max:g}"
        )
    if critic.conservative and config.optim.learning_rate:
        return (
            f"method.critic.conservative = {critic.conservative:g} needs optim.learning_rate = 0: "
            "its values are of a policy that stands still; method.critic.init takes the critic of "
            "such a run into another"
        )
    if critic.sharing == "trunk" and critic.pretrain_steps:
        return (
            'method.critic.pretrain_steps needs method.critic.sharing = "separate": a trunk that '
            "is shared cannot learn while the policy is frozen"
        )
    return ""


def _without_group_sampling(config: Config) -> Switches:
    """As many samples, each of a prompt of its own."""
    return {"rollout.prompts_per_step": config.samples_per_step, "rollout.group_size": 1}


def without_truncation(config: Config) -> Switches:
    """Nothing where it is off: others call this too."""
    return {"method.truncation.window": 0} if config.method.truncation.window else {}


def _without_pretraining(config: Config) -> Switches:
    """Unfinished responses rely on the critic's value, so truncation goes too."""
    return {"method.critic.pretrain_steps": 0, **without_truncation(config)}


PARTS: tuple[Part, ...] = (
    Part(
        "group-sampling", "sampling",
        "Several samples of each prompt instead of as many prompts with one sample each, although "
        "a critic needs no group.",
        f"{_VAPO}, section 4.3", lambda c: c.method.has_critic and c.rollout.group_size > 1,
        _without_group_sampling, code=("settings.sections.RolloutConfig",),
    ),
    Part(
        "value-init", "critic",
        "The critic starts from the weights and the head of a reward model, a process reward model "
        "or a critic of another run, not from the policy's with a head of zeros.",
        f"{_VC_PPO}; process supervision for code, arXiv 2410.17621",
        lambda c: (
            c.method.has_critic
            and c.method.critic.sharing == "separate"
            and c.method.critic.init != "policy"
        ),
        to("method.critic.init", "policy"), code=("critic.model.load_critic",),
    ),
    Part(
        "value-pretraining", "critic",
        "The critic learns the returns of the fixed policy before the policy moves.",
        f"{_VC_PPO}; {_VAPO}, section 4.1",
        lambda c: c.method.has_critic and c.method.critic.pretrain_steps > 0, _without_pretraining,
        code=("critic.pretraining.pretrain",),
    ),
    Part(
        "decoupled-gae", "critic",
        "The critic's targets have a lambda of their own.",
        f"{_VC_PPO}; {_VAPO}, section 4.1",
        lambda c: c.method.has_critic and c.method.critic.lam != c.method.advantage.lam,
        lambda c: {"method.critic.lam": c.method.advantage.lam}, code=("algos.gae.decoupled_gae",),
    ),
    Part(
        "conservative-bellman", "critic",
        "The critic learns what the policy would earn by its likeliest tokens, from whatever was "
        "written: each token earns besides what it lost against the likeliest one.",
        "B-Coder, arXiv 2310.03173, equations 7, 12 and 14",
        lambda c: c.method.has_critic and c.method.critic.conservative > 0,
        to("method.critic.conservative", 0.0),
        code=("algos.value_losses.greedy_gaps",),
    ),
    Part(
        "shared-trunk", "critic",
        "The value function is a head on the policy's hidden states, no model of its own.",
        "PPO, arXiv 1707.06347, section 5, equation 9",
        lambda c: c.method.has_critic and c.method.critic.sharing == "trunk",
        to("method.critic.sharing", "separate"), code=("critic.trunk.TrunkCritic",),
    ),
    Part(
        "value-clipping", "critic",
        "A value moves no farther than a given step from the old one in its loss.",
        "Implementation Matters, arXiv 2005.12729",
        lambda c: c.method.has_critic and c.method.critic.loss == "clipped",
        to("method.critic.loss", "mse"), code=("algos.value_losses.clipped_value_losses",),
    ),
    Part(
        "categorical-value", "critic",
        "The critic classifies the return into bins instead of regressing it.",
        "Stop Regressing, arXiv 2403.03950",
        lambda c: c.method.has_critic and c.method.critic.loss in ("hl-gauss", "two-hot"),
        to("method.critic.loss", "mse"), code=("algos.value_losses.ValueBins",),
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """What values the tokens."""
    critic, gamma = config.method.critic, config.method.advantage.gamma
    form = {
        "mse": "1/2 (V - target)^2",
        "clipped": f"1/2 (V - target)^2, the larger of V as it is and within {critic.clip:g} of "
        "the old one",
        "hl-gauss": f"cross-entropy with a Gaussian around the target, {critic.bins} bins",
        "two-hot": f"cross-entropy with the two bins next to the target, of {critic.bins}",
    }[critic.loss]
    made = (
        f"a head on the policy's hidden states, weight {critic.coef:g} in the loss"
        if critic.sharing == "trunk"
        else f"a model of its own, begun as {critic.init}, learning rate {critic.learning_rate:g}"
    )
    monte_carlo = critic.lam == 1 and gamma == 1
    lines = [
        made,
        f"target = A(lambda {critic.lam:g}) + V"
        + (", which is the sum of the rewards to come" if monte_carlo else ""),
        f"loss: {form}",
    ]
    if critic.conservative:
        lines.append(
            f"each token earns {critic.conservative:g} * (the largest logit - its own) besides, so "
            "that V is of the policy's likeliest tokens"
        )
    if critic.pretrain_steps:
        lines.append(
            f"pre-trained on the fixed policy for at most {count(critic.pretrain_steps, 'step')}, "
            f"until nothing improves for {critic.pretrain_patience}"
        )
    return lines


def floor_lines(config: Config) -> list[str]:
    """What it must explain before the policy moves."""
    critic = config.method.critic
    if critic.below_minimum == "ignore":
        return []
    return [
        f"explains less than {critic.min_explained_variance:g} of the returns' variance before "
        "the policy moves: "
        + {"warn": "a warning", "refuse": "the run stops"}[critic.below_minimum]
    ]


METRICS: tuple[Metric, ...] = metrics("critic",
    ("greedy_gap", "reward",
     ("What a token lost against the policy's likeliest one, mean over its own tokens "
      "(`method.critic.conservative`).")),
)  # fmt: skip

METHOD = TrainingMethod(
    name="critic",
    settings=CriticConfig,
    is_on=lambda c: c.method.has_critic,
    rank=210,
    hooks="assay.trainer.methods.critic.conservative:Conservative",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Critic", 10, lines), Lines("Critic", 30, floor_lines)),
    check=check,
)
