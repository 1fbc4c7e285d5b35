"""Run with -m, it makes the rows of the second set anew: one file for each kind of question."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from fractions import Fraction

from planted_graders.generate import LAST, PLACES, ROWS, WORDS, Row, rows_of

FIRST = ["Theo", "Teo", "Thea", "Tilda", "Martin", "James", "Nadia", "Rosa", "Emil", "Ilse"]
TEAMS = [*WORDS, "2 Oaks", "7 Oaks", "3 Elms", "9 Elms"]
ENDINGS = ["ham", "field", "wick", "by", "ford", "ton", "mere", "gate"]
SIDES = ["North ", "South ", "Upper ", "Lower ", ""]
REGIONS = ["Oland", "Harmark", "Sant Vidal", "Morrow"]
FORMULAS = [
    "CO", "Co", "CO2", "HF", "Hf", "H2O", "H2O2", "H2SO4", "H2SO3", "CS2", "Cs", "NO2", "NO3-",
    "NO2-", "Fe2+", "Fe3+", "Cu+", "Cu2+", "SO4 2-", "Ca(OH)2", "Mg(OH)2", "Ca(NO3)2", "NaCl",
    "CH3CH2OH", "CH3OCH3", "CH3COOH", "HCOOCH3", "CH3CH2CHO", "CH3COCH3", "KMnO4", "K2MnO4",
    "Na2CO3", "NaHCO3", "Al2(SO4)3", "Fe2O3", "Fe3O4", "FeO", "NH4+", "NH3", "N2O", "N2O4", "BN",
]  # fmt: skip


def catalog(r: random.Random) -> Row:
    """An array of objects with strings, numbers, nulls and lists."""
    parts: list[dict[str, object]] = [
        {
            "part": word,
            "length": r.choice([r.randint(1, 90), r.randint(1, 90) + 0.5]),
            "spare": r.choice([None, r.choice(WORDS)]),
            "bins": [r.randint(1, 40) for _ in range(r.randint(0, 3))],
        }
        for word in r.sample(WORDS, r.randint(1, 3))
    ]
    told = "; ".join(
        f"{one['part']}, length {one['length']}, spare {one['spare'] or 'none'}, bins "
        + (" then ".join(map(str, one["bins"])) or "none")  # type: ignore[call-overload]
        for one in parts
    )
    how = "Reply with one JSON array alone: one object for each part, in the order given, with all "
    how += (
        "of the keys part, length (a number), spare (a string or null), bins (in the order given)."
    )
    return f"Shelf {r.randint(1, 99)}: {told}. {how}", json.dumps(parts)


def moment(r: random.Random) -> Row:
    """When a journey ends, in the offset in which it began."""
    zone = timezone(timedelta(hours=r.randint(-9, 11), minutes=r.choice([0, 0, 30])))
    start = datetime(2024, 1, 1, tzinfo=zone) + timedelta(minutes=r.randrange(3_000_000))
    hours, minutes = r.randint(1, 40), r.randint(1, 59)
    end = start + timedelta(hours=hours, minutes=minutes)
    told = (
        f"A ship leaves at {start.isoformat(timespec='minutes')} and sails {hours} h {minutes} min."
    )
    how = (
        "When does it arrive, in the same offset? Reply as YYYY-MM-DDTHH:MM and the offset, alone."
    )
    return f"{told} {how}", end.isoformat(timespec="minutes")


def clock(r: random.Random) -> Row:
    """A time of day."""
    start, hours, minutes = r.randrange(1440), r.randint(1, 12), r.randint(1, 59)
    end = (start + hours * 60 + minutes) % 1440
    told = f"A shift begins at {start // 60:02}:{start % 60:02} and lasts {hours} h {minutes} min."
    how = "When does it end? Reply with the time of day alone, as HH:MM of 24 hours."
    return f"{told} {how}", f"{end // 60:02}:{end % 60:02}"


def release(r: random.Random) -> Row:
    """The version that a changelog names as its newest."""
    major, minor, patch = r.randint(1, 60), r.choice([0, 1, 2, 10, 20, r.randint(3, 40)]), 0
    shape = r.randrange(4)
    wanted = f"{major}.{minor}"
    if shape:
        patch = r.choice([0, 10, r.randint(1, 30)])
        wanted += f".{patch}"
    if shape > 2:
        wanted += f"-{r.choice(['rc', 'beta', 'alpha'])}.{r.randint(1, 4)}"
    older = f"{major - 1}.{r.randint(0, 9)}.{r.randint(0, 9)}"
    told = f"The changelog of tool {r.choice(WORDS)} begins with {wanted}; before it came {older}."
    return f"{told} Which version is the newest? Reply with the version alone.", wanted


def mailbox(r: random.Random) -> Row:
    """An e-mail address, some with a tag."""
    name = f"{r.choice(FIRST)}.{r.choice(LAST)}".lower().replace("'", "")
    tag = r.choice(["", "", f"+{r.choice(WORDS)}"])
    domain = f"{r.choice(['mail.', 'post.', ''])}{r.choice(WORDS)}.{r.choice(['example', 'test'])}"
    wanted = f"{name}{tag}@{domain}"
    told = f"The office of {r.choice(PLACES)}, room {r.randint(1, 99)}, writes from {wanted}."
    return f"{told} What is its address? Reply with it alone, dots and tag as written.", wanted


def report(r: random.Random) -> Row:
    """A table with a header and a last line of totals; some figures are negative."""
    lines = [
        (w, r.randint(-20, 40), r.randint(1, 400) / 4) for w in r.sample(WORDS, r.randint(2, 4))
    ]
    lines.append(("total", sum(one[1] for one in lines), sum(one[2] for one in lines)))
    program = "\n".join(f'print(f"{{{w!r}:<8}}{{{n}:>6}}{{{x}:>9.2f}}")' for w, n, x in lines)
    printed = [f"{'item':<8}{'change':>6}{'price':>9}"]
    printed += [f"{w:<8}{n:>6}{x:>9.2f}" for w, n, x in lines]
    how = "Reply with its output alone, line by line; how many spaces part two columns is all one."
    return (
        f"What does this program print?\nprint('item    change    price')\n{program}\n{how}",
        "\n".join(printed),
    )


def ranking(r: random.Random) -> Row:
    """Teams from the first place to the last, one a line."""
    teams = r.sample(TEAMS, r.randint(3, 6))
    points = sorted(r.sample(range(10, 99), len(teams)), reverse=True)
    table = list(zip(teams, points, strict=True))
    told = ", ".join(f"{team}: {score}" for team, score in r.sample(table, len(table)))
    how = "Rank the teams from most points to fewest. Reply with all names alone, one a line."
    return f"Points at {r.choice(PLACES)}: {told}. {how}", "\n".join(teams)


def arrows(r: random.Random) -> Row:
    """Directed links in any order."""
    names = r.sample(WORDS, 5)
    pairs = r.sample([(a, b) for a in names for b in names if a < b], r.randint(2, 4))
    pairs = [pair if r.random() < 0.5 else pair[::-1] for pair in pairs]
    told = "; ".join(r.choice([f"{a} feeds {b}", f"{b} is fed by {a}"]) for a, b in pairs)
    how = "Reply with every link once, as FEEDER->FED, separated by '; ', in any order."
    return f"In plant {r.randint(1, 99)}, {told}. {how}", "; ".join(
        f"{a}->{b}" for a, b in sorted(pairs)
    )


def reading(r: random.Random) -> Row:
    """A number and a unit beyond ASCII, with a denominator or with a binary prefix."""
    unit, what = r.choice([
        ("µg", "dose"), ("mg", "dose"), ("µm", "gap"), ("m²", "floor area"), ("m³", "volume"),
        ("km/h", "speed"), ("m/s", "speed"), ("g/L", "sugar"), ("MB", "file size"),
        ("MiB", "file size"), ("GiB", "disk size"), ("°C", "temperature"),
    ])  # fmt: skip
    value = r.choice([str(r.randint(2, 400)), f"{r.randint(2, 90)}.{r.randint(1, 9)}"])
    told = f"The log of {r.choice(PLACES)}, page {r.randint(1, 99)}, says: {what} {value} {unit}."
    how = "Reply with number and unit alone, in the unit of the log."
    return f"{told} What is the {what}? {how}", f"{value} {unit}"


def scale(r: random.Random) -> Row:
    """Tiny numbers in scientific form, and whole numbers of 17 to 20 digits."""
    if r.random() < 0.5:
        value = f"{r.randint(1, 9)}.{r.randint(1, 9)}"
        word, power = r.choice([("nano", 9), ("pico", 12), ("femto", 15)])
        question = f"How many metres are {value} {word}metres? Reply in the form 9.9e-9"
        return f"{question}, with all digits, alone.", f"{value}e-{power}"
    a, b = r.randrange(10**9, 10**10), r.randrange(10**8, 10**9)
    return f"Compute {a} * {b}. Reply with the whole number alone, with all digits.", str(a * b)


def ratio(r: random.Random) -> Row:
    """A fraction in lowest terms, or a mixed number."""
    one, other = Fraction(r.randint(1, 12), r.randint(2, 12)), Fraction(r.randint(1, 12), 7)
    total = one + other
    if total.denominator == 1:
        total += Fraction(1, 3)
        other += Fraction(1, 3)
    if r.random() < 0.5 and total > 1:
        whole, rest = divmod(total.numerator, total.denominator)
        how = "Reply with a mixed number in lowest terms alone, as W N/D."
        return f"Compute {one} + {other}. {how}", f"{whole} {rest}/{total.denominator}"
    how = "Reply with one fraction in lowest terms alone, as N/D."
    return f"Compute {one} + {other}. {how}", f"{total.numerator}/{total.denominator}"


def person(r: random.Random) -> Row:
    """A full name, some with a particle or a generation."""

    def made() -> str:
        middle = r.choice(["", "", "", "van der ", "al-"])
        after = r.choice(["", "", " Jr.", " Sr.", " II", " III"])
        return f"{r.choice(FIRST)} {middle}{r.choice([*LAST, 'James', 'Martin'])}{after}"

    wanted, other = made(), made()
    told = f"The plaque at {r.choice(PLACES)} reads: built by {wanted}, given by {other}."
    return f"{told} Who built it? Reply with the full name alone, with all its parts.", wanted


def place(r: random.Random) -> Row:
    """A town and its region; the same name is borne by towns of several regions."""
    town, region = f"{r.choice(WORDS).title()}{r.choice(ENDINGS)}", r.choice(REGIONS)
    town = r.choice(SIDES) + town
    told = f"Letter {r.randint(100, 999)} was posted in {region}, in the town of {town}."
    return f"{told} Where was it posted? Reply as TOWN, REGION alone.", f"{town}, {region}"


def several(r: random.Random) -> Row:
    """Five options, one to four of which are right."""
    limit = r.randint(30, 70)
    while True:
        values = r.sample(range(10, 99), 5)
        right = [mark for mark, value in zip("ABCDE", values, strict=True) if value > limit]
        if 1 <= len(right) <= 4:
            break
    listed = "\n".join(f"{mark}) {value}" for mark, value in zip("ABCDE", values, strict=True))
    how = "Reason if you like; then one last line, which alone counts: all right letters and no "
    how += "others, each once, in any order, with commas, as <answer>X, Y</answer>."
    return f"Which of these are more than {limit}?\n{listed}\n{how}", ", ".join(right)


def interval(r: random.Random) -> Row:
    """An interval with open and closed ends, some without end."""
    low, width = r.randint(-60, 60), r.randint(2, 90)
    start, end = r.choice(["[", "("]), r.choice(["]", ")"])
    first, last = str(low), str(low + width)
    told_first = f"from {first} ({'included' if start == '[' else 'excluded'})"
    told_last = f"to {last} ({'included' if end == ']' else 'excluded'})"
    unbounded = r.random()
    if unbounded < 0.15:
        start, first, told_first = "(", "-inf", "from any low"
    elif unbounded < 0.3:
        end, last, told_last = ")", "inf", "without upper end"
    told = f"The valve at {r.choice(PLACES)} works {told_first} {told_last} degrees."
    how = "Reply with the interval alone, as [1, 2), with -inf or inf where there is no end."
    return f"{told} {how}", f"{start}{first}, {last}{end}"


def inequality(r: random.Random) -> Row:
    """What is left of a linear inequality for x."""
    factor, bound, add = (
        r.choice([-5, -4, -3, -2, 2, 3, 4, 5]),
        r.randint(-300, 300),
        r.randint(1, 40),
    )
    sign = r.choice(["<", "<=", ">", ">="])
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[sign]
    how = "Reply with the solution alone, as x < 1, x <= 1, x > 1 or x >= 1."
    return (
        f"Solve {factor}x + {add} {sign} {factor * bound + add} for x. {how}",
        f"x {sign if factor > 0 else turned} {bound}",
    )


def formula(r: random.Random) -> Row:
    """A chemical formula; case, groups, order and charge tell substances apart."""
    wanted, other = r.sample(FORMULAS, 2)
    a, b = r.sample(range(100, 999), 2)
    told = f"Bottle {a} is labelled {wanted}, bottle {b} is labelled {other}."
    return f"{told} What is in bottle {a}? Reply with the formula alone, as labelled.", wanted


def expression(r: random.Random) -> Row:
    """A polynomial in x, multiplied out."""
    a, b = r.choice([-9, -7, -4, -2, 1, 3, 5]), r.choice([-8, -6, 2, 4, 8, 9, 11])
    b += a + b == 0
    how = "Reply with a sum of terms from the highest power down alone, as x^2 + 3*x - 4."
    if r.random() < 0.6:
        return (
            f"Multiply out (x {a:+})(x {b:+}). {how}",
            f"x^2 {'+-'[a + b < 0]} {abs(a + b)}*x {'+-'[a * b < 0]} {abs(a * b)}"
            if abs(a + b) > 1
            else f"x^2 {'+-'[a + b < 0]} x {'+-'[a * b < 0]} {abs(a * b)}",
        )
    factor, a = r.randint(2, 9), r.choice([-1, 1]) * r.randint(1, 60)
    return f"Multiply out {factor}(x {a:+}). {how}", (f"{factor}*x {'+-'[a < 0]} {abs(factor * a)}")


def truths(r: random.Random) -> Row:
    """Some comparisons, each true or false."""
    pairs = [(r.randint(1, 60), r.randint(1, 60)) for _ in range(r.randint(4, 9))]
    told = "; ".join(f"{a} < {b}" for a, b in pairs)
    how = "Reply with true or false for each, in this order, separated by commas, and nothing else."
    return f"Which hold: {told}? {how}", ", ".join(str(a < b).lower() for a, b in pairs)


def numeral(r: random.Random) -> Row:
    """A Roman numeral."""
    value = left = r.choice([r.randint(1, 120), r.randint(121, 2999)])
    wanted = ""
    for letters, worth in (
        ("M", 1000), ("CM", 900), ("D", 500), ("CD", 400), ("C", 100), ("XC", 90), ("L", 50),
        ("XL", 40), ("X", 10), ("IX", 9), ("V", 5), ("IV", 4), ("I", 1),
    ):  # fmt: skip
        count, left = divmod(left, worth)
        wanted += letters * count
    return f"Write {value} as a Roman numeral. Reply with the numeral alone.", wanted


def ordinal(r: random.Random) -> Row:
    """A place in a race, in figures."""
    before = r.choice([r.randint(0, 140), r.randint(1000, 9000)])
    value = before + 1
    ending = (
        "th" if value % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    )
    told = f"In the race of {r.choice(PLACES)}, {before} runners came in before {r.choice(FIRST)}."
    return f"{told} Which place is that? Reply with the ordinal alone, as 44th.", f"{value}{ending}"


def phone(r: random.Random) -> Row:
    """A telephone number: local with its zero, or international, some with an extension."""
    a, b = r.randint(200, 999), r.randint(1000, 9999)
    wanted = f"{r.choice(['030', '040', '0221', '+44 20', '+1 604', '+46 8'])} {a} {b}"
    if r.random() < 0.3:
        wanted += f" ext. {r.randint(1, 60)}"
    told = f"The card of {r.choice(FIRST)} {r.choice(LAST)} says: call {wanted}."
    return (
        f"{told} What is the telephone number? Reply with it alone, all parts as on the card.",
        wanted,
    )


def money(r: random.Random) -> Row:
    """An amount in one of three currencies; refunds are negative."""
    sign = r.choice("$€£")
    price, count = r.choice([r.randint(1, 90) * 1000, r.randint(101, 9999)]), r.randint(1, 12)
    total = price * count
    told, minus = f"{count} times {sign}{price / 100:.2f} is owed to us", ""
    if r.random() < 0.25:
        told, minus = f"{count} times {sign}{price / 100:.2f} is owed by us", "-"
    how = f"Reply with the balance alone, as {sign}0.00, or -{sign}0.00 where we owe."
    return f"{told.capitalize()}. {how}", f"{minus}{sign}{total / 100:.2f}"


KINDS: dict[str, Callable[[random.Random], Row]] = {
    made.__name__: made
    for made in (
        catalog, moment, clock, release, mailbox, report, ranking, arrows, reading, scale, ratio,
        person, place, several, interval, inequality, formula, expression, truths, numeral, ordinal,
        phone, money,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in KINDS:
        (ROWS / f"{name}.jsonl").write_text(rows_of(name, KINDS), encoding="utf-8")
