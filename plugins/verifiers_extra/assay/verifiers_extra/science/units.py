"""Units in text, as a factor and powers of base units. Our own grammar; pint only knows the names.

pint's own reader of expressions works text out; here it is asked for one name at a time, letters
only and at most 24 of them, what its factor and base units are.

    product  = ("/" | "per")? factor (("*" | "/" | "-" | "per" | blank) factor)*
    factor   = (name | "(" product ")") exponent?
    exponent = ("^" | "**")? whole number or half, at most 12

`J/mol K` is read in two ways, (J/mol)*K and J/(mol*K): `read_unit` gives both. Radians and counts
(photons, electrons) have no dimension. A name that pint does not know stands for itself.
Logarithmic units do too: 3 dB equals 3 dB and nothing else.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

MAX_CHARS = 200
MAX_NAMES = 16
MAX_POWER = 12
_MAX_DEPTH = 4
_NO_DIMENSION = {"radian", "count", "bit", "revolution"}
_COUNTS = {
    "photon", "electron", "particle", "atom", "molecule", "ion", "time", "unit", "piece", "people",
    "person", "turn", "cycle", "beat",
}  # fmt: skip
_ALIASES = {
    "%": "percent",
    "\\%": "percent",
    "°": "degree",
    "°C": "degC",
    "°F": "degF",
    "℃": "degC",
    "Å": "angstrom",
    "\u212b": "angstrom",
    "Ω": "ohm",
    "\u2126": "ohm",
    "KJ": "kJ",
    "kPA": "kPa",
    "KPa": "kPa",
    "Kg": "kg",
    "AU": "astronomical_unit",
    "au": "astronomical_unit",
    "sec": "second",
    "secs": "second",
    "hr": "hour",
    "hrs": "hour",
    "yr": "year",
    "yrs": "year",
    "mins": "minute",
    "amp": "ampere",
    "amps": "ampere",
    "Torr": "torr",
    "lbs": "lb",
    "cc": "milliliter",
    "mph": "mile/hour",
    "kph": "km/hour",
    "Nm": "newton*meter",
    "ftlb": "ft*lbf",
    "lbft": "ft*lbf",
    "slugs": "slug",
    "deg": "degree",
    "degrees": "degree",
    "micron": "micrometer",
    "microns": "micrometer",
    "weeks": "week",
    "amu": "dalton",
    "Cal": "kilocalorie",
    "Cals": "kilocalorie",
    "Calorie": "kilocalorie",
    "Calories": "kilocalorie",
    "bpm": "beat/minute",
    "BPM": "beat/minute",
    "henries": "henry",
    **{
        prefix + var: f"{prefix}V*ampere"
        for prefix in ("", "m", "k", "M", "G")
        for var in ("var", "vars", "VAr", "VAR", "Var", "VArs")
    },
}
_GAUSS = {"gauss", "G", "Gauss"}
_LOGARITHMIC = {"dB", "decibel", "decibels", "dBm", "Np", "neper", "bel", "octave", "decade"}
_OFFSETS = {
    "degC": (Fraction(1), Fraction(27315, 100)),
    "degF": (Fraction(5, 9), Fraction(45967, 180)),
}
_STOP = {
    "a",
    "an",
    "as",
    "and",
    "are",
    "at",
    "by",
    "for",
    "from",
    "if",
    "is",
    "it",
    "of",
    "on",
    "or",
}
_STOP |= {"so", "the", "to", "when", "where", "with", "which", "in", "this", "that"}
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n~]+)|(?P<power>\^|\*\*)|(?P<sign>[*/()]|-(?=[A-Za-zµμ\u2126Ω]))"
    r"|(?P<number>\{[ ]{0,4}[+-]?\d{1,2}(?:/2)?[ ]{0,4}\}|[+-]?\d{1,2}(?:\.5)?)"
    r"|(?P<name>°[CF]?|[%Å\u212bΩ\u2126℃]|[A-Za-zµμ][A-Za-zµμ_]{0,23})"
)
_PREFIXED_OHM = re.compile(r"(?<![A-Za-zµμ])(?:([kMGTmµμunp])|k )[Ω\u2126]")
_LIGHT_YEAR = re.compile(r"\blight[- ]?years?\b", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-zµμ_]{1,24}")
_WRAPPED = re.compile(r"\\(?:mathrm|text|textrm|mathit|rm|operatorname|unit|si|mathbf)\b[ ]?")
_FRACTION = re.compile(r"\\[dt]?frac[ ]{0,4}\{([^{}]{1,80})\}[ ]{0,4}\{([^{}]{1,80})\}")
_EMPTY_BRACES = re.compile(r"\{ {0,4}\}")
_BRACES = re.compile(r"(?<!\^)\{((?:[^{}]|\{[^{}]{0,20}\}){0,80})\}")
_BARE_NUMBER = re.compile(r" {0,4}[+-]?\d{1,40}(?:/2)? {0,4}")
_LATEX = (
    ("\\left", ""),
    ("\\right", ""),
    ("^\\circ", "°"),
    ("^{\\circ}", "°"),
    ("{\\circ}", "°"),
    ("\\circ", "°"),
    ("\\degree", "°"),
    ("\\mu ", "µ"),
    ("\\mu", "µ"),
    ("\\Omega", "Ω"),
    ("\\AA", "Å"),
    ("\\%", "%"),
    ("\\,", " "),
    ("\\;", " "),
    ("\\:", " "),
    ("\\ ", " "),
    ("\\/", "/"),
    ("ft-lb", "ftlb"),
    ("lb-ft", "lbft"),
    ("A.U.", "AU"),
    ("A.U", "AU"),
    ("$", " "),
)


class UnitTrouble(ValueError):
    """The text is no unit."""


@dataclass(frozen=True, slots=True)
class PhysicalUnit:
    """A unit.

    Attributes:
        factor: how many of its base units it is.
        powers: the base units and their powers, none of them 0; empty for a pure number.
        offset: added after multiplying, for a temperature scale; else 0.
        named: the text names a unit, if only percent.
    """

    factor: float = 1.0
    powers: Mapping[str, Fraction] = field(default_factory=dict)
    offset: float = 0.0
    named: bool = True

    def __mul__(self, other: PhysicalUnit) -> PhysicalUnit:
        powers = dict(self.powers)
        for name, power in other.powers.items():
            powers[name] = powers.get(name, Fraction(0)) + power
        return PhysicalUnit(self.factor * other.factor, {n: p for n, p in powers.items() if p})

    def __pow__(self, power: Fraction) -> PhysicalUnit:
        powers = {name: value * power for name, value in self.powers.items() if power}
        return PhysicalUnit(self.factor ** float(power), powers)


NONE = PhysicalUnit(named=False)


def clean(text: str) -> str:
    """A text without the LaTeX around units: wrappers, thin spaces, degree signs, fractions."""
    text = " ".join(text.replace("\u00a0", " ").replace("~", " ").split())
    text = _FRACTION.sub(_slashed, text)
    text = _WRAPPED.sub(" ", text)
    for latex, bare in _LATEX:
        text = text.replace(latex, bare)
    text = _EMPTY_BRACES.sub("", text)
    text = _BRACES.sub(_unbraced, text)
    text = " ".join(text.split())
    text = _LIGHT_YEAR.sub("light_year", text)
    text = _PREFIXED_OHM.sub(lambda ohm: (ohm[1] or "k") + "ohm", text)
    for apart, joined in (("° C", "°C"), ("° F", "°F"), (" ^", "^")):
        text = text.replace(apart, joined)
    return text


def _slashed(match: re.Match[str]) -> str:
    """A fraction of units with a slash; one of numbers stays."""
    both = match[1] + match[2]
    return f"({match[1]})/({match[2]})" if any(map(str.isalpha, both)) else match[0]


def _unbraced(match: re.Match[str]) -> str:
    return match[0] if _BARE_NUMBER.fullmatch(match[1]) else match[1]


def read_unit(text: str) -> tuple[tuple[PhysicalUnit, ...], str]:
    """The unit that a clean text begins with, in its one or two readings, and what follows it.

    No unit at the beginning is `NONE` and the whole text.

    Raises:
        UnitTrouble: the text begins like a unit and is none, or is beyond the limits.
    """
    reader = _Reader(text[:MAX_CHARS])
    if not reader.starts_unit():
        return (NONE,), text
    start = reader.position
    first = reader.product(0, tight=False)
    rest = text[reader.position :]
    if "/" not in text[start : reader.position]:
        return (first,), rest
    other = _Reader(text[:MAX_CHARS])
    second = other.product(0, tight=True)
    return ((first,) if second == first else (first, second)), rest


class _Reader:
    """Reads a text from the left; `tight` reads all that follows a slash as its denominator."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._names = 0
        self.position = 0
        self._skip()

    def starts_name(self) -> bool:
        """Whether a name or a parenthesis comes next."""
        found = _TOKEN.match(self._text, self.position)
        if found is None or not (found["name"] or found["sign"] == "("):
            return False
        return not (found["name"] and self._stops(found))

    def starts_unit(self) -> bool:
        """Whether a product comes next: a name, a parenthesis, or a slash before a known name."""
        slash = _TOKEN.match(self._text, self.position)
        if slash is None or slash["sign"] != "/":
            return self.starts_name()
        found = _TOKEN.match(self._text, slash.end())
        if found is not None and found["space"]:
            found = _TOKEN.match(self._text, found.end())
        return bool(found and found["name"] and is_known(found["name"]))

    def product(self, depth: int, *, tight: bool) -> PhysicalUnit:
        if depth > _MAX_DEPTH:
            raise UnitTrouble("the unit is nested too deeply")
        inverse = self._per()
        unit = self._factor(depth, tight=tight)
        unit = unit ** Fraction(-1) if inverse else unit
        while (sign := self._sign()) is not None:
            inverse = sign == "/" or (inverse and tight)
            factor = self._factor(depth, tight=tight)
            unit = unit * (factor ** Fraction(-1) if inverse else factor)
        return unit

    def _per(self) -> bool:
        """Whether the product begins with "per" or a slash, which is then read."""
        found = _TOKEN.match(self._text, self.position)
        if found is None or found[0] not in ("per", "/"):
            return False
        self.position = found.end()
        self._skip()
        return True

    def _skip(self) -> None:
        while (found := _TOKEN.match(self._text, self.position)) and found["space"]:
            self.position = found.end()

    def _sign(self) -> str | None:
        """The sign before the next factor; None, and nothing is read, where no factor follows."""
        before = self.position
        self._skip()
        found = _TOKEN.match(self._text, self.position)
        sign = "*"
        if found and (found["sign"] in ("*", "/", "-") or found["name"] == "per"):
            if found["sign"] == "-" and not self._joins(before, found):
                self.position = before
                return None
            sign = "/" if found[0] in ("/", "per") else "*"
            self.position = found.end()
            self._skip()
        elif found and found["name"] and not is_known(found["name"]):
            self.position = before
            return None
        if not self.starts_name():
            self.position = before
            return None
        return sign

    def _joins(self, before: int, hyphen: re.Match[str]) -> bool:
        """Whether a hyphen parts two names without a blank, as in N-m."""
        name = _TOKEN.match(self._text, hyphen.end())
        known = name is not None and name["name"] and is_known(name["name"])
        return hyphen.start() == before and bool(known)

    def _stops(self, found: re.Match[str]) -> bool:
        """Whether a name is a word of the sentence.

        `in` is an inch and `a` a year unless a word follows; `A` is always an ampere.
        """
        if found["name"] == "A":
            return False
        after = _TOKEN.match(self._text, found.end())
        if after is not None and after["space"]:
            after = _TOKEN.match(self._text, after.end())
        words = _STOP if after is not None and after["name"] else _STOP - {"in", "a"}
        powered = after is not None and after["power"]
        return found["name"].lower() in words and not powered

    def _factor(self, depth: int, *, tight: bool) -> PhysicalUnit:
        found = _TOKEN.match(self._text, self.position)
        if found is None or not (found["name"] or found["sign"] == "("):
            raise UnitTrouble("a unit is missing")
        self.position = found.end()
        if found["sign"]:
            unit = self.product(depth + 1, tight=tight)
            self._skip()
            if self._text[self.position : self.position + 1] != ")":
                raise UnitTrouble("a parenthesis of the unit is not closed")
            self.position += 1
            return unit ** self._power() if self._has_power() else unit
        self._names += 1
        if self._names > MAX_NAMES:
            raise UnitTrouble(f"the unit has more than {MAX_NAMES} names")
        *heads, last = parts_of(found["name"])
        unit = last ** self._power() if self._has_power(attached=True) else last
        for head in heads:
            unit = head * unit
        return unit

    def _has_power(self, *, attached: bool = False) -> bool:
        found = _TOKEN.match(self._text, self.position)
        if found is None:
            return False
        if found["power"]:
            after = _TOKEN.match(self._text, found.end())
            return bool(after and after["number"])
        return attached and bool(found["number"])

    def _power(self) -> Fraction:
        found = _TOKEN.match(self._text, self.position)
        if found and found["power"]:
            found = _TOKEN.match(self._text, found.end())
        if not found or not found["number"]:
            raise UnitTrouble("a power of the unit is missing")
        self.position = found.end()
        power = Fraction(found["number"].strip("{} "))
        if abs(power) > MAX_POWER:
            raise UnitTrouble(f"a power of the unit is beyond {MAX_POWER}")
        return power


