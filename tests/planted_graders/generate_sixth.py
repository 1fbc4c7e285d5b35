"""Run with -m, it makes the rows of the sixth set anew: one file for each kind of question."""

from __future__ import annotations

import random
from collections.abc import Callable

from planted_graders.generate import PLACES, ROWS, Row, rows_of
from planted_graders.generate_fourth import PEOPLE

COLOURS = ["red", "blue", "green", "grey", "white"]


def uncertain(r: random.Random) -> Row:
    """A sum or a difference of two measured values, with its error."""
    unit, what = r.choice([
        ("mm", "lengths"), ("Mm", "distances"), ("m", "lengths"), ("mV", "voltages"),
        ("MV", "voltages"), ("mW", "powers"), ("MW", "powers"), ("kg", "masses"), ("s", "times"),
    ])  # fmt: skip
    errors = [*r.choice([(3, 4, 5), (6, 8, 10), (5, 12, 13), (8, 15, 17), (9, 12, 15)])]
    one, other = r.randint(300, 900), r.randint(40, 280)
    plus = r.random() < 0.6
    total = one + other if plus else one - other
    first, second = (
        f"{value / 10} ± {error / 10} {unit}"
        for value, error in zip((one, other), errors[:2], strict=True)
    )
    told = f"Two {what} are {first} and {second}, with independent errors that add in quadrature."
    how = f"What is {'their sum' if plus else 'the first less the second'}? Reply with value, error"
    how += " and unit alone, both numbers to one decimal place, as 9.5 ± 0.2 cm; +- and +/- are as "
    return f"{told} {how}good as ±, and blanks do not matter.", (
        f"{total / 10} ± {errors[2] / 10} {unit}"
    )


def quotient(r: random.Random) -> Row:
    """A division of whole numbers that leaves something."""
    by = r.choice([r.randint(6, 19), r.randint(20, 60)])
    times, left = r.randint(11, 900), r.randint(1, by - 1)
    how = "Reply with quotient and remainder alone, as 12 remainder 3; r or R may stand for the "
    how += "word, and blanks do not matter."
    return f"Divide {times * by + left} by {by} in whole numbers. {how}", (
        f"{times} remainder {left}"
    )


def averages(r: random.Random) -> Row:
    """Mean, median and mode of a few numbers."""
    while True:
        numbers = [r.randint(1, 60) for _ in range(r.choice([3, 4, 6]))]
        twice = r.choice(numbers)
        numbers.append(twice)
        r.shuffle(numbers)
        many = len(numbers)
        if 4 * sum(numbers) % many == 0 and len(set(numbers)) == many - 1:
            break
    numbers.sort()
    mean, median = sum(numbers) / many, (numbers[(many - 1) // 2] + numbers[many // 2]) / 2
    r.shuffle(numbers)
    how = "Reply with 'mean M, median N, mode K' alone, the three in any order, exact and in "
    how += "decimals; : or = may follow a name, and zeros at the end do not matter."
    told = f"Numbers: {', '.join(map(str, numbers))}. What are their mean, median and mode?"
    return f"{told} {how}", f"mean {mean:g}, median {median:g}, mode {twice}"


def entailment(r: random.Random) -> Row:
    """Whether a sentence follows from another, contradicts it, or neither."""
    here, there = r.sample(PLACES, 2)
    colour, other = r.sample(COLOURS, 2)
    many, thing = r.randint(3, 40), r.choice(["doors", "boats", "lamps", "gates"])
    told = f"All {many} {thing} in {here} are {colour}."
    said, wanted = r.choice([
        (f"No {thing[:-1]} in {here} is {other}.", "entailment"),
        (f"There are {colour} {thing} in {here}.", "entailment"),
        (f"At least one of the {thing} in {here} is {other}.", "contradiction"),
        (f"There are {many + r.randint(1, 9)} {thing} in {here}.", "contradiction"),
        (f"All {thing} in {there} are {colour}.", "neutral"),
        (f"{r.choice(PEOPLE)} painted the {thing} of {here} {colour}.", "neutral"),
    ])  # fmt: skip
    how = "Reply with one line alone, 'Label: ' and entailment, contradiction or neutral; capitals "
    how += "do not matter, and a full stop may follow."
    return f"Premise: {told}\nHypothesis: {said}\n{how}", wanted


def judge(r: random.Random) -> Row:
    """Which of two replies has the better marks, and whether by much."""
    topics = r.sample(["facts", "tone", "order", "length", "sources", "grammar"], 3)
    marks = [[r.randint(1, 9) for _ in topics] for _ in "AB"]
    if r.random() < 0.25:
        marks[1] = r.sample(marks[0], 3)
    apart = sum(marks[0]) - sum(marks[1])
    best, worst = ("A", "B") if apart > 0 else ("B", "A")
    wanted = "A=B" if not apart else f"{best}{'>>' if abs(apart) > 4 else '>'}{worst}"
    told = "; ".join(
        f"{name}: {', '.join(f'{topic} {mark}' for topic, mark in zip(topics, had, strict=True))}"
        for name, had in zip("AB", marks, strict=True)
    )
    how = "Reply with one verdict alone in double brackets: A=B for equal sums, A>B where that of A"
    how += " is higher by up to 4, A>>B where it is by more, B>A and B>>A likewise. B<A is as good "
    return f"Marks of two replies: {told}. {how}as A>B, and so on; blanks do not matter.", wanted


KINDS: dict[str, Callable[[random.Random], Row]] = {
    made.__name__: made
    for made in (
        uncertain, quotient, averages, entailment, judge,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in KINDS:
        (ROWS / f"{name}.jsonl").write_text(rows_of(name, KINDS), encoding="utf-8")
