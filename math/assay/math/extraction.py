r"""Where the final answer stands in a response. No algebra, no judgement.

One place is read and the policy has one guess: which place is decided by the response's form alone,
never by whether what stands there is right. Only what follows the last `</think>` counts, of that
the last 20,000 characters, and nothing after the first token that ends a turn.

The rules of `auto`, in order; the first that finds its mark decides, even when what stands at the
mark is unusable:

 1. Of these marks, the one that begins last: `boxed`, the last `\boxed{...}` or `\fbox{...}` (boxes
    joined by "and", "or", a comma or a blank are one answer); `answer-tag`, the last
    `<answer>...</answer>`; `hash`, what follows the last `####` on its line, unless that is a
    heading (numbered, or words with a section after them); and after a box, "final answer" and
    【答案】 of rule 2. A box or tag that is not closed, empty or over-long is no answer, and no
    later rule is tried: otherwise a policy hides behind a broken box what a fallback reads to its
    advantage.
 2. `answer-line`: what follows the last "the answer is", "Answer:", 【答案】, 故选 and their
    like in twelve languages. "The answer is not 5" states what it says, and so no number.
 3. `choice`, only when the caller expects a letter: "option B", "(B)" in the last line.
 4. `whole`: all of a response that is one short line of mathematics (`(1,2)`, `x > 3`), or a few
    words without a number (`Paris`): an answer that somebody has extracted already.
 5. `math-span`: the last formula between dollars or brackets, if it stands in the last lines and no
    later sentence holds a number.
 6. `last-number`: the last number, unless it is part of something else (`unmarked` says of what).

`strict` is rules 1 and 2: an answer that is not marked does not count. A mode of one rule's name is
that rule alone. docs/use/math.md tells what a policy could game in each.

Everything here is linear in the text: marks are found by patterns without nested repetition, at
most 16 boxes are looked at, each for at most 2,000 characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from assay.math import answer_phrases as phrases
from assay.math.unmarked import (
    ANSWER_CHARS,
    NUMBER,
    FoundAnswer,
    Nothing,
    bare_line,
    group,
    is_space,
    joins,
    joins_units,
    last_match,
    last_number,
    late_span,
    math_span,
    narrowed,
    of_parts,
    parts,
    span_at,
    trimmed,
)

__all__ = ["ANSWER_CHARS", "MARKED", "MODES", "TAIL_CHARS", "FoundAnswer", "Nothing", "bare",
           "boxes", "final_part", "find_answer", "look", "narrowed"]  # fmt: skip

TAIL_CHARS: Final = 20_000
MODES: Final = (
    "auto",
    "strict",
    "boxed",
    "answer-tag",
    "hash",
    "answer-line",
    "choice",
    "math-span",
    "last-number",
    "last-line",
    "whole",
)
MARKED: Final = frozenset({"boxed", "answer-tag", "hash", "answer-line"})
"""The rules whose answer the response marks as its answer."""

_BOXES_READ = 16
_THOUGHT, _END_OF_THOUGHT = "<think>", "</think>"
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|end|eom_id)\|>|</s>|<eoa>\s*\Z"
)


def find_answer(response: str, mode: str = "auto", *, letter: bool = False) -> FoundAnswer | None:
    """The final answer of a response; None when there is none.

    Args:
        response: the policy's text, of any length and content.
        mode: one of `MODES`.
        letter: a choice letter is expected, so rule 3 applies in `auto`.
    """
    found = look(response, mode, letter=letter)
    return found if isinstance(found, FoundAnswer) else None


def look(response: str, mode: str = "auto", *, letter: bool = False) -> FoundAnswer | Nothing:
    """As `find_answer`, with the reason when there is no answer.

    Raises:
        ValueError: the mode is unknown; a defect of the caller.
    """
    if mode in _PLAIN_MODES and (plain := _plain_box(response)) is not None:
        return plain
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
    if mode == "whole":
        return trimmed(response, 0, len(response), "whole") or Nothing("the response is blank")
    start, text = final_part(response)
    if start < 0:
        return Nothing("the thought is not closed")
    for rule in _rules(mode, letter=letter):
        found = rule(text)
        if isinstance(found, FoundAnswer) and start:
            return FoundAnswer(found.text, found.how, found.start + start, found.end + start)
        if found is not None:
            return found
    return Nothing(f"no answer was found ({mode})")


_PLAIN_MODES = frozenset({"auto", "strict", "boxed"})


def _plain_box(response: str) -> FoundAnswer | None:
    """What the rules find in most responses, found at once; None where the rules are needed.

    One box, no braces or macros in it, and nothing else in the response that a rule looks for.
    """
    at = response.find("\\boxed{")
    start = at + len("\\boxed{")
    end = response.find("}", start, start + ANSWER_CHARS + 1)
    if at < 0 or end < 0 or len(response) > TAIL_CHARS:
        return None
    content = response[start:end]
    if "\\" in content or "{" in content or response.rfind("box") != at + 1:
        return None
    if response.find("box") != at + 1 or "<" in response or "#" in response or "【" in response:
        return None
    text = content.strip()
    if not text or "answer" in response[end:].lower():
        return None
    return FoundAnswer(text, "boxed", start, end)


def final_part(response: str) -> tuple[int, str]:
    """The part in which an answer is looked for: where it begins, and its text.

    What precedes the last `</think>` is thought, not answer; where a `<think>` follows that is
    never closed there is no part, and it begins at -1.
    """
    start = response.rfind(_END_OF_THOUGHT)
    start = 0 if start < 0 else start + len(_END_OF_THOUGHT)
    if response.find(_THOUGHT, start) >= 0:
        return -1, ""
    start = max(start, len(response) - TAIL_CHARS)
    if response.find("<", start) < 0:
        return start, response[start:]
    stop = _END_OF_TURN.search(response, start)
    while stop is not None and not response[start : stop.start()].strip():
        stop = _END_OF_TURN.search(response, stop.end())
    return start, response[start : stop.start() if stop else len(response)]


_Rule = Callable[[str], "FoundAnswer | Nothing | None"]


def _rules(mode: str, *, letter: bool) -> tuple[_Rule, ...]:
    if mode == "auto":
        return _AUTO_LETTER if letter else _AUTO
    return _STRICT if mode == "strict" else (_ALONE[mode],)


# --- Rule 1: boxes and tags -----------------------------------------------------------------------

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])[ \t]*(\{|[^\s${}\\,;.]+)?")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_TAG_OPENS = re.compile(r"<answer>", re.IGNORECASE)
_TAG_CLOSES = re.compile(r"</answer>", re.IGNORECASE)


def _marked(text: str) -> FoundAnswer | Nothing | None:
    """What stands at the last of the marks that are made for an answer."""
    box = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    hashed = _hashed(text)
    at_hash = hashed.start if hashed else -1
    tag = last_match(_TAG_OPENS, text) if "<a" in text or "<A" in text else None
    at_tag = tag.start() if tag else -1
    if at_hash > max(box, at_tag):
        return hashed
    if at_tag > box:
        return _tagged(text)
    if box < 0:
        return None
    if "answer" in text[box:].lower() or "【" in text:
        final = _after_one_of(text, reversed(list(phrases.FINAL.finditer(text, box))))
        if final is not None:
            return final
    return _boxed(text)


def boxes(text: str) -> list[tuple[int, int]]:
    r"""Where the content of each of the last 16 boxes begins and ends; -1 where it does not end.

    In order of their beginnings; a box inside another one is listed too.
    """
    if "\\boxed" not in text and "\\fbox" not in text:
        return []
    spans = []
    first = len(text)
    for _ in range(_BOXES_READ):
        before = max(text.rfind("\\boxed", 0, first), text.rfind("\\fbox", 0, first))
        first = first if before < 0 else before
    for mark in _BOX.finditer(text, first):
        if mark[1] == "{":
            spans.append((mark.end(), _closing(text, mark.end())))
        else:
            spans.append(mark.span(1) if mark[1] else (mark.end(), -1))
    return spans


def _closing(text: str, start: int) -> int:
    """Where the brace that was opened before `start` closes; -1 if too far away or nowhere."""
    depth = 1
    for token in _BRACE.finditer(text, start, start + ANSWER_CHARS + 1):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if not depth:
                return token.start()
    return -1


def _boxed(text: str) -> FoundAnswer | Nothing | None:
    """The last box, with those that are joined to it."""
    opens = text.find("\\boxed{")
    closes = text.find("}", opens)
    if 0 <= opens < closes <= opens + ANSWER_CHARS and text.rfind("box") < opens + 4:
        start = opens + len("\\boxed{")  # one box without braces in it: most of them
        content = text[start:closes]
        if "{" not in content and "\\" not in content:
            found = FoundAnswer(content.strip(), "boxed", start, closes)
            return found if found.text else Nothing("the last box is empty")
    spans = boxes(text)
    if not spans:
        return None
    if spans[-1][1] < 0:
        return Nothing("the last box is not closed, or too long")
    outer = _outermost(spans)
    names = parts(text, outer)
    if names:
        answers = [bare(text[start:end]) for start, end in outer[-len(names) :]]
        if all(answers):
            start = outer[-len(names)][0]
            return FoundAnswer(of_parts(names, answers), "boxed", start, outer[-1][1])
    joint = outer[-1:]
    for span in reversed(outer[:-1]):
        if not _joined(text[span[1] + 1 : joint[0][0]]):
            break
        joint.insert(0, span)
    contents = list(dict.fromkeys(_contents(text, joint)))
    if not all(contents):
        return Nothing("the last box is empty")
    return FoundAnswer(", ".join(contents), "boxed", joint[0][0], joint[-1][1])


def _outermost(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The boxes that close and are in no other one."""
    outer: list[tuple[int, int]] = []
    for start, end in spans:
        if end >= 0 and not (outer and start < outer[-1][1]):
            outer.append((start, end))
    return outer