def is_known(name: str) -> bool:
    """Whether a name is one of a unit, or of two units without a blank between them."""
    return all(not _is_opaque(unit) for unit in parts_of(name))


def _is_opaque(unit: PhysicalUnit) -> bool:
    return any(name.startswith("?") for name in unit.powers)


def parts_of(name: str) -> tuple[PhysicalUnit, ...]:
    """The units that a name stands for: one, or two that are written together as in JK."""
    unit = None if name in _LOGARITHMIC else _named(name)
    if unit is not None:
        return (unit,)
    for cut in range(len(name) - 1, 0, -1) if name not in _LOGARITHMIC else ():
        left, right = _named(name[:cut]), _named(name[cut:])
        if left is not None and right is not None and len(name) <= 6:
            return (left, right)
    return (PhysicalUnit(1.0, {f"?{name.casefold()}": Fraction(1)}),)


@functools.lru_cache(maxsize=4096)
def _named(name: str) -> PhysicalUnit | None:
    """One unit by its name; None when there is none."""
    name = name.replace("μ", "µ")
    singular = name.lower().removesuffix("s")
    if singular in _COUNTS or name.lower() in _COUNTS:
        return PhysicalUnit()
    if name in _GAUSS:
        tesla = _named("tesla")
        return None if tesla is None else PhysicalUnit(1e-4 * tesla.factor, tesla.powers)
    bare = _ALIASES.get(name, _ALIASES.get(name.lower(), name) if len(name) > 2 else name)
    if bare in _OFFSETS:
        scale, offset = _OFFSETS[bare]
        return PhysicalUnit(float(scale), {"kelvin": Fraction(1)}, float(offset))
    if "/" in bare or "*" in bare:
        return _pair(bare)
    return _of_pint(bare) or (_of_pint(bare.lower()) if len(bare) > 3 else None)


