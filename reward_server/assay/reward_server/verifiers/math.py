"""`math`: the final answer equals a reference as mathematics. The face of `assay.math` here.

The answer is read out of one place of the response (parameter `extract`) and compared with the
reference in five tiers, the first that decides wins: text, exact, structural, numeric, symbolic.
The first four are bounded and run in the server's own process; the fifth, sympy, runs in a worker
that is killed when the item's time is over (parameter `slow_tier`). A judgement's explanation names
the tier and its reason. docs/use/math.md has the rules of extraction, the tolerance policy, what
the policy could game, and how each contested convention was decided. The code is `assay.math`,
which docs/use/math-library.md uses without a server; here are the parameters, the parts of the
reward and the signs of gaming.

A reference may be an answer, an answer with delimiters or in a box, or a whole GSM8K solution that
ends in `#### 42`. Where the reference is a number, a computation that gives it (`4 * 7` for 28)
earns nothing and is marked as a suspicion: a policy trained on plain equality learnt to repeat the
question (docs/understand/results/quickstart.md).

A response that was cut at the generation limit gets no credit for an unmarked answer: `extract` is
`strict` for it where it would be `auto`, because the last number of unfinished work is no answer.

Known limits: an answer in words is compared as words; a unit outside the reader's table is compared
as words; an identity that holds under a condition which is not written (x > 0) is not assumed;
`36,36,108` without blanks is also the Indian numeral 3636108.

Measured: on 2,655 labelled pairs precision 99.93 % and recall 99.0 % (math-verify's best
configuration: 99.26 and 78.4); none of 1,004 near misses accepted; docs/understand/results/math.md
has every set, others' test suites too, and says how far to trust it (`python -m bench math`,
`python -m bench math-suites`).
"""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter

