"""The 29 training instructions that IF-RLVR adds to IFEval's (arXiv 2507.02833): a table.

The definitions, oddities included, are those of the training code (allenai, open-instruct,
IFEvalG); `verifier` lists what differs. Every check is linear in the response.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from assay.verifiers_extra.instructions.arguments import Arguments, Check
from assay.verifiers_extra.instructions.ifeval import (
    PARAGRAPH_MARK,
    frequency,
    letter_frequency,
    paragraph_count,
)
from assay.verifiers_extra.instructions.sentences import plain_sentences, sentences, tokens
from assay.verifiers_extra.instructions.words import sentence_tokens

_LINE_BREAKS = re.compile("\n\n")
_LOWERCASE_WORD = re.compile(r"\b[a-z]+\b")
_LETTER = re.compile("[a-zA-Z]")
_MARKS = re.compile(r"[^\w\s]")


def _repeat_phrase(arguments: Arguments) -> Check:
    phrase = arguments.text("phrase").split()
    wanted = arguments.count("small_n", 1)

    def check(response: str) -> bool:
        found = [part for line in response.split("\n") for part in _spans(line, phrase)]
        return len(found) == wanted and all(_one_differs(part.split(), phrase) for part in found)

    return check


def _spans(line: str, phrase: list[str]) -> list[str]:
    """The parts of a line from the phrase's first word to the next of its last, none twice."""
    first, last = phrase[0] + " ", " " + phrase[-1]
    found = []
    start = line.find(first)
    while start >= 0:
        at = line.find(last, start + len(first))
        if at < 0:
            break
        end = at + len(last)
        found.append(line[start:end])
        start = line.find(first, end)
    return found


def _one_differs(words: list[str], phrase: list[str]) -> bool:
    if len(words) != len(phrase):
        return False
    return sum(a != b for a, b in zip(words, phrase, strict=True)) == 1


def _copy(arguments: Arguments) -> Check:
    prompt = arguments.text("prompt_to_repeat").strip().lower()
    return lambda response: response.strip().lower() == prompt


def _copying_multiple(arguments: Arguments) -> Check:
    prompt = arguments.text("prompt_to_repeat").strip().lower()
    wanted = arguments.count("N", 1)

    def check(response: str) -> bool:
        parts = response.split("******")
        return len(parts) == wanted and all(part.strip().lower() == prompt for part in parts)

    return check


def _copy_span_idx(arguments: Arguments) -> Check:
    start, end = arguments.count("n_start"), arguments.count("n_end", 1)
    span = arguments.text("prompt_to_repeat")[start:end].strip().lower()
    if not span:
        raise arguments.trouble("n_end", "leaves nothing of 'prompt_to_repeat'")
    return lambda response: response.strip().lower() == span


