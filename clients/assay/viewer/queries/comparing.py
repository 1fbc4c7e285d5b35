"""Two verifiers, or two versions of one, on the same items: equal prompt, response, reference."""

from __future__ import annotations

from collections import Counter
from typing import Any

from assay.viewer.queries.filters import Asking, BadQuery, identity_of
from assay.viewer.queries.lists import rows_of

_EQUAL = 1e-9
_MOST = 200


def compare(
    asking: Asking, first: str, second: str, limit: int, cell: tuple[str, str] = ("", "")
) -> dict[str, Any]:
    """Verdicts against verdicts, mean rewards, faults of each, and items that differ.

    Of a verifier's several entries on an item its newest counts. A fault is no disagreement.

    Args:
        asking: of which items.
        first: VERIFIER or VERIFIER@VERSION.
        second: the same.
        limit: most examples.
        cell: the verdicts of both that examples have; empty for any, where rewards differ.

    Raises:
        BadQuery: both are one.
    """
    if not first or not second or first == second:
        raise BadQuery("name two verifiers as a=NAME or a=NAME@VERSION, and b=...")
    where, values = asking.where()
    sides = [
        [
            number
            for number, kind in asking.admitted.items()
            if _is(name, kind.verifier, kind.version)
        ]
        for name in (first, second)
    ]
    newest = ", ".join(
        f"max(CASE WHEN kind IN ({', '.join(map(str, those))}) THEN "
        "CAST(coalesce(time_s, 0) * 1000 AS INTEGER) * 2097152 + kind END)"
        for those in sides
    )
    both = ", ".join(map(str, {*sides[0], *sides[1]}))
    pairs = (
        f"SELECT item, {newest.replace(', max(', ' AS a, max(', 1)} AS b FROM items "  # noqa: S608
        f"WHERE {where} AND kind IN ({both}) AND item IS NOT NULL GROUP BY item "
        "HAVING a IS NOT NULL AND b IS NOT NULL"
    )
    kinds = asking.kinds
    told: dict[str, Any] = {"a": first, "b": second}
    rows = asking.database.execute(
        f"SELECT a & 2097151 AS x, b & 2097151 AS y, count(*) FROM ({pairs}) GROUP BY x, y",  # noqa: S608
        values,
    ).fetchall()
    verdicts: Counter[tuple[str, str]] = Counter()
    faults: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    faulted = 0
    for x, y, items in rows:
        a, b = kinds[x], kinds[y]
        for kind, side in ((a, 0), (b, 1)):
            if kind.fault:
                faults[side][kind.fault] += items
        if a.verdict and b.verdict:
            verdicts[a.verdict, b.verdict] += items
        else:
            faulted += items
    judged = verdicts.total()
    told |= {
        "judged": judged,
        "faulted": faulted,
        "verdicts": [[*pair, items] for pair, items in verdicts.most_common()],
        "faults": [
            [side, reason, items]
            for side, counts in zip("ab", faults, strict=True)
            for reason, items in counts.most_common()
        ],
    }
    wanted = f"abs(ra - rb) > {_EQUAL}"
    if any(cell):
        wanted = "1"
    for letter, verdict in zip("ab", cell, strict=True):
        if verdict:
            those = [str(one) for one, kind in kinds.items() if kind.verdict == verdict]
            wanted += f" AND pair.{letter} & 2097151 IN ({', '.join(those)})"
    return {**told, **_rewards(asking, pairs, values, (limit, wanted), judged)}


def _is(name: str, verifier: str, version: str) -> bool:
    return name in (verifier, f"{verifier}@{version}")


def _rewards(
    asking: Asking, pairs: str, values: list[Any], chosen: tuple[int, str], judged: int
) -> dict[str, Any]:
    """Means, how many are the same, and the first that are wanted as examples."""
    found = [
        f"(SELECT {column} FROM items AS i WHERE i.item = pair.item AND i.kind = pair.{side} & "  # noqa: S608
        f"2097151 ORDER BY time_s DESC, number DESC LIMIT 1)"
        for column in ("reward", "number")
        for side in "ab"
    ]
    each = f"SELECT {found[0]} AS ra, {found[1]} AS rb, item, a, b FROM ({pairs}) AS pair"  # noqa: S608
    total_a, total_b, same = asking.database.execute(
        f"SELECT total(ra), total(rb), sum(abs(ra - rb) <= {_EQUAL}) FROM ({each}) "  # noqa: S608
        "WHERE ra IS NOT NULL AND rb IS NOT NULL",
        values,
    ).fetchone()
    limit, wanted = max(1, min(chosen[0], _MOST)), chosen[1]
    examples = asking.database.execute(
        f"SELECT {found[2]}, {found[3]}, ra, rb FROM ({each}) AS pair "  # noqa: S608
        f"WHERE {wanted} LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    rows = {
        row["id"]: row
        for row in rows_of(asking, [number for pair in examples for number in pair[:2]])
    }
    ids = [[identity_of(number, asking.slugs) for number in pair[:2]] for pair in examples]
    return {
        "same": same or 0,
        "means": [total_a / judged, total_b / judged] if judged else [None, None],
        "examples": [
            {"a": rows[a], "b": rows[b]} for a, b in ids[:limit] if a in rows and b in rows
        ],
        "more": len(examples) > limit,
    }
