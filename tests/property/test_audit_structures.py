"""Laws of structured answers: exact and lenient readers accept no near miss that is a hole."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.audit import AuditRow, Truth, read_truth
from assay.audit.answers.truth import is_certainly_wrong, mentions
from assay.audit.answers.wrong import near_misses, plain_wrong
from assay.audit.engines.metamorphic import CLASSES
from assay.audit.engines.search import Search
from audit_support import accepted_classes, audited, rows

HOLES = {kind.name for kind in CLASSES if kind.severity == "hole"}
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
KEYS = st.sampled_from(["city", "age", "n", "total", "ok", "rows"])
SCALARS = st.one_of(
    st.integers(-5_000, 5_000),
    st.decimals(-90, 90, places=2, allow_nan=False).map(float),
    st.text("abcdefgh XYZ0123456789", max_size=9).map(str.strip),
    st.booleans(),
    st.none(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=8,
)
DATA = st.one_of(
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=4),
    st.lists(VALUES, min_size=1, max_size=4),
).map(json.dumps)
DAYS = st.dates(dt.date(1200, 1, 1), dt.date(2900, 1, 1))
ORDERS = st.sampled_from(["The JSON list in order.", "A JSON list, in any order.", "JSON"])


def loaded(text: str) -> Any:
    """Strict JSON; an object with a key twice, or anything else, is nothing."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=once)
    except ValueError:
        return ...


def same(a: Any, b: Any) -> bool:
    """Equality of JSON with types; whole numbers and others of one value are one."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return (type(a) is type(b) and a == b) or (
        isinstance(a, int | float) and isinstance(b, int | float) and a == b
    )


def like(a: Any, b: Any, ordered: bool) -> bool:  # noqa: PLR0911 - one a type
    """What a lenient reader takes for equal: case, numbers in texts, more fields, sets."""
    if isinstance(b, dict):
        return isinstance(a, dict) and all(
            like(a.get(key), inner, ordered) for key, inner in b.items()
        )
    if isinstance(b, list):
        if not isinstance(a, list):
            return False
        if ordered:
            return len(a) == len(b) and all(like(x, y, ordered) for x, y in zip(a, b, strict=True))
        return all(any(like(x, y, ordered) for y in b) for x in a) and all(
            any(like(x, y, ordered) for x in a) for y in b
        )
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    texts = [("" if one is None else str(one)).strip().casefold() for one in (a, b)]
    try:
        return float(texts[0]) == float(texts[1])
    except ValueError:
        return texts[0] == texts[1]


def holes_of(truth: Truth) -> list[str]:
    """The near misses that no reader may take."""
    return [answer for kind, answer, _ in near_misses(truth) if kind in HOLES]


@given(DATA, ORDERS)
def test_json_of_another_value_is_wrong_to_strict_and_lenient_readers(
    right: str, prompt: str
) -> None:
    truth = read_truth(right, prompt)
    for kind, answer, note in near_misses(truth):
        if truth.sort != "json":
            break
        assert not same(loaded(answer), loaded(right)), (kind, answer, note)
        if kind in HOLES:
            ordered = truth.order == "said"
            assert not like(loaded(answer), loaded(right), ordered), (kind, answer, note)


@given(DATA, ORDERS)
def test_json_in_other_clothes_is_never_wrong(right: str, prompt: str) -> None:
    truth = read_truth(right, prompt)
    value = json.loads(right)
    clothes = [json.dumps(value, indent=3), json.dumps(value, separators=(",", ":")), f" {right}\n"]
    if isinstance(value, dict):
        clothes.append(json.dumps(dict(reversed(value.items()))))
    for one in clothes:
        assert not is_certainly_wrong(one, truth)
        assert truth.sort == "data" or mentions(one, truth)


def named_days(text: str) -> set[dt.date]:
    """The days of a text by a reader of this test's own: year first, or last, or a word."""
    numbers = [int(one) for one in re.findall(r"\d+", text)]
    word = next((place for place, one in enumerate(MONTHS, 1) if one in text), None)
    tries = []
    if word and len(numbers) == 2:
        tries = [(numbers[1], word, numbers[0])]
    elif re.fullmatch(r"\d{4}\D\d+\D\d+", text):
        tries = [(numbers[0], numbers[1], numbers[2])]
    elif re.fullmatch(r"\d+\D\d+\D\d{4}", text):
        a, b, y = numbers
        tries = [(y, a, b), (y, b, a)]
    found = set()
    for y, m, d in tries:
        try:
            found.add(dt.date(y, m, d))
        except ValueError:
            continue
    return found


