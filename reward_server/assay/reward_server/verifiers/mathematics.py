r"""`math`: the final answer equals a reference as mathematics.

The answer is read out of one place of the response (`extraction`; parameter `extract`), the
reference is read once and kept, and the two are compared in tiers, the first that decides wins:

 1. *text*: the same normal form;
 2. *exact*: both are numbers that rational arithmetic decides;
 3. *structural*: element by element, by type: tuples, sets, intervals, matrices, equations;
 4. *numeric*: values at fixed points, with a tolerance for floating point only;
 5. *symbolic*: sympy, on trees of our own reader, in a worker that is killed when the item's time
    is over (parameter `slow_tier`). What it cannot decide either is incorrect, and the explanation
    says so.

Tiers 1 to 4 are bounded and run in the server's own process. A judgement's explanation names the
tier and its reason. docs/math.md has the rules of extraction, the tolerance policy, what the policy
could game, and how each contested convention was decided.

A reference may be an answer, an answer with delimiters or in a box, or a whole GSM8K solution that
ends in `#### 42`. Where the reference is a number, a computation that gives it (`4 * 7` for 28) is
not paid for and is marked as a suspicion: a policy trained on plain equality learnt to repeat the
question (docs/results.md).

A response that was cut at the generation limit gets no credit for an unmarked answer: `extract` is
`strict` for it where it would be `auto`, because the last number of unfinished work is no answer.

Known limits: an answer in words is compared as words; a unit outside the reader's table is compared
as words; an identity that holds under a condition which is not written (x > 0) is not assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Example,
    Item,
    Judgement,
    ParameterSpec,
    ParameterValue,
    Unjudgeable,
    Verifier,
    VerifierSpec,
)
from assay.reward_server.verifiers import extraction, suspicions
from assay.reward_server.verifiers.maths import Comparison, Policy, Reading, compare, read
from assay.reward_server.verifiers.undone_work import is_whole_arithmetic, leaves_work_undone

TIERS_DISAGREE = "tiers-disagree"
UNDONE_WORK = "undone-work"
_PLAIN_DIGITS = 18
_SAME_WHOLE = "equal to the reference (exact tier: the same whole number)"
_OTHER_WHOLE = "differs from the reference (exact tier: different whole numbers)"

_RIGHT, _WRONG = Component("correctness", 1.0), Component("correctness", 0.0)
_SHOWN_CHARS = 200
_REFERENCES_KEPT = 8_192
_ANSWERS_KEPT = 2_048
_WORDS = ("text", "nothing", "choice")
_SENTENCES = ("answer-line", "answer-tag", "hash", "last-line")

_POLICY_PARAMETERS = (
    ParameterSpec(
        "relative_tolerance",
        "float",
        0.0,
        "How far a number may be from the reference, as a share of it; 0 leaves only the "
        "tolerance of floating point, 1e-9, for irrational values.",
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
_POLICY_VALUES = itemgetter(*_POLICY_NAMES)

_SPEC = VerifierSpec(
    name="math",
    version="4",
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
            allowed_values=("auto", "reject", "accept"),
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


@dataclass(frozen=True, slots=True, eq=False)
class _Conventions:
    """A policy as a key of caches: one object for each, compared by identity."""

    policy: Policy

    @property
    def exactly(self) -> bool:
        """Whether numbers are compared without a tolerance."""
        return not self.policy.relative_tolerance and self.policy.decimals is None


@dataclass(frozen=True, slots=True)
class _Finding:
    """How an answer compares with the references, before it is rewarded.

    Attributes:
        comparison: with the reference that it equals, else the last one.
        reference: the text of that reference.
        open: the references that no quick tier could decide.
    """

    comparison: Comparison
    reference: str
    open: tuple[tuple[Reading, Reading], ...] = ()


class MathVerifier(Verifier):
    """Compares answers as mathematics: quickly where it stands, slowly in a worker."""

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""
        return _SPEC

    @property
    def examples(self) -> tuple[Example, ...]:
        """Items for each verdict and tier, and traps that graders are known to fall into."""
        return (
            Example(_example(r"So it is $\boxed{\frac{1}{2}}$.", "0.5"), "correct"),
            Example(_example("48 + 24 = 72\n#### 72", "48/2 = 24\n#### 72"), "correct"),
            Example(_example("The answer is (B).", "B"), "correct"),
            Example(_example(r"\boxed{(x+1)^2}", "x^2+2x+1"), "correct"),
            Example(_example(r"\boxed{12}", r"12\pi"), "incorrect"),
            Example(_example(r"\boxed{3 \text{ or } 5}", "3"), "incorrect"),
            Example(_example(r"\boxed{\sqrt[3]{2}}", r"\sqrt{2}"), "incorrect"),
            Example(_example("To calculate 4 * 7, we need to", "28"), "incorrect"),
            Example(_example(r"It is 3, so \boxed{3", "3"), "unparsed"),
            Example(_example("I do not know.", "3"), "unparsed"),
        )

    def prepare(self) -> None:
        """Loads sympy; forked workers start with it."""
        from assay.reward_server.verifiers.maths import symbolic  # noqa: PLC0415 - sympy stays out of the server's own process

        symbolic.prepare()

    def glance(self, item: Item) -> Judgement | None:
        """Judges by the quick tiers; None when sympy has to be asked."""
        return None if item.parameters["cross_check"] else _judged(item, at_a_glance=True)

    def judge(self, item: Item) -> Judgement:
        """Compares the response's answer with each reference.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE when a reference holds nothing that can be compared.
        """
        judgement = _judged(item, at_a_glance=False)
        assert judgement is not None  # noqa: S101 - only a glance may leave it open
        return judgement


def _judged(item: Item, *, at_a_glance: bool) -> Judgement | None:
    """The judgement; None when it is for the slow tier and this is a glance."""
    response, texts = item.response(), item.answers()
    conventions = _in_force(item)
    mode = str(item.parameters["extract"])
    if mode == "auto" and item.truncated:
        mode = "strict"
    whole = len(texts) == 1 and _is_whole(texts[0])
    references = [] if whole else [_reference(text, conventions) for text in texts]
    letter = any(reading.kind == "choice" for reading in references)
    found = extraction.look(response, mode, letter=letter)
    if isinstance(found, extraction.Nothing):
        return _rewarded(item, "unparsed", found, found.why, suspicions.scan(response))
    if whole:
        if _is_whole(found.text) and conventions.exactly:
            return _whole_judged(item, found)
        references = [_reference(texts[0], conventions)]
    flags = suspicions.scan(response)
    finding = _finding(references, found, conventions)
    if finding.open and item.parameters["slow_tier"]:
        if at_a_glance:
            return None
        finding = _asked(finding, conventions.policy)
    explanation = _explanation(finding, len(references))
    if item.parameters["cross_check"] and not at_a_glance:
        against = _cross_checked(references, found, conventions, finding)
        explanation += against
        flags += (TIERS_DISAGREE,) if against else ()
    equal = finding.comparison.equal is True
    if equal and leaves_work_undone(found.text, finding.reference):
        flags += (UNDONE_WORK,)
        if _refuses_undone(item, found.text):
            equal, explanation = False, "the answer is a computation that is left to do"
    return _rewarded(item, "correct" if equal else "incorrect", found, explanation, flags)


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number in plain digits, which most answers of training data are."""
    return text.isdigit() and text.isascii() and len(text) <= _PLAIN_DIGITS


