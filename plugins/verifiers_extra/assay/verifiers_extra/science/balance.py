"""Balancing of chemical equations: exact linear algebra over fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from assay.verifiers_extra.science.formula import Equation, Species

Composition = tuple[tuple[tuple[str, int], ...], int]


def totals(side: Sequence[tuple[Fraction, Species]]) -> tuple[dict[str, Fraction], Fraction]:
    """The atoms and the charge of a side."""
    atoms: dict[str, Fraction] = {}
    for coefficient, species in side:
        for element, count in species.atoms:
            atoms[element] = atoms.get(element, Fraction(0)) + coefficient * count
    return atoms, sum((amount * species.charge for amount, species in side), Fraction(0))


def is_balanced(equation: Equation) -> bool:
    """Whether both sides have the same atoms and the same charge."""
    return totals(equation.left) == totals(equation.right)


def amounts(equation: Equation) -> dict[tuple[int, Composition], Fraction]:
    """The coefficient of each species of each side (0 is the left one), those of equals added."""
    found: dict[tuple[int, Composition], Fraction] = {}
    for number, side in enumerate((equation.left, equation.right)):
        for coefficient, species in side:
            key = (number, species.composition)
            found[key] = found.get(key, Fraction(0)) + coefficient
    return found


def solve(equation: Equation) -> dict[tuple[int, Composition], Fraction] | None:
    """The coefficients that balance the species of an equation, up to a factor.

    None when there are none, when they are not all positive, or when they are not determined.
    """
    keys = list(amounts(equation))
    elements = sorted({element for _, (atoms, _) in keys for element, _ in atoms})
    rows = [
        [Fraction(dict(atoms).get(element, 0) * (1 - 2 * side)) for side, (atoms, _) in keys]
        for element in elements
    ]
    rows.append([Fraction(charge * (1 - 2 * side)) for side, (_, charge) in keys])
    vector = null_vector(rows)
    if vector is None or not all(value > 0 for value in vector):
        return None
    return dict(zip(keys, vector, strict=True))


def null_vector(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """A vector that a matrix takes to zero; None unless all of them lie on one line.

    Gauss and Jordan's elimination.
    """
    rows = [list(row) for row in rows]
    width = len(rows[0])
    pivots: list[int] = []
    for column in range(width):
        line = next((n for n in range(len(pivots), len(rows)) if rows[n][column]), None)
        if line is None:
            continue
        place = len(pivots)
        rows[place], rows[line] = rows[line], rows[place]
        rows[place] = [value / rows[place][column] for value in rows[place]]
        for other in range(len(rows)):
            factor = rows[other][column]
            if other != place and factor:
                rows[other] = [
                    a - factor * b for a, b in zip(rows[other], rows[place], strict=True)
                ]
        pivots.append(column)
    free = [column for column in range(width) if column not in pivots]
    if len(free) != 1:
        return None
    vector = [Fraction(0)] * width
    vector[free[0]] = Fraction(1)
    for row, pivot in zip(rows, pivots, strict=False):
        vector[pivot] = -row[free[0]]
    return vector
