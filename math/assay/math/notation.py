r"""Notations rewritten into those that the parser knows, and further ways to read a whole answer.

`rewritten` holds always: `US\$18.90` is an amount, `]1,2[` an interval. `grouped` and `further` are
readings beside the first: `12,34,567` as one number, `A(2,3)` as a point.

Every function is linear in the length of its text.
"""

# ruff: noqa: SIM905 - one case, one return; tables as words
from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from assay.math import domains, units
from assay.math.text import bare

TEXT = r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|operatorname|mbox|textnormal)\*?"

_CURRENCIES = {
    "us": "dollars", "usd": "dollars", "eur": "euros", "euro": "euros", "euros": "euros",
    "gbp": "gbp", "rs": "rupees", "inr": "rupees", "rupees": "rupees",
    "cny": "yuan", "rmb": "yuan", "yuan": "yuan", "cad": "cad", "aud": "aud", "jpy": "jpy",
    "chf": "chf", "mxn": "mxn", "brl": "reais", "zar": "zar", "sgd": "sgd", "hkd": "hkd",
    "nzd": "nzd", "krw": "krw", "php": "php", "pounds": "gbp", "textsterling": "gbp",
}  # fmt: skip
_DOLLARS = {"us": "dollars", "a": "dollars", "au": "dollars", "c": "dollars", "ca": "dollars",
            "hk": "dollars", "nz": "dollars", "s": "dollars", "r": "reais"}  # fmt: skip
