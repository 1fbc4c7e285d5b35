"""Reads verdicts out of what a judge wrote: strictly, so that what is unclear is no vote.

Only the judge's own text comes here. What the candidate wrote reaches it only as a quotation by the
judge, and a quoted verdict beside a real one makes the text unclear. Linear in the text's length.
"""

from __future__ import annotations

from collections.abc import Sequence

_THOUGHT_ENDS = "</think>"
ANSWER_BEGINS = "<answer>"
_ANSWER_ENDS = "</answer>"


def read_direct(text: str, options: Sequence[str], prefill: str = "") -> int | None:
    """Which option a judge gave at once.

    The text is the option and nothing else, but for the prefill said again, space around it, and
    one full stop.

    Args:
        text: what it wrote.
        options: the verdicts.
        prefill: how its answer began; some servers cannot begin it, and the judge says it itself.

    Returns:
        The option's index, or None where the text is not exactly one.
    """
    said = text.strip().removeprefix(prefill.strip()).strip().removesuffix(".")
    return _index(said, options)


def read_reasoned(text: str, options: Sequence[str]) -> int | None:
    """Which option a judge gave after it thought (R1-Reward, arXiv 2505.02835).

    Everything after the end of the thinking is one answer tag that holds one option; a second
    verdict, or words after it, and there is none.

    Args:
        text: `<think>` (which may be missing: a prefill is not part of the text), the reasons,
            `</think>`, `<answer>OPTION</answer>`.
        options: the verdicts.

    Returns:
        The option's index, or None where the text does not keep to the protocol.
    """
    _, ended, rest = text.partition(_THOUGHT_ENDS)
    rest = rest.strip()
    if not ended or not rest.startswith(ANSWER_BEGINS) or not rest.endswith(_ANSWER_ENDS):
        return None
    return _index(rest[len(ANSWER_BEGINS) : -len(_ANSWER_ENDS)].strip(), options)


def thought(text: str) -> str | None:
    """The judge's text up to the end of its thinking, that included; None where it has none."""
    before, ended, _ = text.partition(_THOUGHT_ENDS)
    return before + ended if ended else None


def reasons(text: str) -> str:
    """What the judge thought, without the tags; the whole text where it did not end its thought."""
    return text.partition(_THOUGHT_ENDS)[0].strip().removeprefix("<think>").strip()


def _index(said: str, options: Sequence[str]) -> int | None:
    for index, option in enumerate(options):
        if said == option.strip():
            return index
    return None