from assay.math import extraction
from assay.math.compare import Equivalence
from assay.math.judging import UNDONE_WORK_CHOICES, Ask, Rules, is_whole, judged
from assay.math.outcomes import Fault as LibraryFault
from assay.math.outcomes import Judgement as LibraryJudgement
from assay.math.policy import Policy
from assay.math.reading import Reading
from assay.reward_server.domain import (
    Candidate,
    Component,
    Judgement,
    ParameterSpec,
    ParameterValue,
    Unjudgeable,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers import suspicions

_RIGHT, _WRONG = Component("correctness", 1.0), Component("correctness", 0.0)
_SHOWN_CHARS = 200

_POLICY_PARAMETERS = (
    ParameterSpec(
        "relative_tolerance",
        "float",
        0.0,
        "How far a number may be from the reference, as a share of it; 0 leaves only the "
        "tolerance of floating point, 1e-11, for irrational values.",
        minimum=0.0,
        maximum=0.1,
    ),
    ParameterSpec(
        "decimals",
        "int",
        -1,
        "Compare numbers rounded to this many decimals, for references that are rounded; -1 does "
        "not round.",
        minimum=-1,
        maximum=15,
    ),
    ParameterSpec(
        "approximation_digits",
        "int",
        Policy().approximation_digits,
        "A decimal of at least this many significant digits stands for the irrational or endless "
        "number that it rounds; 0: never.",
        minimum=0,
        maximum=30,
    ),
    ParameterSpec(
        "percent",
        "string",
        Policy().percent,
        "unit: 28, 28% and 0.28 answer 28%, never a factor 100 without a sign; strict: the sign "
        "is a factor 1/100.",
        allowed_values=("unit", "strict"),
    ),
    ParameterSpec(
        "missing_unit",
        "bool",
        Policy().missing_unit,
        "Whether an answer without the reference's unit passes, or one with a unit where the "
        "reference has none. A wrong unit never does.",
    ),
    ParameterSpec(
        "missing_base", "bool", Policy().missing_base, "Whether 4210 answers 4210 in base 5."
    ),
    ParameterSpec(
        "ordered_lists",
        "bool",
        Policy().ordered_lists,
        "Whether bare lists are compared in order. Tuples always are, sets never.",
    ),
    ParameterSpec(
        "decimal_comma", "bool", Policy().decimal_comma, "Whether 1,22 can be read as 1.22."
    ),
    ParameterSpec(
        "case_sensitive_text",
        "bool",
        Policy().case_sensitive_text,
        "Whether upper and lower case differ in words.",
    ),
    ParameterSpec(
        "symbol_case",
        "bool",
        Policy().symbol_case,
        "Whether upper and lower case differ in variables.",
    ),
    ParameterSpec(
        "strip_name",
        "bool",
        Policy().strip_name,
        "Whether x = 5 answers 5 and the other way round; only a bare name is stripped.",
    ),
    ParameterSpec(
        "allow_rational_unreduced",
        "bool",
        Policy().allow_rational_unreduced,
        "Whether 2/4 answers 1/2.",
    ),
)
_POLICY_NAMES = tuple(parameter.name for parameter in _POLICY_PARAMETERS)
_RULES = ("extract", "undone_work", "slow_tier", "cross_check")
_VALUES = itemgetter(*_RULES, *_POLICY_NAMES)

_SPEC = VerifierSpec(
    name="math",
    version="5",
    description="The response's final answer equals one of the references as mathematics.",
    tasks=("math", "gsm8k"),
    min_reward=-1.0,
    max_reward=2.0,
    verdicts=("correct", "incorrect", "unparsed"),
    parameters=(
        ParameterSpec(
            "extract",
            "string",
            "auto",
            "Where the answer is read: auto tries the marks, then the last formula and number; "
            "strict takes marked answers only; every other value is one rule alone.",
            allowed_values=extraction.MODES,
        ),
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
            "Added when the final answer is marked: in a box or an answer tag, after ####, after "
            "Answer: and its like.",
            minimum=0.0,
            maximum=1.0,
        ),
        ParameterSpec(
            "undone_work",
            "string",
            "auto",
            "Whether a computation that is left to do, such as 4 * 7 for 28, is a right answer. "
            "auto rejects it where the item carries its prompt; without a prompt it rejects what "
            "is nothing but whole numbers under + - * / and accepts 1.2^2 for 1.44.",
            allowed_values=UNDONE_WORK_CHOICES,
        ),
        ParameterSpec(
            "slow_tier",
            "bool",
            True,
            "Whether sympy is asked, in a worker, where the quick tiers cannot decide; without it "
            "such an answer is incorrect.",
        ),
        ParameterSpec(
            "cross_check",
            "bool",
            False,
            "Whether sympy is also asked where the quick tiers decided; the quick tiers' word "
            "holds, a disagreement is the suspicion tiers-disagree. Slow: for audits.",
        ),
        *_POLICY_PARAMETERS,
    ),
    isolation="process",
)


class MathVerifier(Verifier):
    """Compares answers as mathematics: by quick tiers in the server, by sympy in a worker."""

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """Items for each verdict and tier, and known traps of graders."""
        return (
            VerifierExample(_example(r"So it is $\boxed{\frac{1}{2}}$.", "0.5"), "correct"),
            VerifierExample(_example("48 + 24 = 72\n#### 72", "48/2 = 24\n#### 72"), "correct"),
            VerifierExample(_example("The answer is (B).", "B"), "correct"),
            VerifierExample(_example(r"\boxed{(x+1)^2}", "x^2+2x+1"), "correct"),
            VerifierExample(_example(r"\boxed{12}", r"12\pi"), "incorrect"),
            VerifierExample(_example(r"\boxed{3 \text{ or } 5}", "3"), "incorrect"),
            VerifierExample(_example(r"\boxed{\sqrt[3]{2}}", r"\sqrt{2}"), "incorrect"),
            VerifierExample(_example("To calculate 4 * 7, we need to", "28"), "unparsed"),
            VerifierExample(_example(r"It is 3, so \boxed{3", "3"), "unparsed"),
            VerifierExample(_example("I do not know.", "3"), "unparsed"),
        )

    def prepare(self) -> None:
        """Loads sympy before workers are forked."""
        from assay.math import symbolic  # noqa: PLC0415 - sympy stays out of the server's own process

        symbolic.prepare()

    def glance(self, item: VerifierItem) -> Judgement | None:
        """Judges by the quick tiers; None when sympy has to be asked."""
        return None if item.parameters["cross_check"] else _judged(item, None)

    def judge(self, item: VerifierItem) -> Judgement:
        """Compares the response's answer with each reference.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE when a reference holds nothing that can be compared.
        """
        judgement = _judged(item, _by_sympy)
        assert judgement is not None  # noqa: S101 - only a glance may leave it open
        return judgement


