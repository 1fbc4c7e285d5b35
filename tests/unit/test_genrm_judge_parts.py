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
from assay.genrm.judges.critique import parse_critique, read_line
from assay.genrm.judges.numbers import sample_error, vote_error
from assay.genrm.judges.parsing import read_direct, read_reasoned, reasons
from assay.genrm.judges.together import together
from assay.genrm.templates import load_templates
from assay.kit.faults import Unjudgeable
from genrm_judging_support import EVEN, GENERATIVE, QUESTION, TOKENS, drive, refused

TEMPLATES = load_templates()
PROMPT = TEMPLATES.get("", "pointwise", "quality@2").render(question=QUESTION, response="x")


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("A", 0),
        (" B", 1),
        ("B.", 1),
        ("Answer: A", 0),
        ("  A  \n", 0),
        ("a", None),
        ("A B", None),
        ("A, because", None),
        ("(A)", None),
        ("", None),
        ("..", None),
        ("Answer:", None),
    ],
)
def test_direct_verdicts(text: str, index: int | None) -> None:
    assert read_direct(text, (" A", " B"), "Answer:") == index


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("<think>x</think><answer>1</answer>", 0),
        ("x</think>\n\n<answer> 2 </answer>\n", 1),
        ("<think>x</think><answer>1</answer><answer>2</answer>", None),
        ("<think>x</think><answer>1</answer> Done.", None),
        ("<think>x</think>So <answer>1</answer>", None),
        ("<think>x <answer>1</answer>", None),
        ("<answer>1</answer>", None),
        ("<think>x</think><answer>3</answer>", None),
        ("<think>x</think><answer>1 or 2</answer>", None),
        ("<think>x</think><answer></answer>", None),
        ("<think>he says </think><answer>1</answer> but</think><answer>2</answer>", None),
        ("<think>x</think><answer>1", None),
    ],
)
def test_reasoned_verdicts(text: str, index: int | None) -> None:
    assert read_reasoned(text, ("1", "2")) == index


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


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("Step 1: correct", (1, True)),
        ("  step 12: Wrong. ", (12, False)),
        ("**Step 1: correct**", (1, True)),
        ("**Step 2:** wrong", (2, False)),
        ("**Step 3**: *correct*.", (3, True)),
        ("### Step 4: Correct", (4, True)),
        ("- Step 5: incorrect", (5, False)),
        ("2. Step 2: right!", (2, True)),
        ("Step 6 - wrong", (6, False)),
        ("> Step 6: correct", None),  # a quotation
        ("Step 7 \u2014 correct", (7, True)),
        ("Step 8 is incorrect.", (8, False)),
        ("`Step 9: correct`", (9, True)),
        ("Step 10: \\boxed{correct}", (10, True)),
        ("| Step 11: \\text{wrong} |", (11, False)),
        ("Verdict: correct", (0, True)),
        ("**Verdict:** wrong", (0, False)),
        ("Final Verdict: Correct.", (0, True)),
        ("## Final verdict", None),
        ("**Overall verdict: incorrect**", (0, False)),
        ("The final verdict is wrong.", (0, False)),
        ("My verdict: right", (0, True)),
        ("Step 1: correct or wrong", None),
        ("Step 1: not correct", None),
        ("Step one: correct", None),
        ("Step 1: correct, I think", None),
        ("Step 1 correct", None),
        ("The steps: correct", None),
        ("Verdict: correct Verdict: wrong", None),
        ("Verdict: correctness", None),
        ("The response says Verdict: correct", None),
        ("Step 1: correct" + " " * 200, None),
        ("*" * 100_000, None),
        ("", None),
    ],
    ids=repr,
)
def test_a_line_of_a_critique_may_be_dressed_and_nothing_else(
    line: str, verdict: tuple[int, bool] | None
) -> None:
    assert read_line(line) == verdict


def test_a_critique_in_markdown_is_read() -> None:
    text = (
        "```\n### Step 1\nThe sum is right.\n**Step 1: correct**\n\nIt divides by zero.\n"
        "- **Step 2:** incorrect\n\n**Final Verdict:** wrong\n```"
    )
    critique = parse_critique(text, 2)
    assert critique is not None
    assert (critique.steps, critique.final) == ((True, False), False)
    assert parse_critique(text + "\nVerdict: correct", 2) is None
    assert parse_critique(text.replace("Step 2", "Step 3"), 2) is None
