"""Laws of what is asked of any short text: to our own readers a changed part says another thing."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.audit import read_truth
from assay.audit.answers.tokens import are_unlike, letter_off, other_word, splices
from assay.audit.answers.wrong import near_misses, spliced
from assay.audit.dress import told_dress
from assay.audit.engines.metamorphic import CLASSES
from audit_support import accepted_classes, audited, rows

HOLES = {kind.name for kind in CLASSES if kind.severity == "hole"}
FEW = settings(max_examples=25)


def holes(reference: str, prompt: str) -> list[str]:
    found = near_misses(read_truth(reference, prompt))
    return [answer for kind, answer, _ in found if kind in HOLES]


def pages(text: str) -> set[int] | None:
    found: set[int] = set()
    for part in text.split(","):
        one = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if one is None:
            return None
        found |= set(range(int(one[1]), int(one[2] or one[1]) + 1))
    return found


@FEW
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), min_size=2, max_size=4))
def test_other_page_ranges_name_other_pages(steps: list[tuple[int, int]]) -> None:
    at, parts = 1, []
    for gap, length in steps:
        first = at + gap + 1
        at = first + length
        parts.append(f"{first}-{at}" if length else str(first))
    text = ", ".join(parts)
    if "-" not in text:
        return
    found = holes(text, "On which pages is it? Reply with the pages alone.")
    assert len(found) > 6
    for other in found:
        assert pages(other) != pages(text), other


def sides(text: str) -> list[Counter[str]] | None:
    made = []
    for half in text.split("->"):
        side: Counter[str] = Counter()
        for part in half.split("+"):
            one = re.fullmatch(r"\s*(\d*)\s*([A-Z]\w*)\s*", part)
            if one is None:
                return None
            side[one[2]] += int(one[1] or 1)
        made.append(side)
    return made


@pytest.mark.parametrize(
    "text",
    ["2 H2 + O2 -> 2 H2O", "C3H8 + 5 O2 -> 3 CO2 + 4 H2O", "13 O2 + 2 C4H10 -> 8 CO2 + 10 H2O"],
)
def test_other_reactions_are_other_reactions(text: str) -> None:
    found = holes(text, "Balance it, with the smallest whole coefficients.")
    assert len(found) > 10
    for other in found:
        assert sides(other) != sides(text), other
    assert not any(other.startswith("4 H2 + 2 O2") for other in holes(text, "Balance it."))


@FEW
@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from("bcd"), st.integers(2, 6))
def test_other_patterns_match_other_strings(a: int, b: int, end: str, last: int) -> None:
    text = f"[a-{end}]{{{a}}}[0-{last}]{{{b}}}"
    letters = ["a", end, chr(ord(end) + 1), chr(ord(end) - 1)]
    digits = "0123456789"
    samples = [x * m + y * n for x in letters for y in digits for m in range(6) for n in range(6)]
    samples += ["", "zz", "_" * (a + b), "b0" * a, "0" * b + "a" * a]
    found = holes(text, "Reply with a regular expression alone.")
    assert len(found) > 8
    for other in found:
        try:
            both = re.compile(text), re.compile(other)
        except re.error:
            continue
        assert any(bool(both[0].fullmatch(s)) != bool(both[1].fullmatch(s)) for s in samples), other


@FEW
@given(st.integers(0, 60), st.integers(0, 59), st.integers(0, 59))
def test_other_durations_last_otherwise(hours: int, minutes: int, rest: int) -> None:
    text = f"{hours}:{minutes:02}:{rest:02}"
    found = holes(text, "How long does it take? Reply as H:MM:SS.")
    assert len(found) > 5
    for other in found:
        numbers = [int(one) for one in other.split(":")] if re.fullmatch(r"[\d:]+", other) else []
        if len(numbers) == 3:
            assert numbers != [hours, minutes, rest], other


@FEW
@given(st.sampled_from(["EUR ", "USD ", "$", "\u20ac"]), st.decimals("0.01", 9000, places=2))
def test_other_amounts_of_money_are_other_amounts(mark: str, amount: Decimal) -> None:
    text = f"{mark}{amount}"
    for other in holes(text, "What is the total?"):
        if other.startswith(mark):
            rest = other.removeprefix(mark)
            assert not re.fullmatch(r"\d+\.\d+", rest) or Decimal(rest) != amount, other
    assert any(not other.startswith(mark) for other in holes(text, "What is the total?"))
    rough = holes(f"{mark}{100 + amount}", "About how much is it?")
    assert not any(other.startswith(f"{mark}{int(100 + amount)}.") for other in rough)


@FEW
@given(
    st.lists(st.lists(st.integers(-9, 9), min_size=2, max_size=3), min_size=2, max_size=3).filter(
        lambda one: len({len(row) for row in one}) == 1
    )
)
def test_another_matrix_is_another_one(value: list[list[int]]) -> None:
    truth = read_truth(json.dumps(value), "Multiply them.")
    assert truth.order == "said"
    for other in holes(json.dumps(value), "Multiply them."):
        assert json.loads(other) != value, other


@given(st.integers(1, 99), st.integers(1, 99), st.sampled_from(["III", "IV", "IX", "XI", "XXIX"]))
def test_a_changed_part_is_another_part(a: int, b: int, number: str) -> None:
    for text in (f"no, {a}", f"{a} of {b} parts", f"Karl {number}", f"p. {a}, line {b}"):
        found = holes(text, "Reply alone.")
        assert found
        assert (
            len({other.casefold().replace(" ", "") for other in found} | {text}) > len(found) // 2
        )
        assert text not in found


def test_an_open_question_has_no_such_probes() -> None:
    prompt = "Give an example of a place in it."
    assert read_truth("p. 3, line 4", prompt).sort == "prose"
    assert read_truth("p. 3, line 4", "Where is it?").sort == "notation"


SHAPED = st.tuples(st.sampled_from(["red", "blue", "mint"]), st.integers(1, 50), st.integers(1, 50))


@given(SHAPED, SHAPED)
def test_a_splice_is_made_of_both_and_is_neither(
    one: tuple[str, int, int], other: tuple[str, int, int]
) -> None:
    a, b = (f"{word} {x} at {y}" for word, x, y in (one, other))
    for _, answer, _ in splices(a, b, ""):
        assert answer != a
        parts = re.findall(r"\w+", answer)
        known = [*zip(re.findall(r"\w+", a), re.findall(r"\w+", b), strict=True)]
        assert all(part in pair for part, pair in zip(parts, known, strict=True)), answer


def test_a_synonym_that_the_prompt_gives_is_no_splice() -> None:
    prompt = "It means costly or dear. Translate it."
    right, other = read_truth("costly road", prompt), read_truth("dear boat", prompt)
    assert {answer for _, answer, _ in spliced(right, [other])} <= {"costly boat"}


@given(st.sampled_from(["North", "second", "MONDAY", "ten", "yes", "left", "ascending"]))
def test_a_words_other_is_written_alike_and_is_another(word: str) -> None:
    other = other_word(word)
    assert other.casefold() != word.casefold()
    assert (other.isupper(), other.istitle()) == (word.isupper(), word.istitle())


def test_words_that_may_be_one_are_not_unlike() -> None:
    for a, b in (("Karl", "Carl"), ("km", "kilometers"), ("ASC", "ascending"), ("cm", "cms")):
        assert not are_unlike(a, b)
    assert are_unlike("EUR", "USD")
    assert letter_off("road") == "toad"
    assert letter_off("zebra") == ""


def test_other_capitals_are_a_hole_only_where_they_count() -> None:
    said = "Which file is it? Case matters."
    for prompt, kinds in ((said, {"case"}), ("Which file is it?", set())):
        found = {kind for kind, _, _ in near_misses(read_truth("/srv/Notes2.txt", prompt))}
        assert found & {"case"} == kinds


def test_the_form_that_prompts_show_is_a_dress() -> None:
    shown = told_dress(["Say: 'The answer is (X).', X a letter."] * 3)
    assert shown is not None
    assert shown.wear("B") == "The answer is (B)."
    simple = told_dress(["Reply with the form alone, as $...$."] * 3)
    assert simple is not None
    assert simple.wear("7") == "$7$"
    assert told_dress(["Say 'Answer: yes' or 'Answer: no'."] * 3) is None
    assert told_dress(["It's A's turn.", "What is 3 + 4?"]) is None


@pytest.mark.parametrize(
    ("prompt", "worn"),
    [
        ("Reply with one line alone, 'Label: ' and entailment or neutral.", "Label: 7"),
        ('Begin with "Result:" and say it.', "Result: 7"),
        ("Reply with one verdict alone in double brackets.", "[[7]]"),
        ("Put the word between double asterisks.", "**7**"),
        ("Reply with it alone, between backticks.", "`7`"),
        ("Say 'Yes: ' or 'No: ' and why.", ""),
        ("In square brackets or in parentheses, as you like.", ""),
    ],
)
def test_a_label_or_brackets_by_their_name_are_a_form(prompt: str, worn: str) -> None:
    shown = told_dress([prompt] * 3)
    assert (shown.wear("7") if shown else "") == worn


def boxed(response: str) -> str:
    found = re.fullmatch(r"(?s).*\\boxed\{(.*)\}[^}]*", response)
    return found[1] if found else ""


SOME = [(f"What is {n} + {n}? Put it in \\boxed{{}}.", str(2 * n)) for n in range(11, 31)]


@pytest.mark.slow
def test_who_reads_either_side_of_an_equation_is_found_and_who_reads_all_is_not() -> None:
    exact = audited(lambda response, right: boxed(response) == right, rows(SOME))
    assert exact.found.exit_code == 0, exact.found.holes[:3]
    last = audited(
        lambda response, right: boxed(response).rpartition("=")[2].strip() == right, rows(SOME)
    )
    assert "equation" in accepted_classes(last)
    bare = audited(
        lambda response, right: (
            re.sub(r"\\(?:neg|text\{[a-z ]+\})|\s", "", boxed(response)) == right
        ),
        rows(SOME),
    )
    assert "denial" in accepted_classes(bare)
