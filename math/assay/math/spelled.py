"""Numbers in words: `one hundred and twelve`, `two thirds`, `minus five`, `三十二`, `三分之二`.

The grammar is strict, because whatever it accepts becomes an answer: `two three`, `five fifty` and
`two and three` are no numbers. Linear in the length of the text.
"""

# ruff: noqa: RUF001, SIM905 - numerals that look like letters; tables as words
from __future__ import annotations

import re
from fractions import Fraction

MAX_WORDS = 24

_UNITS = {
    word: value
    for value, word in enumerate(
        (
            "zero one two three four five six seven eight nine ten eleven twelve thirteen "
            "fourteen fifteen sixteen seventeen eighteen nineteen"
        ).split()
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
} | {"fourty": 40}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "twelfth": 12, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip
_PLURALS = {"halves": 2} | {f"{name}s": value for name, value in _PARTS.items() if name != "half"}
_SIGNS = frozenset({"minus", "negative"})
_WORDS = frozenset({*_UNITS, *_TENS, *SCALES, *_PARTS, *_PLURALS, *_SIGNS, "hundred", "a", "point"})
_MOST_PARTS = 20

_CHINESE_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {
    "〇": 0, "两": 2,
}  # fmt: skip
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000}
_CHINESE_MYRIADS = {"万": 10**4, "亿": 10**8}
_NUMERALS = "零〇一二两三四五六七八九十百千万亿"
_CLASSIFIERS = (
    "个|只|条|张|本|元|块|分|米|厘米|分米|千米|公里|千克|公斤|克|吨|升|毫升|秒|分钟|小时|天|岁|人|名"
    "|位|种|棵|支|辆|件|套|盒|箱|包|袋|瓶|杯|朵|台|页|题|平方米|平方厘米|立方米|立方厘米|度"
)
_CHINESE = re.compile(rf"(负?)([{_NUMERALS}]{{1,16}})({_CLASSIFIERS})?")
_CHINESE_PART = re.compile(rf"(负?)([{_NUMERALS}]{{1,12}})分之([{_NUMERALS}]{{1,12}})")


def begins(text: str) -> bool:
    """Whether a text in lower case could begin with a number in words; quick."""
    return text.replace("-", " ").partition(" ")[0].rstrip(",") in _WORDS or (
        text[0] in _NUMERALS or text[0] == "负"
    )


def leading(text: str) -> tuple[Fraction, str] | None:
    """The number that a text in words says, and the one to three words behind it.

    Args:
        text: in lower case, with single spaces.

    Returns:
        None when it does not begin with a number, or when words of numbers remain behind it.
    """
    chinese = _chinese(text)
    if chinese is not None:
        return chinese
    tokens = text.replace("-", " ").split()
    if not tokens or len(tokens) > MAX_WORDS:
        return None
    for size in range(len(tokens), max(len(tokens) - 4, 0), -1):
        behind = tokens[size:]
        if any(word.rstrip(",") in _WORDS - {"a"} for word in behind):
            return None
        number = value(tokens[:size])
        if number is not None:
            return number, " ".join(behind)
    return None


def value(tokens: list[str]) -> Fraction | None:
    """The value of a number in words; None when the words are no number."""
    if tokens == ["a"]:  # the choice, or an article
        return None
    if tokens[0] in _SIGNS:
        size = value(tokens[1:]) if len(tokens) > 1 and tokens[1] not in _SIGNS else None
        return None if size is None else -size
    if "point" in tokens:
        return _decimal(tokens)
    part = _part(tokens)
    if part is not None:
        return part
    if "and" in tokens:  # three and a half
        at = len(tokens) - 1 - tokens[::-1].index("and")
        whole, rest = tokens[:at], tokens[at + 1 :]
        if whole and rest and (part := _part(rest)) is not None and part < 1:
            known = _cardinal(whole)
            return None if known is None else known + part
    known = _cardinal(tokens)
    return None if known is None else Fraction(known)


def _decimal(tokens: list[str]) -> Fraction | None:
    """`three point one four`: digits one by one behind the point."""
    at = tokens.index("point")
    whole = _cardinal(tokens[:at]) if at else 0
    digits = [_UNITS.get(word, 10) for word in tokens[at + 1 :]]
    if whole is None or not digits or max(digits) > 9:
        return None
    return whole + Fraction(int("".join(map(str, digits))), 10 ** len(digits))


