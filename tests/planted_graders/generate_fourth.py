"""Run with -m, it makes the rows of the fourth set anew: one file for each kind of question."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

from planted_graders.generate import LAST, PLACES, ROWS, WORDS, Row, rows_of

PEOPLE = ["Ann", "Anna", "Jon", "Ilse", "Piet", "Rosa", "Emil", "Greta", "Olav", "Nadia"]
ISLANDERS = ["Ada", "Bram", "Cleo", "Dirk", "Edda", "Finn", "Gus", "Hela", "Ivo", "Jette"]
MORE_WORDS = [*WORDS, "kelp", "lemon", "maple", "north", "olive", "pearl", "quartz", "river"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
CAUSES = ["a worn seal", "dust in the filter", "a loose belt", "low oil", "a blown fuse"]
LABELS = ["positive", "negative", "mixed", "neutral"]


def tagged(r: random.Random) -> Row:
    """A score, below zero or with a half in places, in tags of XML."""
    rounds, each, lost = r.randint(3, 60), r.randint(4, 90), r.randint(100, 2900)
    half = r.choice([0, 0, 0.5])
    told = f"A team wins {each} points in each of {rounds} rounds, and {lost - half:g} are taken"
    how = "Think between <think> and </think>, then give the number alone, once, between <answer> "
    how += "and </answer>."
    return f"{told} away. What is its score? {how}", f"{rounds * each - lost + half:g}"


def toolcall(r: random.Random) -> Row:
    """A call of one of three tools."""
    one, other = r.sample(WORDS, 2)
    file = f"{one.title()}/{other}{r.randint(1, 99)}.TXT"
    city, days, metric = r.choice(PLACES), r.randint(2, 14), r.choice([True, False])
    label, hour, repeat = f"{one} {other}", r.randint(0, 23), r.choice([True, False])
    told, name, arguments = r.choice([
        (
            f"The weather in {city} for {days} days, {'metric' if metric else 'not metric'}.",
            "get_weather",
            {"city": city, "days": days, "metric": metric},
        ),
        (
            f"Wake me at {hour} o'clock, label {label}, {'every day' if repeat else 'once'}.",
            "set_alarm",
            {"label": label, "hour": hour, "repeat": repeat},
        ),
        (
            f"Send {file} to {days} readers.",
            "send_file",
            {"file": file, "readers": days},
        ),
    ])  # fmt: skip
    tools = "get_weather(city: string, days: integer, metric: boolean), set_alarm(label: string, "
    tools += "hour: integer, repeat: boolean), send_file(file: string, readers: integer)"
    how = 'Reply with one call alone, as <tool_call>{"name": ..., "arguments": {...}}</tool_call>: '
    how += "exactly the arguments listed, of the JSON types listed, texts as given, case included."
    return f"Tools: {tools}.\n{told}\n{how}", json.dumps({"name": name, "arguments": arguments})


def resultset(r: random.Random) -> Row:
    """What a query answers, in an order, with NULL and 0 in places."""
    prices = r.sample(range(900, 9900), r.randint(2, 4))
    lines = [
        (word, f"{price / 100:.2f}", r.choice(["NULL", "0", str(r.randint(1, 60)), "7"]))
        for word, price in zip(r.sample(WORDS, 4), prices, strict=False)
    ]
    way = r.choice(["ASC", "DESC"])
    rows = sorted(lines, key=lambda line: Decimal(line[1]), reverse=way == "DESC")
    told = "; ".join(f"{name}, {price}, {stock}" for name, price, stock in lines)
    how = "Reply with the result alone, without a header, one row a line, columns separated by |, "
    how += "rows in the order asked for. NULL stays NULL; 4.5 is as good as 4.50."
    asked = f"SELECT name, price, stock FROM parts ORDER BY price {way}"
    return f"Table parts (name, price, stock): {told}.\n{asked}\n{how}", "\n".join(
        "|".join(row) for row in rows
    )


def entities(r: random.Random) -> Row:
    """The people who came, among those who did not."""
    people = r.sample([f"{first} {last}" for first in PEOPLE for last in LAST], 7)
    came = people[: r.randint(2, 4)]
    told = f"Minutes {r.randint(1, 99)}: {', '.join(came)} came; {', '.join(people[4:])} did not."
    how = "Who came? Reply with all their full names alone and no others, each once, separated by "
    how += "semicolons or one a line, in any order; capitals do not matter."
    return f"{told} {how}", "; ".join(came)


def backwards(r: random.Random) -> Row:
    """Words from last to first."""
    words = r.sample(MORE_WORDS, r.randint(4, 8))
    how = "Reply with the words alone, separated by spaces or commas; capitals do not matter."
    return f"Write these words from last to first: {' '.join(words)}. {how}", " ".join(words[::-1])


def heat(r: random.Random) -> Row:
    """A temperature in another unit, below zero in places."""
    celsius = Decimal(r.randint(-90, 160)) / r.choice([1, 2])
    at = {
        "C": f"{celsius.normalize():f}",
        "F": f"{(celsius * 9 / 5 + 32).normalize():f}",
        "K": f"{(celsius + Decimal('273.15')).normalize():f}",
    }
    given, wanted = r.choice([("C", "F"), ("F", "C"), ("C", "K"), ("K", "C"), ("K", "F")])
    how = f"Reply with the exact temperature in {wanted} and the letter of its unit alone, as 1.5 "
    how += f"{wanted} or 1.5 °{wanted}."
    return f"A probe reads {at[given]} {given}. What is that in {wanted}? {how}", (
        f"{at[wanted]} {wanted}"
    )


def weekday(r: random.Random) -> Row:
    """The day of the week some days later."""
    start, days = date(1950, 1, 1) + timedelta(days=r.randrange(30_000)), r.randint(8, 400)
    wanted = DAYS[(start + timedelta(days=days)).weekday()]
    told = f"Day {start.isoformat()} is a {DAYS[start.weekday()]}. Which day of the week comes"
    how = "Reply with its English name alone, or with its first three letters; capitals do not "
    return f"{told} {days} days later? {how}matter.", wanted


def visit(r: random.Random) -> Row:
    """A date as DD/MM/YYYY."""
    start = date(1930, 1, 1) + timedelta(days=r.randrange(45_000))
    days = r.choice([7, 10, 20, 25, 30, 40])
    end = start + timedelta(days=days)
    told = f"A visit on {start.strftime('%d/%m/%Y')} (day first) is put off by {days} days."
    how = "What is the new date? Reply with it alone, as DD/MM/YYYY, leading zeros or none."
    return f"{told} {how}", end.strftime("%d/%m/%Y")


def tone(r: random.Random) -> Row:
    """A label for what reviewers said."""
    wanted = r.choices(LABELS, weights=[5, 5, 2, 1])[0]
    few, many = r.randint(0, 2), r.randint(3, 4)
    good, bad = {
        "positive": (many, few),
        "negative": (few, many),
        "mixed": (many, many),
        "neutral": (0, 0),
    }[wanted]
    said = ["praise"] * good + ["blame"] * bad + ["plain facts"] * r.randint(1, 3)
    r.shuffle(said)
    told = f"Book {r.randint(1, 999)} got {', '.join(said)}. "
    told += "Its tone is neutral without praise and blame, mixed with as much praise as blame, "
    told += "positive with more praise, negative with more blame."
    how = "Reply with one of the four labels alone; capitals and a full stop do not matter."
    return f"{told} {how}", wanted


def incident(r: random.Random) -> Row:
    """A report of one sentence on the first of two failures."""
    devices = [f"{r.choice(['pump', 'fan', 'drill'])} {r.randint(1, 9)}{side}" for side in "ab"]
    times = sorted(r.sample(range(1440), 2))
    one, other = (
        f"{device} stopped at {at // 60:02}:{at % 60:02} because of {cause}"
        for device, at, cause in zip(devices, times, r.sample(CAUSES, 2), strict=True)
    )
    first, second = r.choice([(one, other), (other, one)])
    how = "Which failure came first? Reply with one sentence alone, of the form 'DEVICE stopped at "
    how += "HH:MM because of CAUSE.', in the words of the log; the full stop may be left out."
    return f"Log of {r.choice(PLACES)}: {first}; {second}. {how}", one


def countdown(r: random.Random) -> Row:
    """A target to be made of three or four numbers."""
    while True:
        numbers = [r.randint(2, 25) for _ in range(r.choice([3, 4]))]
        if r.random() < 0.4:
            numbers[1] = numbers[0]
            r.shuffle(numbers)
        a, b, c, *rest = numbers
        wanted = r.choice([
            f"({a} + {b}) * {c}", f"{a} * {b} - {c}", f"{a} * ({b} - {c})", f"{a} - {b} + {c}",
        ])  # fmt: skip
        if rest:
            wanted = r.choice([f"{wanted} + {rest[0]}", f"{rest[0]} * ({wanted})"])
        target = eval(wanted)
        if 10 <= target <= 999 and target not in numbers:
            break
    shown = ", ".join(map(str, r.sample(numbers, len(numbers))))
    how = "Reply with the expression alone, of + - * / and brackets; '= and the target' may follow."
    return f"Make {target} of the numbers {shown}, each used exactly once. {how}", wanted


def complexes(r: random.Random) -> Row:
    """A sum or a product of complex numbers."""

    def shown(real: int, imaginary: int) -> str:
        return f"{real}{imaginary:+}i"

    while True:
        a, b, c, d = (r.choice([-1, 1]) * r.randint(2, 15) for _ in range(4))
        wanted = r.choice([(a + c, b + d), (a * c - b * d, a * d + b * c)])
        if abs(wanted[1]) > 1 and wanted[0] not in {0, wanted[1], -wanted[1]}:
            break
    sign = "+" if wanted == (a + c, b + d) else "*"
    how = "Reply with the number alone, as 1+2i, either part first; spaces beside + and - do not "
    return f"Compute ({shown(a, b)}) {sign} ({shown(c, d)}). {how}matter.", shown(*wanted)


def written(coefficients: list[int]) -> str:
    """A polynomial, from the coefficient of the highest power down."""
    terms = []
    for power, factor in zip(range(len(coefficients) - 1, -1, -1), coefficients, strict=True):
        x = {0: "", 1: "*x"}.get(power, f"*x^{power}")
        if factor:
            terms.append(f"{'-' if factor < 0 else '+'} {abs(factor)}{x}")
    return " ".join(terms).removeprefix("+ ").replace("- ", "-", 1 if terms[0][0] == "-" else 0)


def derivative(r: random.Random) -> Row:
    """The derivative of a polynomial."""
    degree = r.randint(2, 4)
    given = [r.choice([-1, 1]) * r.randint(2, 9) for _ in range(degree + 1)]
    wanted = [factor * (degree - at) for at, factor in enumerate(given[:-1])]
    how = "Reply with the derivative alone, as 70*x^2 - 50*x; any equal polynomial counts, with "
    how += "+ - * and brackets, and with whole powers of x alone."
    return f"Differentiate {written(given)} by x. {how}", written(wanted)


def change(r: random.Random) -> Row:
    """By how many per cent a price rose or fell."""
    old = r.choice([40, 50, 80, 100, 125, 160, 200, 250, 400, 500])
    new = r.choice([n for n in range(old // 4, old * 2) if n != old])
    per_cent = (Decimal(new - old) * 100 / old).normalize()
    how = "Reply with the exact signed percentage alone, as +7.5% or -7.5%; the plus may be left"
    told = f"The price of {r.choice(MORE_WORDS)} goes from {old} to {new}."
    return f"{told} By how many per cent does it change? {how} out.", f"{per_cent:+f}%"


def csvline(r: random.Random) -> Row:
    """A line of comma-separated values with commas, quotes and gaps."""
    one, other, third = r.sample(WORDS, 3)
    fields = [
        r.choice([f"{r.choice(LAST)}, {r.choice(PEOPLE)}", f"{r.choice(PEOPLE)} {r.choice(LAST)}"]),
        r.choice([f"{one}, {other}", f'the "{one}" {other}', f"{one} {other}", ""]),
        f"{r.randint(1, 999) / 10:g}",
        r.choice(["", third, third]),
    ]
    listed = "\n".join(f"{at}: {field or '(empty)'}" for at, field in enumerate(fields, 1))
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    how = "Reply with the four fields as one line of CSV alone: commas between fields and no "
    how += "spaces beside them, fields with a comma or a quote in double quotes, quotes doubled."
    return f"{listed}\n{how} Other fields may be quoted too.", line.getvalue()


def dotenv(r: random.Random) -> Row:
    """Settings, with signs of equality in some values."""
    made = {
        "HOST": f"{r.choice(WORDS)}.example",
        "PORT": str(r.randint(1000, 9999)),
        "TOKEN": f"{r.choice(WORDS)}{r.randint(10, 99)}={r.choice(WORDS)}{r.randint(10, 99)}",
        "MODE": r.choice(["Fast", "fast", "safe", "Safe"]),
    }
    keys = r.sample(list(made), r.choice([3, 4]))
    told = "; ".join(f"{key} is {made[key]}" for key in keys)
    how = "Reply with the .env file alone: one KEY=VALUE a line, exactly these keys, each once, in "
    how += "any order, values as given, case included; empty lines do not matter."
    return f"{told}. {how}", "\n".join(f"{key}={made[key]}" for key in keys)


def passage(r: random.Random) -> Row:
    """A phrase of a short text."""
    place, firm = r.choice(PLACES), f"{r.choice(LAST)}-{r.choice(LAST)}"
    high = f"{r.randint(101, 999) / 10} metres"
    opened = f"{r.randint(1, 28)} {r.choice(['May', 'June', 'October'])} {r.randint(1811, 1969)}"
    cold = f"-{r.randint(3, 39)} degrees"
    cost = f"{r.randint(2, 98)},{r.randint(100, 999)} crowns"
    told = f"The tower of {place}, {high} high, was opened on {opened}. The firm of {firm} built it"
    told += f" for {cost}; in its first winter it stood at {cold}."
    question, wanted = r.choice([
        ("How high is it?", high), ("When was it opened?", opened), ("Which firm built it?", firm),
        ("How cold was it in its first winter?", cold), ("What did it cost?", cost),
    ])  # fmt: skip
    how = "Reply with the words of the text alone; capitals and a full stop at the end do not"
    return f"{told} {question} {how} matter.", wanted


def confident(r: random.Random) -> Row:
    """A product, with how sure one is of it."""
    a, b = r.randint(12, 99), r.randint(12, 99)
    how = "Reply with two lines alone: 'Answer: N', then 'Confidence: P', P being a whole number "
    how += "from 0 to 100 that says how sure you are. Only a right N counts."
    return f"What is {a} * {b}? {how}", str(a * b)


Grid = list[list[int]]


def fits(grid: Grid, y: int, x: int, digit: int) -> bool:
    top, left = y - y % 2, x - x % 3
    box = {grid[top + j][left + i] for j in range(2) for i in range(3)}
    return digit not in grid[y] and digit not in {row[x] for row in grid} and digit not in box


def solutions(grid: Grid) -> int:
    """How many ways there are to fill the zeros."""
    for y, x in itertools.product(range(6), range(6)):
        if grid[y][x] == 0:
            found = 0
            for digit in range(1, 7):
                if fits(grid, y, x, digit):
                    grid[y][x] = digit
                    found += solutions(grid)
                    grid[y][x] = 0
            return found
    return 1


def sudoku(r: random.Random) -> Row:
    """A square of six by six with one solution."""
    digits = r.sample(range(1, 7), 6)
    bands = [[2 * band + at for at in r.sample([0, 1], 2)] for band in r.sample(range(3), 3)]
    stacks = [[3 * stack + at for at in r.sample(range(3), 3)] for stack in r.sample([0, 1], 2)]
    full = [
        [digits[(3 * (y % 2) + y // 2 + x) % 6] for stack in stacks for x in stack]
        for band in bands
        for y in band
    ]
    shown = [row[:] for row in full]
    for y, x in r.sample(list(itertools.product(range(6), range(6))), 16):
        kept, shown[y][x] = shown[y][x], 0
        if solutions(shown) > 1:
            shown[y][x] = kept
    drawn = "\n".join(" ".join(str(digit or ".") for digit in row) for row in shown)
    how = "Fill the dots with 1 to 6, so that each row, each column and each box of 2 rows and 3 "
    how += "columns has each digit once. Reply with the full square alone, six lines of six "
    how += "digits, with spaces, commas or nothing between them."
    return f"{drawn}\n{how}", "\n".join(" ".join(map(str, row)) for row in full)


def system(r: random.Random) -> Row:
    """Two equations with two unknowns."""
    x, y = r.sample([n / 2 for n in range(-24, 25)], 2)
    while True:
        a, b, c, d = (r.choice([-1, 1]) * r.randint(2, 9) for _ in range(4))
        if a * d != b * c:
            break
    told = f"{a}*x {b:+}*y = {a * x + b * y:g} and {c}*x {d:+}*y = {c * x + d * y:g}"
    how = "Reply with both values alone, as x = 1, y = 2, either first; 2.5 is as good as 5/2."
    return f"Solve {told}. {how}", f"x = {x:g}, y = {y:g}"


def knights(r: random.Random) -> Row:
    """Knights, who tell the truth, and knaves, who lie."""
    while True:
        names = r.sample(ISLANDERS, r.choice([3, 4]))
        claims = [
            (one, r.choice([n for n in names if n != one]), r.random() < 0.5) for one in names
        ]
        ways = [
            roles
            for some in itertools.product([True, False], repeat=len(names))
            for roles in [dict(zip(names, some, strict=True))]
            if all(roles[one] == (roles[other] == is_so) for one, other, is_so in claims)
            and roles[names[0]]
        ]
        if len(ways) == 1:
            break
    told = "; ".join(
        f"{one} says that {other} is a {'knight' if is_so else 'knave'}"
        for one, other, is_so in claims
    )
    how = "Who is what? Reply with each name once, as 'NAME: knight' or 'NAME: knave', separated "
    wanted = ", ".join(
        f"{name}: {'knight' if is_so else 'knave'}" for name, is_so in ways[0].items()
    )
    told = f"Knights always tell the truth, knaves always lie. {told}. {names[0]} is a knight."
    return f"{told} {how}by commas or one a line, in any order, and with nothing else.", wanted


KINDS: dict[str, Callable[[random.Random], Row]] = {
    made.__name__: made
    for made in (
        tagged, toolcall, resultset, entities, backwards, heat, weekday, visit, tone, incident,
        countdown, complexes, derivative, change, csvline, dotenv, passage, confident, sudoku,
        system, knights,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in KINDS:
        (ROWS / f"{name}.jsonl").write_text(rows_of(name, KINDS), encoding="utf-8")
