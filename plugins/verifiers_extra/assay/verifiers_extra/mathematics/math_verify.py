r"""`math-verify`: the library's own verdict, for runs that must be judged as those before them.

The verdict is that of math-verify 0.9.0: `verify(parse(reference), parse(response))`, with the
configuration that its users run (`setup`):

- `library`: `parse` and `verify` as they come, as in the library's README and in
  lm-evaluation-harness' `math_verify` metric.
- `open-r1` and `trl`: their `accuracy_reward`: LaTeX of the response only, a box first, nothing
  that no mark announces. They differ in how the reference is read.
- `verl`: its `math_verify`: the reference is put in a box; formulas and plain expressions.
- `lighteval`: the targets of its metrics for mathematics, a box first. lighteval carries a copy of
  the extraction of its own, so this is near to it, and not the same code.

The reward is 1 or 0. The verdict is unparsed where the library finds nothing in the response.

Its alarms are off. They would answer False for what takes longer than five seconds, by the clock
of a busy machine; here the item's time-out kills the worker, which is the fault ITEM_TIMEOUT, and a
fault is not a zero. To judge such an item as the library does, take the fault for a zero.

Faults: a reference in which the library finds nothing (UNUSABLE_REFERENCE; verl gives 0, TRL skips
the row, open-r1 gave 1 and skips it since), the time-out, memory past the worker's limit, and
UNSUPPORTED_INPUT where math-verify is not installed: the extra `math-verify` brings it.

What a policy could game: all that the library takes for right. By default a number is scraped out
of a reference without dollars (12 answers 12\pi, 1 answers 1\sqrt{19}), 1/2006! answers 1/2004!,
and a number may be found anywhere in a response. Its number path calls sympy's `parse_expr`, which
evaluates text: nothing of it runs in the server's own process. For training use `math`;
docs/use/math-verify.md says where the two part.

Limits. What the library cannot read is wrong: about a fifth of the right answers of labelled pairs.
Prompt, thought and answer are one text to it: with `library` and `lighteval` it may take what a
response considered and dropped.

Cost: about 70 times that of `math`, and a worker process for every item.

Source: huggingface/Math-Verify 0.9.0.

Measured: verdicts equal to those of the library called directly on 450 labelled pairs, 150 for each
of three configurations (its own functions, its metric with verl's targets, TRL's reward function):
`tests/integration/test_math_verify_data.py`. Its own error, in its best configuration: precision
99.26 %, recall 78.4 % on 2,655 labelled pairs. Of 285 hostile items under one second 154 were
ITEM_TIMEOUT and no call took 1.6 s; no worker passed 620 MiB.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.libraries import library

_SHOWN_CHARS = 500


@dataclass(frozen=True, slots=True)
class LibrarySetup:
    """How a project calls `parse`.

    Attributes:
        reference: keywords for the reference.
        response: keywords for the response.
        boxed: whether the reference is put in a box first.
    """

    reference: dict[str, Any]
    response: dict[str, Any]
    boxed: bool = False


def prepare() -> None:
    """Loads the library, and reads one formula, which builds its parser's tables."""
    setup = setups()["library"]
    _parsed("$\\frac{1}{2}$", setup.reference)


@verifier(
    "math-verify",
    verdicts=("correct", "incorrect", "unparsed"),
    lazy=True,
    prepare=prepare,
)
def math_verify(
    item: VerifierItem,
    *,
    setup: Annotated[
        Literal["library", "open-r1", "trl", "verl", "lighteval"],
        "Whose configuration of the extraction.",
    ] = "library",
    float_rounding: Annotated[
        int, Range(0, 50), "Decimals to which numbers are rounded before they are compared."
    ] = 6,
    numeric_precision: Annotated[
        int, Range(1, 1000), "Digits with which expressions are evaluated."
    ] = 15,
    strict: Annotated[
        bool, "Names of variables count, and a tuple is no set; false compares by position."
    ] = True,
    allow_set_relation_comp: Annotated[
        bool, "An inequality may answer an interval; always so the other way round."
    ] = False,
) -> Judgement:
    """The verdict of the library math-verify 0.9.0 on the final answer.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, UNSUPPORTED_INPUT where the library is absent.
    """
    chosen = setups()[setup]
    references = [_reference(text, chosen) for text in item.references]
    found = _parsed(item.response(), chosen.response)
    if not found:
        text = f"math-verify ({setup}) finds nothing in the response"
        return Judgement.composed("unparsed", (Component("math-verify", 0.0),), explanation=text)
    verify = library("math_verify", "math-verify").verify
    right = any(
        verify(
            reference,
            found,
            float_rounding=float_rounding,
            numeric_precision=numeric_precision,
            strict=strict,
            allow_set_relation_comp=allow_set_relation_comp,
            timeout_seconds=None,
        )
        for reference in references
    )
    said = "equal to" if right else "different from"
    return Judgement.composed(
        "correct" if right else "incorrect",
        (Component("math-verify", float(right)),),
        extracted_answer=next((x for x in found if isinstance(x, str)), "")[:_SHOWN_CHARS],
        explanation=f"math-verify ({setup}): {said} the reference",
    )


def _reference(text: str, setup: LibrarySetup) -> list[Any]:
    parsed = _parsed(f"\\boxed{{{text}}}" if setup.boxed else text, setup.reference)
    if not parsed:
        raise Unjudgeable(
            UNUSABLE_REFERENCE, f"math-verify finds nothing in the reference {text[:80]!r}"
        )
    return parsed


def _parsed(text: str, how: dict[str, Any]) -> list[Any]:
    """What the library reads: values of sympy and the text; empty for nothing."""
    parsed: list[Any] = library("math_verify", "math-verify").parse(
        text, parsing_timeout=None, **how
    )
    return parsed


@cache
def setups() -> dict[str, LibrarySetup]:
    """The configurations by name.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT, where the library is absent.
    """
    theirs = library("math_verify", "math-verify")
    normal = library("latex2sympy2_extended", "math-verify").NormalizationConfig
    for name in ("math_verify.parser", "math_verify.grader"):
        logging.getLogger(name).setLevel(logging.ERROR)  # it warns that its alarms are off
    latex, plain = theirs.LatexExtractionConfig, theirs.ExprExtractionConfig

    def announced(normalization: Any) -> dict[str, Any]:
        config = latex(
            normalization_config=normalization,
            boxed_match_priority=0,
            try_extract_without_anchor=False,
        )
        return {"extraction_config": [config], "extraction_mode": "first_match"}

    open_r1 = normal(
        nits=False,
        malformed_operators=False,
        basic_latex=True,
        equations=True,
        boxed="all",
        units=True,
    )
    both: dict[str, Any] = {"extraction_config": [plain(), latex(boxed_match_priority=0)]}
    return {
        "library": LibrarySetup({}, {}),
        "open-r1": LibrarySetup({"extraction_mode": "first_match"}, announced(open_r1)),
        "trl": LibrarySetup({}, announced(normal(units=True))),
        "verl": LibrarySetup(
            {"extraction_config": [latex()]},
            {"extraction_config": [plain(), latex()]},
            boxed=True,
        ),
        "lighteval": LibrarySetup({"extraction_config": [latex(), plain()]}, both),
    }
