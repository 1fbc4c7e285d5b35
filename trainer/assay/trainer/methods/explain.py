"""A composition in words, for `assay train --explain`.

What is sampled, what it earns, what that is compared with, what is minimised, and how.

Pure: settings in, text out. The lines are made of the settings and of the table of parts, so that
what is said is what will be trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.trainer.methods.cotraining.parts import cotraining_lines, step_weight_line
from assay.trainer.methods.part import Part
from assay.trainer.methods.parts import BY_NAME, parts_on
from assay.trainer.methods.presets import departures
from assay.trainer.methods.turns.lines import turn_credit_lines, turn_lines, turn_reward_lines

if TYPE_CHECKING:
    from assay.trainer.methods.pairwise.settings import PairwiseConfig
    from assay.trainer.settings import (
        AdvantageConfig,
        Config,
        FireConfig,
        LossConfig,
        ShapingConfig,
    )


@dataclass(frozen=True, slots=True)
class Section:
    """Some lines under a heading."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A composition in words.

    Attributes:
        title: the method's name and its scale.
        sections: in the order of a step.
        on: the parts, in the order of the table.
        off: the parts that `ablate` switched off.
        missing: parts that the method of this name has and these settings lack, besides those.
        added: parts that these settings add to it.
    """

    title: str
    sections: tuple[Section, ...]
    on: tuple[Part, ...]
    off: tuple[Part, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]


def explain(config: Config) -> Explanation:
    """What settings compose."""
    missing, added = departures(config) or ((), ())
    writers: tuple[tuple[str, Callable[[Config], list[str]]], ...] = (
        ("Sampling", _sampling),
        ("Turns", turn_lines),
        ("Reward", _reward),
        ("Advantage", _advantage),
        ("Critic", _critic),
        ("Verifier", cotraining_lines),
        ("Objective", _objective),
        ("Optimiser", _optimiser),
    )
    sections = ((title, tuple(write(config))) for title, write in writers)
    return Explanation(
        title=f"{config.algorithm.name}: {config.model.name}, {config.run.steps} steps of "
        f"{config.samples_per_step} samples",
        sections=tuple(Section(title, lines) for title, lines in sections if lines),
        on=parts_on(config),
        off=tuple(BY_NAME[name] for name in config.ablate),
        missing=tuple(name for name in missing if name not in config.ablate),
        added=added,
    )


def _count(number: int, one: str, many: str = "") -> str:
    """`1 prompt`, `1,536 prompts`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _sampling(config: Config) -> list[str]:
    rollout, dynamic = config.rollout, config.algorithm.dynamic_sampling
    asked = f"{_count(rollout.prompts_per_step, 'prompt')} x {_count(rollout.group_size, 'sample')}"
    made = _count(config.samples_per_step, "response")
    top_k = rollout.top_k or "off"
    lines = [
        f"{asked} = {made} a step, of at most {_count(rollout.max_new_tokens, 'token')}",
        f"temperature {rollout.temperature:g}, top-p {rollout.top_p:g}, top-k {top_k}; back end "
        + rollout.backend,
    ]
    lines += _choice(config)
    if rollout.fire.enabled:
        lines += _fire(rollout.fire)
    if dynamic.enabled:
        lines.append(
            "drawn until every prompt of the batch has right and wrong responses (judged by the "
            "verdict, not by the shaped reward): at most "
            f"{dynamic.oversample:g} times the missing prompts at once, at most "
            f"{_count(dynamic.max_rounds, 'round')}; surplus groups "
            + ("open the next step" if dynamic.keep_surplus else "are dropped")
        )
    window = config.algorithm.truncation.window
    if window:
        lines.append(
            f"in {_count(config.samples_per_step, 'slot')}, each of which draws at most "
            f"{_count(window, 'token')} a step: a response that needs more keeps its slot and goes "
            "on under the next weights; a slot that is free takes the next sample"
        )
    return lines + _beside(config)


