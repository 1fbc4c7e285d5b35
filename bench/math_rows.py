r"""The pairs on which graders of mathematics are compared: gold answer, response, and the label.

`labelled` and `near misses` are evaluation files; of a problem set each gold answer is asked about
twice, once answered with itself and once with the gold answer of the next problem. Answers stand in
a box, because some graders look nowhere else. The pairs by class are this project's own text, in
tests/golden/math_pairs, which says how they came about.
"""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass
from pathlib import Path

PAIRS = Path(__file__).resolve().parents[1] / "tests" / "golden" / "math_pairs"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PROBLEMS = 500
PROBLEM_SETS = {"GSM8K": "gsm8k_test", "MATH-500": "math500", "DAPO-17k": "dapo_math_17k"}
WARM_UP = (
    ("\\frac{1}{2}", "\\boxed{0.5}"),
    ("x^2+1", "\\boxed{1+x^2}"),
    ("\\{1,2\\}", "\\boxed{(1,2)}"),
    ("\\sin(2x)", "So it is $2\\sin(x)\\cos(x)$."),
)
# Each writes a file called `forged` where it runs, if the grader executes the answer's text. The
# gold answer is such that a grader which executes may take the forgery for right.
MARKER = "forged"
_OPEN = f"open('{MARKER}','w')"
PAYLOADS = (
    ("3\\pi", f"{_OPEN}.fileno()*\\pi"),
    ("3", f"{_OPEN}.fileno()"),
    ("(1,2)", f"(1,{_OPEN})"),
    ("[1,2]", f"[1,{_OPEN}]"),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", f"\\begin{{pmatrix}}1\\\\{_OPEN}\\end{{pmatrix}}"),
    ("7", f'exec("{_OPEN}")'),
    ("7", f"__import__('os').system('touch {MARKER}')"),
    ("x", f"(lambda: {_OPEN})()"),
    ("\\frac{1}{2}", f"\\frac{{1}}{{{_OPEN}}}"),
)
ENDLESS = (
    ("4", "9^{9^{9^9}}"),
    ("4", "((9!)!)!"),
    ("4", "\\binom{10^6}{5\\cdot10^5}"),
    ("4", "(" * 400 + "1" + ")" * 400),
    ("4", "\\sqrt{" * 60 + "2" + "}" * 60),
    ("4", "\\sum_{k=1}^{10000000}\\frac{1}{k}"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A pair to judge.

    Attributes:
        gold: the reference.
        response: what is judged.
        right: the label.
        hard: many graders got it wrong, or another notation has to be read.
        question: what was asked, where the pair has it.
        kind: its class, where the set has some.
        name: its own, where the set has names.
    """

    gold: str
    response: str
    right: bool
    hard: bool = False
    question: str = ""
    kind: str = ""
    name: str = ""


def read(name: str | Path, folder: Path = DATA) -> list[dict[str, object]]:
    """The lines of a file: of the shared data, where neither path nor folder says another."""
    path = folder / name
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.decode().split("\n") if line]


def labelled(name: str) -> list[Row]:
    """The rows of an evaluation file."""
    return [
        Row(str(row["gold"]), str(row["response"]), bool(row["label"]), bool(row.get("hard")))
        for row in read(name)
    ]


def pairs(part: str) -> list[Row]:
    """The pairs by class: `open` ones, or those `sealed` to whoever writes the reader."""
    return [
        Row(
            gold=str(row["gold"]),
            response=str(row["response"]),
            right=bool(row["equal"]),
            hard=bool(row["hard"]),
            question=str(row.get("question", "")),
            kind=str(row["class"]),
            name=str(row["id"]),
        )
        for row in read(PAIRS / f"{part}.jsonl.gz")
    ]


def boxed(answer: str) -> str:
    """A response that ends with the answer."""
    return f"Therefore the final answer is $\\boxed{{{answer}}}$."


def gold_answers(name: str) -> list[Row]:
    """Own answer and a neighbour's, for a sample of a problem set; the same at every run."""
    rows = read(f"{name}.jsonl.gz")
    golds = [str(row["answer"]) for row in random.Random(0).sample(rows, min(PROBLEMS, len(rows)))]
    pairs: list[Row] = []
    for gold, neighbour in zip(golds, [*golds[1:], golds[0]], strict=True):
        pairs.append(Row(gold, boxed(gold), right=True))
        if neighbour != gold:
            pairs.append(Row(gold, boxed(neighbour), right=False))
    return pairs


def all_sets() -> dict[str, list[Row]]:
    """Every set by its name."""
    sets = {
        "labelled": labelled("math_equiv_dev.jsonl.gz"),
        "near misses": labelled("math_equiv_adversarial_dev.jsonl"),
    }
    return sets | {name: gold_answers(file) for name, file in PROBLEM_SETS.items()}
