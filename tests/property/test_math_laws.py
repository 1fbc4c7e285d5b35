r"""Laws of reading and comparing mathematics, against an oracle of our own.

Expressions are made as trees, so that their value is known exactly (`Fraction`, or a polynomial
with whole coefficients), and printed in LaTeX or ASCII in one of many ways. What is equal has to be
accepted in every print, and what is not equal in none.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise, product
from random import Random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from assay.math import Policy, compare, read

SETTINGS = settings(max_examples=80, deadline=None)


DEFAULT = Policy()


def equal(reference: str, answer: str, policy: Policy = DEFAULT) -> bool | None:
    """Whether the quick tiers take the answer for the reference; None is undecided."""
    return compare(read(reference, policy), read(answer, policy), policy).equal


# --- Trees with known values ----------------------------------------------------------------------

Monomials = dict[tuple[int, int], Fraction]  # exponents of x and y to coefficient


@dataclass(frozen=True)
class Printed:
    """An expression in LaTeX and in ASCII, how tightly it binds, and its value.

    Attributes:
        latex: in LaTeX.
        ascii: as a programmer would type it.
        binding: 0 a sum, 1 a product or a sign, 2 a power or an atom.
        value: as a polynomial in x and y.
    """

    latex: str
    ascii: str
    binding: int
    value: tuple[tuple[tuple[int, int], Fraction], ...]

    def monomials(self) -> Monomials:
        return dict(self.value)

    def wrapped(self, least: int) -> Printed:
        """In parentheses where it binds less tightly than `least`."""
        if self.binding >= least:
            return self
        return Printed(f"\\left({self.latex}\\right)", f"({self.ascii})", 2, self.value)


def polynomial(monomials: Monomials) -> tuple[tuple[tuple[int, int], Fraction], ...]:
    return tuple(sorted((key, value) for key, value in monomials.items() if value))


def added(left: Monomials, right: Monomials, sign: int = 1) -> Monomials:
    return {k: left.get(k, Fraction()) + sign * right.get(k, Fraction()) for k in {*left, *right}}


def multiplied(left: Monomials, right: Monomials) -> Monomials:
    product: Monomials = {}
    for (a, b), p in left.items():
        for (c, d), q in right.items():
            product[a + c, b + d] = product.get((a + c, b + d), Fraction()) + p * q
    return product


def whole(n: int) -> Printed:
    return Printed(str(n), str(n), 2 if n >= 0 else 0, polynomial({(0, 0): Fraction(n)}))


def variable(name: str) -> Printed:
    return Printed(name, name, 2, (((int(name == "x"), int(name == "y")), Fraction(1)),))


def sum_of(left: Printed, right: Printed, sign: int) -> Printed:
    right = right.wrapped(1)
    mark = "+" if sign > 0 else "-"
    value = polynomial(added(left.monomials(), right.monomials(), sign))
    return Printed(
        f"{left.latex} {mark} {right.latex}", f"{left.ascii}{mark}{right.ascii}", 0, value
    )


def product_of(left: Printed, right: Printed, way: str) -> Printed:
    left, right = left.wrapped(1), right.wrapped(2)
    value = polynomial(multiplied(left.monomials(), right.monomials()))
    latex = f"{left.latex} {way} {right.latex}"
    return Printed(latex, f"{left.ascii}*{right.ascii}", 1, value)


def quotient_of(left: Printed, right: Printed, way: str) -> Printed:
    divisor = right.monomials().get((0, 0), Fraction())
    assume(divisor != 0 and set(right.monomials()) <= {(0, 0)})
    value = polynomial(multiplied(left.monomials(), {(0, 0): 1 / divisor}))
    top, bottom = left.wrapped(2), right.wrapped(2)
    return Printed(
        f"{way}{{{left.latex}}}{{{right.latex}}}", f"({top.ascii}/{bottom.ascii})", 2, value
    )


def power_of(base: Printed, exponent: int, braces: bool) -> Printed:
    base = base.wrapped(2)
    assume("^" not in base.latex[-4:])
    factors = [base.monomials()] * exponent
    value = polynomial(reduce(multiplied, factors, {(0, 0): Fraction(1)}))
    written = f"{{{exponent}}}" if braces else str(exponent)
    inner = Printed(f"\\left({base.latex}\\right)", f"({base.ascii})", 2, base.value)
    return Printed(f"{inner.latex}^{written}", f"{inner.ascii}**{exponent}", 1, value)


WHOLE = st.integers(-30, 30).map(whole)
PLACES = st.sampled_from(["\\cdot", "\\times"])
FRACTIONS = st.sampled_from(["\\frac", "\\dfrac", "\\tfrac"])


def trees(atoms: st.SearchStrategy[Printed]) -> st.SearchStrategy[Printed]:
    return st.recursive(
        atoms,
        lambda inner: (
            st.builds(sum_of, inner, inner, st.sampled_from([1, -1]))
            | st.builds(product_of, inner, inner, PLACES)
            | st.builds(quotient_of, inner, WHOLE, FRACTIONS)
            | st.builds(power_of, inner, st.integers(1, 3), st.booleans())
        ),
        max_leaves=6,
    )


NUMBERS = trees(WHOLE)
POLYNOMIALS = trees(WHOLE | st.sampled_from("xy").map(variable))


def constant(printed: Printed) -> Fraction:
    return printed.monomials().get((0, 0), Fraction())


def written(value: Fraction) -> str:
    """A rational as people write it."""
    sign = "-" if value < 0 else ""
    if value.denominator == 1:
        return f"{sign}{abs(value.numerator)}"
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def expanded(monomials: Monomials) -> str:
    """A polynomial as a sum of its terms, in the order of the dictionary."""
    terms = []
    for (a, b), coefficient in monomials.items():
        if coefficient:
            powers = (f"x^{{{a}}}" if a else "") + (f"y^{{{b}}}" if b else "")
            terms.append(f"{written(coefficient)}{powers}")
    return "+".join(terms).replace("+-", "-") or "0"


@SETTINGS
@given(NUMBERS, st.booleans())
def test_a_computation_equals_its_value(tree: Printed, in_latex: bool) -> None:
    text = tree.latex if in_latex else tree.ascii
    assert equal(written(constant(tree)), text) is True
    assert equal(text, written(constant(tree))) is True


@SETTINGS
@given(NUMBERS, st.fractions(max_denominator=50).filter(bool), st.booleans())
def test_a_computation_equals_no_other_value(
    tree: Printed, off_by: Fraction, in_latex: bool
) -> None:
    text = tree.latex if in_latex else tree.ascii
    other = written(constant(tree) + off_by)
    assert equal(other, text) is False
    assert equal(text, other) is False


@SETTINGS
@given(POLYNOMIALS, st.booleans(), st.randoms(use_true_random=False))
def test_an_expression_equals_its_expansion(tree: Printed, in_latex: bool, random: Random) -> None:
    terms = list(tree.monomials().items())
    random.shuffle(terms)
    assert equal(expanded(dict(terms)), tree.latex if in_latex else tree.ascii) is True


@SETTINGS
@given(
    POLYNOMIALS,
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.fractions(-3, 3, max_denominator=7).filter(bool),
)
def test_an_expression_equals_no_other_polynomial(
    tree: Printed, where: tuple[int, int], off_by: Fraction
) -> None:
    other = expanded(added(tree.monomials(), {where: off_by}))
    assert equal(other, tree.latex) is False
    assert equal(other, tree.ascii) is False


@SETTINGS
@given(POLYNOMIALS, POLYNOMIALS)
def test_two_expressions_are_equal_as_their_polynomials_are(left: Printed, right: Printed) -> None:
    assert equal(left.latex, right.latex) is (left.value == right.value)


# --- Rational numbers in their many prints --------------------------------------------------------

RATIONALS = st.fractions(-(10**6), 10**6, max_denominator=10**4)
DECIMALS = st.decimals(-(10**9), 10**9, allow_nan=False, places=6).map(Fraction)


def decimal(value: Fraction) -> str:
    """A terminating decimal of at most six places, without a float."""
    digits = f"{abs(value * 10**6).numerator:07d}"
    return f"{'-' if value < 0 else ''}{digits[:-6]}.{digits[-6:]}"


def prints(value: Fraction) -> list[str]:
    """Ways to write a rational, all equal to it."""
    sign, n, d = "-" if value < 0 else "", abs(value.numerator), value.denominator
    ways = [written(value), f"{sign}{n}/{d}", f"{sign}\\dfrac{{{3 * n}}}{{{3 * d}}}"]
    ways += [f"\\frac{{{sign}{n}}}{{{d}}}", f"{sign}({n})/({d})", f"{sign}\\frac{{{n}}}{{{d}}}"]
    if d > 1 and n > d:
        ways += [f"{sign}{n // d}\\frac{{{n % d}}}{{{d}}}", f"{sign}{n // d} {n % d}/{d}"]
    if d == 1:
        ways += [f"{sign}{n:,}", f"{sign}{n}.0", f"{sign}{n:,}".replace(",", "{,}")]
        ways += [f"{sign}{n}\\times 10^{{0}}", f"\\text{{{sign}{n}}}"]
    return ways


@SETTINGS
@given(RATIONALS)
@example(Fraction(0))
@example(Fraction(1234567))
def test_all_prints_of_a_rational_are_equal_to_each_other(value: Fraction) -> None:
    ways = prints(value)
    assert [equal(ways[0], way) for way in ways] == [True] * len(ways)
    assert [equal(way, ways[0]) for way in ways] == [True] * len(ways)
    assert [equal(a, b) for a, b in pairwise(ways)] == [True] * (len(ways) - 1)


@SETTINGS
@given(RATIONALS, RATIONALS)
def test_no_print_of_a_rational_equals_another_rational(left: Fraction, right: Fraction) -> None:
    assume(left != right)
    assert not any(equal(written(left), way) for way in prints(right))


@SETTINGS
@given(DECIMALS, st.integers(1, 40))
def test_decimals_are_compared_exactly(value: Fraction, places: int) -> None:
    plain = decimal(value)
    assert equal(plain, written(value)) is True
    assert equal(written(value), plain) is True
    assert equal(plain, plain + "0" * places) is True
    assert equal(plain, plain + "0" * (places - 1) + "1") is False
    assert equal(written(value), plain + "0" * (places - 1) + "1") is False


@SETTINGS
@given(st.integers(1, 10**9), st.integers(0, 300), st.integers(-300, 300))
def test_powers_of_ten_are_exact(digits: int, zeros: int, exponent: int) -> None:
    assert equal(str(digits) + "0" * zeros, f"{digits} \\times 10^{{{zeros}}}") is True
    assert equal(f"{digits}e{exponent}", f"{digits} \\cdot 10^{{{exponent}}}") is True
    assert equal(f"{digits}e{exponent}", f"{digits} \\cdot 10^{{{exponent + 1}}}") is False


@SETTINGS
@given(st.integers(0, 10**12), st.integers(1, 10**6))
def test_large_whole_numbers_have_no_tolerance(n: int, off_by: int) -> None:
    large = n + 10**30
    assert equal(str(large), str(large + off_by)) is False
    assert equal(f"{large}\\sqrt{{2}}", f"{large + off_by}\\sqrt{{2}}") is not True


@SETTINGS
@given(RATIONALS.filter(lambda q: q not in (0, 1)), st.sampled_from([100, 10, 1000]))
def test_no_factor_of_ten_is_forgiven(value: Fraction, factor: int) -> None:
    assert equal(written(value), written(value * factor)) is False
    assert equal(written(value * factor), written(value)) is False


# --- Radicals and constants -----------------------------------------------------------------------


@SETTINGS
@given(st.integers(2, 40), st.integers(2, 40))
def test_radicals_move_their_factors(a: int, b: int) -> None:
    ways = [f"\\sqrt{{{a * a * b}}}", f"{a}\\sqrt{{{b}}}", f"\\sqrt{{{b}}}\\cdot {a}"]
    ways += [
        f"{a}*sqrt({b})",
        f"{a}√{b}",
        f"{a}\\cdot {b}^{{1/2}}",
        f"\\frac{{{a * b}}}{{\\sqrt{{{b}}}}}",
    ]
    assert [equal(ways[1], way) for way in ways] == [True] * len(ways)
    assert equal(f"{a}\\sqrt{{{b}}}", f"{a}\\sqrt[3]{{{b}}}") is False
    assert equal(f"{a}\\sqrt{{{b}}}", f"{a}\\sqrt{{{b + 1}}}") is False
    assert equal(f"{a}\\sqrt{{{b}}}", f"{a * b}") is False
    assert equal(f"{a}\\sqrt{{{b}}}", f"-{a}\\sqrt{{{b}}}") is False


@SETTINGS
@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from(["\\pi", "e", "\\sqrt{7}", "i"]))
def test_constants_are_factors(n: int, d: int, constant_: str) -> None:
    ways = [f"\\frac{{{n}{constant_}}}{{{d}}}", f"\\frac{{{n}}}{{{d}}}{constant_}"]
    ways += [f"{constant_} \\cdot \\frac{{{n}}}{{{d}}}", f"\\frac{{{2 * n}{constant_}}}{{{2 * d}}}"]
    assert [equal(ways[0], way) for way in ways] == [True] * len(ways)
    assert equal(ways[0], f"\\frac{{{n}}}{{{d}}}") is False
    assert equal(ways[0], f"\\frac{{{n + 1}{constant_}}}{{{d}}}") is False
    assert equal(f"\\frac{{{n}}}{{{d}}}", ways[0]) is False


# --- Reflexive, symmetric, invariant --------------------------------------------------------------

ATOMS = (
    RATIONALS.map(written)
    | st.sampled_from(["x", "2\\pi", "\\sqrt{3}", "-e", "x^2-1", "3+4i", "\\frac{a}{b}", "n!"])
    | DECIMALS.map(decimal)
)


def joined(opening: str, closing: str) -> st.SearchStrategy[str]:
    parts = st.lists(ATOMS, min_size=2, max_size=4)
    return parts.map(lambda items: opening + ", ".join(items) + closing)


def matrix(entries: Sequence[Sequence[str]], environment: str = "pmatrix") -> str:
    body = " \\\\ ".join(" & ".join(row) for row in entries)
    return f"\\begin{{{environment}}} {body} \\end{{{environment}}}"


MATRICES = st.lists(st.lists(ATOMS, min_size=2, max_size=2), min_size=1, max_size=3)
ENDS = st.tuples(st.integers(-50, 50), st.integers(1, 50)).map(lambda e: (e[0], e[0] + e[1]))
INTERVALS = st.builds(
    lambda o, e, c: f"{o}{e[0]}, {e[1]}{c}", st.sampled_from("(["), ENDS, st.sampled_from(")]")
)
WORDS = st.text(string.ascii_lowercase, min_size=4, max_size=9).map(
    lambda word: f"\\text{{{word}}}"
)
EQUATIONS = st.builds(lambda a, b: f"y = {a}x + {b}", st.integers(2, 9), st.integers(1, 9))
EXACT = ATOMS | joined("(", ")") | joined("\\{", "\\}") | MATRICES.map(matrix) | INTERVALS
ANSWERS = (
    EXACT
    | WORDS
    | EQUATIONS
    | joined("", "")
    | st.sampled_from("ABCDE")
    | NUMBERS.map(lambda t: t.latex)
)


@SETTINGS
@given(ANSWERS)
def test_every_answer_equals_itself(answer: str) -> None:
    assert equal(answer, answer) is True


@SETTINGS
@given(EXACT, EXACT)
def test_exact_comparison_is_symmetric(left: str, right: str) -> None:
    assert equal(left, right) == equal(right, left)


WRAPPINGS = {
    "spaces": "  {}  ",
    "line ends": "\n{}\n",
    "dollars": "${}$",
    "two dollars": "$${}$$",
    "brackets": "\\[{}\\]",
    "parentheses": "\\({}\\)",
    "box": "\\boxed{{{}}}",
    "box in dollars": "$\\boxed{{{}}}$",
    "full stop": "{}.",
    "thin space": "\\,{}\\,",
    "display style": "\\displaystyle {}",
}


@SETTINGS
@given(ANSWERS, st.sampled_from(sorted(WRAPPINGS)))
def test_wrapping_changes_nothing(answer: str, way: str) -> None:
    wrapped = WRAPPINGS[way].format(answer)
    assert equal(answer, wrapped) is True
    assert equal(wrapped, answer) is True


@SETTINGS
@given(EXACT, EXACT, st.sampled_from(sorted(WRAPPINGS)))
def test_wrapping_makes_nothing_equal(left: str, right: str, way: str) -> None:
    assert equal(left, WRAPPINGS[way].format(right)) == equal(left, right)


REWRITINGS = {
    "display fractions": ("\\frac", "\\dfrac"),
    "text fractions": ("\\frac", "\\tfrac"),
    "large parentheses": ("(", "\\left("),
    "no spaces": (", ", ","),
    "more spaces": (",", " , "),
    "Unicode minus": ("-", "\N{MINUS SIGN}"),
    "large braces": ("\\{", "\\left\\{"),
}


@SETTINGS
@given(EXACT, st.sampled_from(sorted(REWRITINGS)))
def test_rewriting_changes_nothing(answer: str, way: str) -> None:
    old, new = REWRITINGS[way]
    other = answer.replace(old, new)
    if new.startswith("\\left"):
        closing = ")" if new.endswith("(") else "\\}"
        assume(answer.count(old) == answer.count(closing))
        other = other.replace(closing, "\\right" + closing)
    assert equal(answer, other) is True


@SETTINGS
@given(ANSWERS)
def test_a_normal_form_is_its_own_normal_form(answer: str) -> None:
    form = read(answer).form
    assert read(form).form == form


# --- Collections ----------------------------------------------------------------------------------

DISTINCT = st.lists(st.integers(-99, 99), min_size=2, max_size=6, unique=True)


def listed(items: Sequence[object]) -> str:
    return ", ".join(map(str, items))


@SETTINGS
@given(DISTINCT, st.randoms(use_true_random=False))
def test_sets_have_no_order_and_tuples_have(items: list[int], random: Random) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)
    assert equal(f"\\{{{listed(items)}\\}}", f"\\{{{listed(shuffled)}\\}}") is True
    assert equal(f"({listed(items)})", f"({listed(shuffled)})") is (items == shuffled)


@SETTINGS
@given(DISTINCT, st.integers(100, 999))
def test_subsets_and_supersets_are_something_else(items: list[int], other: int) -> None:
    more = [*items, other]
    for form in ("\\{{{}\\}}", "({})", "{}"):
        assert equal(form.format(listed(items)), form.format(listed(more))) is False
        assert equal(form.format(listed(more)), form.format(listed(items))) is False
    assert equal(f"\\{{{listed(items)}\\}}", f"\\{{{listed([*items[1:], other])}\\}}") is False


HEDGES = (
    *("{0}, {1}", "{0} \\text{{ or }} {1}", "{0} or {1}", "{0} \\text{{ and }} {1}", "{0}; {1}"),
    *("\\{{{0}, {1}\\}}", "({0}, {1})", "[{0}, {1}]", "{0} \\vee {1}", "{0} \\pm {1}", "{0} = {1}"),
    *("{0} \\text{{ to }} {1}", "\\text{{either }} {0} \\text{{ or }} {1}", "{0} \\ne {1}"),
    *("{0} \\text{{ (or }} {1})", "{0} \\quad {1}", "{0} < {1}", "\\frac{{{0}}}{{{1}}}", "{0}/{1}"),
    *("\\begin{{cases}} {0} \\\\ {1} \\end{{cases}}", "{0} \\cup {1}", "{0}:{1}", "{0}..{1}"),
)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 10**6), st.integers(2, 10**6))
def test_no_hedge_is_right(right: int, other: int) -> None:
    assume(right != other and Fraction(right, other) != right)
    said = {form: equal(str(right), form.format(right, other)) for form in HEDGES}
    said |= {form + "!": equal(str(right), form.format(other, right)) for form in HEDGES}
    assert [form for form, verdict in said.items() if verdict] == []


@SETTINGS
@given(ENDS, st.sampled_from("(["), st.sampled_from(")]"))
def test_intervals_are_inequalities_and_their_brackets_count(
    ends: tuple[int, int], opening: str, closing: str
) -> None:
    low, high = ends
    interval = f"{opening}{low}, {high}{closing}"
    lower, upper = "<" if opening == "(" else "\\le", "<" if closing == ")" else "\\leq"
    assert equal(interval, f"{low} {lower} x {upper} {high}") is True
    assert equal(f"{low} {lower} x {upper} {high}", interval) is True
    assert equal(interval, f"x \\in {interval}") is True
    swapped = f"{'[' if opening == '(' else '('}{low}, {high}{closing}"
    assert equal(interval, swapped) is False
    assert equal(interval, f"{opening}{low}, {high + 1}{closing}") is False


@SETTINGS
@given(st.lists(st.tuples(ENDS, st.booleans()), min_size=2, max_size=3))
def test_unions_have_no_order(parts: list[tuple[tuple[int, int], bool]]) -> None:
    shifted = [(a + 200 * i, b + 200 * i, closed) for i, ((a, b), closed) in enumerate(parts)]
    texts = [f"({a}, {b}{']' if closed else ')'}" for a, b, closed in shifted]
    union, backwards = " \\cup ".join(texts), " \\cup ".join(texts[::-1])
    assert equal(union, backwards) is True
    assert equal(union, " \\cup ".join(texts[1:])) is False
    assert equal(" \\cup ".join(texts[1:]), union) is False


@SETTINGS
@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(-9, 9), min_size=width, max_size=width), min_size=2, max_size=3
        )
    ),
    st.integers(1, 9),
)
def test_matrices_are_compared_entry_by_entry(entries: list[list[int]], off_by: int) -> None:
    texts = [[str(n) for n in row] for row in entries]
    changed = [*texts[:-1], [*texts[-1][:-1], str(entries[-1][-1] + off_by)]]
    assert equal(matrix(texts), matrix(texts, "bmatrix")) is True
    assert equal(matrix(texts), matrix(changed)) is False
    transposed = [list(column) for column in zip(*texts, strict=True)]
    assert equal(matrix(texts), matrix(transposed)) is (texts == transposed)


@SETTINGS
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30), st.integers(2, 9))
def test_equations_may_be_turned_and_scaled_and_not_changed(a: int, b: int, c: int, k: int) -> None:
    line = f"{a}x + {b}y = {c}"
    assert equal(line, f"{c} = {b}y + {a}x") is True
    assert equal(line, f"{k * a}x + {k * b}y - {k * c} = 0") is True
    assert equal(line, f"{a}x + {b}y = {c + k}") is False
    assert equal(line, f"{a}x - {b}y = {c}") is False
    assert equal(line, f"{a}x + {b}y \\ne {c}") is False
    assert equal(line, f"{a}x + {b}y > {c}") is False


@pytest.mark.parametrize("sign", ["<", ">", "\\le", "\\ge", "\\ne"])
def test_a_bound_is_neither_its_number_nor_another_bound(sign: str) -> None:
    assert equal("5", f"x {sign} 5") is not True
    assert equal("5", f"{sign} 5") is not True
    assert equal(f"x {sign} 5", "5") is not True
    for other in {"<", ">", "\\le", "\\ge", "\\ne", "="} - {sign}:
        assert equal(f"x {sign} 5", f"x {other} 5") is not True


# --- Knobs ----------------------------------------------------------------------------------------


@SETTINGS
@given(RATIONALS.filter(bool), st.sampled_from([1e-6, 1e-3, 0.05]))
def test_a_tolerance_holds_on_both_sides_and_no_further(value: Fraction, tolerance: float) -> None:
    policy = Policy(relative_tolerance=tolerance)
    share = Fraction(tolerance)
    for sign in (1, -1):
        within, beyond = value * (1 + sign * share / 2), value * (1 + sign * share * 2)
        assert equal(written(value), written(within), policy) is True
        assert equal(written(value), written(beyond), policy) is False


@SETTINGS
@given(st.integers(0, 10**6), st.integers(0, 999))
def test_percent_is_never_a_factor_of_a_hundred_without_its_sign(n: int, thousandths: int) -> None:
    number = f"{n}.{thousandths:03d}"
    assume(n or thousandths)
    assert equal(f"{number}\\%", f"{number}%") is True
    assert equal(f"{number}", f"{n * 100 + thousandths // 10}.{thousandths % 10}") is False
    assert equal(f"{number}\\%", f"{n * 100 + thousandths // 10}.{thousandths % 10}") is False


MIXED = [
    f"{{}}{gap}\\{way}{{{{{{}}}}}}{{{{{{}}}}}}"
    for gap, way in product(("", " ", "\\,"), ("frac", "dfrac", "tfrac"))
] + ["{} {}/{}"]
UNITS_BEHIND = [
    *((r"^\circ", sign) for sign in (r"^{\circ}", r"\degree", "°", r"\text{ degrees}", " degrees")),
    *((r"\%", sign) for sign in ("%", r"\,\%", " %", r"\text{ percent}", " percent")),
    (r"^\circ C", r"^{\circ}\text{C}"),
    (r"\text{ cm}", r"\,\mathrm{cm}"),
]


@SETTINGS
@given(
    st.integers(1, 400),
    st.fractions(Fraction(1, 99), Fraction(98, 99), max_denominator=99),
    st.sampled_from(["", "-"]),
    st.sampled_from(MIXED),
    st.sampled_from(UNITS_BEHIND),
)
def test_a_unit_belongs_to_the_whole_of_a_mixed_number(
    size: int, part: Fraction, sign: str, way: str, units: tuple[str, str]
) -> None:
    mixed = sign + way.format(size, part.numerator, part.denominator)
    value, other = (f"{sign}{written(each)}" for each in (size + part, size * part))
    for plain, unit in (("", ""), units, (units[0], units[0])):
        assert equal(f"{value}{plain}", f"{mixed}{unit}") is True
        assert equal(f"{mixed}{unit}", f"{value}{plain}") is True
        assert equal(f"{other}{plain}", f"{mixed}{unit}") is False
        assert equal(f"{mixed}{unit}", f"{other}{plain}") is False
