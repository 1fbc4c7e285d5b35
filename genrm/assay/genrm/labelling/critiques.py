"""What several critiques of a response say together, and which of them are worth learning. Pure.

SPARK (arXiv 2512.03244), stages 1 and 2. By `whole`: the closing verdict is the majority's (see
`assay.genrm.judges.critique.majority`); by `steps`: that of every step too, which the paper finds
better. How many of one response are kept is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from assay.genrm.judges.consensus import cut
from assay.genrm.judges.critique import Majority, majority, parse_critique

Agreement = Literal["steps", "whole"]
Written = Literal["critiques", "steps", "whole"]
"""What is learnt: a critique (PRM-CoT), labels of steps (PRM), or one of the whole (ORM)."""


def consensus(texts: Sequence[str], response: str) -> tuple[Majority | None, int]:
    """The majority of the critiques that can be read, None without one, and how many cannot."""
    steps = len(cut(response))
    read = [found for text in texts if (found := parse_critique(text, steps)) is not None]
    return majority(read) if read else None, len(texts) - len(read)


def labelled(found: Majority, response: str, written: Written) -> dict[str, object]:
    """The columns of a row that has the majority for its label.

    `steps` and `labels` of rows that `assay train-rm` learns a PRM from; `label` of those of a
    judge of whole responses.
    """
    if written == "steps":
        parts = cut(response)
        end = "\n" if "\n".join(parts) in response else "\n\n"
        steps = [*(part + end for part in parts[:-1]), parts[-1]]
        return {"steps": steps, "labels": [int(right) for right in found.steps]}
    return {"response": response, "label": int(found.final)}


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
