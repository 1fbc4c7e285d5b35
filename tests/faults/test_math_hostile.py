r"""Hostile answers: what burns time or memory, what tries to run code, and noise.

The expensive answers are judged in a child process with a limit on its memory, which reports the
CPU that each took: one that hangs or eats memory fails there and takes nothing else with it. The
bounds are generous, because the machine that runs tests is busy; the work itself is counted in
steps and takes milliseconds.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.math import Policy, compare, read
from assay.reward_server.domain import Candidate, Judgement, VerifierItem
from assay.reward_server.verifiers.math import MathVerifier

GLANCE_BOUND_S = 1.0
JUDGE_BOUND_S = 10.0
MEMORY_BYTES = 1 << 30


def _matrix(entry: str, side: int) -> str:
    rows = "\\\\".join(["&".join([entry] * side)] * side)
    return f"\\begin{{pmatrix}}{rows}\\end{{pmatrix}}"


def _pieces(rows: list[str]) -> str:
    return "\\begin{cases}" + "\\\\".join(rows) + "\\end{cases}"


_NESTS = {
    "fractions": ("\\frac{1}{1+", "}"),
    "roots": ("\\sqrt{", "}"),
    "parentheses": ("(", ")"),
    "brackets": ("[", "]"),
    "sets": ("\\{", "\\}"),
    "braces": ("{", "}"),
    "left and right": ("\\left(", "\\right)"),
    "exponents": ("2^{", "}"),
    "subscripts": ("a_{", "}"),
    "absolute values": ("|1-", "|"),
    "texts": ("\\text{", "}"),
    "boxes": ("\\boxed{", "}"),
    "sines": ("\\sin(", ")"),
    "matrices": ("\\begin{pmatrix}", "\\end{pmatrix}"),
    "minus signs": ("-", ""),
    "factorials": ("", "!"),
    "sums": ("\\sum_{i=1}^{", "}i"),
}
_TOWERS = {
    "nines": "9^{9^{9^{9}}}",
    "nines in ASCII": "9^9^9^9",
    "nines with stars": "9**9**9**9",
    "twos": "2^{2^{2^{2^{2^{2}}}}}",
    "negative exponent": "9^{-9^{9^{9}}}",
    "fraction in the exponent": "2^{\\frac{1}{10^{400}}}",
    "of a variable": "x^{x^{x^{x^{x^{x}}}}}",
    "difference of towers": "9^{9^{9}}-9^{9^{9}}",
    "last digits": "3^{10^{18}}",
    "huge power of a small number": "1.0000001^{10^{15}}",
    "power of i": "i^{9^{9^{9}}}",
    "power of zero": "0^{9^{9^{9}}}",
    "power of one": "1^{9^{9^{9}}}",
    "power of a sum": "(a+b+c+d)^{60}",
    "power of a polynomial": "(1+x+x^2+x^3)^{5000}",
    "root of a large index": "\\sqrt[10^{9}]{2}",
    "exp of exp": "e^{e^{e^{e^{10}}}}",
    "power of a matrix": "\\begin{pmatrix}1&1\\\\1&0\\end{pmatrix}^{10^{18}}",
}
_NUMBER_THEORY = {
    "factorial of a factorial": "((9!)!)!",
    "large factorial": "1000000!",
    "factorials in a row": "9!!!!!!!!",
    "ratio of factorials": "\\frac{1000000!}{999999!}",
    "binomial": "\\binom{1000000}{500000}",
    "binomial of a binomial": "\\binom{\\binom{100}{50}}{\\binom{50}{25}}",
    "large base": "1" * 2000 + "_{9}",
    "modulus": "7^{10^{30}} \\bmod 10^{20}",
    "gcd": "\\gcd(2^{100000}-1, 2^{99999}-1)",
    "semiprime under a root": "\\sqrt{" + "9" * 400 + "}",
    "large numbers multiplied": "\\cdot".join(["9" * 300] * 40),
    "fraction with large parts": "\\frac{" + "7" * 3000 + "}{" + "3" * 3000 + "}",
    "repeating decimal": "0.\\overline{" + "142857" * 3000 + "}",
    "scientific": "1e999999999",
    "negative scientific": "1e-999999999",
    "power of ten": "10^{999999999}",
    "logarithm of a tower": "\\log_{2}(2^{2^{2^{2^{2}}}})",
}
_SUMS = {
    "harmonic": "\\sum_{k=1}^{10000000}\\frac{1}{k}",
    "product": "\\prod_{k=1}^{10000000}k",
    "endless sum": "\\sum_{k=1}^{\\infty}\\frac{1}{k^{k}}",
    "sum of sums": "\\sum_{i=1}^{9999}\\sum_{j=1}^{9999}\\sum_{k=1}^{9999}ijk",
    "integral": "\\int_{-\\infty}^{\\infty}e^{-x^2}\\,dx",
    "integral of a tower": "\\int_0^1 x^{x^{x^{x}}} dx",
    "limit": "\\lim_{n\\to\\infty}(1+\\frac{1}{n})^{n}",
    "geometric series written out": "+".join(f"x^{{{k}}}" for k in range(800)),
    "radical equation": "\\sqrt{x+\\sqrt{x+\\sqrt{x+1}}}=x^{7}-3",
    "product of factors": "".join(f"(x-{k})" for k in range(200)),
    "product of sums": "".join(f"(a_{{{k}}}+b_{{{k}}})" for k in range(60)),
}
_LARGE = {
    "100,000 digits": "7" * 100_000,
    "100,000 digits with a point": "3." + "1" * 100_000,
    "thousands separators": ",".join(["123"] * 20_000),
    "large set": "\\{" + ",".join(map(str, range(2000))) + "\\}",
    "large set in descending order": "\\{" + ",".join(map(str, range(2000, 0, -1))) + "\\}",
    "large tuple": "(" + ",".join(["x+1"] * 5000) + ")",
    "large list": ",".join(["\\frac{1}{2}"] * 5000),
    "large union": "\\cup".join(f"({k},{k + 1})" for k in range(0, 4000, 2)),
    "matrix of 8 by 8 variables": "\\det\\begin{pmatrix}"
    + "\\\\".join("&".join(f"a_{{{i}{j}}}" for j in range(8)) for i in range(8))
    + "\\end{pmatrix}",
    "product of matrices": _matrix("x+1", 4) * 20,
    "product of numbers in matrices": _matrix("123456789", 8) * 12,
    "power of a matrix of letters": _matrix("a+b+c", 4) + "^{12}",
    "power of a matrix of large numbers": _matrix("9" * 60, 4) + "^{12}",
    "inverse of a large matrix": _matrix("7", 20) + "^{-1}",
    "determinant of letters": "\\det" + _matrix("a+b", 8),
    "determinant of large numbers": "\\det" + _matrix("9" * 40, 8),
    "matrices in a matrix": _matrix(_matrix(_matrix("1", 2), 2), 2),
    "sum of matrices": "+".join([_matrix("1", 3)] * 30),
    "matrix times a tower": "9^{9^{9^{9}}}" + _matrix("1", 2),
    "line with many entries": "(" + ",".join(["1"] * 200) + ")+t(" + ",".join(["2"] * 200) + ")",
    "sum of lines": "+".join(["t(1,2)"] * 100),
    "point of a point": "A(" * 60 + "1,2" + ")" * 60,
    "many pieces": _pieces([f"x^{{{k}}} & {k}\\le x<{k + 1}" for k in range(200)]),
    "pieces that overlap": _pieces([f"{k}x & x>{k}" for k in range(12)]),
    "pieces of many intervals": _pieces(
        [
            " & ".join(["1", " \\text{ or } ".join(f"x={k}" for k in range(at, 60, 7))])
            for at in range(7)
        ]
    ),
    "pieces in pieces": _pieces([_pieces(["1 & x>0", "2 & x<0"]) + " & x>1", "0 & x<1"]),
    "columns without rows": _pieces(["&" * 400, "&" * 400]),
    "families with many members": ", ".join(f"\\frac{{\\pi}}{{{k}}}+{k}k\\pi" for k in range(1, 24))
    + ", k\\in\\mathbb{Z}",
    "family with a large period": "k\\pi, 10^{300}k\\pi, k\\in\\mathbb{Z}",
    "family with an endless period": "9^{9^{9}}k, k\\in\\mathbb{Z}",
    "large set of integers": "\\{x\\in\\mathbb{Z}: 1\\le x\\le 10^{300}\\}",
    "many conditions": "x" + ", x>0" * 300,
    "condition with a tower": "x, x>9^{9^{9^{9}}}",
    "solved inequality": "|9^{9^{9}}x-1|<2",
    "points left out": "x\\ne" + ",".join(map(str, range(600))),
    "labels and values": "\\text{There are } " * 200 + "4",
    "a statement without end": "\\text{" + "a is " * 60 + "4}",
    "matrix of 60 by 60": "\\begin{pmatrix}"
    + "\\\\".join("&".join(["1"] * 60) for _ in range(60))
    + "\\end{pmatrix}",
    "chain of equations": "=".join(["x"] * 5000),
    "chain of inequalities": "<".join(["x"] * 5000),
    "plus or minus": "\\pm 1" * 40,
    "plus or minus in each term": "\\pm ".join(f"\\sqrt{{{k}}}" for k in range(2, 40)),
    "sum of roots": "+".join(f"\\sqrt{{{k}}}" for k in range(2, 300)),
    "words": "the answer is " * 8000,
    "one long word": "a" * 100_000,
    "spaces": "1" + " " * 100_000 + "2",
    "backslashes": "\\" * 50_001,
    "dollars": "$" * 50_001,
    "commas": "," * 50_000,
    "carets": "2" + "^" * 50_000 + "2",
    "underscores": "a" + "_" * 50_000 + "1",
    "operators": "1" + "+-" * 25_000 + "1",
    "dots": "1" + "." * 50_000 + "1",
    "degree signs": "1" + "^\\circ" * 20_000,
    "or": " \\text{ or } ".join(map(str, range(5000))),
    "Chinese": "答案是" * 20_000 + "4",
    "combining marks": "4" + "\u0301" * 50_000,
    "full-width digits": "\N{FULLWIDTH DIGIT FOUR}" * 5_000,
    "zero-width spaces": "\u200b" * 50_000 + "4",
    "control characters": "\x00\x01\x02\x7f" * 5_000,
    "halves of surrogates": "\ud800" * 1000,
}
ANSWERS = (
    {
        f"{count} nested {name}": opening * count + "1" + closing * count
        for name, (opening, closing) in _NESTS.items()
        for count in (70, 3000)
    }
    | {f"unclosed {name}": opening * 3000 + "1" for name, (opening, _) in _NESTS.items()}
    | _TOWERS
    | _NUMBER_THEORY
    | _SUMS
    | _LARGE
)
# Whole responses, in which the answer has to be looked for.
RESPONSES = {
    "unclosed boxes": "\\boxed{" * 5000,
    "boxes": "\\boxed{1} " * 20_000,
    "10,000 boxes of a list": "\\boxed{1}, " * 10_000,
    "10,000 boxes in a row": "\\boxed{1} \\quad " * 10_000,
    "boxes of different lists": " ".join(f"\\boxed{{{k}}}," for k in range(10_000)),
    "a sentence in a box": "\\boxed{\\text{" + "the answer is " * 200 + "4}}",
    "tails in boxes": "\\boxed{4 \\text{ is the " * 2000 + "}}" * 2000,
    "open brackets before a number": "(1, " * 50_000 + "4",
    "relations before a number": "x > " * 50_000 + "4",
    "equations before a number": "2x = " * 50_000 + "4",
    "numbers joined": "4 and " * 50_000 + "4",
    "ratios": "1:" * 100_000 + "4",
    "one line without an end": "x+" * 90 + "4",
    "a megabyte of one line": "(1,2) " * 170_000,
    "denials": "not " * 250_000 + "4",
    "boxes that open last": "\\boxed{1}" * 5000 + "\\boxed{" * 5000,
    "closing braces": "}" * 50_000 + "\\boxed{4",
    "thoughts": "<think>" * 20_000 + "</think>" * 20_000 + "4",
    "answer tags": "<answer>" * 20_000 + "4",
    "answer tags that close": "<answer>4" * 10_000 + "</answer>" * 10_000,
    "hashes": "#" * 100_000 + " 4",
    "hash lines": "#### \n" * 20_000,
    "answer lines": "Answer: \n" * 20_000,
    "the answer is": "the answer is " * 20_000,
    "formulas": "$4$ " * 50_000,
    "open formulas": "$4 " * 50_001,
    "displays": "\\[4\\]" * 20_000,
    "open displays": "\\[" * 50_000 + "4",
    "numbers": "4 " * 200_000,
    "one long line of digits": "4" * 1_000_000,
    "digits and commas": "1,2" * 100_000,
    "digits and points": "1.2" * 100_000,
    "a megabyte of words": "word " * 200_000,
    "new lines": "\n" * 500_000,
    "asterisks": "**" * 100_000 + "4",
    "braces": "{" * 500_000,
    "a long text around the answer": "x" * 400_000 + " \\boxed{4} " + "y" * 400_000,
    "Chinese marks": "【答案】" * 20_000,
}


def _seconds(judge: object, *arguments: object) -> float:
    started = time.process_time()
    judge(*arguments)  # type: ignore[operator]
    return time.process_time() - started


def _item(response: str, reference: str) -> VerifierItem:
    parameters = MathVerifier().spec.complete({})
    return VerifierItem(Candidate(response), references=(reference,), parameters=parameters)


def _both(answer: str) -> None:
    """As answer, as reference, as both, and as both with a small difference."""
    plain, hostile, other = read("4"), read(answer), read(answer + "+1")
    for left, right in ((plain, hostile), (hostile, plain), (hostile, hostile), (hostile, other)):
        assert compare(left, right).equal in (True, False, None)


def report() -> None:
    """In the child: judges everything, and prints the CPU seconds of each by name and way."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    verifier = MathVerifier()
    verifier.prepare()
    verifier.judge(_item("\\boxed{\\sin x}", "\\cos y"))
    ways = {"glance": verifier.glance, "judge": verifier.judge}
    seconds: dict[str, dict[str, float]] = {way: {} for way in (*ways, "engine")}
    for name, answer in ANSWERS.items():
        seconds["engine"][name] = _seconds(_both, answer)
        for way, judge in ways.items():
            for item in (_item(f"\\boxed{{{answer}}}", "4"), _item("\\boxed{x+4}", answer)):
                taken = _seconds(_attempt, judge, item)
                seconds[way][name] = max(taken, seconds[way].get(name, 0.0))
    for name, response in RESPONSES.items():
        seconds["glance"][name] = _seconds(_attempt, verifier.glance, _item(response, "4"))
    seconds["memory"] = {"MiB": _peak_kib() / 1024}
    print(json.dumps(seconds))