def _beside(config: Config) -> list[str]:
    """What is drawn while the policy learns."""
    mode, eta = config.algorithm.asynchrony.mode, config.algorithm.asynchrony.max_staleness
    line = {
        "off": "",
        "periodic": "drawn and judged beside the training on the micro-batches that are whole; the "
        "weights move when all are in",
        "bounded": f"drawn beside the training, by weights at most {_count(eta, 'step')} old: "
        f"rollout n begins when floor((n - 1) / {config.samples_per_step:,}) <= steps made + {eta}",
    }[mode]
    return [line] if line else []


def _choice(config: Config) -> list[str]:
    """Which problems come, which groups come again, which responses stay."""
    chosen, algorithm = config.data.selection, config.algorithm
    lines = []
    if chosen.name != "uniform":
        part = BY_NAME[chosen.name]
        lines.append(f"which problems ({part.name}): {_begun(part.what)}")
    if chosen.hints.enabled:
        shares = ", ".join(f"{share:.0%}" for share in chosen.hints.shares)
        lines.append(
            "a problem that nobody answered rightly comes again in the next step, with the first "
            f"{shares} of its solution in the prompt"
        )
    if algorithm.replay.groups:
        lines.append(
            f"of the latest {_count(algorithm.replay.groups, 'group')} with an advantage, some "
            "take the places of groups without, with the probabilities that they were sampled under"
        )
    if algorithm.recomposition.groups:
        lines.append(_recomposition(config))
    if algorithm.filter.prof != "none":
        keep = algorithm.filter.prof_keep or config.rollout.group_size // 2
        lines.append(
            f"{keep} of a prompt's responses stay (PROF, {algorithm.filter.prof}): by their judged "
            "steps, as many right ones as wrong ones where there are enough"
        )
    if algorithm.filter.min_group_std:
        lines.append(
            "prompts whose rewards deviate by less than "
            f"{algorithm.filter.min_group_std:g} are left out"
        )
    if algorithm.filter.void != "none":
        whose = "with an attempt that" if algorithm.turns.on else "that"
        answer = (
            "the verifier extracts"
            if algorithm.filter.void == "verifier"
            else f"{algorithm.filter.void_answer} finds"
        )
        lines.append(
            f"a response {whose} has neither a block of code nor an answer that {answer} leaves "
            "the loss; its reward counts for its group"
        )
    return lines


def _recomposition(config: Config) -> str:
    chosen = config.algorithm.recomposition
    share = f"{chosen.first:.0%}"
    if chosen.last != chosen.first:
        share += f" to {chosen.last:.0%} of a batch, over {_count(chosen.steps, 'step')},"
    else:
        share += " of a batch"
    return (
        f"of each prompt the shortest {chosen.share:.0%} of the correct responses and the longest "
        f"{chosen.share:.0%} of the others train at once; {share} is the remainders of earlier "
        f"prompts, of which the latest {chosen.groups:,} wait"
    )


def _begun(sentence: str) -> str:
    """A sentence as the rest of a line."""
    return sentence[0].lower() + sentence[1:].rstrip(".")


def _fire(fire: FireConfig) -> list[str]:
    in_loss = {
        "mask": "it is not in the policy's loss",
        "exact": "in the loss it is weighed by min(pi_old / that probability, 1)",
        "parity": "in the loss it counts as if the policy had drawn it",
    }[fire.mode]
    drawn = f"softmax(the {fire.top_k} largest logits / {fire.temperature:g})"
    return [
        f"the first token of a response from {drawn}; {in_loss}",
        "the evaluation decodes regularly, its first tokens too",
    ]


