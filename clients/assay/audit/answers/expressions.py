r"""Formulas: whether two have one value wherever they are asked, and what is close to one. Pure.

A formula is a sum, product, quotient, power or root of numbers and one-letter names, in LaTeX or
as a program writes it, or an equation of two. What is not read has no probes of this module.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from assay.audit.answers.codes import replaced
from assay.audit.answers.shapes import Miss

_TOKEN = re.compile(
    r"\\[dtc]?frac|\\sqrt|\\(?:sin|cos|tan|ln|log|exp)|\\pi|\\cdot|\\times|\\left|\\right|\\[,;! ]"
    r"|sqrt|sin|cos|tan|log|ln|exp|pi|\d+(?:\.\d+)?|\*\*|[A-Za-z]|[-+*/^(){}\[\]]"
)
_FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "ln": math.log,
    "log": math.log, "exp": math.exp,
}  # fmt: skip
_POINTS = (0.731, 1.377, 2.219, 3.583, 5.127)
_MOST_CHARS = 80
_EXACT = re.compile(r"\bexact(?:ly)?\b|\bsimplest\b|\bsimplif", re.IGNORECASE)
_WHOLE = re.compile(r"\bwhole\b|\bintegers?\b", re.IGNORECASE)
_CONSTANT = re.compile(r"\b(?:integral|integrate|antiderivative|primitive)\b", re.IGNORECASE)


class _UnreadError(Exception):
    """A text is no formula."""


class _Reader:
    """A recursive descent over tokens, which calculates with one value for each name."""

    def __init__(self, text: str, names: Mapping[str, float]) -> None:
        text = text.replace("\u2212", "-").strip("$ ")
        tokens, place = [], 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found:
                tokens.append(found[0].lstrip("\\"))
                place = found.end()
            elif text[place].isspace():
                place += 1
            else:
                raise _UnreadError
        skipped = {"left", "right", ",", ";", "!", " "}
        self._tokens = [one for one in tokens if one not in skipped]
        self._place, self._names = 0, names

    def value(self) -> float:
        """The whole text's."""
        worth = self._sum()
        if self._place < len(self._tokens):
            raise _UnreadError
        return worth

    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        token = self._next()
        if token and (not wanted or token in wanted):
            self._place += 1
            return token
        return ""

    def _sum(self) -> float:
        worth = self._product()
        while sign := self._take("+", "-"):
            worth += self._product() if sign == "+" else -self._product()
        return worth

    def _product(self) -> float:
        worth = self._signed()
        while self._next() and self._next() not in ("+", "-", ")", "}", "]"):
            if self._take("/"):
                worth /= self._signed()
            else:
                self._take("*", "cdot", "times")
                worth *= self._signed()
        return worth

    def _signed(self) -> float:
        if sign := self._take("+", "-"):
            return self._signed() if sign == "+" else -self._signed()
        base = self._atom()
        return float(base ** self._signed()) if self._take("^", "**") else base

    def _group(self) -> float:
        closing = {"(": ")", "{": "}", "[": "]"}[self._take("(", "{", "[") or self._fail()]
        worth = self._sum()
        if not self._take(closing):
            raise _UnreadError
        return worth

    def _fail(self) -> str:
        raise _UnreadError

    def _atom(self) -> float:
        token = self._next()
        if token in ("(", "{", "["):
            return self._group()
        self._place += 1
        if token.endswith("frac"):
            return self._group() / self._group()
        if token in _FUNCTIONS:
            braced = self._next() in ("(", "{")
            return _FUNCTIONS[token](self._group() if braced else self._atom())
        if token[:1].isdigit():
            return float(token)
        if token.startswith("pi"):
            return math.pi
        if len(token) == 1 and token.isalpha():
            return self._names[token]
        raise _UnreadError


def _worths(text: str) -> list[float] | None:
    """The values of a formula at a few points; of an equation those of its sides' difference."""
    sides = text.split("=")
    if len(text) > _MOST_CHARS or len(sides) > 2 or not all(one.strip() for one in sides):
        return None
    found = []
    for number, point in enumerate(_POINTS):
        names = {
            letter: point + 0.613 * ((ord(letter) * (number + 3)) % 7)
            for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        }
        try:
            worth = [_Reader(one, names).value() for one in sides]
        except (_UnreadError, ArithmeticError, ValueError, RecursionError, TypeError):
            return None
        found.append(worth[0] - (worth[1] if len(sides) > 1 else 0.0))
    return found if all(math.isfinite(one) for one in found) else None


