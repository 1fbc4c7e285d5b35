r"""Traps: answers that graders are known to take for right and that are not, and what is right.

Each line of math_traps.txt is a reference and an answer (which is put in a box), or a reference
and a whole response. The kinds: hedges, enumerations, bounds for numbers, indices, signs, brackets
and units that differ, names that differ by a letter, words that change a number; and for what is
right: the many ways to write one value. They were written by hand against this verifier, and it was
mended until they passed: they guard against going back and measure nothing. None is copied from a
benchmark; short ones such as 5.0 for 5 occur in them too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.reward_server.domain import Candidate, VerifierItem
from assay.reward_server.verifiers.math import MathVerifier

VERIFIER = MathVerifier()
PARAMETERS = VERIFIER.spec.complete({})


def pairs(section: str) -> list[tuple[str, ...]]:
    """Reference and answer, or reference and response, of a section of the file."""
    text = Path(__file__).with_name("math_traps.txt").read_text(encoding="utf-8")
    lines = text.partition(f"== {section}\n")[2].partition("\n== ")[0].strip("\n").split("\n")
    return [tuple(line.split(" ||| ")) for line in lines]


def is_right(reference: str, response: str) -> bool:
    item = VerifierItem(Candidate(response), references=(reference,), parameters=PARAMETERS)
    return VERIFIER.judge(item).reward > 0


@pytest.mark.parametrize(("reference", "answer"), pairs("different"))
def test_what_differs_is_not_right(reference: str, answer: str) -> None:
    assert not is_right(reference, f"\\boxed{{{answer}}}")


@pytest.mark.parametrize(("reference", "answer"), pairs("same"))
def test_another_way_to_write_it_is_right(reference: str, answer: str) -> None:
    assert is_right(reference, f"\\boxed{{{answer}}}")


@pytest.mark.parametrize(("reference", "response"), pairs("wrong responses"))
def test_a_response_that_states_another_answer_is_not_right(reference: str, response: str) -> None:
    assert not is_right(reference, response)


@pytest.mark.parametrize(("reference", "response"), pairs("right responses"))
def test_a_response_that_states_the_answer_is_right(reference: str, response: str) -> None:
    assert is_right(reference, response)