def _reward(config: Config) -> list[str]:
    if config.algorithm.turns.on:
        return turn_reward_lines(config)
    shaping, dense = config.algorithm.shaping, config.algorithm.dense
    given = "J" if config.algorithm.pairwise.against == "none" else "w"
    source = "correct or not, says" if shaping.cosine else f"{given}: what is given by"
    lines = [
        f"R = {' + '.join(_reward_terms(config))}",
        f"{source} the verifier {config.reward.verifier}",
        *_pairwise_lines(config.algorithm.pairwise),
    ]
    lines += _shaping_lines(shaping, config.rollout.max_new_tokens)
    if dense.weight:
        share = ", divided by their number" if dense.normalise else ""
        lines.append(
            f"r_t: {dense.weight:g} * the reward of each span (step, line, turn) that ends at "
            f"token t{share}"
        )
        if dense.correct_share < 1:
            lines.append(f"of a correct response, {dense.correct_share:g} times that")
    if _kl_in_reward(config.algorithm.loss):
        lines.append(
            f"each token's reward less {config.algorithm.loss.kl_coef:g} * log(pi / pi_ref)"
        )
    lines.append("a response without a judgement (a fault) has no reward and leaves the loss")
    return lines


def _pairwise_lines(pairwise: PairwiseConfig) -> list[str]:
    if pairwise.against == "none":
        return []
    form = {
        "win": "w",
        "centred": "w - 1/2",
        "log-odds": f"log(w / (1 - w)) within +-{pairwise.log_odds_clip:g}",
    }[pairwise.reward]
    beaten = {"anchor": "the problem's anchor", "group": "the other samples, mean over pairs"}
    anchors = {
        "data": "a column of the data",
        "best-of-n": f"the best of {_count(pairwise.n, 'sample')} of the initial policy, by the "
        f"verifier {pairwise.selector}",
        "reference": "one sample of the initial policy",
    }
    lines = [f"J = {form}, where w is the chance of beating {beaten[pairwise.against]}"]
    if pairwise.anchors != "none":
        only = " (for the evaluation alone)" if pairwise.against == "group" else ""
        lines.append(f"anchor{only}: {anchors[pairwise.anchors]}")
    return [*lines, "a pair that the judge abstains from is a fault, never parity"]


def _reward_terms(config: Config) -> list[str]:
    shaping = config.algorithm.shaping
    terms = ["C(L)" if shaping.cosine else "J"]
    if shaping.overlong == "soft":
        terms.append("O(L)")
    if shaping.repetition_ngram:
        terms.append("rep")
    if config.algorithm.dense.weight:
        terms.append("sum of r_t")
    return terms


def _shaping_lines(shaping: ShapingConfig, most: int) -> list[str]:
    lines = []
    if shaping.cosine:
        (right_end, right_start), (wrong_start, wrong_end) = (
            shaping.cosine_correct,
            shaping.cosine_wrong,
        )
        lines.append(
            f"C(L): right responses from {right_start:g} (short) to {right_end:g} (long), wrong "
            f"ones from {wrong_start:g} to {wrong_end:g}, by half a cosine of the length L; "
            f"{shaping.cosine_exceed:g} at {most:,} tokens"
        )
    if shaping.overlong == "soft":
        begin = most - shaping.overlong_cache
        lines.append(
            f"O(L): 0 up to L = {begin:,} tokens, then falling to -{shaping.overlong_factor:g} at "
            f"{most:,}"
        )
    if shaping.overlong == "filter":
        lines.append(f"responses cut at {most:,} tokens leave the loss")
    if shaping.repetition_ngram:
        lines.append(
            f"rep: {shaping.repetition_penalty:g} * the share of repeated "
            f"{shaping.repetition_ngram}-grams of tokens, where the response is not correct"
        )
    return lines