def _whole_judged(item: Item, found: extraction.Found) -> Judgement:
    """The judgement on plain digits against plain digits; no reading is needed, nor sympy."""
    response, equal = item.response(), int(found.text) == int(item.answers()[0])
    scan = suspicions.scan_around_box if found.how == "boxed" else suspicions.scan
    flags = scan(response)
    verdict, said = ("correct", _SAME_WHOLE) if equal else ("incorrect", _OTHER_WHOLE)
    if item.parameters is _SPEC.defaults:
        part = _RIGHT if equal else _WRONG
        return Judgement(part.score, verdict, (part,), found.text, said, suspicions=flags)
    return _rewarded(item, verdict, found, said, flags)


def _refuses_undone(item: Item, answer: str) -> bool:
    """Whether an answer that is a computation left to do is not paid for."""
    asked = item.parameters["undone_work"]
    if asked == "auto":
        return bool(item.prompt) or is_whole_arithmetic(answer)
    return asked == "reject"


def _in_force(item: Item) -> _Conventions:
    """The conventions that an item asks for."""
    parameters = item.parameters
    return _DEFAULTS if parameters is _SPEC.defaults else _conventions(*_POLICY_VALUES(parameters))


@lru_cache(maxsize=256)
def _conventions(*values: ParameterValue) -> _Conventions:
    """The comparison's policy, from the parameters in the order of `_POLICY_NAMES`."""
    knobs = dict(zip(_POLICY_NAMES, values, strict=True))
    knobs["decimals"] = None if knobs["decimals"] == -1 else knobs["decimals"]  # type: ignore[assignment]  # None stands for "do not round"
    return _Conventions(Policy(**knobs))  # type: ignore[arg-type]  # checked against the spec, which has its kinds


_DEFAULTS = _conventions(*_POLICY_VALUES(_SPEC.complete({})))


@lru_cache(maxsize=_REFERENCES_KEPT)
def _reference(text: str, conventions: _Conventions) -> Reading:
    """A reference, read once.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when it holds no answer.
    """
    reading = _answer(_reference_text(text), conventions)  # what is right is often answered so
    if reading.kind == "nothing":
        raise Unjudgeable(
            UNUSABLE_REFERENCE, f"no answer can be read from the reference {text[:80]!r}"
        )
    return reading


