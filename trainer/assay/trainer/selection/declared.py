"""The ways to choose the next problem, as they are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.trainer.selection.settings import (
    CurriculumConfig,
    DadsConfig,
    DumpConfig,
    HardFocusConfig,
    LimrConfig,
    MoppsConfig,
    PrePpoConfig,
    VadeConfig,
    VasConfig,
)
from assay.trainer.settings.method import Selection, nothing_wrong
from assay.trainer.settings.part import Claims, Part, switch

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.trainer.settings.config import Config


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
    """A way to choose problems; off, all come in turn."""
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
