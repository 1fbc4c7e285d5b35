"""Run with -m, it makes the rows of the third set anew: one file for each kind of question."""

from __future__ import annotations

import calendar
import json
import posixpath
import random
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction

from planted_graders.generate import PLACES, ROWS, WORDS, Row, rows_of

SHORT_WORDS = [
    "art", "cart", "star", "trap", "spare", "pear", "stone", "note", "list", "tale", "crane", "ran",
    "plant", "plane", "lane", "brick", "rick", "stick", "tick", "plank", "frost", "flame", "lame",
    "glade", "cloud", "loud", "bridge", "ridge", "candle", "handle", "amber", "birch", "zinc",
]  # fmt: skip
NOUNS = [
    ("bread", "loaf"), ("stone", "rock"), ("boat", "ship"), ("road", "way"), ("house", "home"),
    ("shop", "store"), ("child", "kid"), ("coat", "jacket"), ("forest", "wood"),
]  # fmt: skip
KINDLY = [
    ("big", "large"), ("small", "little"), ("quick", "fast"), ("cold", "chilly"),
    ("happy", "glad"), ("unhappy", "sad"), ("costly", "dear"), ("clean", "tidy"),
]  # fmt: skip
REACTIONS = [
    ("2 H2 + O2", "2 H2O"), ("N2 + 3 H2", "2 NH3"), ("CH4 + 2 O2", "CO2 + 2 H2O"),
    ("2 C4H10 + 13 O2", "8 CO2 + 10 H2O"), ("2 C2H6 + 7 O2", "4 CO2 + 6 H2O"),
    ("4 Fe + 3 O2", "2 Fe2O3"), ("2 Na + Cl2", "2 NaCl"), ("2 KClO3", "2 KCl + 3 O2"),
    ("C3H8 + 5 O2", "3 CO2 + 4 H2O"), ("4 FeS2 + 11 O2", "2 Fe2O3 + 8 SO2"),
    ("2 C6H14 + 19 O2", "12 CO2 + 14 H2O"), ("2 Al + 3 Cl2", "2 AlCl3"), ("2 CO + O2", "2 CO2"),
    ("C7H16 + 11 O2", "7 CO2 + 8 H2O"), ("2 H2O2", "2 H2O + O2"), ("Zn + 2 HCl", "ZnCl2 + H2"),
]  # fmt: skip
RULERS = [
    "Karl", "Carl", "Otto", "Erik", "Eric", "Anna", "Anne", "Olaf", "Olav", "Maud", "Ivar", "Knut",
    "Inge", "Inga", "Sven", "Svea", "Hugo", "Emma", "Ida", "Leo",
]  # fmt: skip


def ledger(r: random.Random) -> Row:
    """A closing balance, negative or with decimals in places."""
    start, comes, goes = r.randint(1, 900), r.randint(1, 900), r.randint(1, 2400)
    part = r.choice([0, 0, 0.5, 0.25])
    closing = start + comes - goes + part
    told = f"Ledger {r.randint(1, 99)} opens with {start}, takes in {comes + part:g}, pays {goes}."
    how = "Reason if you like, and end with one line '#### N', N being the number in any usual"
    return f"{told} How much is left? {how} notation.", f"{closing:g}"


def option(r: random.Random) -> Row:
    """One of ten options."""
    values, wanted = r.sample(range(100, 999), 10), r.randrange(10)
    listed = "\n".join(f"{mark}. {value}" for mark, value in zip("ABCDEFGHIJ", values, strict=True))
    part = r.randint(1, 99)
    how = "Reason if you like, and say once, on the last line: 'The answer is (X).', X a letter."
    return (
        f"Which of these is {values[wanted] - part} + {part}?\n{listed}\n{how}",
        "ABCDEFGHIJ"[wanted],
    )


def word(r: random.Random) -> Row:
    """The word that stands at some place of a dictionary."""
    words = r.sample(SHORT_WORDS, 5)
    at = r.choice([0, -1])
    how = "Reply with the word alone; capitals do not matter."
    which = "first" if at == 0 else "last"
    return (
        f"Which comes {which} in a dictionary: {', '.join(words)}? {how}",
        sorted(words)[at],
    )


def oneliner(r: random.Random) -> Row:
    """An expression in x."""
    a, b = r.randint(2, 30), r.randint(1, 60)
    told, wanted = r.choice([
        (f"x times {a}, plus {b}", f"x * {a} + {b}"),
        (f"x plus {b}, all of it times {a}", f"(x + {b}) * {a}"),
        (f"x times x, less {b}", f"x * x - {b}"),
        (f"{b} less {a} times x", f"{b} - {a} * x"),
    ])  # fmt: skip
    first, second = (eval(wanted, {"x": x}) for x in (0, 1))
    how = f"It is {first} for x = 0 and {second} for x = 1. Reply with the expression alone; any"
    how += " with the same value for every whole x counts."
    return f"Write a Python expression of x, whole numbers, + - * // and (): {told}. {how}", wanted


