"""From samples to programs for `label-code`, from labels to rows for `train-rm`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assay.trainer.data.problems import Problem
from assay.trainer.recipes.code_prm.config import Kept

Row = Mapping[str, Any]


def sample_row(
    problem: Problem, tests: Any, text: str, *, checkpoint: int, number: int
) -> dict[str, Any]:
    """A sampled response.

    `tests` are in a shape of assay.clients.rows.tests; `checkpoint` counts optimizer steps.
    """
    return {
        "id": f"{problem.id}/{checkpoint}/{number}",
        "prompt": [{"role": role, "content": content} for role, content in problem.messages],
        "question": problem.question,
        "response": text,
        "tests": tests,
        "checkpoint": checkpoint,
    }


def program_rows(samples: Iterable[Row], *, language: str, extraction: str) -> list[dict[str, Any]]:
    """Rows for `assay label-code`; blank responses and repetitions to a problem are left out."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in samples:
        if row["response"].strip():
            kept = {**row, "language": language}
            if extraction == "whole":
                kept["extraction"] = "whole"
            found.setdefault((row["question"], row["response"]), kept)
    return list(found.values())


def prm_rows(labelled: Iterable[Row], keep: Kept) -> list[dict[str, Any]]:
    """Rows for `assay train-rm`: what the reward service will show the PRM, with its labels.

    The prompt is the bare question, as in a judgement's item, without system message or examples.
    `keep`: full: all. remove-hard: not those without a feasible line. revised-only: failing ones
    with a feasible line. The names are the paper's (arXiv 2410.17621), their meaning is our reading
    [derivation].
    """
    rows = []
    for row in labelled:
        hopeless = row["feasible_lines"] == 0
        if (keep != "full" and hopeless) or (keep == "revised-only" and row["passed"]):
            continue
        rows.append(
            {
                "id": row.get("id", ""),
                "prompt": row["question"],
                "steps": row["steps"],
                "labels": row["labels"],
            }
        )
    return rows


def label_summary(labelled: Iterable[Row]) -> dict[str, int]:
    """Results and cost of labelling."""
    rows = list(labelled)
    labels = [label for row in rows for label in row["labels"]]
    summed = {name: sum(row[name] for row in rows) for name in _COSTS}
    return {
        "programs": len(rows),
        "passed": sum(row["passed"] for row in rows),
        "right": labels.count(1),
        "wrong": labels.count(-1),
        "neutral": labels.count(0),
        **summed,
    }


_COSTS = ("calls", "completions", "executions", "tokens")
