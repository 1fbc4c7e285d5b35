"""Rows of benchmarks of judges as they are published, in the shapes of `preferences`. Pure.

    rewardbench-2   id, prompt, chosen[], rejected[], num_correct, subset       best of several
    judgebench      pair_id, source, question, response_A, response_B, label    pairs
    llmbar          input, output_1, output_2, label                            pairs
    auto-j          prompt, "response 1", "response 2", label, scenario         pairs
    processbench    id, problem, steps[], label, final_answer_correct           steps
    prmbench        idx, modified_question, modified_process[], error_steps[], classification

Their names are those of `assay eval-judge --format`. RewardBench and RM-Bench are pairs as they
are. What stands in a file as a list of rows becomes one with `jq -c '.[]'`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from assay.clients.rows.items import RowError, kind_of
from assay.clients.rows.preferences import is_best, is_pair

RowFormat = Literal[
    "plain", "rewardbench-2", "judgebench", "llmbar", "auto-j", "processbench", "prmbench"
]
FORMATS: tuple[RowFormat, ...] = get_args(RowFormat)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Published:
    """The keys by which a row is known, one that it lacks, and how it becomes a plain one."""

    keys: tuple[str, ...]
    plain: Callable[[Row], dict[str, Any]]
    lacks: str = ""

    def knows(self, row: Row) -> bool:
        """Whether a row has these keys."""
        return all(key in row for key in self.keys) and self.lacks not in row


def format_of(row: Row) -> RowFormat:
    """The benchmark whose keys a row has, else "plain"."""
    return next((name for name, known in _PUBLISHED.items() if known.knows(row)), "plain")


def as_plain(row: Row, form: RowFormat) -> Row:
    """A row of a benchmark in the shapes of `preferences`.

    Raises:
        RowError: it is no row of this benchmark.
    """
    if form == "plain":
        return row
    known = _PUBLISHED[form]
    missing = [key for key in known.keys if key not in row]
    if not missing:
        return known.plain(row)
    if format_of(row) == "plain" and (is_pair(row) or is_best(row) or "labels" in row):
        return row
    raise RowError(
        f"{missing[0]!r} is missing, which a row of {form} has; its keys are those of "
        f"{format_of(row)}, so correct the row or --format"
    )


def _rewardbench_2(row: Row) -> dict[str, Any]:
    chosen, rejected = _texts(row, "chosen"), _texts(row, "rejected")
    if row["num_correct"] != len(chosen):
        raise RowError(
            f"'num_correct' is {row['num_correct']!r} and 'chosen' has {len(chosen)} responses; "
            "they must agree"
        )
    return {
        "id": str(row.get("id", "")),
        "prompt": row["prompt"],
        "responses": [*chosen, *rejected],
        "correct": len(chosen),
        "subset": row.get("subset", ""),
    }


def _judgebench(row: Row) -> dict[str, Any]:
    a, b = row["response_A"], row["response_B"]
    known = {"A>B": (a, b), "B>A": (b, a)}
    return _preference(row, known, id_=row["pair_id"], prompt="question", subset="source")


def _llmbar(row: Row) -> dict[str, Any]:
    one, two = row["output_1"], row["output_2"]
    known = {1: (one, two), 2: (two, one)}
    return _preference(row, known, id_=row.get("id", ""), prompt="input", subset="subset")


def _auto_j(row: Row) -> dict[str, Any]:
    one, two = row["response 1"], row["response 2"]
    if row["label"] == 2:
        raise RowError("'label' is 2, a tie, which is no preference; such rows are left out")
    known = {0: (one, two), 1: (two, one)}
    return _preference(row, known, id_=row.get("id", ""), prompt="prompt", subset="scenario")


def _processbench(row: Row) -> dict[str, Any]:
    """The label is the index of the first wrong step; -1: all are right. Steps behind are open."""
    steps, first = _texts(row, "steps"), row["label"]
    if isinstance(first, bool) or not isinstance(first, int) or not -1 <= first < len(steps):
        raise RowError(
            f"'label' is {first!r} of {len(steps)} steps; write the index of the first wrong step "
            "from 0, or -1 for none"
        )
    right = len(steps) if first < 0 else first
    open_ends = [None] * (len(steps) - right - 1)
    name = str(row.get("id", ""))
    return {
        "id": name,
        "problem": row["problem"],
        "steps": steps,
        "labels": [1] * right + ([] if first < 0 else [0, *open_ends]),
        "subset": row.get("subset") or name.rpartition("-")[0],
    }


def _prmbench(row: Row) -> dict[str, Any]:
    steps, errors = _texts(row, "modified_process"), row["error_steps"]
    numbers = range(1, len(steps) + 1)
    if not isinstance(errors, list) or any(number not in numbers for number in errors):
        raise RowError(
            f"'error_steps' is {errors!r} of {len(steps)} steps; write their numbers, from 1"
        )
    return {
        "id": str(row["idx"]),
        "problem": row["modified_question"],
        "steps": steps,
        "labels": [int(number not in errors) for number in numbers],
        "classification": row["classification"],
    }


def _preference(
    row: Row, known: Mapping[Any, tuple[Any, Any]], *, id_: object, prompt: str, subset: str
) -> dict[str, Any]:
    """A pair whose label says which is chosen, and which rejected."""
    label = row["label"]
    if isinstance(label, bool) or not isinstance(label, str | int) or label not in known:
        raise RowError(f"'label' is {label!r}; write {' or '.join(map(repr, known))}")
    chosen, rejected = known[label]
    return {
        "id": str(id_),
        "prompt": row[prompt],
        "chosen": chosen,
        "rejected": rejected,
        "subset": row.get(subset, ""),
    }


def _texts(row: Row, key: str) -> list[str]:
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise RowError(f"{key!r} is {kind_of(value)}; write a list of texts")
    return value


_PUBLISHED: dict[RowFormat, _Published] = {
    "rewardbench-2": _Published(("prompt", "chosen", "rejected", "num_correct"), _rewardbench_2),
    "judgebench": _Published(
        ("pair_id", "question", "response_A", "response_B", "label"), _judgebench
    ),
    "llmbar": _Published(("input", "output_1", "output_2", "label"), _llmbar),
    "auto-j": _Published(("prompt", "response 1", "response 2", "label"), _auto_j),
    "processbench": _Published(("problem", "steps", "label"), _processbench, "labels"),
    "prmbench": _Published(
        ("idx", "modified_question", "modified_process", "error_steps", "classification"),
        _prmbench,
    ),
}
