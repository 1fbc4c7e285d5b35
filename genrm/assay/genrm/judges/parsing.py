"""Reads verdicts out of what a judge wrote: strictly, so that what is unclear is no vote.

The candidate's text reaches this module only as the judge's quotation, and a quoted verdict beside
a real one makes the text unclear. Linear in the text's length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.genrm.engines.thoughts import CLOSERS, OURS

_THOUGHT_ENDS = re.compile("|".join(map(re.escape, CLOSERS.values())))
ANSWER_BEGINS = "<answer>"
ANSWER_ENDS = "</answer>"


def read_direct(text: str, options: Sequence[str], prefill: str = "") -> int | None:
    """Index of the option that the whole text is; None where it is not exactly one.

    Ignored: the prefill said again (some servers cannot begin an answer), space around, one full
    stop.
    """
    said = text.strip().removeprefix(prefill.strip()).strip().removesuffix(".")
    return _index(said, options)


def read_reasoned(text: str, options: Sequence[str]) -> int | None:
    """Index of the option that a judge gave after it thought (R1-Reward, arXiv 2505.02835).

    None unless the text is reasons, `</think>`, `<answer>OPTION</answer>`, and nothing more.
    """
    ended = _THOUGHT_ENDS.search(text)
    rest = text[ended.end() :].strip() if ended else ""
    if not ended or not rest.startswith(ANSWER_BEGINS) or not rest.endswith(ANSWER_ENDS):
        return None
    return _index(rest[len(ANSWER_BEGINS) : -len(ANSWER_ENDS)].strip(), options)


def thought(text: str) -> str | None:
    """The thinking, without its end; None where it does not end."""
    ended = _THOUGHT_ENDS.search(text)
    return text[: ended.start()] if ended else None


def reasons(text: str) -> str:
    """The thinking without its tags; the whole text where the thinking does not end."""
    ended = _THOUGHT_ENDS.search(text)
    return text[: ended.start() if ended else None].strip().removeprefix(OURS).strip()


def _index(said: str, options: Sequence[str]) -> int | None:
    for index, option in enumerate(options):
        if said == option.strip():
            return index
    return None
