r"""The macros of LaTeX's siunitx: `\SI{3}{\metre\per\second}`, `\num{3e5}`, `\ang{30}`."""

from __future__ import annotations

import re

_OPTIONS = r"\s?(?:\[[^\[\]{}]{0,80}\])?\s?"
_BRACED = r"\{((?:[^{}]|\{[^{}]{0,12}\}){1,100})\}"
_ANY = re.compile(r"\\(?:SI|si|qty|unit|num|tablenum|ang)(?![A-Za-z])")
_QUANTITY = re.compile(rf"\\(?:SI|qty){_OPTIONS}\{{([^{{}}]{{1,60}})\}}\s?(?:\[\]\s?)?{_BRACED}")
_UNIT = re.compile(rf"\\(?:si|unit){_OPTIONS}{_BRACED}")
_NUMBER = re.compile(rf"\\(?:num|tablenum){_OPTIONS}\{{([^{{}}]{{1,60}})\}}")
_ANGLE = re.compile(
    rf"\\ang{_OPTIONS}\{{([^{{}};]{{0,20}})(?:;([^{{}};]{{0,10}});([^{{}};]{{0,10}}))?\}}"
)
_LITERAL = re.compile(
    r"\s?([-+]?[\d.,\s]*\d)\s?"
    r"(?:[eEdDx]\s?([-+]?\d{1,4})|\\times\s?10\^\{?(-?\d{1,4})\}?)?\s?"
)
_WORD = re.compile(
    r"\\(?!tothe|raiseto)([A-Za-z]+)|(?:\^|\\tothe)\s?\{?\s?([-+]?\d{1,2})\s?\}?"
    r"|([A-Za-z%°µ]+)|([./*~\s()])|(.)"
)
_POWERS_BEFORE = {"square": "2", "cubic": "3"}
_POWERS_BEHIND = {"squared": 2, "cubed": 3}
_PREFIXES = {
    "quecto": "", "yocto": "y", "zepto": "z", "atto": "a", "femto": "f", "pico": "p", "nano": "n",
    "micro": "µ", "milli": "m", "centi": "c", "deci": "d", "deca": "da", "deka": "da", "hecto": "h",
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P", "exa": "E",
}  # fmt: skip
_UNITS = {
    "metre": "m", "meter": "m", "gram": "g", "kilogram": "kg", "second": "s", "ampere": "A",
    "kelvin": "K", "mole": "mol", "candela": "cd", "newton": "N", "joule": "J", "watt": "W",
    "pascal": "Pa", "hertz": "Hz", "coulomb": "C", "volt": "V", "ohm": "ohm", "farad": "F",
    "tesla": "T", "weber": "Wb", "henry": "H", "siemens": "S", "litre": "L", "liter": "L",
    "minute": "min", "hour": "h", "day": "day", "degree": "degree", "celsius": "degC",
    "degreeCelsius": "degC", "percent": "percent", "electronvolt": "eV", "bar": "bar",
    "becquerel": "Bq", "radian": "rad", "steradian": "sr", "tonne": "tonne", "hectare": "ha",
    "angstrom": "angstrom", "atmosphere": "atm", "arcminute": "arcmin", "arcsecond": "arcsec",
    "lumen": "lm", "lux": "lx", "gray": "Gy", "sievert": "Sv", "bit": "bit", "byte": "byte",
}  # fmt: skip


def rewritten(form: str) -> str:
    r"""The form with siunitx' macros as numbers and `\text{unit}`; those not known stay."""
    if "\\" not in form or _ANY.search(form) is None:
        return form
    form = _QUANTITY.sub(_quantity, form)
    form = _UNIT.sub(lambda match: _wrapped(match[1]) or match[0], form)
    form = _NUMBER.sub(lambda match: _literal(match[1]) or match[0], form)
    return _ANGLE.sub(_angle, form)


def _quantity(match: re.Match[str]) -> str:
    number, unit = _literal(match[1]), _wrapped(match[2])
    return f"{number}{unit}" if number and unit else match[0]


def _literal(text: str) -> str:
    """A number as siunitx takes it: digits, perhaps with an exponent; empty for anything else."""
    match = _LITERAL.fullmatch(text)
    if match is None:
        return ""
    power = match[2] or match[3]
    digits = "".join(match[1].split())
    return digits if power is None else f"{digits}\\times 10^{{{int(power)}}}"


def _wrapped(text: str) -> str:
    unit = _unit(text)
    return f"\\text{{ {unit}}}" if unit else ""


class _Words:
    """The unit as it is read, word by word."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.prefix = self.power = ""
        self.inverse = False

    def macro(self, name: str) -> bool:
        """Takes a macro; false when it is unknown or stands where it cannot."""
        if name in ("cdot", "times"):
            return True
        if name == "per" and not self.inverse:
            self.inverse = True
        elif name in _POWERS_BEFORE and not self.power:
            self.power = _POWERS_BEFORE[name]
        elif name in _POWERS_BEHIND:
            return self.raise_last(_POWERS_BEHIND[name])
        elif name in _PREFIXES and not self.prefix:
            self.prefix = _PREFIXES[name]
        elif name in _UNITS:
            power = (-1 if self.inverse else 1) * int(self.power or 1)
            self.parts.append(f"{self.prefix}{_UNITS[name]}^{power}")
            self.prefix, self.power, self.inverse = "", "", False
        else:
            return False
        return True

    def raise_last(self, power: int) -> bool:
        """Raises the unit before; false when there is none."""
        if not self.parts:
            return False
        base, _, known = self.parts[-1].partition("^")
        self.parts[-1] = f"{base}^{int(known or 1) * power}"
        return True


def _unit(text: str) -> str:
    """The unit that macros or letters name, as words with exponents; empty when one is unknown."""
    words = _Words()
    for match in _WORD.finditer(text):
        macro, power, name, sign, other = match.groups()
        if other:
            return ""
        if macro and not words.macro(macro):
            return ""
        if power and not words.raise_last(int(power)):
            return ""
        if name or (sign and sign in "/()"):
            words.parts.append(name or sign)
    unread = words.prefix or words.power or words.inverse
    return "" if unread else " ".join(words.parts).replace("^1 ", " ").removesuffix("^1")


def _angle(match: re.Match[str]) -> str:
    degrees, minutes, seconds = match[1].strip() or "0", match[2] or "", match[3] or ""
    if not _LITERAL.fullmatch(degrees):
        return match[0]
    size = f"{degrees}^\\circ"
    if minutes.strip() or seconds.strip():
        size += f" {minutes.strip() or 0}'"
    return f"{size} {seconds.strip()}''" if seconds.strip() else size
