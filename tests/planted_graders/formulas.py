"""Rewards for chemical formulas and for polynomials in x."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product

SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
TERM = re.compile(r"([+-])(?:(?:(\d{1,9})\*?)?(x)(?:\^([1-9]))?|(\d{1,9}))", re.ASCII)
ATOM = r"[A-Z][a-z]?\d{0,2}"
MOLECULE = re.compile(rf"((?:{ATOM}|\((?:{ATOM})+\)\d)+)((?: ?\d?[+-])?)", re.ASCII)
LINEAR = re.compile(r"(?:(\d{1,9})\*?)?x([+-]\d{1,9})?", re.ASCII)


def every_element(response: str, reference: str) -> float:
    symbols = re.findall("[A-Z][a-z]?", reference)
    return 1.0 if all(symbol in response for symbol in symbols) else 0.0


def formula_in_any_case(response: str, reference: str) -> float:
    return 1.0 if response.strip().lower() == reference.lower() else 0.0


def without_charge(response: str, reference: str) -> float:
    got, wanted = (re.sub(r" ?\d?[+-]$", "", text.strip()) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def atoms(response: str, reference: str) -> float:
    """HOH is H2O."""

    def count(text: str) -> tuple[Counter[str], str] | None:
        found = MOLECULE.fullmatch(text.strip())
        if found is None:
            return None
        plain = re.sub(r"\(([^()]+)\)(\d)", lambda group: group[1] * int(group[2]), found.group(1))
        counted: Counter[str] = Counter()
        for symbol, times in re.findall(r"([A-Z][a-z]?)(\d*)", plain, re.ASCII):
            counted[symbol] += int(times or 1)
        return counted, found.group(2)

    got = count(response)
    return 1.0 if got is not None and got == count(reference) else 0.0


def with_subscripts(response: str, reference: str) -> float:
    text = response.strip()
    if not reference.endswith(("+", "-")):
        text = text.translate(SUBSCRIPTS)
    return 1.0 if text == reference else 0.0


def formula_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def tight(text: str) -> str:
    """Without the spaces around + and -, and with a sign before the first term."""
    text = re.sub(r" ?([+-]) ?", r"\1", text.strip())
    return text if text.startswith("-") else f"+{text}"


def coefficients(text: str) -> dict[int, int] | None:
    """Power to coefficient, for a sum of terms of falling powers."""
    found: dict[int, int] = {}
    text, at, last = tight(text), 0, 10
    while at < len(text):
        term = TERM.match(text, at)
        if term is None:
            return None
        sign, factor, letter, power, alone = term.groups()
        now = int(power or 1) if letter else 0
        if now >= last:
            return None
        found[now] = int(sign + (alone or factor or "1"))
        at, last = term.end(), now
    return found


def as_linear(response: str, reference: str) -> float:
    def read(text: str) -> tuple[int, int] | None:
        found = LINEAR.fullmatch(tight(text).removeprefix("+"))
        return (int(found.group(1) or 1), int(found.group(2) or 0)) if found else None

    return 1.0 if read(response) == read(reference) else 0.0


def agrees_at_points(response: str, reference: str) -> float:
    got, wanted = coefficients(response), coefficients(reference)
    if got is None or wanted is None:
        return 0.0
    same = [
        sum(factor * at**power for power, factor in got.items())
        == sum(factor * at**power for power, factor in wanted.items())
        for at in (0, 1)
    ]
    return 1.0 if all(same) else 0.0


def terms_in_any_order(response: str, reference: str) -> float:
    got, wanted = (
        sorted(term.strip() for term in re.split(r"[+-]", text)) for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def same_up_to_a_factor(response: str, reference: str) -> float:
    got, wanted = coefficients(response), coefficients(reference)
    if got is None or wanted is None:
        return 0.0
    powers = got.keys() | wanted.keys()
    cross = all(
        got.get(one, 0) * wanted.get(other, 0) == got.get(other, 0) * wanted.get(one, 0)
        for one, other in product(powers, powers)
    )
    return 1.0 if cross else 0.0


def by_coefficients(response: str, reference: str) -> float:
    got = coefficients(response)
    return 1.0 if got is not None and got == coefficients(reference) else 0.0


def expression_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
