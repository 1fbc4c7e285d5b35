"""What is minimised: parts and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.objective import CORRECTIONS
from assay.trainer.settings.part import Part, Switches, switch, to
from assay.trainer.settings.registry import engine_of, loss_of

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config
    from assay.trainer.settings.method import Backend
    from assay.trainer.settings.objective import LossConfig

_DAPO = "DAPO, arXiv 2503.14476"

_VAPO = "VAPO, arXiv 2504.05118"

_STABLE = "StableReinforce, arXiv 2505.02835"

_SEQUENCE_RANGE = 0.01


def _without_sequence_ratio(config: Config) -> Switches:
    """A range made for sequences gives way to that of GSPO's token-level baseline (section 5.1)."""
    switches: dict[str, object] = {"method.loss.ratio": "token"}
    loss = config.method.loss
    if min(loss.clip_low, loss.clip_high) < _SEQUENCE_RANGE:
        high = 0.27 if loss.clip_high > loss.clip_low else 0.2
        switches |= {"method.loss.clip_low": 0.2, "method.loss.clip_high": high}
    return switches


def _without_kl(config: Config) -> Switches:
    """No coefficient for any task."""
    switches: dict[str, object] = {"method.loss.kl_coef": 0.0}
    if config.method.loss.kl_coef_by_task:
        switches["method.loss.kl_coef_by_task"] = {}
    return switches