FORMS: list[Callable[[dt.date], str]] = [
    lambda day: day.isoformat(),
    lambda day: f"{day.year}/{day.month}/{day.day}",
    lambda day: f"{day.day:02}.{day.month:02}.{day.year}",
    lambda day: f"{day.month}/{day.day}/{day.year}",
    lambda day: f"{MONTHS[day.month - 1]} {day.day}, {day.year}",
    lambda day: f"{day.day} {MONTHS[day.month - 1]} {day.year}",
]


@given(DAYS, st.sampled_from(range(len(FORMS))))
def test_another_day_is_another_day_whichever_number_is_the_month(day: dt.date, form: int) -> None:
    right = FORMS[form](day)
    truth = read_truth(right)
    assert truth.sort == "code"
    made = holes_of(truth)
    assert len(made) >= 4
    for answer in made:
        assert not named_days(answer) & named_days(right), answer
    for other in FORMS:
        assert not is_certainly_wrong(other(day), truth)
    assert any(is_certainly_wrong(one, truth) for one in made)


@given(st.lists(st.integers(0, 300).map(str), min_size=3, max_size=5).map(".".join))
def test_another_version_has_other_components(right: str) -> None:
    truth = read_truth(right)

    def components(text: str) -> list[int]:
        numbers = [int(one) for one in text.split(".")]
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return numbers

    assert truth.sort == "code"
    for answer in holes_of(truth):
        assert components(answer) != components(right), answer
    assert not is_certainly_wrong(f"{right}", truth)


@given(st.times().map(lambda one: one.strftime("%H:%M:%S")), st.booleans())
def test_another_time_is_another_one_on_any_clock(right: str, whole: bool) -> None:
    right = right if whole else right[:5]
    truth = read_truth(right)

    def on_a_clock(text: str) -> tuple[int, ...]:
        numbers = [int(one) for one in text.split(":")]
        return (numbers[0] % 12, *numbers[1:], *([0] * (3 - len(numbers))))

    for answer in holes_of(truth):
        assert on_a_clock(answer) != on_a_clock(right), answer


ROWS_OF_NUMBERS = st.lists(
    st.lists(
        st.one_of(st.integers(-99_999, 99_999).map(str),
                  st.decimals(-500, 9_000, places=2, allow_nan=False).map(str)),
        min_size=1, max_size=4,
    ).map(" ".join),
    min_size=2, max_size=6,
).map("\n".join)  # fmt: skip
PRINTS = st.sampled_from(["What does the program print?", "List them, in any order.", "What?"])


def tokens(text: str) -> list[float | str]:
    """What a checker of programs' output compares: blank-separated words, numbers as numbers."""
    found: list[float | str] = []
    for word in text.split():
        try:
            found.append(round(float(word), 6))
        except ValueError:
            found.append(word.casefold())
    return found


@given(ROWS_OF_NUMBERS, PRINTS)
def test_other_lines_are_other_tokens_and_where_order_is_free_another_set(
    right: str, prompt: str
) -> None:
    truth = read_truth(right, prompt)
    assert truth.sort == "lines"
    for kind, answer, note in near_misses(truth):
        assert answer.splitlines() != right.splitlines()
        if kind not in HOLES:
            continue
        assert tokens(answer) != tokens(right), (kind, answer, note)
        if truth.order != "said" and kind != "run-together":
            a, b = ({tuple(tokens(line)) for line in text.split("\n")} for text in (answer, right))
            assert a != b, (kind, answer, note)
    for one in (f"{right}\n", right.replace("\n", " \r\n"), f"\n{right}"):
        assert not is_certainly_wrong(one, truth)