def settings(r: random.Random) -> Row:
    """An object within an object, with false, zero and null among its values."""
    made = {
        "host": r.choice(WORDS),
        "port": r.randint(1000, 9999),
        "tls": r.choice([True, False]),
        "limits": {"retries": r.choice([0, 1, 3, 8]), "pause": r.choice([0.5, 1.5, 2.25, None])},
    }
    limits = made["limits"]
    told = f"Host {made['host']}, port {made['port']}, TLS {'on' if made['tls'] else 'off'}, "
    told += f"retries {limits['retries']}, pause {limits['pause'] or 'not set'}."  # type: ignore[index]
    how = "Reply with one JSON object alone, of exactly the keys host, port, tls (a boolean), "
    how += "limits (an object of retries and pause, null where not set), keys in any order."
    return f"{told} {how}", json.dumps(made)


def deadline(r: random.Random) -> Row:
    """A date with the month in letters."""
    start = date(1900, 1, 1) + timedelta(days=r.randrange(70_000))
    days = r.choice([10, 14, 30, 45, 60, 90])
    end = start + timedelta(days=days)
    told = f"A bond of {start.isoformat()} falls due after {days} days. On which date?"
    how = "Reply with the date alone, as 5 May 1951, as May 5, 1951 or as 1951-05-05."
    return f"{told} {how}", f"{end.day} {calendar.month_name[end.month]} {end.year}"


def length(r: random.Random) -> Row:
    """A length, in whichever metric unit."""
    unit = r.choice(["mm", "cm", "m", "km"])
    count, each = r.randint(2, 9), r.randint(11, 999)
    total = count * each
    told = f"How long are {count} pieces of {each / 10:g} {unit} end to end?"
    how = "Reply with an exact number and a unit alone: mm, cm, m or km, whichever you like."
    return f"{told} {how}", f"{total / 10:g} {unit}"


def surd(r: random.Random) -> Row:
    """A root taken apart, in LaTeX."""
    under, factor, below = r.choice([2, 3, 5, 6, 7, 10, 11, 13, 15]), r.randint(2, 9), 1
    if r.random() < 0.4:
        below = r.choice([n for n in (2, 3, 5, 7, 11) if factor % n])
    root = f"\\sqrt{{{factor * factor * under}}}"
    sign = r.choice(["", "", "-"])
    asked = f"{sign}\\frac{{{root}}}{{{below}}}" if below > 1 else sign + root
    wanted = f"{sign}{factor}\\sqrt{{{under}}}"
    if below > 1:
        wanted = f"{sign}\\frac{{{factor}\\sqrt{{{under}}}}}{{{below}}}"
    return f"Simplify ${asked}$. Reply with the exact simplest form alone, as $...$.", wanted


def matrix(r: random.Random) -> Row:
    """A sum of matrices."""
    wide = r.choice([2, 3])
    one, other = ([[r.randint(-9, 9) for _ in range(wide)] for _ in "ab"] for _ in "ab")
    total = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]
    how = "Reply with the matrix alone, as [[1, 2], [3, 4]]."
    return f"Compute {one} + {other}, entry by entry. {how}", str(total)


def roots(r: random.Random) -> Row:
    """The solutions of an equation in factors."""
    found = sorted(r.sample(range(-12, 13), r.choice([2, 3, 3])))
    shuffled = r.sample(found, len(found))
    factors = "".join("x" if root == 0 else f"(x {-root:+})" for root in shuffled)
    how = "Reply with the set of all solutions alone, as {1, 2} or as x = 1 or x = 2, any order."
    return f"Solve {factors} = 0. {how}", "{" + ", ".join(map(str, found)) + "}"


def position(r: random.Random) -> Row:
    """A latitude and a longitude."""
    north, east = (f"{r.randint(1, most)}.{r.randint(1, 98):02}" for most in (79, 79))
    wanted = f"{north} {r.choice('NS')}, {east} {r.choice('EW')}"
    told = f"The buoy of {r.choice(PLACES)} lay at {wanted} at noon, and had drifted by dusk."
    how = "Where was it at noon? Reply with latitude and longitude in decimal degrees alone, as "
    return f"{told} {how}12.34 S, 5.67 W or signed as -12.34, -5.67.", wanted


