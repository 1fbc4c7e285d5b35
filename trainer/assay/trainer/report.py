"""Before and after, side by side: for programs, for people, and on the screen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from assay.clients.runs.stats import mcnemar_exact, paired_change
from assay.trainer.evaluation import Answer, Evaluation


def compare(before: Evaluation, after: Evaluation) -> dict[str, Any]:
    """Both summaries, and the change on the problems judged both times.

    Returns:
        `before`, `after` (see Evaluation.summary) and `change`: pairs, gained, lost, accuracy with
        its 95 % interval, and the exact two-sided McNemar p.
    """
    judged_before = {answer.problem: answer for answer in before.judged}
    pairs = [(judged_before[a.problem], a) for a in after.judged if a.problem in judged_before]
    gained = sum(not old.correct and new.correct for old, new in pairs)
    lost = sum(old.correct and not new.correct for old, new in pairs)
    change, low, high = paired_change(gained, lost, len(pairs))
    return {
        "before": before.summary(),
        "after": after.summary(),
        "change": {
            "pairs": len(pairs),
            "gained": gained,
            "lost": lost,
            "accuracy": change,
            "accuracy_low": low,
            "accuracy_high": high,
            "mcnemar_p": mcnemar_exact(gained, lost),
        },
    }


def _rows(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    before, after = report["before"], report["after"]

    def accuracy(side: Mapping[str, Any]) -> str:
        if side["accuracy"] is None:
            return "-"
        return f"{side['accuracy']:.1%}  [{side['accuracy_low']:.1%}, {side['accuracy_high']:.1%}]"

    def number(side: Mapping[str, Any], key: str, form: str) -> str:
        return "-" if side[key] is None else format(side[key], form)

    return [
        ("accuracy  [95 % interval]", accuracy(before), accuracy(after)),
        (
            "correct of judged",
            f"{before['correct']} of {before['judged']}",
            f"{after['correct']} of {after['judged']}",
        ),
        ("faults, left out", str(before["faults"]), str(after["faults"])),
        ("mean reward", number(before, "mean_reward", ".3f"), number(after, "mean_reward", ".3f")),
        (
            "mean length, tokens",
            number(before, "mean_length", ".1f"),
            number(after, "mean_length", ".1f"),
        ),
        ("cut at the limit", number(before, "truncated", ".0%"), number(after, "truncated", ".0%")),
    ]


def accuracies(report: Mapping[str, Any]) -> str:
    """Accuracy before and after, in a few words."""
    sides = (report[when]["accuracy"] for when in ("before", "after"))
    return " -> ".join("-" if value is None else f"{value:.1%}" for value in sides)


def change_line(report: Mapping[str, Any]) -> str:
    """The paired change in one line."""
    change = report["change"]
    p = change["mcnemar_p"]
    p_text = f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"  # three decimals, then powers of ten
    return (
        f"change on the same {change['pairs']} prompts: {100 * change['accuracy']:+.1f} points "
        f"[{100 * change['accuracy_low']:+.1f}, {100 * change['accuracy_high']:+.1f}], "
        f"{change['gained']} gained, {change['lost']} lost, McNemar p = {p_text}"
    )


def table(report: Mapping[str, Any]) -> Table:
    """The comparison for a terminal."""
    prompts = report["after"]["prompts"]
    grid = Table(title=f"{prompts} held-out prompts, greedy", title_justify="left")
    for name, justify in (("", "left"), ("before", "right"), ("after", "right")):
        grid.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    for row in _rows(report):
        grid.add_row(*row)
    return grid


def markdown(report: Mapping[str, Any], before: Evaluation, after: Evaluation, *, show: int) -> str:
    """The comparison and some responses side by side."""
    run, change = report["run"], change_line(report)
    lines = [
        f"# {run['name']}: {run['model']}",
        "",
        f"{run['steps']} steps of {run['samples_per_step']} samples, seed {run['seed']}.",
        "",
        f"Greedy answers on {report['after']['prompts']} held-out prompts:",
        "",
        "| | before | after |",
        "|---|---:|---:|",
        *(f"| {name} | {old} | {new} |" for name, old, new in _rows(report)),
        "",
        f"{change[0].upper()}{change[1:]}.",
        "",
        "![curves](curves.png)",
        "",
        "## Responses",
        "",
    ]
    by_problem = {answer.problem: answer for answer in before.answers}
    for answer in after.answers[:show]:
        old = by_problem.get(answer.problem)
        lines += [f"**{answer.question}** (reference: {_inline(str(answer.reference))})", ""]
        lines += [_response("before", old)] if old else []
        lines += [_response("after", answer), ""]
    return "\n".join(lines)


def _response(when: str, answer: Answer) -> str:
    outcome = answer.verdict or f"fault: {answer.fault}"
    return f"- {when} ({outcome}): {_inline(answer.response)}"


def _inline(text: str) -> str:
    """Text as one line of code, whatever it holds."""
    flat = " ".join(text.split())
    fence = "``" if "`" in flat else "`"
    return f"{fence} {flat} {fence}" if flat else "(empty)"


def write(
    folder: Path, report: Mapping[str, Any], before: Evaluation, after: Evaluation, *, show: int
) -> None:
    """Writes report.json and report.md."""
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (folder / "report.md").write_text(
        markdown(report, before, after, show=show) + "\n", encoding="utf-8"
    )
