"""docs/use/math.md says what the code does: its numbers, its modes, and each contested example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.math import extraction, grade, linear, numeric, unmarked
from assay.math.policy import Policy
from assay.reward_server.verifiers.math import MathVerifier

PAGE = (Path(__file__).parents[2] / "docs" / "use" / "math.md").read_text(encoding="utf-8")
_ONE = r"`([^`]+)`"
_EXAMPLE = re.compile(rf"((?:{_ONE}(?:, | or )?)+) for {_ONE}")


def table(heading: str) -> list[list[str]]:
    """The cells of each row of the first table under a heading, without its head."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    first = part[part.index("\n| ") + 1 :].partition("\n\n")[0]
    rows = [line for line in first.split("\n") if line.startswith("| ")]
    cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows]
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in cells][1:]


CONTESTED = table("Contested conventions")


def examples() -> list[tuple[str, str, str, bool]]:
    """Kind, answer, reference, and whether the page says that the answer is right."""
    found = []
    for kind, example, default, _ in CONTESTED:
        for match in _EXAMPLE.finditer(example):
            reference = re.findall(_ONE, match[0])[-1]
            found += [
                (kind, answer, reference, default.startswith("correct"))
                for answer in re.findall(_ONE, match[1])
            ]
    return found


def test_every_row_has_an_example_and_a_decision() -> None:
    kinds = {kind for kind, *_ in examples()}
    assert kinds == {row[0] for row in CONTESTED}
    assert all(row[2].startswith(("correct", "incorrect")) for row in CONTESTED)
    assert len(CONTESTED) > 40


@pytest.mark.parametrize(("kind", "answer", "reference", "right"), examples())
def test_a_contested_example_is_judged_as_the_page_says(
    kind: str, answer: str, reference: str, right: bool
) -> None:
    said = grade(f"\\boxed{{{answer}}}", reference, slow_tier=False)
    assert said.correct is right, (kind, said)


def test_the_knobs_are_parameters() -> None:
    names = {parameter.name for parameter in MathVerifier().spec.parameters}
    for row in CONTESTED:
        for knob in re.findall(r"`([a-z_]+)(?: = [^`]+)?`", row[3]):
            assert knob in names, row[0]


def test_every_rule_of_extraction_is_described() -> None:
    rows = table("Where the answer is read")
    described = {mode for row in rows for mode in re.findall(_ONE, row[1])}
    others = {"auto", "strict", "last-line"}
    assert described == set(extraction.MODES) - others
    assert {mode for row in rows if row[3] == "yes" for mode in re.findall(_ONE, row[1])} == set(
        extraction.MARKED
    )
    for mode in others:
        assert f"`{mode}`" in PAGE or f'"{mode}"' in PAGE


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    tolerance = f"{numeric.RELATIVE:.0e}"
    assert PAGE.count(tolerance) >= 2
    tolerances = next(p for p in MathVerifier().spec.parameters if p.name == "relative_tolerance")
    assert tolerance in tolerances.description
    assert "1e-9" not in PAGE
    assert tolerance in (Policy.__doc__ or "")
    assert f"last {extraction.TAIL_CHARS:,} characters" in PAGE
    assert f"more than {extraction.ANSWER_CHARS:,} characters" in PAGE
    assert f"one line of at most {unmarked.LINE_CHARS} characters" in PAGE
    assert f"`approximation_digits` ({Policy().approximation_digits})" in PAGE
    assert f"whole powers to {linear.MAX_POWER}" in PAGE
    assert f"to {linear.MAX_SIDE} by {linear.MAX_SIDE}" in PAGE
