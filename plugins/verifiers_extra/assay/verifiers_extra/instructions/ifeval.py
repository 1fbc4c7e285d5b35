"""The 25 instructions of IFEval (arXiv 2311.07911): a table from id to checker.

Each entry makes a check from the arguments of a reference. The definitions, oddities included, are
those of the instructions' reference implementation (google-research, instruction_following_eval),
so that figures compare; `verifier` lists what differs. Every check is linear in the response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from assay.verifiers_extra.instructions.arguments import Arguments, Check
from assay.verifiers_extra.instructions.sentences import sentences, tokens
from assay.verifiers_extra.instructions.words import holds_word, words
from assay.verifiers_extra.languages.detection import detect

_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_POSTSCRIPTS = {
    "P.P.S": re.compile(r"p\.\s?p\.\s?s"),
    "P.S.": re.compile(r"p\.\s?s\."),
}
_HIGHLIGHT = re.compile(r"\*[^\n*]*\*")
_DOUBLE_HIGHLIGHT = re.compile(r"\*\*[^\n*]*\*\*")
PARAGRAPH_MARK = re.compile(r"\s?\*\*\*\s?")
_FENCES = ("```json", "```Json", "```JSON", "```")
_LANGUAGE_CODE = re.compile(r"[a-z]{2}(?:-[a-z]{2})?")


def _existence(arguments: Arguments) -> Check:
    keywords = [keyword.lower() for keyword in arguments.words("keywords")]

    def check(response: str) -> bool:
        text = response.lower()
        return all(keyword in text for keyword in keywords)

    return check


def frequency(arguments: Arguments) -> Check:
    """A keyword, counted literally and whatever its case, against a threshold."""
    keyword = arguments.word("keyword").lower()
    threshold, holds = arguments.count("frequency"), arguments.relation("relation")
    return lambda response: holds(response.lower().count(keyword), threshold)


def _forbidden_words(arguments: Arguments) -> Check:
    forbidden = arguments.words("forbidden_words")
    return lambda response: not any(holds_word(response, word) for word in forbidden)


def letter_frequency(arguments: Arguments) -> Check:
    """A character, counted whatever its case, against a threshold."""
    letter = arguments.word("letter").lower()
    if len(letter) != 1:
        raise arguments.trouble("letter", "must be one character")
    threshold, holds = arguments.count("let_frequency"), arguments.relation("let_relation")
    return lambda response: holds(response.lower().count(letter), threshold)


def _response_language(arguments: Arguments) -> Check:
    language = arguments.word("language").lower()
    if not _LANGUAGE_CODE.fullmatch(language):
        raise arguments.trouble("language", "must be a code such as 'en' or 'zh-cn'")
    return lambda response: detect(response) in (language, None)


def _number_sentences(arguments: Arguments) -> Check:
    threshold, holds = arguments.count("num_sentences"), arguments.relation("relation")
    return lambda response: holds(len(sentences(response)), threshold)


def _number_paragraphs(arguments: Arguments) -> Check:
    wanted = arguments.count("num_paragraphs")
    return lambda response: paragraph_count(response, PARAGRAPH_MARK) == wanted


def paragraph_count(response: str, mark: re.Pattern[str]) -> int | None:
    """How many paragraphs a mark separates; None if one between two marks is blank."""
    paragraphs = mark.split(response)
    if not all(paragraph.strip() for paragraph in paragraphs[1:-1]):
        return None
    return sum(bool(paragraph.strip()) for paragraph in paragraphs)


def _number_words(arguments: Arguments) -> Check:
    threshold, holds = arguments.count("num_words"), arguments.relation("relation")
    return lambda response: holds(len(words(response)), threshold)


def _nth_paragraph_first_word(arguments: Arguments) -> Check:
    wanted = arguments.count("num_paragraphs", 1)
    nth = arguments.count("nth_paragraph", 1)
    first = arguments.word("first_word").lower()
    if nth > wanted:
        raise arguments.trouble("nth_paragraph", "must not exceed 'num_paragraphs'")

    def check(response: str) -> bool:
        paragraphs = response.split("\n\n")
        count = sum(bool(paragraph.strip()) for paragraph in paragraphs)
        paragraph = paragraphs[nth - 1].split() if nth <= count else []
        if not paragraph:
            return False
        word = re.split("[.,?!'\"]", paragraph[0].lstrip("'").lstrip('"'), maxsplit=1)[0]
        return count == wanted and word.lower() == first

    return check


def _number_placeholders(arguments: Arguments) -> Check:
    threshold = arguments.count("num_placeholders")
    return lambda response: sum(map(_placeholders, response.split("\n"))) >= threshold


def _placeholders(line: str) -> int:
    """How many bracketed parts a line has, the shortest from the left."""
    count, start = 0, line.find("[")
    while start >= 0:
        end = line.find("]", start)
        if end < 0:
            break
        count, start = count + 1, line.find("[", end + 1)
    return count


def _postscript(arguments: Arguments) -> Check:
    marker = arguments.word("postscript_marker")
    pattern = _POSTSCRIPTS.get(marker) or re.compile(re.escape(marker.lower()))
    return lambda response: bool(pattern.search(response.lower()))


def _number_bullet_lists(arguments: Arguments) -> Check:
    wanted = arguments.count("num_bullets")

    def check(response: str) -> bool:
        lines = response.split("\n")
        dashes = sum(line.lstrip().startswith("-") for line in lines)
        return dashes + _stars(lines) == wanted

    return check


def _stars(lines: list[str]) -> int:
    """How many lines begin with one asterisk; one that stands alone takes the next line with it."""
    count, is_taken = 0, False
    for number, line in enumerate(lines, start=1):
        text = line.lstrip()
        if is_taken or not text.startswith("*"):
            is_taken = False
        elif text == "*":
            is_taken = number < len(lines)
            count += is_taken
        else:
            count += text[1] != "*"
    return count


def _constrained_response(arguments: Arguments) -> Check:
    del arguments
    return lambda response: any(answer in response for answer in _ANSWERS)


def _number_highlighted_sections(arguments: Arguments) -> Check:
    threshold = arguments.count("num_highlights")

    def check(response: str) -> bool:
        single = sum(bool(found.strip("*").strip()) for found in _HIGHLIGHT.findall(response))
        double = sum(bool(found[2:-2].strip()) for found in _DOUBLE_HIGHLIGHT.findall(response))
        return single + double >= threshold

    return check


def _multiple_sections(arguments: Arguments) -> Check:
    mark = re.compile(re.escape(arguments.word("section_spliter")) + r"\s?\d+")
    threshold = arguments.count("num_sections")
    return lambda response: len(mark.findall(response)) >= threshold


def _json_format(arguments: Arguments) -> Check:
    del arguments
    return _is_json


def _is_json(response: str) -> bool:
    text = response.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _title(arguments: Arguments) -> Check:
    del arguments
    return lambda response: any(map(_has_title, response.split("\n")))


def _has_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start <= end - 3 and bool(line[start : end + 2].lstrip("<").rstrip(">").strip())


def _two_responses(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        parts = [part.strip() for part in response.split("******")]
        given = [part for part in parts if part]
        return all(parts[1:-1]) and len(given) == 2 and given[0] != given[1]

    return check


def _repeat_prompt(arguments: Arguments) -> Check:
    prompt = arguments.text("prompt_to_repeat").strip().lower()
    return lambda response: response.strip().lower().startswith(prompt)


def _end_checker(arguments: Arguments) -> Check:
    phrase = arguments.text("end_phrase").strip().lower()
    return lambda response: response.strip().strip('"').lower().endswith(phrase)


def _capital_word_frequency(arguments: Arguments) -> Check:
    threshold = arguments.count("capital_frequency")
    holds = arguments.relation("capital_relation")

    def check(response: str) -> bool:
        return holds(sum(token.isupper() for token in tokens(response)), threshold)

    return check


def _english_capital(arguments: Arguments) -> Check:
    del arguments
    return lambda response: response.isupper() and detect(response) in ("en", None)


def _english_lowercase(arguments: Arguments) -> Check:
    del arguments
    return lambda response: response.islower() and detect(response) in ("en", None)


def _no_comma(arguments: Arguments) -> Check:
    del arguments
    return lambda response: "," not in response


def _quotation(arguments: Arguments) -> Check:
    del arguments

    def check(response: str) -> bool:
        text = response.strip()
        return len(text) > 1 and text[0] == text[-1] == '"'

    return check


IFEVAL: dict[str, Callable[[Arguments], Check]] = {
    "change_case:capital_word_frequency": _capital_word_frequency,
    "change_case:english_capital": _english_capital,
    "change_case:english_lowercase": _english_lowercase,
    "combination:repeat_prompt": _repeat_prompt,
    "combination:two_responses": _two_responses,
    "detectable_content:number_placeholders": _number_placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": _constrained_response,
    "detectable_format:json_format": _json_format,
    "detectable_format:multiple_sections": _multiple_sections,
    "detectable_format:number_bullet_lists": _number_bullet_lists,
    "detectable_format:number_highlighted_sections": _number_highlighted_sections,
    "detectable_format:title": _title,
    "keywords:existence": _existence,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:frequency": frequency,
    "keywords:letter_frequency": letter_frequency,
    "language:response_language": _response_language,
    "length_constraints:nth_paragraph_first_word": _nth_paragraph_first_word,
    "length_constraints:number_paragraphs": _number_paragraphs,
    "length_constraints:number_sentences": _number_sentences,
    "length_constraints:number_words": _number_words,
    "punctuation:no_comma": _no_comma,
    "startend:end_checker": _end_checker,
    "startend:quotation": _quotation,
}
