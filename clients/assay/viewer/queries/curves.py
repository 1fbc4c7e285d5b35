"""Curves over steps or time, and histograms, a series for each value of a facet.

Where nothing was judged a curve has no value: a gap, never a line across it.
"""

from __future__ import annotations

import math
from typing import Any

from assay.viewer.index.schema import NO_STEP, SLOT_S
from assay.viewer.index.sums import BARS
from assay.viewer.queries.filters import Asking, BadQuery, KindRow
from assay.viewer.queries.groups import ratio

AXES = ("step", "time")
SERIES = ("verifier", "source", "phase", "version", "environment", "verdict")
MEASURES = ("reward", "faults", "length", "suspicions", "items", "truncated", "seconds", "trained")
_MOST_BINS = 120
_BARS = 50
_SUMS = (
    "items", "judged", "rewards", "lengths", "measured", "seconds", "timed", "trained", "learnt",
)  # fmt: skip
_OF_ITEMS = (
    "count(*), count(reward), total(reward), coalesce(sum(length), 0), count(length), "
    "total(seconds), count(seconds), total(trained), count(trained)"
)


def _key(kind: KindRow, by: str) -> str:
    if by not in SERIES:
        raise BadQuery(f"by={by[:40]!r} is none of {', '.join(SERIES)}")
    if by == "version":
        return f"{kind.verifier}@{kind.version}"
    value: str = getattr(kind, by)
    return value


def curves(asking: Asking, x: str, by: str, y: str) -> dict[str, Any]:
    """A value in each bin of the axis, and the items behind it.

    Raises:
        BadQuery: there is no such axis, series or measure.
    """
    if x not in AXES or y not in MEASURES:
        raise BadQuery(f"x is one of {', '.join(AXES)}, and y one of {', '.join(MEASURES)}")
    span = _span(asking, x)
    if span is None:
        return {"x": x, "y": y, "by": by, "width": 1, "bins": [], "series": []}
    low, high = span
    width = _width(high - low, _MOST_BINS, 1 if x == "step" else _finest(asking, high - low))
    first = math.floor(low / width)
    count = int(math.floor(high / width) - first) + 1
    series: dict[str, list[list[float]]] = {}
    for number, place, *sums in _rows(asking, x, width):
        kind = asking.kinds[number]
        at = place - first
        if 0 <= at < count:
            bins = series.setdefault(_key(kind, by), [[0.0] * 12 for _ in range(count)])
            extra = (
                sums[0] * bool(kind.fault),
                sums[0] * bool(kind.suspicions),
                sums[0] * (kind.truncated == "1"),
            )
            bins[at] = [a + b for a, b in zip(bins[at], (*sums, *extra), strict=True)]
    middle = (width - 1) / 2 if x == "step" else width / 2
    return {
        "x": x,
        "y": y,
        "by": by,
        "width": width,
        "bins": [(first + at) * width + middle for at in range(count)],
        "series": [
            {
                "key": key,
                "items": [int(one[0]) for one in bins],
                "values": [_value(one, y) for one in bins],
            }
            for key, bins in sorted(series.items())
        ],
    }


def _value(sums: list[float], y: str) -> float | None:
    items, judged, rewards, lengths, measured, seconds, timed, trained, learnt = sums[:9]
    faults, suspicious, truncated = sums[9:]
    pairs = {
        "reward": (rewards, judged),
        "length": (lengths, measured),
        "faults": (faults, items),
        "suspicions": (suspicious, items),
        "truncated": (truncated, items),
        "items": (items, bool(items)),
        "seconds": (seconds, timed),
        "trained": (trained, learnt),
    }
    return ratio(*pairs[y])


def _span(asking: Asking, x: str) -> tuple[float, float] | None:
    """The axis's ends: of the filter's range, or of what there is."""
    where, values = asking.of_cells()
    column = ("min(step), max(step)", "min(time_min), max(time_max)")[x == "time"]
    wanted = f" AND step <> {NO_STEP}" if x == "step" else ""
    low, high = asking.database.execute(
        f"SELECT {column} FROM cells WHERE {where}{wanted}",  # noqa: S608
        values,
    ).fetchone()
    if low is None:
        return None
    least, most = asking.asked.ranges.get(x, (None, None))
    low = low if least is None else max(low, least)
    high = high if most is None else min(high, most)
    return (low, high) if low <= high else None


