"""Curves of a run's own metrics, from metrics.jsonl and evals.jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from assay.viewer.index import narrow
from assay.viewer.sources import read_lines

MOST_POINTS = 1_000


def flat(row: Mapping[str, Any]) -> dict[str, float | None]:
    """Numbers of a row by name; of an object "NAME/PART". None for what is none."""
    found: dict[str, float | None] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{name}/{part}": narrow.real(one) for part, one in value.items()}
        elif value is None or isinstance(value, int | float):
            found[name] = narrow.real(value)
    return found


def metrics(runs: Mapping[str, Path], names: Iterable[str] = ()) -> dict[str, Any]:
    """Names with at least one number, and the series of those that are asked for."""
    wanted = list(names)
    known: dict[str, None] = {}
    series = []
    for slug, path in runs.items():
        rows = [(row.get("step"), flat(row)) for row in read_lines(path / "metrics.jsonl")[0]]
        evals = read_lines(path / "evals.jsonl")[0]
        for prefix, those in (
            ("", rows),
            ("eval/", [(row.get("step"), flat(row)) for row in evals]),
        ):
            steps = [(step, row) for step, row in those if narrow.whole(step) is not None]
            there = {
                name: None
                for _, row in steps
                for name, value in row.items()
                if value is not None and name != "step"
            }
            known |= {f"{prefix}{name}": None for name in there}
            for full in wanted:
                name = full.removeprefix(prefix)
                if full.startswith(prefix) and name in there:
                    points = sorted(((step, row.get(name)) for step, row in steps), key=_step)
                    series.append({"source": slug, "name": full, "points": thinned(points)})
    return {"names": list(known), "series": series}


def thinned(points: list[tuple[Any, float | None]], most: int = MOST_POINTS) -> list[list[Any]]:
    """At most so many points: of each stretch the least, the greatest, and a gap if it has one."""
    if len(points) <= most:
        return [list(one) for one in points]
    width = -(-len(points) // max(1, most // 3))
    kept: list[list[Any]] = []
    for start in range(0, len(points), width):
        part = points[start : start + width]
        numbers = [one for one in part if one[1] is not None]
        chosen = {min(numbers, key=_value), max(numbers, key=_value)} if numbers else set()
        gaps = [one for one in part if one[1] is None]
        kept += [list(one) for one in sorted(chosen | set(gaps[:1]), key=lambda one: one[0])]
    return kept


def _step(point: tuple[Any, float | None]) -> Any:
    return point[0]


def _value(point: tuple[Any, float | None]) -> float:
    return point[1] or 0.0
