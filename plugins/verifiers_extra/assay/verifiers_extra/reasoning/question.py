"""`question-item`: whether a question that the policy made, with its answer, is a good one.

**How.** The response is a JSON object (fenced, or the last): `question`, `answer` and, for a
question of several hops, `constraints`, the texts of which it is made. The checks that the
reference, data, allows are made, and the reward is 1 where all hold, else 0; with `partial` the
share of checks that hold, the form being one.

| check | holds where |
|---|---|
| form | question and answer are short texts, and the question does not name the answer |
| consensus | of `answers`, given with the evidence, at least the share `agreement` is the answer |
| closed-book | of `guesses`, given without it, at most the share `guessable` is |
| stated | the question holds the words of each of `least_constraints` constraints or more |
| unique | by `facts`, `{entity: [constraints that hold for it]}`, the answer alone meets all |
| needed | by `facts`, without any one constraint another entity meets the rest |

**Who answers.** Answerers are asked before: the rollout loop, or the `search-self-play`
environment, puts what they said into the row. Two at least must have answered; fewer are the fault
UNUSABLE_REFERENCE, for a share of one is no consensus. The profile `bmgq` asks models of the judge
service besides, one or an ensemble.

**What a policy could game.** Agreement is bought by trivial questions: give `guesses`, or `facts`.
Constraints that repeat one another are not needed and fail. An answer of several candidates agrees
with no answerer.

**Known limits.** Words, no synonyms; give answerers' spellings. 256 answers, 1,000 entities, 16
constraints.

**Source.** BMGQ, of which the abstract alone was read: items pass by the consensus of several
models and by checks of their constraints; thresholds and measures are ours.

**Measured.** `unique` and `needed` equal a search over all subsets on 300 generated sets of facts.
Not yet on questions of a model, because none with labels are at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from assay.kit.json_text import NotJson, fenced, last_value, read_json
from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.reward_server.verifiers.text.forms import Normalization
from assay.reward_server.verifiers.text.parts import NoPart, flagged, part_of, unparsed
from assay.reward_server.verifiers.text.token_f1 import holds_in_a_row
from assay.verifiers_extra.reasoning.steps import MAX_CHARS, content_words

_FORM = Normalization(articles=True, numbers=True)
_MOST_ANSWERS = 256
_MOST_ENTITIES = 1_000
_MOST_CONSTRAINTS = 16
_LEAST_ANSWERS = 2
_MOST_QUESTION = 2_000
_MOST_ANSWER = 200


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question that a policy made; its answer is normalised."""

    question: str
    answer: str
    constraints: tuple[str, ...]


@verifier(
    "question-item",
    tasks=("question-item", "bmgq"),
    verdicts=("accepted", "rejected", "unparsed"),
)
def question_item(
    item: VerifierItem,
    *,
    agreement: Annotated[
        float, Range(0.0, 1.0), "The least share of answerers with evidence that agree."
    ] = 0.66,
    guessable: Annotated[
        float, Range(0.0, 1.0), "The greatest share of answerers without evidence that do."
    ] = 0.34,
    least_constraints: Annotated[
        int, Range(0, _MOST_CONSTRAINTS), "Constraints that the question must have."
    ] = 0,
    partial: Annotated[bool, "Whether the reward is the share of checks that hold."] = False,
) -> Judgement:
    """A question that the policy made is answerable, no guess, and made of what it needs.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for data that allows no check, or of another shape.
    """
    row = _Row(item.document())
    found = part_of(item.response(), "final")
    made = found.why if isinstance(found, NoPart) else _made(found.text)
    if isinstance(made, str):
        return flagged(item, unparsed("accepted", made))
    checks = {"form": _form(made)} | dict(row.shares(made, agreement, guessable))
    if least_constraints or row.facts is not None:
        said = set(content_words(made.question))
        enough = len(made.constraints) >= max(1, least_constraints)
        is_said = all(said.issuperset(content_words(one)) for one in made.constraints)
        checks["stated"] = enough and is_said
    if row.facts is not None:
        checks |= _decomposed(made, row.facts)
    held = sum(checks.values())
    is_good = held == len(checks)
    parts = [Component("accepted", held / len(checks) if partial else float(is_good))]
    parts += [Component(name, float(holds), 0.0) for name, holds in checks.items()]
    failed = ", ".join(name for name, holds in checks.items() if not holds)
    why = f"fails: {failed}" if failed else f"all {held} checks hold"
    verdict = "accepted" if is_good else "rejected"
    return flagged(item, Judgement.composed(verdict, tuple(parts), explanation=why))


