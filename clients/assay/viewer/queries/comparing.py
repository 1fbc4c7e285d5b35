"""Two verifiers, or two versions of one, on the same items: equal prompt, response, reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from assay.viewer.queries.filters import Asking, BadQuery, identity_of
from assay.viewer.queries.lists import rows_of

NEWEST = 20_000
_EQUAL = 1e-9
_MOST = 200

Pair = tuple[int, int, float | None, int, int, float | None]
"""Number, kind and reward of the first's entry, then of the second's."""


def compare(
    asking: Asking,
    names: tuple[str, str],
    limit: int,
    over: int = NEWEST,
    cell: tuple[str, str] = ("", ""),
) -> dict[str, Any]:
    """Verdicts against verdicts, mean rewards, faults of each, and items that differ.

    Of a verifier's several entries on an item its newest counts. A fault is no disagreement.

    Args:
        asking: of which items.
        names: two of VERIFIER or VERIFIER@VERSION.
        limit: most examples, of the newest items.
        over: most entries of the one that has fewer, the newest; the answer says `of` how many.
        cell: the verdicts of both that examples have; empty for any, where rewards differ.

    Raises:
        BadQuery: both are one.
    """
    first, second = names
    if not first or not second or first == second:
        raise BadQuery("name two verifiers as a=NAME or a=NAME@VERSION, and b=...")
    sides = [
        [
            number
            for number, kind in asking.admitted.items()
            if name in (kind.verifier, f"{kind.verifier}@{kind.version}")
        ]
        for name in (first, second)
    ]
    counts = asking.counts()
    entries = [sum(counts.get(number, 0) for number in those) for those in sides]
    swapped = entries[1] < entries[0]
    few, many = sides[::-1] if swapped else sides
    found = _pairs(asking, few, many, over)
    pairs = [(*pair[3:], *pair[:3]) for pair in found] if swapped else found
    told = {"a": first, "b": second, "over": min(over, *entries), "of": min(entries)}
    return {**told, **_summed(asking, pairs, max(1, min(limit, _MOST)), cell)}


def _pairs(asking: Asking, few: Sequence[int], many: Sequence[int], over: int) -> list[Pair]:
    """The newest items of some kinds with their newest entries, each with its newest of others."""
    where, values = asking.where(few)
    newest: dict[bytes, tuple[int, int, float | None]] = {}
    for item, *entry in asking.database.execute(
        f"SELECT item, number, kind, reward FROM {asking.items_by_time} WHERE {where} "  # noqa: S608
        "AND item IS NOT NULL ORDER BY time_s DESC, number DESC LIMIT ?",
        (*values, over),
    ):
        newest.setdefault(item, tuple(entry))
    asking.database.execute("CREATE TEMP TABLE IF NOT EXISTS pair (item, place INTEGER)")
    asking.database.execute("DELETE FROM temp.pair")
    asking.database.executemany(
        "INSERT INTO temp.pair VALUES (?, ?)",
        sorted((item, place) for place, item in enumerate(newest)),
    )
    where, values = asking.where(many)
    where = where.replace("kind IN", "+kind IN", 1)  # one look into the index for all kinds
    others = asking.database.execute(
        "SELECT i.number, i.kind, i.reward FROM temp.pair AS pair LEFT JOIN items AS i ON i.number "  # noqa: S608
        f"= (SELECT number FROM items WHERE item = pair.item AND {where} "
        "ORDER BY time_s DESC, number DESC LIMIT 1) ORDER BY pair.place",
        values,
    ).fetchall()
    return [
        (*own, *other)
        for own, other in zip(newest.values(), others, strict=True)
        if other[0] is not None
    ]


def _summed(
    asking: Asking, pairs: Sequence[Pair], limit: int, cell: tuple[str, str]
) -> dict[str, Any]:
    kinds = asking.kinds
    verdicts: Counter[tuple[str, str]] = Counter()
    faults: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    totals, same = [0.0, 0.0], 0
    chosen: list[Pair] = []
    for pair in pairs:
        (_, first, reward), (_, second, other) = pair[:3], pair[3:]
        for kind, counted in ((first, faults[0]), (second, faults[1])):
            if reason := kinds[kind].fault:
                counted[reason] += 1
        if reward is None or other is None:
            continue
        said = kinds[first].verdict, kinds[second].verdict
        verdicts[said] += 1
        totals[0] += reward
        totals[1] += other
        is_same = abs(reward - other) <= _EQUAL
        same += is_same
        wanted = all(one in ("", two) for one, two in zip(cell, said, strict=True))
        if wanted and (any(cell) or not is_same) and len(chosen) <= limit:
            chosen.append(pair)
    judged = verdicts.total()
    numbers = [number for pair in chosen for number in (pair[0], pair[3])]
    rows = {row["id"]: row for row in rows_of(asking, numbers)}
    ids = [[identity_of(number, asking.slugs) for number in (pair[0], pair[3])] for pair in chosen]
    return {
        "judged": judged,
        "faulted": len(pairs) - judged,
        "same": same,
        "means": [total / judged for total in totals] if judged else [None, None],
        "verdicts": [[*pair, items] for pair, items in verdicts.most_common()],
        "faults": [
            [side, reason, items]
            for side, counted in zip("ab", faults, strict=True)
            for reason, items in counted.most_common()
        ],
        "examples": [
            {"a": rows[a], "b": rows[b]} for a, b in ids[:limit] if a in rows and b in rows
        ],
        "more": len(chosen) > limit,
    }
