# ruff: noqa: RUF001 - look-alike signs are what some cases are about
"""Golden tables of the maths engine: which answers are one, by class of form.

Sources: "own" are cases of this project. "Hendrycks" is `is_equiv` of hendrycks/math (arXiv
2103.03874), "PRM800K" the grader of openai/prm800k (arXiv 2305.20050), "math-verify" the classes
its README lists; from each the behaviour that a class of form shows is taken, with values of ours.
"""

from __future__ import annotations

import time

import pytest

from assay.math import Policy, compare, read

# class, reference, answer
SAME = [
    ("Hendrycks: short fractions", r"\frac12", r"\frac{1}{2}"),
    ("Hendrycks: dfrac and tfrac", r"\tfrac{3}{4}", r"\dfrac{3}{4}"),
    ("Hendrycks: slash", r"\frac{3}{4}", "3/4"),
    ("Hendrycks: left and right", r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})"),
    ("Hendrycks: leading zero", "0.5", ".5"),
    ("Hendrycks: bare root", r"\sqrt3", r"\sqrt{3}"),
    ("Hendrycks: dollars", "10", r"\$10"),
    ("Hendrycks: percent sign", r"50\%", "50%"),
    ("Hendrycks: degrees", r"90^\circ", "90"),
    ("Hendrycks: name before value", "k=5", "5"),
    ("Hendrycks: text unit", r"5\text{ cm}", "5"),
    ("PRM800K: thousands", "10,080", "10080"),
    ("PRM800K: mixed number", "7/2", r"3\frac{1}{2}"),
    ("PRM800K: expression", r"x^2-8x+7", "(x-7)(x-1)"),
    ("PRM800K: tuple", r"(1,\frac{9}{2})", "(1.0, 4.5)"),
    ("math-verify: sets", r"\{1,2,3\}", r"\{3,1,2\}"),
    ("math-verify: intervals", r"(-\infty,1)\cup(2,\infty)", r"(2,+\infty)\cup(-\infty,1)"),
    ("math-verify: inequality and interval", "0<x<12.5", "(0,12.5)"),
    ("math-verify: flipped inequality", r"x \le 5", r"5 \ge x"),
    ("math-verify: matrices", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
     r"\left[\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right]"),
    ("math-verify: unicode", r"\frac{\pi}{4}", "π/4"),
    ("math-verify: equations", "2x+4y-3=0", r"y=-\frac12x+\frac34"),
    ("math-verify: assignments", "x=-5, p=3", "-5, 3"),
    ("math-verify: plus-minus", r"1\pm\sqrt{19}", r"1+\sqrt{19},\ 1-\sqrt{19}"),
    ("own: joined digits", "12000003", r"12,\!000,\!003"),
    ("own: joined digits in braces", "14916", "14{,}916"),
    ("own: decimal comma", "1000.99", "1000,99"),
    ("own: repeating decimal", "1/6", r"0.1\overline{6}"),
    ("own: endless decimal", "8/3", "2.66666666667"),
    ("own: rounded irrational", r"2\sqrt{5}", "4.472136"),
    ("own: scientific", "2.26e-10", r"2.26 \times 10^{-10}"),
    ("own: rationalised", r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"),
    ("own: nested roots", r"\frac{\sqrt6-\sqrt2}{2}", "√(2−√3)"),
    ("own: trigonometry", r"-\sqrt{3}", r"-\tan(4\pi/9)+4\cos(\pi/18)"),
    ("own: logarithms", r"\log_2 3", r"\frac{\ln 3}{\ln 2}"),
    ("own: complex", "3+4i", "4i+3"),
    ("own: large powers", "2^{5999}", r"2\cdot 2^{5998}"),
    ("own: towers", "9^9^9^9", "9^{9^{9^{9}}}"),
    ("own: factorials", r"\frac{1}{2006!}", r"\frac{1}{2006\cdot 2005!}"),
    ("own: symbolic exponent", "2^{n+1}", r"2\cdot 2^n"),
    ("own: binomial", r"\binom{n+1}{2}", "n(n+1)/2"),
    ("own: rounding functions", r"\lceil n/2\rceil", r"\lfloor (n+1)/2\rfloor"),
    ("own: undefined functions", "f(2) = 4 + f(3)", "f(2) = f(3) + 4"),
    ("own: system", r"\begin{cases}x=1\\y=2\end{cases}", "y=2, x=1"),
    ("own: base left out", "204_5", "204"),
    ("own: unit conversion", "-10.5 kilogram metre/second^2", "-10500 g m/s^2"),
    ("own: prefixes", "5 GN", "5000000000 metre kilogram second^(-2)"),
    ("own: degrees and radians", r"90^\circ", r"\frac{\pi}{2}"),
    ("own: percent as fraction", r"50\%", r"\frac12"),
    ("own: cents", r"\$0.50", "50 cents"),
    ("own: ratio", "1:2", "2:4"),
    ("own: time", "12:00", "12:00 pm"),
    ("own: set of reals", r"\mathbb{R}\setminus\{0\}", r"x \neq 0"),
    ("own: set builder", r"\{x \mid x>1\}", r"(1,\infty)"),
    ("own: one value twice", "90", "90 degrees or π/2 radians"),
    ("own: sentence", "5", "The sum of all such positive integers b is 5."),
    ("own: number word", "2", "two"),
    ("own: repeated in words", "5", "5 (five)"),
    ("own: yes with a reason", "Yes", "Yes, $u$ is a constant."),
    ("own: no is false", "No", "false"),
    ("own: words", r"\text{Sunday}", "{sunday}"),
    ("own: nothing", r"\emptyset", "no solutions"),
    ("own: choice with its text", "B", r"B) x=6 and x=-3"),
    ("own: choice", r"\textbf{(A)}", "A"),
    ("own: Chinese punctuation", "1,2", "1，2"),
    ("own: Chinese units", "5", "5厘米"),
    ("own: class of remainders", r"x\equiv 1\pmod 3", r"x \equiv -2 (\mathrm{mod}\ 3)"),
    ("own: sizes", r"1\le |z|\le 3/2", r"z\in[-3/2,-1]\cup[1,3/2]"),
    ("own: all numbers", r"(-\infty,\infty)", r"\text{all real numbers}"),
    ("own: digits that go on", "1/6", "0.1666..."),
    ("own: calculation that holds", "1000", "$10^3 = 1000$"),
    ("own: number in words", "55", r"\text{fifty-five}"),
    ("own: hundreds in words", "112", "One hundred and twelve"),
    ("own: thousands in words", "1250", "one thousand, two hundred and fifty"),
    ("own: hundreds beyond nine", "1250", "twelve hundred fifty"),
    ("own: fraction in words", r"\frac{2}{3}", "two-thirds"),
    ("own: mixed number in words", "2.5", "two and a half"),
    ("own: decimal in words", "3.14", "three point one four"),
    ("own: negative in words", "-5", r"\text{negative five}"),
    ("own: words with a known unit", "42", "Forty-two dollars"),
    ("own: scale behind a number", "3000000", "3 million"),
    ("own: scale and unit", r"\$3{,}000{,}000", "3 million dollars"),
    ("own: Chinese numeral", "12", "十二"),
    ("own: Chinese numeral with a zero", "105", "一百零五"),
    ("own: Chinese myriads", "12000", "一万二千"),
    ("own: Chinese fraction", r"\frac{2}{3}", "三分之二"),
    ("own: Chinese percent", r"25\%", "百分之二十五"),
    ("own: Chinese classifier", "3", "三个"),
    ("own: label", "48", r"\text{Area} = 48"),
    ("own: label with a colon", "355", r"\text{Total: }355"),
    ("own: label and unit", "48", "Area: 48 cm^2"),
    ("own: label with a hyphen", "3", "x-coordinate: 3"),
    ("own: label of a point", "(2,3)", r"\text{Vertex} = (2,3)"),
    ("own: label of solutions", "x=3 or x=-3", r"\text{Solutions: } x=3, -3"),
    ("own: probability of words", r"\frac12", r"P(\text{red}) = \frac{1}{2}"),
    ("own: conditional probability", r"\frac12", r"P(A|B)=\frac12"),
    ("own: named point", "(2,3)", "A(2,3)"),
    ("own: currency code", "18.90", "USD 18.90"),
    ("own: currency code and sign", r"\$18.90", r"US\$18.90"),
    ("own: rupees", "50", "Rs. 50"),
    ("own: pounds sign", "£3", "3"),
    ("own: pounds of money", "£3", "3 pounds"),
    ("own: dollars and cents", r"\$18.90", "18 dollars and 90 cents"),
    ("own: hours and minutes", "2 hours 30 minutes", "150 minutes"),
    ("own: half of the day", "3:30 pm", "15:30"),
    ("own: degrees and minutes", "30°15'", r"30.25^\circ"),
    ("own: letter o for degrees", r"60^\circ", "60^o"),
    ("own: letter o behind a fraction", r"22.5^\circ", r"22\frac{1}{2}^{\text{o}}"),
    ("own: mixed number of degrees", r"22.5^\circ", r"22\frac12^\circ"),
    ("own: mixed number of per cent", r"12.5\%", r"12\frac12\%"),
    ("own: mixed number of degrees Celsius", r"22.5^\circ C", r"22\frac12^\circ C"),
    ("own: mixed number of degrees in a product", r"67.5^\circ", r"3\cdot 22\frac12^\circ"),
    ("own: function of a mixed number of degrees", r"\sin(22.5^\circ)", r"\sin 22\frac12^{\circ}"),
    ("own: function before a fraction", r"\frac{\log(2)}{2}", r"\log 2\frac12"),
    ("own: power of the fraction only", r"\frac12", r"2\frac12^2"),
    ("own: German grouping", "1234.50", "1.234,50"),
    ("own: French grouping", "1234.50", "1 234,50 €"),
    ("own: Indian grouping", "1234567", "12,34,567"),
    ("own: Swiss grouping", "1234567", "1'234'567"),
    ("own: point grouping", "1234567", "1.234.567"),
    ("own: x for times", r"3\times 10^8", "3 x 10^8"),
    ("own: base in words", "2516_8", r"2516\text{ (base 8)}"),
    ("own: place", "3", r"3^{\text{rd}}"),
    ("own: ratio in words", "3:4", "3 to 4"),
    ("own: repeating part in brackets", "3/7", "0.(428571)"),
    ("own: mixed number with and", "7/2", "3 and 1/2"),
    ("own: remark", "5", r"5\text{ (the smallest)}"),
    ("own: remark on rounding", "3.14", "3.14 (approx.)"),
    ("own: reason", "5", "5 (since 2+3=5)"),
    ("own: parts", "3, 4", "(a) 3, (b) 4"),
    ("own: parts of a reference", "(a) 3 (b) 4", "3, 4"),
    ("own: polar form", "1+i", r"\sqrt{2}\operatorname{cis}(45^\circ)"),
    ("own: transposed row", r"\begin{pmatrix}1\\2\\3\end{pmatrix}", "(1,2,3)^T"),
    ("own: unit vectors", r"\mathbf{i}+2\mathbf{j}", r"\hat{i}+2\hat{\jmath}"),
    ("own: brackets turned outwards", r"(5,\infty)", r"]5,+\infty["),
    ("own: letter U for a union", r"(-\infty,-1)\cup(3,\infty)", r"(-\infty,-1) U (3,\infty)"),
    ("own: inequality in words", r"x \ge 5", r"x\text{ is at least }5"),
    ("own: set of reals with its domain", "x>5", r"\{x\in\mathbb{R} \mid x>5\}"),
    ("own: system in a single brace", "(2,3)",
     r"\left\{\begin{array}{l}x=2\\y=3\end{array}\right."),
    ("own: no solution in a sentence", r"\text{no solution}", "The equation has no solution."),
    ("own: empty braces", r"\text{no solution}", r"\{\}"),
    ("own: membership in nothing", r"\emptyset", r"x\in\varnothing"),
    ("own: numbered solutions", "x=3 or x=-3", "x_1=3, x_2=-3"),
    ("own: constant of integration", "x^2+C", "x^2+c"),
    ("own: constant in words", "x^2+C", r"x^2+\text{const}"),
    ("own: numbered constants", "C_1e^x+C_2e^{-x}", "Ae^{-x}+Be^x"),
    ("own: index", r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}+n\pi"),
    ("own: index i of a sum", r"\sum_{k=1}^{5}k^2", r"\sum_{i=1}^{5}i^2"),
    ("own: value of a function", "6", "f(2)=6"),
    ("own: colours", "5", r"\color{red}{5}"),
    ("own: phantom", "5", r"\phantom{-}5"),
]  # fmt: skip
DIFFERENT = [
    ("hedge", "3", r"3 \text{ or } 5"),
    ("hedged choice", "A", r"A \text{ or } C"),
    ("all choices", "A", "A, B, C, D, E"),
    ("two labels", "B", "(B)(C)"),
    ("more than asked", "7", "7, 8, 9"),
    ("less than asked", "5,-3", "5"),
    ("words behind", "3", r"3 \text{ is wrong}"),
    ("words before", "3", r"\text{at least } 3"),
    ("index of a root", r"\sqrt{2}", r"\sqrt[3]{2}"),
    ("factor left out", r"12\pi", "12"),
    ("variable left out", "-360*f", "-360"),
    ("variable that could be a unit", "3s^2", "3"),
    ("hundredfold", "0.2", "20"),
    ("hundredth", "800", "8"),
    ("base", "1112112_3", "1112122_3"),
    ("value instead of digits", "204_5", "54"),
    ("near", "17", "17.001"),
    ("near and long", "17", "17.000000001"),
    ("rounded", "1/3", "0.33"),
    ("tiny", r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}"),
    ("tiny factorial", r"\frac{1}{2006!}", r"\frac{1}{2004!}"),
    ("tiny irrational", r"\pi/10^{20}", r"2\pi/10^{20}"),
    ("large irrational", r"10^{10}\sqrt{2}", r"10^{10}\sqrt{2}+1"),
    ("scientific", "2.55e-10", "3.61e-10"),
    ("bracket", "[0,1)", "(0,1)"),
    ("tuple and interval", "(1,2)", "[1,2]"),
    ("order of a tuple", "(2,1)", "(1,2)"),
    ("set and tuple", r"\{1,2\}", "(1,2)"),
    ("part of a union", r"(2,12)\cup(12,102)", "(2,12)"),
    ("direction", r"x \geq 5", r"x \leq 5"),
    ("strictness", "x>5", r"x \ge 5"),
    ("sign of an equation", "-y=x", "y=x"),
    ("not equal", "y=/=x", "y=x"),
    ("left side that is no name", "2x+z=1", "1"),
    ("another name", "x=5", "w=5"),
    ("false calculation", "19", "16 = 19"),
    ("plus-minus", "5", r"\pm 5"),
    ("half of plus-minus", r"\pm 2021", "2021"),
    ("fraction turned over", r"\frac{1}{11}", r"\frac{11}{1}"),
    ("glued mixed number", r"\frac{5}{12}", r"5\frac{5}{12}"),
    ("product for a mixed number of degrees", r"22\frac12^\circ", r"11^\circ"),
    ("product for a mixed number of per cent", r"12\frac12\%", r"6\%"),
    ("transposed", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
     r"\begin{pmatrix}1\\2\\3\\4\end{pmatrix}"),
    ("wrong unit", r"5\text{ m}", r"5\text{ cm}"),
    ("wrong power of a unit", r"5\text{ cm}^2", r"5\text{ cm}"),
    ("degrees for radians", r"\frac{\pi}{2}", "90"),
    ("absolute value", "|x|", "x"),
    ("branch of a root", r"\sqrt{x^2}", "x"),
    ("period", r"\lfloor \frac{p}{9}\rfloor", r"\lfloor \frac{p}{7}\rfloor"),
    ("upper case variable", "x", "X"),
    ("another time", "12:00", "1:00"),
    ("ratio turned over", "2:3", "3:2"),
    ("no answer", "No", "No answer provided."),
    ("both", "Yes", "yes, no"),
    ("unread digits", "1.5 or so", "15 or so"),
    ("order of the group", "2^{2305843009213693920}", "1"),
    ("real exponents", "(-1)^{2x}", "1"),
    ("modulus", r"x\equiv 1\pmod 3", r"x\equiv 1\pmod 4"),
    ("class and number", "5", r"5 \pmod 7"),
    ("and, or", r"p\land q", r"p\lor q"),
    ("set of the empty set", r"\emptyset", r"\{\emptyset\}"),
    ("grouped digits and tuple", "12,345", "(12, 345)"),
    ("lists that look like decimals", "20,30", "20,3"),
    ("unit of an equation", r"V=100.5\text{ cm}^3", r"V=100.5\text{ cm}^4"),
    ("Roman numerals", "IV", "VI"),
    ("angle", r"\angle ABC", r"\angle ACB"),
    ("similar triangles", r"ABC\sim DEF", r"ABC\sim DFE"),
    ("name that is no article", r"\text{Team A wins}", "Team wins"),
    ("second thoughts", "No", "No, wait, yes"),
    ("nothing", "5", ""),
    ("another number in words", "55", "fifty-six"),
    ("numbers in words side by side", "23", "two three"),
    ("part of a number in words", "2", "two thirds"),
    ("hedge in words", "55", "fifty or five"),
    ("scale in words", "112", "one hundred and twelve thousand"),
    ("article", "1", "a"),
    ("words of something else", "2", "two interlinked loops"),
    ("scale left out", "3 million dollars", "3"),
    ("scale added", "3", "3 million"),
    ("myriad added", "15", "15万元"),
    ("another Chinese numeral", "3", "十三"),
    ("Chinese fraction for its part", "3", "三分之一"),
    ("Chinese digits without scales", "12", "一二"),
    ("label that changes the value", "48", r"\text{half the area} = 48"),
    ("label that denies", "48", r"\text{Not: }48"),
    ("label that goes on", "49", r"\text{square root of: }49"),
    ("bound behind a label", "48", r"\text{Area} > 48"),
    ("several labels", "48", r"\text{Area: } 48, \text{Perimeter: }28"),
    ("computation with a label", "48", r"\frac{\text{Area}}{2} = 48"),
    ("another currency", r"\$18.90", "EUR 18.90"),
    ("another amount", r"\$18.90", "USD 1890"),
    ("other minutes", "2 hours 30 minutes", "2 hours 20 minutes"),
    ("half of the day that differs", "3:30 pm", "3:30 am"),
    ("groups of the wrong size", "1234567", "12,34,56"),
    ("another base in words", "2516_8", r"2516\text{ (base 9)}"),
    ("another place", "3", "13th"),
    ("remark that changes", "5", r"5\text{ (negative)}"),
    ("remark that hedges", "5", "5 (or 6)"),
    ("modulus as a remark", "5", r"5\text{ (mod 7)}"),
    ("parts in another order", "(a) 3 (b) 4", "(a) 4 (b) 3"),
    ("one part", "3, 4", "(a) 3"),
    ("another angle", "1+i", r"\sqrt{2}\operatorname{cis}(60^\circ)"),
    ("transposed matrix", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
     r"\begin{pmatrix}1&2\\3&4\end{pmatrix}^T"),
    ("turned brackets at one end", r"(5,8)", r"]5,8]"),
    ("inequality in words, turned", r"x \ge 5", r"x\text{ is at most }5"),
    ("alternatives for a point", "(2,3)", "x=2 or y=3"),
    ("one solution", r"\text{no solution}", r"\text{one solution}"),
    ("infinitely many", r"\text{no solution}", r"\text{infinitely many solutions}"),
    ("constant left out", "x^2+C", "x^2"),
    ("variable for a constant", "x^2+C", "x^2+y"),
    ("factor for a constant", "x^2+C", "x^2+Cx"),
    ("one constant for two", "C_1e^x+C_2e^{-x}", "Ae^x+Ae^{-x}"),
    ("another period", r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}+2n\pi"),
    ("another domain", r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}",
     r"\frac{\pi}{4}+k\pi, k\in\mathbb{N}"),
    ("another argument", "f(x)=2x+1", "f(t)=2t+1"),
    ("equation that is left to solve", "3", "2x=3"),
    ("negative name", "3", "-x=3"),
    ("half of a name", "6", "x/2=6"),
    ("another value of a function", "6", "f(2)=7"),
    ("labels that are exchanged", "max 5, min 1", "max 1, min 5"),
]  # fmt: skip