def _reference_text(text: str) -> str:
    """The answer in a reference: after the last `####`, else in the last box, else all of it."""
    if "####" in text:
        text = text.rpartition("####")[2]
    spans = extraction.boxes(text)
    if spans and spans[-1][1] >= 0:
        text = text[slice(*spans[-1])]
    return extraction.bare(text)


@lru_cache(maxsize=_ANSWERS_KEPT)
def _answer(text: str, conventions: _Conventions) -> Reading:
    """An answer, read once for the samples of a group, which repeat a few answers."""
    return read(text, conventions.policy)


def _finding(
    references: list[Reading], found: extraction.Found, conventions: _Conventions
) -> _Finding:
    """The answer against each reference, by the quick tiers."""
    undecided = []
    last = Comparison(False, "text", "there is no reference")
    for reference in references:
        answer = _reading_for(reference, found, conventions)
        last = compare(reference, answer, conventions.policy)
        if last.equal:
            return _Finding(last, reference.text)
        if last.equal is None:
            undecided.append((reference, answer))
    return _Finding(last, references[-1].text, tuple(undecided))


def _reading_for(reference: Reading, found: extraction.Found, conventions: _Conventions) -> Reading:
    """The answer, or the formula or number in it when it is a sentence and no words are wanted."""
    answer = _answer(found.text, conventions)
    if answer.kind != "text" or reference.kind in _WORDS or found.how not in _SENTENCES:
        return answer
    inner = extraction.narrowed(found.text)
    return answer if inner is None else _answer(inner, conventions)


def _asked(finding: _Finding, policy: Policy) -> _Finding:
    """What the slow tier makes of the open references."""
    from assay.reward_server.verifiers.maths import symbolic  # noqa: PLC0415 - as above

    decided = finding.comparison
    for reference, answer in finding.open:
        decided = symbolic.compare(reference, answer, policy)
        if decided.equal:
            return _Finding(decided, reference.text)
    return _Finding(decided, finding.reference)


def _cross_checked(
    references: list[Reading],
    found: extraction.Found,
    conventions: _Conventions,
    finding: _Finding,
) -> str:
    """How the slow tier disagrees with the finding; empty when it does not."""
    from assay.reward_server.verifiers.maths import symbolic  # noqa: PLC0415 - as above

    if finding.comparison.tier == "symbolic" or finding.comparison.equal is None:
        return ""
    verdicts = [
        symbolic.compare(
            reference, _reading_for(reference, found, conventions), conventions.policy
        ).equal
        for reference in references
    ]
    other = True if True in verdicts else None if None in verdicts else False
    if other is None or other == finding.comparison.equal:
        return ""
    return f"; the symbolic tier says that it {'is equal' if other else 'differs'}"


def _explanation(finding: _Finding, count: int) -> str:
    """One line: the outcome, the tier, and its reason."""
    comparison = finding.comparison
    reason = f"({comparison.tier} tier: {comparison.note[:300]})"
    if comparison.equal:
        return f"equal to the reference {reason}"
    known = "the reference" if count == 1 else f"each of {count} references"
    if comparison.equal is None:
        return f"could not be shown to equal {known} {reason}"
    return f"differs from {known} {reason}"


def _rewarded(
    item: Item,
    verdict: str,
    found: extraction.Found | extraction.Nothing,
    explanation: str,
    flags: tuple[str, ...],
) -> Judgement:
    """The judgement: correctness always, the other components where they have a weight."""
    components = [_RIGHT if verdict == "correct" else _WRONG]
    unparsed_reward = float(item.parameters["unparsed_reward"])  # type: ignore[arg-type]  # checked against the spec
    if unparsed_reward:
        components.append(Component("unparsed", float(verdict == "unparsed"), unparsed_reward))
    format_weight = float(item.parameters["format_weight"])  # type: ignore[arg-type]  # checked against the spec
    if format_weight:
        marked = float(_is_marked(item, found))
        components.append(Component("answer-format", marked, format_weight))
    return Judgement.composed(
        verdict,
        tuple(components),
        extracted_answer=found.text[:_SHOWN_CHARS] if isinstance(found, extraction.Found) else None,
        explanation=explanation,
        suspicions=flags,
    )


def _is_marked(item: Item, found: extraction.Found | extraction.Nothing) -> bool:
    """Whether the response marks an answer as its answer, whatever `extract` reads."""
    if isinstance(found, extraction.Found) and found.how in extraction.MARKED:
        return True
    return extraction.find_answer(item.response(), "strict") is not None


def _example(response: str, reference: str) -> Item:
    return Item(Candidate(response), references=(reference,), parameters=_SPEC.complete({}))
