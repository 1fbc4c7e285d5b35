"""`countdown` and `game24`: arithmetic of given numbers that reaches a target.

Countdown as TinyZero trains it, and the game of 24 (Tree of Thoughts, arXiv 2305.10601). The
reference of countdown is `{"numbers": [...], "target": n}`; of game24 `{"numbers": [...]}` or a
text of numbers between blanks, with the target 24. The response's answer is one expression of whole
numbers, + - * / and parentheses, worked out exactly by `arithmetic` (fractions on the way are
fine), in which each number is used exactly once (or, with use=at-most-once, not more often than it
was given). A trailing "= n" is taken off, and must be true.

Where the answer stands (parameter extract): `auto` takes the last `<answer>`, box, "Answer:" or the
like as `extraction` finds it, else the last line. `answer-tag` is TinyZero's form. The reward of a
well-formed expression that misses the target or the numbers is format_score.

What a policy could game: nothing is known to pass; "(6 - 4) * 5 = 24" does not, because the left
side is worked out. A number may not be made of others' digits, and zero times anything still needs
every number once.

Limits. Whole numbers and four operations: no powers, roots or factorials, which some versions of
the game allow; numbers may not be joined (2 and 4 are not 24).

Differences: 1. TinyZero works the text out as Python code behind a check of its characters, which
takes 2**9**9, 10//3 and digits with leading zeros; here there is no power, no whole division, and a
leading zero is refused. 2. TinyZero compares floats within 1e-5; here values are equal or not. 3.
It gives 0.1 for a well-formed wrong expression; here format_score is 0 unless it is set. 4. The
game of 24's own check lets sympy simplify the text (again code that is executed), asks the digits
in the text to be the numbers', and reads the last line only.

Measured: against the verdicts of Tree of Thoughts (arXiv 2305.10601) on 6,000 answers of GPT-4 in
the game of 24: 5,999 equal; the other holds `= 48`, and theirs looked at one side alone
(`tests/unit/test_verifier_puzzles.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

from assay.math.extraction import FoundAnswer, Nothing, final_part, look
from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.puzzles.arithmetic import (
    MAX_DIGITS,
    MAX_NUMBERS,
    ArithmeticTrouble,
    Worked,
    plain,
    work_out,
)

_SHOWN_CHARS = 300
_FENCE = re.compile(r"\A`{1,3}[a-z]{0,10}\s|`{1,3}\Z|\A`{1,3}")
_MARK = re.compile(r"<answer>|\\boxed|\\fbox")  # broken: no last line makes up for it
_LEADING_ZERO = re.compile(r"(?<!\d)0\d")
Use = Annotated[Literal["exactly-once", "at-most-once"], "How often each number is used."]
Extract = Annotated[
    Literal["auto", "answer-tag", "boxed", "answer-line", "last-line", "whole"],
    "Where the expression stands: the marked answer or else the last line; the last <answer>; "
    "the last box; the last line; or the whole response.",
]
FormatScore = Annotated[
    float, Range(0.0, 1.0), "The reward of an expression that can be read and is not right."
]


@verifier(
    "countdown", verdicts=("correct", "incorrect", "unparsed"), isolation="inline", cacheable=False
)
def countdown(
    item: VerifierItem,
    *,
    use: Use = "exactly-once",
    extract: Extract = "auto",
    format_score: FormatScore = 0.0,
) -> Judgement:
    """The expression uses the given numbers and reaches the target.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    fields = item.document()
    if not isinstance(fields, dict) or "numbers" not in fields or "target" not in fields:
        raise _unusable('the reference must be an object {"numbers": [...], "target": n}')
    numbers = given_numbers(fields["numbers"])
    target = Fraction(whole_numbers([fields["target"]])[0])
    return _judged(item, numbers, target, use, extract, format_score=format_score)


