"""The parts of judges: parsers, errors of means, runs side by side, steps of a consensus."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from assay.genrm.domain import (
    CandidateResponse,
    ResolvedJudgeSettings,
    Run,
)
from assay.genrm.engines.base import Answer, Choose, Chosen, Request, Write, Written
from assay.genrm.judges import judge_response
from assay.genrm.judges.consensus import cut
from assay.genrm.judges.numbers import sample_error, vote_error
from assay.genrm.judges.parsing import reasons
from assay.genrm.judges.together import together
from assay.genrm.templates import load_templates
from assay.kit.faults import Unjudgeable
from genrm_judging_support import EVEN, GENERATIVE, QUESTION, TOKENS, drive, refused

TEMPLATES = load_templates()
PROMPT = TEMPLATES.get("", "pointwise", "quality@2").render(question=QUESTION, response="x")


def test_reasons_without_tags() -> None:
    assert reasons("<think> because </think><answer>1</answer>") == "because"
    assert reasons("never ends") == "never ends"


def test_errors_of_means() -> None:
    assert vote_error([1, 1, 1, 1]) == pytest.approx(math.sqrt(0.75 * 0.25 / 8))
    assert sample_error([0.5]) is None
    assert sample_error([0.4, 0.6]) == pytest.approx(0.1)


def test_together_takes_rounds_and_keeps_the_order() -> None:
    def asking(times: int) -> Run[int]:
        total = 0
        for _ in range(times):
            answers = yield (Choose(PROMPT, ("a", "b")),) * times
            total += len(answers)
        return total

    results, rounds = drive(together([asking(times) for times in (0, 3, 1, 2)]), EVEN)
    assert results == (0, 9, 1, 4)
    assert [len(asked) for asked in rounds] == [6, 5, 3]
    assert drive(together([]), EVEN) == ((), [])


def test_together_closes_the_others_when_one_fails() -> None:
    closed = []

    def patient() -> Run[int]:
        try:
            yield (Choose(PROMPT, ("a", "b")),)
        finally:
            closed.append(True)
        return 0

    def failing() -> Run[int]:
        yield (Choose(PROMPT, ("a", "b")),)
        raise Unjudgeable("JUDGE_UNPARSED", "no")

    assert refused(together([patient(), failing(), patient()])).reason == "JUDGE_UNPARSED"
    assert closed == [True, True]


@pytest.mark.parametrize(
    ("response", "steps"),
    [
        ("one", ("one",)),
        ("one\ntwo\n\n", ("one", "two")),
        ("one\ntwo\n \t\nthree", ("one\ntwo", "three")),
        ("\n\none\r\n\r\ntwo", ("one\r", "two")),
    ],
)
def test_steps_of_a_consensus(response: str, steps: tuple[str, ...]) -> None:
    assert cut(response) == steps


def test_what_is_left_over_belongs_to_the_last_step() -> None:
    parts = cut("\n\n".join(str(number) for number in range(200)))
    assert len(parts) == 64
    assert (parts[62], parts[63][:4], parts[63][-3:]) == ("62", "63\n\n", "199")


def test_reasons_without_an_end_are_unread_by_probability_too() -> None:
    settings = ResolvedJudgeSettings("correctness-reasoned@1", votes=4)
    item = CandidateResponse(QUESTION, "four", ground_truth="4")

    def answering(thoughtless: int) -> Callable[[Request], Answer]:
        def answer(request: Request) -> Answer:
            if isinstance(request, Choose):
                return Chosen((math.log(0.25), math.log(0.75)), TOKENS)
            assert isinstance(request, Write)
            ends = "" if request.seed < thoughtless else "</think>"
            return Written(f"well{ends}", "stop", TOKENS)

        return answer

    judgement, rounds = drive(judge_response(item, settings, GENERATIVE, TEMPLATES), answering(2))
    assert [len(asked) for asked in rounds] == [4, 2]
    assert (judgement.score, judgement.unparsed_votes) == (pytest.approx(0.25), 2)
    assert judgement.standard_error == pytest.approx(0.0, abs=1e-12)
    fault = refused(judge_response(item, settings, GENERATIVE, TEMPLATES), answering(3))
    assert fault.reason == "JUDGE_UNPARSED"
    fault = refused(judge_response(item, settings, GENERATIVE, TEMPLATES), answering(4))
    assert fault.metadata["raw_text"] == "well"
