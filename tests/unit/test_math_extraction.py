r"""Where the answer is found in a response: every rule, their order, and what must not be found."""

from __future__ import annotations

import pytest

from assay.math.extraction import (
    ANSWER_CHARS,
    MARKED,
    MODES,
    TAIL_CHARS,
    FoundAnswer,
    Nothing,
    boxes,
    final_part,
    find_answer,
    look,
    narrowed,
)


def text_of(response: str, mode: str = "auto", *, letter: bool = False) -> str | None:
    found = find_answer(response, mode, letter=letter)
    return None if found is None else found.text


@pytest.mark.parametrize(
    ("response", "answer", "how"),
    [
        # Boxes.
        (r"so $x = \boxed{\frac{1}{2}}$.", r"\frac{1}{2}", "boxed"),
        (r"\boxed{1}, no, \boxed{2 }", "2", "boxed"),
        (r"\boxed{1}. That forgets zero. \boxed{2}", "2", "boxed"),
        (r"\boxed{1} and $\boxed{2}$, and $\boxed{3}$", "1, 2, 3", "boxed"),
        (r"\boxed{1} \quad \text{or} \quad \boxed{2}", "1, 2", "boxed"),
        (r"$y_1 = \boxed{a}$ and $y_2 = \boxed{b}$", "a, b", "boxed"),
        (r"$\boxed{1}\quad\boxed{2}$", "1, 2", "boxed"),
        (r"\boxed{x=1} \boxed{x=2}", "x=1, x=2", "boxed"),
        ("\\boxed{1}\n\\boxed{2}", "2", "boxed"),
        (r"\boxed{3} cm and $\boxed{5}$ cm", "3, 5", "boxed"),
        (r"\boxed{3}, no, \boxed{5}", "5", "boxed"),
        (r"\boxed{\text{Therefore, the answer is } 5}", "5", "boxed"),
        (r"\boxed{x = 5 \text{ cm is the length}}", r"x = 5\text{ cm}", "boxed"),
        (r"\boxed{5 \text{ is the wrong one}}", r"5 \text{ is the wrong one}", "boxed"),
        (r"\boxed{22} ... thus \boxed{22}", "22", "boxed"),
        (r"\boxed{\boxed{5}}", "5", "boxed"),
        (r"\boxed{a + \boxed{5}}", r"a + \boxed{5}", "boxed"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}", "boxed"),
        (r"\fbox{7}", "7", "boxed"),
        (r"\boxed 7.", "7", "boxed"),
        # The mark that begins last.
        (r"<answer>\boxed{5}</answer>", "5", "boxed"),
        (r"\boxed{4}. <answer> 5 </answer>", "5", "answer-tag"),
        ("<ANSWER>\n5\n</ANSWER>", "5", "answer-tag"),
        (r"$\frac{140}{21} = \boxed{?}$, so option B. #### B", "B", "hash"),
        (r"\boxed{255}. Final Answer: The final answer is $10,455$.", "$10,455$", "answer-line"),
        (r"The answer is 4, or rather \boxed{5}.", "5", "boxed"),
        ("So 48 + 24 = 72.\n#### 72\nI hope 5 this helps.", "72", "hash"),
        # Phrases.
        ("The answer is 42. I hope it is correct.", "42", "answer-line"),
        ("**Answer:** 3.5", "3.5", "answer-line"),
        ("Ans: 3.5", "3.5", "answer-line"),
        ("The answer is 5 because 3 apples and 2 pears are fruit.", "5", "answer-line"),
        ("The answer is right triangle.", "right triangle", "answer-line"),
        ("Final Answer: The final answer is $x=2$. I hope it is correct.", "$x=2$", "answer-line"),
        ("The final answer is $2.$ I hope it is correct.", "$2.$", "answer-line"),
        ("The final answer is $(1,2)$. I hope it is correct.", "$(1,2)$", "answer-line"),
        ("### Final answer\n\n\\[ x = 2 \\]", r"\[ x = 2 \]", "answer-line"),
        ("12 * 2 = 24\nA: 24", "24", "answer-line"),
        ("The answer is: 3. The answer is correct.", "3", "answer-line"),
        ('>> FINAL ANSWER:\n"""\n90 $\n"""', "90 $", "answer-line"),
        ("【答案】: B <eoa>", "B", "answer-line"),
        ("所以答案是$\\frac{1}{2}$。", "$\\frac{1}{2}$", "answer-line"),
        ("综上, 答案为\uff1a3", "3", "answer-line"),
        ("故选\uff1aC", "C", "answer-line"),
        ("La respuesta final es 5.", "5", "answer-line"),
        ("La réponse est 5.", "5", "answer-line"),
        ("Die Antwort lautet: 12 Jahre", "12 Jahre", "answer-line"),
        ("Ответ: 40", "40", "answer-line"),
        ("答えは17です", "17です", "answer-line"),
        ("คำตอบคือ 75", "75", "answer-line"),
        ("উত্তর: 12", "12", "answer-line"),
        ("Jibu ni 9.", "9", "answer-line"),
        ("సమాధానం: 8", "8", "answer-line"),
        # Without a mark.
        (r"We find that $x \lt 3$.", r"x \lt 3", "math-span"),
        (r"so $x = 1$ or $x = 2$.", "x = 1, x = 2", "math-span"),
        ("It is $28$ % then", r"28\%", "math-span"),
        ("She earns $3.00 + $3.00 = $8.00 a day", "8.00", "last-number"),
        ("Harald sold 8,000 copies.", "8,000", "last-number"),
        ("about 3/4 of them", "3/4", "last-number"),
        ("first [30], then [45].", "45", "last-number"),
        (r"so 5 \times 3 = 15 \text{ apples}", "15", "last-number"),
        (r"it turns by 30^\circ", "30", "last-number"),
        ("so $$x > 1.$$ Thus it grows by 100%.", "100%", "last-number"),
        ("it drops by -2.5", "-2.5", "last-number"),
        ("$y$ is the\n1\n2\n3\n4\nlast", "4", "last-number"),
    ],
)
def test_auto(response: str, answer: str, how: str) -> None:
    found = find_answer(response)
    assert found is not None
    assert (found.text, found.how) == (answer, how)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "no idea",
        r"the answer is 3, so \boxed{3",
        r"the answer is 3, so \boxed{}",
        r"5 \boxed{ }",
        r"the answer is 3, <answer>3",
        "the answer is 3 <answer></answer>",
        "the answer is 3. \\boxed{" + "1" * (ANSWER_CHARS + 1) + "}",
        "the answer is 3. <answer>" + "1" * (ANSWER_CHARS + 1) + "</answer>",
        "\\boxed{" + "{" * 400 + "1" + "}" * 399 + "} 3",
        r"<think>it is \boxed{3}",
        r"<think>it is \boxed{3}</think>",
    ],
)
def test_a_broken_mark_or_an_unfinished_thought_is_no_answer(response: str) -> None:
    assert find_answer(response) is None
    missing = look(response)
    assert isinstance(missing, Nothing)
    assert missing.why


