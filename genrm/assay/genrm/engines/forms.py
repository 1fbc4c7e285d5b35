"""What a text must look like, for engines that can hold a model to it. Pure.

A form is parts in order:

    "Step 1:"               exactly this
    (" correct", " wrong")  one of these, a verdict
    None                    text of one line, at least a character

Held to a form, a model that would have said something else says a verdict all the same. So whoever
holds it there also reports the share of its own probability that the verdicts had (`Written.mass`),
and below the template's floor the text is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

LINE_CHARS = 400
"""The most of a free line, where an engine can bound it."""

Part = str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class TextForm:
    """A form; see the module.

    Raises:
        ValueError: the parts leave open which of them a character belongs to.
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        for part, behind in zip(self.parts, (*self.parts[1:], ""), strict=True):
            if part is None and not (isinstance(behind, str) and behind.startswith("\n")):
                raise ValueError("a free line ends with a line break")
            if isinstance(part, tuple) and (len(part) < 2 or _overlap(part)):
                raise ValueError("verdicts are two or more, and none begins with another")
            if isinstance(part, str) and not part and part is not behind:
                raise ValueError("a fixed part says something")

    @property
    def pattern(self) -> str:
        """The form as a regular expression of the whole text."""
        return "".join(map(_pattern, self.parts))

    def choices(self, text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """For each verdict of a text of this form: what stands before it, and the options.

        Empty where the text is not of this form.
        """
        found = re.fullmatch("".join(f"({_pattern(part)})" for part in self.parts), text)
        if found is None:
            return ()
        return tuple(
            (text[: found.start(number)], part)
            for number, part in enumerate(self.parts, start=1)
            if isinstance(part, tuple)
        )


def one_of(options: Sequence[str], *, end: str = "") -> TextForm | None:
    """The form of one option, and what ends it; None where an option begins with another."""
    if len(options) < 2 or _overlap(options):
        return None
    return TextForm((tuple(options), *([end] if end else ())))


def critique_form(step_count: int) -> TextForm:
    """A line on each step and its verdict, then the closing one; the note cannot be a verdict.

    Capitals and "incorrect" are verdicts too, so that a model's share of them counts.
    """
    verdicts = (" correct", " wrong", " incorrect", " Correct", " Wrong", " Incorrect")
    parts: list[Part] = []
    for number in range(1, step_count + 1):
        before = f"Check {number}: " if number == 1 else f"\nCheck {number}: "
        parts += [before, None, f"\nStep {number}:", verdicts]
    return TextForm((*parts, "\nVerdict:", verdicts))


def _overlap(options: Sequence[str]) -> bool:
    return any(
        one.startswith(other)
        for at, one in enumerate(options)
        for index, other in enumerate(options)
        if index != at
    ) or not all(options)


def _pattern(part: Part) -> str:
    if part is None:
        return f"[^\\n]{{1,{LINE_CHARS}}}"
    if isinstance(part, str):
        return _quoted(part)
    return "(?:" + "|".join(map(_quoted, part)) + ")"


def _quoted(text: str) -> str:
    """As `re.escape`, without the escapes that only Python reads."""
    return "".join("\\n" if c == "\n" else f"\\{c}" if c in _SPECIAL else c for c in text)


_SPECIAL = frozenset("\\^$.|?*+()[]{}/")
