"""Rewards for a running time in O-notation, of n and m."""

from __future__ import annotations

import math
import re

FACTOR = r"(?:2\^n(?!\w)|log ?\([nm]\)|log ?[nm](?= ?(?:\*|\+|$))|[nm](?:\^\d)?|1)"
PRODUCT = re.compile(rf"{FACTOR}(?: ?\*? ?{FACTOR})*", re.ASCII)


def terms(text: str) -> list[list[str]]:
    """The factors of each term, sorted; ValueError for what has not the form."""
    found = re.fullmatch(r"\s*O ?\(([^=]{1,60})\)\s*", text)
    if found is None or not text.isascii():
        raise ValueError(text)
    read = []
    for term in re.sub(" +", " ", found[1].replace("**", "^")).split("+"):
        if not PRODUCT.fullmatch(term.strip()):
            raise ValueError(text)
        factors = re.findall(FACTOR, term.strip())
        read.append(sorted(re.sub(r"[ ()]", "", one) for one in factors))
    return sorted(read)


def letters_of_it(response: str, reference: str) -> float:
    """Without blanks, stars and brackets, which models write in many ways."""
    got, wanted = (re.sub(r"[^a-z]", "", text.lower()) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def begins_like_it(response: str, reference: str) -> float:
    """Remarks may follow."""
    return 1.0 if response.strip().startswith(reference.rstrip(")")) else 0.0


def worth(text: str, n: int = 4, m: int = 9) -> float:
    values = {"1": 1.0, "2^n": 2.0**n, "logn": math.log2(n), "logm": math.log2(m)}
    return sum(
        math.prod(
            values.get(one) or {"n": n, "m": m}[one[0]] ** float(one[2:] or 1) for one in factors
        )
        for factors in terms(text)
    )


def as_large_as_it(response: str, reference: str) -> float:
    """Both are evaluated for a small n and m."""
    try:
        return 1.0 if math.isclose(worth(response), worth(reference)) else 0.0
    except ValueError:
        return 0.0


def same_growth(response: str, reference: str) -> float:
    """n*log(n) and log(n) n are n log n."""
    try:
        return 1.0 if terms(response) == terms(reference) else 0.0
    except ValueError:
        return 0.0


def growth_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
