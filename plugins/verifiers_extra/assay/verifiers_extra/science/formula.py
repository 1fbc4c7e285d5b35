r"""Chemical formulas and equations in text: compositions, exactly. Pure, bounded, no library.

A formula is elements and groups in () or [] with counts, parts of a hydrate between dots, and a
charge: `CuSO4·5H2O`, `[Fe(CN)6]^{4-}`, `\mathrm{SO}_4^{2-}`, `\ce{NH4+}`, `Ca(2+)`. Subscripts and
superscripts of Unicode, LaTeX and HTML are understood; braces of LaTeX group nothing; states such
as (aq) and bonds (CH2=CH2, CH3-OH) are left out, and so is a name beside the formula. `e-` is the
electron.

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
    re.findall(
        r"\w+",
        "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga "
        "Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd "
        "Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra "
        "Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv "
        "Ts Og D T",
    )
)
_TRANSLATION = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋\u2212\u2013", "0123456789+---")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]{0,3}[⁺⁻]")
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SCRIPT_TAG = re.compile(r"<(su[bp])>([^<>]{1,12})</\1>")
_SPELLED = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"\\(?:oplus|plus)(?![a-z])|\u2295", "+"),
        (r"\\(?:ominus|minus)(?![a-z])|\u2296", "-"),
        (r"[ ]{0,3}\\equiv(?![a-z])[ ]{0,3}", "≡"),
        (r"\\[dt]?frac[ ]{0,2}\{(\d{1,5})\}[ ]{0,2}\{(\d{1,5})\}", r"\1/\2 "),
        (r"\\\{", "("),
        (r"\\\}", ")"),
        (
            (
                r"\\(?:math(?:rm|bf|sf|it)|text(?:rm|bf|it|sf|up)?|ce|pu|boxed|operatorname)"
                r"[ ]{0,2}(?=\{)|\\!|\\(?:left|right)(?![a-z])"
            ),
            "",
        ),
        (
            (
                r"\\(?:mathrm|text|ce|rm|bf|quad|qquad|uparrow|downarrow)(?![A-Za-z])"
                r"|\\[,;:()\[\] ]|[$~`\u2191\u2193]|\*\*"
            ),
            " ",
        ),
    )
)
_INNERMOST = re.compile(
    r"(?:(\\xrightarrow(?:\[[^\]{}]{0,80}\])?|[_^])[ ]{0,3})?\{([^{}]{0,300})\}"
)
_LOW = re.compile(r"_[ ]{0,3}(\d{1,4})")
_STATE = re.compile(r"_?\([ ]{0,3}(?:aq|s|l|g|cr|am|solid|liquid|gas)[ ]{0,3}\)", re.IGNORECASE)
_CHARGE = re.compile(r"(\^?)(\(?)(\d{0,2})([+-]{1,4})(\d?)(\)?)\Z")
_PIECE = re.compile(r"([A-Z][a-z]?)|([(\[])|([)\]])|(\d{1,5})")
_DOT = re.compile(
    r"[·•∙⋅]|\\cdot(?![a-z])|\*|\.(?=\d{0,3}[A-Z(])|(?:x|\\times|\u00d7)(?=\d{0,3}H2O)"
)
_BOND = re.compile(r"(?<=[A-Za-z0-9)\]])[-=≡](?=[A-Z(\[])")
_COEFFICIENT = re.compile(r"(\d{1,5})(?:/(\d{1,5}))?")
_ARROW = re.compile(
    r"<?[-=\u2500]{1,4}>|⟶|→|⇌|⇄|⟷|↔|<=>|\\(?:long|left)?rightarrow|\\to(?![a-z])|\\rightleftharpoons"
)
_PLUS = re.compile(r"\s\+\s|(?<=[A-Za-z0-9)\]])\+(?=\s{0,4}\d{0,4}\s{0,4}[A-Z(\[])")
_WORDS = r"(?:[A-Z]?[a-z]{2,19}|[Aa])(?:[ -][a-z]{1,19}){0,9}"
_BEFORE = re.compile(rf"{_WORDS}(?:(?<=\bis)|(?<=\bare)|(?<=\bformula)|[ ]?[:,=])\s{{1,4}}")
_NAMED = re.compile(rf"{_WORDS} \(([^ ]{{1,80}})\)\.?")
_AFTER = re.compile(rf"\s{{1,4}}\(\s?{_WORDS}\s?\)\.?\Z|,\s{_WORDS}\.?\Z")
_HEDGE = re.compile(r"\b(?:or|either|not|maybe|perhaps|n?either|nor)\b", re.IGNORECASE)


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
    r"""The text without LaTeX wrappers, grouping braces, subscript signs and states.

    A superscript stays as ^(...); a brace that groups nothing visible goes, so that the count in
    `\mathrm{SO}_4` is that of O, as it is read on paper.

    Raises:
        ChemicalFormulaError: it is too long.
    """
    if len(text) > MAX_CHARS * MAX_SPECIES:
        raise ChemicalFormulaError(f"longer than {MAX_CHARS * MAX_SPECIES} characters")
    text = _SCRIPT_TAG.sub(lambda tag: ("_{" if tag[1] == "sub" else "^{") + tag[2] + "}", text)
    text = _RAISED.sub(lambda match: "^{" + match[0].translate(_LOWERED) + "}", text)
    text = text.translate(_TRANSLATION)
    for pattern, written in _SPELLED:
        text = pattern.sub(written, text)
    for _ in range(MAX_DEPTH):
        flat = _INNERMOST.sub(_opened, text)
        if flat == text:
            break
        text = flat
    return _STATE.sub("", _LOW.sub(r"\1", text))


def _opened(braces: re.Match[str]) -> str:
    """A pair of braces without them; a script keeps its sign, an arrow loses its conditions."""
    sign, content = braces[1] or "", braces[2]
    if sign.startswith("\\"):
        return " -> "
    if not sign or not content.strip():
        return content
    bare = content.strip()
    if sign == "_" and bare.isdecimal():
        return "_" + bare
    enclosed = bare.startswith("(") and bare.endswith(")") and bare.count("(") == 1
    return f"{sign}{bare}" if enclosed else f"{sign}({bare})"


def without_words(text: str) -> str:
    """A plain formula without the words around it: "water, H2O", "H2O (water)", "it is H2O".

    The words are a name or an announcement; words that hedge leave the text as it is.
    """
    text = text.strip()
    if _HEDGE.search(text):
        return text
    text = _AFTER.sub("", text)
    named = _NAMED.fullmatch(text)
    if named is not None:
        return named[1]
    before = _BEFORE.match(text)
    return text[before.end() :] if before else text


def read_species(text: str) -> Species:
    """One formula.

    Raises:
        ChemicalFormulaError: it is none.
    """
    text = without_words(plain(text)).strip().removesuffix(".")
    text = "".join(_BOND.sub("", text).split())
    if not text or len(text) > MAX_CHARS:
        raise ChemicalFormulaError("a formula is missing or too long")
    if text in ("e-", "e^-", "e^(-)"):
        return Species((), -1, "e")
    text, charge = _charge(text)
    atoms: Counter[str] = Counter()
    for part in _DOT.split(text):
        digits = re.match(r"\d{0,4}", part)
        count = int(digits[0]) if digits and digits[0] else 1
        for element, number in _group(part[digits.end() if digits else 0 :]).items():
            atoms[element] += count * number
    if not atoms or max(atoms.values()) > MAX_COUNT:
        raise ChemicalFormulaError("a formula holds no atom, or too many")
    return Species(tuple(sorted(atoms.items())), charge, text)


def read_equation(text: str) -> Equation:
    """An equation of at most MAX_SPECIES formulas on each side.

    Where there is an arrow, "=" is a double bond; else it is the arrow.

    Raises:
        ChemicalFormulaError: it is none.
    """
    text = plain(text).strip().rstrip(".")
    sides = _ARROW.split(text) if _ARROW.search(text) else text.split("=")
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
    top, bottom = int(found[1]), int(found[2] or 1)
    if not top or not bottom:
        raise ChemicalFormulaError("a coefficient is zero")
    return Fraction(top, bottom), read_species(text[found.end() :].lstrip(" *"))


def _charge(text: str) -> tuple[str, int]:
    """The formula without its charge, and the charge."""
    found = _CHARGE.search(text)
    if found is None:
        return text, 0
    raised, opens, before, signs, after, closes = found.groups()
    sign = 1 if signs[0] == "+" else -1
    marked = bool(raised or opens)
    if (
        bool(opens) != bool(closes)
        or len(set(signs)) != 1
        or (len(signs) > 1 and (before or after))
        or (before and after)
        or (after and not raised and (sign < 0 or opens))  # He-3 is an isotope
    ):
        raise ChemicalFormulaError(f"the charge {found[0]!r} cannot be read")
    bare = text[: found.start()]
    if before and not marked:
        # Plain digits before a plain sign: see the module.
        if len(before) == 1 and bare not in _ELEMENTS:
            return bare + before, sign
        return bare + before[:-1], sign * int(before[-1])
    return bare, sign * (len(signs) if len(signs) > 1 else int(before or after or 1))


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