@verifier(
    "game24", verdicts=("correct", "incorrect", "unparsed"), isolation="inline", cacheable=False
)
def game24(
    item: VerifierItem,
    *,
    use: Use = "exactly-once",
    extract: Extract = "auto",
    format_score: FormatScore = 0.0,
) -> Judgement:
    """The expression uses the given numbers and makes 24.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    value: JsonValue
    if item.data is None and len(item.references) == 1 and "[" not in item.references[0]:
        value = item.references[0]
    else:
        value = item.document()
    if isinstance(value, dict):
        value = value.get("numbers")
    if isinstance(value, str):
        words = value.replace(",", " ").split()
        if not all(word.isascii() and word.isdigit() for word in words):
            raise _unusable("the reference's text must hold whole numbers between blanks")
        value = [int(word) for word in words if len(word) <= MAX_DIGITS]
    return _judged(
        item, given_numbers(value), Fraction(24), use, extract, format_score=format_score
    )


def _judged(
    item: VerifierItem,
    numbers: list[int],
    target: Fraction,
    use: str,
    extract: str,
    *,
    format_score: float,
) -> Judgement:
    found = _find(item.response(), extract)
    if isinstance(found, Nothing):
        return _unparsed(found.why, None)
    text = found.text
    try:
        worked, claimed = read_answer(text)
    except ArithmeticTrouble as trouble:
        return _unparsed(str(trouble), text)
    why = fault_of(worked, claimed, numbers, target, use)
    return Judgement.composed(
        "incorrect" if why else "correct",
        (Component("solved", format_score if why else 1.0),),
        extracted_answer=text[:_SHOWN_CHARS],
        explanation=why or f"reaches {target} with the numbers given",
    )


def _find(response: str, how: str) -> FoundAnswer | Nothing:
    """The answer: for `auto` the marked one, and where nothing is marked the last line."""
    if how != "auto":
        return look(response, how)
    found = look(response, "strict")
    if isinstance(found, FoundAnswer) or _MARK.search(final_part(response)[1]):
        return found
    return look(response, "last-line")


def read_answer(text: str) -> tuple[Worked, Fraction | None]:
    """An expression, and the value that stands behind its "=", if there is one.

    Raises:
        ArithmeticTrouble: it cannot be read.
    """
    text = _FENCE.sub("", plain(text[:4_000]).strip()).strip().rstrip(".")
    left, equals, right = text.rpartition("=") if "=" in text else (text, "", "")
    if "=" in left:
        raise ArithmeticTrouble("more than one =")
    if _LEADING_ZERO.search(left):
        raise ArithmeticTrouble("a number has a leading zero")
    if len(text) >= 4_000:
        raise ArithmeticTrouble("the answer is too long")
    return work_out(left), work_out(right).value if equals else None


def fault_of(
    worked: Worked, claimed: Fraction | None, numbers: Sequence[int], target: Fraction, use: str
) -> str:
    """What is wrong with an answer; empty when nothing is.

    Args:
        worked: the expression.
        claimed: the value behind its "=", if there was one.
        numbers: those given.
        target: to be reached.
        use: "exactly-once" or "at-most-once".
    """
    used, given = Counter(worked.numbers), Counter(numbers)
    if used - given:
        return f"uses {_shown((used - given).elements())}, not given or too often"
    if use == "exactly-once" and given - used:
        return f"does not use {_shown((given - used).elements())}"
    if worked.value != target:
        return f"makes {_value(worked.value)}, not {target}"
    if claimed is not None and claimed != target:
        return f"claims {_value(claimed)} behind the equals sign"
    return ""


def given_numbers(value: JsonValue) -> list[int]:
    """The numbers to be used, none of them negative: an expression writes its numbers without sign.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE.
    """
    numbers = whole_numbers(value)
    if min(numbers) < 0:
        raise _unusable("numbers of the reference must not be negative")
    return numbers


def whole_numbers(value: JsonValue) -> list[int]:
    """The numbers of a reference.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE.
    """
    if not isinstance(value, list) or not 0 < len(value) <= MAX_NUMBERS:
        raise _unusable(f"numbers of the reference must be 1 to {MAX_NUMBERS} whole numbers")
    read = []
    for entry in value:
        if isinstance(entry, float) and entry.is_integer():
            entry = int(entry)  # noqa: PLW2901 - JSON has one kind of number
        if isinstance(entry, bool) or not isinstance(entry, int) or abs(entry) >= 10**MAX_DIGITS:
            raise _unusable(f"the reference holds {str(entry)[:40]!r} where a whole number belongs")
        read.append(entry)
    return read


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, trouble)


def _shown(numbers: object) -> str:
    return ", ".join(map(str, list(numbers)[:8]))  # type: ignore[call-overload]


def _value(value: Fraction) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{float(value):g}"


def _unparsed(why: str, text: str | None) -> Judgement:
    return Judgement.composed(
        "unparsed",
        (Component("solved", 0.0),),
        extracted_answer=text[:_SHOWN_CHARS] if text else None,
        explanation=f"no expression can be read: {why}"[:500],
    )