_CODES = "|".join(sorted(_CURRENCIES, key=len, reverse=True))
_MONEY = re.compile(
    rf"(?:(?P<open>{TEXT}\s?\{{\s?)|\\)?(?P<code>{_CODES}|hk|nz|au|ca|a|c|s|r)\.?\s?(?P<inner>\}})?"
    r"\s?(?P<dollar>\\dollar\s?)?(?P<amount>-?\d[\d.,' ]*)(?P<outer>\})?",
    re.IGNORECASE,
)
_UNION = re.compile(
    r"(?<=[)\]}])\s?(?:\\(?:text|mathrm|textbf)\s?\{\s?U\s?\}|U)\s?(?=[(\[][^()\[\]]{0,80},)"
)
_DEGREE_LETTER = re.compile(
    r"(?<=[\d}])\s?\^\s?(?:o(?![A-Za-z])|\{\s?o\s?\}|\\text\s?\{\s?o\s?\}|\{\s?\\text\s?\{\s?o\s?\}\s?\})"
)
_UNIT_VECTOR = re.compile(
    r"\\(?:hat|widehat|vec|overrightarrow)\s?(?:"
    r"\{\s?\\(?:mathbf|boldsymbol|bm|mathrm|bf)\s?\{?\s?([ijk])\s?\}?\s?\}"
    r"|\{\s?\\([ij])math\s?\}|\{\s?([ijk])\s?\}|\\([ij])math(?![a-z])|\s?([ijk])(?![A-Za-z]))"
)
_TIMES_TEN = re.compile(r"(?<=\d)\s?[xX]\s?(?=10\s?\^)")
_UNIT_FRACTION = re.compile(
    r"\\d?frac\s?\{\s?\\(?:text|mathrm)\s?\{\s?([A-Za-z]{1,12})\s?\}\s?\}"
    r"\{\s?\\(?:text|mathrm)\s?\{\s?([A-Za-z]{1,12})(\^\d)?\s?\}(\^\d|\^\{\d\})?\s?\}"
)
_EXPONENT = re.compile(r"\^\s?\{\s?(-?\d{1,2})\s?\}")
_LONG_UNIT = re.compile(
    r"(?<=[\d}\s])(\s?)\\(?:mathrm|text|textrm|mathit)\s?"
    r"\{((?:[^{}]|\^\s?\{\s?-?\d{1,2}\s?\}){1,60})\}"
)
_OHM = re.compile(
    r"(?<=\d)\s?(?:\\(?:mathrm|text|textrm)\s?\{\s?([kMGmn])\s?\}\s?\\Omega"
    r"|\\(?:mathrm|text|textrm)\s?\{\s?([kMGmn]?)\s?\\Omega\s?\})"
)
_MICRO_UNIT = re.compile(
    r"(?<=[\d}])\s?\\(?:text|mathrm|textrm)\s?\{\s?\\mu\s?([A-Za-z]{1,3})\s?\}"
)
_CELSIUS = re.compile(r"degrees?\s(Celsius|Fahrenheit|centigrade)", re.IGNORECASE)
_HANGING = re.compile(
    r"(?<=\d)\s?\^(?:\s|\\nolimits|\\textcircled|\\textcirc|\\bullet)*(?:\{\s?\\circ\s?\}|\})?$"
)
_LEADING = re.compile(
    r"(?:=(?![=>])|\\(?:implies|Rightarrow|to|rightarrow|longrightarrow|bullet|Longrightarrow)(?![a-z]))\s*"
)
_EXTREME = re.compile(r"\\(max|min)(?=\.?\s?(?:at|is|=|:)?\s)\s*(at|is)\b")
_NO_BASE = re.compile(r"(?<=[\d\s])\{\s?\}\s?(?=\^)|[\^_]\s?\{\s?\}|(?<=\})\{\s?\}$")
_ROOT_OF = re.compile(
    rf"(?:{TEXT}\s?\{{\s?)?(?:the )?(square|cube) root of\s?(?:\}}\s?)?"
    r"(\d{1,20}(?:\.\d+)?|[a-z]|\\pi|\\frac\{\d+\}\{\d+\}|\([^()]{1,40}\))\s?\}?"
)
_ABBREVIATED = re.compile(r"\b(sq|cu)\.\s?(?=[a-z])")
_OPEN_SYSTEM = re.compile(r"\\\{\s?(\\begin\{(?:array|aligned|cases|matrix|gathered)\}.*)")
_ARRAY = re.compile(r"\\begin\{array\}\s?(?:\{[lcr| ]{0,8}\})?|\\begin\{matrix\}")
_C = r"(?:C|\\(?:mathrm|text)\{C\})"
_CHOOSE = (
    re.compile(rf"(?:\{{\s?\}}\s?)?[_^]\s?\{{?(\d{{1,4}})\}}?\s?{_C}\s?_\s?\{{?(\d{{1,4}})\}}?"),
    re.compile(r"(\d{1,4})\s?C\s?(\d{1,4})"),
)  # fmt: skip
_INTEGER_TAILS = (
    re.compile(
        r",?\s?\(\s?(?P<name>[a-zA-Z])\s?\\in\s?\\(?:mathbb\s?\{?\s?)?(?P<domain>N|Z[+0]{0,2})\s?\}?\s?\)$"
    ),
    re.compile(
        rf",?\s?{TEXT}\s?\{{\s?,?\s?(?:where |for |with )?(?:any |all |some |every )?integers?"
        r"\s?\}\s?([a-zA-Z])$"
    ),
    re.compile(
        rf",?\s?{TEXT}\s?\{{\s?,?\s?(?:where|for|with)\s?(?:\}}\s?)?([a-zA-Z])\s?"
        rf"(?:{TEXT}\s?\{{\s?)?(?:is )?(?:an |any )?integer\s?\}}$"
    ),
)
_FOR_ALL = re.compile(
    rf",?\s?(?:{TEXT}\s?\{{\s?,?\s?for (?:all|every|any)(?: real)?(?: numbers?)?"
    r"\s?[a-z]?\s?\}\s?[a-z]?"
    r"|\\forall\s?[a-z])(?:\s?\\in\s?\\(?:mathbb\s?\{?\s?)?R\s?\}?)?$"
    r"|,\s?[a-z]\s?\\in\s?\\(?:mathbb\s?\{?\s?)?R\s?\}?$"
)
_CONSTANT = re.compile(rf"\+\s?(?:{TEXT}\s?\{{\s?)?const(?:ant)?\.?(?:\s?\}}|$)")
_BOUND = re.compile(
    rf"([a-z])\s?(?:{TEXT}\s?\{{\s?)?(?:is|must be) (?P<how>at least|at most"
    r"|greater than or equal to|less than or equal to|greater than|more than|less than)"
    r"\s?\}?\s?(?=[-\d\\])"
)
_BOUNDS = {"at least": "\\ge", "greater than or equal to": "\\ge", "at most": "\\le",
           "less than or equal to": "\\le", "greater than": ">", "more than": ">",
           "less than": "<"}  # fmt: skip
_DRESSED = re.compile(
    r"\\(?P<macro>mathbf|boldsymbol|bm|pmb|textbf|textit|emph|mathit|underline|text)\s?"
    r"\{(?P<inner>(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,60}\}){0,80}\}){1,120})\}"
)
_EQUATION = re.compile(r"\s?[A-Za-z](?:_\d)?\s?=\s?-?[\d.]+\s?")
_MAX_DRESSES = 4
_DEFINES = re.compile(r"[A-Za-z]\s?\(\s?[a-z]\s?\)\s?=")


