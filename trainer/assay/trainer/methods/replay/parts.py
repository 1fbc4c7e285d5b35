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
        "Groups without an advantage give their places to groups of earlier steps that had one.",
        "ours, after the replay of VL-Rethinker",
        lambda c: c.method.replay.groups > 0,
        to("method.replay.groups", 0),
        code=("methods.replay.replay.Replay",),
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
    return [
        (
            f"of the latest {count(config.method.replay.groups, 'group')} with an advantage, some "
            "take the places of groups without, with the probabilities that they were sampled under"
        )
    ]
