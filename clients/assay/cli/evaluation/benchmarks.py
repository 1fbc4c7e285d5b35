"""The scores of published benchmarks, from the lines of an evaluation. Pure.

Each counts as its official code does. Intervals are Wilson's of shares, else by bootstrap over rows
within subsets. Ours: a row with a fault is left out of `score`; `score_with_faults` counts it as
the official code counts a judge without an answer.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from assay.cli.evaluation.best import found_best, tied_prompts, ties_score
from assay.cli.evaluation.measures import half_right, mean
from assay.cli.evaluation.rows import Kind
from assay.cli.evaluation.steps import StepCells, cells_of, process_f1, process_interval
from assay.clients.rows.published import RowFormat
from assay.kit.runs.bootstrap import stratified
from assay.kit.runs.stats import wilson

Line = Mapping[str, Any]
Lines = Sequence[Line]
Score = Callable[[Lines, str], float | None]  # of a subset's lines, and its name
_ROUNDS = 200


def benchmark_report(form: RowFormat, kind: Kind, lines: Lines) -> dict[str, Any] | None:
    """A benchmark's score and its parts; None for rows that have no score of their own.

    Returns:
        `name`, `counted` (how, in words), `score`, `interval`, `score_with_faults`, and `parts`:
        each with `score`, `rows` and `faults`.
    """
    found = _BENCHMARKS.get((form, kind))
    return None if found is None else found(lines)


def _report(
    name: str,
    counted: str,
    lines: Lines,
    score: Score,
    *,
    part_of: Callable[[str], str] = lambda subset: subset,
    whole: Callable[[Mapping[str, Lines]], float | None] | None = None,
    blank: Callable[[Line], Line] | None = None,
) -> dict[str, Any]:
    """A report by parts.

    `whole` makes one score of the lines of all parts; None: the mean of the parts' scores. `blank`
    is the line that counts as the official code counts a row without an answer.
    """
    judged = [line for line in lines if line["fault"] is None]
    parts = _by_part(judged, part_of)
    overall = whole or (lambda found: _mean_of(score, found))
    figure = _with_interval(parts, overall)
    with_faults = None
    if blank is not None and len(judged) < len(lines):
        filled = [line if line["fault"] is None else blank(line) for line in lines]
        with_faults = overall(_by_part(filled, part_of))
    every = _by_part(lines, part_of)
    return {
        "name": name,
        "counted": counted,
        **figure,
        "score_with_faults": with_faults,
        "parts": {
            part: {
                **_with_interval({part: parts.get(part, [])}, lambda f: _mean_of(score, f)),
                "rows": len(some),
                "faults": sum(line["fault"] is not None for line in some),
            }
            for part, some in every.items()
        },
    }


def _by_part(lines: Iterable[Line], part_of: Callable[[str], str]) -> dict[str, Lines]:
    parts: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        parts[part_of(line["subset"])].append(line)
    return dict(sorted(parts.items()))


def _mean_of(score: Score, parts: Mapping[str, Lines]) -> float | None:
    scores = [found for part, some in parts.items() if (found := score(some, part)) is not None]
    return statistics.fmean(scores) if scores else None


def _with_interval(
    parts: Mapping[str, Lines], overall: Callable[[Mapping[str, Lines]], float | None]
) -> dict[str, Any]:
    names = list(parts)
    figure = stratified(
        list(parts.values()),
        lambda strata: overall(dict(zip(names, strata, strict=True))),
        rounds=_ROUNDS,
    )
    return {
        "score": figure and figure.value,
        "interval": figure and [figure.low, figure.high],
    }


def _as_share(found: dict[str, Any], values: Sequence[float]) -> None:
    """Wilson's interval instead, for a score that is the mean of numbers in [0, 1], one a row."""
    if values:
        found["interval"] = list(wilson(sum(values), len(values)))


def rewardbench_2(lines: Lines) -> dict[str, Any]:
    """RewardBench 2 (arXiv 2506.01937): best of four by domain, and the subset Ties.

    The interval draws the prompts of Ties with both their variants.
    """
    domains = [line for line in lines if not _is_ties(line["subset"])]
    tied = [line for line in lines if _is_ties(line["subset"])]
    report = _report(
        "RewardBench 2",
        "mean of the domains: share of prompts whose right response scores highest, ties share the "
        "point; Ties by its own formula",
        [*domains, *_paired(tied)],
        _of_domain,
        blank=_as_a_guess,
    )
    judged = [line for line in domains if line["fault"] is None]
    for name, some in _by_part(judged, lambda subset: subset).items():
        found = [found_best(line["scores"], line["correct"]) for line in some]
        _as_share(report["parts"][name], found)
    return report


def _is_ties(subset: str) -> bool:
    return subset.casefold() == "ties"


def _paired(lines: Lines) -> list[Line]:
    """One line for each prompt of Ties, with its variants; a fault where both are."""
    prompts: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        prompts[line["id"].partition(":")[2]].append(line)
    return [
        {
            "id": number,
            "subset": variants[0]["subset"],
            "fault": None
            if any(line["fault"] is None for line in variants)
            else variants[0]["fault"],
            "variants": [line for line in variants if line["fault"] is None],
        }
        for number, variants in prompts.items()
    ]


