"""Settings of the replay of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.settings.keeping import KeepingConfig, check_keeping
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import above
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class ReplayConfig(KeepingConfig):
    """Replays VL-Rethinker's groups, or ARPO's successes."""

    mode: Literal["groups", "success"] = "groups"
    """groups: groups with differing rewards are kept, and replace groups without (VL-Rethinker).
    success: each problem's latest success is kept, and joins a group of the same problem in which
    nobody was right (ARPO)."""
    alpha: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """groups: a group's probability is proportional to its mean |advantage| ^ alpha."""


PARTS: tuple[Part, ...] = (
    Part(
        "replay", "sampling",
        "Groups without an advantage give their places to earlier groups that had one, or one "
        "place to an earlier success of their problem.",
        "ours, after the replay of VL-Rethinker; ARPO, arXiv 2505.16282 (success)",
        *switch("method.replay.groups", 0),
        code=("methods.replay.replay.Replay", "methods.replay.replay.ReplayedSuccesses"),
        needs={"collector": "it keeps whole groups and brings them back"},
        takes={"fresh": "groups of earlier steps come again"},
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """Which groups are replayed."""
    if config.method.replay.mode == "success":
        return [
            (
                "a group in which nobody was right takes an earlier success of its problem, with "
                "the probabilities that it was sampled under; those of the latest "
                f"{count(config.method.replay.groups, 'problem')} are kept"
            )
        ]
    return [
        (
            f"of the latest {count(config.method.replay.groups, 'group')} with an advantage, some "
            "take the places of groups without, with the probabilities that they were sampled under"
        )
    ]


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("replayed_groups", "groups",
     ("Of those, the ones that took the place of a group without advantage "
      "(`method.replay`).")),
)  # fmt: skip

METHOD = TrainingMethod(
    name="replay",
    settings=ReplayConfig,
    is_on=above("method.replay.groups", 0),
    rank=40,
    hooks="assay.trainer.methods.replay.replay:Replaying",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 32, lines),),
    check=lambda config: check_keeping(config, "replay"),
    compares="method.replay",
)
