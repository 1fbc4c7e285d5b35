"""The selectors: the tables of `data.selection`, and their declarations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from assay.trainer.settings.kinds import (
    NonNegative,
    Positive,
    PositiveFloat,
    PositiveShare,
    Ratio,
    Strict,
)
from assay.trainer.settings.method import Selection, nothing_wrong
from assay.trainer.settings.part import Claims, Part, switch

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.trainer.settings.config import Config

Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class MoppsConfig(Strict):
    """MoPPS (arXiv 2507.04632): problems whose expected success is near a target."""

    rule: Literal["nearest", "threshold"] = "nearest"
    """nearest: the nearest to `target` first. threshold: those from `low` to `high` first, in
    random order, then the nearest to that range."""
    target: Ratio = 0.5
    low: Ratio = 0.3
    high: Ratio = 0.7
    pool: NonNegative = 0
    """Random candidates to choose from; 0 for all problems."""
    decay: PositiveShare = 1.0
    """Share of the evidence kept at a visit; 1, the code's default, forgets nothing."""


@dataclass(frozen=True, slots=True)
class VadeConfig(Strict):
    """VADE: problems with the largest variance of success, and evidence that ages."""

    fast: PositiveShare = 0.5
    """Share of a problem's evidence kept at a visit."""
    slow: PositiveShare = 0.99
    """Share of all others' kept at each step."""


@dataclass(frozen=True, slots=True)
class DumpConfig(Strict):
    """DUMP (arXiv 2504.09710): tasks by an upper confidence bound of mean |advantage|."""

    window: Positive = 300
    """Latest responses of a task in its mean (300 in the code)."""
    tau: PositiveFloat = 0.1
    """Temperature of the softmax (0.1 in the code)."""


@dataclass(frozen=True, slots=True)
class DadsConfig(Strict):
    """RuleReasoner's sampling (arXiv 2506.08672): tasks below their target reward."""

    target: Finite = 1.0
    """The reward to reach."""
    tau: PositiveFloat = 0.5
    decay: PositiveShare = 0.9
    """Weight of a step's rewards relative to the next step's."""


@dataclass(frozen=True, slots=True)
class RecapConfig(Strict):
    """RECAP (arXiv 2510.21978): tasks whose reward falls back or wavers. The numbers are ours."""

    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Weight of the past in a task's moving mean and variance, from one step to the next."""
    tau: PositiveFloat = 0.05
    """Temperature of the softmax, in units of reward."""
    floor: Ratio = 0.3
    """Part of the draws that tasks share evenly, so that each is seen."""


@dataclass(frozen=True, slots=True)
class CurriculumConfig(Strict):
    """Some tasks first, then all as in the data (arXiv 2503.22230)."""

    tasks: tuple[str, ...] = ("math", "code")
    """Those that come first, by the rows' `task`."""
    first_share: Ratio = 1.0
    """Their share of the draws at the first step."""
    until_step: Positive = 1000
    """From here on their share is the data's; it falls in a straight line."""


@dataclass(frozen=True, slots=True)
class HardFocusConfig(Strict):
    """DRIVE's two stages: all problems evenly, then the hardest."""

    after_steps: Positive = 100
    """Steps of the first stage."""
    every: Positive = 100
    """Steps between two looks in the second stage."""
    keep: PositiveShare = 0.5
    """Share of the remaining problems that a look keeps, the hardest."""
    least: Positive = 64
    """Fewest problems that remain."""


@dataclass(frozen=True, slots=True)
class VasConfig(Strict):
    """MMR1's variance-aware sampling (arXiv 2509.21268)."""

    share: Ratio = 0.5
    """Share of the draws that go by the score; the others are uniform."""
    outcome: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.8
    """Weight of the variance of success."""
    diversity: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.2
    """Weight of the responses' diversity."""
    refresh_every: NonNegative = 35
    """Steps between two surveys of all problems (35 in the paper), the first before step one; 0 for
    none: a problem's latest training group counts."""
    samples: Positive = 32
    """Responses to each problem in a survey (32 in the paper)."""


@dataclass(frozen=True, slots=True)
class PrePpoConfig(Strict):
    """Pre-PPO (arXiv 2503.22230): the problems that are hardest for the initial policy."""

    fraction: PositiveShare = 0.1
    """Of the problems; 0.1 was best of 0.1, 0.2 and 0.5."""
    samples: Positive = 1
    """Responses to each problem, judged once before the training."""
    keep_tasks: tuple[str, ...] = ()
    """Tasks that stay whole and unscored: the earlier data."""