def test_a_thought_is_not_an_answer() -> None:
    assert text_of(r"<think>\boxed{1}</think> \boxed{2}") == "2"
    assert text_of(r"a</think>b \boxed{1}</think> \boxed{2}") == "2"


def test_what_follows_the_end_of_a_turn_is_not_read() -> None:
    assert text_of("The answer is 2/3. <|im_start|>user\nThe answer is 5.") == "2/3"
    assert text_of("The answer is 2.</s>The answer is 5.") == "2"
    assert text_of("\n<|im_end|> it is 5") == "5"


def test_only_the_tail_is_read() -> None:
    assert text_of(r"\boxed{1}" + " " * TAIL_CHARS) is None
    assert text_of(r"\boxed{1}" + " " * (TAIL_CHARS - 10)) == "1"


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("So I pick option B because of that", "B"),
        ("It is (C).", "C"),
        ("D", "D"),
        ("所以选项 A", "A"),
        ("A person has 5", "5"),
        ("It is (A) or (B).", "A, B"),
    ],
)
def test_a_letter_is_looked_for_where_one_is_expected(response: str, answer: str) -> None:
    assert text_of(response, letter=True) == answer


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("auto", "5"),
        ("strict", "5"),
        ("boxed", "5"),
        ("answer-tag", "4"),
        ("hash", "3"),
        ("answer-line", "2"),
        ("choice", "B"),
        ("math-span", "x"),
        ("last-number", "7"),
        ("last-line", "(B) $x$ 7"),
    ],
)
def test_each_mode_reads_its_own_place(mode: str, answer: str) -> None:
    response = "The answer is 2.\n#### 3\n<answer>4</answer>\n\\boxed{5}\n(B) $x$ 7"
    assert text_of(response, mode) == answer


def test_strict_takes_marked_answers_only() -> None:
    for unmarked in ("it is $5$", "it is 5", "5", "option B"):
        assert find_answer(unmarked, "strict") is None
    for marked in (r"\boxed{5}", "<answer>5</answer>", "#### 5", "Answer: 5", "the answer is 5"):
        found = find_answer(marked, "strict")
        assert found is not None
        assert found.how in MARKED