def rewritten(form: str) -> str:
    """The form with notations put into those that the parser knows; itself where there are none."""
    for signs, rewrite in _RULES:
        if signs in form:
            form = rewrite(form)
    return form


def money(form: str) -> str:
    """`USD 18.90`, `Rs. 5`, `£3` and their like as the amount and its unit."""
    match = _MONEY.fullmatch(form) if len(form) < 80 else None
    if match is None or bool(match["open"]) != bool(match["inner"] or match["outer"]):
        return form
    if match["inner"] and match["outer"]:
        return form
    code = match["code"].lower()
    unit = (match["dollar"] and _DOLLARS.get(code)) or _CURRENCIES.get(code)
    if code == "us" and not match["dollar"]:
        return form
    return form if unit is None else f"{match['amount'].strip()}\\text{{{unit}}}"


_MEMBER = re.compile(r"[a-z]\s?\\in\s?(?![a-z])")


_TURNED = re.compile(r"\[\s?\\cup\s?[\[\]]|[\[\]]\s?\\cup\s?\]")


def _open_interval(form: str) -> str:
    """`]1,2[` as (1,2): brackets turned outwards leave the end out."""
    member = _MEMBER.match(form)
    head, body = (member[0], form[member.end() :]) if member else ("", form)
    outwards = body.startswith("]") or body.endswith("[") or _TURNED.search(body)
    if not outwards:
        return form
    pieces = re.split(r"([\[\]])", body)
    if len(pieces) < 5 or len(pieces) > 40:
        return form
    marks = pieces[1::2]
    if len(marks) % 2 or any(piece.strip() not in ("", "\\cup") for piece in pieces[0::4][1:-1]):
        return form
    for at in range(0, len(marks), 2):
        marks[at] = "(" if marks[at] == "]" else "["
        marks[at + 1] = ")" if marks[at + 1] == "[" else "]"
    pieces[1::2] = marks
    return f"{head} {''.join(pieces)}"


def _open_system(form: str) -> str:
    r"""`\left\{ \begin{array}...\end{array} \right.` as cases."""
    match = _OPEN_SYSTEM.fullmatch(form)
    if match is None or "\\}" in form:
        return form
    inner = _ARRAY.sub(r"\\begin{cases}", match[1])
    return inner.replace("\\end{array}", "\\end{cases}").replace("\\end{matrix}", "\\end{cases}")


def _binomial(form: str) -> str:
    """`{}_5C_2`, `^5C_2` and `5C2`, the whole answer, as binomial coefficients."""
    for pattern in _CHOOSE:
        match = pattern.fullmatch(form)
        if match is not None and int(match[1]) >= int(match[2]):
            return f"\\binom{{{match[1]}}}{{{match[2]}}}"
    return form


def _integers(form: str) -> str:
    r"""`for any integer k` and `(k \in \mathbb{Z})` behind a comma as a membership."""
    for pattern in _INTEGER_TAILS:
        match = pattern.search(form, max(0, len(form) - 80))
        if match is not None:
            domain = match.groupdict().get("domain", "Z")
            return f"{form[: match.start()]}, {match[1]} \\in \\mathbb{{{domain}}}"
    if _DEFINES.match(form):
        return _FOR_ALL.sub("", form)
    return form


def _bound(form: str) -> str:
    """`x is at least 5` as an inequality."""
    match = _BOUND.match(form)
    return form if match is None else f"{match[1]} {_BOUNDS[match['how']]} {form[match.end() :]}"


def _undressed(form: str) -> str:
    r"""`\mathbf{x = 5}`, `\underline{\textbf{5}}`: what is but dressed, as it is."""
    for _ in range(_MAX_DRESSES):
        match = _DRESSED.fullmatch(form)
        if match is None:
            break
        if match["macro"] == "text" and not _EQUATION.fullmatch(match["inner"]):
            break
        form = match["inner"].strip()
    return form


def _place(form: str) -> str:
    r"""`3^{\text{rd}}` and `\text{3rd}` as 3rd."""
    match = _POSITION.fullmatch(form) if len(form) < 40 and form != bare(form) else None
    return form if match is None or _suffix(match[1]) != match[2] else f"{match[1]}{match[2]}"


