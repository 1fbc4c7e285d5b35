"""Dialogues on held-out prompts: the policy verifies and revises as it does while it learns.

The answers are those of the last attempts, so that accuracy is that of the whole dialogue; the
metrics of turns (Acc@t1, recalls of the verifier, ...) stand beside it. A verification that cannot
be read asks for a revision here, and does not in training: so do PAG's authors (arXiv 2506.10406).

Of several dialogues about a problem, the policy's own confidence chooses among the first attempts
(PAG's best of n), and so does the majority of their answers, to compare.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from assay.trainer.core.estimates import majority
from assay.trainer.core.evaluation import Evaluation, answer_of, questions
from assay.trainer.data.problems import Problem
from assay.trainer.methods.turns.credit import is_correct, stated, turn_metrics
from assay.trainer.methods.turns.dialogues import Dialogues
from assay.trainer.rollouts.outages import refuse_given_up
from assay.trainer.rollouts.types import Ranks, Rollout, ScoringRound


def evaluate_dialogues(
    problems: Sequence[Problem],
    dialogues: Dialogues,
    open_round: Callable[[], ScoringRound],
    encode: Callable[[Problem], Sequence[int]],
    *,
    samples: int,
    batch_size: int,
    ranks: Ranks,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> Evaluation:
    """Has a dialogue held about every problem, and its attempts judged; see `evaluate`.

    Args:
        problems: held out of the training; the same list on every process.
        dialogues: of an evaluation.
        open_round: begins to judge; called once for each batch.
        encode: the tokens that the policy is shown of a problem.
        samples: dialogues about each problem.
        batch_size: at a time.
        ranks: the processes.
        on_progress: called with the number of problems answered, over all processes.

    Returns:
        All answers, problem by problem; the same on every process.

    Raises:
        OutageError: the reward services were away for too long.
    """
    if not problems:
        return Evaluation(())
    mine, fillers = questions(problems, encode, samples, ranks)
    asked = [*mine, *fillers]
    held: list[Rollout] = []
    for start in range(0, len(asked), batch_size):
        held += dialogues.conduct(asked[start : start + batch_size], open_round())
        on_progress(min(len(problems), len(held) * ranks.count // samples))
    everyone = ranks.gather(held[: len(mine)])
    refuse_given_up(rollout.result for rollout in everyone)
    answers = []
    for rollout in everyone:
        last = [turn.result for turn in rollout.turns if turn.result is not None][-1]
        answer = answer_of(rollout.request, rollout.response, last)
        answers.append(replace(answer, token_count=rollout.length))
    return Evaluation(tuple(answers), {**turn_metrics(everyone), **_voted(everyone)})


def _voted(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Accuracy of the most frequent first attempt, over the dialogues that best of n is over.

    Nothing where the policy was not asked how sure it is.
    """
    answers: defaultdict[int, list[str]] = defaultdict(list)
    correct: defaultdict[int, list[bool]] = defaultdict(list)
    for rollout in rollouts:
        sure = [t for t in rollout.turns if t.correct_probability is not None]
        first = rollout.turns[0]
        if sure and rollout.result.fault is None and first.result is not None:
            answers[rollout.request.draw.number].append(stated(first))
            correct[rollout.request.draw.number].append(bool(is_correct(first.result)))
    if not answers:
        return {}
    shares = [majority(answers[number], correct[number]) for number in answers]
    return {"turns_first_majority": statistics.fmean(shares)}