def _peak_kib() -> int:
    """The most resident memory of this process; rusage would count what its parent had."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _attempt(judge: object, item: VerifierItem) -> None:
    from assay.reward_server.domain import Unjudgeable

    try:
        judge(item)  # type: ignore[operator]
    except Unjudgeable:
        return  # a reference that nobody can use is a fault, and a quick one


@pytest.fixture(scope="module")
def seconds() -> dict[str, dict[str, float]]:
    """CPU seconds of each hostile answer, by way and name."""
    child = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, timeout=100, check=False
    )
    assert child.returncode == 0, child.stderr[-2000:]
    loaded: dict[str, dict[str, float]] = json.loads(child.stdout)
    return loaded


def test_there_are_as_many_hostile_answers_as_were_found_in_the_field() -> None:
    assert len(ANSWERS) + len(RESPONSES) >= 120


@pytest.mark.parametrize(
    ("way", "bound_s"),
    [("engine", 4 * GLANCE_BOUND_S), ("glance", GLANCE_BOUND_S), ("judge", JUDGE_BOUND_S)],
)
def test_every_hostile_answer_is_judged_in_bounded_time(
    seconds: dict[str, dict[str, float]], way: str, bound_s: float
) -> None:
    slow = {name: taken for name, taken in seconds[way].items() if taken > bound_s}
    assert slow == {}


@pytest.mark.slow
def test_hostile_answers_take_little_memory(seconds: dict[str, dict[str, float]]) -> None:
    assert seconds["memory"]["MiB"] < 300


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_hostile_answer_is_not_right(answer: str) -> None:
    judgement = MathVerifier().glance(_item(f"\\boxed{{{answer}}}", "40320.5"))
    assert judgement is None or judgement.reward == 0


@pytest.mark.parametrize("answer", ["9^{9^{9^{9}}}", "1000000!", "10^{999999999}", "7" * 3000])
def test_what_passes_the_limits_still_equals_its_own_text(answer: str) -> None:
    assert compare(read(answer), read(answer)).equal is True


# --- Answers that are programs --------------------------------------------------------------------

_WRITE = "open('MARKER','w')"
_SHELL = "__import__('os').system('touch MARKER')"
PAYLOADS = {
    "call": _WRITE,
    "forged product": f"{_WRITE}.fileno()*\\pi",
    "forged quotient": f"3*{_WRITE}.write('')",
    "import": _SHELL,
    "import in exec": f'exec("{_SHELL}")',
    "import in eval": f'eval("{_SHELL}")',
    "compile": f"exec(compile(\"{_SHELL}\",'','exec'))",
    "lambda": f"(lambda: {_WRITE})()",
    "comprehension": f"[{_WRITE} for _ in (1,)]",
    "walrus": f"(a:={_WRITE})",
    "attribute": "().__class__.__bases__[0].__subclasses__()",
    "format string": "f\"{open('MARKER','w')}\"",
    "tuple": f"(1,{_WRITE})",
    "list": f"1, {_WRITE}",
    "set": f"\\{{1,{_WRITE}\\}}",
    "interval": f"[1,{_WRITE})",
    "matrix": f"\\begin{{pmatrix}}1\\\\{_WRITE}\\end{{pmatrix}}",
    "fraction": f"\\frac{{1}}{{{_WRITE}}}",
    "root": f"\\sqrt{{{_WRITE}}}",
    "exponent": f"2^{{{_WRITE}}}",
    "function": f"sin({_WRITE})",
    "equation": f"x={_WRITE}",
    "text": f"\\text{{{_WRITE}}}",
    "sympy name": 'S(\'open("MARKER","w")\')',
    "sympy evaluation": "Integer.__init__.__globals__",
    "pickle": "cos\\nsystem\\n(S'touch MARKER'\\ntR.",
    "decorator": f"@{_WRITE}",
    "shell": "$(touch MARKER)",
    "backquotes": "`touch MARKER`",
    "LaTeX": "\\immediate\\write18{touch MARKER}",
    "input": "\\input{/etc/passwd}",
    "template": "{{7*7}}",
    "braces of a format": "{0.__class__.__init__.__globals__}",
}
_REFERENCES = ("3\\pi", "3", "(1,2)", "[1,2)", "\\{1,2\\}", "x=1", "\\frac{1}{2}", "x+1")


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_program_is_never_run_and_never_right(
    payload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verifier = MathVerifier()
    for reference in _REFERENCES:
        for response in (f"\\boxed{{{payload}}}", f"The answer is {payload}", payload):
            assert verifier.judge(_item(response, reference)).reward == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_program_as_reference_is_not_run_either(
    payload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _attempt(MathVerifier().judge, _item("\\boxed{3}", payload))
    assert list(tmp_path.iterdir()) == []


# --- Noise ----------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        *"0123456789xyzi+-*/^_=<>()[]{}|,.;:!%$&#@~ '\"\\\n",
        *("\\frac", "\\sqrt", "\\boxed{", "\\text{", "\\left", "\\right", "\\pm", "\\pi"),
        *("\\infty", "\\cup", "\\begin{pmatrix}", "\\end{pmatrix}", "\\\\", "\\{", "\\}"),
        *("\\sum_{", "\\le", "\\circ", "\\overline{", "\\binom", "\\log", "sin", "sqrt", "10^"),
        *(
            "½",
            "²",
            "√",
            "π",
            "∞",
            "\N{MINUS SIGN}",
            "≤",
            "°",
            "\N{FULLWIDTH COMMA}",
            "\N{FULLWIDTH LEFT PARENTHESIS}",
            "答案",
            "\N{FULLWIDTH DIGIT ONE}",
            "\u200b",
            "e",
            "E",
        ),
        *("<answer>", "</answer>", "####", "Answer:", "</think>", "\\boxed", "\\(", "\\)", "and"),
    ]
)
NOISE = st.lists(_PIECES, max_size=40).map("".join) | st.text(max_size=60)


@settings(max_examples=600, deadline=None)
@given(NOISE, NOISE)
def test_noise_is_read_and_compared_without_an_error(left: str, right: str) -> None:
    compared = compare(read(left), read(right))
    assert compared.equal in (True, False, None)
    assert "\n" not in compared.note
    assert len(compared.note) < 1000


@settings(max_examples=400, deadline=None)
@given(NOISE)
def test_noise_as_response_gets_a_judgement_and_no_reward_for_nothing(noise: str) -> None:
    judgement = MathVerifier().glance(_item(noise, "7919.25"))
    assert judgement is None or isinstance(judgement, Judgement)
    if "7" not in noise and "\N{FULLWIDTH DIGIT SEVEN}" not in noise:
        assert judgement is None or judgement.reward == 0


@settings(max_examples=300, deadline=None)
@given(NOISE, st.sampled_from([Policy(), Policy(percent="strict", missing_unit=False)]))
def test_reading_twice_gives_the_same(noise: str, policy: Policy) -> None:
    first, second = read(noise, policy), read(noise, policy)
    assert (first.kind, first.form, first.trouble) == (second.kind, second.form, second.trouble)


if __name__ == "__main__":
    report()
