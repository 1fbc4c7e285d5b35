"""Reads verdicts out of what a judge wrote: strictly, so that what is unclear is no vote.

Strict in what is said, tolerant in how it is dressed (`dress`): every dialect is a row of
tests/dialects/verdicts.toml, beside what must stay unread. The candidate's text reaches this module
only as the judge's quotation, and a quoted verdict beside a real one makes the text unclear. Linear
in the text's length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.genrm.engines.thoughts import CLOSERS, OURS
from assay.genrm.judges.dress import QUOTES, bare, marks, unwrapped

_THOUGHT_ENDS = re.compile("|".join(map(re.escape, CLOSERS.values())))
ANSWER_BEGINS = "<answer>"
ANSWER_ENDS = "</answer>"
_ANSWER = re.compile(r"[\s*`_]*<answer>([^<>]{1,200})</answer>[\s*`_.]*", re.IGNORECASE)
_VERDICT_CHARS = 200
_LABEL = re.compile(
    r"(?:(?:my|the|so,? the) )?(?:final |overall )?(?:verdict|answer|decision|grade|class|choice)"
    r"(?: ?: ?| is ?:? ?)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:response|answer|option|assistant|candidate|grade|class) (.{1,64}?)"
    r"(?: is (?:the )?better)?",
    re.IGNORECASE,
)


def read_direct(text: str, options: Sequence[str], prefill: str = "") -> int | None:
    """Index of the option that the whole text is; None where it is not exactly one.

    Ignored: a thought before it, its dress, the prefill said again (some servers cannot begin an
    answer) or a label like it, "Response" before a letter, and the case of a word.
    """
    said = spoken(text)
    if said is None or len(said) > _VERDICT_CHARS or marks(said):
        return None
    said = bare(said)
    begun = bare(prefill)
    if begun and said.lower().startswith(begun.lower()):
        said = unwrapped(said[len(begun) :].lstrip(" :"))
    said = unwrapped(_LABEL.sub("", said, count=1)) if _LABEL.match(said) else said
    said = unwrapped(said, QUOTES)
    found = _index(said, options)
    named = _NAMED.fullmatch(said) if found is None else None
    return _index(unwrapped(named[1]), options) if named else found


def read_reasoned(text: str, options: Sequence[str]) -> int | None:
    """Index of the option that a judge gave after it thought (R1-Reward, arXiv 2505.02835).

    None unless the text is reasons, the end of the thought, and a verdict and nothing more:
    `<answer>OPTION</answer>`, or an option that a label such as "Final verdict:" announces.
    """
    ended = _THOUGHT_ENDS.search(text)
    if ended is None:
        return None
    rest = text[ended.end() :].strip()
    if tagged := _ANSWER.fullmatch(rest):
        return _index(bare(tagged[1]), options)
    if len(rest) > _VERDICT_CHARS or not _LABEL.match(bare(rest)):
        return None
    return read_direct(rest, options)


def spoken(text: str) -> str | None:
    """What a judge said behind a thought that the text begins with; None where it does not end."""
    begun = text.lstrip()
    if not begun.startswith(tuple(CLOSERS)):
        return text
    ended = _THOUGHT_ENDS.search(begun)
    return begun[ended.end() :] if ended else None


def thought(text: str) -> str | None:
    """The thinking, without its end; None where it does not end."""
    ended = _THOUGHT_ENDS.search(text)
    return text[: ended.start()] if ended else None


def reasons(text: str) -> str:
    """The thinking without its tags; the whole text where the thinking does not end."""
    ended = _THOUGHT_ENDS.search(text)
    return text[: ended.start() if ended else None].strip().removeprefix(OURS).strip()


def _index(said: str, options: Sequence[str]) -> int | None:
    """Which option a text is; the case of a letter counts, that of a word only if it must."""
    stripped = [option.strip() for option in options]
    if said in stripped:
        return stripped.index(said)
    if len(said) < 2:
        return None
    folded = [option.casefold() for option in stripped]
    return folded.index(said.casefold()) if folded.count(said.casefold()) == 1 else None
