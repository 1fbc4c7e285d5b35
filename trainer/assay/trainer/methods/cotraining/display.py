"""The verifier's steps on the screen: labelled lines between the generator's columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.trainer.records.progress import StepDisplay


def line(row: Mapping[str, Any], total: int) -> str:
    """A step of the verifier: a row of its metrics.jsonl, and its number of steps."""
    shares = " ".join(
        f"{name} {_share(row[key])}"
        for name, key in (
            ("true", "verifier_accuracy"),
            ("of right", "verifier_correct_recall"),
            ("of wrong", "verifier_wrong_recall"),
            ("F1", "verifier_f1"),
            ("form", "verifier_form"),
            ("solved", "solutions_correct"),
        )
    )
    weights = "/".join(
        _number(row[key]) for key in ("verifier_weight_correct", "verifier_weight_wrong")
    )
    fault = f" fault {row['fault_ratio']:.0%}" if row["fault_ratio"] else ""
    return f"  verifier {row['step']}/{total}: {shares} weights {weights}{fault}"


def outcome(figures: Mapping[str, Any]) -> str:
    """How the verifier did at its end, from means over its last steps."""
    right, wrong = figures["verifier_correct_recall"], figures["verifier_wrong_recall"]
    return (
        f"verifier, at its end: {_share(right)} of right and {_share(wrong)} of wrong solutions "
        f"called so, form {_share(figures['verifier_form'])}"
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


class VerifierDisplay(StepDisplay):
    """Prints a line for each step; the bar is the generator's."""

    def step(self, row: Mapping[str, Any], total: int) -> None:
        """Prints a step's line."""
        self.note(line(row, total))
