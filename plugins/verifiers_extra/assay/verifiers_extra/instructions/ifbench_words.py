"""IFBench (arXiv 2507.02833), first part: instructions on words, counts and ratios.

The definitions, oddities included, are those of the benchmark's checkers (allenai, IFBench);
`verifier` lists what differs. Every check is linear in the response.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from assay.verifiers_extra.instructions.arguments import Arguments, Check
from assay.verifiers_extra.instructions.sentences import sentences, tokens
from assay.verifiers_extra.instructions.verbs import is_verb
from assay.verifiers_extra.instructions.words import (
    STOP_WORDS,
    bare,
    sentence_tokens,
    trimmed,
    word_set,
    words,
)

_CONJUNCTIONS = frozenset(("and", "but", "for", "nor", "or", "so", "yet"))
_NAMES = word_set(
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander "
    "Amelia Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel "
    "Ella Jacob Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher "
    "Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella Jonathan"
)
_PRONOUNS = word_set(
    "i me we us you he him she her it they them my mine our ours your yours his hers its their "
    "theirs myself ourselves yourself yourselves himself herself itself themselves this that "
    "these those who whom whose which what whoever whomever whatever whichever anybody anyone "
    "anything everybody everyone everything nobody nothing somebody someone something each either "
    "neither both all some any none"
)
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxyz")
_PRIMES = frozenset(n for n in range(2, 100) if all(n % d for d in range(2, n)))
_JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_REPEATS_WANTED = (1, 2, 3, 5, 7)
_OVERLAP_SLACK = 2


def _word_count_range(arguments: Arguments) -> Check:
    least, most = arguments.count("min_words"), arguments.count("max_words")
    return lambda response: least <= len(words(response)) <= most


def _unique_word_count(arguments: Arguments) -> Check:
    threshold = arguments.count("N")
    return lambda response: len(set(map(trimmed, response.lower().split()))) >= threshold


def _stop_words(arguments: Arguments) -> Check:
    most = arguments.number("percentage", 0, 100)

    def check(response: str) -> bool:
        found = words(response)
        stops = sum(word.lower() in STOP_WORDS for word in found)
        return bool(found) and stops / len(found) * 100 <= most

    return check


def _sentence_type(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        ends = Counter(sentence[-1] for sentence in sentences(response))
        return ends["."] == 2 * ends["?"]

    return check


def _sentence_balance(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        ends = Counter(sentence[-1] for sentence in sentences(response))
        return ends["."] == ends["?"] == ends["!"]

    return check


def _conjunctions(arguments: Arguments) -> Check:
    threshold = arguments.count("small_n")

    def check(response: str) -> bool:
        found = {word for word in response.split() if trimmed(word).lower() in _CONJUNCTIONS}
        return len(found) >= threshold

    return check


def _person_names(arguments: Arguments) -> Check:
    threshold = arguments.count("N")
    return lambda response: len(_NAMES & set(words(response))) >= threshold


def _overlap(arguments: Arguments) -> Check:
    wanted = arguments.number("percentage", 0, 100)
    reference = _trigrams(arguments.text("reference_text"))

    def check(response: str) -> bool:
        found = _trigrams(response)
        if not found:
            return False
        share = len(found & reference) / len(found) * 100
        return wanted - _OVERLAP_SLACK <= share <= wanted + _OVERLAP_SLACK

    return check


def _trigrams(text: str) -> set[str]:
    return {text[i : i + 3] for i in range(len(text) - 2)}


def _numbers(arguments: Arguments) -> Check:
    wanted = arguments.count("N")
    return lambda response: len(re.findall(r"\d+", bare(response))) == wanted


def _pronouns(arguments: Arguments) -> Check:
    threshold = arguments.count("N")

    def check(response: str) -> bool:
        text = response.replace("/", " ").lower()
        return sum(token in _PRONOUNS for token in tokens(text)) >= threshold

    return check


def _words_japanese(arguments: Arguments) -> Check:
    nth = arguments.count("N", 1)

    def check(response: str) -> bool:
        chosen = map(trimmed, response.split()[nth - 1 :: nth])
        return all(not word or word.isdigit() or _JAPANESE.search(word) for word in chosen)

    return check


def _punctuation(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        if not any(mark in response for mark in ("!?", "?!", "‽")):
            return False
        mark = "?!" if "?!" in response else "!?"
        return set(".,!?;:") <= set(response.replace(mark, "", 1))

    return check


def _keywords_multiple(arguments: Arguments) -> Check:
    keywords = [
        (arguments.word(f"keyword{number}").lower(), wanted)
        for number, wanted in enumerate(_REPEATS_WANTED, start=1)
    ]

    def check(response: str) -> bool:
        text = response.lower()
        return all(text.count(keyword) == wanted for keyword, wanted in keywords)

    return check


def _alphabet(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        initials = [word[0].lower()[0] for word in bare(response).split()]
        if not initials or initials[0] not in string.ascii_lowercase:
            return False
        first = string.ascii_lowercase.index(initials[0])
        return all(
            letter == string.ascii_lowercase[(first + i) % 26] for i, letter in enumerate(initials)
        )

    return check


def _vowel(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        text = response.strip().lower()
        return "\n" not in text and len(set("aeiou") & set(text)) <= 3

    return check


def _consonants(arguments: Arguments) -> Check:
    del arguments
    return lambda response: all(map(_has_cluster, response.lower().split()))


def _has_cluster(word: str) -> bool:
    pairs = pairwise(word)
    return any(first in _CONSONANTS and second in _CONSONANTS for first, second in pairs)


def _palindrome(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        found = bare(response).lower().split()
        return sum(len(word) >= 5 and word == word[::-1] for word in found) >= 10

    return check


def _prime_lengths(arguments: Arguments) -> Check:
    del arguments
    return lambda response: all(len(word) in _PRIMES for word in bare(response).split())


def _start_verb(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        first = next(iter(sentences(response)), "")
        return is_verb(next(iter(sentence_tokens(first)), ""))

    return check


def _repeats(arguments: Arguments) -> Check:
    most = arguments.count("small_n")

    def check(response: str) -> bool:
        counts = Counter(bare(response.lower()).split())
        return all(count <= most for count in counts.values())

    return check


def _odd_even_syllables(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        import syllapy  # noqa: PLC0415 - reads a dictionary

        parities = [syllapy.count(word) % 2 for word in bare(response).lower().split()]
        return all(a != b for a, b in pairwise(parities))

    return check


def _last_first(arguments: Arguments) -> Check:
    del arguments
    marks = string.punctuation + " "

    def check(response: str) -> bool:
        parts = sentences(response)
        for before, after in pairwise(parts):
            last, first = before.rstrip(marks).split()[-1:], after.lstrip(marks).split()[:1]
            if not last or not first or last[0].lower() != first[0].lower():
                return False
        return True

    return check


def _paragraph_last_first(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        paragraphs = (trimmed(line.strip().lower()).split() for line in response.split("\n"))
        return all(not found or found[0] == found[-1] for found in paragraphs)

    return check


def _no_consecutive(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        found = bare(response.lower()).split()
        return all(a[0] != b[0] for a, b in pairwise(found))

    return check


def _keywords_specific_position(arguments: Arguments) -> Check:
    keyword = arguments.word("keyword").lower()
    nth, mth = arguments.count("n", 1), arguments.count("m", 1)

    def check(response: str) -> bool:
        for sentence in sentences(response)[nth - 1 : nth]:
            found = [t for t in sentence_tokens(sentence) if any(c.isalnum() for c in t)]
            return len(found) >= mth and found[mth - 1].lower() == keyword
        return False

    return check


def _words_position(arguments: Arguments) -> Check:
    keyword = arguments.word("keyword").lower()

    def check(response: str) -> bool:
        found = list(tokens(response))
        if found and found[-1] in string.punctuation:
            found.pop()
        return len(found) > 1 and found[1].lower() == found[-2].lower() == keyword

    return check


IFBENCH_WORDS: dict[str, Callable[[Arguments], Check]] = {
    "count:conjunctions": _conjunctions,
    "count:keywords_multiple": _keywords_multiple,
    "count:numbers": _numbers,
    "count:person_names": _person_names,
    "count:pronouns": _pronouns,
    "count:punctuation": _punctuation,
    "count:unique_word_count": _unique_word_count,
    "count:word_count_range": _word_count_range,
    "count:words_japanese": _words_japanese,
    "ratio:overlap": _overlap,
    "ratio:sentence_balance": _sentence_balance,
    "ratio:sentence_type": _sentence_type,
    "ratio:stop_words": _stop_words,
    "words:alphabet": _alphabet,
    "words:consonants": _consonants,
    "words:keywords_specific_position": _keywords_specific_position,
    "words:last_first": _last_first,
    "words:no_consecutive": _no_consecutive,
    "words:odd_even_syllables": _odd_even_syllables,
    "words:palindrome": _palindrome,
    "words:paragraph_last_first": _paragraph_last_first,
    "words:prime_lengths": _prime_lengths,
    "words:repeats": _repeats,
    "words:start_verb": _start_verb,
    "words:vowel": _vowel,
    "words:words_position": _words_position,
}
