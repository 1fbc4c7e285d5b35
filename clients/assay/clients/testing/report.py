"""The report of a conformance check, for people and for pytest. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

# Checks of a group with equal results that are named.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its result.

    Attributes:
        group: "serving", "spec", "cases", "determinism", "references", "parameters" or "hostile".
        what: the property.
        problem: why it does not hold; empty when it does.
    """

    group: str
    what: str
    problem: str = ""

    @property
    def ok(self) -> bool:
        """The property holds."""
        return not self.problem


@dataclass(slots=True)
class Report:
    """All checks of one verifier, in order.

    `version` is empty when it is not served; `notes` list what could not be checked.
    """

    verifier: str
    version: str = ""
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, group: str, what: str, problem: str = "") -> None:
        """Adds a check."""
        self.checks.append(Check(group, what, problem))

    @property
    def failures(self) -> list[Check]:
        """Checks that failed."""
        return [check for check in self.checks if not check.ok]

    @property
    def ok(self) -> bool:
        """There are checks, and all hold."""
        return bool(self.checks) and not self.failures

    def raise_for_failures(self) -> None:
        """Raises AssertionError with the failures, or when nothing was checked."""
        if not self.ok:
            raise AssertionError("\n" + self._text(self.failures))

    def __str__(self) -> str:
        return self._text(self.checks)

    def _text(self, checks: Sequence[Check]) -> str:
        failed = len(self.failures)
        passed = len(self.checks) - failed
        name = f"{self.verifier} {self.version}".strip()
        lines = [f"{name}: {passed} checks passed, {failed} failed"]
        alike: dict[tuple[str, str], list[str]] = {}
        for check in checks:
            alike.setdefault((check.group, check.problem), []).append(check.what)
        for (group, problem), whats in alike.items():
            mark = "FAIL" if problem else "ok  "
            more = f" and {len(whats) - _SHOWN} more" if len(whats) > _SHOWN else ""
            said = f"{', '.join(whats[:_SHOWN])}{more}" + (f": {problem}" if problem else "")
            lines.append(f"  {mark}  {group}: {said}")
        lines += [f"  note  {note}" for note in self.notes]
        return "\n".join(lines)