_NAMED_BOX = re.compile(r"(?<![\w\\}^_+*/=<>-])\s?([A-Za-z])\s?=\s?\$?\s?\\f?box(?:ed)?\s?\{\Z")
_NAME_CHARS = 24


def _contents(text: str, spans: list[tuple[int, int]]) -> list[str]:
    r"""What stands in boxes; with their names where each has its own, as in `x = \boxed{3}`."""
    contents = [bare(text[start:end]) for start, end in spans]
    if len(spans) < 2:
        return contents
    named = [_NAMED_BOX.search(text[max(0, start - _NAME_CHARS) : start]) for start, _ in spans]
    names = [match[1] for match in named if match]
    if len(set(names)) < len(spans) or any("=" in one or not one for one in contents):
        return contents
    return [f"{name} = {one}" for name, one in zip(names, contents, strict=True)]


def all_boxed(text: str) -> list[str]:
    """What stands in the boxes of a reference, each text once; empty without boxes that close."""
    spans = boxes(text)
    if not spans or spans[-1][1] < 0:
        return []
    outer = _outermost(spans)
    contents = _contents(text, outer)
    names = parts(text, outer)
    if len(names) == len(outer) and all(contents):
        return [of_parts(names, contents)]
    return list(dict.fromkeys(filter(None, contents))) or [""]


