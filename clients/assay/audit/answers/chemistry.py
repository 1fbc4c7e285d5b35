"""Chemical formulas and equations: what they hold, and what is close to one. Pure."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterator

from assay.audit.answers.codes import more, replaced
from assay.audit.answers.shapes import Miss

_HERE = "component"
_ELEMENTS = frozenset(
    re.findall(
        "[A-Z][a-z]?",
        "HHeLiBeBCNOFNeNaMgAlSiPSClArKCaScTiVCrMnFeCoNiCuZnGaGeAsSeBrKrRbSrYZrNbMoTcRuRhPdAgCdIn"
        "SnSbTeIXeCsBaLaCePrNdPmSmEuGdTbDyHoErTmYbLuHfTaWReOsIrPtAuHgTlPbBiPoAtRnFrRaAcThPaUNpPuAm",
    )
)
_CHARGE = re.compile(r"(\^?)\(?(\d*)([-+])\)?$")
_ATOM = re.compile(r"([A-Z][a-z]?)(\d*)|([(\[])|([)\]])(\d*)")


def _plain_formula(text: str) -> str:
    text = re.sub(r"[\u2070\u00b9\u00b2\u00b3\u2074-\u207b]+", lambda one: f"^{one[0]}", text)
    text = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    return re.sub(r"\\(?:ce|mathrm|text)|[_{}$\s]", "", text)


def _atoms(text: str) -> tuple[tuple[str, int], ...] | None:
    """How often each element comes; None for no formula."""
    stack: list[Counter[str]] = [Counter()]
    place = 0
    while place < len(text):
        found = _ATOM.match(text, place)
        if found is None:
            return None
        place = found.end()
        if found[3]:
            stack.append(Counter())
        elif found[4]:
            if len(stack) == 1:
                return None
            for element, count in stack.pop().items():
                stack[-1][element] += count * int(found[5] or 1)
        elif found[1] in _ELEMENTS:
            stack[-1][found[1]] += int(found[2] or 1)
        else:
            return None
    return tuple(sorted(stack[0].items())) if len(stack) == 1 and stack[0] else None


def chemical(text: str) -> frozenset[Hashable]:
    """Atoms and charge; of Fe3+ there are two readings."""
    plain = _plain_formula(text)
    charge = _CHARGE.search(plain)
    bodies = [(plain, 0)]
    if charge:
        sign = -1 if charge[3] == "-" else 1
        bodies = [(plain[: charge.start()], sign * int(charge[2] or 1))]
        if not charge[1] and charge[2] and "(" not in charge[0]:
            bodies.append((plain[: charge.start()] + charge[2], sign))
    return frozenset((atoms, worth) for body, worth in bodies if (atoms := _atoms(body)))


def near_chemicals(text: str, _: str) -> Iterator[Miss]:
    """Another count, element or charge."""
    charge = re.search(r"\s*[\^(]?\{?\(?\d*[-+\u207a\u207b\u2212]\}?\)?$", text)
    body = text[: charge.start()] if charge else text
    tail = text[len(body) :]
    for one in re.finditer(r"(?<=[A-Za-z)])(?:_\{?)?(\d+)\}?", body):
        count = int(one[1])
        for other in (count + 1, count - 1) if count > 1 else ():
            written = str(other) if other > 1 else ""
            yield _HERE, replaced(body, one, written) + tail, "another count of an element"
    atoms = [one for one in re.finditer(r"[A-Z][a-z]?", body) if one[0] in _ELEMENTS]
    for one in (*atoms[:1], *atoms[1:][-1:]):
        for new in ("S", "N", "K"):
            if new not in {each[0] for each in atoms}:
                yield _HERE, replaced(body, one, new) + tail, "another element"
                break
        yield _HERE, replaced(body, one, f"{one[0]}4") + tail, "another count of an element"
    for one in re.finditer(r"[A-Z]{2}", body):
        yield _HERE, replaced(body, one, one[0].title()) + tail, "two elements as one"
    for one in re.finditer(r"[A-Z][a-z]", body):
        yield _HERE, replaced(body, one, one[0].upper()) + tail, "one element as two"
    counted = [*re.finditer(r"([A-Z][a-z]?)(\d*)", body)]
    for a, b in itertools.pairwise(counted):
        turned = f"{a[1]}{b[2]}{b[1]}{a[2]}"
        yield _HERE, body[: a.start()] + turned + body[b.end() :] + tail, "counts are exchanged"
    if len(counted) > 1:
        yield _HERE, body[: counted[-1].start()] + tail, "its last element is left out"
    if charge:
        yield _HERE, body, "without its charge"
        yield _HERE, body + tail.translate(str.maketrans("+-", "-+")), "the charge is turned"
        number = re.search(r"\d+", tail)
        if number:
            yield _HERE, body + replaced(tail, number, more(number[0], 1)), "another charge"
    else:
        yield _HERE, f"{text}^2-", "with a charge"
    yield "lax-form", text.lower(), "in small letters"


_ARROW = re.compile(r"\s*(?:->|=>|\u2192|\u27f6|\\(?:to|rightarrow|longrightarrow)\b)\s*")
_SPECIES = re.compile(r"(\d{0,3})\s*([A-Z(\[].*)")
_SMALLEST = re.compile(r"\b(?:smallest|lowest|simplest|whole)\b", re.IGNORECASE)
_Side = dict[str, int]


def _side(text: str) -> _Side | None:
    found = [_SPECIES.fullmatch(one.strip()) for one in re.split(r"\s\+\s|\+(?=\s*\d*[A-Z])", text)]
    side = {_plain_formula(one[2]): int(one[1] or 1) for one in found if one and chemical(one[2])}
    return side if len(side) == len(found) else None


def _sides(text: str) -> tuple[_Side, _Side] | None:
    halves = _ARROW.split(text.strip().strip("$"))
    if len(halves) != 2:
        return None
    left, right = _side(halves[0]), _side(halves[1])
    return (left, right) if left and right else None


def reaction(text: str) -> frozenset[Hashable]:
    """What reacts and what comes of it, each with its coefficient, in whatever order."""
    sides = _sides(text)
    return frozenset((tuple(frozenset(side.items()) for side in sides),)) if sides else frozenset()


def near_reactions(text: str, prompt: str) -> Iterator[Miss]:
    """Another coefficient, a substance less, the other direction."""
    sides = _sides(text)
    if sides is None:
        return

    def written(left: _Side, right: _Side) -> str:
        return " -> ".join(
            " + ".join(f"{n} {one}" if n > 1 else one for one, n in side.items() if n)
            for side in (left, right)
        )

    left, right = sides
    yield _HERE, written(right, left), "its sides are exchanged"
    if _SMALLEST.search(prompt):
        twice = [{one: 2 * n for one, n in side.items()} for side in sides]
        yield _HERE, written(*twice), "all coefficients twice"
    for number, side in enumerate(sides):
        for one, n in side.items():
            for new in (n + 1, n - 1, 10 * n + 1, n % 10 if n > 9 else 0):
                other = {**side, one: new}
                if new or len(side) > 1:
                    pair = (other, right) if number == 0 else (left, other)
                    yield _HERE, written(*pair), "another coefficient, or a substance less"
        for a, b in itertools.pairwise(side):
            other = {**side, a: side[b], b: side[a]}
            pair = (other, right) if number == 0 else (left, other)
            yield _HERE, written(*pair), "two coefficients are exchanged"
    ones = [dict.fromkeys(side, 1) for side in sides]
    yield _HERE, written(*ones), "without its coefficients"
    if "H2" not in left or "Cl2" not in left:
        yield _HERE, "H2 + Cl2 -> 2 HCl", "another reaction"
    yield _HERE, written(left, left), "nothing reacts"
    for found in re.finditer(r"(?<![\w])(\d+)(?=\s+[A-Z])", text):
        yield _HERE, replaced(text, found, f"1{found[1]}"), "a digit before a coefficient"
    first = re.sub(r"^(?=[A-Z])", "11 ", text)
    yield _HERE, first, "a coefficient of eleven"
