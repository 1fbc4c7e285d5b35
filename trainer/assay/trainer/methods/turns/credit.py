"""What the turns of a dialogue earn, which of their tokens train, and metrics. Pure.

Rewards are PAG's (arXiv 2506.10406; assay.clients.judging.self_verification): an attempt earns its
correctness, a verification 1 where its verdict is true, a second attempt its correctness plus
`shaping` times its gain over the first. Correctness is the reward service's verdict, 0 or 1
whatever the reward's scale.

Where the first attempt has no reward of its own, PAG's authors let its verification's reward reach
it: a discount of 1 between the two alone. With gamma = lambda = 1 this is the verification's reward
on the first attempt as well, with independent turns [derivation].

A fault is not a zero, and what depends on it is unknown:

    first attempt faulted    the verification has no truth, the second attempt no gain: the whole
                             response leaves the loss
    second attempt faulted   its tokens leave the loss; the first attempt and its verification leave
                             too where turns are joined, or only the last attempt's correctness
                             counts

A dialogue may be drawn over several steps (method.truncation; T-PPO, arXiv 2506.15050, has it for
responses of one turn). In each step the new tokens train with what is known:

    1. a turn that has ended earns its final reward: an attempt is judged in the step in which it
       ends
    2. an open turn's reward is unknown, as is that of a first attempt that earns its
       verification's: the critic's value stands behind its last token
    3. where turns are joined, it stands behind the last token drawn, beside that turn's reward
    4. a fault removes the tokens of this step and later ones, by the table above
    5. the critic learns from whole dialogues, in the step in which they end

All five are [derivation]s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.clients import Result
from assay.clients.judging.self_verification import (
    Dialogue,
    Verdict,
    metrics,
    stated_answer,
    turn_rewards,
)
from assay.trainer.methods.turns.settings import TurnsConfig
from assay.trainer.rollouts.types import Known, PolicyTurn, Remote, Rollout, Unfinished

ATTEMPT, VERIFICATION = 1, 2
"""Roles of tokens; 0 for tokens that the policy did not draw."""
_CORRECT = "correct"
_METRICS = {
    "turns_first_correct": "first_accuracy",
    "turns_final_correct": "final_accuracy",
    "turns_answer_changed": "answer_change_ratio",
    "turns_verifier_accuracy": "verifier_accuracy",
    "turns_correct_recall": "correct_recall",
    "turns_wrong_recall": "wrong_recall",
    "turns_incorrect_to_correct": "incorrect_to_correct_ratio",
    "turns_correct_to_incorrect": "correct_to_incorrect_ratio",
    "turns_revised_to_correct": "revised_incorrect_to_correct_ratio",
    "turns_revised_to_incorrect": "revised_correct_to_incorrect_ratio",
    "turns_gained": "gained_ratio",
    "turns_lost": "lost_ratio",
    "turns_revised": "revision_ratio",
    "turns_best_of_n": "best_of_n_accuracy",
}
_SAID: tuple[Verdict, ...] = ("correct", "wrong", "unparsed")
_OF_VERIFICATIONS = ("turns_verifier_accuracy", "turns_correct_recall", "turns_wrong_recall")


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """The T tokens of a dialogue.

    Attributes:
        turns: number of each token's turn, from 1; 0 for tokens that the policy did not draw.
        roles: `ATTEMPT`, `VERIFICATION`, or 0.
        trained: whether it may be in the loss.
        rewards: a turn's, on its last token.
        open: where the critic's value stands for what follows.
    """

    turns: tuple[int, ...]
    roles: tuple[int, ...]
    trained: tuple[bool, ...]
    rewards: tuple[float, ...]
    open: tuple[bool, ...]


def row_result(turns: Sequence[PolicyTurn]) -> Result:
    """A dialogue's result: its first fault, else its last attempt's result."""
    results = [turn.result for turn in turns if turn.result is not None]
    return next((result for result in results if result.fault is not None), results[-1])


def is_correct(result: Result) -> bool | None:
    """Whether an attempt is right; None for a fault."""
    judgement = result.judgement
    return None if judgement is None else judgement.verdict == _CORRECT


def rewards_of(
    turns: Sequence[PolicyTurn], config: TurnsConfig, *, whole: bool = True
) -> tuple[float | None, ...]:
    """What each turn earns; None where a fault hides it.

    Args:
        turns: finished ones of one dialogue; the first is an attempt.
        config: which turns earn, and what.
        whole: no turn follows; else only rewards that later turns cannot change.
    """
    attempts = [turn for turn in turns if turn.result is not None]
    truths = [is_correct(turn.result) for turn in attempts if turn.result is not None]
    unknown = (None,) * len(turns)
    judged = None not in truths
    if truths[0] is None or not (judged or (config.independent and config.reward == "turns")):
        return unknown
    if config.reward == "final":
        last = float(bool(truths[-1])) if whole else 0.0
        return (0.0,) * (len(turns) - 1) + (last,)
    known = [float(truth) for truth in truths if truth is not None]
    verdicts = [turn.verdict for turn in turns if turn.verdict is not None]
    if verdicts:
        earned = list(turn_rewards(known, verdicts, config.shaping))
    else:  # attempts alone: as if each but the last had been verified, without what that earns
        earned = list(turn_rewards(known, ["unparsed"] * (len(known) - 1), config.shaping)[::2])
    if verdicts and not config.verifier_reward:
        earned[1] = 0.0
    if config.first_reward != "accuracy":
        # where turns are joined, the verification's reward reaches the first attempt anyway
        passed = config.first_reward == "verification" and config.independent and verdicts
        earned[0] = earned[1] if passed else 0.0
    return (*earned, *unknown[len(earned) :])


def turn_tokens(row: Rollout | Unfinished, config: TurnsConfig) -> tuple[TurnTokens, float | None]:
    """A dialogue's tokens, and the sum of its turns' rewards; None where the whole is a fault."""
    length = len(row.response.ids)
    numbers, roles = [0] * length, [0] * length
    trained, rewards, opened = [False] * length, [0.0] * length, [False] * length
    whole = isinstance(row, Rollout)
    said = [turn for turn in row.turns if turn.finished]
    earned = list(rewards_of(said, config, whole=whole)) if said else []
    if len(said) < len(row.turns):  # an open turn has no reward, and no truth where none before has
        earned.append(None if None in earned else 0.0)
    for number, (turn, reward) in enumerate(zip(row.turns, earned, strict=True), start=1):
        size = turn.end - turn.start
        numbers[turn.start : turn.end] = [number] * size
        role = ATTEMPT if turn.verdict is None else VERIFICATION
        roles[turn.start : turn.end] = [role] * size
        trained[turn.start : turn.end] = [reward is not None] * size
        rewards[turn.end - 1] = reward or 0.0
        opened[turn.end - 1] = not whole and _is_open(number, row.turns, config)
    known = [reward for reward in earned if reward is not None]
    tokens = TurnTokens(tuple(numbers), tuple(roles), tuple(trained), tuple(rewards), tuple(opened))
    return tokens, sum(known) if known else None


def _is_open(number: int, turns: Sequence[PolicyTurn], config: TurnsConfig) -> bool:
    """Whether a turn, from 1, of an unfinished dialogue may still earn; see 2 and 3."""
    if not config.independent:
        return number == len(turns)
    if not turns[number - 1].finished:
        return True
    verified = any(turn.verdict is not None and turn.finished for turn in turns)
    waits = config.reward == "turns" and config.first_reward == "verification"
    return number == 1 and waits and not verified


def turn_metrics(rollouts: Iterable[Known]) -> dict[str, float]:
    """Metrics of dialogues by the names of `metric_table`, where they apply.

    Over dialogues whose attempts are all judged; unreadable verdicts over all. Best of n needs the
    policy's confidence.
    """
    told = [
        (one, one.facts if isinstance(one, Remote) else dialogue_facts(one)) for one in rollouts
    ]
    said = [_SAID[int(facts[1])] for _, facts in told if facts and not math.isnan(facts[1])]
    found = metrics(
        [
            _dialogue(facts, one.request.draw.number)
            for one, facts in told
            if facts and one.result.fault is None
        ]
    )
    named: dict[str, float] = {}
    for name, attribute in _METRICS.items():
        value = getattr(found, attribute)
        if value is not None and (said or name not in _OF_VERIFICATIONS):
            named[name] = float(value)
    if said:
        named["turns_unparsed"] = said.count("unparsed") / len(said)
    return named


def dialogue_facts(rollout: Rollout) -> tuple[float, ...]:
    """A dialogue in numbers, NaN where absent; empty for a response of one turn.

    In order: whether the first attempt is right; the verification's verdict, by its place in
    `_SAID`; P(correct); whether the last of several attempts is right; whether its answer differs
    from the first.
    """
    if not rollout.turns:
        return ()
    attempts = [turn for turn in rollout.turns if turn.result is not None]
    first, *_, last = [*attempts, *attempts]
    verdict = next(((t.verdict, t.correct_probability) for t in rollout.turns if t.verdict), None)
    word, chance = (math.nan, None) if verdict is None else (_SAID.index(verdict[0]), verdict[1])
    return (
        _truth(first),
        float(word),
        math.nan if chance is None else chance,
        _truth(last) if len(attempts) > 1 else math.nan,
        float(stated(first) != stated(last)),
    )


def _truth(turn: PolicyTurn) -> float:
    truth = None if turn.result is None else is_correct(turn.result)
    return math.nan if truth is None else float(truth)


def _dialogue(facts: Sequence[float], number: int) -> Dialogue:
    first, word, chance, last, restated = facts
    attempts = [first] if math.isnan(last) else [first, last]
    verdicts: list[Verdict] = [] if math.isnan(word) else [_SAID[int(word)]]
    if not verdicts:  # attempts alone
        verdicts = ["unparsed"] * (len(attempts) - 1)
    return Dialogue(
        attempts_correct=tuple(map(bool, attempts)),
        verdicts=tuple(verdicts),
        correct_probabilities=() if math.isnan(word) else (None if math.isnan(chance) else chance,),
        answers=("the first", "another") if restated else (),
        group_id=str(number),
    )


def stated(turn: PolicyTurn) -> str:
    """The answer of an attempt, from the verifier or else from the text."""
    judgement = turn.result.judgement if turn.result is not None else None
    found = judgement.extracted_answer if judgement is not None else None
    return stated_answer(turn.text) if found is None else found
