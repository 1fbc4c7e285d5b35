"""Settings of the correction for a verifier's errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from assay.trainer.settings.kinds import Positive, Ratio, Strict
from assay.trainer.settings.method import Earned, Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, Switches
from assay.trainer.settings.reading import only, other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_PAPER = "arXiv 2510.00915"
_GIVEN = (other_than("method.noise.correction", "none"), only("method.noise.rates", "given"))
_BY_APPEALS = only("method.noise.rates", "appeals")
RatePair = tuple[Ratio, Ratio]


@dataclass(frozen=True, slots=True)
class NoiseConfig(Strict):
    """What is done about a verifier's errors, for rewards of 0 and 1."""

    correction: Literal["none", "backward", "forward"] = "none"
    """backward: (R - false positives) / (1 - both rates) is the reward. forward: R - 1 + false
    negatives; it is the advantage, so that `method.advantage.estimator` must be plain."""
    appeals: bool = False
    """Where a second opinion was asked for, what it changes counts by one over the chance that it
    is asked. For profiles with an `appeal`."""
    rates: Annotated[
        Literal["given", "verifier", "appeals"], other_than("method.noise.correction", "none")
    ] = "given"
    """given: as below. verifier: as the service's ListVerifiers says, of the row's task, else of
    "all". appeals: estimated from this run's own appeals."""
    false_positive: Annotated[Ratio, *_GIVEN] = 0.0
    """Among wrong responses, the share that the verifier accepts."""
    false_negative: Annotated[Ratio, *_GIVEN] = 0.0
    """Among right responses, the share that it rejects."""
    by_task: Annotated[dict[str, RatePair], *_GIVEN] = field(default_factory=dict)
    """Both rates, false positives first, of rows of these tasks."""
    by_suspicion: Annotated[dict[str, RatePair], other_than("method.noise.correction", "none")] = (
        field(default_factory=dict)
    )
    """Both rates of responses with these suspicions; they go before all others."""
    window: Annotated[Positive, _BY_APPEALS] = 4000
    """Judgements that the estimate looks back on."""
    least: Annotated[Positive, _BY_APPEALS] = 100
    """Appeals before the estimate is used; until then rewards stay as they are judged."""

    def pairs(self) -> Iterator[tuple[str, RatePair]]:
        """The given pairs of rates, by their keys."""
        if self.rates == "given":
            yield "false_positive and false_negative", (self.false_positive, self.false_negative)
            for task, pair in self.by_task.items():
                yield f"by_task.{task}", pair
        for suspicion, pair in self.by_suspicion.items():
            yield f"by_suspicion.{suspicion}", pair


def says_nothing(rates: RatePair, whose: str) -> str:
    """Why a verifier of these rates cannot be corrected, and what to do; empty where it can."""
    if sum(rates) < 1:
        return ""
    return (
        f"{whose}: a false positive rate of {rates[0]:g} and a false negative rate of {rates[1]:g} "
        "sum to 1 or more, so that its verdict says nothing of the truth, or the opposite, and no "
        "correction can mend it; take another verifier for these responses, or have it appealed"
    )


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    chosen = config.method.noise
    if chosen.correction == "none":
        return ""
    for key, pair in chosen.pairs():
        if wrong := says_nothing(pair, f"method.noise.{key}"):
            return wrong
    if chosen.rates == "given" and not any(map(any, dict(chosen.pairs()).values())):
        return (
            f'method.noise.correction = "{chosen.correction}" needs the verifier\'s rates of '
            "errors; give method.noise.false_positive and method.noise.false_negative, or set "
            'method.noise.rates to "verifier" or "appeals"'
        )
    if chosen.rates == "appeals" and not chosen.appeals:
        return 'method.noise.rates = "appeals" needs method.noise.appeals = true'
    return ""


def _no_correction(config: Config) -> Switches:
    """As judged; appeals stay, and what estimated rates from them does not."""
    return {"method.noise.correction": "none"}


def _no_forward(config: Config) -> Switches:
    """As judged, with the group's mean as the baseline again."""
    return {"method.noise.correction": "none", "method.advantage.estimator": "group"}


def _no_appeals(config: Config) -> Switches:
    """Without the second opinions' weight, and without a correction that goes by them."""
    switches: dict[str, object] = {"method.noise.appeals": False}
    if config.method.noise.rates == "appeals":
        forward = config.method.noise.correction == "forward"
        switches |= _no_forward(config) if forward else _no_correction(config)
    return switches


