"""The one table of named parts that a method is composed of.

A part is a departure from the plainest policy gradient that a paper names and that a researcher may
want to switch off by itself: `ablate = ["clip-higher"]` in a config does it, `assay train
--explain` lists those that are on, `assay ladder` compares. Parts are read off the settings: there
is no second place that says which are on.

Not a part is what has no "off": a learning rate, a group's size where the group is the baseline.
Such a part of a method's definition stands in the table without a switch (`off` is None).

Switching a part off sets keys, and nothing else; where another key would make no sense without the
part (a clip range made for a ratio of sequences), it is set too, and `off` says from what source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.trainer.methods.cotraining.parts import COTRAINING_PARTS
from assay.trainer.methods.credit_parts import CREDIT_PARTS
from assay.trainer.methods.dense.parts import DENSE_PARTS
from assay.trainer.methods.part import Part, Switches, to
from assay.trainer.methods.selection_parts import SELECTION_PARTS
from assay.trainer.methods.turns.parts import TURN_PARTS

if TYPE_CHECKING:
    from assay.trainer.settings import Config

_DAPO = "DAPO, arXiv 2503.14476"
_VAPO = "VAPO, arXiv 2504.05118"
_VC_PPO = "VC-PPO, arXiv 2503.01491"
_STABLE = "StableReinforce, arXiv 2505.02835"
_LONG_COT = "Demystifying Long CoT, arXiv 2502.03373, appendix C.1"
_PAIRWISE = "Pairwise-RL, arXiv 2504.04950; the form is a derivation"
_ESTIMATOR = "algorithm.advantage.estimator"
_AGGREGATION = "algorithm.loss.aggregation"
# A token's ratio never stays within a range this narrow: it was made for the ratio of a sequence.
_SEQUENCE_RANGE = 0.01


def _has_group_baseline(config: Config) -> bool:
    return config.algorithm.advantage.estimator in ("group", "rloo", "symmetric")


def _without_group_sampling(config: Config) -> Switches:
    """As many samples, each of a prompt of its own."""
    return {
        "rollout.prompts_per_step": config.samples_per_step,
        "rollout.group_size": 1,
    }


def _without_critic(config: Config) -> Switches:
    """The group's mean takes its place; a KL in the reward needs a critic and goes to the loss."""
    switches: dict[str, object] = {_ESTIMATOR: "group", **_without_truncation(config)}
    if config.algorithm.loss.kl_place == "reward":
        switches["algorithm.loss.kl_place"] = "loss"
    return switches


def _order_gap_limit(config: Config) -> float:
    """The greatest order gap that counts, of a judge of pairs."""
    limit = config.reward.parameters.get("max_order_gap", 1.0)
    return float(limit) if isinstance(limit, int | float) else 1.0


def _without_order_gap(config: Config) -> Switches:
    """Any gap counts."""
    return {"reward.parameters": {**config.reward.parameters, "max_order_gap": 1.0}}


def _without_truncation(config: Config) -> Switches:
    """Nothing to set where it is off: others call this too."""
    return {"algorithm.truncation.window": 0} if config.algorithm.truncation.window else {}


def _without_pretraining(config: Config) -> Switches:
    """Unfinished responses are worth what the critic says, so that they need one that knows."""
    return {"algorithm.critic.pretrain_steps": 0, **_without_truncation(config)}


def _without_sequence_ratio(config: Config) -> Switches:
    """A range made for sequences gives way to that of GSPO's token-level baseline (section 5.1)."""
    switches: dict[str, object] = {"algorithm.loss.ratio": "token"}
    loss = config.algorithm.loss
    if min(loss.clip_low, loss.clip_high) < _SEQUENCE_RANGE:
        high = 0.27 if loss.clip_high > loss.clip_low else 0.2
        switches |= {"algorithm.loss.clip_low": 0.2, "algorithm.loss.clip_high": high}
    return switches


