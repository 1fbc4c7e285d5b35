"""`reasoning-gym`: the scorer of a reasoning-gym data set, for all of its data sets.

The reference is an entry as reasoning-gym 0.1.25 (arXiv 2505.24760) makes it, with the name of its
data set: `{"dataset": "zebra_puzzles", "entry": {"question": ..., "answer": ..., "metadata":
{...}}}`, or the entry alone when its metadata holds "source_dataset" (0.1.25 always writes it).
`"config"`, an object of plain values, makes the data set other than by default; it matters for the
scorers of decimal_arithmetic, time_intervals and polynomial_equations only.

The answer is what stands in the last `<answer>` element after the thought, as the package's
`extract_answer` reads it (extract=whole takes the response), at most 20,000 characters. The reward
is the data set's score in [0, 1], or with reward=solved 1 for a full score and 0 for less. The
verdict is correct for a full score, partial for one between, incorrect for 0.

Scorers that execute model text. Four data sets pass the answer to `eval` (string_insertion,
spiral_matrix, binary_matrix, n_queens), five to `sympy.parse_expr`, which evaluates (countdown,
puzzle24, simple_integration, intermediate_integration, polynomial_multiplication), two evaluate
texts of the entry (number_sorting, bitwise_arithmetic). Their scorers are replaced by ours in
`gym_scorers`, which execute nothing; number_sorting's gets an entry that keeps it from `eval`. No
parameter brings them back.

Replaced because they judge wrongly: game_of_life_halting (takes "False" for true), coin_flip (gives
"0" full marks for any probability below 1), intermediate_integration and simple_integration (take
`Integral(...)` of the question), puzzle24 (rounds 24.9 down, takes numbers that were not given).
Refused before they are scored: "nan" in complex_arithmetic, which takes it for right, and moves
repeated 100 times and more in rubiks_cube.

Faults: an unknown data set, an entry without what its scorer needs. A scorer that throws is tried
again with the entry's own answer: if that is scored, the throw was the answer's doing, which is
incorrect (prime_factorization throws on every text that is no product); if it throws too, it is the
fault UNUSABLE_REFERENCE. A score that is not a number is incorrect; others are held to [0, 1].

What a policy could game: many scorers give len(answer)/len(response) to a response that merely
contains the answer, and 0.01 to 0.25 to one of the right form; use reward=solved. Exponents of four
digits and more, which would make scorers compute for ever, are incorrect without being scored.
simple_equations and the other scorers that compare with one answer take no other form of it.

Limits. The scorers are those of 0.1.25 and judge as that version does; an entry of another version
may be one that they cannot use. The entry is believed: a wrong answer in it is the right one.

Differences from the package: those scorers; a formula has to be written out with `*` and `**`; own
answers of intermediate_integration that hold an `Integral` get 0.

Measured: three entries of each of the package's data sets (over 100): every own answer gets 1,
garbage less, and nothing is evaluated (`tests/unit/test_verifier_puzzles.py`). 27 answers that the
replaced scorers must judge otherwise than the package.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.geometry.reading import answer_region
from assay.verifiers_extra.libraries import library
from assay.verifiers_extra.puzzles.gym_scorers import (
    REFUSED,
    REPLACED,
    EntryTrouble,
    safe_entry,
)

MAX_ANSWER_CHARS = 20_000
_SHOWN_CHARS = 500
_ENDLESS = re.compile(r"\d[eE][+-]?\d{4}")
_KEPT = 64
_THROWN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)

Scorer = Callable[[str, dict[str, Any]], float]


@verifier("reasoning-gym", verdicts=("correct", "partial", "incorrect", "unparsed"), lazy=True)
def gym_score(
    item: VerifierItem,
    *,
    reward: Annotated[
        Literal["score", "solved"], "The data set's score, or 1 for a full score and 0 for less."
    ] = "score",
    extract: Annotated[
        Literal["answer-tag", "whole"],
        "The answer: what stands in the last <answer> element, or the whole response.",
    ] = "answer-tag",
) -> Judgement:
    """The score that the entry's reasoning-gym data set gives the answer.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    name, entry, config = _read(item.document())
    scorer = _scorer(name, json.dumps(config, sort_keys=True))
    answer = _answer(item.response(), extract)
    if answer is None:
        text = "the response holds no <answer> element that is closed"
        return Judgement.composed("unparsed", (Component("score", 0.0),), explanation=text)
    score, why = _score(name, scorer, answer, entry)
    verdict = "correct" if score >= 1.0 else "partial" if score > 0.0 else "incorrect"
    return Judgement.composed(
        verdict,
        (Component(reward, float(score >= 1.0) if reward == "solved" else score),),
        extracted_answer=answer[:_SHOWN_CHARS],
        explanation=f"{name} scores {score:g}{why}",
    )