def duration(r: random.Random) -> Row:
    """How long something takes, at times more than a day."""
    each, laps = r.randint(400, 9000), r.randint(2, 20)
    total = each * laps
    told = f"One lap takes {each // 60} min {each % 60} s. How long do {laps} laps take?"
    how = "Reply with the duration alone, as H:MM:SS or in seconds as 4000 s."
    return f"{told} {how}", f"{total // 3600}:{total // 60 % 60:02}:{total % 60:02}"


def share(r: random.Random) -> Row:
    """A part of a whole, in whichever notation."""
    whole = r.choice([4, 5, 8, 10, 16, 20, 25, 40, 50, 80, 125, 6, 7, 9, 12])
    part = r.randint(1, whole - 1)
    times = r.randint(2, 9)
    told = f"Of {whole * times} lamps at {r.choice(PLACES)}, {part * times} are lit."
    how = "Which share is lit? Reply with the exact share alone, as a fraction, a decimal or a %."
    return f"{told} {how}", str(Fraction(part, whole))


def path(r: random.Random) -> Row:
    """A relative path, made absolute; case tells files apart."""
    room = "/" + "/".join([r.choice(["srv", "home", "opt"]), *r.sample(WORDS, r.randint(2, 3))])
    name = r.choice(["Report", "report", "notes", "Notes", "data", "Index"])
    step = f"{'../' * r.randint(1, 2)}{r.choice(WORDS)}/{name}{r.randint(1, 99)}"
    step += r.choice([".txt", ".csv", ".tar.gz"])
    how = "Which file is that, from the root? Reply with the absolute path alone; case matters, "
    how += "there are no links, and any spelling of the same path counts."
    return f"In {room} one opens {step}. {how}", posixpath.normpath(posixpath.join(room, step))


def link(r: random.Random) -> Row:
    """An address with parameters, some of them escaped."""
    host, scheme = f"{r.choice(WORDS)}.{r.choice(['example', 'test'])}", r.choice(["https", "http"])
    one, other, page = r.choice(WORDS), r.choice(WORDS), r.randint(1, 60)
    text = r.choice([one, one, f"{one}%26{other}", f"{one}%2F{other}"])
    wanted = f"{scheme}://{host}/{r.choice(WORDS)}/{r.randint(1, 99)}?q={text}&page={page}"
    told = f"Card {r.randint(1, 99)}: scheme {scheme}, host {host}, all in all {wanted} ."
    how = "Which link is on the card? Reply with it alone, escapes as written, parameters in any"
    return f"{told} {how} order.", wanted


def query(r: random.Random) -> Row:
    """A statement of SQL."""
    columns = r.sample(["name", "price", "size"], r.randint(1, 3))
    number, sign = r.randint(1, 95), r.choice(["<", ">"])
    where = r.choice([f"price {sign} {number}", f"name = '{r.choice(WORDS).title()}{number}'"])
    order, way = r.choice(["name", "price"]), r.choice(["ASC", "DESC"])
    wanted = f"SELECT {', '.join(columns)} FROM parts WHERE {where} ORDER BY {order} {way}"
    told = f"From the table parts: the columns {', '.join(columns)} in this order, where {where}, "
    told += f"ordered by {order}, {'rising (ASC)' if way == 'ASC' else 'falling (DESC)'}."
    how = "Reply with one statement SELECT ... FROM ... WHERE ... ORDER BY ... alone, that says "
    return f"{told} {how}this and no more; keywords in any case, names and texts as given.", wanted


def pattern(r: random.Random) -> Row:
    """A regular expression for strings of one length."""
    last, letters = r.choice("bcdefg"), r.randint(1, 12)
    low, digits, tail = r.choice("567"), r.randint(2, 7), r.choice(["", "x", "z"])
    wanted = f"[a-{last}]{{{letters}}}[0-{low}]{{{digits}}}{tail}"
    told = f"Exactly {letters} of the letters a to {last}, then exactly {digits} of the digits 0 "
    told += f"to {low}{', then ' + tail if tail else ''}, and nothing else."
    how = "Reply with a regular expression alone that the whole string must match and no other"
    return f"{told} {how} does, made of classes, letters and counts as {{2}}.", wanted


def parts(r: random.Random) -> Row:
    """Two to four answers in one."""
    pairs = [(r.randint(1, 90), r.randint(-90, 90)) for _ in range(r.randint(2, 4))]
    asked = "; ".join(f"{mark}) {a} * {b}" for mark, (a, b) in zip("abcd", pairs, strict=False))
    how = "Reply with one line for each part alone, as 'a) 1', then 'b) 2', and so on."
    wanted = "\n".join(f"{mark}) {a * b}" for mark, (a, b) in zip("abcd", pairs, strict=False))
    return f"Compute {asked}. {how}", wanted


