r"""One grader behind two doors: `assay.math.grade` and the service's verifier `math` agree.

On the verifier's own examples, on noise, and on real data through the scorer and its workers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.math import Fault, Outcome, Policy, grade, grade_batch
from assay.math.extraction import MODES
from assay.math.judging import UNDONE_WORK_CHOICES
from assay.reward_server import border, domain
from assay.reward_server.verifiers.math import MathVerifier
from faults.test_math_hostile import NOISE, PAYLOADS, RESPONSES
from math_support import Pair, rows, score

MATH = MathVerifier()
TIMEOUT_S = 20.0


def in_service(
    response: str, references: Sequence[str], *, truncated: bool, **given: domain.ParameterValue
) -> domain.Outcome:
    item = domain.VerifierItem(
        domain.Candidate(response),
        tuple(references),
        parameters=MATH.spec.complete(given),
        truncated=truncated,
    )
    return border.judge(MATH, item)


def assert_same(ours: Outcome, theirs: domain.Outcome) -> None:
    if isinstance(ours, Fault):
        assert isinstance(theirs, domain.Fault)
        assert (ours.reason, ours.message) == (theirs.reason, theirs.message)
        return
    assert isinstance(theirs, domain.Judgement)
    assert (ours.verdict, ours.reward) == (theirs.verdict, theirs.reward)
    assert (ours.answer or "")[:200] == (theirs.extracted_answer or "")[:200]
    assert border.one_line(ours.explanation) == theirs.explanation
    assert set(ours.signs) <= set(theirs.suspicions)


@pytest.mark.parametrize("example", MATH.examples, ids=lambda e: str(e.item.candidate.text)[:30])
def test_the_examples_of_the_verifier(example: domain.VerifierExample) -> None:
    item = example.item
    ours = grade(item.response(), item.references, timeout_s=TIMEOUT_S)
    assert_same(ours, border.judge(MATH, item))
    assert not isinstance(ours, Fault)
    assert ours.verdict == example.verdict


_ANSWERS = st.sampled_from(
    ["3", "0.5", r"\frac12", "x+1", "1+x", "(1,2)", r"\{1,2\}", "B", "12 cm", "28%", "4*7", "yes"]
)
_SAID = st.one_of(
    NOISE,
    _ANSWERS.map(lambda text: rf"So it is $\boxed{{{text}}}$."),
    _ANSWERS.map(lambda text: f"work\n#### {text}"),
    _ANSWERS.map(lambda text: f"The answer is {text}"),
    st.tuples(_ANSWERS, NOISE).map(" ".join),
)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(
    _SAID,
    st.lists(_ANSWERS | NOISE, min_size=1, max_size=3),
    st.fixed_dictionaries(
        {"extract": st.sampled_from(MODES), "undone_work": st.sampled_from(UNDONE_WORK_CHOICES)}
    ),
    st.booleans(),
    st.sampled_from([{}, {"decimals": 2}, {"percent": "strict"}, {"ordered_lists": True}]),
)
def test_noise_under_all_options(
    response: str,
    references: list[str],
    options: dict[str, str],
    truncated: bool,
    knobs: dict[str, object],
) -> None:
    policy = Policy(**knobs)  # type: ignore[arg-type]
    ours = grade(
        response, references, truncated=truncated, policy=policy, slow_tier=False, **options
    )
    given = {**options, **knobs, "slow_tier": False}
    assert_same(ours, in_service(response, references, truncated=truncated, **given))  # type: ignore[arg-type]


def test_hostile_responses_and_programs() -> None:
    rows = [(response, "4") for response in RESPONSES.values()]
    rows += [(rf"\boxed{{{payload}}}", "3") for payload in PAYLOADS.values()]
    for response, reference in rows:
        ours = grade(response, reference, timeout_s=TIMEOUT_S)
        assert_same(ours, in_service(response, [reference], truncated=False))


# --- Real data, through the service's workers -----------------------------------------------------


def told(result: reward_pb2.Result) -> tuple[str, str]:
    if result.HasField("fault"):
        return "fault", result.fault.reason
    return result.judgement.verdict, result.judgement.explanation


def said(outcome: Outcome) -> tuple[str, str]:
    if isinstance(outcome, Fault):
        return "fault", outcome.reason
    return outcome.verdict, border.one_line(outcome.explanation)


def of_data(folder: Path) -> list[Pair]:
    pairs = [
        (row["response"], row["gold"])
        for file in ("math_equiv_dev.jsonl.gz", "math_equiv_adversarial_dev.jsonl")
        for row in rows(folder / file)
    ]
    for file, size in (("gsm8k_model_solutions", 800), ("rho1_outputs", 800)):
        found = rows(folder / f"{file}.jsonl.gz")
        picked = random.Random(0).sample(found, min(size, len(found)))
        pairs += [(row["response"], row["gold"]) for row in picked if "gold" in row]
    for file in ("math500", "dapo_math_17k", "olymmath"):
        found = rows(folder / f"{file}.jsonl.gz")
        golds = [row["answer"] for row in random.Random(0).sample(found, min(300, len(found)))]
        pairs += [(rf"\boxed{{{a}}}", b) for a, b in itertools.pairwise(golds)]
        pairs += [(rf"\boxed{{{gold}}}", gold) for gold in golds]
    return pairs


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_real_data(shared_data: Path) -> None:
    pairs = of_data(shared_data)
    assert len(pairs) > 5000
    theirs = [told(result) for result in await score(pairs, TIMEOUT_S)]
    outcomes = grade_batch(
        [a for a, _ in pairs], [b for _, b in pairs], timeout_s=TIMEOUT_S, workers=2
    )
    ours = [said(outcome) for outcome in outcomes]
    assert [row for row, a, b in zip(pairs, ours, theirs, strict=True) if a != b] == []
    assert {verdict for verdict, _ in ours} >= {"correct", "incorrect", "unparsed"}
    assert sum("symbolic tier" in why for _, why in ours) >= 3
