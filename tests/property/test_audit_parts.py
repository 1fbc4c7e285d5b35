"""Near misses within parts, of words whose letters count, of records, targets, types and doubt."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assay.audit import read_truth
from assay.audit.answers.records import RECORD, fields_of, written_fields
from assay.audit.answers.targets import target_misses, worth
from assay.audit.answers.terms import day_first, is_cased, is_once, is_row, is_spelt, is_typed
from assay.audit.answers.wrong import near_misses
from assay.audit.dress import TOLD, told_dress
from assay.audit.engines.metamorphic import CLASSES
from audit_support import accepted_classes, audited, rows

HOLES = {one.name for one in CLASSES if one.severity == "hole"}
CSV = "Reply with the fields as one line of CSV alone, in this order."
FIELDS = st.lists(
    st.text(st.sampled_from('ab ,"19.'), min_size=1, max_size=6).map(str.strip), min_size=2,
    max_size=4,
)  # fmt: skip
WORDS = st.lists(
    st.sampled_from(("cedar", "olive", "amber", "grove", "river", "maple", "pearl")),
    min_size=2, max_size=5, unique=True,
)  # fmt: skip


@given(FIELDS)
def test_fields_are_read_as_they_are_written(fields: list[str]) -> None:
    assert fields_of(written_fields(fields, ",")) == fields


@settings(max_examples=50)
@given(FIELDS)
def test_near_records_have_other_fields(fields: list[str]) -> None:
    text = written_fields(fields, ",")
    assume(text.strip() == text)
    truth = read_truth(text, CSV)
    assume(truth.notation is RECORD)
    for kind, answer, note in near_misses(truth):
        read = next(iter(csv.reader([answer])), [])
        plain = [" ".join(one.split()).casefold() for one in read]
        assert plain != [" ".join(one.split()).casefold() for one in fields], (kind, answer, note)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=3, max_size=4), st.data())
def test_expressions_of_other_numbers_have_the_target_and_near_ones_do_not(
    numbers: list[int], data: st.DataObject
) -> None:
    text = str(numbers[0])
    for one in numbers[1:]:
        text = f"({text} {data.draw(st.sampled_from('+-*'))} {one})"
    value = worth(text)
    assert value is not None
    assume(value > 60)
    prompt = f"Make {value} of the numbers {', '.join(map(str, numbers))}, each used once."
    for kind, answer, _ in target_misses(text, prompt):
        made = worth(answer)
        assert made is not None
        used = Counter(map(int, re.findall(r"\d+", answer)))
        if kind == "numbers-used":
            assert made == value
            assert used != Counter(numbers)
        else:
            assert used == Counter(numbers)
            assert 0 < made - value < 1


def test_an_expression_is_worth_what_it_is() -> None:
    assert worth("6 * (21 - 18) / 4") == Fraction(9, 2)
    for text in ("2 ** 9", "1 / 0", "x + 1", "(1", "7 // 2", "__import__", "", "1.5"):
        assert worth(text) is None
    assert not list(target_misses("3 + 4", "What is 3 + 4?"))


@settings(max_examples=40)
@given(WORDS)
def test_what_stands_elsewhere_is_wrong_only_where_the_prompt_says_so(words: list[str]) -> None:
    text = " ".join(words)
    said = read_truth(text, "Write the words from last to first. Reply with the words alone.")
    free = read_truth(text, "Name the words. Reply with the words alone, in any order.")
    moved = [one for kind, one, _ in near_misses(said) if kind == "order"]
    assert moved
    assert all(one.split() != words and sorted(one.split()) == sorted(words) for one in moved)
    assert not [kind for kind, _, _ in near_misses(free) if kind in ("order", "altered")]


def test_numbers_change_places_only_where_their_order_is_not_free() -> None:
    text, asked = "1590 [1][4][8]", "Reply with the year and the numbers of its sources"
    for how, some in ((", in that order, alone.", True), (", in any order, alone.", False)):
        misses = near_misses(read_truth(text, asked + how))
        turned = {one for _, one, _ in misses} & {"1590 [4][1][8]", "1590 [1][8][4]"}
        assert bool(turned) == some


TERMS: list[tuple[Callable[[str], object], str, object, str, object]] = [
    (is_cased, "Values as given, case included.", True, "Reply in any case.", False),
    (is_cased, "Case matters.", True, "Texts as given; case does not matter.", False),
    (is_spelt, "Reply with it as written.", True, "Write an essay.", False),
    (is_spelt, "Capitals do not matter.", True, "Give an example as written.", False),
    (is_once, "Each name once.", True, "Name them once more.", False),
    (is_typed, "days (an integer)", True, "the number of days", False),
    (is_row, "from last to first", True, "from Rome to Oslo", False),
    (day_first, "as DD/MM/YYYY", True, "on 3/4/2024", None),
    (day_first, "month first", False, "day first or month first", None),
]


@pytest.mark.parametrize(("term", "told", "said", "other", "unsaid"), TERMS)
def test_a_prompt_says_what_counts(
    term: Callable[[str], object], told: str, said: object, other: str, unsaid: object
) -> None:
    assert term(told) == said
    assert term(other) == unsaid


def by(read: Callable[[str], object]) -> Callable[[str, str], float]:
    def grade(response: str, reference: str) -> float:
        try:
            return float(read(response.strip()) == read(reference))
        except (ValueError, IndexError, TypeError):
            return 0.0

    return grade


def env(text: str) -> list[list[str]]:
    return sorted(line.split("=")[:2] for line in text.splitlines())


def low(text: str) -> object:
    return json.loads(text.lower())


def last_role(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+): (\w+)", text))


NAMED = "Ann Velda came; Rosa Velde did not. Who came? All names, each once, separated by '; '."
CARELESS = [
    ("Say it as .env lines, one KEY=VALUE a line, case included.", "A=safe\nT=in7=de32", env, ""),
    ("The file as JSON, texts as given.", '{"file": "Ab/Cd.TXT", "n": 2}', low, "case"),
    ("JSON: on (a boolean), n (an integer).", '{"on": true, "n": 1}', json.loads, "typed"),
    (CSV, 'Ann,"x, y",7,', lambda text: text.replace('"', ""), "component"),
    (CSV, "Ann,,7,cedar", lambda text: [one for one in text.split(",") if one], "component"),
    ("(day first) Reply as DD/MM/YYYY.", "08/07/1972",
     lambda text: sorted(text.split("/")), "day-month"),
    ("Who is what? Each name once, as 'NAME: role', and nothing else.", "Ada: knight, Bo: knave",
     last_role, "key-twice"),
    ("Make 175 of the numbers 20, 10, 25, each used once.", "10 * 20 - 25", worth, "numbers-used"),
    (NAMED, "Ann Velda; Jon Askew",
     lambda text: sorted(one[:8] for one in text.split("; ")), "other-name"),
    ("Write them from last to first. Words alone; capitals do not matter.", "maple river jade",
     lambda text: Counter(text.split()), "order"),
    ("One sentence alone, in the words of the log.", "fan 9a stopped at 01:21 because of dust",
     lambda text: re.fullmatch("(fan 9a) .*(01:21) .*(dust)", text)[0][:6], "altered"),
    ("Add. Reply with the number alone, as 1+2i.", "28+24i",
     lambda text: sorted(re.findall(r"\d+", text)), "term"),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "reference", "seen", "kind"), CARELESS)
def test_who_is_careless_of_parts_is_found_and_who_compares_all_is_not(
    prompt: str, reference: str, seen: Callable[[str], object], kind: str
) -> None:
    some = rows([(prompt, reference)])
    found = accepted_classes(audited(by(seen), some))
    assert found & HOLES
    assert not kind or kind in found
    assert not accepted_classes(audited(by(str), some))


SURE = "What is 60 * 67? Two lines: 'Answer: N', then 'Confidence: P', P from 0 to 100."


def test_a_wrong_answer_with_doubts_is_asked_in_the_form_of_the_prompt() -> None:
    def brier(response: str, reference: str) -> float:
        found = re.fullmatch(r"Answer: (\d+)\nConfidence: (\d+)", response.strip())
        return 1.0 - (int(found[2]) / 100 - (found[1] == reference)) ** 2 if found else 0.0

    def right(response: str, reference: str) -> float:
        found = re.fullmatch(r"Answer: (\d+)\nConfidence: (\d+)", response.strip())
        return 0.5 + int(found[2]) / 200 if found and found[1] == reference else 0.0

    some = rows([(SURE, "4020"), (SURE.replace("67", "30"), "1800")])
    assert "doubt" in accepted_classes(audited(brier, some))
    assert not accepted_classes(audited(right, some))


def test_tags_of_a_name_of_their_own_are_worn() -> None:
    tool = 'One call alone, as <tool_call>{"name": ..., "arguments": {...}}</tool_call>.'
    shown = told_dress([tool] * 3)
    assert shown is not None
    assert (shown.name, shown.wear("{}")) == (TOLD, "<tool_call>{}</tool_call>")
    sure = told_dress(["As <answer>...</answer> and <confidence>...</confidence>, 0 to 100."] * 3)
    assert sure is not None
    assert sure.doubts[0] == "<answer>{}</answer>\n<confidence>0</confidence>"
    assert told_dress(["Between <answer> and </answer>."] * 3) is None
