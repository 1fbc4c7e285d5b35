"""Which critiques of a response are worth learning: those that agree with most of the others. Pure.

SPARK (arXiv 2512.03244), stages 1 and 2. By `whole`: the closing verdict is the majority's (see
`assay.genrm.judges.critique.majority`); by `steps`: that of every step too, which the paper finds
better. How many of one response are kept is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from assay.genrm.judges.consensus import cut
from assay.genrm.judges.critique import majority, parse_critique

Agreement = Literal["steps", "whole"]


def agreeing(
    texts: Sequence[str], response: str, by: Agreement = "steps", most: int = 1
) -> tuple[list[str], Counter[str]]:
    """The critiques that are kept, at most so many, and how many are unreadable or disagree."""
    steps = len(cut(response))
    read = [found for text in texts if (found := parse_critique(text, steps)) is not None]
    counts = Counter({"unreadable": len(texts) - len(read)})
    if not read:
        return [], +counts
    agreed = majority(read)
    kept = [
        one.text
        for one in read
        if one.final == agreed.final and (by == "whole" or one.steps == agreed.steps)
    ]
    counts["disagreeing"] = len(read) - len(kept)
    return kept[:most], +counts
