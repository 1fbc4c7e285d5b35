"""The arguments of one instruction, read from a reference that may be malformed.

Every error is `Unjudgeable`, UNUSABLE_REFERENCE; its message names the instruction and the
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from assay.reward_server import UNUSABLE_REFERENCE, JsonValue, Unjudgeable

MAX_COUNT = 1_000_000
MAX_WORD_CHARS = 200
MAX_TEXTS = 1_000

Check = Callable[[str], bool]
"""Whether a response follows one instruction."""

Relation = Callable[[int, int], bool]


@dataclass(slots=True)
class Arguments:
    """The arguments of one instruction; nulls count as absent.

    Attributes:
        instruction: its id, for messages.
        values: the arguments by name.
    """

    instruction: str
    values: Mapping[str, JsonValue]
    _read: set[str] = field(default_factory=set)

    def count(self, name: str, least: int = 0) -> int:
        """A whole number of `least` to 1,000,000; 3.0 is one."""
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            raise self.trouble(name, "must be a whole number")
        if not least <= value <= MAX_COUNT:
            raise self.trouble(name, f"must be from {least} to {MAX_COUNT}")
        return int(value)

    def number(self, name: str, least: float, most: float) -> float:
        """A number in a range."""
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.trouble(name, "must be a number")
        if not least <= value <= most:
            raise self.trouble(name, f"must be from {least:g} to {most:g}")
        return float(value)

    def text(self, name: str) -> str:
        """A text of any length that is not blank."""
        value = self._value(name)
        if not isinstance(value, str) or not value.strip():
            raise self.trouble(name, "must be a text that is not blank")
        return value

    def word(self, name: str) -> str:
        """A short text without the white space around it; it is searched for literally."""
        return self._short(name, self.text(name).strip())

    def words(self, name: str) -> tuple[str, ...]:
        """A list of short texts, or one."""
        value = self._value(name)
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not 0 < len(found) <= MAX_TEXTS:
            raise self.trouble(name, f"must be a list of 1 to {MAX_TEXTS} texts")
        texts = []
        for text in found:
            if not isinstance(text, str) or not text.strip():
                raise self.trouble(name, "must hold texts that are not blank")
            texts.append(self._short(name, text))
        return tuple(texts)

    def relation(self, name: str) -> Relation:
        """The relation to a threshold: "less than" or "at least"."""
        value = self._value(name)
        if value == "less than":
            return lambda found, threshold: found < threshold
        if value == "at least":
            return lambda found, threshold: found >= threshold
        raise self.trouble(name, 'must be "less than" or "at least"')

    def ignore_all(self) -> None:
        """Accepts any arguments."""
        self._read.update(self.values)

    def finish(self) -> None:
        """Checks that every argument was read.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE, naming those that were not.
        """
        unknown = {name for name, value in self.values.items() if value is not None} - self._read
        if unknown:
            named = ", ".join(sorted(name[:80] for name in unknown)[:10])
            known = ", ".join(sorted(self._read)) or "none"
            raise Unjudgeable(
                UNUSABLE_REFERENCE,
                f"instruction {self.instruction!r} takes no argument {named}; it takes: {known}",
            )

    def trouble(self, name: str, what: str) -> Unjudgeable:
        """The fault of an argument."""
        return Unjudgeable(
            UNUSABLE_REFERENCE, f"argument {name!r} of instruction {self.instruction!r} {what}"
        )

    def _short(self, name: str, text: str) -> str:
        if len(text) > MAX_WORD_CHARS:
            raise self.trouble(name, f"must have at most {MAX_WORD_CHARS} characters")
        return text

    def _value(self, name: str) -> JsonValue:
        self._read.add(name)
        value = self.values.get(name)
        if value is None:
            raise self.trouble(name, "is missing")
        return value