def verdict(r: random.Random) -> Row:
    """Yes, or no with the smallest prime factor."""
    primes = [n for n in range(2, 400) if all(n % m for m in range(2, n))]
    value, least = r.choice(primes[20:]), 0
    if r.random() < 0.7:
        least = r.choice(primes[:15])
        value = least * r.choice([p for p in primes if p >= least][:20])
    how = "End with one line 'Answer: yes', or 'Answer: no, F', F being its smallest prime factor."
    return f"Is {value} a prime number? {how}", f"no, {least}" if least else "yes"


def translation(r: random.Random) -> Row:
    """Two words of an invented tongue, with two renderings each."""
    kindly, noun = r.choice(KINDLY), r.choice(NOUNS)
    first, second = (
        "".join(r.choice(two) for two in ("bdgk", "aeio", "lmnr", "ou") * 2) for _ in "ab"
    )
    told = f"In Oland, {first} means {kindly[0]} or {kindly[1]}, {second} means {noun[0]} or "
    how = "Reply with two English words alone, the adjective first; either word will do for each."
    return f"{told}{noun[1]}. Translate '{second} {first}'. {how}", f"{kindly[0]} {noun[0]}"


def pages(r: random.Random) -> Row:
    """Page numbers with runs drawn together."""
    at, runs = r.randint(1, 20), []
    for _ in range(r.randint(2, 4)):
        end = at + r.choice([0, 1, 2, 3, 4, 6])
        runs.append((at, end))
        at = end + r.randint(2, 30)
    listed = ", ".join(str(page) for first, last in runs for page in range(first, last + 1))
    wanted = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)
    how = "Reply with these pages alone, runs drawn together as in 2-4, 9; any way of parting them"
    return f"{r.choice(WORDS).title()} is named on pages {listed}. {how} counts.", wanted


def reaction(r: random.Random) -> Row:
    """A chemical equation to be balanced."""
    left, right = (r.sample(side.split(" + "), side.count("+") + 1) for side in r.choice(REACTIONS))
    bare = [" + ".join(one.split(" ")[-1] for one in side) for side in (left, right)]
    told = f"Sheet {r.randint(1, 99)}: balance {bare[0]} -> {bare[1]}."
    how = "Reply with the equation alone, with the smallest whole coefficients, as A + 2 B -> C; "
    how += "the order within a side is free."
    return f"{told} {how}", f"{' + '.join(left)} -> {' + '.join(right)}"


def invoice(r: random.Random) -> Row:
    """An amount and the code of its currency."""
    code, count = r.choice(["EUR", "USD", "GBP"]), r.randint(2, 9)
    each = r.choice([r.randint(1000, 90_000), r.randint(10, 900) * 100 + r.randint(1, 2)])
    total = count * each
    told = f"{count} chairs at {code} {each / 100:.2f} each. What is the total?"
    how = f"Reply with it alone, as {code} 1234.05 or {code} 1,234.05."
    return f"{told} {how}", f"{code} {total / 100:.2f}"


def monarch(r: random.Random) -> Row:
    """A ruler with a number."""
    numerals = [
        tens + ones
        for tens in ("", "X", "XX")
        for ones in ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
    ]
    name, at = r.choice(RULERS), r.randint(1, 27)
    told = f"Of the {name}s of {r.choice(PLACES)}, {name} {numerals[at]} was followed by the next."
    how = f"Who followed? Reply with name and number alone, as {name} IV or {name} 4."
    return f"{told} {how}", f"{name} {numerals[at + 1]}"


def grid(r: random.Random) -> Row:
    """A table in Markdown."""
    lines = [(w, r.randint(-40, 90), r.randint(1, 99)) for w in r.sample(WORDS, r.randint(2, 4))]
    told = "; ".join(f"{name}: change {change}, stock {stock}" for name, change, stock in lines)
    how = "Reply with one Markdown table alone, of the columns item, change, stock, with its line "
    how += "of dashes, rows in this order; padding is free."
    drawn = [f"| {name} | {change} | {stock} |" for name, change, stock in lines]
    return f"{told}. {how}", "\n".join(["| item | change | stock |", "|---|---|---|", *drawn])


KINDS: dict[str, Callable[[random.Random], Row]] = {
    made.__name__: made
    for made in (
        ledger, option, word, oneliner, settings, deadline, length, surd, matrix, roots, position,
        duration, share, path, link, query, pattern, parts, verdict, translation, pages, reaction,
        invoice, monarch, grid,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in KINDS:
        (ROWS / f"{name}.jsonl").write_text(rows_of(name, KINDS), encoding="utf-8")
