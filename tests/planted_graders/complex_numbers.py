"""Rewards for a complex number."""

from __future__ import annotations

import cmath
import re

FIRST, SECOND = r"([+-]? ?\d{1,6})", r" ?([+-] ?\d{1,6})"
FORM = re.compile(rf"{FIRST}{SECOND}\*?i", re.ASCII)
TURNED = re.compile(rf"{FIRST}\*?i{SECOND}", re.ASCII)


def parts(text: str) -> tuple[int, int] | None:
    said = text.strip()
    form = FORM.fullmatch(said)
    found = form or TURNED.fullmatch(said)
    if found is None:
        return None
    first, second = (int(one.replace(" ", "")) for one in found.groups())
    return (first, second) if form else (second, first)


def same_magnitude(response: str, reference: str) -> float:
    def read(text: str) -> complex:
        try:
            return complex(text.replace(" ", "").strip().replace("i", "j"))
        except ValueError:
            return complex("nan")

    return 1.0 if cmath.isclose(abs(read(response)), abs(read(reference))) else 0.0


def both_numbers(response: str, reference: str) -> float:
    got, wanted = parts(response), parts(reference)
    return 1.0 if got and wanted and set(got) == set(wanted) else 0.0


def figures_of_parts(response: str, reference: str) -> float:
    got, wanted = (re.findall(r"\d+", text) for text in (response, reference))
    return 1.0 if "i" in response and got == wanted else 0.0


def same_complex(response: str, reference: str) -> float:
    """4i - 3 is -3+4i."""
    got = parts(response)
    return 1.0 if got is not None and got == parts(reference) else 0.0


def complex_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
