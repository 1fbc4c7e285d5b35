"""Scores dialogues of a policy that verifies itself, with a model's P(correct). Pure.

assay.clients.judging.self_verification says what a turn says and earns. Here a model is asked, for
each verification, how likely "correct" is against "wrong" where the closing sentence begins. The
policy's own model gives PAG's confidence for best-of-n (arXiv 2506.10406); any other may be asked.

A verification that closes in other words is read up to them, and one without a verdict to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.clients.judging.self_verification import (
    CLOSING,
    OPTIONS,
    Dialogue,
    Parsing,
    TurnScore,
    before_verdict,
    dialogue_messages,
    dialogue_of,
    parse_verdict,
    revision_due,
    score_turns,
)
from assay.clients.judging.types import Usage
from assay.genrm.domain import ChatMessage, Run
from assay.genrm.engines.base import Choose, Chosen, ModelInfo, Prompt, PromptMessage, PromptPiece
from assay.genrm.engines.options import verdict_mass
from assay.genrm.judges.modes import invalid
from assay.genrm.judges.numbers import option_probabilities
from assay.genrm.judges.verdict import expect, usage_of
from assay.genrm.templates.template import LEAST_MASS
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

MAX_TURNS = 32


@dataclass(frozen=True, slots=True)
class DialogueItem:
    """The policy's prompt and turns; attempts stand at even indices, from 0."""

    prompt: tuple[ChatMessage, ...]
    turns: tuple[str, ...]
    group_id: str = ""


@dataclass(frozen=True, slots=True)
class DialogueSettings:
    """How to score; see SelfVerificationSettings of process.proto.

    `least_mass` is the least share of the model's probability that "correct" and "wrong" must hold
    for P(correct) to be reported. `template` is the "name@version" by which the model must be fit
    for it: the closing sentence is that template's.
    """

    parsing: Parsing = "strict"
    shaping_weight: float = 0.0
    least_mass: float = LEAST_MASS
    template: str = ""


@dataclass(frozen=True, slots=True)
class DialogueScores:
    """The turns of a dialogue and their rewards, in order, and the tokens that P(correct) took.

    `revision_due`: the last turn asks for another attempt. `dialogue` is for a batch's metrics.
    """

    turns: tuple[TurnScore, ...]
    revision_due: bool
    usage: Usage
    dialogue: Dialogue


def check_dialogue(item: DialogueItem, attempts_correct: Sequence[bool] = ()) -> None:
    """Refuses a dialogue that cannot be scored; `attempts_correct` may be empty.

    Raises:
        Unjudgeable: MISSING_RESPONSE, there is no turn; INVALID_PARAMETER, there are more than 32,
            or not one truth for each attempt.
    """
    if not item.turns:
        raise Unjudgeable(
            Reason.MISSING_RESPONSE, "the dialogue has no turn of the policy; give its attempts"
        )
    if len(item.turns) > MAX_TURNS:
        raise invalid(f"the dialogue has {len(item.turns)} turns; at most {MAX_TURNS} are scored")
    attempts = len(attempts_of(item))
    if attempts_correct and len(attempts_correct) != attempts:
        raise invalid(
            f"attempts_correct has {len(attempts_correct)} entries for {attempts} attempts; give "
            "one for each, or none and a ground truth"
        )


def attempts_of(item: DialogueItem) -> tuple[str, ...]:
    """The attempts, in order."""
    return item.turns[0::2]


def score_dialogue(
    item: DialogueItem,
    settings: DialogueSettings,
    attempts_correct: Sequence[bool],
    model: ModelInfo | None = None,
) -> Run[DialogueScores]:
    """Scores one dialogue; without a model, no P(correct) is reported.

    Raises:
        Unjudgeable: as `check_dialogue`; INVALID_PARAMETER, the model gives no probabilities;
            SCORE_NOT_FINITE.
    """
    check_dialogue(item, attempts_correct)
    if len(attempts_correct) != len(attempts_of(item)):
        raise invalid("whether each attempt is right must be known before a dialogue is scored")
    chances: tuple[float | None, ...] = ()
    usage = Usage()
    if model is not None and len(item.turns) > 1:
        chances, usage = yield from ask_probabilities(
            item.prompt, item.turns, model, settings.least_mass, settings.template
        )
    scores = score_turns(
        item.turns,
        attempts_correct,
        parsing=settings.parsing,
        shaping=settings.shaping_weight,
        probabilities=chances,
    )
    said = item.turns[-1] if len(item.turns) % 2 == 0 else None
    return DialogueScores(
        scores,
        said is not None and revision_due(parse_verdict(said, settings.parsing == "strict")),
        usage,
        dialogue_of(item.turns, scores, settings.parsing, item.group_id),
    )


def ask_probabilities(
    prompt: tuple[ChatMessage, ...],
    turns: Sequence[str],
    model: ModelInfo,
    least_mass: float = LEAST_MASS,
    template: str = "",
) -> Run[tuple[tuple[float | None, ...], Usage]]:
    """P(correct) in [0, 1] of each verification, all asked at once, and the tokens that they took.

    None where "correct" and "wrong" hold less than `least_mass` of the model's probability: it
    would close in other words, so there is nothing to report.

    Raises:
        Unjudgeable: INVALID_PARAMETER, the model gives no probabilities; SCORE_NOT_FINITE.
    """
    if "choose" not in model.capabilities:
        raise invalid(f"model {model.name} gives no probabilities of verdicts; choose another one")
    asked = tuple(
        Choose(verification_prompt(prompt, turns[: index + 1], template), OPTIONS)
        for index in range(1, len(turns), 2)
    )
    if not asked:
        return (), Usage()
    chosen = expect(Chosen, (yield asked))
    found = [(option_probabilities(one.logprobs)[0], one.logprobs) for one in chosen]
    chances = tuple(
        chance if verdict_mass(OPTIONS, logprobs) >= least_mass else None
        for chance, logprobs in found
    )
    return chances, usage_of(chosen)


def verification_prompt(
    prompt: Sequence[ChatMessage], turns: Sequence[str], template: str = ""
) -> Prompt:
    """The dialogue up to the closing sentence of its last turn, a verification.

    The policy's words are data; the requests for its turns, and the closing sentence, are ours.
    """
    said = len(prompt)
    pairs = dialogue_messages([(one.role, one.content) for one in prompt], turns)[:-1]
    messages = tuple(
        PromptMessage(role, (PromptPiece(text, trusted=place >= said and role == "user"),))
        for place, (role, text) in enumerate(pairs)
    )
    before = before_verdict(turns[-1])
    kept = before.rstrip()
    lead = (PromptPiece(kept, trusted=False),) if kept else ()
    prefill = (_gap(before[len(kept) :]) if kept else "") + CLOSING
    return Prompt(messages, prefill, lead, template)


def _gap(white_space: str) -> str:
    return "\n" * min(2, white_space.count("\n")) or " "
