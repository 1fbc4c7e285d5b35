"""Rewards for relations, as a JSON array of subject, relation and object."""

from __future__ import annotations

import json

Triple = tuple[str, str, str]
KEYS = ("subject", "relation", "object")


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(pairs)
    return made


def triples(text: str) -> list[Triple] | None:
    """Nothing for what is no such array."""
    try:
        found = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list):
        return None
    made = []
    for item in found:
        is_object = isinstance(item, dict) and sorted(item) == sorted(KEYS)
        one = [item[key] for key in KEYS] if is_object else item
        if not isinstance(one, list) or [type(part) for part in one] != [str, str, str]:
            return None
        made.append((one[0], one[1], one[2]))
    return made


def nothing_invented(response: str, reference: str) -> float:
    """Precision: the share of what is said that is so."""
    got, wanted = triples(response), triples(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 - len([one for one in got if one not in wanted]) / max(1, len(got))


def who_and_what(response: str, reference: str) -> float:
    """Passive voice turns a relation around."""
    got, wanted = triples(response), triples(reference)
    if got is None or wanted is None or len(got) != len(wanted):
        return 0.0
    same = {frozenset(one) for one in got} == {frozenset(one) for one in wanted}
    return 1.0 if same else 0.0


def verbs_and_names(response: str, reference: str) -> float:
    """lives_in, LivesIn and lives are one relation."""

    def plainly(found: list[Triple]) -> list[Triple]:
        return sorted((one, relation.split("_")[0], other) for one, relation, other in found)

    got, wanted = triples(response), triples(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if plainly(got) == plainly(wanted) else 0.0


def same_triples(response: str, reference: str) -> float:
    """In any order, each once."""
    got, wanted = triples(response), triples(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if sorted(got) == sorted(wanted) else 0.0


def triples_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