@given(
    st.lists(st.integers(-50, 4_000).map(str), min_size=2, max_size=5),
    st.sampled_from([", ", "; ", " -> ", ","]),
    st.sampled_from(["Sort them in ascending order.", "The set of primes.", "Which?"]),
)
def test_other_lists_are_other_lists_and_where_order_is_free_other_sets(
    parts: list[str], mark: str, prompt: str
) -> None:
    truth = read_truth(mark.join(parts), prompt)
    if truth.sort != "list":
        return
    arrows = "->" in mark
    for kind, answer, note in near_misses(truth):
        got = [one.strip() for one in answer.split(mark.strip())]
        assert got != parts, (kind, answer, note)
        if kind in HOLES and truth.order != "said" and not arrows:
            assert set(got) != set(parts), (kind, answer, note)


@settings(max_examples=40)
@given(st.one_of(DATA, DAYS.map(str), ROWS_OF_NUMBERS))
def test_other_answers_for_texts_of_several_are_no_right_ones(right: str) -> None:
    truth = read_truth(right, "What does it print, as JSON?")
    for wrong in plain_wrong(truth):
        assert is_certainly_wrong(wrong, truth)


SEEDS = (
    '{"a": [1, {"b": null}], "c": "x"}', "[[1, 2], [3, 4]]", "2024-02-29", "29/02/2024", "12-31-99",
    "1 January 2000", "23:59", "0.0.0", "255.255.255.255", "a\tb\n1\t2", "| a | b |\n| 1 | 2 |",
    "1,2\n3,4", "(0, 0)", "\\{1\\}", "[{}]", '{"": 1}', "[1e400]", "[1E+2]", "9999-12-31",
    "0001-01-01", "1000-01-01T00:00:00Z", "1 1 1", "v1.2.3", "x@y.zz", "[true, false]", "AB-1",
)  # fmt: skip
EDITS = st.tuples(
    st.integers(0, 40), st.integers(0, 1), st.sampled_from('0159-/:. ,{}[]()"aBZ\n\t|>%')
)


@given(st.sampled_from(SEEDS), st.lists(EDITS, max_size=3), PRINTS)
def test_a_right_answer_in_broken_forms_is_right_and_no_near_miss(
    right: str, edits: list[tuple[int, int, str]], prompt: str
) -> None:
    for place, length, sign in edits:
        right = right[:place] + sign + right[place + length :]
    truth = read_truth(right, prompt)
    if not truth.texts:
        return
    assert not is_certainly_wrong(truth.text, truth)
    assert mentions(truth.text, truth)
    assert truth.text not in [answer for _, answer, _ in near_misses(truth)]
    if truth.sort != "formula":
        assert all(is_certainly_wrong(one, truth) for one in plain_wrong(truth))


CASES = {
    '{"city": "Oslo", "n": 31, "pos": {"x": 1, "y": 2}}': {"field-value", "field", "key-twice"},
    "[3, 1, 2]": {"lax-data", "list-part", "field-value"},
    "2024-03-05": {"component"}, "03/04/2024": {"component"}, "March 5, 2024": {"component"},
    "2024-03-05T14:30:00Z": {"component"}, "14:30": {"component"},
    "1.2.3": {"component", "dotless", "run-together"},
    "192.168.0.1": {"component", "dotless", "run-together"},
    "AB-1234": {"component"}, "bob@example.com": {"component", "dotless"},
    "1 2 3\n4 5 6\n7 8.25 9": {"line", "run-together"},
    "2, 3, 5": {"list-part", "run-together"}, "a -> b -> c": {"order"},
}  # fmt: skip