def _part(tokens: list[str]) -> Fraction | None:
    """`half`, `one third`, `two thirds`: singular behind one, plural behind more."""
    name = tokens[-1]
    if tokens == ["half"]:
        return Fraction(1, 2)
    if len(tokens) == 2 and tokens[0] in ("one", "a") and name in _PARTS:
        ordinal = tokens[0] == "a" and name not in ("half", "quarter")  # a third one
        return None if ordinal else Fraction(1, _PARTS[name])
    if name not in _PLURALS or len(tokens) < 2:
        return None
    count = _cardinal(tokens[:-1])
    if count is None or not 2 <= count <= _MOST_PARTS:
        return None
    return Fraction(count, _PLURALS[name])


def _cardinal(tokens: list[str]) -> int | None:
    """A whole number: groups below a thousand before scales that fall."""
    total, group, last = 0, [], 10**15
    for place, word in enumerate(tokens):
        scale = SCALES.get(word.rstrip(","))
        if scale is None:
            group.append(word)
            continue
        size = _hundreds(group) if group else (1 if place == 0 and len(tokens) == 1 else None)
        if size is None or not size or scale >= last:
            return None
        total, group, last = total + size * scale, [], scale
    if not group:
        return total
    if total and group[0] == "and":  # one thousand and five
        group = group[1:]
    size = _hundreds(group) if group else None
    if size is None or (total and (not size or size >= last)):
        return None
    return total + size


def _hundreds(words: list[str]) -> int | None:
    """A number below a thousand, or hundreds up to ninety-nine, as in twelve hundred."""
    if "hundred" in words:
        at = words.index("hundred")
        before, behind = words[:at], words[at + 1 :]
        count = 1 if before in ([], ["a"]) else _tens(before)
        if not count:
            return None
        if not behind:
            return count * 100
        rest = _tens(behind[1:] if behind[0] == "and" and len(behind) > 1 else behind)
        return count * 100 + rest if rest else None
    return 1 if words == ["a"] else _tens(words)


def _tens(words: list[str]) -> int | None:
    """A number below a hundred."""
    if len(words) == 1:
        return _UNITS.get(words[0], _TENS.get(words[0]))
    if len(words) == 2 and words[0] in _TENS and 1 <= _UNITS.get(words[1], 0) <= 9:
        return _TENS[words[0]] + _UNITS[words[1]]
    return None


def _chinese(text: str) -> tuple[Fraction, str] | None:
    part = _CHINESE_PART.fullmatch(text)
    if part is not None:
        below, above = _numeral(part[2]), _numeral(part[3])
        if not below or above is None:
            return None
        sign = -1 if part[1] else 1
        if part[2] == "百":
            return Fraction(sign * above), "%"
        return Fraction(sign * above, below), ""
    match = _CHINESE.fullmatch(text)
    number = _numeral(match[2]) if match else None
    if match is None or number is None:
        return None
    return Fraction(-number if match[1] else number), match[3] or ""


def _numeral(text: str) -> int | None:
    """A Chinese numeral; digits without scales, as in 一二三, are none."""
    for sign, scale in (("亿", 10**8), ("万", 10**4)):
        above, found, below = text.partition(sign)
        if found:
            high = _numeral(above) if above else None
            low = 0 if not below else _lower(below, scale)
            return None if not high or low is None or high >= 10**4 else high * scale + low
    return _below_myriad(text)


def _lower(text: str, scale: int) -> int | None:
    """What follows a scale: a single digit counts the next lower place, as in 一万二."""
    if len(text) == 1 and text in _CHINESE_DIGITS:
        return _CHINESE_DIGITS[text] * scale // 10 or None
    return _numeral(text)


def _below_myriad(text: str) -> int | None:
    total, digit, last, zero = 0, None, 10**4, False
    for sign in text:
        if sign in "零〇" and len(text) > 1:
            if zero or digit is not None or not total:
                return None
            zero = True
        elif sign in _CHINESE_DIGITS:
            if digit is not None:
                return None
            digit = _CHINESE_DIGITS[sign]
        else:
            scale = _CHINESE_SCALES[sign]
            if scale >= last or (digit is None and ((scale != 10 and len(text) > 1) or zero)):
                return None
            total, digit, last, zero = (
                total + (1 if digit is None else digit) * scale,
                None,
                scale,
                False,
            )
    if digit is None:
        return None if zero else total
    if total and last > 10 and not zero:
        return total + digit * last // 10
    return total + digit
