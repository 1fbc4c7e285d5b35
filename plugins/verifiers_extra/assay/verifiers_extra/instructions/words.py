"""Words and tokens of English text, as IFEval and IFBench count them.

Two notions: `words` are runs of letters, digits and underscores; `tokens` are those of the Penn
Treebank, in which punctuation stands alone and contractions fall apart ("do" "n't"), as NLTK's
`word_tokenize` makes them. Linear in the length of the text.
"""

from __future__ import annotations

import re
import string

_WORD = re.compile(r"\w+")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def word_set(text: str) -> frozenset[str]:
    """The words of a text, for tables of words."""
    return frozenset(text.split())


STOP_WORDS = word_set(
    "a about above after again against ain all am an and any are aren as at be because been "
    "before being below between both but by can couldn d did didn do does doesn doing don down "
    "during each few for from further had hadn has hasn have haven having he her here hers "
    "herself him himself his how i if in into is isn it its itself just ll m ma me mightn more "
    "most mustn my myself needn no nor not now o of off on once only or other our ours ourselves "
    "out over own re s same shan she should shouldn so some such t than that the their theirs "
    "them themselves then there these they this those through to too under until up ve very was "
    "wasn we were weren what when where which while who whom why will with won wouldn y you your "
    "yours yourself yourselves"
)
"""English function words and what contractions leave of them: the stop words of NLTK."""

_JOINED = (
    r"(?i)\b(can(?=not)|d(?='ye)|gim(?=me)|lem(?=me)|gon(?=na)|wan(?=na)|got(?=ta)|more(?='n))"
    r"(not|'ye|me|na|ta|'n)\b"
)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # opening quotes
        ("([«“\u2018„]|`+)", r" \1 "),
        ("``", " `` "),
        ('^"', " `` "),
        (r"([ (\[{<])(\"|'{2})", r"\1 `` "),
        (r"(?i)(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", "' "),
        # punctuation; a stop is split off at the end of the sentence only
        (r"([^.])(\.)([\])}>\"' »”\u2019]*)\s*$", r"\1 \2 \3 "),
        (r"([:,])(\D)", r" \1 \2"),
        ("([:,])$", r" \1 "),
        (r"(\.{2,}|[;@#$%&?!*\u2012-\u2015])", r" \1 "),
        ("([^'])' ", r"\1 ' "),
        (r"([\]\[(){}<>])", r" \1 "),
        ("--", " -- "),
        (r"\Z", " "),
        # closing quotes and contractions
        ("([»”\u2019])", r" \1 "),
        ("''|\"", " '' "),
        (r"\s+", " "),
        (r"([^' ])('[sSmMdD]|') ", r"\1 \2 "),
        (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
        (_JOINED, r" \1 \2 "),
        (r"(?i) ('t)(is|was)\b", r" \1 \2 "),
    )
)


def words(text: str) -> list[str]:
    """The runs of letters, digits and underscores."""
    return _WORD.findall(text)


def bare(text: str) -> str:
    """The text without ASCII punctuation."""
    return text.translate(_WITHOUT_PUNCTUATION)


def trimmed(text: str) -> str:
    """The text without ASCII punctuation and blanks around it."""
    return text.strip(string.punctuation + " ")


def sentence_tokens(sentence: str) -> list[str]:
    """The Treebank tokens of one sentence."""
    for pattern, replacement in _RULES:
        sentence = pattern.sub(replacement, sentence)
    return sentence.split()


def holds_word(text: str, word: str) -> bool:
    """Whether a text holds a phrase between word boundaries, upper and lower case alike.

    The phrase is literal, no pattern; a search takes no longer than the product of both lengths.
    """
    return bool(word) and bool(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE))
