r"""`assay.math.math_verify`: math-verify's names, by our grader; beside math-verify itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import math_verify
import pytest
import sympy

from assay.math import FaultError, Reading
from assay.math.math_verify import (
    ExprExtractionConfig,
    LatexExtractionConfig,
    StringExtractionConfig,
    parse,
    verify,
)

SUM, CLOSED = r"$\sum_{k=1}^{n} k^3$", r"$\frac{n^2(n+1)^2}{4}$"

# What both say, gold first.
SAME = [
    ("${1,3} \\cup {2,4}$", "${1,2,3,4}$", True),
    ("$\\frac{1}{2}$", "The answer is 0.5", True),
    ("$\\frac{1}{2}$", "The answer is 1/2", True),
    ("1/2", "0.5", True),
    ("1/3", "0.3333333", True),
    ("1/3", "0.3333", False),
    ("$\\sqrt{8}$", "so $2\\sqrt{2}$", True),
    ("$(x+1)^2$", "\\boxed{x^2+2x+1}", True),
    ("$(x+1)^2$", "\\boxed{x^2+2x+2}", False),
    ("$x < 1$", "$1 > x$", True),
    ("$[0,1)$", "$[0,1)$", True),
    ("$[0,1)$", "$(0,1)$", False),
    ("$\\{1,2\\}$", "$\\{2,1\\}$", True),
    ("$(1,2)$", "$(2,1)$", False),
    ("10%", "\\boxed{10\\%}", True),
    ("$x = 5$", "$5$", True),
    ("42", "It is 41, no, it is 42", True),
    ("\\boxed{7}", "first \\boxed{6}. No: it is \\boxed{7}", True),
    ("$10^{-8}$", "$2\\cdot 10^{-8}$", False),
    ("$\\begin{pmatrix}1\\\\2\\end{pmatrix}$", "$\\begin{pmatrix}1\\\\2\\end{pmatrix}$", True),
]


@pytest.mark.parametrize(("gold", "said", "equal"), SAME)
def test_both_say_the_same(gold: str, said: str, equal: bool) -> None:
    assert verify(parse(gold), parse(said)) is equal
    assert math_verify.verify(math_verify.parse(gold), math_verify.parse(said)) is equal


def test_what_stands_nowhere_is_an_empty_list() -> None:
    for text in ("", "no answer here", "\\boxed{"):
        assert parse(text) == []
    assert not verify(parse("3"), parse("no answer here"))


def test_a_parsed_answer_shows_its_text() -> None:
    (found,) = parse(r"so \boxed{\frac{1}{2}}")
    assert isinstance(found, Reading)
    assert str(found) == r"\frac{1}{2}"


@pytest.mark.parametrize("module", [math_verify, None])
def test_the_configs_of_either_library_are_taken(module: Any) -> None:
    latex = module.LatexExtractionConfig if module else LatexExtractionConfig
    plain = module.ExprExtractionConfig if module else ExprExtractionConfig
    letters = module.StringExtractionConfig if module else StringExtractionConfig
    assert [str(one) for one in parse("so 2 + 2 is 4", [plain()])] == ["4"]
    assert parse("It is 4", [latex()]) == []
    assert parse("It is $4$", [latex(try_extract_without_anchor=False)]) == []
    assert [str(one) for one in parse("It is $4$", [latex()])] == ["4"]
    assert parse(r"\boxed{4}", [latex(boxed_match_priority=-1)]) == []
    assert parse("The answer is B.", [letters()]) == ["b", "B"]
    assert parse("The answer is U.", [letters(strings=("U",), lowercase=False)]) == ["U", "U"]
    assert parse("none of them", [letters()]) == []


def test_numbers_texts_and_sympys_objects_are_taken() -> None:
    x = sympy.Symbol("x")
    assert verify(sympy.Rational(1, 2), parse("0.5"))
    assert verify(x**2 + 1, parse("$1+x^2$"))
    assert verify(sympy.Matrix([1, 2]), parse(r"$\begin{pmatrix}1\\2\end{pmatrix}$"))
    assert verify(5, "5")
    assert verify(Fraction(1, 2), "0.5")
    assert verify([sympy.Integer(3), "4"], ["5", 4])


def test_float_rounding_counts() -> None:
    assert verify(parse("1/3"), parse("0.333"), float_rounding=3)
    assert not verify(parse("1/3"), parse("0.333"), float_rounding=4)


def test_what_is_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match="strict=False is not offered"):
        verify(parse("$f(x)$"), parse("$f(y)$"), strict=False)


def test_a_fault_is_raised_or_said_to_be_false() -> None:
    gold, said = parse(CLOSED), parse(SUM)
    with pytest.raises(FaultError, match="ITEM_TIMEOUT"):
        verify(gold, said, timeout_seconds=1e-6)
    assert not verify(gold, said, timeout_seconds=1e-6, raise_on_error=False)
    assert verify(gold, said, timeout_seconds=60)


def in_a_thread(work: Callable[[], object]) -> object:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def test_the_time_holds_in_threads_where_math_verify_has_none() -> None:
    assert in_a_thread(lambda: verify(parse(CLOSED), parse(SUM), timeout_seconds=60))
    with pytest.raises(ValueError, match="threaded environment"):
        in_a_thread(lambda: math_verify.verify(math_verify.parse("1"), math_verify.parse("1")))


def test_trls_own_reward_function_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("trl.rewards.accuracy_rewards")
    said = [r"It is \boxed{\frac{1}{3}}", r"It is \boxed{0.5}", "It is 1/3", r"\boxed{2x+1}"]
    completions = [[{"role": "assistant", "content": text}] for text in said]
    solutions = [r"\frac{1}{3}", r"\frac{1}{3}", r"\frac{1}{3}", "$1+2x$"]
    theirs = module.accuracy_reward(completions, solutions)
    monkeypatch.setattr(module, "parse", parse)
    monkeypatch.setattr(module, "verify", verify)
    assert module.accuracy_reward(completions, solutions) == theirs == [1.0, 0.0, 0.0, 1.0]
    assert in_a_thread(lambda: module.accuracy_reward(completions, solutions)) == theirs