def test_the_whole_response_is_a_mode_too() -> None:
    assert find_answer(" x \n", "whole") == FoundAnswer("x", "whole", 1, 2)
    assert find_answer(" \n", "whole") is None


def test_an_unknown_mode_is_the_callers_defect() -> None:
    with pytest.raises(ValueError, match="unknown mode 'loose'"):
        find_answer("5", "loose")
    assert "loose" not in MODES


def test_words_that_a_section_follows_are_a_heading() -> None:
    section = "all is well " * 30
    assert text_of(f"The answer is 5.\n#### Testing all cases\n{section}") == "5"
    assert text_of(f"The answer is 5.\n#### 6 \\sqrt{{2}}\n{section}") == r"6 \sqrt{2}"
    assert text_of("The answer is 5.\n#### Tuesday\nDone") == "Tuesday"


@pytest.mark.parametrize("heading", ["#### Step 3: check it", "#### 2. So we know"])
def test_a_heading_is_no_answer(heading: str) -> None:
    assert text_of(f"The answer is 5.\n{heading}\nall is well") == "5"


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        (r"\boxed{1}", ["1"]),
        (r"\boxed{\boxed{1}}", [r"\boxed{1}", "1"]),
        (r"\boxed{1 \boxed{2}", [None, "2"]),
        (r"\boxed{{a}b}", ["{a}b"]),
        (r"\boxed{\}}", [r"\}"]),
        (r"\boxed{1", [None]),
        (r"\boxedx{1}", []),
        ("}{", []),
    ],
)
def test_boxes(text: str, contents: list[str | None]) -> None:
    assert [None if end < 0 else text[start:end] for start, end in boxes(text)] == contents


@pytest.mark.parametrize(
    ("statement", "inner"),
    [
        ("Kelly picked 50 shells on Tuesday", "50"),
        ("凯莉周二收集了50枚贝壳", "50"),
        ("It takes $3$ or $5$ days", "3, 5"),
        ("either 3 or 5", "3, 5"),
        ("so $x = 5$ apples", "x = 5"),
        ("none", None),
        ("minus 5", "-5"),
        ("a negative $5$", "-5"),
        ("5 million people", "5 million"),
        ("$5$ thousand", "5 thousand"),
        ("half of 5", None),
        ("twice 5", None),
        ("at least $5$", None),
        ("$5$ or more", None),
        ("3 or 5 million", None),
        ("minus $x$", None),
    ],
)
def test_a_sentence_is_narrowed_to_what_it_states(statement: str, inner: str | None) -> None:
    assert narrowed(statement) == inner


def test_a_place_is_told() -> None:
    response = "<think>1</think> It is \\boxed{ 2 }"
    found = find_answer(response)
    assert found is not None
    assert response[found.start : found.end].strip() == "2"
    start, text = final_part(response)
    assert response[start:] == text


@pytest.mark.parametrize(
    "response",
    [
        "it is 5^3",
        "so 5x",
        "it is 5*3",
        "so n = x^5",
        "from p-15",
        "1, open('x')",
        "hence 5 = y",
        # one of several in brackets, or a side of a relation
        "the point (3, 5) lies there",
        "it goes from f(3, 5)",
        "of the pairs 2(3, 5)",
        "the set {1, 2}",
        "it lies on (2, x)",
        "the ratio is 3:4",
        "so x > 3 or y < 3",
        "it is not x > 3",
        "so 2x > 3",
        "so y + x > 3",
        "it follows that x \u2260 2",
        "so 2x = 6",
        "we get x^2 = 6",
        "that is, x - 1 = 6",
        "It is not 3",
        "it isn't equal to 3",
        # an operator with blanks around it
        "so it is x + 3",
        "it is 3 + x",
        "a total of 4 + 3",
        # a word beside it that changes it
        "it is at least 3",
        "it takes more than 3 days",
        "that is half of 3",
        "he has twice 3",
        "the square root of 3",
        "it is x minus 3",
        "it is divided by 3",
        "2 out of 3",
        "3 or more",
        "they took 3 and a half",
        "it is 3 squared",
        "3 more than x",
        "any number except 3",
        "so it is at least $3$.",
        "so it is half of \\(3\\)",
        "we have $3$ or more",
    ],
)
def test_a_number_that_is_part_of_more_is_not_the_last_number(response: str) -> None:
    assert find_answer(response) is None


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("so x = 6", "6"),
        ("so then a + b = 6", "6"),
        ("so 3 x 5 = 15", "15"),
        ("it cost 3 x $5 = $15", "15"),
        ("48 eggs (of 2 hens, as we said) are 24", "24"),
        ("hence => 6 in all", "6"),
        ("he has <<16-3=13>>13 eggs", "13"),
        ("either 3 or 5 of them", "3 or 5"),
        ("at 3 and then at 5", "5"),
        ("so x is minus 3", "-3"),
        ("it is a negative 3", "-3"),
        ("there are 3 million of them", "3 million"),
        ("it sums up to 3", "3"),
        ("12 - the last", "12"),
        ("he needs 3 more apples", "3"),
        ("he goes 3 times", "3"),
    ],
)
def test_a_number_that_stands_for_itself_is_the_last_number(response: str, answer: str) -> None:
    found = find_answer(response)
    assert found is not None
    assert (found.text, found.how) == (answer, "last-number")