def _advantage(config: Config) -> list[str]:
    advantage = config.algorithm.advantage
    write = {"gae": _gae, "segments": _segments}.get(advantage.estimator, _group_advantage)
    lines = write(config)
    if advantage.difficulty != "none":
        lines.append(_difficulty(advantage))
    if config.algorithm.truncation.window:
        lines += [
            "a response that goes on: r = 0, and V behind its last token is V before it",
            "the policy learns from the tokens that this step drew, each once",
        ]
    lines += turn_credit_lines(config)
    if not config.algorithm.has_critic and config.algorithm.dense.weight:
        lines.append("a token's own: the scaled rewards of the spans that end at or after it")
        lines += filter(None, [step_weight_line(config)])
    if advantage.normalise != "none":
        over = {
            "batch": "the batch",
            "task": "each task by itself",
            "role": "attempts and of verifications by themselves, over the batch",
        }[advantage.normalise]
        lines.append(f"then whitened over the tokens of {over}: mean 0, deviation 1")
    if advantage.max_sigma:
        lines.append(f"0 where it is more than {advantage.max_sigma:g} deviations from the mean")
    return lines


def _segments(config: Config) -> list[str]:
    chosen = config.algorithm.segments
    unsure = f"tokens with a probability below {chosen.threshold:g}"
    lines = [
        "A_t = V(end of t's segment) - V(its start)",
        f"a segment holds {chosen.unsure_per_segment} {unsure}, and begins at the first",
        f"V: mean reward of {_count(chosen.continuations, 'continuation')}; at the end R",
        "faults are in no V; a segment with an end whose V is not known leaves the loss",
    ]
    return [*lines, f"only {unsure} are in the loss"] if chosen.mask_sure else lines


def _difficulty(advantage: AdvantageConfig) -> str:
    s = f"s = {advantage.difficulty_alpha:g} * mean of the prompt + the rest * mean of its task"
    if advantage.difficulty == "linear":
        return f"times 1 + (1 - s), with {s}, of correctness"
    return (
        f"times exp({advantage.difficulty_gamma:g} * (1/2 - q)) where R is above its prompt's "
        f"mean, else its inverse; q is the share of R above s, with {s}"
    )


def _group_advantage(config: Config) -> list[str]:
    advantage, size = config.algorithm.advantage, config.rollout.group_size
    baseline = {
        "group": f"mean of the {size} rewards of its prompt",
        "rloo": f"mean of the {size - 1} other rewards of its prompt",
        "symmetric": "1/2",
    }[advantage.estimator]
    scale = {
        "group": " / deviation of the same",
        "batch": " / deviation over the batch",
        "task": " / sqrt(mean variance within the prompts of its task)",
        "none": "",
    }[advantage.scale]
    centred = f"R - {baseline}"
    return [f"A = ({centred}){scale}" if scale else f"A = {centred}"]


def _gae(config: Config) -> list[str]:
    advantage = config.algorithm.advantage
    lines = [
        "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
        "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
    ]
    lam = f"{advantage.lam:g}"
    if advantage.length_adaptive_alpha:
        lam = (
            f"1 - 1 / ({advantage.length_adaptive_alpha:g} * L) for a response of L tokens, at "
            f"least {advantage.min_lam:g}"
        )
    return [*lines, f"gamma = {advantage.gamma:g}, lambda = {lam}"]


def _critic(config: Config) -> list[str]:
    if not config.algorithm.has_critic:
        return []
    critic, gamma = config.algorithm.critic, config.algorithm.advantage.gamma
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
    if critic.pretrain_steps:
        lines.append(
            f"pre-trained on the fixed policy for at most {_count(critic.pretrain_steps, 'step')}, "
            f"until nothing improves for {critic.pretrain_patience}"
        )
    if config.algorithm.truncation.window:
        fewest = config.algorithm.truncation.min_finished
        lines.append(
            "learns from the responses that ended in this step, all of their tokens"
            + (f"; from nothing where fewer than {fewest:,} did" if fewest > 1 else "")
        )
    if critic.below_minimum != "ignore":
        lines.append(
            f"explains less than {critic.min_explained_variance:g} of the returns' variance before "
            "the policy moves: "
            + {"warn": "a warning", "refuse": "the run stops"}[critic.below_minimum]
        )
    return lines


