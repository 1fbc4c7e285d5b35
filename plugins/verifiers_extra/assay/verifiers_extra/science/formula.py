r"""Chemical formulas and equations in text: compositions, exactly. Pure, bounded, no library.

A formula is elements and groups in (), [] or {} with counts, parts of a hydrate between dots, and a
charge: `CuSO4·5H2O`, `[Fe(CN)6]^{4-}`, `SO_4^{2-}`, `\ce{NH4+}`. Subscripts and superscripts of
Unicode and LaTeX are understood; states such as (aq) are left out. `e-` is the electron.

A plain digit before a plain sign is the charge of a single atom (Ca2+), else a count (NO3-); of two
digits the last is the charge (SO42-). Write `^` where that is not meant.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

MAX_CHARS = 300
MAX_DEPTH = 8
MAX_COUNT = 10_000
MAX_SPECIES = 12
_ELEMENTS = frozenset(
    [
        "H",
        "He",
        "Li",
        "Be",
        "B",
        "C",
        "N",
        "O",
        "F",
        "Ne",
        "Na",
        "Mg",
        "Al",
        "Si",
        "P",
        "S",
        "Cl",
        "Ar",
        "K",
        "Ca",
        "Sc",
        "Ti",
        "V",
        "Cr",
        "Mn",
        "Fe",
        "Co",
        "Ni",
        "Cu",
        "Zn",
        "Ga",
        "Ge",
        "As",
        "Se",
        "Br",
        "Kr",
        "Rb",
        "Sr",
        "Y",
        "Zr",
        "Nb",
        "Mo",
        "Tc",
        "Ru",
        "Rh",
        "Pd",
        "Ag",
        "Cd",
        "In",
        "Sn",
        "Sb",
        "Te",
        "I",
        "Xe",
        "Cs",
        "Ba",
        "La",
        "Ce",
        "Pr",
        "Nd",
        "Pm",
        "Sm",
        "Eu",
        "Gd",
        "Tb",
        "Dy",
        "Ho",
        "Er",
        "Tm",
        "Yb",
        "Lu",
        "Hf",
        "Ta",
        "W",
        "Re",
        "Os",
        "Ir",
        "Pt",
        "Au",
        "Hg",
        "Tl",
        "Pb",
        "Bi",
        "Po",
        "At",
        "Rn",
        "Fr",
        "Ra",
        "Ac",
        "Th",
        "Pa",
        "U",
        "Np",
        "Pu",
        "Am",
        "Cm",
        "Bk",
        "Cf",
        "Es",
        "Fm",
        "Md",
        "No",
        "Lr",
        "Rf",
        "Db",
        "Sg",
        "Bh",
        "Hs",
        "Mt",
        "Ds",
        "Rg",
        "Cn",
        "Nh",
        "Fl",
        "Mc",
        "Lv",
        "Ts",
        "Og",
        "D",
        "T",
    ]
)
_TRANSLATION = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]{0,3}[⁺⁻]")
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_WRAPPED = re.compile(
    r"\\(?:mathrm|text|ce|mathbf|rm|mathsf|boxed)\b|[$~]|\\[,;!: ]|\\(?:left|right)(?![a-z])"
)
_STATE = re.compile(r"\((?:aq|s|l|g|cr|am|solid|liquid|gas)\)", re.IGNORECASE)
_CHARGE = re.compile(r"\^?\{?(\d{0,2})([+-])\}?\Z|\^\{?([+-])(\d{0,2})\}?\Z|(\+{1,4}|-{1,4})\Z")
_PIECE = re.compile(r"([A-Z][a-z]?)|([(\[])|([)\]])|(\d{1,5})")
_DOT = re.compile(r"[·•∙⋅]|\\cdot|\*|\.(?=\d{0,3}[A-Z(])")
_COEFFICIENT = re.compile(r"(\d{1,5})(?:/(\d{1,5}))?|\\[dt]?frac\{(\d{1,5})\}\{(\d{1,5})\}")
_ARROW = re.compile(
    r"<?[-=\u2500]{1,4}>|⟶|→|⇌|⇄|⟷|↔|<=>|\\(?:long)?rightarrow|\\to\b|\\rightleftharpoons"
    r"|\\xrightarrow(?:\[[^\]]{0,80}\])?\{[^{}]{0,80}\}|="
)
_PLUS = re.compile(r"\s\+\s|(?<=[A-Za-z0-9)\]])\+(?=\s{0,4}\d{0,4}\s{0,4}[A-Z(\[])")


class ChemicalFormulaError(ValueError):
    """The text is no formula or equation."""


@dataclass(frozen=True, slots=True)
class Species:
    """The composition of a formula.

    Attributes:
        atoms: elements and their counts, sorted.
        charge: in elementary charges.
        written: the elements in the order and with the counts as written, for comparing isomers.
    """

    atoms: tuple[tuple[str, int], ...]
    charge: int
    written: str = ""

    @property
    def composition(self) -> tuple[tuple[tuple[str, int], ...], int]:
        """Atoms and charge."""
        return self.atoms, self.charge


@dataclass(frozen=True, slots=True)
class Equation:
    """Sides of a reaction: species with positive coefficients, as written."""

    left: tuple[tuple[Fraction, Species], ...]
    right: tuple[tuple[Fraction, Species], ...]


def plain(text: str) -> str:
    """The text without LaTeX wrappers, sub- and superscript signs and states.

    Raises:
        ChemicalFormulaError: it is too long.
    """
    if len(text) > MAX_CHARS * MAX_SPECIES:
        raise ChemicalFormulaError(f"longer than {MAX_CHARS * MAX_SPECIES} characters")
    text = _RAISED.sub(lambda match: "^{" + match[0].translate(_LOWERED) + "}", text)
    text = text.translate(_TRANSLATION).replace("\u2212", "-").replace("\u2013", "-")
    text = _WRAPPED.sub(" ", text)
    return _STATE.sub("", re.sub(r"_\{?(\d{1,4})\}?", r"\1", text))


def read_species(text: str) -> Species:
    """One formula.

    Raises:
        ChemicalFormulaError: it is none.
    """
    text = "".join(_unwrapped(plain(text)).split())
    if not text or len(text) > MAX_CHARS:
        raise ChemicalFormulaError("a formula is missing or too long")
    if re.fullmatch(r"e(?:\^?\{?-\}?)", text):
        return Species((), -1, "e")
    text, charge = _charge(text)
    atoms: Counter[str] = Counter()
    for part in _DOT.split(text.replace("{", "(").replace("}", ")")):
        digits = re.match(r"\d{0,4}", part)
        count = int(digits[0]) if digits and digits[0] else 1
        for element, number in _group(part[digits.end() if digits else 0 :]).items():
            atoms[element] += count * number
    if not atoms or max(atoms.values()) > MAX_COUNT:
        raise ChemicalFormulaError("a formula holds no atom, or too many")
    return Species(tuple(sorted(atoms.items())), charge, text)


def read_equation(text: str) -> Equation:
    """An equation of at most MAX_SPECIES formulas on each side.

    Raises:
        ChemicalFormulaError: it is none.
    """
    sides = _ARROW.split(_unwrapped(plain(text)).strip().rstrip("."))
    if len(sides) != 2:
        raise ChemicalFormulaError(f"an equation has one arrow, not {len(sides) - 1}")
    return Equation(_side(sides[0]), _side(sides[1]))


def _side(text: str) -> tuple[tuple[Fraction, Species], ...]:
    terms = _PLUS.split(text.strip())
    if len(terms) > MAX_SPECIES:
        raise ChemicalFormulaError(f"more than {MAX_SPECIES} formulas on one side")
    return tuple(_term(term.strip()) for term in terms)


def _term(text: str) -> tuple[Fraction, Species]:
    found = _COEFFICIENT.match(text)
    if found is None:
        return Fraction(1), read_species(text)
    top, bottom = int(found[1] or found[3]), int(found[2] or found[4] or 1)
    if not top or not bottom:
        raise ChemicalFormulaError("a coefficient is zero")
    return Fraction(top, bottom), read_species(text[found.end() :].lstrip(" *"))


def _unwrapped(text: str) -> str:
    text = text.strip()
    while text.startswith("{") and text.endswith("}") and text.count("{") == text.count("}"):
        inner = text[1:-1]
        depth = 0
        for character in inner:
            depth += (character == "{") - (character == "}")
            if depth < 0:
                return text
        text = inner.strip()
    return text


def _charge(text: str) -> tuple[str, int]:
    """The formula without its charge, and the charge."""
    found = _CHARGE.search(text)
    if found is None:
        return text, 0
    bare, signs = text[: found.start()], found[5]
    if signs:
        return bare, len(signs) * (1 if signs[0] == "+" else -1)
    sign = 1 if (found[2] or found[3]) == "+" else -1
    digits = found[1] if found[2] else found[4]
    if found[2] and not found[0].startswith(("^", "{")) and digits:
        # Plain digits before a plain sign: see the module.
        if len(digits) == 1 and bare not in _ELEMENTS:
            return bare + digits, sign
        return bare + digits[:-1], sign * int(digits[-1])
    return bare, sign * int(digits or 1)


def _group(text: str) -> Counter[str]:
    """The atoms of a formula without charge and dots."""
    stack: list[Counter[str]] = [Counter()]
    last: Counter[str] | None = None
    position = 0
    while position < len(text):
        found = _PIECE.match(text, position)
        if found is None:
            raise ChemicalFormulaError(
                f"{text[position : position + 10]!r} is no part of a formula"
            )
        position = found.end()
        element, opens, closes, digits = found.groups()
        if digits:
            if last is None or not 0 < int(digits) <= MAX_COUNT:
                raise ChemicalFormulaError(f"the count {digits} stands for nothing")
            for name, number in last.items():
                stack[-1][name] += number * (int(digits) - 1)
            last = None
        elif opens:
            stack.append(Counter())
            last = None
        elif closes:
            if len(stack) == 1:
                raise ChemicalFormulaError("a bracket closes that was not opened")
            last = stack.pop()
            stack[-1].update(last)
        else:
            last = _element(element)
            stack[-1].update(last)
        if len(stack) > MAX_DEPTH:
            raise ChemicalFormulaError(f"nested deeper than {MAX_DEPTH}")
    if len(stack) > 1:
        raise ChemicalFormulaError("a bracket is not closed")
    return stack[0]


def _element(letters: str) -> Counter[str]:
    if letters in _ELEMENTS:
        return Counter({letters: 1})
    raise ChemicalFormulaError(f"{letters!r} is no element")
