r"""How answers with a structure are compared: equations, matrices, lines, pieces, sets, families.

Each line of math_structure.txt is a class, a reference and an answer, which is put in a box: what
is the same by a rule, and the counter-classes that the rule must not reach. They were written with
the rules, so they guard against going back and measure nothing.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.math import Policy, asked, grade, linear, sampling
from assay.math.judging import Rules, judged
from assay.math.nodes import Chain, Group, Matrix, Node, Symbol
from assay.math.outcomes import Judgement
from assay.math.reading import read
from assay.math.undone_work import leaves_work_undone


def pairs(section: str) -> list[tuple[str, ...]]:
    """Class, reference and answer of each line of a section."""
    text = Path(__file__).with_name("math_structure.txt").read_text(encoding="utf-8")
    lines = text.partition(f"== {section}\n")[2].partition("\n== ")[0].strip("\n").split("\n")
    return [tuple(line.split(" ||| ")) for line in lines if line]


def is_right(reference: str, answer: str, prompt: str | None = None) -> bool:
    rules = Rules(slow_tier=False)
    said = judged(f"\\boxed{{{answer}}}", [reference], rules, prompt=prompt)
    assert isinstance(said, Judgement), said
    return said.correct


@pytest.mark.parametrize(("kind", "reference", "answer"), pairs("same"))
def test_another_form_is_the_same_answer(kind: str, reference: str, answer: str) -> None:
    said = grade(f"\\boxed{{{answer}}}", reference, slow_tier=False, undone_work="accept")
    assert said.correct, (kind, said)
    assert grade(f"\\boxed{{{reference}}}", reference, slow_tier=False).correct


@pytest.mark.parametrize(("kind", "reference", "answer"), pairs("different"))
def test_what_looks_like_it_is_another_answer(kind: str, reference: str, answer: str) -> None:
    said = grade(f"\\boxed{{{answer}}}", reference, slow_tier=False, undone_work="accept")
    assert not said.correct, (kind, said)


def test_there_are_counter_classes_for_every_class() -> None:
    same, different = (
        {line[0].split()[0] for line in pairs(part)} for part in ("same", "different")
    )
    assert len(pairs("different")) > 150
    assert {
        "matrix",
        "vector",
        "line",
        "plane",
        "piecewise",
        "family",
        "set",
        "domain",
    } <= different
    assert {"matrix", "vector", "line", "plane", "piecewise", "family", "set", "domain"} <= same


# --- What the prompt asks for ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("If x + 1/x = 3, find $x^2$.", "x^2 = 5"),
        ("What is the value of $x^2$?", "x^2=5"),
        (r"Compute \(\sin x\) if x is acute.", r"\sin x = 5"),
        ("Determine $2x$ where x is a root.", "2x = 5"),
    ],
)
def test_what_is_asked_for_may_stand_before_the_value(prompt: str, answer: str) -> None:
    assert is_right("5", answer, prompt)
    assert not is_right("5", answer)
    assert not is_right("6", answer, prompt)


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Solve $x^2 = 5$ for x.", "x^2 = 5"),
        ("Find $x$ if $x^2 = 5$.", "x^2 = 5"),
        ("Find $x^2 + 1$.", "x^2 = 5"),
        ("We know what $x^2$ is. Find y.", "x^2 = 5"),
    ],
)
def test_an_equation_that_the_prompt_gives_is_left_to_solve(prompt: str, answer: str) -> None:
    assert not is_right("5", answer, prompt)


def test_a_question_without_end_is_read_in_bounded_time() -> None:
    assert not asked.states("x^2 = 5", "find x^2 x^2 " * 200_000)


# --- Matrices that are left to compute ------------------------------------------------------------

_A = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"
_B = r"\begin{pmatrix}2&4\\6&8\end{pmatrix}"


@pytest.mark.parametrize(
    ("answer", "reference", "undone"),
    [
        (f"{_A}+{_A}", _B, True),
        (f"{_A}^2", _B, True),
        (f"{_A}^{{-1}}", _B, True),
        (rf"\det{_A}", "-2", True),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "-2", True),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix} = -2", "-2", False),
        (f"2{_A}", _B, False),
        (f"{_A}^T", _B, False),
        (_B, f"2{_A}", False),
    ],
)
def test_matrices_that_are_left_to_compute(answer: str, reference: str, undone: bool) -> None:
    assert leaves_work_undone(answer, reference) is undone
    if undone:
        assert not is_right(reference, answer, "Compute it.")


# --- Laws -----------------------------------------------------------------------------------------

_SMALL = st.integers(-9, 9)
_ROWS = st.lists(st.lists(_SMALL, min_size=3, max_size=3), min_size=3, max_size=3)


def _written(rows: list[list[int]]) -> str:
    return (
        r"\begin{pmatrix}" + r"\\".join("&".join(map(str, row)) for row in rows) + r"\end{pmatrix}"
    )


def _entries(text: str) -> list[list[object]]:
    node = read(text).node
    assert isinstance(node, Matrix), node
    return [[linear.rational(entry) for entry in row] for row in node.rows]


@settings(max_examples=60, deadline=None)
@given(_ROWS, _ROWS)
def test_matrices_are_added_and_multiplied_as_by_hand(
    a: list[list[int]], b: list[list[int]]
) -> None:
    added = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(a, b, strict=True)]
    assert _entries(f"{_written(a)}+{_written(b)}") == added
    columns = list(zip(*b, strict=True))
    times = [
        [sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in a
    ]
    assert _entries(f"{_written(a)}{_written(b)}") == times
    assert _entries(rf"{_written(a)} \cdot {_written(b)}") == times


@settings(max_examples=60, deadline=None)
@given(_ROWS)
def test_an_inverse_undoes_its_matrix_and_a_determinant_multiplies(a: list[list[int]]) -> None:
    known = read(rf"\det{_written(a)}").node
    assert known is not None
    value = linear.rational(known)
    squared = read(rf"\det({_written(a)}^2)").node
    assert squared is not None
    assert value is not None
    assert linear.rational(squared) == value**2
    if value:
        one = _entries(f"{_written(a)}{_written(a)}^{{-1}}")
        assert one == [[int(row == column) for column in range(3)] for row in range(3)]
    else:
        assert not isinstance(read(f"{_written(a)}^{{-1}}").node, Matrix)


_POINT = st.tuples(_SMALL, _SMALL, _SMALL)


@settings(max_examples=80, deadline=None)
@given(_POINT, _POINT, st.integers(-5, 5), st.integers(1, 5), st.sampled_from("tsu"))
def test_any_point_and_any_multiple_of_the_direction_give_the_line(
    point: tuple[int, int, int], step: tuple[int, int, int], turns: int, scale: int, letter: str
) -> None:
    if not any(step):
        return
    further = tuple(p + turns * d for p, d in zip(point, step, strict=True))
    along = tuple(-scale * d for d in step)
    reference = f"{point}+t{step}"
    assert is_right(reference, f"{further}+{letter}{along}")
    beside = (point[0] + 1 + 7 * abs(step[1]) + 7 * abs(step[2]), *point[1:])
    if any(step[1:]):
        assert not is_right(reference, f"{beside}+{letter}{along}")


@settings(max_examples=60, deadline=None)
@given(_SMALL, st.integers(1, 4), st.integers(-3, 3), st.integers(1, 3), st.sampled_from("knm"))
def test_a_family_is_the_same_shifted_and_split(
    base: int, period: int, shift: int, split: int, letter: str
) -> None:
    def family(*items: tuple[int, int], index: str) -> str:
        listed = ", ".join(rf"\frac{{{b}\pi}}{{6}}+{p}{index}\pi" for b, p in items)
        return listed + rf", {index}\in\mathbb{{Z}}"

    reference = family((base, period), index="k")
    shifted = base + 6 * period * shift
    parts = [(shifted + 6 * period * at, period * split) for at in range(split)]
    assert is_right(reference, family(*parts, index=letter))
    assert not is_right(reference, family((base + 1, period), index=letter))
    assert not is_right(reference, family((base, period + 1), index=letter))
    if split > 1:
        assert not is_right(reference, family(*parts[1:], index=letter))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=4, unique=True))
def test_the_order_of_pieces_does_not_matter(ends: list[int]) -> None:
    ends.sort()
    rows = [rf"{at}x & {low}\le x<{high}" for at, (low, high) in enumerate(pairwise(ends))]
    rows.append(r"x^2 & \text{otherwise}")
    turned = rows[::-1]
    one, other = (
        r"\begin{cases}" + r"\\".join(listed) + r"\end{cases}" for listed in (rows, turned)
    )
    assert is_right(one, other)
    moved = other.replace(rf"{ends[0]}\le x", f"{ends[0]}<x")
    assert not is_right(one, moved) or ends[0] == 0


def test_what_passes_the_limits_stays_as_it_was_written() -> None:
    side = linear.MAX_SIDE + 1
    large = r"\begin{pmatrix}" + r"\\".join(["&".join(["1"] * side)] * side) + r"\end{pmatrix}"
    node = read(f"{large}{large}").node
    assert not isinstance(node, Matrix)
    assert not isinstance(read(f"{_A}^{{{linear.MAX_POWER + 1}}}").node, Matrix)


def test_a_tuple_beside_a_tuple_is_no_product() -> None:
    node = read("(1,2)(3,4)").node
    assert not isinstance(node, Group | Matrix)


def test_a_capital_before_a_tuple_names_a_point() -> None:
    node: Node | None = read("A(1,2)").node
    assert isinstance(node, Chain)
    assert node.operands[0] == Symbol("A")


def test_names_are_kept_where_the_policy_says_so() -> None:
    strict = Policy(strip_name=False)
    assert not grade(r"\boxed{A(1,2)}", "(1,2)", slow_tier=False, policy=strict).correct


def test_points_far_from_zero_cost_little_whatever_is_summed() -> None:
    body = "+".join(f"(x+i)^{{{power}}}" for power in range(2, 22))
    left, right = (
        read(text).node for text in (f"|x|+\\sum_{{i=1}}^{{190}}({body})", f"|x|+{body}")
    )
    assert left is not None
    assert right is not None
    assert sampling.far_apart(left, right, frozenset("x")) is None


_FOR = "Find an equation in $t$ whose solution set is exactly the set of the two numbers above."
PROMPTED = [
    (_FOR, "4, 8", "t^2 - 12t + 32 = 0"),
    (_FOR, r"\{4, 8\}", "(t - 4)(t - 8) = 0"),
    (_FOR, r"\pm 4", "t^2 = 16"),
    (
        "Give a quadratic equation with the roots 4 and 8.",
        "x = 4 \\text{ or } x = 8",
        "x^2 = 12x - 32",
    ),
    ("Simplify for $t > 0$.", "1 - 4t", "1 - 4|t|"),
    (r"Simplify, where $x, y \ge 0$.", "x + y", r"\sqrt{x^2} + |y|"),
    ("Simplify for positive real numbers $x$.", "x^3", r"\sqrt{x^6}"),
    ("Which number is it? Any base may be used.", "(2112120)_3", "1851"),
    ("Answer in any base.", "1E9_{16}", "(489)_{10}"),
    ("Answer in any base.", "29", "0b11101"),
]


@pytest.mark.parametrize(("prompt", "reference", "answer"), PROMPTED)
def test_what_a_prompt_says_of_all_answers_counts(prompt: str, reference: str, answer: str) -> None:
    assert is_right(reference, answer, prompt)
    assert not is_right(reference, answer)
    assert not is_right(reference, answer, "What is it?")
    assert grade(f"\\boxed{{{answer}}}", reference, prompt=prompt, slow_tier=False).correct
    assert not is_right(f"2 + {reference}", answer, prompt)


@pytest.mark.parametrize(
    ("prompt", "reference", "answer"),
    [
        (_FOR, "4, 8", "t - 4 = 0"),
        (_FOR, "4, 8", "(t - 4)(t - 8)(t - 1) = 0"),
        (_FOR, "4, 8", "t = t"),
        (_FOR, "4, 8", "(t - 4)(t + 8) = 0"),
        (_FOR, "4, 8", "(t - 4)(t - s) = 0"),
        ("Solve the equation $t^2 = 16$.", r"\pm 4", "t^2 = 16"),
        ("Find the solutions of the equation.", "4, 8", "(t - 4)(t - 8) = 0"),
        ("Simplify for $t < 0$.", "1 - 4t", "1 - 4|t|"),
        ("Simplify for $s > 0$.", "1 - 4t", "1 - 4|t|"),
        ("Simplify for $t > 0$.", "1 - 4t", "1 + 4|t|"),
        ("Write it in base 3.", "(2112120)_3", "1851"),
        ("Answer in any base.", "1E9_{16}", "(488)_{10}"),
        ("Answer in any base.", "29", "11101"),
        ("In any base 3 number", "29", "0b11101"),
    ],
)
def test_another_prompt_does_not(prompt: str, reference: str, answer: str) -> None:
    assert not is_right(reference, answer, prompt)