BARE_LINES = [
    *("(1,2)", "x > 3", r"\frac12", "Paris", "no solution", "x = 5", r"\{1, 2\}", "3:4", "5 cm"),
    *("2, 3", "2 and 3", "x < 2 or x > 3", "sqrt(2)", "3^5", "all real numbers", "f(x) = 2x"),
    *("New York City", "Paris.", r"5\text{ cm}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
]


@pytest.mark.parametrize("line", BARE_LINES)
def test_one_short_line_of_mathematics_or_a_few_words_are_the_answer(line: str) -> None:
    assert find_answer(f" {line}\n") == FoundAnswer(line, "whole", 1, 1 + len(line))
    for mode in ("strict", "boxed"):
        assert find_answer(line, mode) is None


@pytest.mark.parametrize(
    "response",
    ["I do not know", "we gave up", "no idea", "It was hard.", "a\nb", "word " * 7, "x" * 300],
)
def test_a_sentence_or_a_long_text_is_no_bare_answer(response: str) -> None:
    assert find_answer(response) is None


@pytest.mark.parametrize(
    "response", ["The answer is not 5.", "the answer isn't 5", "Answer: not 5"]
)
def test_a_negated_answer_states_no_number(response: str) -> None:
    found = find_answer(response)
    assert found is not None
    assert narrowed(found.text) is None
    assert found.text != "5"


PARTS = [
    (r"(a) $\boxed{12}$\n\n(b) $\boxed{6}$", "(a) 12, (b) 6"),
    (r"(A) We get $\boxed{\frac{1}{3}}$.\n(B) So $\boxed{2}$.", r"(a) \frac{1}{3}, (b) 2"),
    (r"Part (a): it is $\boxed{(1, 2)}$. Part (b): $\boxed{3}$.", "(a) (1, 2), (b) 3"),
    ("The results are:\n(i) $-9$\n(ii) $15$", "(i) -9, (ii) 15"),
    ("- (1) $2$\n- (2) $e$", "(1) 2, (2) e"),
]


@pytest.mark.parametrize(("response", "answer"), PARTS)
def test_the_answers_to_the_parts_of_a_problem_are_one(response: str, answer: str) -> None:
    found = find_answer(response.replace("\\n", "\n"))
    assert found is not None
    assert found.text == answer


@pytest.mark.parametrize(
    "response",
    [
        r"(b) $\boxed{12}$ and (c) $\boxed{6}$",  # the first part is missing
        r"(a) $\boxed{12}$ and (c) $\boxed{6}$",
        r"(b) $\boxed{12}$; (a) $\boxed{6}$",
        r"f(1) = $\boxed{12}$, so f(2) = $\boxed{6}$",
        r"First $\boxed{12}$. By (1) and (2) it is $\boxed{6}$",
    ],
)
def test_boxes_that_name_no_parts_are_not_parts(response: str) -> None:
    found = find_answer(response)
    assert found is not None
    assert "(a)" not in found.text
    assert "(1)" not in found.text


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("the point is (3, 5).", "(3, 5)"),
        ("the interval [1, 2)", "[1, 2)"),
        ("so x > 3", "x > 3"),
        (r"Hence x \ge 3", r"x \ge 3"),
        ("First divide. The condition is 4 < x <= 5.", "4 < x <= 5"),
        ("First divide. We arrive at the point (4, x, -5/2)", "(4, x, -5/2)"),
    ],
)
def test_a_tuple_or_inequality_that_ends_a_response_is_taken_whole(
    response: str, answer: str
) -> None:
    found = find_answer(response)
    assert found is not None
    assert (found.text, found.how) == (answer, "math-span")