@dataclass(frozen=True, slots=True)
class LimrConfig(Strict):
    """LIMR: problems whose learning curve in an earlier run followed the average."""

    records: str = ""
    """samples.jsonl of an earlier run with run.samples_every = 1, or its folder."""
    threshold: Annotated[float, Field(lt=1, allow_inf_nan=False)] = 0.6
    """Problems above it stay."""


_LEARNS = {"outcomes": "a selector learns from what came of each step"}


def _ordered(config: Config) -> str:
    chosen = config.data.selection.mopps
    return (
        "data.selection.mopps.low is above data.selection.mopps.high"
        if chosen.low > chosen.high
        else ""
    )


def _has_records(config: Config) -> str:
    if config.data.selection.limr.records:
        return ""
    return (
        'data.selection.name = "limr" needs data.selection.limr.records: samples.jsonl of an '
        "earlier run with run.samples_every = 1"
    )


def _selects(
    name: str,
    what: str,
    reference: str,
    *,
    settings: type[Any],
    code: str,
    check: Callable[[Config], str] = nothing_wrong,
    needs: Claims = _LEARNS,
    make: str = "",
) -> Selection:
    """A selector; switched off, all problems come in turn."""
    part = Part(
        name,
        "sampling",
        what,
        reference,
        *switch("data.selection.name", "uniform", name),
        code=(code,),
        needs=needs,
    )
    function = make or name.replace("-", "_")
    return Selection(name, settings, f"assay.trainer.selection.choose:{function}", part, check)


MOPPS = _selects(
    "mopps", "Problems whose success, drawn from what is known of it, is nearest to one half.",
    "MoPPS, arXiv 2507.04632",
    settings=MoppsConfig, make="by_belief", code="selection.bayes.ByBelief", check=_ordered,
)  # fmt: skip

VADE = _selects(
    "vade", "Problems with the largest variance of success, by evidence that ages.",
    "ours, after the abstract of VADE",
    settings=VadeConfig, make="by_belief", code="selection.bayes.ByBelief",
)  # fmt: skip

DUMP = _selects(
    "dump", "Tasks by an upper confidence bound of the size of their advantages.",
    "DUMP, arXiv 2504.09710",
    settings=DumpConfig, code="algos.selection.dump_domain_weights",
)  # fmt: skip

DADS = _selects(
    "dads", "Tasks by how far their reward is below a target.", "RuleReasoner, arXiv 2506.08672",
    settings=DadsConfig, code="algos.selection.dads_domain_weights",
)  # fmt: skip

RECAP = _selects(
    "recap", "Tasks whose reward falls back or wavers, before those that rise or stand still.",
    "RECAP, arXiv 2510.21978, after its abstract; the form is a derivation",
    settings=RecapConfig, code="algos.selection.recap_weights",
)  # fmt: skip

CURRICULUM = _selects(
    "curriculum", "Some tasks first; their share goes to that of the data.",
    "Data scaling in RLHF, arXiv 2503.22230; the line is ours",
    settings=CurriculumConfig, code="selection.domains.Curriculum",
)  # fmt: skip

HARD_FOCUS = _selects(
    "hard-focus", "All problems in turn, then those that were answered worst.",
    "ours, after the abstract of DRIVE",
    settings=HardFocusConfig, code="selection.subsets.HardFocus",
)  # fmt: skip

VAS = _selects(
    "vas",
    "A part of the problems by the variance of their success and the difference of their "
    "responses.",
    "MMR1, arXiv 2509.21268",
    settings=VasConfig, code="selection.variance.VarianceAware",
    needs={**_LEARNS, "collector": "it has all problems answered between two steps"},
)  # fmt: skip

PRE_PPO = _selects(
    "pre-ppo", "The problems that the policy answers worst before it learns, task by task.",
    "Data scaling in RLHF, arXiv 2503.22230",
    settings=PrePpoConfig, code="algos.selection.pre_ppo_select",
)  # fmt: skip

LIMR = _selects(
    "limr", "The problems that an earlier run learnt as it did the average.",
    "LIMR, arXiv 2502.11886",
    settings=LimrConfig, code="algos.selection.lim_score", check=_has_records,
)  # fmt: skip