def _by_sympy(reference: Reading, answer: Reading, policy: Policy) -> Equivalence:
    from assay.math import symbolic  # noqa: PLC0415 - as above

    return symbolic.compare(reference, answer, policy)


def _judged(item: VerifierItem, ask: Ask | None) -> Judgement | None:
    """The judgement of `assay.math` with our components; None where only sympy could decide."""
    response, rules = item.response(), _in_force(item)
    said = judged(
        response,
        item.answers(),
        rules,
        ask,
        truncated=item.truncated,
        prompt=item.prompt[-1].content if item.prompt else None,
    )
    if said is None:
        return None
    if isinstance(said, LibraryFault):
        raise Unjudgeable(said.reason, said.message)
    boxed = said.how == "boxed" and said.answer is not None and is_whole(said.answer)
    flags = suspicions.scan_around_box(response) if boxed else suspicions.scan(response)
    flags += said.signs
    if item.parameters is _SPEC.defaults:
        return _plain(said.verdict, said.answer, said.explanation, flags)
    return _rewarded(item, said, flags)


@lru_cache(maxsize=2048)
def _plain(verdict: str, answer: str | None, explanation: str, flags: tuple[str, ...]) -> Judgement:
    """The judgement with the default parameters; the samples of a group repeat a few."""
    part = _RIGHT if verdict == "correct" else _WRONG
    return Judgement(
        part.score,
        verdict,
        (part,),
        extracted_answer=answer and answer[:_SHOWN_CHARS],
        explanation=explanation,
        suspicions=flags,
    )


def _in_force(item: VerifierItem) -> Rules:
    parameters = item.parameters
    return _DEFAULTS if parameters is _SPEC.defaults else _rules(*_VALUES(parameters))


@lru_cache(maxsize=256)
def _rules(*values: ParameterValue) -> Rules:
    """The rules, from the parameters in the order of `_VALUES`."""
    rules = dict(zip(_RULES, values, strict=False))
    knobs = dict(zip(_POLICY_NAMES, values[len(_RULES) :], strict=True))
    knobs["decimals"] = None if knobs["decimals"] == -1 else knobs["decimals"]  # type: ignore[assignment]  # None stands for "do not round"
    return Rules(**rules, policy=Policy(**knobs))  # type: ignore[arg-type]  # checked against the spec, which has its kinds


_DEFAULTS = _rules(*_VALUES(_SPEC.complete({})))


def _rewarded(item: VerifierItem, said: LibraryJudgement, flags: tuple[str, ...]) -> Judgement:
    """The judgement: correctness always, the other components where they have a weight."""
    components = [_RIGHT if said.verdict == "correct" else _WRONG]
    unparsed_reward = float(item.parameters["unparsed_reward"])  # type: ignore[arg-type]  # checked against the spec
    if unparsed_reward:
        components.append(Component("unparsed", float(said.verdict == "unparsed"), unparsed_reward))
    format_weight = float(item.parameters["format_weight"])  # type: ignore[arg-type]  # checked against the spec
    if format_weight:
        components.append(Component("answer-format", float(_is_marked(item, said)), format_weight))
    return Judgement.composed(
        said.verdict,
        tuple(components),
        extracted_answer=said.answer and said.answer[:_SHOWN_CHARS],
        explanation=said.explanation,
        suspicions=flags,
    )


def _is_marked(item: VerifierItem, said: LibraryJudgement) -> bool:
    """Whether the response marks an answer as its answer, whatever `extract` reads."""
    if said.how in extraction.MARKED:
        return True
    return extraction.find_answer(item.response(), "strict") is not None


def _example(response: str, reference: str) -> VerifierItem:
    return VerifierItem(Candidate(response), references=(reference,), parameters=_SPEC.complete({}))
