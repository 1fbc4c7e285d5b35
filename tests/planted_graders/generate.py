"""Run as a script, it makes rows/*.jsonl anew: one file for each kind of question."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path

ROWS = Path(__file__).parent / "rows"
COUNT = 80

Row = tuple[str, str]
FIRST = ["Marta", "Jon", "Ilse", "Tomas", "Nadia", "Piet", "Rosa", "Emil", "Greta", "Olav"]
LAST = [
    "Velde",
    "Velda",
    "Asker",
    "Askew",
    "Brandt",
    "Brand",
    "Korhonen",
    "Moreau",
    "O'Dell",
    "Lund",
]
PLACES = ["Harrowgate", "Pont Vert", "Lower Esk", "Santa Brisa", "Nordhavn", "Quill Bay"]
ACCENTED = ["Zoë Müller", "José Pérez", "Łukasz Żak", "Renée Gagné"]
GREEK = ["Ελένη", "Νίκος", "Σοφία", "Αθήνα"]
THINGS = ["apples", "pencils", "tickets", "stamps", "bricks", "loaves", "cards", "seeds"]
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jade"]


def boxed(r: random.Random) -> Row:
    """An integer, a decimal or a fraction, to be boxed."""
    a, b = r.randint(2, 60), r.randint(2, 60)
    shape = r.randrange(5)
    if shape == 0:
        question, answer = f"What is ${a} - {a + b}$?", str(-b)
    elif shape == 1:
        question, answer = f"What is ${a} \\cdot {b}$?", str(a * b)
    elif shape == 2:
        top = r.choice([1, 2, 4, 5, 8, 10, 13])
        bottom = r.choice([3, 7, 9, 11])
        question, answer = (
            f"Write {top} divided by {bottom} as a fraction.",
            f"\\frac{{{top}}}{{{bottom}}}",
        )
    elif shape == 3:
        question, answer = f"Write ${a}/8 + {b}/8$ as a decimal.", f"{(a + b) / 8:g}"
    else:
        question, answer = f"Solve $x + {a} = {a + b}$ for $x$.", str(b)
    return f"{question} Put the final answer in \\boxed{{}}.", answer


def story(r: random.Random) -> Row:
    """A word problem about whole numbers, small and large."""
    name, thing = r.choice(FIRST), r.choice(THINGS)
    a, b = r.randint(3, 40), r.randint(2, 30)
    if r.random() < 0.3:
        a *= 500
    shape = r.randrange(3)
    if shape == 0:
        question, answer = (
            f"{name} buys {b} boxes of {a} {thing} each. How many {thing} is that?",
            a * b,
        )
    elif shape == 1:
        question, answer = f"{name} had {a + b} {thing} and gave away {b}. How many are left?", a
    else:
        question, answer = (
            f"{name} has {a} {thing}, then finds {b} more and loses 2. How many now?",
            a + b - 2,
        )
    return f"{question} End with one line 'Answer: N'.", str(answer)


def number(r: random.Random) -> Row:
    """A bare number: whole, decimal, negative, zero, large."""
    a, b = r.randint(10, 99), r.randint(10, 99)
    shape = r.randrange(6)
    if shape == 0:
        question, answer = f"Compute {a} - {a}.", "0"
    elif shape == 1:
        question, answer = f"Compute {a} - {a + b}.", str(-b)
    elif shape == 2:
        question, answer = f"Compute {a}.{b} + 1.", f"{a + 1}.{b}"
    elif shape == 3:
        question, answer = f"Compute {a}{b} * 100000.", f"{a}{b}00000"
    elif shape == 4:
        question, answer = f"Compute {a} * {b}.", str(a * b)
    else:
        question, answer = f"Compute {b}.5 / 2.", f"{(b + 0.5) / 2:.2f}"
    return f"{question} Reply with the number alone.", answer


def choice(r: random.Random) -> Row:
    """Four options, one letter."""
    options = r.sample(WORDS, 4)
    letter = r.choice("ABCD")
    wanted = options["ABCD".index(letter)]
    listed = "\n".join(f"{mark}) {word}" for mark, word in zip("ABCD", options, strict=True))
    where = r.choice(PLACES)
    question = f"The sign at {where} number {r.randint(1, 99)} reads '{wanted}'. What does it read?"
    return f"{question}\n{listed}\nEnd with one line 'Answer: X', X being a letter.", letter


def quantity(r: random.Random) -> Row:
    """A number and its unit; some units differ by the case of one letter."""
    a = r.randint(2, 400)
    value = r.choice([str(a), f"{a}.5"])
    unit, what = r.choice([
        ("km", "length of the road"), ("m", "height of the mast"), ("mm", "width of the plate"),
        ("kg", "mass of the crate"), ("g", "mass of the coin"), ("s", "length of the tone"),
        ("min", "length of the walk"), ("mW", "draw of the sensor"), ("MW", "power of the turbine"),
    ])  # fmt: skip
    told = f"The sheet of {r.choice(PLACES)} says: {what}, {value} {unit}."
    return f"{told} What is the {what}? Reply with number and unit alone.", f"{value} {unit}"


def rate(r: random.Random) -> Row:
    """A percentage."""
    part, whole = r.randint(1, 199), r.choice([200, 400, 500, 1000])
    return (
        f"What percentage of {whole} is {part}? Reply with a number and % alone.",
        f"{part * 100 / whole:g}%",
    )


def fact(r: random.Random) -> Row:
    """A question about an invented passage that names the answer and somebody else."""
    where, year = r.choice(PLACES), r.randint(1800, 1990)
    kind = r.random()
    if kind < 0.15:
        wanted, other = r.sample(GREEK, 2)
    elif kind < 0.3:
        wanted, other = r.sample(ACCENTED, 2)
    elif kind < 0.45:
        guild, trades = r.choice(WORDS), r.sample(["archivists", "bellmakers", "cartographers"], 2)
        wanted, other = (f"the honourable guild of the {guild} {trade}" for trade in trades)
    else:
        first, (one, two) = r.choice(FIRST), r.sample(LAST, 2)
        wanted, other = f"{first} {one}", f"{first} {two}"
    told = f"The bridge at {where} was designed by {wanted} in {year}; it was paid for by {other}."
    return f"{told}\nWho designed the bridge? Reply with the name alone.", wanted


def record(r: random.Random) -> Row:
    """A flat JSON object with a name, a number and a flag."""
    name, count, paid = r.choice(WORDS), r.randint(1, 99), r.random() < 0.5
    wanted: dict[str, object] = {"item": name, "count": count, "paid": paid}
    if r.random() < 0.4:
        wanted["tags"] = r.sample(WORDS, 2)
    text = f"{count} of {name}, {'paid' if paid else 'not paid'}"
    if "tags" in wanted:
        text += f", tagged {' then '.join(wanted['tags'])}"  # type: ignore[arg-type]
    keys = ", ".join(wanted)
    return f"Order: {text}. Reply with one JSON object with the keys {keys}.", json.dumps(wanted)


def members(r: random.Random) -> Row:
    """Some words of a list, in any order."""
    words = r.sample(WORDS, 7)
    chosen = r.sample(words, r.randint(2, 4))
    marked = ", ".join(f"{word}*" if word in chosen else word for word in words)
    how = "Reply with the words alone, separated by commas, in any order."
    return f"Which of these are starred: {marked}? {how}", ", ".join(sorted(chosen))


def sequence(r: random.Random) -> Row:
    """Numbers in an order that matters."""
    values = [r.randint(1, 30) for _ in range(r.randint(3, 6))]
    while values == values[::-1] or values == sorted(values):
        values = [r.randint(1, 30) for _ in range(4)]
    given = ", ".join(map(str, reversed(values)))
    return (
        f"Write these numbers backwards: {given}. Reply with the list alone.",
        ", ".join(map(str, values)),
    )


def day(r: random.Random) -> Row:
    """A date of the last three centuries."""
    start = date(1801, 1, 1) + timedelta(days=r.randrange(80_000))
    add = r.randint(1, 60)
    wanted = start + timedelta(days=add)
    return f"Which day is {add} days after {start}? Reply with YYYY-MM-DD alone.", str(wanted)


def yesno(r: random.Random) -> Row:
    """A comparison, yes or no."""
    a, b = r.sample(range(10, 999), 2)
    return f"Is {a} more than {b}? End with one line 'Answer: yes' or 'Answer: no'.", (
        "yes" if a > b else "no"
    )


def stdout(r: random.Random) -> Row:
    """What a small program prints: lines of words and numbers."""
    a, lines = r.randint(1, 9), r.randint(2, 4)
    step = r.randint(2, 9)
    printed = [f"{i} {a + i * step} {r.choice(WORDS)}" for i in range(lines)]
    if r.random() < 0.4:
        printed = [f"{a * i} {step * i}" for i in range(1, lines + 1)]
    program = "\n".join(f"print({line!r})" for line in printed)
    return f"What does this program print?\n{program}\nReply with its output alone.", "\n".join(
        printed
    )


def table(r: random.Random) -> Row:
    """Rows of a query's result, `name|count|price`; the same row may come twice."""
    rows = [
        f"{r.choice(WORDS)}|{r.randint(1, 50)}|{r.randint(1, 90)}.{r.choice(['25', '50', '75'])}"
        for _ in range(r.randint(2, 4))
    ]
    if r.random() < 0.3:
        rows.append(rows[0])
    sheet = r.randint(100, 999)
    listed = "; ".join(row.replace("|", ", ") for row in rows)
    query = "Give the result of SELECT name, count, price FROM orders"
    how = "one row a line, columns separated by |, in any order."
    return f"Orders of sheet {sheet}: {listed}. {query}, {how}", "\n".join(rows)


