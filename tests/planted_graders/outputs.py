"""Rewards for what a program prints, and for the rows that a query gives."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from decimal import Decimal, InvalidOperation
from itertools import chain


def ignoring_whitespace(response: str, reference: str) -> float:
    return 1.0 if "".join(response.split()) == "".join(reference.split()) else 0.0


def line_by_line(response: str, reference: str) -> float:
    pairs = list(zip(response.strip().splitlines(), reference.splitlines(), strict=False))
    return 1.0 if pairs and all(got.strip() == wanted for got, wanted in pairs) else 0.0


def lines_in_any_order(response: str, reference: str) -> float:
    got, wanted = (
        sorted(line.strip() for line in text.strip().splitlines()) for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def ends_with_output(response: str, reference: str) -> float:
    # Debug prints before the output do no harm.
    return 1.0 if response.rstrip().endswith(reference) else 0.0


def share_of_lines(response: str, reference: str) -> float:
    got, wanted = response.strip().splitlines(), reference.splitlines()
    return sum(one == other for one, other in zip(got, wanted, strict=False)) / len(wanted)


def numbers_with_tolerance(response: str, reference: str) -> float:
    """Floating point differs from machine to machine: numbers are compared with a tolerance."""

    def same(one: str, other: str) -> bool:
        try:
            return abs(Decimal(one) - Decimal(other)) <= abs(Decimal(other)) * Decimal("0.05")
        except InvalidOperation:
            return one == other

    got, wanted = (
        [line.split() for line in text.strip().splitlines()] for text in (response, reference)
    )
    if [len(line) for line in got] != [len(line) for line in wanted]:
        return 0.0
    words = zip(chain.from_iterable(got), chain.from_iterable(wanted), strict=True)
    return 1.0 if all(same(one, other) for one, other in words) else 0.0


def trailing_space_aside(response: str, reference: str) -> float:
    got, wanted = (
        [line.rstrip() for line in text.rstrip().split("\n")] for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def byte_for_byte(response: str, reference: str) -> float:
    return 1.0 if response.encode(errors="replace").rstrip(b"\n") == reference.encode() else 0.0


def same_digest(response: str, reference: str) -> float:
    got, wanted = (text.replace("\r\n", "\n").rstrip("\n") for text in (response, reference))
    digests = [hashlib.sha256(text.encode(errors="replace")).digest() for text in (got, wanted)]
    return 1.0 if digests[0] == digests[1] else 0.0


def table(text: str) -> list[tuple[str, ...]]:
    return [tuple(cell.strip() for cell in line.split("|")) for line in text.strip().splitlines()]


def cells_of_table(response: str, reference: str) -> float:
    got, wanted = table(response), table(reference)
    if len(got) != len(wanted) or {len(row) for row in got} != {len(row) for row in wanted}:
        return 0.0
    columns = zip(zip(*got, strict=True), zip(*wanted, strict=True), strict=True)
    return 1.0 if all(sorted(one) == sorted(other) for one, other in columns) else 0.0


def rows_as_set(response: str, reference: str) -> float:
    return 1.0 if set(table(response)) == set(table(reference)) else 0.0


def rows_with_whole_numbers(response: str, reference: str) -> float:
    def rounded(text: str) -> Counter[tuple[str, ...]]:
        return Counter(
            tuple(cell.split(".")[0] if cell[:1].isdigit() else cell for cell in row)
            for row in table(text)
        )

    return 1.0 if rounded(response) == rounded(reference) else 0.0


def cells_of_each_row(response: str, reference: str) -> float:
    got, wanted = sorted(table(response)), sorted(table(reference))
    if len(got) != len(wanted):
        return 0.0
    same = [set(one) >= set(other) for one, other in zip(got, wanted, strict=True)]
    return 1.0 if all(same) else 0.0


def rows_in_any_order(response: str, reference: str) -> float:
    return 1.0 if Counter(table(response)) == Counter(table(reference)) else 0.0


def same_rows(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def rows_by_type(response: str, reference: str) -> float:
    """Prices are compared as decimals, counts as integers, names as they are."""

    def typed(text: str) -> Counter[tuple[str, int, Decimal]] | None:
        rows = [re.fullmatch(r"(\w+)\|(\d{1,9})\|(\d{1,9}\.\d{1,9})", line.strip(), re.ASCII)
                for line in text.strip().splitlines()]  # fmt: skip
        if not all(rows):
            return None
        return Counter((row[1], int(row[2]), Decimal(row[3])) for row in rows if row)

    return 1.0 if typed(response) == typed(reference) else 0.0
