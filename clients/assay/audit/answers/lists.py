"""Near misses of lists. Pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

from assay.audit.answers.shapes import OTHERS, Miss, permuted
from assay.audit.answers.terms import is_once
from assay.audit.answers.truth import (
    Truth,
    is_polar,
    links_of,
    read_number,
)


def _against(part: str) -> str:
    """The opposite of yes or no, as it is written."""
    pairs = {"true": "false", "false": "true", "yes": "no", "no": "yes"}
    other = pairs[part.casefold()]
    return other.upper() if part.isupper() else other.title() if part.istitle() else other


def _turned_truths(truth: Truth) -> Iterator[Miss]:
    parts, turned = truth.parts, [_against(part) for part in truth.parts]
    yield "list-part", truth.listed([turned[0], *parts[1:]]), "one is turned"
    yield "list-part", truth.listed([*parts[:-1], turned[-1]]), "one is turned"
    yield "list-part", truth.listed(turned), "all are turned"


def _turned_links(truth: Truth) -> Iterator[Miss]:
    """An arrow goes the other way, or two arrows end at each other's end."""
    links = links_of(truth.parts)
    known = {(one[1], one[3]) for one in links}
    for place in dict.fromkeys((0, len(links) - 1)):
        one = links[place]
        if (one[3], one[1]) not in known:
            new = [*truth.parts[:place], f"{one[3]}{one[2]}{one[1]}", *truth.parts[place + 1 :]]
            yield "list-part", truth.listed(new), "an arrow is turned"
    a, b = links[0], links[-1]
    if a[1] != b[1] and a[3] != b[3] and not {(a[1], b[3]), (b[1], a[3])} & known:
        new = [f"{a[1]}{a[2]}{b[3]}", *truth.parts[1:-1], f"{b[1]}{b[2]}{a[3]}"]
        yield "list-part", truth.listed(new), "two arrows end at each other's end"


def near_lists(truth: Truth) -> Iterator[Miss]:
    """Lists with a part too few, too many, another, or elsewhere."""
    parts = list(truth.parts)
    numbers = any(read_number(part) for part in parts)
    letters = all(len(part) == 1 and part.isalpha() for part in parts)
    polar = all(is_polar(part) for part in parts)
    extras = ("999", "998") if numbers else tuple("EDCBAF") if letters else OTHERS
    extra = next(one for one in (*extras, "zinc") if one not in parts)
    if links_of(parts):
        yield from _turned_links(truth)
        extra = "zinc->wolfram"
    if polar:
        yield from _turned_truths(truth)
        extra = parts[-1]
    if len(set(parts)) == len(parts) or polar or truth.order == "said":
        yield "list-part", truth.listed(parts[:-1]), "its last part is left out"
        yield "list-part", truth.listed(parts[1:]), "its first part is left out"
    yield "list-part", truth.listed([*parts, extra]), "with a part too many"
    if not polar:
        yield "list-part", truth.listed([extra, *parts[1:]]), "with one part replaced"
        yield "list-part", truth.listed([*parts, extra, extra]), "with a wrong part twice"
    for part in parts if letters else ():
        before = chr(ord(part) - 1)
        if before.isalpha() and before not in parts:
            rest = [one for one in parts if one != part]
            yield "list-part", truth.listed([*rest, before, before]), "the letter before it, twice"
            break
    if len(parts) > 2 and not polar:
        changed = [parts[0], extra, *parts[2:]]
        yield "list-part", truth.listed(changed), "with one part in the middle replaced"
    if numbers:
        yield from _joined(truth, parts)
        yield from _like_sums(truth, parts)
    if truth.order != "free":
        yield from _reordered(truth, parts)


def _joined(truth: Truth, parts: list[str]) -> Iterator[Miss]:
    """What parts the numbers of a list is left out, or a number's digits are exchanged."""
    yield (
        "run-together",
        "".join((truth.ends[0], *parts, truth.ends[1])),
        "without what parts it",
    )
    if len(parts) > 2:
        joined = truth.listed([parts[0] + parts[1], *parts[2:]])
        yield "run-together", joined, "two parts are joined"
    for place, part in enumerate(parts):
        turned = permuted(part) if part.isdecimal() else ""
        if turned and turned not in parts:
            new = truth.listed([*parts[:place], turned, *parts[place + 1 :]])
            yield "list-part", new, "two digits are exchanged"
            break


def _like_sums(truth: Truth, parts: list[str]) -> Iterator[Miss]:
    """Other whole numbers with the same sum, of three with the same product too."""
    if not all(re.fullmatch(r"-?\d{1,6}", part) for part in parts):
        return
    known = [int(part) for part in parts]
    other = [known[0] + 1, *known[1:-1], known[-1] - 1]
    if sorted(other) != sorted(known):
        yield "list-part", truth.listed([*map(str, other)]), "one more here, one less there"
    if len(known) == 3:
        total, product = sum(known), math.prod(known)
        for a, b in itertools.combinations_with_replacement(range(-40, 41), 2):
            new = [a, b, total - a - b]
            if a * b * new[2] == product and sorted(new) != sorted(known):
                yield "list-part", truth.listed([*map(str, new)]), "the same sum and product"
                return


def _reordered(truth: Truth, parts: list[str]) -> Iterator[Miss]:
    said = truth.order == "said" or truth.mark.strip() in ("->", "→")
    twice = said or is_once(truth.prompt)
    yield (
        ("list-part" if twice else "order-unsaid"),
        truth.listed([*parts, parts[-1]]),
        "one twice",
    )
    worth = [number.value if number else part for part, number in
             ((part, read_number(part)) for part in parts)]  # fmt: skip
    unlike = [place for place in range(len(parts) - 1) if worth[place] != worth[place + 1]]
    kind = "order" if said else "order-unsaid"
    for place in dict.fromkeys((*unlike[:1], *unlike[-1:])):
        swapped = [*parts[:place], parts[place + 1], parts[place], *parts[place + 2 :]]
        yield kind, truth.listed(swapped), "two neighbours are exchanged"
    if len(parts) > 2 and len(set(worth)) > 1:
        yield kind, truth.listed([*parts[1:], parts[0]]), "the first is put last"
    if worth != worth[::-1]:
        yield kind, truth.listed(parts[::-1]), "in reverse"