def _finest(asking: Asking, span: float) -> int:
    """Seconds that a bin has at least: sums are kept by the minute, items have their own times."""
    return 1 if not asking.by_cells or span < _MOST_BINS * SLOT_S else SLOT_S


def _width(span: float, most: int, finest: int) -> int:
    """1, 2 or 5 times a power of ten, or of minutes, so that there are at most so many bins."""
    steps = [finest * factor * 10**power for power in range(12) for factor in (1, 2, 5)]
    found: int = next(one for one in steps if span / one < most - 1)
    return found


def _rows(asking: Asking, x: str, width: int) -> list[tuple[Any, ...]]:
    """Kind, bin and sums."""
    from_cells = asking.by_cells and (x == "step" or width % SLOT_S == 0)
    if from_cells:
        where, values = asking.of_cells()
        place = f"step / {width}" if x == "step" else f"slot / {width // SLOT_S}"
        table, sums = "cells", ", ".join(f"sum({name})" for name in _SUMS)
        axis = f"step <> {NO_STEP}" if x == "step" else "time_min IS NOT NULL"
    else:
        where, values = asking.where()
        place = f"step / {width}" if x == "step" else f"CAST(time_s / {width} AS INTEGER)"
        table, sums = "items", _OF_ITEMS
        axis = "step IS NOT NULL" if x == "step" else "time_s IS NOT NULL"
    return asking.database.execute(
        f"SELECT kind, {place}, {sums} FROM {table} WHERE {where} AND {axis} GROUP BY 1, 2",  # noqa: S608
        values,
    ).fetchall()


def histogram(asking: Asking, of: str, by: str) -> dict[str, Any]:
    """Items by reward (to four digits) or length; edges are one more than counts.

    Raises:
        BadQuery: there is no such measure or series.
    """
    if of not in BARS:
        raise BadQuery(f"of={of[:40]!r} is none of {', '.join(BARS)}")
    where, values = asking.where()
    counted = _counted(asking, of)
    if counted is None:
        counted = asking.database.execute(
            f"SELECT kind, {BARS[of]}, count(*) FROM items WHERE {where} "  # noqa: S608
            f"AND {of} IS NOT NULL GROUP BY 1, 2",
            values,
        ).fetchall()
    if not counted:
        return {"of": of, "by": by, "edges": [], "series": []}
    low, high = min(row[1] for row in counted), max(row[1] for row in counted)
    width = _bar_width(low, high, of)
    first = math.floor(low / width + 1e-9)
    count = int(math.floor(high / width + 1e-9) - first) + 1
    series: dict[str, list[int]] = {}
    for number, value, items in counted:
        bins = series.setdefault(_key(asking.kinds[number], by), [0] * count)
        bins[min(count - 1, max(0, math.floor(value / width + 1e-9) - first))] += items
    digits = 0 if width >= 1 else 6
    return {
        "of": of,
        "by": by,
        "edges": [round((first + at) * width, digits) for at in range(count + 1)],
        "series": [{"key": key, "counts": bins} for key, bins in sorted(series.items())],
    }


def _counted(asking: Asking, of: str) -> list[tuple[Any, ...]] | None:
    """Kind, value and items from what is kept; None where items must be asked."""
    if not asking.by_bars:
        return None
    numbers = ", ".join(map(str, sorted(asking.admitted)))
    return asking.database.execute(
        f"SELECT kind, value, items FROM bars WHERE measure = ? AND kind IN ({numbers})",  # noqa: S608
        (of,),
    ).fetchall()


def _bar_width(low: float, high: float, of: str) -> float:
    if of == "length":
        finest = 1 if high < 1024 else 16 if high < 16384 else 256
        found: float = next(
            finest * 2**power for power in range(50) if (high - low) / (finest * 2**power) < _BARS
        )
        return found
    for power in range(-3, 300):
        for factor in (1, 2, 5):
            width = factor * 10.0**power
            if (high - low) / width < _BARS:
                return width
    return max(1.0, high - low)