class _Row:
    """What a reference says of a question.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE.
    """

    def __init__(self, value: JsonValue) -> None:
        if not isinstance(value, dict) or not value.keys() & {"answers", "guesses", "facts"}:
            raise _unusable("must be an object with 'answers', 'guesses' or 'facts'")
        self.answers = _said(value, "answers")
        self.guesses = _said(value, "guesses")
        self.facts = _facts(value.get("facts"))

    def shares(self, made: MadeQuestion, least: float, most: float) -> Iterator[tuple[str, bool]]:
        """The checks by what answerers said."""
        if self.answers is not None:
            yield "consensus", self.answers.count(made.answer) >= least * len(self.answers) - 1e-9
        if self.guesses is not None:
            yield "closed-book", self.guesses.count(made.answer) <= most * len(self.guesses) + 1e-9


def _said(row: dict[str, JsonValue], key: str) -> list[str] | None:
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _unusable(f"must have a list of texts as {key!r}")
    if not _LEAST_ANSWERS <= len(value) <= _MOST_ANSWERS:
        raise _unusable(f"must have {_LEAST_ANSWERS} to {_MOST_ANSWERS} texts as {key!r}")
    return [_FORM.apply(one[:MAX_CHARS]) for one in value if isinstance(one, str)]


def _facts(value: JsonValue) -> dict[str, frozenset[str]] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not 0 < len(value) <= _MOST_ENTITIES:
        raise _unusable(f"must have 1 to {_MOST_ENTITIES} entities as 'facts'")
    facts: dict[str, frozenset[str]] = {}
    for name, held in value.items():
        if not isinstance(held, list) or not all(isinstance(one, str) for one in held):
            raise _unusable("must have lists of texts in 'facts'")
        texts = (one for one in held if isinstance(one, str))
        key = _FORM.apply(name)
        if key in facts:
            raise _unusable(f"has two entities {key[:40]!r}")
        facts[key] = frozenset(map(_FORM.apply, texts))
    return facts


def _made(text: str) -> MadeQuestion | str:
    """The question of a response, or why there is none."""
    block = fenced(text)
    found = last_value(text if block is None else block, "{")
    if found is None:
        return "there is no JSON object"
    try:
        value = read_json(found)
    except NotJson as error:
        return str(error)
    fields = value if isinstance(value, dict) else {}
    question, answer = fields.get("question"), fields.get("answer")
    constraints = fields.get("constraints", [])
    if not isinstance(question, str) or not isinstance(answer, str):
        return "'question' and 'answer' must be texts"
    if not isinstance(constraints, list) or len(constraints) > _MOST_CONSTRAINTS:
        return f"'constraints' must be a list of at most {_MOST_CONSTRAINTS} texts"
    texts = tuple(one for one in constraints if isinstance(one, str) and one.strip())
    if len(texts) < len(constraints):
        return "'constraints' must be texts that are not blank"
    return MadeQuestion(question, _FORM.apply(answer), texts)


def _form(made: MadeQuestion) -> bool:
    """Whether it is a question with an answer that it does not name."""
    if not 0 < len(made.question.strip()) <= _MOST_QUESTION:
        return False
    if not 0 < len(made.answer) <= _MOST_ANSWER:
        return False
    return not holds_in_a_row(content_words(made.question), content_words(made.answer))


def _decomposed(made: MadeQuestion, facts: dict[str, frozenset[str]]) -> dict[str, bool]:
    wanted = [_FORM.apply(one) for one in made.constraints]
    return {
        "unique": _meeting(wanted, facts) == {made.answer},
        "needed": bool(wanted)
        and all(
            len(_meeting([*wanted[:place], *wanted[place + 1 :]], facts)) > 1
            for place in range(len(wanted))
        ),
    }


def _meeting(wanted: Sequence[str], facts: dict[str, frozenset[str]]) -> set[str]:
    """The entities for which all of it holds."""
    needed = frozenset(wanted)
    return {name for name, held in facts.items() if needed <= held}


def _unusable(what: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of question-item {what}")