PARTS: tuple[Part, ...] = (
    Part(
        "clip-higher", "loss",
        "The ratio may rise farther than it may fall.",
        f"{_DAPO}, section 3.1, equation 10",
        lambda c: (
            c.method.loss.objective == "ppo" and c.method.loss.clip_high > c.method.loss.clip_low
        ),
        lambda c: {"method.loss.clip_high": c.method.loss.clip_low},
        code=("algos.policy_losses.ppo_token_losses",),
    ),
    Part(
        "dual-clip", "loss",
        "The loss of a token with a negative advantage is bounded.",
        "Dual-clip PPO, arXiv 1912.09729; DAPO's script",
        lambda c: (
            c.method.loss.objective == "ppo"
            and c.method.loss.importance_correction != "decoupled"
            and c.method.loss.dual_clip > 0
        ),
        to("method.loss.dual_clip", 0.0), code=("algos.policy_losses.ppo_token_losses",),
    ),
    Part(
        "pre-clip", "loss",
        "The ratio is clamped into a wide range before anything else.",
        _STABLE, *switch("method.loss.pre_clip", 0.0), code=("algos.ratios.pre_clip_log_ratio",),
    ),
    Part(
        "sequence-ratio", "loss",
        "One ratio for a response, the geometric mean of its tokens'.",
        "GSPO, arXiv 2507.18071, equations 5 and 7", lambda c: c.method.loss.ratio == "sequence",
        _without_sequence_ratio, code=("algos.ratios.sequence_log_ratio",),
        takes={"token-ratio": "there is one for a response"},
    ),
    Part(
        "token-level-loss", "loss",
        "The mean over the tokens of the mini-batch, so that long responses count for more.",
        f"{_DAPO}, section 3.3, equation 12",
        *switch("method.loss.aggregation", "seq-mean-token-mean", "token-mean"),
        code=("algos.aggregation.aggregate",),
    ),
    Part(
        "constant-normaliser", "loss",
        "The sum over tokens is divided by responses * max_new_tokens, whatever their lengths.",
        "Dr. GRPO, arXiv 2503.20783",
        *switch("method.loss.aggregation", "seq-mean-token-mean", "constant"),
        code=("algos.aggregation.aggregate",),
    ),
    Part(
        "whole-response-loss", "loss",
        "The sum over a response's tokens: the whole response is one action.",
        "RLOO, arXiv 2402.14740",
        *switch("method.loss.aggregation", "seq-mean-token-mean", "seq-mean-token-sum"),
        code=("algos.aggregation.aggregate",),
    ),
    Part(
        "positive-lm-loss", "loss",
        "The negative log-likelihood of the correct responses is minimised beside it.",
        f"{_VAPO}, section 4.3, equations 9 and 10", *switch("method.loss.positive_lm_coef", 0.0),
        code=("algos.auxiliary.positive_lm_loss",),
        needs={
            "verdicts": "it goes by correct responses",
            "one-turn": "of several attempts, some are right",
            "whole-batch": "its mean has a denominator of its own",
        },
    ),
    Part(
        "entropy-bonus", "loss",
        "The entropy of the policy is rewarded.",
        "PPO, arXiv 1707.06347, section 5, equation 9", *switch("method.loss.entropy_coef", 0.0),
        code=("core.objective.policy_loss",),
    ),
    Part(
        "kl", "loss",
        "The divergence from the initial policy costs.",
        "GRPO, arXiv 2402.03300, equations 3 and 4", lambda c: c.method.loss.kl_most > 0,
        _without_kl, code=("algos.kl.kl_token_losses",),
    ),
    Part(
        "importance-correction", "loss",
        "A token is weighed by the truncated ratio of the trainer's to the sampler's probability, "
        "its own or that of its response.",
        "truncated importance sampling (TIS), fengyao.notion.site/off-policy-rl; the forms are "
        "TRL 1.16's",
        lambda c: c.method.loss.importance_correction in ("token-truncate", "sequence-truncate"),
        to("method.loss.importance_correction", "none"),
        code=("algos.importance.importance_weights",),
    ),
    Part(
        "importance-mask", "loss",
        "A token is weighed by that ratio, and by 0 where it is beyond the limits.",
        "IcePop (Ring-1T), arXiv 2510.18855; by responses: When Speed Kills Stability, "
        "yingru.notion.site; the forms are TRL 1.16's",
        lambda c: c.method.loss.importance_correction in ("token-mask", "sequence-mask", "icepop"),
        to("method.loss.importance_correction", "none"),
        code=("algos.importance.importance_weights",),
    ),
    Part(
        "decoupled-ppo", "loss",
        "The policy that sampled is another than the one that the ratio starts from.",
        "AReaL, arXiv 2505.24298",
        *switch("method.loss.importance_correction", "none", "decoupled"),
        code=("algos.policy_losses.decoupled_ppo_token_losses",),
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """The objective."""
    loss = config.method.loss
    mean = {
        "token-mean": "mean over the tokens of the mini-batch of",
        "seq-mean-token-mean": "mean over responses of the mean over their tokens of",
        "seq-mean-token-sum": "mean over responses of the sum over their tokens of",
        "constant": f"sum over tokens / (responses * {config.rollout.max_new_tokens:,}) of",
    }[loss.aggregation]
    weight = "w * " if loss.importance_correction != "none" else ""
    lines = [f"maximise  {mean} [", f"            {weight}{loss_of(loss).formula(config)}"]
    if loss.kl_most and loss.kl_place != "reward":
        ratio = "pi / pi_old * " if loss.kl_gradient == "weighted" else ""
        lines.append(f"            - {loss.kl_words} * {ratio}{loss.kl_estimator}(pi, pi_ref)")
    if loss.entropy_coef:
        lines.append(f"            + {loss.entropy_coef:g} * entropy of pi")
    lines.append("          ]")
    if loss.positive_lm_coef:
        lines[-1] += (
            f" + {loss.positive_lm_coef:g} * mean over the tokens of correct responses of log pi"
        )
    return lines + _ratio_lines(loss, engine_of(config.rollout))


def _ratio_lines(loss: LossConfig, engine: Backend) -> list[str]:
    lines = [
        "r = pi / pi_old of the token"
        if loss.ratio == "token"
        else "r = (pi / pi_old of the whole response) ^ (1 / its tokens)"
    ]
    if loss.pre_clip:
        lines[0] += f", first clamped into [1 / {loss.pre_clip:g}, {loss.pre_clip:g}]"
    if loss.importance_correction != "none":
        default = loss.importance_correction == engine.correction
        by_default = f' (the default of rollout.backend = "{engine.name}")' if default else ""
        lines.append(f"w = {_weight(loss)}: {loss.importance_correction}{by_default}")
    return lines


def _weight(loss: LossConfig) -> str:
    low, high = loss.importance_limits
    way = CORRECTIONS.get(loss.importance_correction)
    ratio = "pi_old / sampler's probability"
    if way is not None and way.sequence:
        ratio += " of the whole response"
    if way is not None and way.mask:
        return f"{ratio}, 0 {f'below {low:g} or ' if low else ''}above {high:g}"
    inner = f"min({ratio}, {high:g})"
    return f"max({inner}, {low:g})" if low and way is not None else inner


def reward_lines(config: Config) -> list[str]:
    """The divergence, where the reward pays for it."""
    loss = config.method.loss
    if not loss.kl_most or loss.kl_place != "reward" or config.method.turns.on:
        return []
    return [f"each token's reward less {loss.kl_words} * log(pi / pi_ref)"]