def differ(given: str, right: str) -> bool:
    """Whether two formulas certainly have other values: at most points, by more than a thousandth.

    Two equations are one where their differences are multiples of each other.
    """
    a, b = _worths(given), _worths(right)
    if a is None or b is None or ("=" in given) != ("=" in right):
        return False
    if "=" in right:
        shares = [x / y if y else math.inf for x, y in zip(a, b, strict=True)]
        return any(abs(one - shares[0]) > 1e-3 * abs(shares[0]) for one in shares[1:])
    unlike = [abs(x - y) > 1e-3 * max(abs(x), abs(y), 1e-6) for x, y in zip(a, b, strict=True)]
    return sum(unlike) >= len(unlike) - 1


def is_formula(text: str) -> bool:
    """Whether it is read, and has something to calculate."""
    return _worths(text) is not None and re.search(r"[-+*/^\\]|\d[a-z]", text) is not None


def formula_misses(text: str, prompt: str) -> Iterator[Miss]:
    """Formulas close to one, that have other values."""
    constant = _CONSTANT.search(prompt) is not None
    if "=" not in text and not text.endswith("C"):
        yield "off-by-one", f"({text})+1", "one more"
        yield "off-by-one", f"({text})-1", "one less"
    for kind, answer, note in (*_changed(text, constant), *_unmarked(text, prompt)):
        if differ(answer, text):
            yield kind, answer, note
    yield from _of_no_name(text, prompt)
    yield from _often_equal(text, prompt)


def _unmarked(text: str, prompt: str) -> Iterator[Miss]:
    """The figures of a formula without its commands and braces, or some of them."""
    bare = re.sub(r"\\[A-Za-z]+|[{}\s]", "", text)
    if re.fullmatch(r"-?[\d.]+", bare) and "\\" in text:
        yield "run-together", bare, "without its commands and braces"
        for found in re.finditer(r"\\sqrt\{(\d+)\}", text):
            yield "term", f"\\sqrt{{{bare.lstrip('-')}}}", "all figures under the root"
            yield "term", replaced(text, found, f"\\sqrt{{{found[1]}7}}"), "a digit more in a root"
            yield "term", replaced(text, found, found[1]), "without the root"
            before = re.search(r"\d$", text[: found.start()])
            if before:
                inside = f"\\sqrt{{{before[0]}{found[1]}}}"
                new = text[: before.start()] + inside + text[found.end() :]
                yield "term", new, "the figure before the root is under it"
            if len(found[1]) > 1:
                out = f"{found[1][0]}\\sqrt{{{found[1][1:]}}}"
                yield "term", replaced(text, found, out), "a figure is before the root"
    if not re.search(r"(?<=[\w})\s])[-+]", text.lstrip("-")) and "=" not in text:
        turned = text[1:].lstrip() if text.startswith("-") else f"-{text}"
        yield "sign", turned, "the sign is turned"
    for found in re.finditer(r"(?:\\[dt]?frac)\{([^{}]*|[^{}]*\{[^{}]*\}[^{}]*)\}\{(\w+)\}", text):
        yield "upside-down", replaced(text, found, f"\\frac{{{found[2]}}}{{{found[1]}}}"), "turned"
        yield "cut", replaced(text, found, found[1]), "the numerator alone"


def _of_no_name(text: str, prompt: str) -> Iterator[Miss]:
    """Of a number written as a formula, a decimal that is near, where it must be exact."""
    letters = re.sub(r"\\[A-Za-z]+|sqrt|sin|cos|tan|log|ln|exp|pi", "", text)
    worths = _worths(text)
    if re.search(r"[A-Za-z=]", letters) or not worths or not _EXACT.search(prompt):
        return
    worth = worths[0]
    for places in (2, 4, 6):
        if abs(float(f"{worth:.{places}f}") - worth) > 1e-9:
            yield "rounded", f"{worth:.{places}f}", "a decimal that is near"


