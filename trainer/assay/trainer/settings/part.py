"""Parts: named departures from the plainest policy gradient, each with a switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

Kind = Literal["sampling", "reward", "advantage", "critic", "loss"]
KINDS: tuple[Kind, ...] = ("sampling", "reward", "advantage", "critic", "loss")
Switches = Mapping[str, object]
Claims = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """One named part of a method.

    The settings alone say whether it is on. Switching it off sets its keys, and those that make no
    sense without it (a clip range made for a ratio of sequences).

    Attributes:
        name: kebab-case, as `ablate` takes it.
        kind: where in a step it acts.
        what: its effect, in one sentence.
        reference: the paper, with the section or equation.
        off: dotted keys and values that switch it off; None where a method cannot do without.
        code: its arithmetic, `package.module.name`, whole or below assay.trainer.
        needs: capabilities that it requires, each with the reason.
        takes: capabilities that it removes, each with what is there instead (see capabilities.py).
    """

    name: str
    kind: Kind
    what: str
    reference: str
    is_on: Callable[[Config], bool]
    off: Callable[[Config], Switches] | None
    code: tuple[str, ...] = ()
    needs: Claims = field(default_factory=dict, hash=False)
    takes: Claims = field(default_factory=dict, hash=False)


def switch(
    key: str, off: object, *on: object
) -> tuple[Callable[[Config], bool], Callable[[Config], Switches]]:
    """Whether a part is on, and its switch, for a part of one key.

    Args:
        key: dotted.
        off: its value that switches the part off.
        *on: its values that are this part; by default all others.
    """
    value_of = attrgetter(key)
    return (lambda config: value_of(config) in on if on else value_of(config) != off, to(key, off))


def to(key: str, value: object) -> Callable[[Config], Switches]:
    """A switch that sets one key."""
    return lambda _config: {key: value}
