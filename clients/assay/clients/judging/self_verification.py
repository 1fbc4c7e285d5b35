"""A policy that verifies itself: wording, verdicts, turn rewards and metrics. Pure.

The dialogue of PAG (arXiv 2506.10406): the policy answers, is asked to verify its answer, and where
it finds it wrong is asked to answer again. Its turns are attempts (at even indices from 0) and
verifications (at odd ones).

    reward of the first attempt       acc_1
    reward of a verification          1 if its verdict matches the truth, else 0
    reward of a later attempt         acc_t + weight * (acc_t - acc_{t-1})

Differences from the paper:

1. A verification that cannot be read is "unparsed": it earns 0 and counts as a mismatch; the
authors count it as "wrong", so their recall of wrong attempts is higher.
2. Rewards and metrics are defined for any number of attempts; the paper has two.
3. The prompts are worded anew; only the closing sentences are the protocol.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.clients.judging.verdicts import (
    CLOSING,
    OPTIONS,
    Parsing,
    Verdict,
    before_verdict,
    parse_verdict,
)

__all__ = [
    "ANSWER",
    "CLOSING",
    "OPTIONS",
    "RECONSIDER",
    "REVISE",
    "VERIFY",
    "Dialogue",
    "Parsing",
    "SelfVerificationMetrics",
    "TurnScore",
    "Verdict",
    "before_verdict",
    "dialogue_messages",
    "dialogue_of",
    "metrics",
    "parse_verdict",
    "revision_due",
    "score_turns",
    "stated_answer",
    "turn_rewards",
]

ANSWER = "Reason step by step, and put your final answer within \\boxed{}."
"""For the system message of the policy."""

VERIFY = (
    "Now verify your solution. Go through it step by step and check each step. If you find a "
    "mistake, name the step and say what is wrong with it, and close with the sentence "
    '"The answer is wrong." If you find none, close with the sentence "The answer is correct."'
)
"""The user's message after every attempt."""

REVISE = (
    "You have judged your own answer to be wrong. Solve the problem again, mend the mistake that "
    "you found, and put your final answer within \\boxed{}."
)
"""Asks for another attempt, where a revision is due."""

RECONSIDER = (
    "There may be a mistake in your solution. Look for it, solve the problem again if you find "
    "one, and put your final answer within \\boxed{}."
)
"""Asks for another attempt without a verification, as SCoRe does (arXiv 2409.12917)."""

