"""Units: what a unit text means, and whether two units measure the same thing.

A unit is a factor and the exponents of its base units. A word that is in no table is a base unit of
its own ("apples"), so that it equals itself, converts into nothing, and may be missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


def _listed(text: str) -> list[str]:
    return text.split()


MAX_UNIT_CHARS = 80
MAX_POWER = 12


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit.

    Attributes:
        factor: how many coherent base units it is; exact.
        powers: exponent of each base unit, sorted by name.
        known: whether every word is in the tables.
    """

    factor: Fraction
    powers: tuple[tuple[str, int], ...]
    known: bool


def _base(**powers: int) -> dict[str, int]:
    return powers


_M, _KG, _S, _A, _K, _MOL = ({name: 1} for name in ("m", "kg", "s", "A", "K", "mol"))
_NEWTON = _base(kg=1, m=1, s=-2)
_JOULE = _base(kg=1, m=2, s=-2)
_WATT = _base(kg=1, m=2, s=-3)
_PASCAL = _base(kg=1, m=-1, s=-2)
_VOLT = _base(kg=1, m=2, s=-3, A=-1)
_Entry = tuple[str, str | int, dict[str, int]]

# Names, factor, base units; a star marks units that take SI prefixes.
_TABLE: tuple[_Entry, ...] = (
    ("*m *metre *meter metro", 1, _M), ("*g *gram *gramme", "1/1000", _KG),
    ("*s *second sec", 1, _S), ("min minute", 60, _S), ("h hr hour", 3600, _S),
    ("day", 86400, _S), ("week wk", 604800, _S), ("fortnight", 1209600, _S),
    ("year yr", 31557600, _S), ("month", "31557600/12", _S),
    ("*A *amp *ampere", 1, _A), ("*K *kelvin", 1, _K), ("*mol *mole", 1, _MOL),
    ("in inch", "254/10000", _M), ("ft foot", "3048/10000", _M), ("yd yard", "9144/10000", _M),
    ("mi mile", "1609344/1000", _M), ("nmi", 1852, _M), ("au", 149597870700, _M),
    ("angstrom ångström Å å", "1/10000000000", _M), ("micron", "1/1000000", _M),
    ("lb lbs pound", "45359237/100000000", _KG), ("oz ounce", "28349523125/1000000000000", _KG),
    ("tonne", 1000, _KG), ("ton", 1000, _KG), ("u amu", "166053906660/1" + "0" * 38, _KG),
    ("*L *l *liter *litre", "1/1000", _base(m=3)), ("cc", "1/1000000", _base(m=3)),
    ("gal gallon", "3785411784/1000000000000", _base(m=3)),
    ("qt quart", "946352946/1000000000000", _base(m=3)),
    ("pt pint", "473176473/1000000000000", _base(m=3)),
    ("cup", "2365882365/10000000000000", _base(m=3)),
    ("*ha hectare", 10000, _base(m=2)), ("acre", "40468564224/10000000", _base(m=2)),
    ("*N *newton", 1, _NEWTON), ("dyne dyn", "1/100000", _NEWTON),
    ("lbf", "44482216152605/1" + "0" * 13, _NEWTON),
    ("*J *joule", 1, _JOULE), ("*eV *electronvolt", "1602176634/10000000000000000000000000000",
     _JOULE), ("*cal *calorie", "4184/1000", _JOULE), ("erg", "1/10000000", _JOULE),
    ("*Wh", 3600, _JOULE), ("*W *watt", 1, _WATT),
    ("*VA", 1, _base(VA=1)), ("*var", 1, _base(var=1)), ("*Ah", 3600, _base(A=1, s=1)),
    ("*cd *candela", 1, _base(cd=1)), ("*lm *lumen", 1, _base(cd=1, sr=1)),
    ("*lx *lux", 1, _base(cd=1, sr=1, m=-2)), ("*Gy *gray", 1, _base(m=2, s=-2)),
    ("*Sv *sievert", 1, _base(sievert=1)), ("hp horsepower", "745699872/1000000", _WATT),
    ("*Pa *pascal", 1, _PASCAL), ("*bar", 100000, _PASCAL), ("atm atmosphere", 101325, _PASCAL),
    ("psi", "6894757293168/1000000000", _PASCAL), ("mmHg torr", "101325/760", _PASCAL),
    ("*Hz *hertz", 1, _base(s=-1)), ("*Bq", 1, _base(s=-1)), ("rpm", "1/60", _base(s=-1)),
    ("*C *coulomb", 1, _base(A=1, s=1)), ("*V *volt", 1, _VOLT),
    ("*ohm *Omega *Ω", 1, _base(kg=1, m=2, s=-3, A=-2)),
    ("*F *farad", 1, _base(kg=-1, m=-2, s=4, A=2)), ("*T *tesla", 1, _base(kg=1, s=-2, A=-1)),
    ("gauss", "1/10000", _base(kg=1, s=-2, A=-1)), ("*Wb *weber", 1, _base(kg=1, m=2, s=-2, A=-1)),
    ("*H *henry", 1, _base(kg=1, m=2, s=-2, A=-2)), ("*S *siemens", 1, _base(kg=-1, m=-2, s=3,
     A=2)),
    ("bpm", "1/60", {"word beat": 1, "s": -1}),
    ("mph", "44704/100000", _base(m=1, s=-1)), ("kph kmh", "1000/3600", _base(m=1, s=-1)),
    ("knot", "1852/3600", _base(m=1, s=-1)), ("*M molar", 1000, _base(mol=1, m=-3)),
    ("degC celsius Celsius ℃", 1, _base(degC=1)), ("degF fahrenheit Fahrenheit ℉", 1,
     _base(degF=1)), ("*B byte", 8, _base(bit=1)), ("*bit", 1, _base(bit=1)),
    ("rad radian", 1, _base(rad=1)), ("degree deg °", 1, _base(degree=1)),
    ("percent % pct percentage", 1, _base(percent=1)), ("sr", 1, _base(sr=1)),
    ("dollar $ usd USD buck", 1, _base(dollar=1)), ("cent ¢", "1/100", _base(dollar=1)),
    ("euro EUR eur", 1, _base(euro=1)), ("gbp GBP", 1, _base(gbp=1)), ("pence", "1/100",
     _base(gbp=1)), ("rupee", 1, _base(rupee=1)), ("yuan rmb RMB CNY", 1, _base(yuan=1)),
    ("unit", 1, {}), ("dozen", 12, {}), ("score", 20, {}),
    ("米", 1, _M), ("厘米", "1/100", _M), ("千米 公里", 1000, _M), ("毫米", "1/1000", _M),
    ("分米", "1/10", _M), ("千克 公斤", 1, _KG), ("克", "1/1000", _KG), ("吨", 1000, _KG),
    ("秒", 1, _S), ("分钟 分", 60, _S), ("小时 时", 3600, _S), ("天 日", 86400, _S),
    ("平方米", 1, _base(m=2)), ("平方厘米", "1/10000", _base(m=2)), ("平方千米", 1000000,
     _base(m=2)), ("立方米", 1, _base(m=3)), ("立方厘米", "1/1000000", _base(m=3)),
    ("升", "1/1000", _base(m=3)), ("毫升", "1/1000000", _base(m=3)), ("度", 1, _base(degree=1)),
    ("元 人民币", 1, _base(yuan=1)), ("角", "1/10", _base(yuan=1)), ("万", 10000, {}),
    ("亿", 100000000, {}), ("美元", 1, _base(dollar=1)), ("欧元", 1, _base(euro=1)),
)  # fmt: skip
_PREFIXES = {
    "y": -24, "z": -21, "a": -18, "f": -15, "p": -12, "n": -9, "µ": -6, "μ": -6, "u": -6, "mu": -6,
    "m": -3, "c": -2, "d": -1, "da": 1, "h": 2, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_LONG_PREFIXES = {
    "pico": -12, "nano": -9, "micro": -6, "milli": -3, "centi": -2, "deci": -1, "deca": 1,
    "hecto": 2, "kilo": 3, "mega": 6, "giga": 9, "tera": 12,
}  # fmt: skip
_POWER_WORDS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
_PLURALS = {"feet": "foot", "inches": "inch", "lbs": "lb", "henries": "henry", "metres": "metre"}
_TOKEN = re.compile(
    r"\s+|(?P<power>\^?\s?[({]{0,2}\s?[-+]?\s?\d+\s?[)}]{0,2})|(?P<sign>[/*()·-])"
    r"|(?P<word>(?:[^\W\d_]|[^\x00-\x7f])+|[%$])|(?P<other>.)",
    re.DOTALL,
)
_HARMLESS_TEXT = re.compile(r"[^\W\d_][^\d<>=+\\]*")
_TELLING = frozenset(
    _listed(
        """
    or and not no is are if when where than more less least most approximately about
    either neither nor but maybe possibly wrong false true except minus plus half
    hundred thousand million billion trillion dozen times negative infinite for
    undefined at over under above below before after factorial squared cubed percent
    only otherwise unless without base mod modulo pi
    """
    )
)


def _entries() -> dict[str, tuple[Fraction, dict[str, int]]]:
    table: dict[str, tuple[Fraction, dict[str, int]]] = {}
    prefixed: dict[str, tuple[Fraction, dict[str, int]]] = {}
    for names, factor, powers in _TABLE:
        for name in names.split():
            plain = name.lstrip("*")
            table[plain] = (Fraction(factor), powers)
            if name.startswith("*"):
                prefixes = (
                    _PREFIXES
                    if len(plain) < 3 or plain in ("mol", "cal", "bit", "bar", "ohm")
                    else _LONG_PREFIXES
                )
                for prefix, power in prefixes.items():
                    scaled = Fraction(factor) * Fraction(10) ** power
                    prefixed[prefix + plain] = (scaled, powers)
    return prefixed | table


_UNITS = _entries()


@lru_cache(maxsize=4096)
def parse(text: str) -> Unit | None:
    """What a unit text means; None when it is empty, too long, or not of the form of a unit."""
    if not text or len(text) > MAX_UNIT_CHARS:
        return None
    return _Reader(text).unit()


_MACROS = (
    ("\\cdot", "*"), ("\\times", "*"), ("\\degree", "\\circ"), ("^\\circ", "\\circ"),
    ("\\circ C", "degC"), ("\\circ F", "degF"), ("\\circ", "deg "), ("\\mu ", "µ"),
    ("\\mu", "µ"), ("\\Omega", "ohm"),
)  # fmt: skip


_ABBREVIATED = re.compile(
    r"\b(in|ft|yd|mi|cu|sq|lbs?|oz|hrs?|mins?|secs?|gal|qt|pt|yrs?|cm|mm|km|kg|deg)\.(?=\s|$|[A-Za-z])"
)


def _plain(text: str) -> str:
    """The unit text with macros as the signs that they stand for."""
    if "\\" in text:
        for macro, sign in _MACROS:
            text = text.replace(macro, sign)
    return _ABBREVIATED.sub(r"\1 ", text) if "." in text else text


class _Reader:
    """Words with exponents, divided and multiplied."""

    def __init__(self, text: str) -> None:
        self.text = _plain(text).replace("{", "(").replace("}", ")").replace("\\", " ")
        self.factor = Fraction(1)
        self.powers: dict[str, int] = {}
        self.known = True
        self.sign = 1
        self.pending = 1
        self.last: tuple[Fraction, dict[str, int], int] | None = None

    def unit(self) -> Unit | None:
        for match in _TOKEN.finditer(self.text):
            if match.lastgroup == "other":
                return None
            if match.lastgroup == "power" and not self._raise(match[0]):
                return None
            if match.lastgroup == "sign":
                self.sign = -1 if match[0] == "/" else self.sign
            if match.lastgroup == "word":
                inch = match[0] == "in" and self._is_inch(match.end())
                self._word("inch" if inch else match[0])
        if self.last is None:
            return None
        powers = tuple(sorted((name, power) for name, power in self.powers.items() if power))
        return Unit(self.factor, powers, self.known)

    def _is_inch(self, end: int) -> bool:
        """Whether `in` is the unit and not the word, as in `km in total`."""
        following = self.text[end:].lstrip()
        if self.last is None:
            return not following[:1].isalpha() or following.startswith(("per ", "lb"))
        return not following or following[0] in "^/*)23" or self.sign < 0

    def _raise(self, text: str) -> bool:
        """Applies an exponent to the unit before it."""
        digits = "".join(character for character in text if character in "-0123456789")
        if self.last is None or not digits.lstrip("-") or len(digits) > 3:
            return False
        power = int(digits)
        if "^" not in text and power not in (2, 3):  # m2, but not m 7
            return False
        if not 0 < abs(power) <= MAX_POWER:
            return False
        factor, powers, sign = self.last
        self._add(factor, powers, sign * (power - 1))
        self.last = (Fraction(1), {}, 1)
        return True

    def _word(self, word: str) -> None:
        lowered = word.lower()
        if lowered in ("per", "each", "every"):
            self.sign = -1
            return
        if lowered in ("squared", "cubed") and self.last is not None:
            self._raise(str(_POWER_WORDS[lowered]))
            return
        if lowered in _POWER_WORDS:
            self.pending = _POWER_WORDS[lowered]
            return
        if lowered in ("of", "the", "a", "an", "in") and word != "A":
            return
        factor, powers = self._look_up(word)
        self._add(factor, powers, self.sign * self.pending)
        self.last = (factor, powers, self.sign)
        self.pending = 1

    def _look_up(self, word: str) -> tuple[Fraction, dict[str, int]]:
        for candidate in (word, word.lower(), _singular(word.lower())):
            if candidate in _UNITS:
                return _UNITS[candidate]
        self.known = False
        return Fraction(1), {f"word {_singular(word.lower())}": 1}

    def _add(self, factor: Fraction, powers: dict[str, int], power: int) -> None:
        if abs(power) <= MAX_POWER**2:
            self.factor *= factor**power
        for name, exponent in powers.items():
            self.powers[name] = self.powers.get(name, 0) + exponent * power


def _singular(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith("ss") and len(word) > 2:
        return word[:-1]
    return word


def harmless(text: str) -> bool:
    """Whether words behind a number can be a unit and change nothing else about it."""
    lowered = text.lower().replace(".", " ")
    unit = parse(text)
    if unit is None:
        return False
    if unit.known:
        return not unit.powers or unit.factor > 0
    listed = lowered.replace("/", " ").replace("-", " ").split()
    if any(len(word) == 1 and word.isascii() and word not in _UNITS for word in text.split()):
        return False
    if len(listed) > 6 or not _HARMLESS_TEXT.fullmatch(lowered.lstrip("/ ")):
        return False
    return not _TELLING.intersection(listed)
