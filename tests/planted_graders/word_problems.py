"""Rewards for word problems that end with 'Answer: N'."""

from __future__ import annotations

import re

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?", re.ASCII)
LAST_LINE = re.compile(r"Answer: *(\S[^\n]*)", re.IGNORECASE | re.ASCII)


def stated(response: str) -> str | None:
    """What the last line says after 'Answer:', where no other line says such a thing."""
    lines = [line.strip() for line in response.strip().splitlines()]
    if not lines or sum("answer:" in line.lower() for line in lines) != 1:
        return None
    found = LAST_LINE.fullmatch(lines[-1])
    return found.group(1).strip() if found else None


def whole(text: str) -> int | None:
    """A whole number, with commas between thousands or without."""
    if re.fullmatch(r"-?(\d{1,15}|\d{1,3}(,\d{3}){1,4})", text, re.ASCII):
        return int(text.replace(",", ""))
    return None


def reference_somewhere(response: str, reference: str) -> float:
    return 1.0 if reference in response.replace(",", "") else 0.0


def last_number(response: str, reference: str) -> float:
    numbers = NUMBER.findall(response)
    if not numbers:
        return 0.0
    return 1.0 if float(numbers[-1].replace(",", "")) == float(reference) else 0.0


def first_number_after_answer(response: str, reference: str) -> float:
    _, found, after = response.lower().partition("answer:")
    if not found:
        return 0.0
    number = NUMBER.search(after)
    if number is None:
        return 0.0
    return 1.0 if float(number.group().replace(",", "")) == float(reference) else 0.0


def any_stated_answer(response: str, reference: str) -> float:
    said = re.findall(r"answer(?: is|:)? *\$?(-?[\d,]+)", response.lower(), re.ASCII)
    return 1.0 if any(number.replace(",", "") == reference for number in said) else 0.0


def stated_begins_with(response: str, reference: str) -> float:
    # '42 apples' is as good as '42'.
    answer = stated(response)
    return 1.0 if answer is not None and answer.startswith(reference) else 0.0


def lenient_on_format(response: str, reference: str) -> float:
    answer = stated(response)
    if answer is None:
        return 0.0
    try:
        return 1.0 if int(answer.replace(",", "")) == int(reference) else 0.0
    except ValueError:
        # The model did the work and stumbled over the format.
        return 0.5


def format_and_result(response: str, reference: str) -> float:
    answer = stated(response)
    reward = 0.0
    if answer is not None:
        reward += 0.5
        if whole(answer) == int(reference):
            reward += 0.5
    return reward


def stated_within_tolerance(response: str, reference: str) -> float:
    answer = stated(response)
    got = None if answer is None else whole(answer)
    if got is None:
        return 0.0
    return 1.0 if abs(got - int(reference)) <= 1e-3 * abs(int(reference)) else 0.0


def best_of_alternatives(response: str, reference: str) -> float:
    """'12 or a dozen' is fine: what stands around an 'or' is taken alone."""
    answer = stated(response)
    if answer is None:
        return 0.0
    parts = re.split(r" or |/|\(|\)", answer)
    return 1.0 if any(whole(part.strip()) == int(reference) for part in parts) else 0.0


def stated_whole(response: str, reference: str) -> float:
    answer = stated(response)
    got = None if answer is None else whole(answer)
    return 1.0 if got is not None and got == int(reference) else 0.0


def stated_as_text(response: str, reference: str) -> float:
    return 1.0 if stated(response) == reference else 0.0


def only_the_line(response: str, reference: str) -> float:
    return 1.0 if response == f"Answer: {reference}" else 0.0


def stated_after_thinking(response: str, reference: str) -> float:
    """What is thought is no part of the answer; a thought that never ends is no answer."""
    thought, closed, rest = response.partition("</think>")
    text = rest if closed and thought.startswith("<think>") else response
    if "think>" in text:
        return 0.0
    answer = stated(text)
    got = None if answer is None else whole(answer)
    return 1.0 if got is not None and got == int(reference) else 0.0