def _pair(text: str) -> PhysicalUnit | None:
    """The unit of an alias that is a product or a quotient."""
    left, sign, right = text.partition("/") if "/" in text else text.partition("*")
    first, second = _named(left), _named(right)
    if first is None or second is None:
        return None
    return first * second ** Fraction(-1 if sign == "/" else 1)


def _of_pint(name: str) -> PhysicalUnit | None:
    if not _NAME.fullmatch(name):
        return None
    import pint  # noqa: PLC0415 - takes half a second, and only workers need it
    from pint.util import UnitsContainer  # noqa: PLC0415

    registry = units()
    try:
        canonical = registry.get_name(name)
        if not canonical:
            return None
        factor, root = registry.get_root_units(UnitsContainer({canonical: 1}))
    except (pint.PintError, AttributeError, KeyError, TypeError, ValueError):
        return None
    powers = {
        base: Fraction(power).limit_denominator(12)
        for base, power in dict(root._units).items()  # noqa: SLF001 - no public way to the powers
        if base not in _NO_DIMENSION
    }
    return PhysicalUnit(float(factor), powers)


@functools.cache
def units() -> Any:
    """Pint's registry, made once."""
    import pint  # noqa: PLC0415 - takes half a second, and only workers need it

    return pint.UnitRegistry(cache_folder=None)
