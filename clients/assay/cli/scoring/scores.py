"""Counts over scored rows, for the summary at the end. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from assay.cli.scoring.breakdown import Breakdown
from assay.kit.judgements import SPENT

_MESSAGE_CHARS = 300


@dataclass(slots=True)
class ScoreTally:
    """Counts over the rows so far.

    Attributes:
        rewards_sum: over judged rows.
        firsts: the first row with each reason, and its fault's message.
        suspected: how many rows show a suspicion.
        spent: what models took to judge, by the names of `SPENT`.
        kept: columns of the input that have another name in the output: (own, there).
    """

    breakdown: Breakdown
    kept: Sequence[tuple[str, str]] = ()
    rewards_sum: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, str] = field(default_factory=dict)
    suspicions: Counter[str] = field(default_factory=Counter)
    suspected: int = 0
    spent: dict[str, float] = field(default_factory=dict)

    def add(self, line: dict[str, Any]) -> None:
        """Counts one row of output."""
        self.breakdown.add(line)
        if line["fault"] is not None:
            reason, message = line["fault"]["reason"], line["fault"]["message"]
            self.faults[reason] += 1
            self.firsts.setdefault(reason, f"row {self.done}: {message[:_MESSAGE_CHARS]}")
            return
        self.verdicts[line["verdict"]] += 1
        self.rewards_sum += line["reward"]
        for part in line["components"]:
            if part["name"] in SPENT and part["weight"] == 0:
                name = part["name"]
                self.spent[name] = self.spent.get(name, 0.0) + part["score"]
        if line["suspicions"]:
            self.suspicions.update(line["suspicions"])
            self.suspected += 1

    @property
    def done(self) -> int:
        """Rows counted."""
        return self.verdicts.total() + self.faults.total()

    @property
    def faulted(self) -> int:
        """Rows with a fault."""
        return self.faults.total()

    def attempts(self) -> dict[str, float | None] | None:
        """SimpleQA's figures, where some verdict is not-attempted.

        The share of right answers among those attempted, and its harmonic mean with the share among
        all judged rows (arXiv 2411.04368, section 3); None for what has no rows.
        """
        skipped, judged = self.verdicts["not-attempted"], self.verdicts.total()
        if not skipped:
            return None
        right, attempted = self.verdicts["correct"], judged - skipped
        return {
            "accuracy_given_attempted": right / attempted if attempted else None,
            "f_score": 2 * right / (attempted + judged),
        }

    def numbers(self) -> dict[str, Any]:
        """What the summary says, as plain data."""
        judged = self.verdicts.total()
        return {
            "rows": self.done,
            "judged": judged,
            "mean_reward": self.rewards_sum / judged if judged else None,
            "verdicts": dict(self.verdicts.most_common()),
            "attempts": self.attempts(),
            "faults": dict(self.faults.most_common()),
            "spent": dict(self.spent),
            "suspected": self.suspected,
            "suspicions": dict(self.suspicions.most_common()),
            "tasks": self.breakdown.numbers(),
            "kept_columns": [{"column": own, "kept_as": there} for own, there in self.kept],
        }

    def report(self) -> Group:
        """The summary, by task too, and the first row with each reason of a fault."""
        table = Table(show_header=False)
        judged = self.verdicts.total()
        table.add_row("rows", str(self.done))
        table.add_row(
            "mean reward", f"{self.rewards_sum / judged:.4f}" if judged else "nothing was judged"
        )
        for verdict, count in self.verdicts.most_common():
            table.add_row(f"verdict {verdict}", self._share(count))
        for name, value in (self.attempts() or {}).items():
            shown = "nothing was attempted" if value is None else f"{value:.4f}"
            table.add_row(name.replace("_", " "), shown)
        table.add_row("faults", str(self.faulted))
        for reason, count in self.faults.most_common():
            table.add_row(f"fault {reason}", self._share(count))
        for name, value in self.spent.items():
            shown = f"{value:,.0f}" if name == "judge-tokens" else f"{value:.6g}"
            table.add_row(name.replace("-", " "), shown)
        if self.suspected:
            table.add_row("rows with a suspicion", self._share(self.suspected))
        for sign, count in self.suspicions.most_common():
            table.add_row(Text(f"suspicion {sign}"), self._share(count))
        why = [Text(f"{reason}, first in {row}") for reason, row in self.firsts.items()]
        for own, there in self.kept:
            table.add_row(Text(f"input column {own}"), Text(f"kept as {there}"))
        return Group(table, self.breakdown.report(), *why)

    def _share(self, count: int) -> str:
        return f"{count} ({100 * count / self.done:.1f} %)"