_BOX_TAIL = re.compile(
    r"\\text\s?\{([^{}]{0,40}?)\s?\b(?:is|are|was) (?:the|our|its|your) ([A-Za-z ]{1,60})\.?\s?\}"
    r"\.?\Z"
)
_TAIL_CHANGES = re.compile(
    r"\b(?:wrong|incorrect|other|cube|remaining|opposite|reciprocal|inverse|negative|square|half|double|twice|not|false"
    r"|approximate|previous|lower|upper)\b"
)
_BOX_LEAD = re.compile(
    r"(?:\\text(?:bf|rm|it)?\s?\{)?\s?(?:(?:therefore|thus|so|hence),?\s)?(?:the )?"
    r"(?:final |correct )?(?:answer|result|solution|value)\s?(?:is|:)\s?:?\s?\}?\s?(?=\S)",
    re.IGNORECASE,
)


def bare(content: str) -> str:
    """The content of a box without "the answer is", and without a box that is the whole of it."""
    content = content.strip()
    lead = _BOX_LEAD.match(content)
    if lead is not None and lead[0].count("{") == lead[0].count("}"):
        content = content[lead.end() :]
    if content.endswith(("}", "}.")) and "\\text" in content:
        tail = _BOX_TAIL.search(content, max(0, content.rfind("\\text")))
        if tail is not None and tail.start() and not _TAIL_CHANGES.search(tail[2]):
            unit = f"\\text{{{tail[1]}}}" if tail[1].strip() else ""
            content = content[: tail.start()].rstrip() + unit
    while content.startswith(("\\boxed{", "\\fbox{")) and content.endswith("}"):
        start = content.index("{") + 1
        if _closing(content, start) != len(content) - 1:
            break
        content = content[start:-1].strip()
    return content


def _joined(between: str) -> bool:
    """Whether the text between two boxes only joins them, up to the mark of the second."""
    between = between.rpartition("\\boxed")[0] or between.rpartition("\\fbox")[0]
    return joins(between) or is_space(between) or joins_units(between)


def _tagged(text: str) -> FoundAnswer | Nothing | None:
    """The last answer tag."""
    opens = last_match(_TAG_OPENS, text)
    if opens is None:
        return None
    closes = _TAG_CLOSES.search(text, opens.end())
    if closes is None:
        return Nothing("the last <answer> is not closed")
    if closes.start() - opens.end() > ANSWER_CHARS:
        return Nothing("the last <answer> is too long")
    found = trimmed(text, opens.end(), closes.start(), "answer-tag")
    return found or Nothing("the last <answer> is empty")