def _answer(response: str, extract: str) -> str | None:
    if extract == "whole":
        return response.strip()
    region = answer_region(response, strict=True)
    return None if region is None else region.strip()


def _score(name: str, scorer: Scorer, answer: str, entry: dict[str, Any]) -> tuple[float, str]:
    """The score in [0, 1], and a remark."""
    if len(answer) > MAX_ANSWER_CHARS:
        return 0.0, f": the answer is longer than {MAX_ANSWER_CHARS} characters"
    if _ENDLESS.search(answer) or (name in REFUSED and REFUSED[name][0].search(answer)):
        return 0.0, ": a number of the answer is out of range"
    try:
        score = float(scorer(answer, entry))
    except EntryTrouble as trouble:
        raise _unusable(f"the entry of {name}: {trouble}") from trouble
    except _THROWN as error:
        _control(name, scorer, entry)
        return 0.0, f": the answer makes its scorer fail ({type(error).__name__})"
    if not math.isfinite(score):
        return 0.0, ": the answer makes its score no number"
    return min(1.0, max(0.0, score)), ""


def _control(name: str, scorer: Scorer, entry: dict[str, Any]) -> None:
    """Checks that the scorer can score the entry's own answer.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, when it fails on that as well.
    """
    own = entry.get("answer")
    try:
        scorer(own if isinstance(own, str) else "", entry)
    except _THROWN as error:
        text = f"the scorer of {name} fails on the entry's own answer"
        raise _unusable(f"{text}: {type(error).__name__}: {str(error)[:200]}") from error


def _read(document: JsonValue) -> tuple[str, dict[str, Any], dict[str, JsonValue]]:
    """The data set's name, the entry, and the configuration."""
    if not isinstance(document, dict):
        raise _unusable('the reference must be {"dataset": name, "entry": {...}} or an entry')
    entry = document.get("entry", document)
    if not isinstance(entry, dict) or not isinstance(entry.get("metadata", {}), dict):
        raise _unusable("the entry of the reference must be an object with an object metadata")
    metadata = entry.get("metadata", {})
    source = metadata.get("source_dataset") if isinstance(metadata, dict) else None
    name = document.get("dataset", source)
    if not isinstance(name, str):
        raise _unusable('the reference names no data set: add "dataset"')
    config = document.get("config", {})
    if not isinstance(config, dict):
        raise _unusable("config of the reference must be an object")
    return name, {"answer": None, "metadata": {}, **entry}, config


@functools.lru_cache(maxsize=_KEPT)
def _scorer(name: str, config: str) -> Scorer:
    """The function that scores the answers of a data set."""
    if name in REPLACED:
        return REPLACED[name][0]
    reasoning_gym = library("reasoning_gym", "puzzles")  # takes over a second, in workers only
    if name not in library("reasoning_gym.factory", "puzzles").DATASETS or name == "composite":
        raise _unusable(f"reasoning-gym has no data set {name[:80]!r} with a scorer of its own")
    try:
        dataset = reasoning_gym.create_dataset(name, **json.loads(config))
    except (AssertionError, TypeError, ValueError) as error:
        raise _unusable(f"config of the reference: {str(error)[:200]}") from error
    return lambda answer, entry: dataset.score_answer(answer, safe_entry(name, entry))


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, trouble)