_NEEDS = {
    "verdicts": "it goes by right and wrong",
    "one-turn": "a response has one verdict",
}
_TAKES = {"judged-rewards": "they are corrected for the verifier's errors"}
PARTS: tuple[Part, ...] = (
    Part(
        "noise-backward", "reward",
        "The reward of a verdict is (R - false positives) / (1 - both rates), whose mean is the "
        "truth.",
        f"{_PAPER}, theorem 1", lambda c: c.method.noise.correction == "backward", _no_correction,
        code=("algos.noise.backward_reward",), needs=_NEEDS, takes=_TAKES,
    ),
    Part(
        "noise-forward", "reward",
        "A response's weight is R - 1 + false negatives, so that the mean step is along the true "
        "gradient.",
        f"{_PAPER}, theorem 2", lambda c: c.method.noise.correction == "forward", _no_forward,
        code=("algos.noise.forward_weight",),
        needs={**_NEEDS, "own-zero": "a baseline would take the correction out"}, takes=_TAKES,
    ),
    Part(
        "appeal", "reward",
        "Where a second opinion was asked for, what it changes counts by one over the chance that "
        "it is asked, so that the mean reward is that of the second opinion.",
        f"{_PAPER} has appeals; the weight is a derivation",
        lambda c: c.method.noise.appeals, _no_appeals,
        code=("algos.noise.appealed_reward", "algos.noise.weighted_rate"),
        needs=_NEEDS, takes=_TAKES,
    ),
)  # fmt: skip


def earns(config: Config, earned: Earned) -> Earned:
    """C in place of J."""
    del config
    return Earned(("C", *earned.terms[1:]), "J: what is given by")


def lines(config: Config) -> list[str]:
    """What C is, by which rates, and where it changes nothing."""
    chosen, found = config.method.noise, []
    rates = {
        "given": f"fp = {chosen.false_positive:g}, fn = {chosen.false_negative:g}",
        "verifier": "fp and fn as the service says of the row's task, else of all",
        "appeals": f"fp and fn by this run's appeals, once there are {chosen.least:,}",
    }[chosen.rates]
    formula = {
        "none": "C = J",
        "backward": "C = (J - fp) / (1 - fp - fn)",
        "forward": "C = J - 1 + fn",
    }[chosen.correction]
    found.append(formula if chosen.correction == "none" else f"{formula}, with {rates}")
    own = [f"{pair} where the task is {task}" for task, pair in chosen.by_task.items()]
    own += [f"{pair} with the suspicion {name}" for name, pair in chosen.by_suspicion.items()]
    if own:
        found.append(f"(fp, fn) = {'; '.join(own)}")
    if chosen.appeals:
        found.append(
            "where it was appealed, plus (second opinion - C) / the chance of being asked, with J "
            "the first opinion"
        )
    if changes_nothing(config):
        found.append(
            "within a prompt the rates are the same, and its deviation takes this correction out: "
            "A is as without it"
        )
    elif (chosen.by_suspicion or chosen.appeals) and config.method.advantage.scale == "group":
        found.append(
            "a prompt's deviation shrinks rare large losses most, so that what earns 0 in the mean "
            'may pay; method.advantage.scale = "none" keeps the mean'
        )
    return found


def changes_nothing(config: Config) -> bool:
    """Whether advantages are those of the judged rewards, whatever the rates are."""
    chosen, advantage = config.method.noise, config.method.advantage
    return (
        chosen.correction == "backward"
        and not chosen.appeals
        and not chosen.by_suspicion
        and advantage.estimator in ("group", "rloo")
        and advantage.scale == "group"
        and not config.method.shaping.changes_rewards
    )


METRICS: tuple[Metric, ...] = metrics("noise",
    ("noise_corrected", "share", "Judged responses with another reward than was judged.",
     "corrected"),
    ("noise_false_positive", "share", "The rate of false positives, mean over judged responses.",
     "false_positive"),
    ("noise_false_negative", "share", "The rate of false negatives, mean over judged responses.",
     "false_negative"),
    ("noise_appeals", "count", "Appeals that the estimate of the rates is made of.", "appeals"),
    ("noise_appealed_fp", "share",
     "The first verifier's rate of false positives by appeals; null where none was accepted first.",
     "appealed_fp"),
    ("noise_appealed_fp_low", "share", "Lower end of its 95 % interval.", "appealed_fp_low"),
    ("noise_appealed_fp_high", "share", "Upper end.", "appealed_fp_high"),
    ("noise_appealed_fn", "share", "Its rate of false negatives by appeals.", "appealed_fn"),
    ("noise_appealed_fn_low", "share", "Lower end of its 95 % interval.", "appealed_fn_low"),
    ("noise_appealed_fn_high", "share", "Upper end.", "appealed_fn_high"),
)  # fmt: skip

METHOD = TrainingMethod(
    name="noise",
    settings=NoiseConfig,
    is_on=lambda c: c.method.noise.correction != "none" or c.method.noise.appeals,
    rank=105,
    hooks="assay.trainer.methods.noise.method:Noise",
    parts=PARTS,
    metrics=METRICS,
    metric_groups={
        "noise": "Errors of the verifier (`method.noise`): the rates that were used, and what the "
        "run's appeals say of them"
    },
    earns=earns,
    lines=(Lines("Reward", 20, lines),),
    check=check,
)
