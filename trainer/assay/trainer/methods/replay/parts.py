"""Parts and words of the replay of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part, to
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


PARTS: tuple[Part, ...] = (
    Part(
        "replay",
        "sampling",
        "Groups without an advantage give their places to earlier groups that had one, or one "
        "place to an earlier success of their problem.",
        "ours, after the replay of VL-Rethinker; ARPO, arXiv 2505.16282 (success)",
        lambda c: c.method.replay.groups > 0,
        to("method.replay.groups", 0),
        code=("methods.replay.replay.Replay", "methods.replay.replay.ReplayedSuccesses"),
        needs={
            "collector": "it keeps whole groups and brings them back",
        },
        takes={
            "fresh": "groups of earlier steps come again",
        },
    ),
)


def lines(config: Config) -> list[str]:
    """Which groups come again."""
    if not config.method.replay.groups:
        return []
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
