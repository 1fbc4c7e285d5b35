"""`self-verify`: a policy that answers, verifies itself and revises, turn by turn (PAG).

How. The policy's turns are attempts (the first, the third, ...) and verifications (the second, the
fourth, ...). Another verifier of this server, `answer_verifier`, judges each attempt against the
item's reference; an attempt is right where that one says "correct". A verification is read for its
closing sentence, "The answer is correct." or "The answer is wrong."; it earns 1 where that is true,
and 0 where it is false or cannot be read. The first attempt earns its accuracy, a later one its
accuracy plus `shaping_weight` times the gain over the attempt before it. These turn rewards are the
spans, each over its whole turn, for a trainer that credits each turn by itself; the reward of the
whole is the last attempt's accuracy, or the sum of the turns (`total`). A candidate of one text is
a single attempt.

The component `revision-due` is 1 where the last verification asks for another attempt, for whoever
drives the dialogue. Both readings of each verification, strict and tolerant, are in the
explanation; `parsing` says which of them counts.

What a policy could game. With a turn's reward carried back to earlier turns, calling every attempt
wrong is profitable, or every one right: credit each turn by itself, as the paper does. With
`total=sum` more turns earn more, and a first attempt that fails on purpose earns the gain: bound
the number of turns, and keep the weight at 1.

Limits. At most 32 turns of the policy. The answer verifier judges with its default parameters, and
has to be one that says "correct". An attempt that gets a fault is the fault of the whole item.

Differences from the paper:
1. The authors' parser also counts a verification that it cannot read as "wrong" in its metrics;
   here it is "unparsed", and earns nothing either way.

Source: PAG, arXiv 2506.10406, section 3.

Measured: rewards of turns equal to the reference implementation's golden values
(`tests/unit/test_client_self_verification.py`). The error in whether an attempt is right is that of
the verifier that judges it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from assay.clients.judging.self_verification import parse_verdict, revision_due, turn_rewards
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNSUPPORTED_INPUT,
    Candidate,
    Component,
    CompositeVerifier,
    Fault,
    Judgement,
    Lookup,
    Message,
    ParameterSpec,
    ParameterValue,
    Span,
    Stages,
    Subtask,
    Unjudgeable,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
    handed_on,
)

_MAX_TURNS = 32
_MAX_WEIGHT = 10.0
_RIGHT = "correct"

_SPEC = VerifierSpec(
    name="self-verify",
    version="1",
    description="Attempts and verifications of a policy that verifies itself, turn by turn (PAG).",
    tasks=("self-verify",),
    # Gains of later attempts cancel out but for the last one and the first one.
    min_reward=-_MAX_WEIGHT,
    max_reward=_MAX_TURNS + _MAX_WEIGHT,
    verdicts=(_RIGHT, "incorrect"),
    parameters=(
        ParameterSpec(
            "answer_verifier",
            "string",
            "math",
            "The verifier of this server that says whether an attempt is right; no profile.",
        ),
        ParameterSpec(
            "parsing",
            "string",
            "strict",
            "What counts as a verdict: the closing sentence exactly, exactly once, or any clear "
            "last one.",
            allowed_values=("strict", "tolerant"),
        ),
        ParameterSpec(
            "shaping_weight",
            "float",
            1.0,
            "Weight of the gain from one attempt to the next.",
            minimum=0.0,
            maximum=_MAX_WEIGHT,
        ),
        ParameterSpec(
            "total",
            "string",
            "final",
            "The reward of the whole: the last attempt's accuracy, or the sum of the turns.",
            allowed_values=("final", "sum"),
        ),
    ),
    # The verifier of the attempts may be any.
    deterministic=False,
    cacheable=False,
    takes_any=True,
)


class SelfVerifyVerifier(CompositeVerifier):
    """Judges attempts by another verifier and verifications by the attempts.

    Args:
        lookup: the verifiers that may judge attempts, by name.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """One attempt, a repaired one, and one that left the right answer."""
        right, wrong = "So \\boxed{12}.", "So \\boxed{13}."
        says_wrong = "Step 2 adds badly. The answer is wrong."
        return (
            VerifierExample(_example(right), "correct"),
            VerifierExample(_example(wrong, says_wrong, right), "correct"),
            VerifierExample(_example(right, says_wrong, wrong), "incorrect"),
        )

    def run(self, item: VerifierItem) -> Stages:
        """Has all attempts judged at once; see `CompositeVerifier.run`."""
        places, texts = _policy_turns(item)
        name = str(item.parameters["answer_verifier"])
        verifier = self._answer_verifier(name)
        outcomes = yield tuple(
            Subtask(f"attempt-{number}", name, _attempt(item, text, verifier))
            for number, text in enumerate(texts[::2], start=1)
        )
        judged: list[Judgement] = []
        for number, outcome in enumerate(outcomes, start=1):
            if isinstance(outcome, Fault):
                facts = {**outcome.metadata, "verifier": name, "attempt": str(number)}
                message = f"attempt {number}, judged by {name!r}: {outcome.message}"
                return Fault(outcome.reason, message, facts)
            judged.append(outcome)
        return judge_turns(places, texts, judged, item.parameters)

    def _answer_verifier(self, name: str) -> Verifier:
        found = self._lookup(name)
        if found is None or isinstance(found, CompositeVerifier):
            raise Unjudgeable(
                INVALID_PARAMETER,
                f"parameter 'answer_verifier': no verifier that judges by itself is named "
                f"{name[:80]!r} on this server; 'math' is one",
            )
        if _RIGHT not in found.spec.verdicts or found.spec.needs_group:
            raise Unjudgeable(
                INVALID_PARAMETER,
                f"parameter 'answer_verifier': {name!r} does not say of one attempt whether it is "
                "'correct'; 'math' does",
            )
        return found