def _sentence_hyphens(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        wanted = plain_sentences(response.replace("-", " "))
        return all(part == sentence for part, sentence in zip(response.split("-"), wanted))  # noqa: B905 - as long as the shorter, as the original

    return check


def _no_adjacent_consecutive(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        initials = [word[0].lower() for word in response.split()]
        if len(initials) > 1 and any(len(initial) > 1 for initial in initials):
            return False
        return all(ord(b) - ord(a) != 1 for a, b in pairwise(initials))

    return check


def _square_brackets(arguments: Arguments) -> Check:
    del arguments
    return lambda response: all(
        word.startswith("[") and word.endswith("]") for word in response.split()
    )


def _bigram_wrapping(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        words = response.split()
        pairs = zip(words[::2], words[1::2], strict=False)
        return all(a.startswith("<<") and b.endswith(">>") for a, b in pairs)

    return check


def _word_once(arguments: Arguments) -> Check:
    keyword = arguments.word("keyword").lower()
    return lambda response: response.lower().count(keyword) == 1


def _count_increment_word(arguments: Arguments) -> Check:
    once, twice = arguments.word("keyword1").lower(), arguments.word("keyword2").lower()

    def check(response: str) -> bool:
        text = response.lower()
        return text.count(once) == 1 and text.count(twice) == 2

    return check


def _exclude_word_harder(arguments: Arguments) -> Check:
    keyword = f" {arguments.word('keyword')} "
    return lambda response: keyword not in response


def _two_paragraphs(mark: re.Pattern[str]) -> Callable[[Arguments], Check]:
    def build(arguments: Arguments) -> Check:
        del arguments
        return lambda response: paragraph_count(response, mark) == 2

    return build


def _one_of(arguments: Arguments, name: str) -> str:
    """A word, or the first of a list of them: the original ignores the rest."""
    return arguments.words(name)[0].strip()


def _first_word_sent(arguments: Arguments) -> Check:
    word = _one_of(arguments, "first_word").lower()
    return lambda response: all(
        sentence.split()[:1] and sentence.split()[0].lower() == word
        for sentence in plain_sentences(response)
    )


def _first_word_answer(arguments: Arguments) -> Check:
    word = arguments.word("first_word").lower()
    return lambda response: response.split(maxsplit=1)[0].lower() == word


def _last_word_sent(arguments: Arguments) -> Check:
    word = _one_of(arguments, "last_word").lower()
    return lambda response: all(_last(part) == word for part in plain_sentences(response))


def _last_word_answer(arguments: Arguments) -> Check:
    word = arguments.word("last_word").lower()
    return lambda response: _last(response) == word


def _last(text: str) -> str | None:
    """The last word of a text in lower case, without punctuation; None of a blank one."""
    words = text.rsplit(maxsplit=1)
    return _MARKS.sub("", words[-1]).lower() if words else None


def _without(mark: str) -> Callable[[Arguments], Check]:
    def build(arguments: Arguments) -> Check:
        del arguments
        return lambda response: mark not in response

    return build


def _lowercase_counting(arguments: Arguments) -> Check:
    most = arguments.count("N")
    return lambda response: len(_LOWERCASE_WORD.findall(response)) <= most


def _letter_counting(arguments: Arguments) -> Check:
    threshold, holds = arguments.count("N"), arguments.relation("relation")
    return lambda response: holds(len(_LETTER.findall(response)), threshold)


def _counting_composition(arguments: Arguments) -> Check:
    wanted, words = arguments.count("n_sent", 1), arguments.count("n_words", 1)

    def check(response: str) -> bool:
        paragraphs = PARAGRAPH_MARK.split(response)
        if len(paragraphs) != 3:
            return False
        parts = [plain_sentences(paragraph) for paragraph in paragraphs]
        return all(
            len(found) == wanted and all(len(list(tokens(part))) == words for part in found)
            for found in parts
        )

    return check


def _count_unique(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        seen: set[str] = set()
        for token in tokens(response):
            if token in seen:
                return False
            seen.add(token)
        return True

    return check


def _palindrome(arguments: Arguments) -> Check:
    del arguments
    return lambda response: any(word == word[::-1] for word in response.split())


def _keyword_specific_position(arguments: Arguments) -> Check:
    keyword = _one_of(arguments, "keyword")
    nth, mth = arguments.count("n", 1), arguments.count("m", 1)

    def check(response: str) -> bool:
        for sentence in plain_sentences(response)[nth - 1 : nth]:
            return list(tokens(sentence))[mth - 1 : mth] == [keyword]
        return False

    return check


def _start_end(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        parts = sentences(response)
        first, last = sentence_tokens(parts[0]), sentence_tokens(parts[-1])
        is_one = len(parts) == len(first) == 1
        return not is_one and first[0].lower() == last[-1].lower()

    return check


IFRLVR: dict[str, Callable[[Arguments], Check]] = {
    "copy:copy": _copy,
    "copy:copying_multiple": _copying_multiple,
    "copy:copying_simple": _copy,
    "copy:repeat_phrase": _repeat_phrase,
    "count:count_increment_word": _count_increment_word,
    "count:count_unique": _count_unique,
    "count:counting_composition": _counting_composition,
    "count:lowercase_counting": _lowercase_counting,
    "detectable_format:bigram_wrapping": _bigram_wrapping,
    "detectable_format:sentence_hyphens": _sentence_hyphens,
    "detectable_format:square_brackets": _square_brackets,
    "first_word:first_word_answer": _first_word_answer,
    "first_word:first_word_sent": _first_word_sent,
    "keywords:exclude_word_harder": _exclude_word_harder,
    "keywords:keyword_specific_position": _keyword_specific_position,
    "keywords:no_adjacent_consecutive": _no_adjacent_consecutive,
    "keywords:palindrome": _palindrome,
    "keywords:start_end": _start_end,
    "keywords:word_count_different_numbers": frequency,
    "keywords:word_once": _word_once,
    "last_word:last_word_answer": _last_word_answer,
    "last_word:last_word_sent": _last_word_sent,
    "letters:letter_counting": _letter_counting,
    "letters:letter_counting2": letter_frequency,
    "new:copy_span_idx": _copy_span_idx,
    "paragraphs:paragraphs": _two_paragraphs(PARAGRAPH_MARK),
    "paragraphs:paragraphs2": _two_paragraphs(_LINE_BREAKS),
    "punctuation:punctuation_dot": _without("."),
    "punctuation:punctuation_exclamation": _without("!"),
}