# --- Rule 1: #### ---------------------------------------------------------------------------------

_HASH = re.compile(r"(?<!#)####(?!#)[ \t]*([^\n]*)")
_HEADING = re.compile(
    r"(?:\**(?:step|final answer|answer|solution|conclusion|verification|part|case)\b[^\n]{0,60}"
    r"|\d+[.)] (?!I hope)[^\n]*[A-Za-z]{3}[^\n]*)\Z",
    re.IGNORECASE,
)


_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4}")
_AFTER_HASH_CHARS = 300


def _hashed(text: str) -> FoundAnswer | None:
    """What follows the last `####` on its line, unless it heads a section."""
    if "####" not in text:
        return None
    mark = last_match(_HASH, text)
    if mark is None or not mark[1].strip() or _HEADING.match(mark[1].strip()):
        return None
    start, end = mark.span(1)
    if len(text) - end > _AFTER_HASH_CHARS and _WORD.search(text, start, end):
        return None
    return trimmed(text, start, _sentence_end(text, start, end), "hash")


# --- Rule 2: "the answer is" ----------------------------------------------------------------------


def _answer_line(text: str) -> FoundAnswer | None:
    """What follows the last phrase that announces an answer."""
    return _after_one_of(text, phrases.announced(text))


def _after_one_of(text: str, marks: Iterable[re.Match[str]]) -> FoundAnswer | None:
    """What follows the first of these phrases that an answer follows."""
    for mark in marks:
        lead = phrases.LEAD.match(text, mark.end())
        start = lead.end() if lead else mark.end()
        if start >= len(text) or phrases.NO_ANSWER.match(text, start):
            continue
        end = _statement_end(text, start)
        if phrases.NEGATION.search(text, mark.start(), end):
            if NUMBER.search(text, start, end) is None:
                continue
            start = mark.start()
        found = trimmed(text, start, end, "answer-line")
        if found is not None:
            return found
    return None


def _statement_end(text: str, start: int) -> int:
    """Where the statement that begins at `start` ends: a formula whole, else its sentence."""
    span = span_at(text, start)
    if span is None:
        return _sentence_end(text, start, len(text))
    ended = text[start:span].rstrip("$)]\\ ").endswith(".")  # the full stop is in the formula
    return span if ended else _sentence_end(text, span, len(text))


def _sentence_end(text: str, start: int, limit: int) -> int:
    """Where the sentence ends, outside formulas, at most an answer's length on."""
    limit = min(limit, start + ANSWER_CHARS)
    end = phrases.SENTENCE_END.search(text, start, limit)
    return end.start() if end else limit


# --- Rule 3: choice letters -----------------------------------------------------------------------

_CHOICE = re.compile(
    r"(?:option|choice|选项|選項|选|answer)\s{0,3}[:\uff1a]?\s{0,3}\**\(?([A-J])\b\)?"
    r"|\(([A-J])\)|^\W*([A-J])\W*\Z|\*\*([A-J])[.)](?=\s)",
    re.MULTILINE,
)


def _choice(text: str) -> FoundAnswer | Nothing | None:
    """A letter that the last line names as the option."""
    end = len(text.rstrip())
    start = text.rfind("\n", 0, end) + 1
    marks = list(_CHOICE.finditer(text, max(start, end - ANSWER_CHARS), end))
    places = [mark.span(mark.lastindex or 0) for mark in marks]
    spans = [(begins, begins, ends, ends) for begins, ends in places]
    return group(text, spans, "choice") if spans else None


def _last_line(text: str) -> FoundAnswer | Nothing | None:
    """The last line that is not blank."""
    end = len(text.rstrip())
    return trimmed(text, text.rfind("\n", 0, end) + 1, end, "last-line")


_STRICT: tuple[_Rule, ...] = (_marked, _answer_line)
_AUTO: tuple[_Rule, ...] = (*_STRICT, bare_line, late_span, last_number)
_AUTO_LETTER: tuple[_Rule, ...] = (*_STRICT, _choice, bare_line, late_span, last_number)
_ALONE: dict[str, _Rule] = {
    "boxed": _boxed,
    "answer-tag": _tagged,
    "hash": _hashed,
    "answer-line": _answer_line,
    "choice": _choice,
    "math-span": math_span,
    "last-number": last_number,
    "last-line": _last_line,
}
