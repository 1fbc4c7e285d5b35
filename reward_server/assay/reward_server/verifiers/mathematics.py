r"""`math`: the final answer equals a reference as mathematics, by the library math-verify 0.9.0.

The response's answer is the last `\boxed{...}` (with the boxes that stand less than 70 characters
before it, joined by "and", "or" or a comma: a set of answers), else what follows the last `####`,
else what math-verify finds (after "answer is", in mathematical delimiters, the last number). A
reference may be an answer, an answer with delimiters, or a whole GSM8K solution that ends in
`#### 42`.

Different from the library: where the reference is a number, a computation that gives it (`4 * 7`
for 28) is not paid for and is marked as a suspicion. A policy trained on the library's own verdict
learnt to repeat the question and earned full reward (docs/results.md).

Known limits, measured on 2,655 labelled pairs: precision 99.2 % (8 false positives among 1,053
answers called correct), recall 76.5 %. Numbers that differ by less than about 1e-15 count as equal,
and some longer forms of an equation are not recognised.
"""

from __future__ import annotations

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Example,
    Item,
    Judgement,
    ParameterSpec,
    Unjudgeable,
    Verifier,
    VerifierSpec,
)
from assay.reward_server.verifiers import math_text

_SHOWN_CHARS = 200
_EXPLANATIONS = {
    "correct": "the answer equals a reference",
    "incorrect": "the answer equals no reference",
    "unparsed": "no answer was found in the response",
}

_SPEC = VerifierSpec(
    name="math",
    version="2+math-verify-0.9.0",
    description="The response's final answer equals one of the references as mathematics.",
    tasks=("math", "gsm8k"),
    min_reward=-1.0,
    max_reward=2.0,
    verdicts=("correct", "incorrect", "unparsed"),
    parameters=(
        ParameterSpec(
            "unparsed_reward",
            "float",
            0.0,
            "Added to the reward when no answer is found in the response.",
            minimum=-1.0,
            maximum=1.0,
        ),
        ParameterSpec(
            "format_weight",
            "float",
            0.0,
            "Added when the final answer is marked: boxed, after #### or after Answer:.",
            minimum=0.0,
            maximum=1.0,
        ),
        ParameterSpec(
            "undone_work",
            "string",
            "reject",
            "Whether a computation that is left to do, such as 4 * 7 for 28, is a right answer.",
            allowed_values=("reject", "accept"),
        ),
    ),
    isolation="process",
)


class MathVerifier(Verifier):
    """Compares answers as mathematics. Runs in a worker process."""

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""
        return _SPEC

    @property
    def examples(self) -> tuple[Example, ...]:
        """One item for each verdict, and the traps that math-verify's defaults fall into."""
        return (
            Example(_example(r"So it is $\boxed{\frac{1}{2}}$.", "0.5"), "correct"),
            Example(_example("48 + 24 = 72\n#### 72", "48/2 = 24\n#### 72"), "correct"),
            Example(_example(r"\boxed{12}", r"12\pi"), "incorrect"),
            Example(_example(r"\boxed{3 \text{ or } 5}", "3"), "incorrect"),
            Example(_example("To calculate 4 * 7, we need to", "28"), "incorrect"),
            Example(_example("I do not know.", "3"), "unparsed"),
        )

    def prepare(self) -> None:
        """Loads sympy and fills the tables of its parser; forked workers start with both."""
        for example in self.examples:
            self.judge(example.item)

    def judge(self, item: Item) -> Judgement:
        """Compares the response's answer with each reference.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE when a reference holds nothing that math-verify can
                read.
        """
        from assay.reward_server.verifiers import math_engine  # noqa: PLC0415 - sympy stays out of the server's own process

        response = item.response()
        references = [_read(text) for text in item.answers()]
        answer = math_engine.parse_text(math_text.final_part(response))
        equal = [
            delimited
            for delimited, known in references
            if answer and math_engine.equal(known, answer)
        ]
        stated = _text_of(answer)
        undone = bool(equal) and all(math_text.leaves_work_undone(stated, ref) for ref in equal)
        rejected = undone and item.parameters["undone_work"] == "reject"
        right = bool(equal) and not rejected
        verdict = "correct" if right else "incorrect" if answer else "unparsed"
        return Judgement.composed(
            verdict,
            _components(item, response, verdict),
            extracted_answer=stated[:_SHOWN_CHARS] if answer else None,
            explanation="the answer is a computation that is left to do"
            if rejected
            else _EXPLANATIONS[verdict],
            suspicions=_suspicions(response, undone=undone),
        )


def _read(reference: str) -> tuple[str, tuple[object, ...]]:
    """The reference's answer in a box, and as math-verify reads it."""
    from assay.reward_server.verifiers import math_engine  # noqa: PLC0415 - as above

    delimited = math_text.delimited_reference(reference)
    parsed = math_engine.parse_reference(delimited) if delimited else ()
    if not parsed:
        raise Unjudgeable(
            UNUSABLE_REFERENCE, f"no answer can be read from the reference {reference[:80]!r}"
        )
    return delimited, parsed


def _components(item: Item, response: str, verdict: str) -> tuple[Component, ...]:
    """Correctness always; the others where their parameter gives them weight."""
    components = [Component("correctness", float(verdict == "correct"))]
    unparsed_reward = float(item.parameters["unparsed_reward"])  # type: ignore[arg-type]  # checked against the spec
    if unparsed_reward:
        components.append(Component("unparsed", float(verdict == "unparsed"), unparsed_reward))
    format_weight = float(item.parameters["format_weight"])  # type: ignore[arg-type]  # checked against the spec
    if format_weight:
        stated = math_text.states_answer(response)
        components.append(Component("answer-format", float(stated), format_weight))
    return tuple(components)


def _text_of(answer: tuple[object, ...]) -> str:
    """The answer's text as found; never a printed expression, which may take for ever."""
    texts = [part for part in answer if isinstance(part, str)]
    return texts[-1] if texts else ""


def _suspicions(response: str, *, undone: bool) -> tuple[str, ...]:
    boxes = {content.strip() for content in math_text.boxed_contents(response)}
    found = (("several-boxed-answers", len(boxes) > 1), ("undone-work", undone))
    return tuple(name for name, holds in found if holds)


def _example(response: str, reference: str) -> Item:
    return Item(Candidate(response), references=(reference,), parameters=_SPEC.complete({}))
