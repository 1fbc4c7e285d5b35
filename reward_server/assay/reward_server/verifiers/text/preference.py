"""`preference`: the response says which of two responses is better, or that they are equal.

How. The last verdict of the answer is read: "[[A]]", "A>B", "A>>B", "B is better", "Response 2", a
bare "A", "tie", "[[C]]" and "A=B" for a tie. It is compared with the reference, which is A, B, 1, 2
or tie. Both numbers and letters name the two in order. Linear.

What a policy could game. Guessing is right half the time, and a preference for the first or the
longer one does better than that on many sets: send each pair in both orders, and see
`pairwise-accuracy` for scores. "A is better and B is better" is hedged.

Limits. English. Strength (A>>B against A>B) does not count.

Differences from the judges' own scripts:
1. MT-Bench takes the first [[A]] or [[B]] anywhere; Arena-Hard the first [[A>>B]]-like mark. Here
   the last line that holds a verdict decides, and two different verdicts in it are hedged; a later
   line that is another number or letter (`3`) takes the verdict back.

Sources: MT-Bench, Zheng et al. 2023, arXiv 2306.05685; Arena-Hard, Li et al. 2024, arXiv
2406.11939; RewardBench, arXiv 2403.13787.

Measured: 16 forms of a verdict, and the law that no text means both
(`tests/unit/test_verifier_text_structured.py`). On verdicts of real judges: not yet, because no
labelled ones are at hand.
"""

from __future__ import annotations

import re
from typing import Final

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import verifier
from assay.reward_server.verifiers.text.parts import (
    Extract,
    NoPart,
    part_of,
    shown,
    unparsed,
)

_TAIL_CHARS = 4_000
_WHO: Final = r"(?:(?:assistant|response|answer|model|option|completion|output|candidate)\s{1,3})"
_VERDICT = re.compile(
    rf"""
    \[\[\s?(?P<mark>[ABC12]|tie)\s?\]\]
    | (?<![A-Za-z0-9])(?P<left>[AB])\s?(?P<sign>>{{1,2}}|<{{1,2}}|=|≻|≺|≈)
      \s?(?P<other>[AB])(?![A-Za-z])
    | {_WHO}?(?<![A-Za-z0-9])(?P<said>[AB12])\s(?:is|was)\s
      (?:(?:much|slightly|clearly|the|significantly)\s){{0,2}}
      (?:better|best|superior|preferred|stronger|winner)(?![A-Za-z])
    | (?P<tied>(?<![a-z])(?:tie|tied|equally\sgood)(?![a-z]))
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BARE = re.compile(
    rf"[\s*_`\"'.:(\[]{{0,20}}{_WHO}?([AB12]|tie|equal)[\s*_`\"'.)\]]{{0,20}}", re.IGNORECASE
)
_ELSE = re.compile(
    rf"(?:.{{0,200}}(?<![a-z])(?:answer|verdict|choice|preference)(?![a-z]).{{0,40}}?(?::|\sis\s))?"
    rf"[\s*_`\"'.:(\[]{{0,20}}{_WHO}?(?![AB12](?!\d))(?:[A-Z]|\d{{1,3}})[\s*_`\"'.)\]]{{0,20}}",
    re.IGNORECASE,
)
"""A line whose answer is a letter or number of neither."""
_NAMES: Final = {"a": "A", "1": "A", "b": "B", "2": "B", "c": "tie", "tie": "tie", "equal": "tie"}


@verifier(
    "preference",
    version="2",
    verdicts=("correct", "incorrect", "hedged", "unparsed"),
    isolation="inline",
)
def preference(item: VerifierItem, *, extract: Extract = "final") -> Judgement:
    """The response says which of two responses is better, or that they are equal.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is not A, B, 1, 2 or tie.
    """
    right = {_reference(text) for text in item.answers()}
    part = part_of(item.response(), extract)
    if isinstance(part, NoPart):
        return unparsed("correctness", part.why)
    found = verdicts(part.text)
    if not found:
        return unparsed("correctness", "the answer holds no verdict on the pair")
    if len(found) > 1:
        return Judgement.composed(
            "hedged",
            (Component("correctness", 0.0),),
            extracted_answer=shown(part.text[-200:]),
            explanation=f"two verdicts in one line: {' and '.join(sorted(found))}",
        )
    (verdict,) = found
    return Judgement.composed(
        "correct" if verdict in right else "incorrect",
        (Component("correctness", float(verdict in right)),),
        extracted_answer=verdict,
        explanation=f"prefers {verdict}",
    )


def verdicts(text: str) -> frozenset[str]:
    """The verdicts ("A", "B", "tie") of the last line of a text that holds any.

    None where a later line names something else as the answer.
    """
    for line in reversed(text[-_TAIL_CHARS:].splitlines()):
        bare = _BARE.fullmatch(line)
        if bare:
            return frozenset({_NAMES[bare[1].lower()]})
        found = frozenset(name for mark in _VERDICT.finditer(line) if (name := _named(mark)))
        if found or _ELSE.fullmatch(line):
            return found
    return frozenset()


def _named(mark: re.Match[str]) -> str | None:
    if mark["tied"]:
        return "tie"
    if mark["sign"]:
        return _compared(mark["left"].upper(), mark["sign"][0], mark["other"].upper())
    return _NAMES[(mark["mark"] or mark["said"]).lower()]


def _compared(left: str, sign: str, right: str) -> str | None:
    if left == right:
        return None
    if sign in "=≈":
        return "tie"
    return left if sign in ">≻" else right


def _reference(text: str) -> str:
    name = _NAMES.get(text.strip().strip("[]()").lower())
    if name is None:
        raise Unjudgeable(
            UNUSABLE_REFERENCE, f"the reference {text[:80]!r} is not A, B, 1, 2 or tie"
        )
    return name
