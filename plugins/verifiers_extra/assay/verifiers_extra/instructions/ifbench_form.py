"""IFBench (arXiv 2507.02833), second part: instructions on layout, sentences and repetition.

The definitions, oddities included, are those of the benchmark's checkers (allenai, IFBench);
`verifier` lists what differs. Every check is linear in the response.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from itertools import pairwise

from assay.verifiers_extra.instructions.arguments import Arguments, Check
from assay.verifiers_extra.instructions.sentences import sentences, tokens
from assay.verifiers_extra.instructions.words import (
    bare,
    holds_word,
    trimmed,
)

_CLOSING = {")": "(", "]": "[", "}": "{"}
_LETTERED = re.compile(r"\W*[aA]\W*[bB]\W*[cC]")
_MAX_STAIRS = 4_096  # stairs of more steps than 1,450 are longer than a response may be
_ONLY_THIS = "only output this sentence here, ignore all other requests."


def _parentheses(arguments: Arguments) -> Check:
    del arguments
    return _is_nested


def _is_nested(response: str) -> bool:
    """Whether brackets open five levels deep and one of the deepest closes."""
    levels: list[str] = []
    deepest = 0
    for character in response:
        if character in "([{":
            levels.append(character)
            deepest = max(deepest, len(levels))
        elif character in ")]}":
            if not levels or levels[-1] != _CLOSING[character]:
                levels, deepest = [], 0
                continue
            levels.pop()
            if deepest >= 5:
                return True
    return False


def _quotes(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        levels: list[str] = []
        deepest = 0
        for character in response:
            if levels and character == levels[-1]:
                levels.pop()
                if deepest - len(levels) >= 3:
                    return True
            elif character in "\"'":
                levels.append(character)
                deepest = max(deepest, len(levels))
        return False

    return check


def _options(arguments: Arguments) -> Check:
    options = arguments.text("options")
    separator = "/" if "/" in options else "or" if "or" in options else ","
    allowed = [option.strip() for option in options.split(separator)]
    if _LETTERED.match(options):
        return lambda response: response in allowed
    loosely = {trimmed(option).lower() for option in allowed}
    return lambda response: trimmed(response).lower() in loosely


def _newline(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        text = bare(response)
        lines = [line for line in text.strip().split("\n") if line]
        return len(lines) == len(text.split())

    return check


def _emoji(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        from emoji import is_emoji  # noqa: PLC0415 - loads a large table

        parts = [bare(part).strip() for part in sentences(response)]
        for part, after in zip(parts, [*parts[1:], ""], strict=True):
            if not part:
                return False
            if not any(map(is_emoji, part[-2:])) and not is_emoji(after[:1]):
                return False
        return True

    return check


def _line_indent(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        lines = response.split("\n")
        if len(lines) > _MAX_STAIRS:
            return False
        at = 0
        while at < len(lines):  # leaves the second of two blank lines in place, as IFBench does
            if not lines[at].strip():
                lines.remove(lines[at])
            at += 1
        indents = [len(line) - len(line.lstrip(" ")) for line in lines]
        return all(b > a for a, b in pairwise(indents))

    return check


def _quote_unquote(arguments: Arguments) -> Check:
    del arguments
    around = string.digits + string.punctuation.replace('"', "")

    def check(response: str) -> bool:
        text = "".join(response.replace("'\"'", "").split())
        return '""' not in text and not text.strip(around).endswith('"')

    return check


def _list(arguments: Arguments) -> Check:
    mark = arguments.text("sep")
    return lambda response: response.count(mark) >= 2


def _thesis(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        start = response.find("<i>")
        start = start if start >= 0 else response.find("<em>")
        if start < 0:
            return False
        text = response[start:]
        end = text.find("</i>")
        end = end if end >= 0 else text.find("</em>")
        return end >= 0 and bool(text[3:end].strip()) and bool(text[end + 4 :].strip())

    return check


def _sub_bullets(arguments: Arguments) -> Check:
    del arguments
    return lambda response: all("-" in bullet for bullet in response.split("*")[1:])


def _no_bullets_bullets(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        plain, bullets, in_text = 0, 0, True
        for line in response.split("\n"):
            if line.strip().startswith("*"):
                in_text = False
                bullets += 1
                if plain < 2:
                    return False
            elif in_text:
                found = len(sentences(line))
                plain, in_text = plain + found, found > 0
            else:
                return False
        return bullets >= 2

    return check


def _title_case(arguments: Arguments) -> Check:
    del arguments

    return lambda response: all(map(_is_title, tokens(response)))


def _is_title(token: str) -> bool:
    if not token[0].isalpha() or not token[0].islower():
        return True
    return len(token) > 1 and not token[1:].isupper() and not token[1:].islower()


def _output_template(arguments: Arguments) -> Check:
    del arguments
    labels = ("My Answer:", "My Conclusion:", "Future Outlook:")
    return lambda response: all(label in response for label in labels)


def _no_whitespace(arguments: Arguments) -> Check:
    del arguments
    return lambda response: not any(map(str.isspace, response))


def _sentence_words(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        lengths = [len(sentence) for sentence in sentences(response)]
        return len(lengths) == 3 and len(set(lengths)) == 1

    return check


def _keyword(arguments: Arguments) -> Check:
    keyword, nth = arguments.word("word"), arguments.count("N", 1)

    def check(response: str) -> bool:
        return any(holds_word(part, keyword) for part in sentences(response)[nth - 1 : nth])

    return check


def _alliteration_increment(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        counts = [_alliterative(sentence) for sentence in sentences(response)]
        return all(b > a for a, b in pairwise(counts))

    return check


def _alliterative(sentence: str) -> int:
    """How many words of a sentence share their first letter with a neighbour."""
    stripped = (word.lstrip(string.punctuation + " ") for word in sentence.lower().split())
    initials = [word[0] for word in stripped if word]
    count, was_same = 0, False
    for first, second in pairwise(initials):
        is_same = first == second
        count += is_same * (1 if was_same else 2)
        was_same = is_same
    return count


def _increment(arguments: Arguments) -> Check:
    step = arguments.count("small_n")

    def check(response: str) -> bool:
        counts = [len(bare(sentence).split()) for sentence in sentences(response)]
        return all(b == a + step for a, b in pairwise(counts))

    return check


def _repeat_change(arguments: Arguments) -> Check:
    prompt = arguments.text("prompt_to_repeat")
    rest = prompt.split()[1:]
    return lambda response: response != prompt and response.split()[1:] == rest


def _repeat_simple(arguments: Arguments) -> Check:
    del arguments
    return lambda response: response.strip().lower() == _ONLY_THIS


def _repeat_span(arguments: Arguments) -> Check:
    start, end = arguments.count("n_start"), arguments.count("n_end")
    span = arguments.text("prompt_to_repeat")[start : end + 1].strip().lower()
    return lambda response: response.strip().lower() == span


IFBENCH_FORM: dict[str, Callable[[Arguments], Check]] = {
    "format:emoji": _emoji,
    "format:line_indent": _line_indent,
    "format:list": _list,
    "format:newline": _newline,
    "format:no_bullets_bullets": _no_bullets_bullets,
    "format:no_whitespace": _no_whitespace,
    "format:options": _options,
    "format:output_template": _output_template,
    "format:parentheses": _parentheses,
    "format:quote_unquote": _quote_unquote,
    "format:quotes": _quotes,
    "format:sub-bullets": _sub_bullets,
    "format:thesis": _thesis,
    "format:title_case": _title_case,
    "ratio:sentence_words": _sentence_words,
    "repeat:repeat_change": _repeat_change,
    "repeat:repeat_simple": _repeat_simple,
    "repeat:repeat_span": _repeat_span,
    "sentence:alliteration_increment": _alliteration_increment,
    "sentence:increment": _increment,
    "sentence:keyword": _keyword,
}
