r"""Laws of extraction: it never fails, is bounded and linear, and reads one place."""

from __future__ import annotations

import time
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.math import answer_phrases as phrases
from assay.math import extraction
from assay.math.extraction import MODES, TAIL_CHARS, find_answer, narrowed

_PIECES = st.sampled_from(
    [
        "\\boxed{",
        "\\fbox{",
        "{",
        "}",
        "\\{",
        "\\",
        "$",
        "$$",
        "\\[",
        "\\]",
        "<answer>",
        "</answer>",
        "</think>",
        "<think>",
        "####",
        "The answer is",
        "Answer:",
        "【答案】",
        "答案是",
        "option (B)",
        " and ",
        ", ",
        "\n",
        "5",
        "-1,000.5",
        "x",
        "<|im_end|>",
        "=",
        ".",
    ]
)
_TEXTS = st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=40).map("".join))
_ANSWERS = st.from_regex(r"[a-z0-9+*^][a-z0-9+*^ ]{0,20}[a-z0-9]", fullmatch=True)


@given(_TEXTS, st.sampled_from(MODES), st.booleans())
def test_any_text_gives_an_answer_inside_it_or_none(text: str, mode: str, letter: bool) -> None:
    found = find_answer(text, mode, letter=letter)
    if found is not None:
        assert found.text.strip()
        assert 0 <= found.start < found.end <= len(text)


@given(_TEXTS)
def test_a_sentence_is_narrowed_without_trouble(text: str) -> None:
    narrowed(text)


@given(_TEXTS, _ANSWERS)
def test_a_last_box_decides_whatever_precedes_it(text: str, answer: str) -> None:
    found = find_answer(f"{text}\n\nIn all</think>\n\\boxed{{{answer}}}.")
    assert found is not None
    assert (found.text, found.how) == (answer.strip(), "boxed")


@given(_ANSWERS)
def test_the_answer_does_not_depend_on_dollars_or_space_around_the_box(answer: str) -> None:
    texts = (f"\\boxed{{{answer}}}", f"$\\boxed{{ {answer} }}$", f"\\[ \\boxed{{{answer}}} \\]\n\n")
    assert {getattr(find_answer(text), "text", None) for text in texts} == {answer}


@given(_TEXTS, st.sampled_from(["boxed", "strict", "auto"]))
def test_a_thought_never_changes_the_answer(text: str, mode: str) -> None:
    plain = find_answer("so \\boxed{7}", mode)
    thought = find_answer(f"{text}</think>so \\boxed{{7}}", mode)
    assert plain is not None
    assert thought is not None
    assert thought.text == plain.text


_FLOODS = (
    "\\boxed{",
    "\\boxed{1}",
    "\\boxed{1} and ",
    "$",
    "$x$",
    "$1 ",
    "\\[",
    "<answer>",
    "####",
    "#### a\n",
    "answer is ",
    "Answer:",
    "答案是",
    "1,",
    "1" * 7,
    "-",
    "{",
    "}",
    "\\",
    " ",
    "\n",
    "a ",
    "the final answer is ",
    ".1",
    "1.",
    "(A)",
    "option ",
    "</think>",
    "<|im_end|>",
    "```\n",
    "* ",
    "ans\n",
    "é\n",
    "a:a:\n",
    "final result\n",
)


def _seconds(text: str, mode: str) -> float:
    started = time.process_time()
    find_answer(text, mode, letter=True)
    return time.process_time() - started


@pytest.mark.slow
@pytest.mark.parametrize("flood", _FLOODS)
def test_a_flood_costs_no_more_than_its_tail(flood: str) -> None:
    """A megabyte takes no more than its tail does: only the tail is read."""
    short, long = flood * (TAIL_CHARS // len(flood)), flood * (1_000_000 // len(flood))
    for mode in MODES:
        tail, whole = (min(_seconds(text, mode) for _ in range(3)) for text in (short, long))
        assert whole < 30 * tail + 0.5  # what is not linear takes 2,500 times as long


@given(
    st.lists(_PIECES | st.sampled_from(["box", "answer", "</s>", "word ", "#"]), max_size=6).map(
        "".join
    ),
    st.sampled_from(
        ["\\boxed{42}", "\\boxed{ x+1 }", "\\boxed{}", "\\boxed{\\pi}", "\\boxed{{1}}"]
    ),
    st.lists(_PIECES | st.sampled_from(["box", "Answer", "word ", "#", "【"]), max_size=6).map(
        "".join
    ),
    st.sampled_from(["auto", "strict", "boxed"]),
)
def test_the_short_way_to_a_box_agrees_with_the_rules(
    before: str, box: str, after: str, mode: str
) -> None:
    text = before + box + after
    short = extraction._plain_box(text)
    with mock.patch.object(extraction, "_plain_box", return_value=None):
        by_rule = find_answer(text, mode)
    assert short is None or short == by_rule


ANNOUNCEMENTS = st.from_regex(phrases.ANNOUNCED)
PROSE = st.sampled_from(
    [
        *("The answer is 5", "ans. = 7", "A: 3", "  a: 4", "Formula: x", "option is B"),
        *("Antwort: 8", "答案是 5", "ответ: 7", "\u017f an\u017fwer is 3", "\u0130 answer: 2"),
        *("éanswer: 1", "jibu ni 4", "", "a"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    parts=st.lists(PROSE | ANNOUNCEMENTS | st.text(max_size=8), max_size=8),
    gap=st.sampled_from(["\n", " ", "\n\n", "\r\n", "\x85"]),
)
def test_lines_that_can_hold_an_announcement_hold_them_all(parts: list[str], gap: str) -> None:
    text = gap.join(parts)
    quick = [mark.span() for mark in phrases.announced(text)]
    assert quick == [mark.span() for mark in phrases.ANNOUNCED.finditer(text)][::-1]