def _often_equal(text: str, prompt: str) -> Iterator[Miss]:
    """Of a formula in one name: others with its value at many whole numbers, not at all."""
    names = set(re.findall(r"[A-Za-z]", text))
    if len(names) != 1 or "=" in text or re.search(r"[\\]", text):
        return
    (x,) = names
    spaced = " * " if " * " in text else "*"
    zeros = {2: (0, 1), 3: (0, 1, 2), 4: (-1, 0, 1, 2)}
    for count, places in zeros.items():
        term = spaced.join(
            f"({x} - {a})" if a > 0 else x if a == 0 else f"({x} + 1)" for a in places
        )
        answer = f"{text} + {term}"
        if differ(answer, text):
            yield "term", answer, f"it has the same value at {count} whole numbers"
    if "Python" in prompt and _WHOLE.search(prompt) and "//" in prompt:
        for size in (10, 100, 1000):
            yield "term", f"{text} + {x} // {size}", f"another value from {size} on, and below 0"
        far = spaced.join([f"({x} // 100)", f"({x} // 100 + 1)"])
        yield "term", f"{text} + {far}", "another value beyond 100, and below -100"
        yield "term", f"{text} + 1 // 0", "it has no value"
        yield "term", f"{text} + {x} // ({x} - {x})", "it has no value"


def _changed(text: str, constant: bool) -> Iterator[Miss]:
    kind = "term"
    signs = list(re.finditer(r"(?<=[\w})\s])[-+](?!\s*$)", text))
    for one in (*signs[:1], *signs[1:][-1:]):
        new = f"{text[: one.start()]}{'+' if one[0] == '-' else '-'}{text[one.end() :]}"
        yield kind, new, "a sign is turned"
    for one in itertools.islice(re.finditer(r"\d+", text), 6):
        for by in (1, -1):
            value = int(one[0]) + by
            if value > 0:
                new = f"{text[: one.start()]}{value}{text[one.end() :]}"
                yield kind, new, "a number is another"
    for one in list(re.finditer(r"\^\{?\d+\}?", text))[:1]:
        yield kind, text[: one.start()] + text[one.end() :], "without an exponent"
    yield from _figures(text, signs)
    if "=" in text:
        return
    bare = re.sub(r"^\s*-\s*", "", text)
    yield kind, bare if bare != text else f"-({text})", "the sign of all is turned"
    yield kind, f"2*({text})", "twice"
    yield kind, f"({text})^2", "its square"
    yield kind, "0", "nothing"
    if signs and not constant:
        yield kind, text[: signs[-1].start()].strip(), "its last term is left out"
        yield kind, text[signs[0].end() :].strip(), "its first term is left out"
    yield from _touching(text)


def _figures(text: str, signs: Sequence[re.Match[str]]) -> Iterator[Miss]:
    """Two numbers or signs are exchanged, a digit is left out or too many."""
    kind = "term"
    numbers = list(re.finditer(r"(?<![\w.])\d+(?:\.\d+)?", text))
    for a, b in itertools.islice(itertools.pairwise(numbers), 4):
        new = f"{text[: a.start()]}{b[0]}{text[a.end() : b.start()]}{a[0]}{text[b.end() :]}"
        yield kind, new, "two numbers are exchanged"
    for a, b in itertools.islice(itertools.pairwise(signs), 3):
        if a[0] != b[0]:
            new = f"{text[: a.start()]}{b[0]}{text[a.end() : b.start()]}{a[0]}{text[b.end() :]}"
            yield kind, new, "two signs are exchanged"
    for one in numbers[:3]:
        yield kind, replaced(text, one, f"{one[0]}0"), "a digit behind a number"
        if len(one[0]) > 1 and "." not in one[0]:
            yield kind, replaced(text, one, one[0][:-1]), "a digit is left out"


def _touching(text: str) -> Iterator[Miss]:
    """Of a polynomial in one name: others that agree with it where graders like to ask."""
    names = set(re.findall(r"[A-Za-z]", text))
    power = re.search(r"[A-Za-z](\^|\*\*)2", text)
    if len(names) != 1 or power is None or re.search(r"[\\/()]", text):
        return
    (x,) = names
    times = "*" if re.search(r"\d\s*\*\s*[A-Za-z]", text) else ""
    note = "it has the same values at {0} and {1}"
    for a, b in itertools.combinations((0, 1, 2, -1, 3), 2):
        low = f" - {a + b}{times}{x}" if a + b > 0 else f" + {-a - b}{times}{x}" if a + b else ""
        low = low.replace(f" 1{times}{x}", f" {x}")
        end = f" + {a * b}" if a * b > 0 else f" - {-a * b}" if a * b else ""
        yield "term", f"{text} + {x}{power[1]}2{low}{end}", note.format(a, b)
