r"""How many references of web-scale data the maths reader takes for plain text.

Three counts of each set, each a part of the one before: references read as text; those with a
digit, a macro or an operator; and those of them that are one formula or value rather than a
sentence: at most `MOST_WORDS` words of three letters and more stand outside the formulas, and
braces and brackets close. The last are what a reader of formulas owes; the rest are explanations,
and texts that lost a part on their way.
"""

from __future__ import annotations

import re

from assay.math.judging import Rules, _reference
from bench.math_rows import read as rows

SETS = {"TinyV / Big-Math": "tinyv_bigmath_5k.jsonl.gz", "College-Math": "college_math.jsonl.gz"}
MOST_WORDS = 2
_RULES = Rules()
_HOLDS = re.compile(r"[\d\\=+*/^<>]")
_LAYOUT = re.compile(
    r"\$[^$]*\$|\\(?:begin|end)\{[^}]*\}|\\(?:text|mathrm|operatorname)\s?\{|\\[A-Za-z]+"
)
_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{3,}")


def is_formula(text: str) -> bool:
    """Whether a text is one formula or value, perhaps with a word or two, whose braces close."""
    plain = text.replace("\\{", "").replace("\\}", "")
    closed = plain.count("{") == plain.count("}") and text.count("$") % 2 == 0
    return closed and len(_WORD.findall(_LAYOUT.sub(" ", text))) <= MOST_WORDS


def taken_for_text(texts: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The references read as text; those that hold mathematics; those that are formulas."""
    words = [text for text in texts if _reference(text, _RULES).kind == "text"]
    mathematics = [text for text in words if _HOLDS.search(text)]
    return words, mathematics, [text for text in mathematics if is_formula(text)]


def run() -> None:
    """Prints the table, and the formulas that are not read."""
    left: list[str] = []
    print("| references | all | read as text | with mathematics | formulas |")
    print("|---|---|---|---|---|")
    for name, file in SETS.items():
        texts = [str(row["answer"]) for row in rows(file)]
        counts = taken_for_text(texts)
        left += counts[2]
        shares = [f"{100 * len(part) / len(texts):.2f} %" for part in counts]
        print(f"| {name} | {len(texts):,} | {' | '.join(shares)} |")
    print(*(repr(text)[:100] for text in left), sep="\n")