def _equal(reference: str, answer: str, policy: Policy | None = None) -> bool | None:
    policy = policy or Policy()
    return compare(read(reference, policy), read(answer, policy), policy).equal


@pytest.mark.parametrize(("name", "reference", "answer"), SAME)
def test_is_the_same(name: str, reference: str, answer: str) -> None:
    assert _equal(reference, answer) is True, name


@pytest.mark.parametrize(("name", "reference", "answer"), DIFFERENT)
def test_is_different(name: str, reference: str, answer: str) -> None:
    assert _equal(reference, answer) is False, name


# knob, value, reference, answer, by default, with the knob
KNOBS = [
    ("relative_tolerance", 0.01, "3.14", "3.15", False, True),
    ("decimals", 2, "0.59", "0.5941", False, True),
    ("decimals", 2, "0.59", "0.596", False, False),
    ("approximation_digits", 4, r"\sqrt{2}", "1.4142", False, True),
    ("approximation_digits", 0, r"\sqrt{2}", "1.4142136", True, False),
    ("percent", "strict", r"28\%", "28", True, False),
    ("percent", "strict", r"28\%", "0.28", True, True),
    ("missing_unit", False, r"5\text{ cm}", "5", True, False),
    ("missing_base", False, "204_5", "204", True, False),
    ("ordered_lists", True, "1,2", "2,1", True, False),
    ("decimal_comma", False, "1.22", "1,22", True, False),
    ("case_sensitive_text", True, r"\text{Sunday}", "sunday", True, False),
    ("symbol_case", False, "x+Y", "X+y", False, True),
    ("strip_name", False, "5", "x=5", True, False),
    ("allow_rational_unreduced", False, r"\frac12", r"\frac24", True, False),
]


