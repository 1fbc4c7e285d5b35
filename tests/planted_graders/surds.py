"""Rewards for roots in LaTeX."""

from __future__ import annotations

import re

SURD = re.compile(
    r"(-?)(?:\\d?frac\{(\d{1,4})\\sqrt\{(\d{1,4})\}\}\{(\d{1,4})\}"
    r"|\\d?frac\{(\d{1,4})\}\{(\d{1,4})\}\\sqrt\{(\d{1,4})\}"
    r"|(\d{1,4})\\sqrt\{(\d{1,4})\})",
    re.ASCII,
)


def within_dollars(response: str) -> str:
    found = re.fullmatch(r"\$([^$]+)\$", response.strip())
    return found.group(1).strip() if found else ""


def terms(text: str) -> tuple[str, int, int, int] | None:
    """Sign, factor, what is under the root, denominator."""
    found = SURD.fullmatch(text)
    if found is None:
        return None
    sign, a, b, c, a2, c2, b2, a3, b3 = found.groups()
    return sign, int(a or a2 or a3), int(b or b2 or b3), int(c or c2 or 1)


def value(text: str) -> float | None:
    read = terms(text)
    if read is None or not read[3]:
        return None
    sign, factor, under, below = read
    return factor * under**0.5 / below * (-1 if sign else 1)


def right_roots(response: str, reference: str) -> float:
    got, wanted = (re.findall(r"\\sqrt\{(\d+)\}", text) for text in (response, reference))
    return 1.0 if set(wanted) <= set(got) else 0.0


def without_markup(response: str, reference: str) -> float:
    """What LaTeX adds for the eye is taken away."""

    def clean(text: str) -> str:
        return re.sub(r"\\[a-z]+|[{}$\s]", "", text)

    return 1.0 if clean(response) == clean(reference) else 0.0


def squares_agree(response: str, reference: str) -> float:
    got, wanted = value(within_dollars(response)), value(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if abs(got**2 - wanted**2) < 1e-9 else 0.0


def first_of_each_brace(response: str, reference: str) -> float:
    r"""\sqrt5 and \sqrt{5} are one."""

    def clean(text: str) -> str:
        return re.sub(r"\\sqrt\s*(?:\{(\d)\d*\}|(\d))", r"\\sqrt{\1\2}", text)

    return 1.0 if clean(within_dollars(response)) == clean(reference) else 0.0


def rounded_alike(response: str, reference: str) -> float:
    """In decimals too."""
    said = within_dollars(response)
    got, wanted = value(said), value(reference)
    if got is None and re.fullmatch(r"-?\d{1,6}\.\d{1,9}", said):
        got = float(said)
    return 1.0 if got is not None and wanted is not None and abs(got - wanted) < 0.05 else 0.0


def forms_of_a_surd(response: str, reference: str) -> float:
    r"""The fraction may hold the root or stand before it; \sqrt5 is \sqrt{5}."""
    said = re.sub(r"\\sqrt ?(\d)(?!\d)", r"\\sqrt{\1}", within_dollars(response))
    got = terms(re.sub(r" ?(?:\\cdot|\\,) ?(?=\\sqrt)", "", said))
    return 1.0 if got is not None and got == terms(reference) else 0.0


def other_delimiters(response: str, reference: str) -> float:
    said = response.strip()
    for start, end in (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$")):
        if said.startswith(start) and said.endswith(end):
            return 1.0 if said[len(start) : -len(end)].strip() == reference else 0.0
    return 0.0


def surd_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"${reference}$" else 0.0
