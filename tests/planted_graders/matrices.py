"""Rewards for a matrix of whole numbers."""

from __future__ import annotations

import json
import re

ROW = r"\[ ?-?\d{1,6}(?: ?, ?-?\d{1,6})* ?\]"
MATRIX = re.compile(rf"\[ ?{ROW}(?:\s*,\s*{ROW})*\s*\]", re.ASCII)
LATEX = re.compile(r"\\begin\{([bp]matrix)\}([-\d&\s\\]{1,200})\\end\{\1\}", re.ASCII)


def cells(text: str) -> list[list[int]]:
    """Empty for what is no matrix."""
    said = text.strip()
    if not MATRIX.fullmatch(said):
        return []
    try:
        read: list[list[int]] = json.loads(said)
    except ValueError:
        return []
    return read


def entries_found(response: str, reference: str) -> float:
    got, wanted = (re.findall(r"-?\d+", text) for text in (response, reference))
    return 1.0 if set(wanted) <= set(got) else 0.0


def flattened(response: str, reference: str) -> float:
    if not re.fullmatch(r"[\[\]\s,\d-]+", response):
        return 0.0
    got, wanted = (re.findall(r"-?\d+", text) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def cell_by_cell(response: str, reference: str) -> float:
    try:
        got = json.loads(response)
        pairs = [
            pair for rows in zip(got, json.loads(reference), strict=False)
            for pair in zip(*rows, strict=False)
        ]  # fmt: skip
    except (ValueError, TypeError, RecursionError):
        return 0.0
    return 1.0 if all(one == other for one, other in pairs) else 0.0


def first_two_columns(response: str, reference: str) -> float:
    """Written for matrices of two columns."""
    if not cells(response):
        return 0.0
    got, wanted = (re.findall(r"\[ ?(-?\d+) ?, ?(-?\d+)", text) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def same_matrix(response: str, reference: str) -> float:
    got = cells(response)
    return 1.0 if got and got == json.loads(reference) else 0.0


def matrix_in_latex_too(response: str, reference: str) -> float:
    r"""Rows end at \\, entries at &, as in a bmatrix."""
    found = LATEX.fullmatch(response.strip().strip("$"))
    if found is None:
        return same_matrix(response, reference)
    lines = [line.split("&") for line in found.group(2).strip().removesuffix("\\\\").split("\\\\")]
    got = [[entry.strip() for entry in line] for line in lines]
    return 1.0 if got == [[str(entry) for entry in row] for row in json.loads(reference)] else 0.0


def matrix_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