def code(r: random.Random) -> Row:
    """An identifier: a version, an address or an article number."""
    shape = r.randrange(3)
    a, b, c = (r.randint(1, 40) for _ in range(3))
    if shape == 0:
        wanted, what = f"{a}.{b}.{c}", "version"
    elif shape == 1:
        wanted, what = f"10.{a}.{b}.{c}", "address"
    else:
        wanted, what = (
            f"{r.choice('ABCDGOQ')}{r.choice('BIKOZ')}{a}-{1000 + b * c}",
            "article number",
        )
    told = f"The label of crate {r.randint(100, 999)} says {what} {wanted}."
    return f"{told} Reply with the {what} alone.", wanted


KINDS: dict[str, Callable[[random.Random], Row]] = {
    made.__name__: made
    for made in (
        boxed, story, number, choice, quantity, rate, fact, record,
        members, sequence, day, yesno, stdout, table, code,
    )
}  # fmt: skip


def rows_of(kind: str, kinds: Mapping[str, Callable[[random.Random], Row]] = KINDS) -> str:
    """The text of a kind's rows file: COUNT rows, no prompt twice, the same on every machine."""
    r = random.Random(f"planted graders, {kind}")
    rows: dict[str, str] = {}
    while len(rows) < COUNT:
        prompt, reference = kinds[kind](r)
        rows.setdefault(prompt, reference)
    return "".join(
        json.dumps({"prompt": prompt, "reference": reference}, ensure_ascii=False) + "\n"
        for prompt, reference in rows.items()
    )


if __name__ == "__main__":
    for name in KINDS:
        (ROWS / f"{name}.jsonl").write_text(rows_of(name), encoding="utf-8")
