r"""Where the answer stands in a text, and how a reference is delimited. No algebra.

A reference without delimiters, such as `12\pi`, makes math-verify scrape a number out of it and
accept 12. So a reference is always handed over inside `\boxed{...}`, whatever delimiters it came
with.

Every function here is linear in the length of its text.
"""

from __future__ import annotations

import re

GSM8K_MARKER = "####"
_END_OF_THOUGHT = "</think>"
_BOX = "\\boxed{"
_INTEGER = re.compile(r"[-+]?\d[\d,]*")
_FRACTION = r"[-+]?\(?\d+\)?/\(?\d+\)?|[-+]?\\[dt]?frac\{\d+\}\{\d+\}"
_DIVISION = re.compile(_FRACTION)
_NUMBER = re.compile(rf"[-+]?(\d[\d,]*(\.\d+)?|\.\d+)%?|{_FRACTION}")
_TIMES = r"\\times|\\cdot|[*\u00d7\u00b7]"
_POWER_OF_TEN = re.compile(rf"[-+]?(\d+(\.\d+)?({_TIMES}))?10(\^|\*\*)(\{{?[-+]?\d+\}}?)")
_DEGREES = re.compile(r"\^\{?\\circ\}?")
_OPERATION = re.compile(
    rf"(?<=[\d.)}}\]!])({_TIMES}|[-+^\u00f7]|\\div)(?=[-+({{\d.\\])|(?<=[\d)])\((?=[-+\d])"
)
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))


def boxed_contents(text: str) -> tuple[str, ...]:
    r"""What stands in each balanced `\boxed{...}` that is not inside another one, in order."""
    closed: list[tuple[int, int]] = []
    open_braces: list[int | None] = []
    i = 0
    while i < len(text):
        if text.startswith(_BOX, i):
            i += len(_BOX)
            open_braces.append(i)
            continue
        character = text[i]
        if character == "\\":
            i += 2
            continue
        if character == "{":
            open_braces.append(None)
        elif character == "}" and open_braces:
            start = open_braces.pop()
            if start is not None:
                closed.append((start, i))
        i += 1
    outer: list[str] = []
    reached = len(text)
    for start, end in reversed(closed):
        if end <= reached:
            outer.append(text[start:end])
            reached = start
    return tuple(reversed(outer))


def final_part(response: str) -> str:
    """The part of a response in which the answer is looked for.

    What precedes the last `</think>` is thought, not answer. In a response without a box, the line
    after the last `####` is the answer, as in GSM8K.
    """
    text = response.rpartition(_END_OF_THOUGHT)[2]
    if _BOX in text or GSM8K_MARKER not in text:
        return text
    tail = text.rpartition(GSM8K_MARKER)[2].strip()
    return tail.partition("\n")[0].strip()


def states_answer(response: str) -> bool:
    r"""Whether the answer is marked: in a `\boxed{...}`, after `####`, or after `Answer:`."""
    text = response.rpartition(_END_OF_THOUGHT)[2]
    if any(content.strip() for content in boxed_contents(text)):
        return True
    return any(
        text.rpartition(marker)[2].strip() for marker in (GSM8K_MARKER, "Answer:") if marker in text
    )


def delimited_reference(reference: str) -> str:
    r"""The reference's answer inside `\boxed{...}`; empty when the reference holds no answer.

    A solution of GSM8K gives what follows its last `####`, a text with boxes the content of its
    last box, any other text itself without its outer dollars or brackets.
    """
    text = reference.strip()
    if GSM8K_MARKER in text:
        text = text.rpartition(GSM8K_MARKER)[2].strip()
    boxes = boxed_contents(text)
    text = _undelimited(boxes[-1] if boxes else text)
    return f"{_BOX}{text}}}" if text else ""


def leaves_work_undone(answer: str, delimited: str) -> bool:
    r"""Whether the reference is a number and the answer a computation that gives it, not a number.

    To a computer algebra system `4 * 7` is as good an answer to "what is 4 * 7?" as `28`, so a
    policy that is paid for equality learns to repeat the question. What counts as undone, where the
    reference is a number: a sum, difference, product, quotient sign or power between numbers; and
    where the reference is whole, a fraction. Not undone: `3 \times 10^5`, `10^5`, `90^\circ`, a
    root, and a fraction that is not reduced.

    Args:
        answer: the answer's text as extracted; of an equation, what follows the last `=`.
        delimited: a reference as `delimited_reference` gives it.
    """
    reference = _compact(delimited.removeprefix(_BOX).removesuffix("}"))
    if not _NUMBER.fullmatch(reference):
        return False
    stated = _DEGREES.sub("", _compact(answer.rpartition("=")[2]))
    if _POWER_OF_TEN.fullmatch(stated):
        return False
    if _INTEGER.fullmatch(reference) and _DIVISION.fullmatch(stated):
        return True
    return _OPERATION.search(stated) is not None


def _compact(text: str) -> str:
    """The text without white space and dollars, with ASCII minus signs."""
    return "".join(text.replace("$", "").replace("\u2212", "-").split())


def _undelimited(text: str) -> str:
    """The text without one pair of delimiters that encloses the whole of it."""
    text = text.strip()
    for opening, closing in _DELIMITERS:
        inner = text[len(opening) : -len(closing)]
        enclosed = text.startswith(opening) and text.endswith(closing)
        if enclosed and len(text) >= len(opening) + len(closing) and opening not in inner:
            return inner.strip()
    return text