def _without_cispo(config: Config) -> Switches:
    """Where the range is open below, PPO's 0.2 closes it."""
    switches: dict[str, object] = {"algorithm.loss.objective": "ppo"}
    if config.algorithm.loss.clip_low >= 1:
        switches["algorithm.loss.clip_low"] = 0.2
    return switches


PARTS: tuple[Part, ...] = (
    # --- sampling: what is answered ---
    Part(
        "dynamic-sampling",
        "sampling",
        "Draws on until the batch holds only prompts whose responses are neither all right nor all "
        "wrong.",
        f"{_DAPO}, section 3.2, equation 11",
        lambda c: c.algorithm.dynamic_sampling.enabled,
        to("algorithm.dynamic_sampling.enabled", False),
    ),
    Part(
        "surplus-kept",
        "sampling",
        "Groups that dynamic sampling kept and a step did not need open the next step, with the "
        "probabilities that they were sampled under.",
        "ours; DAPO drops them",
        lambda c: (
            c.algorithm.dynamic_sampling.enabled and c.algorithm.dynamic_sampling.keep_surplus
        ),
        to("algorithm.dynamic_sampling.keep_surplus", False),
    ),
    Part(
        "group-sampling",
        "sampling",
        "Several samples of each prompt instead of as many prompts with one sample each, although "
        "a critic needs no group.",
        f"{_VAPO}, section 4.3",
        lambda c: c.algorithm.has_critic and c.rollout.group_size > 1,
        _without_group_sampling,
    ),
    Part(
        "fire",
        "sampling",
        "The first token of each response comes from a flat distribution over the likeliest few; "
        "the evaluation decodes regularly.",
        "FIRE, arXiv 2410.21236",
        lambda c: c.rollout.fire.enabled,
        to("rollout.fire.enabled", False),
    ),
    *SELECTION_PARTS,
    Part(
        "truncation",
        "sampling",
        "A response draws at most a window of tokens in a step and goes on in the next; what is "
        "not finished is valued by the critic, which learns from what is.",
        "T-PPO, arXiv 2506.15050",
        lambda c: c.algorithm.truncation.window > 0,
        to("algorithm.truncation.window", 0),
    ),
    Part(
        "asynchronous-rollouts",
        "sampling",
        "Batches are drawn while the policy learns, by weights that are at most some steps old.",
        "AReaL, arXiv 2505.24298",
        lambda c: c.algorithm.asynchrony.mode == "bounded",
        to("algorithm.asynchrony.mode", "off"),
    ),
    Part(
        "periodic-asynchrony",
        "sampling",
        "Micro-batches that are whole are trained on while the rest of the step is drawn and "
        "judged; the weights move when all are in.",
        "Periodic Asynchrony, arXiv 2511.18871; of the paper its abstract",
        lambda c: c.algorithm.asynchrony.mode == "periodic",
        to("algorithm.asynchrony.mode", "off"),
    ),
    # --- reward: what a response earns ---
    Part(
        "soft-overlong",
        "reward",
        "A penalty that grows over the last tokens before the limit.",
        f"{_DAPO}, section 3.4, equation 13",
        lambda c: c.algorithm.shaping.overlong == "soft",
        to("algorithm.shaping.overlong", "none"),
    ),
    Part(
        "overlong-filter",
        "reward",
        "Responses cut at the limit leave the loss.",
        f"{_DAPO}, section 3.4",
        lambda c: c.algorithm.shaping.overlong == "filter",
        to("algorithm.shaping.overlong", "none"),
    ),
    Part(
        "cosine-length",
        "reward",
        "A reward by correctness and length: the shorter a right response the better, the longer a "
        "wrong one.",
        _LONG_COT,
        lambda c: c.algorithm.shaping.cosine,
        to("algorithm.shaping.cosine", False),
    ),
    Part(
        "repetition-penalty",
        "reward",
        "Repeated n-grams of tokens cost a response that is not correct.",
        _LONG_COT,
        lambda c: c.algorithm.shaping.repetition_ngram > 0,
        to("algorithm.shaping.repetition_ngram", 0),
    ),
    *DENSE_PARTS,
    Part(
        "anchor-reward",
        "reward",
        "The reward is the chance of beating the problem's anchor, asked of a judge in both "
        "orders.",
        _PAIRWISE,
        lambda c: c.algorithm.pairwise.against == "anchor",
        None,
    ),
    Part(
        "group-in-pairs",
        "reward",
        "The reward is the mean chance of beating the other samples of the prompt.",
        _PAIRWISE,
        lambda c: c.algorithm.pairwise.against == "group",
        None,
    ),
    Part(
        "best-of-n-anchors",
        "reward",
        "The anchor is the best of several samples of the initial policy by a scalar reward, "
        "instead of one sample of it.",
        _PAIRWISE,
        lambda c: c.algorithm.pairwise.anchors == "best-of-n",
        to("algorithm.pairwise.anchors", "reference"),
    ),
    Part(
        "order-gap-fault",
        "reward",
        "A pair that a judge sees too differently in its two orders has no judgement.",
        _PAIRWISE,
        lambda c: c.algorithm.pairwise.against != "none" and _order_gap_limit(c) < 1,
        _without_order_gap,
    ),
    Part(
        "centred-win",
        "reward",
        "The chance of winning counts from parity, w - 1/2.",
        _PAIRWISE,
        lambda c: c.algorithm.pairwise.reward == "centred",
        to("algorithm.pairwise.reward", "win"),
    ),
    Part(
        "log-odds-win",
        "reward",
        "The chance of winning counts by its log-odds, within bounds.",
        _PAIRWISE,
        lambda c: c.algorithm.pairwise.reward == "log-odds",
        to("algorithm.pairwise.reward", "win"),
    ),
    # --- advantage: how rewards become advantages ---
    Part(
        "group-normalisation",
        "advantage",
        "The mean reward of a prompt's samples is the baseline of each of them.",
        "GRPO, arXiv 2402.03300, section 4.1.2",
        lambda c: c.algorithm.advantage.estimator == "group",
        None,
    ),
    Part(
        "leave-one-out",
        "advantage",
        "The mean reward of the other samples of a prompt is the baseline of each of them.",
        "RLOO, arXiv 2402.14740",
        lambda c: c.algorithm.advantage.estimator == "rloo",
        to(_ESTIMATOR, "group"),
    ),
    Part(
        "symmetric-group",
        "advantage",
        "Parity is the baseline: mean chance of beating the others less 1/2, which sums to 0 over "
        "a group and needs no critic.",
        _PAIRWISE,
        lambda c: c.algorithm.advantage.estimator == "symmetric",
        to(_ESTIMATOR, "group"),
    ),
    Part(
        "std-scaling",
        "advantage",
        "The centred reward is divided by the standard deviation of its group, or of the batch.",
        "GRPO, arXiv 2402.03300, section 4.1.2; Dr. GRPO (arXiv 2503.20783) takes it out",
        lambda c: _has_group_baseline(c) and c.algorithm.advantage.scale in ("group", "batch"),
        to("algorithm.advantage.scale", "none"),
    ),
    *CREDIT_PARTS,
    Part(
        "advantage-whitening",
        "advantage",
        "The advantages of tokens are brought to mean 0 and deviation 1, over the batch or for "
        "each task.",
        "ours (batch); GoLongRL, arXiv 2605.19577 (by task)",
        lambda c: c.algorithm.advantage.normalise in ("batch", "task"),
        to("algorithm.advantage.normalise", "none"),
    ),
    Part(
        "sigma-filter",
        "advantage",
        "Advantages far from their mean, in standard deviations, become 0.",
        _STABLE,
        lambda c: c.algorithm.advantage.max_sigma > 0,
        to("algorithm.advantage.max_sigma", 0.0),
    ),
    Part(
        "discount",
        "advantage",
        "Later rewards count less.",
        "GAE, arXiv 1506.02438",
        lambda c: c.algorithm.has_critic and c.algorithm.advantage.gamma < 1,
        to("algorithm.advantage.gamma", 1.0),
    ),
    Part(
        "length-adaptive-gae",
        "advantage",
        "The policy's lambda grows with the length of the response, 1 - 1 / (alpha * length).",
        f"{_VAPO}, section 4.2, equation 5",
        lambda c: c.algorithm.has_critic and c.algorithm.advantage.length_adaptive_alpha > 0,
        to("algorithm.advantage.length_adaptive_alpha", 0.0),
    ),
    # --- critic: the value function ---
    Part(
        "critic",
        "critic",
        "A value function is the baseline, token by token, by generalised advantage estimation.",
        "PPO, arXiv 1707.06347, section 5; GAE, arXiv 1506.02438",
        lambda c: c.algorithm.has_critic,
        _without_critic,
    ),
    Part(
        "value-init",
        "critic",
        "The critic starts from the weights and the head of a reward model, a process reward model "
        "or a critic of another run, not from the policy's with a head of zeros.",
        f"{_VC_PPO}; process supervision for code, arXiv 2410.17621",
        lambda c: (
            c.algorithm.has_critic
            and c.algorithm.critic.sharing == "separate"
            and c.algorithm.critic.init != "policy"
        ),
        to("algorithm.critic.init", "policy"),
    ),
    Part(
        "value-pretraining",
        "critic",
        "The critic learns the returns of the fixed policy before the policy moves.",
        f"{_VC_PPO}; {_VAPO}, section 4.1",
        lambda c: c.algorithm.has_critic and c.algorithm.critic.pretrain_steps > 0,
        _without_pretraining,
    ),
    Part(
        "decoupled-gae",
        "critic",
        "The critic's targets have a lambda of their own.",
        f"{_VC_PPO}; {_VAPO}, section 4.1",
        lambda c: c.algorithm.has_critic and c.algorithm.critic.lam != c.algorithm.advantage.lam,
        lambda c: {"algorithm.critic.lam": c.algorithm.advantage.lam},
    ),
    Part(
        "shared-trunk",
        "critic",
        "The value function is a head on the policy's hidden states, no model of its own.",
        "PPO, arXiv 1707.06347, section 5, equation 9",
        lambda c: c.algorithm.has_critic and c.algorithm.critic.sharing == "trunk",
        to("algorithm.critic.sharing", "separate"),
    ),
    Part(
        "value-clipping",
        "critic",
        "A value moves no farther than a given step from the old one in its loss.",
        "Implementation Matters, arXiv 2005.12729",
        lambda c: c.algorithm.has_critic and c.algorithm.critic.loss == "clipped",
        to("algorithm.critic.loss", "mse"),
    ),
    Part(
        "categorical-value",
        "critic",
        "The critic classifies the return into bins instead of regressing it.",
        "Stop Regressing, arXiv 2403.03950",
        lambda c: c.algorithm.has_critic and c.algorithm.critic.loss in ("hl-gauss", "two-hot"),
        to("algorithm.critic.loss", "mse"),
    ),
    # --- loss: what is minimised ---
    Part(
        "clip-higher",
        "loss",
        "The ratio may rise farther than it may fall.",
        f"{_DAPO}, section 3.1, equation 10",
        lambda c: (
            c.algorithm.loss.objective == "ppo"
            and c.algorithm.loss.clip_high > c.algorithm.loss.clip_low
        ),
        lambda c: {"algorithm.loss.clip_high": c.algorithm.loss.clip_low},
    ),
    Part(
        "dual-clip",
        "loss",
        "The loss of a token with a negative advantage is bounded.",
        "Dual-clip PPO, arXiv 1912.09729; DAPO's script",
        lambda c: (
            c.algorithm.loss.objective == "ppo"
            and c.algorithm.loss.importance_correction != "decoupled"
            and c.algorithm.loss.dual_clip > 0
        ),
        to("algorithm.loss.dual_clip", 0.0),
    ),
    Part(
        "pre-clip",
        "loss",
        "The ratio is clamped into a wide range before anything else.",
        _STABLE,
        lambda c: c.algorithm.loss.pre_clip > 0,
        to("algorithm.loss.pre_clip", 0.0),
    ),
    Part(
        "sequence-ratio",
        "loss",
        "One ratio for a response, the geometric mean of its tokens'.",
        "GSPO, arXiv 2507.18071, equations 5 and 7",
        lambda c: c.algorithm.loss.ratio == "sequence",
        _without_sequence_ratio,
    ),
    Part(
        "cispo",
        "loss",
        "The clipped ratio weighs the log-likelihood, so that no token loses its gradient.",
        "MiniMax-M1, arXiv 2506.13585, equations 4 and 5",
        lambda c: c.algorithm.loss.objective == "cispo",
        _without_cispo,
    ),
    Part(
        "token-level-loss",
        "loss",
        "The mean over the tokens of the mini-batch, so that long responses count for more.",
        f"{_DAPO}, section 3.3, equation 12",
        lambda c: c.algorithm.loss.aggregation == "token-mean",
        to(_AGGREGATION, "seq-mean-token-mean"),
    ),
    Part(
        "constant-normaliser",
        "loss",
        "The sum over tokens is divided by responses * max_new_tokens, whatever their lengths.",
        "Dr. GRPO, arXiv 2503.20783",
        lambda c: c.algorithm.loss.aggregation == "constant",
        to(_AGGREGATION, "seq-mean-token-mean"),
    ),
    Part(
        "whole-response-loss",
        "loss",
        "The sum over a response's tokens: the whole response is one action.",
        "RLOO, arXiv 2402.14740",
        lambda c: c.algorithm.loss.aggregation == "seq-mean-token-sum",
        to(_AGGREGATION, "seq-mean-token-mean"),
    ),
    Part(
        "positive-lm-loss",
        "loss",
        "The negative log-likelihood of the correct responses is minimised beside it.",
        f"{_VAPO}, section 4.3, equations 9 and 10",
        lambda c: c.algorithm.loss.positive_lm_coef > 0,
        to("algorithm.loss.positive_lm_coef", 0.0),
    ),
    Part(
        "entropy-bonus",
        "loss",
        "The entropy of the policy is rewarded.",
        "PPO, arXiv 1707.06347, section 5, equation 9",
        lambda c: c.algorithm.loss.entropy_coef > 0,
        to("algorithm.loss.entropy_coef", 0.0),
    ),
    Part(
        "kl",
        "loss",
        "The divergence from the initial policy costs.",
        "GRPO, arXiv 2402.03300, equations 3 and 4",
        lambda c: c.algorithm.loss.kl_coef > 0,
        to("algorithm.loss.kl_coef", 0.0),
    ),
    Part(
        "importance-correction",
        "loss",
        "A token is weighed by the truncated ratio of the trainer's to the sampler's probability.",
        "truncated importance sampling, as TRL 1.16 describes it",
        lambda c: c.algorithm.loss.importance_correction == "truncate",
        to("algorithm.loss.importance_correction", "none"),
    ),
    Part(
        "decoupled-ppo",
        "loss",
        "The policy that sampled is another than the one that the ratio starts from.",
        "AReaL, arXiv 2505.24298",
        lambda c: c.algorithm.loss.importance_correction == "decoupled",
        to("algorithm.loss.importance_correction", "none"),
    ),
    # --- several turns in one response ---
    *TURN_PARTS,
    # --- a verifier beside the policy ---
    *COTRAINING_PARTS,
)

BY_NAME: Mapping[str, Part] = {part.name: part for part in PARTS}


def parts_on(config: Config) -> tuple[Part, ...]:
    """The parts that settings have, in the order of the table."""
    return tuple(part for part in PARTS if part.is_on(config))
