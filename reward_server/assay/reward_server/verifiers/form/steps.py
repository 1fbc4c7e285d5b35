"""`reasoning-steps`: whether a response shows steps: numbered lines, bullets, words of transition.

**What it judges.** The number of marks of a step, divided by `steps` (3) and at most 1. Marks are
"Step 1:", a line that begins with "1.", a line that begins with "- " or "* ", and the words
"First,", "Second,", "Next," and "Finally,".

**What could be gamed.** Everything: marks are cheap, and what stands between them is not read. Use
it with a small weight in the first steps of training, if at all.

**Differences.** open-r1's pattern finds "1." only at the start of the response and bullets only
after a first line; here every line counts alike, and a bullet needs white space after it, so that
"**bold**" and "--" are none.

**Limits.** English words, and four marks: steps in paragraphs or in another language are not seen.

**Source.** open-r1's `reasoning_steps_reward`. Linear in the response; the server itself judges up
to 32,768 characters, a worker more.

Measured: seven worked responses (`tests/unit/test_verifier_form.py`). How well marks of steps agree
with steps that people see: not yet, because no such labels are at hand.
"""

from __future__ import annotations

import re
from typing import Annotated

from assay.reward_server.domain import (
    Component,
    Judgement,
    VerifierItem,
)
from assay.reward_server.functions import Range, verifier

_MARK = re.compile(
    r"\bStep \d+:|^[ \t]*\d+\.[ \t]|^[ \t]*[-*][ \t]|\b(?:First|Second|Next|Finally),",
    re.MULTILINE,
)

_GLANCE_CHARS = 32_768


def count_steps(text: str) -> int:
    """How many marks of a step a text has."""
    return sum(1 for _ in _MARK.finditer(text))


@verifier(
    "reasoning-steps",
    verdicts=("steps", "few-steps", "no-steps"),
    needs_reference=False,
    cacheable=False,
    glance=_GLANCE_CHARS,
)
def reasoning_steps(
    item: VerifierItem,
    *,
    steps: Annotated[int, Range(1, 1000), "How many marks earn the whole reward."] = 3,
) -> Judgement:
    """The response shows steps: numbered lines, bullets or words of transition."""
    count = count_steps(item.response())
    score = min(1.0, count / steps)
    return Judgement.composed(
        "steps" if score == 1.0 else "few-steps" if count else "no-steps",
        (Component("steps", score),),
        explanation=f"{count} marks of a step, {steps} wanted",
    )