def _led(form: str) -> str:
    r"""The form without the sign of a step that it begins with: `= 5`, `\Rightarrow 5`."""
    match = _LEADING.match(form)
    return form if match is None else form[match.end() :] or form


def _scale(match: re.Match[str]) -> str:
    return f"^\\circ {'F' if match[1].lower() == 'fahrenheit' else 'C'}"


_FIGURE = re.compile(
    rf"{TEXT}\s?\{{\s?(?:the |an? )?(?:straight )?(?:line|plane|circle|ellipse|parabola)"
    r"(?: with equation| given by|:)?\s?\}\s?(?=[^,;]{1,200}=)",
    re.IGNORECASE,
)
_CIRCLE = re.compile(
    r"(?:the |a )?circle (?:with|of|having) (?:its )?cent(?:er|re) (?:at )?"
    r"\(\s?(-?[\d.]{1,12})\s?,\s?(-?[\d.]{1,12})\s?\),?"
    r" (?:and|with)(?: a)? radius (?:of )?([\d.]{1,12})",
    re.IGNORECASE,
)


def _figure(form: str) -> str:
    """An equation without the words for what it describes; a circle in words as its equation."""
    if len(form) < 200 and (match := _CIRCLE.fullmatch(bare(form))):
        x, y, radius = match.groups()
        return f"(x - ({x}))^2 + (y - ({y}))^2 = {radius}^2"
    return _FIGURE.sub("", form) if _FIGURE.match(form) else form


def _root(form: str) -> str:
    """`the square root of 2`, the whole answer, as a root."""
    match = _ROOT_OF.fullmatch(form)
    if match is None:
        return form
    return f"\\sqrt{'[3]' if match[1] == 'cube' else ''}{{{match[2]}}}"


_RULES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("{}", lambda form: _NO_BASE.sub("", form)),
    ("{ }", lambda form: _NO_BASE.sub("", form)),
    ("=", _led),
    ("\\", _led),
    ("^", lambda form: _HANGING.sub(r"^\\circ", form)),
    ("root of", _root),
    ("line", _figure),
    ("plane", _figure),
    ("circle", _figure),
    ("ellipse", _figure),
    ("parabola", _figure),
    (" at ", lambda form: _EXTREME.sub(r"\\text{\1 \2} ", form)),
    ("^{", lambda form: _LONG_UNIT.sub(_spelled_unit, form)),
    ("\\Omega", lambda form: _OHM.sub(r"\\text{\1\2ohm}", form)),
    ("\\mu", lambda form: _MICRO_UNIT.sub(r"\\text{µ\1}", form)),
    ("egree", lambda form: _CELSIUS.sub(_scale, form)),
    ("\\mathb", domains.rewritten),
    ("\\in", domains.rewritten),
    ("\\Bbb", domains.rewritten),
    ("U", lambda form: _UNION.sub(r" \\cup ", form)),
    ("o", lambda form: _DEGREE_LETTER.sub(r"^\\circ", form) if "^" in form else form),
    ("\\hat", lambda form: _UNIT_VECTOR.sub(_letter, form)),
    ("\\vec", lambda form: _UNIT_VECTOR.sub(_letter, form)),
    ("\\widehat", lambda form: _UNIT_VECTOR.sub(_letter, form)),
    ("10", lambda form: _TIMES_TEN.sub(r" \\times ", form)),
    ("frac", lambda form: _UNIT_FRACTION.sub(_unit_fraction, form)),
    ("q.", lambda form: _ABBREVIATED.sub(r"\1 ", form)),
    ("\\begin", _open_system),
    ("const", lambda form: _CONSTANT.sub("+ C", form)),
    ("than", _bound),
    (" at ", _bound),
    ("\\underline", _undressed),
    ("\\b", _undressed),
    ("\\mathb", _undressed),
    ("\\mathit", _undressed),
    ("\\text", _undressed),
    ("\\emph", _undressed),
    ("th", _place),
    ("rd", _place),
    ("nd", _place),
    ("st", _place),
    ("~", lambda form: form.lstrip("~ ") or form),
    ("C", _binomial),
    ("]", _open_interval),
    ("[", _open_interval),
    ("nteger", _integers),
    ("Z", _integers),
    ("\\forall", _integers),
    ("for ", _integers),
    ("R", _integers),
)


