"""Generated problems, like collections of small Python tasks. Pure.

Each has a sentence that asks for a function, assertions, and a solution of several lines in which a
wrong line spoils what follows. No text is from a benchmark.

    append       letters are appended to a text, one line each
    arithmetic   steps of arithmetic on a number, one line each
    select       a sum or a count over the numbers of a list that satisfy a condition
    count        how often some letters occur in a text
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

Row = dict[str, Any]
Family = Literal["append", "arithmetic", "select", "count"]
FAMILIES: tuple[Family, ...] = get_args(Family)
LETTERS = "abcdefgh"
APPEND_LINES = (4, 6)
_TRIES = 50


def generate(families: Sequence[str], count: int, seed: int, instruction: str = "") -> list[Row]:
    """Different problems of the families in turn, in an order of the seed.

    Returns:
        Rows {"id", "family", "question", "tests", "solution"}.

    Raises:
        ValueError: the families have fewer different ones.
    """
    dice = random.Random(seed)  # noqa: S311  # no secret
    rows: dict[str, Row] = {}
    tries = 0
    while len(rows) < count:
        family = families[len(rows) % len(families)]
        question, solution, asserts = _MAKERS[family](dice)
        tries += 1
        if question in rows:
            if tries > _TRIES * count:
                raise ValueError(f"{', '.join(families)} have fewer than {count} problems")
            continue
        rows[question] = {
            "id": f"{family}-{len(rows)}",
            "family": family,
            "question": question + instruction,
            "tests": {"asserts": asserts},
            "solution": solution,
        }
    return list(rows.values())


def append_problem(letters: str) -> tuple[str, str, list[str]]:
    """Question, solution and assertions of the family `append` with these letters."""
    named = "', '".join(letters)
    question = (
        f"Write a function extend(s) that puts '{named}' behind the text s, one by one and in this "
        "order, and returns the result."
    )
    lines = "".join(f"    s = s + '{letter}'\n" for letter in letters)
    asserts = [f"assert extend({text!r}) == {text + letters!r}" for text in ("", "xy")]
    return question, f"def extend(s):\n{lines}    return s\n", asserts


def _append(dice: random.Random) -> tuple[str, str, list[str]]:
    return append_problem("".join(dice.sample(LETTERS, k=dice.randint(*APPEND_LINES))))


def _arithmetic(dice: random.Random) -> tuple[str, str, list[str]]:
    phrases, lines, value = [], "", {n: n for n in (0, 3, -5)}
    for _ in range(dice.randint(3, 5)):
        sign, number = dice.choice("+-*"), dice.randint(2, 9)
        word = {"+": "adds {}", "-": "takes away {}", "*": "multiplies by {}"}[sign]
        phrases.append(word.format(number))
        lines += f"    n = n {sign} {number}\n"
        value = {n: _apply(sign, now, number) for n, now in value.items()}
    question = (
        "Write a function change(n) that starts from the whole number n, "
        f"{', then '.join(phrases)}, and returns what comes out."
    )
    asserts = [f"assert change({n}) == {now}" for n, now in value.items()]
    return question, f"def change(n):\n{lines}    return n\n", asserts


def _apply(sign: str, value: int, number: int) -> int:
    return {"+": value + number, "-": value - number, "*": value * number}[sign]


def _select(dice: random.Random) -> tuple[str, str, list[str]]:
    border, factor = dice.randint(2, 9), dice.randint(2, 5)
    word, code, holds = dice.choice(_conditions(border))
    counting = dice.random() < 0.3
    asked = "how many numbers" if counting else f"{factor} times the sum of the numbers"
    question = (
        f"Write a function collect(items) that returns {asked} in the list items that are {word}."
    )
    step = "1" if counting else "item"
    last = "total" if counting else f"{factor} * total"
    solution = (
        "def collect(items):\n    total = 0\n    for item in items:\n"
        f"        if {code}:\n            total = total + {step}\n    return {last}\n"
    )
    asserts = []
    for _ in range(3):
        items = [dice.randint(-3, 20) for _ in range(dice.randint(0, 6))]
        kept = [item for item in items if holds(item)]
        value = len(kept) if counting else factor * sum(kept)
        asserts.append(f"assert collect({items}) == {value}")
    return question, solution, asserts


def _conditions(border: int) -> list[tuple[str, str, Callable[[int], bool]]]:
    return [
        (f"greater than {border}", f"item > {border}", lambda item: item > border),
        (f"less than {border}", f"item < {border}", lambda item: item < border),
        (f"divisible by {border}", f"item % {border} == 0", lambda item: item % border == 0),
    ]


def _count(dice: random.Random) -> tuple[str, str, list[str]]:
    letters = "".join(dice.sample("abcdefghijklmnop", dice.randint(2, 4)))
    named = ", ".join(f"'{letter}'" for letter in letters)
    question = (
        f"Write a function occurrences(text) that returns how often the letters {named} occur in "
        "text, together."
    )
    lines = "".join(f"    total = total + text.count('{letter}')\n" for letter in letters)
    solution = f"def occurrences(text):\n    total = 0\n{lines}    return total\n"
    asserts = ["assert occurrences('') == 0"]
    for _ in range(3):
        text = "".join(dice.choices(letters + "qrstu", k=dice.randint(3, 12)))
        asserts.append(f"assert occurrences({text!r}) == {sum(map(text.count, letters))}")
    return question, solution, asserts


_MAKERS: Mapping[str, Callable[[random.Random], tuple[str, str, list[str]]]] = {
    "append": _append,
    "arithmetic": _arithmetic,
    "select": _select,
    "count": _count,
}