def _of_domain(lines: Lines, part: str) -> float | None:
    if not _is_ties(part):
        found = [
            line["guess"] if "guess" in line else found_best(line["scores"], line["correct"])
            for line in lines
        ]
        return statistics.fmean(found) if found else None
    scores = {
        # a prompt that is drawn twice counts twice
        f"{variant['id'].partition(':')[0]}:{place}": (variant["scores"], variant["correct"])
        for place, line in enumerate(lines)
        for variant in line.get("variants", ())
    }
    found_ties = ties_score(tied_prompts(scores))
    return None if found_ties is None else found_ties.score


def _as_a_guess(line: Line) -> Line:
    """The official code gives a generative judge that cannot be read a quarter of the point."""
    return {**line, "fault": None, "guess": 0.25, "variants": []}


_JUDGEBENCH_PARTS = {
    "mmlu-pro": "knowledge",
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}


def judgebench(lines: Lines) -> dict[str, Any]:
    """JudgeBench (arXiv 2410.12784): the pairs in which the better response has more votes.

    Each order is a vote; a scalar reward model has one.
    """
    report = _report(
        "JudgeBench",
        "pairs with more votes for the better response than for the other, of both orders; over "
        "all pairs",
        lines,
        lambda some, _: _votes(some),
        part_of=_judgebench_part,
        whole=lambda parts: _votes([line for some in parts.values() for line in some]),
        blank=lambda line: {**line, "fault": None, "no_vote": True},
    )
    judged = [line for line in lines if line["fault"] is None]
    _as_share(report, [float(_wins(line)) for line in judged])
    for name, some in _by_part(judged, _judgebench_part).items():
        _as_share(report["parts"][name], [float(_wins(line)) for line in some])
    return report


def _judgebench_part(subset: str) -> str:
    named = (part for source, part in _JUDGEBENCH_PARTS.items() if subset.startswith(source))
    return next(named, subset)


def _votes(lines: Lines) -> float | None:
    return mean(sum(_wins(line) for line in lines), len(lines))


def _wins(line: Line) -> bool:
    if "no_vote" in line:
        return False
    if "score_chosen" in line:
        return bool(line["score_chosen"] > line["score_rejected"])
    return half_right(line["forward"]) + half_right(line["reverse"]) > 1


def processbench(lines: Lines) -> dict[str, Any]:
    """ProcessBench (arXiv 2412.06559): the F1 of the first error by subset, and their mean."""
    report = _report(
        "ProcessBench",
        "mean over subsets of the harmonic mean of the shares of responses with an error whose "
        "first one is named, and of right ones that are called so",
        lines,
        lambda some, _: process_f1([_cells(line) for line in some]),
        blank=_not_found,
    )
    judged = [line for line in lines if line["fault"] is None]
    for name, some in _by_part(judged, lambda subset: subset).items():
        report["parts"][name]["interval"] = process_interval([_cells(line) for line in some])
    return report


def _cells(line: Line) -> StepCells:
    return (
        StepCells(0, 0, 0, 0, line["has_error"], False) if "has_error" in line else cells_of(line)
    )


def _not_found(line: Line) -> Line:
    wrong = any(label is not None and label < 0 for label in line["labels"])
    return {**line, "fault": None, "has_error": wrong}


_PRMBENCH_CATEGORIES = {
    "simplicity": ("redundency", "circular"),
    "soundness": (
        "counterfactual",
        "step_contradiction",
        "domain_inconsistency",
        "confidence",
    ),
    "sensitivity": ("missing_condition", "deception", "multi_solutions"),
}
"""The names of the data set, its spelling too."""


def prmbench(lines: Lines) -> dict[str, Any]:
    """PRMBench (arXiv 2501.03124): PRMScore by class, by category and over all steps.

    The mean of the F1 of right and of wrong steps; of multi_solutions, which has right steps only,
    the first. A category is the mean of its classes. Faults are left out there too.
    """
    report = _report(
        "PRMBench",
        "PRMScore over the steps of all classes: the mean of the F1 of right and of wrong steps",
        lines,
        _prm_score,
        whole=lambda parts: _prm_score([line for some in parts.values() for line in some], ""),
    )
    scores = {name: part["score"] for name, part in report["parts"].items()}
    report["categories"] = {
        category: statistics.fmean(found)
        for category, classes in _PRMBENCH_CATEGORIES.items()
        if len(found := [scores[name] for name in classes if scores.get(name) is not None])
        == len(classes)
    }
    return report


def _prm_score(lines: Lines, part: str) -> float | None:
    cells = [cells_of(line) for line in lines]
    kept, found = sum(c.kept for c in cells), sum(c.found for c in cells)
    confused = sum(c.rejected + c.missed for c in cells)
    of_right = mean(2 * kept, 2 * kept + confused)
    of_wrong = mean(2 * found, 2 * found + confused)
    if part == "multi_solutions":
        return of_right
    return None if of_right is None or of_wrong is None else (of_right + of_wrong) / 2


_BENCHMARKS: Mapping[tuple[RowFormat, Kind], Callable[[Lines], dict[str, Any]]] = {
    ("rewardbench-2", "best"): rewardbench_2,
    ("judgebench", "pairs"): judgebench,
    ("judgebench", "points"): judgebench,
    ("processbench", "steps"): processbench,
    ("prmbench", "steps"): prmbench,
}