def _spelled_unit(match: re.Match[str]) -> str:
    r"""`\mathrm{kg\,m^{-1}}` without braces in it, where it is a unit."""
    unit = _EXPONENT.sub(r"^\1", match[2])
    known = units.parse(unit)
    return f"{match[1]}\\text{{{unit}}}" if known is not None and known.known else match[0]


def _unit_fraction(match: re.Match[str]) -> str:
    unit = f"{match[1]}/{match[2]}{match[3] or ''}{match[4] or ''}"
    known = units.parse(unit)
    return f"\\text{{{unit}}}" if known is not None and known.known else match[0]


def _letter(match: re.Match[str]) -> str:
    return f" {next(group for group in match.groups() if group)} "


# --- Numbers --------------------------------------------------------------------------------------

_GROUPS = (
    (re.compile(r"\d{1,3}(?:\.\d{3})+,\d{1,2}"), ".", ","),  # 1.234,50
    (re.compile(r"\d{1,3}(?: \d{3})+,\d{1,2}"), " ", ","),  # 1 234,50
    (re.compile(r"\d{1,3}(?: \d{3})+\.\d{1,9}"), " ", "."),  # 1 234.50
    (re.compile(r"\d{1,3}(?:\.\d{3}){2,}"), ".", "."),  # 1.234.567
    (re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?"), ",", "."),  # 12,34,567
    (re.compile(r"\d{1,3}(?:'\d{3})+(?:\.\d+)?"), "'", "."),  # 1'234'567
    (re.compile(r"\d{1,3}(?:~\d{3})+(?:\.\d+)?"), "~", "."),
)
_NUMBER_AND_REST = re.compile(r"(-?\s?(?:\\dollar\s?)?)(\d[\d.,'~ ]*\d)(\s?[^\d]{0,40})")
_MIXED = re.compile(r"(-?\d{1,9}) and (a half|\d{1,4}/\d{1,4}|\\[dt]?frac\{\d{1,4}\}\{\d{1,4}\})")
_AMOUNT = re.compile(r"(?:,?\s?(?:and\s)?)(\d{1,9}(?:\.\d+)?)\s?([A-Za-z]{1,14})\.?")
_MAX_AMOUNTS = 5
_FEET = re.compile(
    r"(?:(\d{1,4})\s?(?:'|\^\s?(?:\{\s?\\prime\s?\}|\\prime))(?!'))?\s?"
    r"(?:(\d{1,4}(?:\.\d+)?)\s?(?:\"|''|\^\s?\{\s?\\prime\s?\\prime\s?\}))?"
)
_TEX_POWER = re.compile(r"\^(\d)(\d{1,4})(?=\s?\^)")
_MINUTES = re.compile(
    r"(-?)(\d{1,4})\s?(?:\\degree|\^\s?\{?\s?\\(?:circ|degree)\s?\}?)\s?"
    r"(\d{1,2})\s?(?:'|\^\s?\{?\s?(?:\\prime|')\s?\}?)"
    r"(?:\s?(\d{1,2})\s?(?:''|\"|\^\s?\{\s?(?:\\prime\s?\\prime|'')\s?\}))?"
)
_POSITION = re.compile(
    rf"(?:\\text\s?\{{\s?)?(\d{{1,6}})\s?(?:\^\s?\{{?\s?)?(?:{TEXT}\s?\{{\s?)?\s?"
    r"(st|nd|rd|th)\s?\}{0,2}(?: place)?"
)
_OHMS = re.compile(r"(-?\d+(?:\.\d+)?)\s?\\Omega")
_MICRO = re.compile(r"(-?\d+(?:\.\d+)?)\s?\\mu\s?(?:\\(?:text|mathrm)\s?\{)?([msgFCALW])\}?")
_PERIOD = re.compile(r"(-?\d{0,20}\.\d{0,20})\((\d{1,20})\)")
_ORDINALS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(), start=1
    )
}
_RATIO = re.compile(r"\d{1,9}(?:\.\d+)?(?: to \d{1,9}(?:\.\d+)?){1,4}")


def grouped(form: str) -> str:
    """A number grouped as in Germany, France, India or Switzerland in plain digits, or empty."""
    match = _NUMBER_AND_REST.fullmatch(form) if len(form) < 120 else None
    if match is None:
        return ""
    for pattern, mark, point in _GROUPS:
        if pattern.fullmatch(match[2]):
            digits = match[2].replace(mark, "").replace(point, ".")
            return f"{match[1]}{digits}{match[3]}"
    return ""