@pytest.mark.parametrize("case", KNOBS, ids=lambda case: f"{case[0]}-{case[3]}")
def test_knobs(case: tuple[str, object, str, str, bool, bool]) -> None:
    knob, value, reference, answer, usual, turned = case
    assert _equal(reference, answer) is usual
    assert _equal(reference, answer, Policy(**{knob: value})) is turned  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "nothing"), ("12", "number"), ("-1.5", "number"), ("x+1", "expression"),
        ("1, 2", "list"), ("(1,2)", "tuple"), ("[1,2)", "interval"), (r"\{1,2\}", "set"),
        (r"(1,2)\cup(3,4)", "union"), ("y=x", "equation"), ("x>1", "inequality"),
        ("x=1, y=2", "system"), (r"\begin{pmatrix}1\\2\end{pmatrix}", "matrix"), ("1:2", "ratio"),
        ("the moon", "text"), ("(B)", "choice"), ("yes", "boolean"),
    ],
)  # fmt: skip
def test_kinds(text: str, kind: str) -> None:
    assert read(text).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "9" * 100_000, "(" * 3000, r"\frac{1}{" * 400, "2^" * 1400 + "2", "1," * 1490, "|" * 2999,
        r"\sqrt{" * 300, "((9!)!)!", "1000000!", r"\binom{1000000}{500000}", "(a+b+c+d)^{30}",
        r"\sum_{k=1}^{10000000}\frac1k", "1e999999", r"\begin{pmatrix}" + "1&" * 500, "-" * 2999,
        "\x00\ud800\u202e", "√" * 2000, "_{5}" * 700, "x" + "'" * 2900,
    ],
)  # fmt: skip
def test_hostile_texts_are_read_and_refused_quickly(text: str) -> None:
    started = time.process_time()
    answer = read(text)
    comparison = compare(read("7"), answer)
    assert comparison.equal is not True
    assert compare(answer, answer).equal is (answer.kind != "nothing")
    assert time.process_time() - started < 1.0


def test_a_limit_is_named() -> None:
    answer = read("(" * 200 + "7" + ")" * 200)
    assert answer.limited
    comparison = compare(read("7"), answer)
    assert (comparison.equal, comparison.tier) == (False, "limits")
    assert compare(answer, read("7")).equal is None


def test_readings_are_compared_by_identity() -> None:
    one, other = read("7"), read("7")
    assert one != other
    assert len({one, other}) == 2
