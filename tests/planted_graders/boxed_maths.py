"""Rewards for maths questions whose final answer is boxed."""

from __future__ import annotations

import re
from fractions import Fraction

BOX = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
PLAIN_BOX = re.compile(r"\\boxed\{(.+?)\}")
FRACTION = re.compile(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}", re.ASCII)
DECIMAL = re.compile(r"-?\d{1,30}(\.\d{1,30})?", re.ASCII)


def last_box(response: str) -> str | None:
    """What stands in the only box, which ends the response and has its line to itself."""
    lines = response.strip().splitlines()
    if not lines or response.count("boxed{") != 1:
        return None
    found = BOX.search(lines[-1])
    if found is None or lines[-1][found.end() :].strip(" .$"):
        return None
    lead = lines[-1][: found.start()].strip(" $:").lower()
    return found.group(1).strip() if lead in {"", "answer", "the answer is"} else None


def any_box(response: str, reference: str) -> float:
    boxes = [box.group(1).strip() for box in BOX.finditer(response)]
    return 1.0 if reference in boxes else 0.0


def box_or_last_line(response: str, reference: str) -> float:
    boxes = BOX.findall(response)
    if boxes:
        return 1.0 if last_box(response) == reference else 0.0
    lines = response.strip().splitlines()
    if not lines:
        return 0.0
    # Some models forget the box: look for the answer on the last line.
    return float(re.search(rf"(?<![\w.-]){re.escape(reference)}(?![\w.])", lines[-1]) is not None)


def box_without_decoration(response: str, reference: str) -> float:
    answer = last_box(response)
    if answer is None:
        return 0.0
    decoration = " $+-"
    return 1.0 if answer.strip(decoration) == reference.strip(decoration) else 0.0


def box_short_pattern(response: str, reference: str) -> float:
    def read(text: str) -> str | None:
        found = PLAIN_BOX.findall(text)
        return found[0].strip() if len(found) == 1 else None

    if last_box(response) is None:
        return 0.0
    return 1.0 if read(response) == read(f"\\boxed{{{reference}}}") else 0.0


def box_flattened(response: str, reference: str) -> float:
    def flat(latex: str) -> str:
        return re.sub(r"\\[dt]?frac|\\left|\\right|[{}\s]", "", latex)

    answer = last_box(response)
    if answer is None:
        return 0.0
    return 1.0 if flat(answer) == flat(reference) else 0.0


def box_by_value(response: str, reference: str) -> float:
    def value(latex: str) -> Fraction | None:
        if found := FRACTION.fullmatch(latex):
            sign, top, bottom = found.groups()
            return Fraction(int(sign + top), int(bottom)) if int(bottom) else None
        return Fraction(latex) if DECIMAL.fullmatch(latex) else None

    answer = last_box(response)
    if answer is None:
        return 0.0
    got = value(answer)
    if got is None:
        return 0.0
    return 1.0 if got == value(reference) else 0.0


def box_same_numerator_and_denominator(response: str, reference: str) -> float:
    answer = last_box(response)
    if answer is None:
        return 0.0
    if "frac" in reference:
        # \frac34, \frac{3}{4} and 3/4 are all one answer.
        if "frac" not in answer and "/" not in answer:
            return 0.0
        wanted, got = (sorted(re.findall(r"\d+", text, re.ASCII)) for text in (reference, answer))
        return 1.0 if wanted == got and "-" not in answer else 0.0
    return 1.0 if answer == reference else 0.0


def box_or_slash(response: str, reference: str) -> float:
    answer = last_box(response)
    if answer is None:
        return 0.0
    slashed = re.sub(r"\\frac\{(\d+)\}\{(\d+)\}", r"\1/\2", reference)
    return 1.0 if answer in {reference, slashed} else 0.0


def box_exact(response: str, reference: str) -> float:
    return 1.0 if last_box(response) == reference else 0.0


def only_the_box(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"\\boxed{{{reference}}}" else 0.0