def judge_turns(
    places: Sequence[int],
    texts: Sequence[str],
    judged: Sequence[Judgement],
    parameters: Mapping[str, ParameterValue],
) -> Judgement:
    """The judgement of a dialogue. Pure.

    Args:
        places: where each turn of the policy stands in the dialogue.
        texts: the turns of the policy: attempts at even indices, verifications at odd ones.
        judged: the judgement of each attempt.
        parameters: those of `self-verify`, complete.
    """
    strict = [parse_verdict(text, strict=True) for text in texts[1::2]]
    tolerant = [parse_verdict(text, strict=False) for text in texts[1::2]]
    said = strict if parameters["parsing"] == "strict" else tolerant
    accuracies = [float(judgement.verdict == _RIGHT) for judgement in judged]
    rewards = turn_rewards(accuracies, said, float(_number(parameters["shaping_weight"])))
    due = len(texts) % 2 == 0 and revision_due(said[-1])
    weight = float(parameters["total"] == "sum")
    last = judged[-1]
    base = Judgement.composed(
        _RIGHT if last.verdict == _RIGHT else "incorrect",
        (
            Component("final-accuracy", accuracies[-1], 1.0 - weight),
            *(Component(_name(turn), reward, weight) for turn, reward in enumerate(rewards)),
            Component("revision-due", float(due), 0.0),
        ),
        extracted_answer=last.extracted_answer,
        explanation=_explanation(judged, strict, tolerant),
        suspicions=tuple(dict.fromkeys(flag for one in judged for flag in one.suspicions)),
    )
    spans = tuple(
        Span(0, len(text), reward, _kind(turn), place)
        for turn, (place, text, reward) in enumerate(zip(places, texts, rewards, strict=True))
    )
    return dataclasses.replace(base, spans=spans)


def _policy_turns(item: VerifierItem) -> tuple[list[int], list[str]]:
    """The places and texts of the policy's turns."""
    if item.candidate.text is not None:
        return [0], [item.candidate.text]
    turns = item.candidate.turns
    places = [place for place, turn in enumerate(turns) if turn.from_policy]
    if not 1 <= len(places) <= _MAX_TURNS:
        raise Unjudgeable(
            UNSUPPORTED_INPUT,
            f"{len(places)} turns are the policy's; 1 to {_MAX_TURNS} can be judged: mark its "
            "turns with from_policy",
        )
    return places, [turns[place].content for place in places]


def _attempt(item: VerifierItem, text: str, verifier: Verifier) -> VerifierItem:
    spec = verifier.spec
    try:
        own = handed_on(item, spec, spec.complete({}))
    except Unjudgeable as trouble:
        message = f"verifier {spec.name!r} of the attempts: {trouble.message}"
        raise Unjudgeable(trouble.reason, message) from None
    return dataclasses.replace(own, candidate=Candidate(text), response_token_count=None)


def _explanation(
    judged: Sequence[Judgement], strict: Sequence[str], tolerant: Sequence[str]
) -> str:
    words: list[str] = []
    for number, judgement in enumerate(judged, start=1):
        words.append(f"attempt {number} is {judgement.verdict}")
        if number <= len(strict):
            one, other = strict[number - 1], tolerant[number - 1]
            words.append(f"verification {number} says {one} (read tolerantly: {other})")
    return "; ".join(words)


def _kind(turn: int) -> str:
    return "verification" if turn % 2 else "attempt"


def _name(turn: int) -> str:
    return f"{_kind(turn)}-{turn // 2 + 1}"


def _number(value: ParameterValue) -> float:
    if not isinstance(value, int | float):
        raise TypeError("not a number")
    return value


def _example(*turns: str) -> VerifierItem:
    candidate = Candidate(turns[0])
    if len(turns) > 1:
        said = [Message("assistant", turn, from_policy=True) for turn in turns]
        candidate = Candidate(turns=tuple(said))
    return VerifierItem(candidate, references=("12",), parameters=_SPEC.complete({}))