_BOXED = "\\boxed{"
_BRACES = re.compile(r"[{}]")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class TurnScore:
    """One turn of the policy; see TurnScore of process.proto.

    Attributes:
        attempt_correct: None for a verification.
        strict_verdict: of a verification; None for an attempt. So is the tolerant one.
        correct_probability: in [0, 1]; None for an attempt, and where no model was asked.
    """

    reward: float
    attempt_correct: bool | None = None
    strict_verdict: Verdict | None = None
    tolerant_verdict: Verdict | None = None
    correct_probability: float | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One scored dialogue, for the metrics.

    Attributes:
        attempts_correct: at least one.
        verdicts: as many as attempts, or one fewer.
        correct_probabilities: of each verification; empty where no model was asked.
        answers: each attempt's. Empty: unknown; then only a change of correctness is a changed
            answer.
        group_id: shared by the samples of one prompt; empty for none.
    """

    attempts_correct: tuple[bool, ...]
    verdicts: tuple[Verdict, ...] = ()
    correct_probabilities: tuple[float | None, ...] = ()
    answers: tuple[str, ...] = ()
    group_id: str = ""


@dataclass(frozen=True, slots=True)
class SelfVerificationMetrics:
    """Ratios in [0, 1] over a batch of dialogues; None where there was nothing to count.

    Attributes:
        answer_change_ratio: revised dialogues whose last answer differs from the first.
        verifier_accuracy: verdicts that match the truth; unparsed ones do not.
        correct_recall: verified right attempts that were called right.
        wrong_recall: verified wrong attempts that were called wrong.
        incorrect_to_correct_ratio: wrong first attempts that ended right, of all wrong ones.
        correct_to_incorrect_ratio: right first attempts that ended wrong, of all right ones.
        revision_ratio: dialogues with more than one attempt.
        best_of_n_accuracy: groups whose attempt of greatest P(correct) is right; ties share the
            point.
        revised_incorrect_to_correct_ratio: of revised dialogues alone, `i_to_c_rate` of PAG's code.
        revised_correct_to_incorrect_ratio: `c_to_i_rate`.
        gained_ratio: from wrong to right, of all dialogues: `i_to_c_rate_gt`, SCoRe's i->c.
        lost_ratio: from right to wrong, of all; `final = first + gained - lost`.
    """

    first_accuracy: float | None = None
    final_accuracy: float | None = None
    answer_change_ratio: float | None = None
    verifier_accuracy: float | None = None
    correct_recall: float | None = None
    wrong_recall: float | None = None
    incorrect_to_correct_ratio: float | None = None
    correct_to_incorrect_ratio: float | None = None
    revision_ratio: float | None = None
    best_of_n_accuracy: float | None = None
    revised_incorrect_to_correct_ratio: float | None = None
    revised_correct_to_incorrect_ratio: float | None = None
    gained_ratio: float | None = None
    lost_ratio: float | None = None


def revision_due(verdict: Verdict, validation: bool = False) -> bool:
    """Whether the policy is asked for another attempt.

    An unparsed verdict asks for one in a `validation` only.
    """
    return verdict != "correct" if validation else verdict == "wrong"


def turn_rewards(
    accuracies: Sequence[float], verdicts: Sequence[Verdict], shaping: float
) -> tuple[float, ...]:
    """The reward of each turn, in order: attempt, verification, attempt, ...

    `accuracies` are 0 or 1; `shaping` weights the improvement between attempts (1 in the paper).

    Raises:
        ValueError: the numbers of attempts and verdicts do not alternate.
    """
    _check_alternation(len(accuracies), len(verdicts))
    rewards: list[float] = []
    before: float | None = None
    for number, accuracy in enumerate(accuracies):
        gain = 0.0 if before is None else accuracy - before
        rewards.append(float(accuracy + shaping * gain))
        if number < len(verdicts):
            rewards.append(float(_matches(verdicts[number], accuracy > 0)))
        before = accuracy
    return tuple(rewards)


def score_turns(
    turns: Sequence[str],
    attempts_correct: Sequence[bool],
    *,
    parsing: Parsing = "strict",
    shaping: float = 0.0,
    probabilities: Sequence[float | None] = (),
) -> tuple[TurnScore, ...]:
    """Scores the turns of one dialogue; `probabilities` are P(correct) of each verification.

    Raises:
        ValueError: an attempt lacks its truth, or a verification its probability.
    """
    strict = [parse_verdict(text, strict=True) for text in turns[1::2]]
    tolerant = [parse_verdict(text, strict=False) for text in turns[1::2]]
    chances = list(probabilities) or [None] * len(strict)
    if len(chances) != len(strict) or len(attempts_correct) != len(turns[0::2]):
        raise ValueError("give one truth for each attempt and one chance for each verification")
    counted = strict if parsing == "strict" else tolerant
    rewards = turn_rewards([float(right) for right in attempts_correct], counted, shaping)
    scores: list[TurnScore] = []
    for index, reward in enumerate(rewards):
        half = index // 2
        if index % 2 == 0:
            scores.append(TurnScore(reward, attempt_correct=attempts_correct[half]))
        else:
            scores.append(TurnScore(reward, None, strict[half], tolerant[half], chances[half]))
    return tuple(scores)


def dialogue_of(
    turns: Sequence[str], scores: Sequence[TurnScore], parsing: Parsing, group_id: str = ""
) -> Dialogue:
    """A scored dialogue for the metrics; `parsing` chooses the reading of the verdicts."""
    said = scores[1::2]
    counted = [one.strict_verdict if parsing == "strict" else one.tolerant_verdict for one in said]
    chances = tuple(one.correct_probability for one in said)
    return Dialogue(
        attempts_correct=tuple(bool(one.attempt_correct) for one in scores[0::2]),
        verdicts=tuple(verdict or "unparsed" for verdict in counted),
        correct_probabilities=chances,
        answers=tuple(stated_answer(text) for text in turns[0::2]),
        group_id=group_id,
    )


def dialogue_messages(
    prompt: Sequence[tuple[str, str]], turns: Sequence[str]
) -> list[tuple[str, str]]:
    """The dialogue as the policy saw it: role and text of each message.

    Before each of its turns but the first stands the message that asks for it.
    """
    messages = list(prompt)
    for index, turn in enumerate(turns):
        if index:
            messages.append(("user", VERIFY if index % 2 else REVISE))
        messages.append(("assistant", turn))
    return messages


def stated_answer(text: str) -> str:
    r"""An attempt's answer as a text, to detect a change: equal answers may differ in it.

    It is the content of the last `\\boxed{}`, else the last line that is not blank, without spaces
    and line breaks.
    """
    at = text.rfind(_BOXED)
    inside = _until_closed(text, at + len(_BOXED)) if at >= 0 else None
    if inside is None:
        inside = text.rstrip().rpartition("\n")[2]
    return _SPACES.sub("", inside)


def metrics(dialogues: Iterable[Dialogue]) -> SelfVerificationMetrics:
    """The metrics of a batch of dialogues. Unparsed verdicts match nothing.

    Raises:
        ValueError: a dialogue's attempts, verdicts and probabilities do not go together.
    """
    batch = list(dialogues)
    for dialogue in batch:
        _check_alternation(len(dialogue.attempts_correct), len(dialogue.verdicts))
    pairs = [(d.attempts_correct[0], d.attempts_correct[-1]) for d in batch]
    revised = [d for d in batch if len(d.attempts_correct) > 1]
    turned = [(d.attempts_correct[0], d.attempts_correct[-1]) for d in revised]
    judged = [
        (right, verdict)
        for dialogue in batch
        for right, verdict in zip(dialogue.attempts_correct, dialogue.verdicts, strict=False)
    ]
    return SelfVerificationMetrics(
        first_accuracy=_ratio(first for first, _ in pairs),
        final_accuracy=_ratio(last for _, last in pairs),
        answer_change_ratio=_ratio(_changed(d) for d in revised),
        verifier_accuracy=_ratio(_matches(verdict, right) for right, verdict in judged),
        correct_recall=_ratio(verdict == "correct" for right, verdict in judged if right),
        wrong_recall=_ratio(verdict == "wrong" for right, verdict in judged if not right),
        incorrect_to_correct_ratio=_ratio(last for first, last in pairs if not first),
        correct_to_incorrect_ratio=_ratio(not last for first, last in pairs if first),
        revision_ratio=_ratio(len(d.attempts_correct) > 1 for d in batch),
        best_of_n_accuracy=_ratio(_best_of_n(batch).values()),
        revised_incorrect_to_correct_ratio=_ratio(last for first, last in turned if not first),
        revised_correct_to_incorrect_ratio=_ratio(not last for first, last in turned if first),
        gained_ratio=_ratio(last and not first for first, last in pairs),
        lost_ratio=_ratio(first and not last for first, last in pairs),
    )


def _best_of_n(batch: Sequence[Dialogue]) -> Mapping[str, float]:
    """For each group with a probability: how many of its most trusted attempts are right."""
    trusted: defaultdict[str, list[tuple[float, bool]]] = defaultdict(list)
    for dialogue in batch:
        if not dialogue.group_id:
            continue
        for right, chance in zip(
            dialogue.attempts_correct, dialogue.correct_probabilities, strict=False
        ):
            if chance is not None:
                trusted[dialogue.group_id].append((chance, right))
    shares: dict[str, float] = {}
    for group, attempts in trusted.items():
        most = max(chance for chance, _ in attempts)
        best = [right for chance, right in attempts if chance == most]
        shares[group] = sum(best) / len(best)
    return shares


def _changed(dialogue: Dialogue) -> bool:
    if dialogue.attempts_correct[0] != dialogue.attempts_correct[-1]:
        return True
    return bool(dialogue.answers) and dialogue.answers[0] != dialogue.answers[-1]


def _matches(verdict: Verdict, right: bool) -> bool:
    return verdict == ("correct" if right else "wrong")


def _ratio(hits: Iterable[float]) -> float | None:
    values = list(hits)
    return sum(values) / len(values) if values else None


def _until_closed(text: str, start: int) -> str | None:
    depth = 1
    for brace in _BRACES.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[start : brace.start()]
    return None


def _check_alternation(attempts: int, verdicts: int) -> None:
    if not attempts or attempts - verdicts not in (0, 1):
        raise ValueError(
            f"{attempts} attempts and {verdicts} verdicts: attempts and verifications alternate, "
            "and the first turn is an attempt"
        )