def further(form: str) -> str:
    """Another way to read a whole answer: a mixed number, a place, a ratio."""
    if len(form) > 120:
        return ""
    plain = bare(form)
    match = _MIXED.fullmatch(plain) if " and " in plain else None
    if match is not None:
        part = "\\frac12" if match[2] == "a half" else match[2]
        return f"{match[1]} {part}"
    match = _POSITION.fullmatch(form)
    if match is not None and _suffix(match[1]) == match[2]:
        return match[1]
    changed = _measured(form) if "\\" in form or "(" in form or "^" in form else ""
    if changed:
        return changed
    ordinal = _ORDINALS.get(plain.lower())
    if ordinal is not None:
        return str(ordinal)
    return plain.replace(" to ", ":") if " to " in plain and _RATIO.fullmatch(plain) else ""


def _measured(form: str) -> str:
    """Ohms, prefixes of a millionth, a repeating part in brackets, powers side by side."""
    match = _OHMS.fullmatch(form)
    if match is not None:
        return f"{match[1]}\\text{{ohm}}"
    match = _MICRO.fullmatch(form)
    if match is not None:
        return f"{match[1]}\\text{{µ{match[2]}}}"
    match = _PERIOD.fullmatch(form)
    if match is not None:
        return f"{match[1]}\x01{match[2]}"
    return _TEX_POWER.sub(r"^{\1} \2", form) if _TEX_POWER.search(form) else ""


def _suffix(digits: str) -> str:
    """What an English ordinal ends in."""
    if digits[-2:-1] == "1":
        return "th"
    return {"1": "st", "2": "nd", "3": "rd"}.get(digits[-1], "th")


def compound(form: str) -> tuple[Fraction, str] | None:
    """`2 hours 30 minutes`, `30°15'` as one amount of the larger unit."""
    angle = _MINUTES.fullmatch(form)
    if angle is not None:
        seconds = Fraction(int(angle[4] or 0), 3600)
        size = int(angle[2]) + Fraction(int(angle[3]), 60) + seconds
        return -size if angle[1] else size, "degree"
    amounts = _amounts(bare(form))
    angle_in_words = _angle(amounts)
    if angle_in_words is not None:
        return angle_in_words, "degree"
    if len(amounts) < 2:
        return None
    total, previous, name = Fraction(0), None, amounts[0][1]
    for number, unit in amounts:
        known = units.parse(unit)
        if known is None or not known.known or not known.powers:
            return None
        if previous is not None and (
            known.powers != previous.powers or known.factor >= previous.factor
        ):
            return None
        total += Fraction(number) * known.factor
        previous = known
    first = units.parse(name)
    return None if first is None else (total / first.factor, name)


def _angle(amounts: list[tuple[str, str]]) -> Fraction | None:
    """`20 degrees 24 minutes`: behind degrees, minutes are those of an angle."""
    names = [unit.lower().removesuffix("s") for _, unit in amounts]
    if len(names) < 2 or names != ["degree", "minute", "second"][: len(names)]:
        return None
    parts = [Fraction(number) / 60**at for at, (number, _) in enumerate(amounts)]
    return sum(parts, Fraction(0))


def _amounts(form: str) -> list[tuple[str, str]]:
    """The amounts that a form is made of; empty when something else is in it."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(form):
        match = _AMOUNT.match(form, at)
        if match is None or len(found) == _MAX_AMOUNTS:
            return []
        found.append((match[1], match[2]))
        at = match.end()
    return found


def feet_and_inches(form: str) -> tuple[Fraction, str] | None:
    """`6' 2"` and `5''`, whole answers, as an amount of feet or inches."""
    marked = "'" in form or '"' in form or "prime" in form
    match = _FEET.fullmatch(form) if marked and len(form) < 40 else None
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        return Fraction(match[2]), "inch"
    return Fraction(match[1]) + Fraction(match[2] or 0) / 12, "ft"


_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
           "lakh": 10**5, "crore": 10**7}  # fmt: skip
_MYRIADS = {"万": 10**4, "亿": 10**8}


def scaled(unit: str) -> tuple[int, str]:
    """The power of ten that a unit begins with, and the unit: `million dollars`, `万元`."""
    first, _, rest = unit.strip().partition(" ")
    factor = _SCALES.get(first.lower().removesuffix("s"))
    if factor is not None:
        return factor, rest.strip()
    factor = _MYRIADS.get(unit[:1])
    return (1, unit) if factor is None else (factor, unit[1:].strip())
