"""Run with -m, it makes the rows of the sixth set anew: one file for each kind of question."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import combinations, pairwise, permutations

from planted_graders.generate import LAST, PLACES, ROWS, WORDS, Row, rows_of
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


def decision(r: random.Random) -> Row:
    """Whether rules allow something, and which of them do not."""
    here, there = r.sample(PLACES, 2)
    age, pay, debt = r.randint(18, 40), 100 * r.randint(12, 40), 100 * r.randint(10, 60)
    topics = [
        (f"age at least {age}", f"age {age + r.randint(0, 20)}", f"age {age - r.randint(1, 3)}"),
        (f"pay at least {pay}", f"pay {pay + r.randint(0, 900)}", f"pay {pay - r.randint(1, 900)}"),
        (f"debts of at most {debt}", f"debts {debt - r.randint(0, 9)}", f"debts {debt + 1}"),
        (f"lives in {here}", f"lives in {here}", f"lives in {there}"),
        ("two sureties or more", f"{r.randint(2, 4)} sureties", f"{r.randint(0, 1)} sureties"),
    ]
    broken = r.sample(range(5), r.choice([0, 1, 1, 1, 1, 1, 2]))
    numbers = sorted(r.sample(range(1, 11), 5))
    r.shuffle(numbers)
    rules = "; ".join(f"R{at}: {rule}" for at, (rule, _, _) in zip(numbers, topics, strict=True))
    facts = ", ".join(topic[2 if at in broken else 1] for at, topic in enumerate(topics))
    wanted = ", ".join(f"R{at}" for at in sorted(numbers[at] for at in broken))
    how = "Reply with one line alone, 'Answer: Yes', or 'Answer: No: ' and all rules that are "
    how += "broken, in any order, as R1, R2."
    told = f"Rules for a loan: {rules}. {r.choice(PEOPLE)}: {facts}. May this be granted?"
    return f"{told} {how}", f"No: {wanted}" if broken else "Yes"


LOOPS = {
    "n": "for {} in range(n):", "m": "for {} in range(m):", "2^n": "for {} in range(2 ** n):",
    "log n": "for {0} in powers_of_two_below(n):", "1": "for {} in range({}):",
}  # fmt: skip
COSTS = [
    "1", "log n", "n", "n log n", "n^2", "n^2 log n", "n^3", "2^n", "n * m", "n + m", "m log n",
     "n^2 + m", "m^2", "m^2 log n", "n^2 * m",
]  # fmt: skip


def bigo(r: random.Random) -> Row:
    """The running time of loops within loops and loops in a row."""
    cost = r.choice(COSTS)
    blocks = []
    for term in cost.split(" + "):
        loops = []
        for factor in term.replace(" log", " * log").split(" * "):
            name, _, power = factor.partition("^") if factor != "2^n" else (factor, "", "")
            loops += [name] * int(power or 1)
        if "1" not in loops:
            loops.insert(r.randint(0, len(loops)), "1")
        names = r.sample(WORDS, len(loops))
        lines = [
            "  " * at + LOOPS[loop].format(name, r.randint(3, 90))
            for at, (loop, name) in enumerate(zip(loops, names, strict=True))
        ]
        blocks.append("\n".join([*lines, "  " * len(loops) + "work()"]))
    told = "\n".join(blocks)
    how = "work() takes constant time; n and m are independent. Which running time has this, as the"
    how += " tightest O(...) without constants? Reply with it alone, as O(n^2 log m) or O(n * m); "
    how += "** is as good as ^, a product may do without *, the order of factors and of terms is "
    return f"{told}\n{how}free, and brackets may stand around what log is taken of.", f"O({cost})"


BASIC = {
    "str": "text",
    "int": "whole number",
    "float": "float",
    "bool": "flag",
    "bytes": "byte string",
}


def hinted(r: random.Random, deep: int) -> tuple[str, str, str]:
    """A type, and what one and several values of it are called."""
    shapes = ["list", "dict"] if deep > 1 else ["list", "dict", "pair", "pair", "set", "maybe"]
    shape = r.choice(shapes) if deep else "basic"
    if shape == "list":
        inner, _, many = hinted(r, deep - 1)
        return f"list[{inner}]", f"list of {many}", f"lists of {many}"
    if shape == "dict":
        key, (inner, _, many) = r.choice(["str", "int", "bytes"]), hinted(r, deep - 1)
        ends = f"from {BASIC[key]}s to {many}"
        return f"dict[{key}, {inner}]", f"dictionary {ends}", f"dictionaries {ends}"
    if shape == "pair":
        one, other = r.choice([*BASIC]), r.choice([*BASIC])
        both = f"of one {BASIC[one]} and one {BASIC[other]}"
        return f"tuple[{one}, {other}]", f"pair {both}", f"pairs {both}"
    inner = r.choice(["str", "int", "bytes"])
    if shape == "set":
        return f"set[{inner}]", f"set of {BASIC[inner]}s", f"sets of {BASIC[inner]}s"
    if shape == "maybe":
        many = f"{BASIC[inner]}s, each of which may be None"
        return f"list[{inner} | None]", f"list of {many}", f"lists of {many}"
    inner = r.choice([*BASIC])
    return inner, BASIC[inner], f"{BASIC[inner]}s"


def annotation(r: random.Random) -> Row:
    """The type that a function returns."""
    wanted, one, _ = hinted(r, r.choice([2, 3, 3]))
    if r.random() < 0.3:
        wanted, one = f"{wanted} | None", f"{one}; it returns None instead where nothing is found"
    how = "Write its full return type for Python 3.12, between backticks and alone, of str, int, "
    how += (
        "float, bool, bytes, list, dict, set, tuple (for pairs) and None. List, Dict, Set, Tuple, "
    )
    how += "Optional and Union of typing are as good, blanks and the order of | do not matter."
    name = f"{r.choice(['read', 'find', 'load'])}_{r.choice(WORDS)}"
    return f"The function {name} returns a {one}. {how}", f"`{wanted}`"


def exception(r: random.Random) -> Row:
    """Where a program stops, and with what."""
    key, other, gone = r.sample(WORDS, 3)
    row = [r.randint(1, 40) for _ in range(r.randint(2, 4))]
    start = [f"row = {row}", f"sizes = {{{key!r}: {r.randint(1, 9)}}}", f"name = {other!r}"]
    fine = [
        "total = sum(row)", "print(row[0])", "print(len(name))", f"sizes[{other!r}] = 4",
        f"row.append({r.randint(1, 9)})", "print(name.upper())", "half = 10 / 4",
        "again = list(row)", "print(name[1])", f"found = sizes.get({gone!r})",
    ]  # fmt: skip
    bad, wanted = r.choice([
        (f"print(row[{r.randint(16, 30)}])", "IndexError"), (f"print(sizes[{gone!r}])", "KeyError"),
        (f"rate = {r.randint(2, 9)} / (row[0] - {row[0]})", "ZeroDivisionError"),
        (f"label = name + {r.randint(2, 9)}", "TypeError"), ("number = int(name)", "ValueError"),
        (f"row.push({r.randint(2, 9)})", "AttributeError"), (f"print({gone})", "NameError"),
    ])  # fmt: skip
    r.shuffle(start)
    at, rest = r.randint(0, 7), r.sample(fine, r.choice([7, 8]))
    lines = [*start, *rest[:at], bad, *rest[at:]]
    told = "\n".join(f"{number:>2} {line}" for number, line in enumerate(lines, 1))
    how = "In which line does this program of Python stop, and with an exception of which class "
    how += "(the class itself, not a base of it)? Reply with both alone, as line 4: KeyError; a "
    return f"{told}\n{how}capital L or no 'line' at all, and a comma for the colon are as good.", (
        f"line {len(start) + at + 1}: {wanted}"
    )


def webaction(r: random.Random) -> Row:
    """The next action on a page."""
    ids = sorted(r.sample(range(1, 100), 4))
    person, day = (
        f"{r.choice(PEOPLE)} {r.choice(LAST)}",
        f"2026-0{r.randint(1, 9)}-1{r.randint(0, 9)}",
    )
    fields = {
        "Name": person, "Day": day, "Amount": f"{r.randint(10, 99)}.{r.randint(10, 99)}",
        "E-mail": f"{person[0].lower()}.{r.choice(WORDS)}@{r.choice(WORDS)}.example",
        "Street": f"{r.choice(WORDS).title()} Lane {r.randint(2, 90)}",
    }  # fmt: skip
    field, button = r.choice(list(fields)), r.choice(["Save", "Send", "Search", "Cancel"])
    towns, box = r.sample(PLACES, 3), r.choice(WORDS)
    elements = [
        f"field '{field}'", f"button '{button}'", f"menu 'Town' with {', '.join(towns)}",
        f"checkbox '{box}'",
    ]  # fmt: skip
    numbers = r.sample(ids, 4)
    page = "\n".join(
        f"[{at}] {element}" for at, element in sorted(zip(numbers, elements, strict=True))
    )
    asked, wanted = r.choice([
        (f"Enter {fields[field]} in the field {field}", f"type [{numbers[0]}] [{fields[field]}]"),
        (f"Enter {fields[field]} in the field {field}", f"type [{numbers[0]}] [{fields[field]}]"),
        (f"Press {button}", f"click [{numbers[1]}]"), (f"Tick {box}", f"click [{numbers[3]}]"),
        (f"Choose {towns[1]}", f"select [{numbers[2]}] [{towns[1]}]"),
    ])  # fmt: skip
    how = "Reply with one action alone: click [5], type [5] [exact text] or select [5] [exact "
    return f"{page}\n{asked}. {how}option]; the verb in capitals or not.", wanted


def xml(r: random.Random) -> Row:
    """An order as an element; the same article may come twice."""
    lines = [
        (r.choice(WORDS), r.randint(1, 40), f"{r.randint(1, 30)}.{r.choice(['25', '50', '75'])}")
        for _ in range(r.choice([2, 3]))
    ]
    if r.random() < 0.4:
        lines.append((lines[0][0], r.randint(41, 60), lines[0][2]))
    number = r.randint(100, 999)
    told = "; ".join(f"{many} of {name} at {price}" for name, many, price in lines)
    items = "".join(
        f'<item count="{many}" price="{price}">{name}</item>' for name, many, price in lines
    )
    how = 'Reply with this order as XML alone, as <order id="5"><item count="2" price="1.50">kelp'
    how += "</item></order>, with the items as they come here; the order of attributes, the kind of"
    return f"Order {number}: {told}. {how} quotes and blanks between tags do not matter.", (
        f'<order id="{number}">{items}</order>'
    )


ONES = """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
SMALL = ["", *ONES.split()]
TENS = ["", "", *["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]]


def in_words(number: int) -> str:
    """Of a number from 1 to 9999, in British English."""
    thousands, hundreds, rest = number // 1000, number // 100 % 10, number % 100
    words = [f"{SMALL[thousands]} thousand"] if thousands else []
    words += [f"{SMALL[hundreds]} hundred"] if hundreds else []
    if rest:
        ten, one = divmod(rest, 10)
        small = SMALL[rest] if rest < 20 else "-".join(filter(None, (TENS[ten], SMALL[one])))
        words.append(f"and {small}" if words else small)
    return " ".join(words)


def spelled(r: random.Random) -> Row:
    """A number in English words."""
    number = r.choice([r.randint(101, 999), r.randint(1001, 9999)])
    if r.random() < 0.3:
        number = number // 100 * 100 + r.choice([4, 6, 7, 8, 9])
    how = "Reply with the words alone; 'and', hyphens and capitals may be there or not."
    return f"Write {number} in English words. {how}", in_words(number)


def correction(r: random.Random) -> Row:
    """A sentence with two wrong words, of which one may be wrong by an apostrophe alone."""
    one, other = r.sample(PEOPLE, 2)
    place, thing, tool = r.choice(PLACES), r.choice(WORDS), r.choice(["saw", "drill", "ladder"])
    many, day = r.randint(3, 60), r.choice(["Monday", "Tuesday", "Friday", "Sunday"])
    first = r.choice([
        (f"{one} and {other} {{}} to {place} on {day},", "go", "goes"),
        (f"{one} {{}} in {place} since {day},", "has been", "have been"),
        (f"The {many} boxes of {thing} {{}} in {place},", "are", "is"),
        (f"{one} sent {many} {{}} to {place},", "letters", "letter"),
    ])  # fmt: skip
    last = r.choice([
        (f"and {{}} too late for {other}.", "it's", "its"), ("but {} ready.", "we're", "were"),
        (f"and {{}} the one with the {tool}.", "you're", "your"),
        (f"because {other} would not {{}} the {tool}.", "lend", "lent"),
        (f"and {other} has {{}} the {tool}.", "taken", "took"),
        (f"and {{}} is a {tool} behind the door.", "there", "their"),
        (f"and {{}} {tool} is broken.", "his", "he's"),
        (f"which is {{}} than {other} had hoped.", "worse", "worst"),
    ])  # fmt: skip
    right, wrong = (
        " ".join(part[0].format(part[which]) for part in (first, last)) for which in (1, 2)
    )
    how = "Two words of this sentence are wrong. Put another form or spelling of them, in the same "
    how += "tense, change nothing else, and reply with the sentence alone, between quotation marks "
    how += "or without them."
    return f"{wrong}\n{how}", right


def debts(r: random.Random) -> Row:
    """Who pays whom, after several have paid for all."""
    names = r.sample(PEOPLE, r.choice([3, 3, 4]))
    cents = 100 if r.random() < 0.5 else 5
    owed = [r.randint(2, 4000 // cents) * cents for _ in names[1:]]
    share = sum(owed) + r.randint(20, 90) * cents
    sign = r.choice([-1, 1])  # one has paid for the others, or too little
    paid = [share + sign * sum(owed), *(share - sign * part for part in owed)]
    if min(paid) < 0 or len(set(owed)) < len(owed):
        return debts(r)
    amount = [f"{part // 100}.{part % 100:02}" for part in owed]
    wanted = "; ".join(
        f"{other} pays {names[0]} {part}" if sign > 0 else f"{names[0]} pays {other} {part}"
        for other, part in zip(names[1:], amount, strict=True)
    )
    shown = [
        f"{name} paid {had // 100}.{had % 100:02}" for name, had in zip(names, paid, strict=True)
    ]
    r.shuffle(shown)
    how = (
        f"Each of the {len(names)} shall bear the same. Who pays whom how much, in as few payments"
    )
    how += " as possible? Reply with the payments alone, as Ann pays Jon 2.50; Ann pays Emil 4.00, "
    return f"{', '.join(shown)}. {how}in any order; 4 is as good as 4.00.", wanted


def degrees(value: int) -> str:
    """Of a number of ten-thousandths."""
    return f"{'-' if value < 0 else ''}{abs(value) // 10000}.{abs(value) % 10000:04}"


def coordinates(r: random.Random) -> Row:
    """A place in degrees, minutes and seconds, to be given in decimals."""
    values, shown = [], []
    for most, ends in ((85, "NS"), (179, "EW")):
        whole, minutes, seconds = r.randint(1, most), 3 * r.randint(0, 19), 9 * r.randint(0, 6)
        value = 10000 * whole + 10000 * minutes // 60 + 25 * seconds // 9
        end = r.choice(ends)
        values.append(-value if end in "SW" else value)
        shown.append(f"{whole}°{minutes:02}'{seconds:02}\"{end}")
    how = "Give it in degrees with four decimals. Reply with latitude and longitude alone, as "
    how += "12.3400, -56.7825 with - for south and west, or as 12.3400 N, 56.7825 W."
    return f"A mast stands at {' '.join(shown)}. {how}", ", ".join(map(degrees, values))


def walk(r: random.Random) -> Row:
    """Where steps to the four sides lead."""
    while True:
        steps = [(r.randint(2, 60), r.choice(["north", "south", "east", "west"])) for _ in range(5)]
        go = {side: sum(many for many, way in steps if way == side) for _, side in steps}
        up = go.get("north", 0) - go.get("south", 0)
        right = go.get("east", 0) - go.get("west", 0)
        if up and right:
            break
    told = ", then ".join(f"{many} {side}" for many, side in steps)
    wanted = f"{abs(right)} {'east' if right > 0 else 'west'}, "
    wanted += f"{abs(up)} {'north' if up > 0 else 'south'}"
    how = "How many blocks from the start is that, and on which sides of it? Reply with two parts "
    how += "alone, as 3 east, 2 south, in either order; the sides may be N, S, E and W, in capitals"
    return f"{r.choice(PEOPLE)} walks {told}, in blocks. {how} or small letters.", wanted


def zebra(r: random.Random) -> Row:
    """Who lives in which of three houses, with which pet and drink."""
    sides = {
        "name": r.sample(PEOPLE, 3),
        "pet": r.sample(["cat", "dog", "goat", "hen", "pony", "newt"], 3),
        "drink": r.sample(["tea", "milk", "cider", "juice", "water", "cocoa"], 3),
    }
    houses = [dict(zip(sides, held, strict=True)) for held in zip(*sides.values(), strict=True)]
    said = {
        "name": "{} lives", "pet": "the {} lives", "drink": "the one who drinks {} lives",
    }  # fmt: skip
    facts = []
    for side, held in sides.items():
        ways = [f"{said[side].format(held[at])} in house {at + 1}" for at in range(3)]
        next_to = f"{said[side].format(held[0])} directly left of where "
        next_to += f"{said[side].format(held[1])}, and neither in house 3"
        facts += r.choice([r.sample(ways, 2), [next_to]])
    r.shuffle(facts)
    names = "; ".join(f"{side}: {', '.join(sorted(held))}" for side, held in sides.items())
    how = "Who lives where, with what? Reply with one JSON object alone, the keys of which are 1, 2"
    how += " and 3 for the houses from left to right, each with an object of name, pet and drink; "
    wanted = {str(at): house for at, house in enumerate(houses, 1)}
    told = f"Three houses stand in a row. {names}. Known: {'; '.join(facts)}."
    return f"{told} {how}the order of keys does not matter.", json.dumps(wanted)


def route(r: random.Random) -> Row:
    """The shortest way through a net of roads, when there is only one."""
    while True:
        towns = r.sample("ABCDEFGHKLMNP", 7)
        pairs = r.sample(list(combinations(towns, 2)), 11)
        roads = {pair: r.randint(3, 25) for pair in pairs}
        long = roads | {(other, one): far for (one, other), far in roads.items()}
        start, end = towns[0], towns[1]
        ways = sorted(
            (sum(long[step] for step in pairwise(way)), way)
            for many in range(6)
            for between in permutations(towns[2:], many)
            for way in [[start, *between, end]]
            if all(step in long for step in pairwise(way))
        )
        if len(ways) > 1 and ways[0][0] < ways[1][0] and len(ways[0][1]) > 3:
            break
    told = ", ".join(f"{one}-{other} {far}" for (one, other), far in roads.items())
    how = f"Which is the shortest way from {start} to {end}? Reply with the towns on it, from start"
    how += " to end, and its length alone, as A > B > C, 12; -> or - is as good as >."
    return f"Roads and their lengths, both ways: {told}. {how}", (
        f"{' > '.join(ways[0][1])}, {ways[0][0]}"
    )


FIVES = """
    abbey apple array arrow belle berry bread bleed cello civic dizzy eerie elder erode esker
    fleet fluff geese green hello hotel igloo jelly kneel label lever level llama mamma melee
    onion order petal queue radar refer robot rotor sassy sever skill solos speed steel sweet
    teeth tempt treat verve wheel
"""


def wordle(r: random.Random) -> Row:
    """The marks for a guess."""
    hidden, guess = r.sample(FIVES.split(), 2)
    marks = ["G" if one == other else "B" for one, other in zip(guess, hidden, strict=True)]
    left = [other for one, other in zip(guess, hidden, strict=True) if one != other]
    for at, one in enumerate(guess):
        if marks[at] == "B" and one in left:
            marks[at] = "Y"
            left.remove(one)
    how = "Mark each letter of the guess, from left to right: G in the right place, Y elsewhere in "
    how += "the word, B for the rest; a letter is marked G or Y at most as often as the word has it"
    how += ", G first, then Y from the left. Reply with the five marks alone, as BBGYB, in capitals"
    how += " or small letters, or with the squares 🟩, 🟨 and ⬛."
    return f"The word is {hidden}, the guess is {guess}. {how}", "".join(marks)


CODONS = {
    "GCU": "Ala", "CGC": "Arg", "AAU": "Asn", "GAC": "Asp", "UGC": "Cys", "GAA": "Glu",
    "CAG": "Gln", "GGA": "Gly", "CAU": "His", "AUA": "Ile", "CUG": "Leu", "AAG": "Lys",
    "UUC": "Phe", "CCA": "Pro", "AGU": "Ser", "ACG": "Thr", "UGG": "Trp", "UAU": "Tyr",
    "GUC": "Val", "UCA": "Ser", "CGA": "Arg", "UUA": "Leu", "ACU": "Thr", "GGC": "Gly",
}  # fmt: skip


def peptide(r: random.Random) -> Row:
    """What a messenger RNA is translated to."""
    codons = [r.choice(list(CODONS)) for _ in range(r.randint(4, 9))]
    front = r.choice(["", "GC", "CCGA", "UC"])
    back = r.choice(["UAA", "UAG", "UGA"]) + r.choice(["", "CCU", "GACAA"])
    strand = f"{front}AUG{''.join(codons)}{back}"
    how = "Translate it from the first AUG to the stop codon, in the standard code. Reply with the "
    how += "amino acids alone, from the first Met on, as Met-Ala-Ser or as MAS."
    return f"Messenger RNA, 5' to 3': {strand}. {how}", "-".join(
        ["Met", *(CODONS[codon] for codon in codons)]
    )


SPANS = [
    ("minor second", 1, 1), ("major second", 1, 2), ("minor third", 2, 3), ("major third", 2, 4),
    ("perfect fourth", 3, 5), ("augmented fourth", 3, 6), ("diminished fifth", 4, 6),
    ("perfect fifth", 4, 7), ("minor sixth", 5, 8), ("major sixth", 5, 9), ("minor seventh", 6, 10),
    ("major seventh", 6, 11),
]  # fmt: skip
KEYS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
SIGNS = {-1: " flat", 0: "", 1: " sharp"}


def pitches(r: random.Random) -> Row:
    """What lies between two notes."""
    while True:
        name, steps, half_tones = r.choice(SPANS)
        at, sign = r.randrange(7), r.choice([-1, 0, 0, 1])
        low, high = list(KEYS)[at], list(KEYS)[(at + steps) % 7]
        up = (KEYS[low] + sign + half_tones - KEYS[high] + 6) % 12 - 6
        if up in SIGNS:
            break
    told = f"{low}{SIGNS[sign]} up to the next {high}{SIGNS[up]}"
    how = "Reply with its name alone, quality and number, as minor sixth, in capitals or small "
    how += "letters, or as m6: m for minor, M for major, P for perfect, A for augmented and d for "
    where = r.choice(["the first song", "the second song", "a hymn", "a march", "a waltz"])
    return f"Which interval is that from {told}, in {where}? {how}diminished.", name


def gantt(r: random.Random) -> Row:
    """On which days tasks go on that wait for one another."""
    names = r.sample(["design", "build", "paint", "test", "pack", "print", "check", "ship"], 4)
    long = [r.randint(1, 14) for _ in names]
    waits = [[], [0], r.choice([[0], [1]]), r.choice([[1], [2], [1, 2]])]
    spans: list[tuple[int, int]] = []
    for days, before in zip(long, waits, strict=True):
        start = 1 + max((spans[at][1] for at in before), default=0)
        spans.append((start, start + days - 1))
    told = [
        f"{name} takes {days} day{'s' * (days > 1)}"
        + (f" and waits for {' and '.join(names[at] for at in before)}" if before else "")
        for name, days, before in zip(names, long, waits, strict=True)
    ]
    r.shuffle(told)
    how = "All begin as early as they can, the first on day 1; a task that waits begins on the day "
    how += "after. Reply with the first and the last day of each alone, as mix 1-4; bake 5-5, in "
    how += "any order; 'to' is as good as the hyphen, and one day may be given as 5."
    return f"{'; '.join(told)}. {how}", "; ".join(
        f"{name} {start}-{end}" for name, (start, end) in zip(names, spans, strict=True)
    )


KINDS: dict[str, Callable[[random.Random], Row]] = {
    made.__name__: made
    for made in (
        uncertain, quotient, averages, entailment, judge, decision, bigo, annotation, exception,
        webaction, xml, spelled, correction, debts, coordinates, walk, zebra, route, wordle,
        peptide, pitches, gantt,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in KINDS:
        (ROWS / f"{name}.jsonl").write_text(rows_of(name, KINDS), encoding="utf-8")
