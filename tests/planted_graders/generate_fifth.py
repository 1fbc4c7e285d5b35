"""Run with -m, it makes the rows of the fifth set anew: one file for each kind of question."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import pairwise, product

from planted_graders.generate import LAST, PLACES, ROWS, WORDS, Row, rows_of
from planted_graders.generate_fourth import ISLANDERS, PEOPLE
from planted_graders.word_ladders import LISTED, one_letter_apart

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
NOTES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]
QUALITIES = ["", "m", "7", "m7", "maj7", "dim", "sus4"]
SUBSHELLS = ["1s", "2s", "2p", "3s", "3p", "4s", "3d", "4p"]
SYMBOLS = """
    H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br
    Kr
"""
ELEMENTS = SYMBOLS.split()
SQUARES = [(file, rank) for file in range(8) for rank in range(8)]


def base(r: random.Random) -> Row:
    """A number in another base, with the prefix of the base."""
    number = r.choice([r.randint(40, 999), r.randint(1000, 60_000)])
    name, wanted = r.choice([
        ("hexadecimal", hex(number)), ("hexadecimal", hex(number)),
        ("octal", oct(number)), ("binary", bin(number)),
    ])  # fmt: skip
    how = "Reply with the number in \\boxed{} alone, with the prefix 0x, 0o or 0b of its base or "
    how += "without it, in capitals or small letters, without other leading zeros."
    return f"Write the decimal number {number} as a {name} number. {how}", wanted


def called(square: tuple[int, int]) -> str:
    return f"{'abcdefgh'[square[0]]}{square[1] + 1}"


def reach(piece: str, start: tuple[int, int]) -> list[list[tuple[int, int]]]:
    """The ways of a piece over an empty board, each from near to far."""
    steps = {
        "knight": [(x, y) for x in (-2, -1, 1, 2) for y in (-2, -1, 1, 2) if abs(x) != abs(y)],
        "bishop": [(1, 1), (1, -1), (-1, 1), (-1, -1)],
        "rook": [(1, 0), (-1, 0), (0, 1), (0, -1)],
    }[piece]
    far = 1 if piece == "knight" else 7
    return [
        [at for n in range(1, far + 1) if (at := (start[0] + n * x, start[1] + n * y)) in SQUARES]
        for x, y in steps
    ]


def move(r: random.Random) -> Row:
    """A capture, or a pawn that becomes another piece."""
    if r.random() < 0.35:
        file = r.randrange(8)
        to = r.choice([at for at in (file - 1, file, file + 1) if 0 <= at < 8])
        piece = r.choice(["queen", "rook", "bishop", "knight"])
        start, end = called((file, 6)), called((to, 7))
        way = "goes straight ahead" if to == file else f"takes the rook on {end}"
        told = f"A white pawn on {start} {way} and becomes a {piece}."
        wanted = start + end + {"knight": "n"}.get(piece, piece[0])
    else:
        piece, at = r.choice(["knight", "bishop", "rook"]), r.choice(SQUARES)
        ways = [way for way in reach(piece, at) if way]
        taken = r.choice(r.choice(ways))
        near = {square for way in ways for square in way}
        other = r.choice([square for square in SQUARES if square not in near and square != at])
        black = [f"a queen on {called(taken)}", f"a bishop on {called(other)}"]
        r.shuffle(black)
        told = f"White has a {piece} on {called(at)}, Black has {' and '.join(black)}. White takes."
        wanted = called(at) + called(taken)
    how = "Which move is that? Reply with it alone in long notation, the square it leaves and the "
    how += "square it reaches, as b1c3, and the letter of the new piece, as e7e8n, in capitals or "
    how += "small letters; - or x between the squares and = before the letter are allowed."
    return f"{told} {how}", wanted


def bbox(r: random.Random) -> Row:
    """The box around two boxes, or a box that was moved."""
    x, y = r.randint(50, 3600), r.randint(50, 2600)
    one = [x, y, x + r.randint(20, 300), y + r.randint(20, 300)]
    if r.random() < 0.5:
        left, top = x + r.randint(-40, 200), y + r.randint(-40, 200)
        other = [left, top, left + r.randint(20, 300), top + r.randint(20, 300)]
        wanted = [*map(min, one[:2], other[:2]), *map(max, one[2:], other[2:])]
        told = f"Two boxes are {one} and {other}. Which is the smallest box around both?"
    else:
        right, down = r.randint(-45, 90), r.randint(-45, 90)
        wanted = [one[0] + right, one[1] + down, one[2] + right, one[3] + down]
        told = f"The box {one} moves by {right} pixels in x and {down} in y. Where is it then?"
    how = "Boxes are [left, top, right, bottom] in whole pixels. Reply with the exact box alone, "
    return f"{told} {how}in the same way; brackets and spaces may be left out.", str(wanted)


def ladders(start: str) -> dict[str, list[str]]:
    """To each word that can be reached, one of the shortest ladders."""
    found = {start: [start]}
    for word in (queue := [start]):
        for other in LISTED:
            if other not in found and one_letter_apart(word, other):
                found[other] = [*found[word], other]
                queue.append(other)
    return found


def ladder(r: random.Random) -> Row:
    """Words that differ by one letter each."""
    while True:
        ways = ladders(r.choice(LISTED))
        long = [way for way in ways.values() if 4 <= len(way) <= 6]
        if long:
            break
    wanted = r.choice(long)
    told = f"Words: {' '.join(LISTED)}.\nGo from {wanted[0]} to {wanted[-1]} in as few steps as "
    told += "possible; each step changes one letter, and each word is one of the list."
    how = "Reply with the words from the first to the last alone, separated by spaces, commas or "
    return f"{told} {how}->; capitals do not matter.", " -> ".join(wanted)


def kin(r: random.Random) -> Row:
    """What somebody is to somebody else."""
    a, b, c, d = r.sample(ISLANDERS, 4)
    she = r.random() < 0.5
    parent, child = ("mother", "daughter") if she else ("father", "son")
    sibling = "sister" if she else "brother"
    middle, spouse = r.choice(["mother", "father"]), r.choice(["wife", "husband"])
    young = r.choice(["son", "daughter"])
    links, wanted = r.choice([
        ((parent, middle), f"grand{parent}"),
        ((parent, middle, r.choice(["mother", "father"])), f"great-grand{parent}"),
        ((sibling, middle), "aunt" if she else "uncle"),
        ((sibling, middle, r.choice(["mother", "father"])), "great-aunt" if she else "great-uncle"),
        ((child, r.choice(["sister", "brother"])), "niece" if she else "nephew"),
        ((child, young), f"grand{child}"),
        ((child, young, r.choice(["son", "daughter"])), f"great-grand{child}"),
        ((parent, spouse), f"{parent}-in-law"),
    ])  # fmt: skip
    chain = [a, b, c, d][: len(links) + 1]
    pairs = zip(pairwise(chain), links, strict=True)
    facts = [f"{one} is the {link} of {other}" for (one, other), link in pairs]
    r.shuffle(facts)
    how = (
        f"What is {a} to {chain[-1]}? Reply with the one English word for it between <answer> and "
    )
    how += "</answer> alone; capitals do not matter, and a hyphen may be a space."
    return f"{'; '.join(facts)}. {how}", wanted


def bio(r: random.Random) -> Row:
    """Tags of names in a sentence."""
    person = r.choice(PEOPLE), r.choice(LAST)
    here, there = (place.split() for place in r.sample(PLACES, 2))
    firm = [r.choice(LAST), r.choice(["Works", "Mills", "Sons"])][: r.choice([1, 2, 2])]
    parts: list[tuple[list[str], str]] = [
        ([person[0]] if r.random() < 0.3 else [*person], "PER"),
        ([r.choice(["flew", "drove", "moved"]), *r.choice([["from"], ["home", "from"], []])], "O"),
        (here, "LOC"),
        (there if r.random() < 0.6 else ["today"], "LOC"),
        (r.choice([["for"], ["on", "behalf", "of"], ["and", "told"]]), "O"),
        (firm, "ORG"),
    ]
    parts = [(words, "O" if words == ["today"] else kind) for words, kind in parts]
    if r.random() < 0.4:
        parts = [*parts[-1:], (["says"], "O"), *parts[:-2]]
    tokens = [token for words, _ in parts for token in words]
    tags = [
        "O" if kind == "O" else f"{'I' if at else 'B'}-{kind}"
        for words, kind in parts
        for at, _ in enumerate(words)
    ]
    towns = " and ".join(" ".join(words) for words, kind in parts if kind == "LOC")
    told = f"Tokens: {' '.join(tokens)}\n{towns}: towns; {' '.join(firm)}: a firm."
    how = "Tag each token: B-PER, B-LOC or B-ORG where the name of a person, a town or a firm "
    how += "begins, I-PER, I-LOC or I-ORG where it goes on, O elsewhere. Reply with the tags alone,"
    return f"{told} {how} one a token, in order, separated by spaces or one a line.", " ".join(tags)


def triples(r: random.Random) -> Row:
    """Relations of a short text."""
    relations = ["works_for", "lives_in", "lives_near", "born_in", "born_near"]
    found = [
        [one, relation, r.choice(PEOPLE if relation == "works_for" else PLACES)]
        for one in r.sample([f"{first} {last}" for first in ISLANDERS for last in LAST], 3)
        for relation in r.sample(relations, r.choice([1, 1, 2]))
    ]
    said = {"born_in": "was born in", "born_near": "was born near"}
    told = " ".join(
        f"{one} {said.get(relation, relation.replace('_', ' '))} {other}."
        for one, relation, other in found
    )
    how = f"Reply with all relations of the text alone, each once, in any order, of {relations}: a "
    how += "JSON array of [subject, relation, object], or of objects with these three keys, names "
    return f"{told} {how}as in the text.", json.dumps(found)


def hunk(r: random.Random) -> Row:
    """What changes between two files of settings."""
    one, other = r.sample(WORDS, 2)
    before = {
        "title": f"{one} {other}",
        "retries": str(r.randint(2, 30)),
        "offset": str(r.randint(-40, -2)),
        "colour": f"#{r.randrange(16**6):06x}",
        "channel": f"#{other}",
        "owner": r.choice(PEOPLE),
        "level": r.choice(["debug", "info"]),
    }
    keys = r.sample(list(before), r.choice([4, 5, 6]))
    changes = {
        "title": f"{other} {one}",
        "retries": str(r.randint(31, 60)),
        "offset": str(r.randint(3, 40)),
        "colour": f"#{r.randrange(16**6):06x}",
        "channel": f"#{one}-{other}",
        "owner": r.choice(LAST),
        "level": "warning",
    }
    changed = r.sample(keys, 2)
    lines = []
    for key in keys:
        if key in changed:
            lines.append(f"-{key} = {before[key]}")
            if key == changed[0] or r.random() < 0.6:
                lines.append(f"+{key} = {changes[key]}")
        else:
            lines.append(f" {key} = {before[key]}")
    old = "\n".join(line[1:] for line in lines if line[0] != "+")
    new = "\n".join(line[1:] for line in lines if line[0] != "-")
    how = "Reply with the changed lines alone, in the order of a unified diff: - before what is "
    how += "removed, + before what is added, without headers and lines that stay; blanks at the "
    how += "ends of lines and beside = do not matter."
    wanted = "\n".join(line for line in lines if line[0] != " ")
    return f"Before:\n{old}\n\nAfter:\n{new}\n\n{how}", wanted


def placed(size: int, columns: list[int]) -> Iterator[list[int]]:
    """All ways to go on until each row has a queen."""
    if len(columns) == size:
        yield columns
        return
    for column in range(1, size + 1):
        apart = len(columns)
        if all(
            column not in {other, other + apart - at, other - apart + at}
            for at, other in enumerate(columns)
        ):
            yield from placed(size, [*columns, column])


def queens(r: random.Random) -> Row:
    """As many queens as rows, the first two of them given."""
    while True:
        size = r.choice([6, 7, 8, 8, 9, 9])
        given = r.sample(range(1, size + 1), 2)
        ways = list(placed(size, given)) if abs(given[0] - given[1]) > 1 else []
        if ways:
            break
    told = f"Place {size} queens on a board of {size} rows and {size} columns, none of which "
    told += f"attacks another. Those of row 1 and 2 stand in column {given[0]} and {given[1]}."
    how = "Reply with the columns of all queens from row 1 on alone, separated by spaces or commas;"
    return f"{told} {how} any right placement counts.", " ".join(map(str, r.choice(ways)))


def clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def slot(r: random.Random) -> Row:
    """The first time at which two people are free for long enough."""
    day, (one, other) = r.choice(DAYS), r.sample(PEOPLE, 2)
    long = r.choice([25, 40, 45, 50, 60, 75, 90])
    busy: dict[str, list[tuple[int, int]]] = {one: [], other: []}
    at = 480
    while at < 900:
        end = at + 5 * r.randint(6, 30)
        busy[r.choice([one, other])].append((at, end))
        at = end + r.choice([0, 0, 5, 10, 15, -10, long - 5, long + 20])
    taken = sorted(span for spans in busy.values() for span in spans)
    start = 480
    for begins, ends in taken:
        if begins - start >= long:
            break
        start = max(start, ends)
    told = "; ".join(
        f"{name} is busy {', '.join(f'{clock(a)}-{clock(b)}' for a, b in spans) or 'never'}"
        for name, spans in busy.items()
    )
    how = f"Find the first {long} minutes from 08:00 on in which both are free. Reply with one line"
    how += " alone, as 'Meeting: Tue 09:35-10:15': the day in three letters or in full, both times"
    how += " on the 24-hour clock, leading zeros or none; 'to' is as good as the hyphen."
    return f"On {day}, {told}. {how}", f"{day[:3]} {clock(start)}-{clock(start + long)}"


def literal(r: random.Random) -> Row:
    """What a Python expression is worth: lists, tuples, dictionaries, numbers in quotes."""
    words, numbers = r.sample(WORDS, 3), r.sample(range(-9, 60), 4)
    cut, step = r.randint(1, 3), r.randint(2, 7)
    code = r.choice([
        f"{{word: len(word) * {step} for word in {words}}}",
        f"{{word[-{cut}]: word[:{cut}] for word in {words}}}",
        f"{{number: number % {step} == 0 for number in {numbers}}}",
        f"[str(number + {step}) for number in {numbers}]",
        f"[[number, str(number * {step})] for number in {numbers[:3]}]",
        f"[{numbers}[at:at + 2] for at in range(0, 4, 2)]",
        f"tuple(word[::-{cut}] for word in {words})",
        f"(min({numbers}), [max({numbers}), {step}], None)",
        f"[(word.find('{r.choice('aeo')}'), word.title()) for word in {words}]",
    ])  # fmt: skip
    how = "What is the value of this expression of Python? Reply with it alone, as a literal of "
    how += "Python between [ANSWER] and [/ANSWER]; either quotes, spaces outside them and the order"
    return f"{code}\n{how} of the keys of a dictionary do not matter.", repr(eval(code))


def chord(r: random.Random) -> Row:
    """Three chords in another key, some over another bass."""
    given, up = [(r.randrange(12), r.choice(QUALITIES)) for _ in range(3)], r.randint(1, 11)
    bass = [r.randrange(12) if r.random() < 0.4 else None for _ in given]

    def shown(by: int) -> str:
        return " ".join(
            NOTES[(root + by) % 12]
            + quality
            + ("" if low is None else f"/{NOTES[(low + by) % 12]}")
            for (root, quality), low in zip(given, bass, strict=True)
        )

    how = "Reply with the three chords alone, separated by spaces, commas or hyphens, written as "
    how += "here (m, 7, m7, maj7, dim, sus4, a bass behind /); Db is as good as C#, and so on."
    return f"Transpose {shown(0)} up by {up} semitones. {how}", shown(up)


def cited(r: random.Random) -> Row:
    """A year, and the sources that give it."""
    years, many = r.sample(range(1300, 1990), 3), r.randint(9, 13)
    right = sorted(r.sample(range(1, many + 1), r.choice([4, 5])))
    others = [years[1 + at % 2] for at in range(many)]
    told = " ".join(
        f"[{at}] {r.choice(['The mill opened in', 'Opened:', 'They opened it in'])} {year}."
        for at, other in enumerate(others, 1)
        for year in [years[0] if at in right else other]
    )
    question = f"When did the mill of {r.choice(PLACES)} open according to most sources?"
    if max(others.count(year) for year in years[1:]) >= len(right):
        question = f"Which sources say that the mill of {r.choice(PLACES)} opened in {years[0]}?"
    how = "Reply with the year and with the numbers of all sources that give it, in any order, "
    how += "alone, as 1234 [1][2]; 1234 [1, 2] is as good."
    return f"{told} {question} {how}", f"{years[0]} {''.join(f'[{at}]' for at in right)}"


EVENTS = [
    ("connection from {} port {} closed after {} s", ("address", "port", "number")),
    ("user {} {} logged in from {}", ("first", "last", "address")),
    ("job {} moved from {} to {}", ("job", "place", "place")),
    ("request {} {} took {} ms", ("job", "word", "number")),
    ("disk {} holds {} {} of cache", ("word", "number", "unit")),
    ("retry {} of order {} failed with {}", ("number", "job", "port")),
]


def template(r: random.Random) -> Row:
    """What lines of a log have in common."""
    made: dict[str, Callable[[], str]] = {
        "address": lambda: f"10.{r.randint(0, 9)}.{r.randint(0, 255)}.{r.randint(1, 254)}",
        "port": lambda: str(r.randint(1024, 65535)),
        "number": lambda: str(r.randint(1, 900)),
        "job": lambda: f"{r.choice('abcdef')}{r.randint(100, 999)}",
        "first": lambda: r.choice(PEOPLE),
        "last": lambda: r.choice(LAST),
        "place": lambda: r.choice(PLACES).replace(" ", "-"),
        "word": lambda: r.choice(WORDS),
        "unit": lambda: r.choice(["MB", "GB", "KB"]),
    }
    event, fields = r.choice(EVENTS)
    stay = [made[field]() if r.random() < 0.25 else "" for field in fields]
    stay[r.randrange(3)] = ""
    source = f"{r.choice(WORDS)}-{r.randint(1, 99)}:"
    lines = {
        f"{source} {event.format(*filled)}"
        for _ in range(9)
        for filled in [[kept or made[kind]() for kept, kind in zip(stay, fields, strict=True)]]
    }
    shown = r.sample(sorted(lines), 3)
    wanted = " ".join(
        words[0] if len(set(words)) == 1 else "<*>"
        for words in zip(*(line.split() for line in shown), strict=True)
    )
    how = "Reply with the template of these lines alone: their words, with <*> or {} for each word "
    told = "\n".join(shown)
    return f"{told}\n{how}that is not the same in all three lines, and for no other.", wanted


def rerank(r: random.Random) -> Row:
    """Passages from the best to the worst."""
    matches = r.sample(range(1, 40), 6)
    wanted = sorted(range(1, 7), key=lambda at: -matches[at - 1])
    told = ", ".join(f"[{at}] {many}" for at, many in enumerate(matches, 1))
    how = "Rank the passages from most matches to fewest. Reply with all six identifiers alone, "
    how += "each once, as [1] > [2] > [3]; the brackets may be left out."
    return f"Passages and their matches of '{r.choice(WORDS)}': {told}. {how}", " > ".join(
        f"[{at}]" for at in wanted
    )


def boolean(r: random.Random) -> Row:
    """A formula without implication and exclusive or."""
    rows = list(product([False, True], repeat=3))
    while True:
        p, q, s = (f"{r.choice(['', '', 'not '])}{letter}" for letter in r.sample("ABC", 3))
        given = r.choice([
            f"{p} implies ({q} xor {s})", f"({p} xor {q}) implies {s}",
            f"({p} implies {q}) and {s}", f"({p} xor {q}) and {s}", f"({p} implies {q}) xor {s}",
            f"({p} and {q}) xor {s}",
        ])  # fmt: skip
        code = given.replace(" implies ", " <= ").replace(" xor ", " != ")
        for term in (p, q, s):
            code = code.replace(term, f"({term})") if term.startswith("not") else code
        true = {row for row in rows if eval(code, dict(zip("ABC", row, strict=True)))}
        if 0 < len(true) < 8:
            break
    cubes = sorted(product([None, False, True], repeat=3), key=lambda c: -c.count(None))
    left, terms = set(true), []
    for cube in cubes:
        held = {
            row
            for row in rows
            if all(side in (None, has) for side, has in zip(cube, row, strict=True))
        }
        if held <= true and held & left:
            left -= held
            letters = [
                f"{'' if side else '~'}{letter}"
                for letter, side in zip("ABC", cube, strict=True)
                if side is not None
            ]
            terms.append(" & ".join(letters))
    wanted = " | ".join(f"({term})" if " & " in term else term for term in terms)
    how = "Reply with 'Formula: ' and an equal formula of A, B, C, & (and), | (or), ~ (not) "
    how += "and brackets alone, on one line; any that is equal counts, and ~ binds more closely "
    return f"Write {given} without implies and xor. {how}than &, & than |.", wanted


def line(r: random.Random) -> Row:
    """A straight line through two points."""
    across, up = r.choice([(1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (2, 3), (3, 2)])
    up *= r.choice([-1, 1]) * (r.randint(1, 6) if across == 1 else 1)
    start = r.choice([0, *[n for n in range(-12, 13) if n] * 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    a, b = r.sample([n for n in range(-5, 6) if n], 2)
    points = [(across * n, up * n + start) for n in (a, b)]
    slope = {1: "", -1: "-"}.get(up, str(up)) if across == 1 else f"{up}/{across}"
    wanted = f"y = {slope}x" + (f" {'+-'[start < 0]} {abs(start)}" if start else "")
    if r.random() < 0.12:
        points, wanted = r.choice([
            ([(a, start), (b, start)], f"y = {start}"), ([(start, a), (start, b)], f"x = {start}"),
        ])  # fmt: skip
    how = "Reply with one equation of the line alone, as y = 3/2x - 4 (3/2x is three halves of x) "
    how += "or as 3x - 2y = 8, with whole numbers and fractions; any equal equation counts."
    return f"Which line goes through {points[0]} and {points[1]}? {how}", wanted


def cron(r: random.Random) -> Row:
    """When a job runs, in the five fields of cron."""
    minute, hour, month = r.randint(0, 59), r.randint(0, 23), r.randint(1, 12)
    first, last = sorted(r.sample(range(1, 29), 2))
    early, late = r.randint(1, 9), r.randint(12, 22)
    every, day = r.choice([5, 10, 12, 15, 20, 30]), r.randint(1, 5)
    at = f"at {hour:02}:{minute:02}"
    told, wanted = r.choice([
        (f"from Monday to Friday {at}", f"{minute} {hour} * * 1-5"),
        (f"on day {first} and {last} of each month {at}", f"{minute} {hour} {first},{last} * *"),
        (f"each {DAYS[day - 1]} of month {month} {at}", f"{minute} {hour} * {month} {day}"),
        (f"each Saturday and Sunday {at}", f"{minute} {hour} * * 0,6"),
        (
            f"each {DAYS[day - 1]} in hours {early} to {late} at all minutes divisible by {every}",
            f"*/{every} {early}-{late} * * {day}",
        ),
    ])  # fmt: skip
    how = "Reply with its five fields of cron alone, between backticks: minute, hour, day of the "
    how += "month, month, day of the week (0 or 7 is Sunday, names such as MON are not used), of "
    return f"A job runs {told}. {how}numbers, *, lists, ranges and steps; any equal line counts.", (
        wanted
    )


def pycall(r: random.Random) -> Row:
    """A call of one of three functions, with keywords."""
    one, other = r.sample(WORDS, 2)
    first, second = r.sample(LAST, 2)
    flag, number = r.random() < 0.4, r.randint(2, 40)
    file = f"{one.title()}/{other}-{r.randint(1, 12)}.{r.randint(1, 28)}.txt"
    guest = f"{r.choice(PEOPLE)} {first}"
    asked: list[tuple[str, str, dict[str, object]]] = [
        (
            f"Move {number}0 crowns from the account of {first} to that of {second}.",
            "transfer",
            {"source": first, "target": second, "amount": number * 10},
        ),
        (
            f"A table for {number}, name {guest}, at {clock(number * 30)}{', outdoors' * flag}.",
            "book_table",
            {"guests": number, "name": guest, "time": clock(number * 30)}
            | ({"outdoor": True} if flag else {}),
        ),
        (
            f"Copy {file} to {second}{', over what is there' * flag}.",
            "copy_file",
            {"path": file, "folder": second} | ({"overwrite": True} if flag else {}),
        ),
    ]
    told, name, arguments = r.choice(asked)
    tools = "transfer(source: str, target: str, amount: int), book_table(guests: int, name: str, "
    tools += "time: str, outdoor: bool = False), copy_file(path: str, folder: str, overwrite: bool "
    tools += "= False)"
    how = "Reply with one call alone, all arguments by keyword, in any order; what has a default "
    how += "may be left out where the default is wanted. Texts as given, case included."
    called_with = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"Functions: {tools}.\n{told}\n{how}", f"{name}({called_with})"


def cycles(r: random.Random) -> Row:
    """A permutation as a product of cycles."""
    while True:
        numbers = list(range(1, 10))
        goes = dict(zip(numbers, r.sample(numbers, len(numbers)), strict=True))
        found, left = [], set(numbers)
        while left:
            cycle = [min(left)]
            while goes[cycle[-1]] != cycle[0]:
                cycle.append(goes[cycle[-1]])
            left -= set(cycle)
            found.append(cycle)
        found = [cycle for cycle in found if len(cycle) > 1]
        if any(len(cycle) > 2 for cycle in found):
            break
    told = ", ".join(f"{one} to {other}" for one, other in goes.items())
    how = "Reply with disjoint cycles alone, as (1 3 2)(4 5), commas or spaces within them; their "
    how += "order and their first numbers do not matter, and what stays may be left out or be (6)."
    wanted = "".join(f"({' '.join(map(str, cycle))})" for cycle in found)
    return f"A permutation takes {told}. {how}", wanted


def electrons(r: random.Random) -> Row:
    """The electrons of an atom or an ion, by subshell."""
    charge = r.choice([0, 0, 0, -2, -1, 1, 2])
    number = r.choice([n for n in range(5, 37) if (n <= 20 if charge else n not in {24, 29})])
    left, shells = number - charge, []
    for shell in SUBSHELLS:
        held = min(left, {"s": 2, "p": 6, "d": 10}[shell[1]])
        if held:
            shells.append(f"{shell}{held}")
        left -= held
    what = f"the ion of charge {charge:+} of" if charge else "the atom"
    how = "Reply with the subshells alone, as 1s2 2s2 2p1, in any order; ^ may stand before the "
    how += "number of electrons, and [He], [Ne] or [Ar] may stand first for the shells of that gas."
    told = f"Which electrons has {what} {ELEMENTS[number - 1]} (element {number}) in its "
    return f"{told}ground state, subshells filled in the usual order? {how}", " ".join(shells)


KINDS: dict[str, Callable[[random.Random], Row]] = {
    made.__name__: made
    for made in (
        base, move, bbox, ladder, kin, bio, triples, hunk, queens, slot, literal, chord, cited,
        template, rerank, boolean, line, cron, pycall, cycles, electrons,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in KINDS:
        (ROWS / f"{name}.jsonl").write_text(rows_of(name, KINDS), encoding="utf-8")