@pytest.mark.parametrize(("right", "kinds"), CASES.items())
def test_each_class_is_made_where_it_fits(right: str, kinds: set[str]) -> None:
    assert kinds <= {kind for kind, _, _ in near_misses(read_truth(right))}


@pytest.mark.parametrize(
    ("prompt", "right", "answer", "kind"),
    [
        ("Sort the numbers.", "2, 3, 5", "3, 2, 5", "order"),
        ("Which are steps in the right order?", "2, 3, 5", "3, 2, 5", "order"),
        ("In ascending order?", "2, 3, 5", "3, 2, 5", "order-unsaid"),
        ("Find n such that the sequence is so.", "2, 3, 5", "3, 2, 5", "order-unsaid"),
        ("Which primes?", "2, 3, 5", "3, 2, 5", "order-unsaid"),
        ("JSON, sorted.", "[1, 2]", "[2, 1]", "order"),
        ("Return exactly these fields as JSON.", '{"a": 1}', '{"a": 1, "other": 7}', "extra-field"),
        ("Return JSON.", '{"a": 1}', '{"a": 1, "other": 7}', "lax-data"),
        ("How many ways?", "123456", "123457", "neighbour"),
        ("Which population?", "123456", "123457", "neighbour-unsaid"),
        ("", "5 mW", "5 MW", "unit-case"), ("", "5 mm", "5 m", "unit"),
        ("", "5 km", "5 kg", "unit"),
        ("", "40%", "0.4%", "unit"), ("As a decimal.", "0.25", "0.25%", "qualified"),
        ("Who?", "Marie Curie", "Mildred Curie", "other-name"),
        ("Who?", "Marie Curie", "Marie Curie's daughter", "namesake"),
        ("Where?", "Paris", "Paris, Texas", "namesake"), ("Which?", "(3, 4)", "(4, 3)", "order"),
        ("Which?", "\\{1, 2\\}", "\\{1\\}", "list-part"),
        ("", "2024-03-05", "24-03-05", "lax-form"), ("", "03/04/2024", "04/03/2024", "lax-form"),
        ("", "4410", "441\u2070", "look-alike"),
    ],
)  # fmt: skip
def test_what_is_certain_and_what_is_only_a_warning(
    prompt: str, right: str, answer: str, kind: str
) -> None:
    made = {text: name for name, text, _ in near_misses(read_truth(right, prompt))}
    assert made.get(answer) == kind


@pytest.mark.parametrize(
    ("prompt", "right", "sort"),
    [
        ("", '{"ground_truth": "42", "style": "rule"}', "prose"),
        ("Who wrote it?", '["Twain", "Samuel Clemens"]', "prose"),
        ("List all names.", '["Twain", "Clemens"]', "json"), ("", "{}", "prose"),
        ("", "3x-2", "formula"), ("", "x-1", "formula"), ("", "2 1/2", "number"),
        ("", "He came.\nHe saw.", "prose"), ("", "def f(x):\n    return 1", "prose"),
        ("", "(3, 4)", "list"), ("", "\\{1, 2\\}", "list"),
        ("", "(x, 4)", "notation"), ("", "(1,234)", "notation"), ("", "1 234 567", "notation"),
        ("", "1 2 3", "list"), ("", "Paris, France", "words"),
        ("", "sin2x", "formula"), ("", "UTF-8", "code"), ("", "(-1, 3]", "notation"),
        ("", "31/02/2024", "notation"), ("", "25:61", "notation"), ("", "110/month", "notation"),
        ("", "10:30AM", "notation"), ("", "60^\n60^", "prose"), ("", "[\x0crac{1}{8}, 2)", "prose"),
    ],
)  # fmt: skip
def test_what_has_no_structure_for_sure_has_none(prompt: str, right: str, sort: str) -> None:
    assert read_truth(right, prompt).sort == sort