def _kl_in_reward(loss: LossConfig) -> bool:
    return loss.kl_coef > 0 and loss.kl_place == "reward"


def _objective(config: Config) -> list[str]:
    loss = config.algorithm.loss
    mean = {
        "token-mean": "mean over the tokens of the mini-batch of",
        "seq-mean-token-mean": "mean over responses of the mean over their tokens of",
        "seq-mean-token-sum": "mean over responses of the sum over their tokens of",
        "constant": f"sum over tokens / (responses * {config.rollout.max_new_tokens:,}) of",
    }[loss.aggregation]
    lines = [f"maximise  {mean} [", f"            {_surrogate(loss)}"]
    if loss.kl_coef and not _kl_in_reward(loss):
        lines.append(f"            - {loss.kl_coef:g} * {loss.kl_estimator}(pi, pi_ref)")
    if loss.entropy_coef:
        lines.append(f"            + {loss.entropy_coef:g} * entropy of pi")
    lines.append("          ]")
    if loss.positive_lm_coef:
        lines[-1] += (
            f" + {loss.positive_lm_coef:g} * mean over the tokens of correct responses of log pi"
        )
    return lines + _ratio_lines(loss) + _older_lines(config)


def _older_lines(config: Config) -> list[str]:
    """What pi_old is where a batch may be stale."""
    asynchrony = config.algorithm.asynchrony
    if asynchrony.mode != "bounded" or not asynchrony.max_staleness:
        return []
    decoupled = config.algorithm.loss.importance_correction == "decoupled"
    weights = "just before the update" if decoupled else "that drew the response"
    return [f"pi_old: the weights {weights}"]


def _surrogate(loss: LossConfig) -> str:
    bounds = f"{max(0.0, 1 - loss.clip_low):g}, {1 + loss.clip_high:g}"
    weight = "w * " if loss.importance_correction != "none" else ""
    if loss.objective == "cispo":
        return f"{weight}stop-gradient(clip(r, {bounds})) * A * log pi"
    clipped = f"min(r * A, clip(r, {bounds}) * A)"
    if loss.dual_clip and loss.importance_correction != "decoupled":
        bounded = f"max({clipped}, {loss.dual_clip:g} * A where A < 0)"
        return f"{weight}{bounded}"
    return f"{weight}{clipped}"


def _ratio_lines(loss: LossConfig) -> list[str]:
    lines = [
        "r = pi / pi_old of the token"
        if loss.ratio == "token"
        else "r = (pi / pi_old of the whole response) ^ (1 / its tokens)"
    ]
    if loss.pre_clip:
        lines[0] += f", first clamped into [1 / {loss.pre_clip:g}, {loss.pre_clip:g}]"
    if loss.importance_correction != "none":
        lines.append(f"w = min(pi_old / sampler's probability, {loss.importance_cap:g})")
    return lines


def _optimiser(config: Config) -> list[str]:
    optim = config.optim
    size = config.samples_per_step // optim.mini_batches
    warm_up = (
        f" after {_count(optim.warmup_steps, 'optimizer step')} of warm-up"
        if optim.warmup_steps
        else ""
    )
    clip = f", gradient norm at most {optim.max_grad_norm:g}" if optim.max_grad_norm else ""
    lora = config.model.lora
    trained = f"low-rank adapters of rank {lora.rank}" if lora.rank else "all weights"
    passes = _count(optim.epochs, "pass", "passes")
    batches = _count(optim.mini_batches, "mini-batch", "mini-batches")
    updates = _count(config.updates_per_rollout, "optimizer step")
    in_all = _count(config.updates_per_rollout * config.run.steps, "optimizer step")
    pace = f"learning rate {optim.learning_rate:g}, {optim.schedule}{warm_up}"
    return [
        f"AdamW on {trained}: {pace}, weight decay {optim.weight_decay:g}{clip}",
        f"each rollout: {passes} over {batches} of {_count(size, 'response')} = {updates}",
        f"{in_all} in all",
    ]
