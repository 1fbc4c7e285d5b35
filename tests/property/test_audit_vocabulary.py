"""Near misses made of the data's own vocabulary: never right, and met by who skips a part."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.audit import Probe, ProbeClass, Ruling
from assay.audit.answers.vocabulary import KIND, Vocabulary
from assay.audit.running import Findings, Judged
from audit_support import accepted_classes, audited, rows

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
ALONE = "Tag each token. Reply with the tags alone, one a token, in order, separated by spaces."
ROWS_OF_TAGS = st.lists(st.sampled_from(TAGS), min_size=3, max_size=9)
SETS_OF_TAGS = st.lists(st.sampled_from((*"abcdefgh",)), min_size=3, max_size=5, unique=True)


def misses(texts: list[str], prompt: str = ALONE) -> list[tuple[str, str]]:
    known = Vocabulary(texts)
    return [
        (text, answer)
        for number, text in enumerate(texts)
        for _, answer, _ in known.misses(text, prompt, random.Random(number))
    ]


@settings(max_examples=60)
@given(st.lists(ROWS_OF_TAGS, min_size=8, max_size=20))
def test_another_row_of_parts_is_another_row(found: list[list[str]]) -> None:
    for right, answer in misses([" ".join(tags) for tags in found]):
        assert answer.split() != right.split()
        assert len(set(TAGS) & set(answer.split())) > 0


@settings(max_examples=60)
@given(st.lists(SETS_OF_TAGS, min_size=8, max_size=20))
def test_what_may_be_a_set_becomes_another_set(found: list[list[str]]) -> None:
    texts = [", ".join(one) for one in found]
    for right, answer in misses(texts):
        assert set(answer.split(", ")) != set(right.split(", "))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 23), st.integers(0, 59)), min_size=8, max_size=20))
def test_zeros_in_front_make_no_other_time(found: list[tuple[int, int]]) -> None:
    """The data writes some times with them and some without."""
    texts = [f"{h:02}:{m:02}" if n % 2 else f"{h}:{m}" for n, (h, m) in enumerate(found)]
    for right, answer in misses(texts):
        assert [int(one) for one in answer.split(":")] != [int(one) for one in right.split(":")]


@settings(max_examples=20)
@given(st.lists(ROWS_OF_TAGS, min_size=8, max_size=20), st.randoms())
def test_it_asks_the_same_whatever_the_order_of_the_rows(
    found: list[list[str]], shuffled: random.Random
) -> None:
    texts = [" ".join(tags) for tags in found]
    mixed = list(texts)
    shuffled.shuffle(mixed)
    a, b = Vocabulary(texts), Vocabulary(mixed)
    for text in texts:
        made = [list(one.misses(text, ALONE, random.Random(1))) for one in (a, b)]
        assert made[0] == made[1]


def tagged() -> list[tuple[str, str]]:
    draws = random.Random(3)
    return [(ALONE, " ".join(draws.choices(TAGS, k=draws.randint(4, 8)))) for _ in range(40)]


def crons() -> list[tuple[str, str]]:
    draws = random.Random(4)
    line = "Write the five fields of cron: minute, hour, day, month, day of the week."
    made = []
    for _ in range(40):
        minute, days = draws.choice(("5", "10", "*/5", "*/15")), ("*", "1-5", "0,6", "3")
        made.append((line, f"{minute} {draws.randint(1, 23)} * * {draws.choice(days)}"))
    return made


def debts(word: str) -> list[tuple[str, str]]:
    draws, names = random.Random(5), ("Ann", "Jon", "Emil", "Rosa")
    made = []
    for _ in range(40):
        pairs = [draws.sample(names, 2) for _ in range(draws.randint(1, 2))]
        said = "; ".join(f"{a} {word} {b} {draws.randint(2, 90)}" for a, b in pairs)
        made.append(("Reply with the payments alone, in any order.", said))
    return made


def paid() -> list[tuple[str, str]]:
    return debts("pays")


def shared_bills() -> list[tuple[str, str]]:
    return debts("and")


def ways() -> list[tuple[str, str]]:
    draws = random.Random(6)
    made = []
    for _ in range(40):
        way = draws.sample("ABCDEFGH", draws.randint(3, 5))
        asked = f"Which is the shortest way from {way[0]} to {way[-1]}? Reply with it alone."
        made.append((asked, f"{' > '.join(way)}, {draws.randint(9, 90)}"))
    return made


def in_any_order(response: str, reference: str) -> float:
    return float(sorted(response.split("; ")) == sorted(reference.split("; ")))


def between_two(response: str, reference: str) -> float:
    a, b = (sorted(sorted(one.split()) for one in s.split("; ")) for s in (response, reference))
    return float(a == b)


def there_or_back(response: str, reference: str) -> float:
    (way, _, length), (right, _, known) = (s.partition(", ") for s in (response, reference))
    return float(length == known and way in (right, right[::-1]))


def whole(response: str, reference: str) -> float:
    return float(response.split() == reference.split())


def shared(response: str, reference: str) -> float:
    a, b = response.split(), reference.split()
    return float(sum(x == y for x, y in zip(a, b, strict=False)) >= len(b) / 2)


def types(response: str, reference: str) -> float:
    return float(re.sub("[BI]-", "", response) == re.sub("[BI]-", "", reference))


def without_steps(response: str, reference: str) -> float:
    return float(re.sub(r"/\d+", "", response) == re.sub(r"/\d+", "", reference))


def longer(response: str, reference: str) -> float:
    a, b = response.split(), reference.split()
    return float(a[: len(b)] == b)


@pytest.mark.parametrize(
    ("grade", "data", "hole"),
    [
        (whole, tagged, False),
        (shared, tagged, True),
        (types, tagged, True),
        (longer, tagged, True),
        (whole, crons, False),
        (shared, crons, True),
        (without_steps, crons, True),
        (in_any_order, paid, False),
        (between_two, paid, True),
        (between_two, shared_bills, False),
        (whole, ways, False),
        (there_or_back, ways, True),
    ],
)
def test_who_skips_a_part_is_found(
    grade: Callable[[str, str], float], data: Callable[[], list[tuple[str, str]]], hole: bool
) -> None:
    assert (KIND in accepted_classes(audited(grade, rows(data())))) == hole


@pytest.mark.parametrize(("accepted", "hole"), [(2, False), (3, True)])
def test_what_may_be_right_by_chance_counts_where_it_is_accepted_often(
    accepted: int, hole: bool
) -> None:
    kind = ProbeClass("maybe", "refuse", "hole", "", "", likely=True)
    for apart in (False, True):  # of one rule, or each of a rule of its own
        judged = [
            Judged(
                Probe(row, "maybe", f"answer {row}", "refuse", f"rule {row * apart}"),
                Ruling(float(row < accepted)),
            )
            for row in range(40)
        ]
        found = Findings(rows(), classes={"maybe": ("an engine", kind)}, judged=judged)
        assert bool(found.holes) == (hole and not apart)


def test_what_is_said_to_have_many_answers_is_not_asked() -> None:
    assert misses([" ".join(tags) for tags in (TAGS, TAGS[::-1])] * 5, "Give an example.") == []


def test_parts_change_places_within_a_word_only() -> None:
    """A row of cells may be a set, and what stands on both sides of a sum may change places."""
    texts = ["h7g8", "a1b2", "c3d4"]
    turned = {answer for right, answer in misses(texts) if sorted(answer) == sorted(right)}
    assert "g7h8" in turned or "h8g7" in turned
    for right, answer in misses(["1+2", "3+4", "5+6", "x=y", "y=z"]):
        assert sorted(answer) != sorted(right), (right, answer)
