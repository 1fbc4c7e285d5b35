"""What a part is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from assay.trainer.settings import Config

Kind = Literal["sampling", "reward", "advantage", "critic", "loss"]
Switches = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Part:
    """One named part.

    Attributes:
        name: kebab-case, as `ablate` takes it.
        kind: where in a step it acts.
        what: it does, in one sentence.
        reference: the paper, with the section or equation where it was read.
        is_on: whether settings have it.
        off: the dotted keys that switch it off, with their values; None where nothing would be
            left.
    """

    name: str
    kind: Kind
    what: str
    reference: str
    is_on: Callable[[Config], bool]
    off: Callable[[Config], Switches] | None


def to(key: str, value: object) -> Callable[[Config], Switches]:
    """A switch that sets one key, whatever the settings."""
    return lambda _config: {key: value}
