"""The parts that say what is trained on."""

from __future__ import annotations

from assay.trainer.methods.part import Part, to


def _selects(name: str, what: str, reference: str) -> Part:
    """A way to choose problems; off, all come in turn."""
    return Part(
        name,
        "sampling",
        what,
        reference,
        lambda c: c.data.selection.name == name,
        to("data.selection.name", "uniform"),
    )


SELECTION_PARTS: tuple[Part, ...] = (
    _selects(
        "mopps",
        "Problems whose success, drawn from what is known of it, is nearest to one half.",
        "MoPPS, arXiv 2507.04632",
    ),
    _selects(
        "vade",
        "Problems with the largest variance of success, by evidence that ages.",
        "ours, after the abstract of VADE",
    ),
    _selects(
        "dump",
        "Tasks by an upper confidence bound of the size of their advantages.",
        "DUMP, arXiv 2504.09710",
    ),
    _selects(
        "dads",
        "Tasks by how far their reward is below a target.",
        "RuleReasoner, arXiv 2506.08672",
    ),
    _selects(
        "curriculum",
        "Some tasks first; their share goes to that of the data.",
        "Data scaling in RLHF, arXiv 2503.22230; the line is ours",
    ),
    _selects(
        "hard-focus",
        "All problems in turn, then those that were answered worst.",
        "ours, after the abstract of DRIVE",
    ),
    _selects(
        "vas",
        "A part of the problems by the variance of their success and the difference of their "
        "responses.",
        "MMR1, arXiv 2509.21268",
    ),
    _selects(
        "pre-ppo",
        "The problems that the policy answers worst before it learns, task by task.",
        "Data scaling in RLHF, arXiv 2503.22230",
    ),
    _selects(
        "limr",
        "The problems that an earlier run learnt as it did the average.",
        "LIMR, arXiv 2502.11886",
    ),
    Part(
        "hints",
        "sampling",
        "A problem that nobody answered rightly comes again with the beginning of its solution.",
        "GHPO, arXiv 2507.10628",
        lambda c: c.data.selection.hints.enabled,
        to("data.selection.hints.enabled", False),
    ),
    Part(
        "replay",
        "sampling",
        "Groups without an advantage give their places to groups of earlier steps that had one.",
        "ours, after the replay of VL-Rethinker",
        lambda c: c.algorithm.replay.groups > 0,
        to("algorithm.replay.groups", 0),
    ),
    Part(
        "recomposition",
        "sampling",
        "Short correct and long incorrect responses train at once, the others of their groups in a "
        "part of a later batch.",
        "RoRecomp, arXiv 2509.25958, after its abstract",
        lambda c: c.algorithm.recomposition.groups > 0,
        to("algorithm.recomposition.groups", 0),
    ),
    Part(
        "void-turn-filter",
        "sampling",
        "A response, or a dialogue with an attempt, that has neither a block of code nor an answer "
        "leaves the loss.",
        "SimpleTIR, arXiv 2509.02479, its abstract and its code",
        lambda c: c.algorithm.filter.void != "none",
        to("algorithm.filter.void", "none"),
    ),
    Part(
        "prof-filter",
        "sampling",
        "Of the correct responses those with the worst steps leave the batch, of the incorrect "
        "those with the best.",
        "PROF, arXiv 2509.03403",
        lambda c: c.algorithm.filter.prof != "none",
        to("algorithm.filter.prof", "none"),
    ),
    Part(
        "spread-filter",
        "sampling",
        "Groups whose rewards hardly differ leave the batch.",
        "ours, after the code of ReST-RL",
        lambda c: c.algorithm.filter.min_group_std > 0,
        to("algorithm.filter.min_group_std", 0.0),
    ),
)
