"""What a part is: a departure from the plainest policy gradient that has a name and a switch."""

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

    A part is read off the settings: there is no second place that says whether it is on. Switching
    it off sets keys, and nothing else; where another key would make no sense without the part (a
    clip range made for a ratio of sequences), it is set too. What has no "off" is no part: a
    learning rate, a group's size. A part that a method cannot do without has `off` None.

    Attributes:
        name: kebab-case, as `ablate` takes it.
        kind: where in a step it acts.
        what: it does, in one sentence.
        reference: the paper, with the section or equation where it was read.
        is_on: whether settings have it.
        off: the dotted keys that switch it off, with their values; None where nothing would be
            left.
        code: where its arithmetic is, as `package.module.name`; below assay.trainer, or whole.
        needs: capabilities of a run that it cannot do without, each with the reason.
        takes: capabilities that a run has no more where it is on, each with what is there instead
            (see capabilities.py).
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
    """Whether a part is on, and its switch, where one key says both.

    Args:
        key: dotted.
        off: its value that switches the part off.
        *on: its values that are this part; without any, all others.
    """
    value_of = attrgetter(key)
    return (lambda config: value_of(config) in on if on else value_of(config) != off, to(key, off))


def to(key: str, value: object) -> Callable[[Config], Switches]:
    """A switch that sets one key, whatever the settings."""
    return lambda _config: {key: value}