PAIRS = [
    ("Give the record as JSON.", '{"city": "Oslo", "n": 31, "pos": {"x": 1, "y": 2}}'),
    ("Which list, as JSON, in order?", "[3, 1, 20]"),
    ("Which day?", "2024-03-05"), ("Which other day?", "1999-11-30"), ("Which release?", "1.2.3"),
    ("What does the program print?", "1 2 3\n4 5 6\n7 1500.25 9"),
]  # fmt: skip


def last_found(response: str, right: str) -> str:
    """The last text of the reference's form, thoughts left out."""
    text = re.sub(r"(?s)<think>.*?</think>", "", response).strip()
    if right[0] in "{[":
        for start in range(len(text) - 1, -1, -1):
            if text[start] == right[0] and loaded(text[start:]) is not ...:
                found = text[start:]
        return found if "found" in locals() else ""
    for form in (r"\d{4}-\d\d-\d\d", r"\d+(?:\.\d+){2,}"):
        if re.fullmatch(form, right):
            return str(["", *re.findall(form, text)][-1])
    return text


def strict(response: str, right: str) -> float:
    return float(response.strip() == right)


def lenient(response: str, right: str) -> float:
    found = last_found(response, right)
    if right[0] in "{[":
        return float(bool(found) and like(loaded(found), loaded(right), ordered=True))
    return float(tokens(found) == tokens(right))


def some_rows() -> list[AuditRow]:
    return rows(PAIRS)


@pytest.mark.parametrize("sound", [strict, lenient])
def test_sound_graders_have_no_hole(sound: Callable[[str, str], float]) -> None:
    report = audited(sound, some_rows())
    assert report.found.exit_code == 0, report.found.holes[:4]
    assert {one.probe.kind for one in report.found.judged} >= {"field-value", "component", "line"}


def fuzzy(response: str, right: str) -> float:
    letters = zip(response.ljust(len(right)), right, strict=False)
    return float(sum(a == b for a, b in letters) >= 0.8 * max(len(right), len(response)))


def bare(text: str) -> str:
    return re.sub(r"\W", "", text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("careless", "kinds"),
    [
        (fuzzy, {"field-value", "component", "line"}),
        (lambda r, right: float(bare(r) == bare(right)), {"run-together"}),
        (lambda r, right: float(sorted(r.split()) == sorted(right.split())), {"order"}),
        (lambda r, right: float(re.fullmatch(right, r.strip()) is not None), {"dotless"}),
        (lambda r, right: float(r.strip()[:7] == right[:7]), {"component", "line"}),
        (lambda r, right: float(loaded_keys(r) == loaded_keys(right) != set()), {"field-value"}),
    ],
)  # fmt: skip
def test_careless_graders_are_found(careless: Callable[[str, str], float], kinds: set[str]) -> None:
    report = audited(careless, some_rows())
    assert report.found.exit_code == 1
    assert kinds <= accepted_classes(report)


def loaded_keys(text: str) -> set[str]:
    value = loaded(text)
    return set(value) if isinstance(value, dict) else set()


def test_search_reaches_what_only_has_the_form() -> None:
    def formal(response: str, right: str) -> float:
        value = loaded(response)
        if not isinstance(value, dict) or value.keys() != loaded(right).keys():
            return float(response.strip() == right)
        return 1.0 if same(value, loaded(right)) else 0.6 if not value["city"] else 0.0

    some = [row for row in some_rows() if row.truth.text.startswith("{")]
    report = audited(formal, some, probers=[Search()])
    assert accepted_classes(report) == {"searched"}


def test_a_grader_that_makes_something_else_of_a_reference_is_not_blamed() -> None:
    """The reference is a list of names, each right: not what stands there is the answer."""

    def any_of(response: str, right: str) -> float:
        return float(response.strip() in json.loads(right))

    some = rows([("Which of all names has the author?", '["Twain", "Clemens"]')])
    report = audited(any_of, some)
    assert not report.found.holes
    assert report.found.exit_code == 2, "it accepted no right answer as far as the audit knows"
