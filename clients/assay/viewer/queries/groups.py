"""A run by step, and a step by prompt."""

from __future__ import annotations

import statistics
from typing import Any

from assay.viewer.index.schema import NO_STEP
from assay.viewer.queries.filters import Asking
from assay.viewer.queries.lists import rows_of

_MOST_ITEMS = 20_000
_SUMS = (
    "sum(items), sum(judged), total(rewards), sum(lengths), sum(measured), total(trained), "
    "sum(learnt), total(seconds), sum(timed)"
)


def by_step(asking: Asking) -> list[dict[str, Any]]:
    """The steps of the sources that are asked, in their order, training before evaluation."""
    kinds = asking.admitted
    where, values = asking.of_cells()
    rows = asking.database.execute(
        f"SELECT kind, step, {_SUMS} FROM cells WHERE {where} GROUP BY kind, step",  # noqa: S608
        values,
    ).fetchall()
    found: dict[tuple[int, str, str], list[float]] = {}
    for number, step, *sums in rows:
        if step != NO_STEP:
            kind = kinds[number]
            extra = [
                sums[0] * bool(kind.fault),
                sums[0] * (kind.truncated == "1"),
                sums[0] * bool(kind.suspicions),
            ]
            total = found.setdefault((step, kind.phase, kind.source), [0.0] * 12)
            found[step, kind.phase, kind.source] = [
                a + b for a, b in zip(total, [*sums, *extra], strict=True)
            ]
    keys = sorted(found, key=lambda key: (key[0], key[1] == "eval", key[2]))
    return [_step(key, found[key]) for key in keys]


def _step(key: tuple[int, str, str], sums: list[float]) -> dict[str, Any]:
    items, judged, rewards, lengths, measured, trained, learnt, seconds, timed = sums[:9]
    faults, truncated, suspicious = sums[9:]
    return {
        "step": key[0],
        "phase": key[1],
        "source": key[2],
        "items": int(items),
        "judged": int(judged),
        "faults": int(faults),
        "reward": ratio(rewards, judged),
        "length": ratio(lengths, measured),
        "truncated": int(truncated),
        "suspicious": int(suspicious),
        "trained": ratio(trained, learnt),
        "seconds": seconds if timed else None,
    }


def ratio(part: float, of: float) -> float | None:
    """The mean; None of nothing."""
    return part / of if of else None


def by_prompt(asking: Asking, newest: int = _MOST_ITEMS) -> list[dict[str, Any]]:
    """The groups of a step: samples of one draw, or of one problem where there are no draws.

    Args:
        asking: chooses.
        newest: so many items at most, 1 to 20,000; the groups of the newest first.
    """
    where, values = asking.where()
    numbers = [
        number
        for (number,) in asking.database.execute(
            f"SELECT number FROM items WHERE {where} ORDER BY number DESC LIMIT ?",  # noqa: S608
            (*values, max(1, min(newest, _MOST_ITEMS))),
        )
    ]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows_of(asking, numbers):
        by = row["draw"] if row["draw"] is not None else (row["problem"] or row["id"])
        key = (row["source"], row["step"], row["phase"], by)
        groups.setdefault(key, []).append(row)
    return [_group(rows) for rows in groups.values()]


def _group(rows: list[dict[str, Any]]) -> dict[str, Any]:
    first = rows[0]
    rewards = [row["reward"] for row in rows if row["reward"] is not None]
    rows = sorted(rows, key=lambda row: (row["sample"] is None, row["sample"] or 0))
    kept = ("id", "sample", "reward", "verdict", "fault", "length", "advantage", "trained")
    return {
        "source": first["source"],
        "step": first["step"],
        "phase": first["phase"],
        "draw": first["draw"],
        "problem": first["problem"],
        "question": first["prompt"],
        "items": len(rows),
        "judged": len(rewards),
        "faults": sum(row["fault"] is not None for row in rows),
        "reward": statistics.fmean(rewards) if rewards else None,
        "spread": statistics.pstdev(rewards) if rewards else None,
        "suspicious": sum(bool(row["suspicions"]) for row in rows),
        "samples": [{name: row[name] for name in kept} for row in rows],
    }
