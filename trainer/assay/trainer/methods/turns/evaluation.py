"""Dialogues on held-out prompts: the policy verifies and revises as in training.

Accuracy is that of the last attempts; metrics of turns (Acc@t1, recalls of the verifier, ...) stand
beside it. An unreadable verification asks for a revision here, though not in training: so do PAG's
authors (arXiv 2506.10406).

Of several dialogues about a problem, the policy's confidence chooses a first attempt (PAG's best of
n), and the majority of answers another, to compare.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from assay.kit.runs.stats import majority
from assay.trainer.core.evaluation import Evaluation, answer_of, answered, gathered, requests_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.methods.turns.credit import is_correct, stated, turn_metrics
from assay.trainer.methods.turns.dialogues import Dialogues
from assay.trainer.rollouts.types import Ranks, Rollout, ScoringRound

Sure = Callable[[Sequence[Request], Sequence[Response]], list[float]]
"""P(correct) of verifications, given the requests and responses."""


def evaluate_dialogues(
    problems: Sequence[Problem],
    sampler: Sampler,
    open_round: Callable[[], ScoringRound],
    encode: Callable[[Problem], Sequence[int]],
    dialogues: Dialogues,
    *,
    samples: int,
    ranks: Ranks,
    confidence: Sure | None = None,
    on_progress: Callable[[int], None] = lambda _done: None,
    on_rollouts: Callable[[Sequence[Rollout]], None] = lambda _mine: None,
) -> Evaluation:
    """Holds `samples` dialogues about every problem and has their attempts judged; see `evaluate`.

    `problems` is the same list on every process; `open_round` is called once; `on_progress` gets
    the number of problems answered on all processes.

    Returns:
        All answers, problem by problem, in the first process; in the others its own.

    Raises:
        OutageError: the reward services were away for too long.
    """
    if not problems:
        return Evaluation(())
    requests = requests_of(problems, encode, samples)
    mine = answered(
        requests,
        sampler,
        open_round(),
        samples=samples,
        ranks=ranks,
        talk=dialogues,
        on_progress=on_progress,
    )
    if confidence is not None:
        mine = _sure(mine, confidence)
    on_rollouts(mine)
    whole = gathered(mine, requests, ranks)
    return Evaluation(tuple(map(answer_of, whole)), {**turn_metrics(whole), **_voted(whole)})


def _sure(rollouts: Sequence[Rollout], confidence: Sure) -> list[Rollout]:
    requests, verifications = [], []
    for rollout in rollouts:
        ids, turn = rollout.response.ids, rollout.turns[1]
        draw = rollout.request.draw
        prompt_ids = (*draw.prompt_ids, *ids[: turn.start])
        requests.append(replace(rollout.request, draw=replace(draw, prompt_ids=prompt_ids), turn=1))
        verifications.append(Response(ids[turn.start : turn.end], turn.text, None, turn.truncated))
    found = []
    for rollout, chance in zip(rollouts, confidence(requests, verifications), strict=True):
        first, verification, *rest = rollout.turns
        sure = replace(verification, correct_probability=chance)
        found.append(replace(rollout, turns=(first, sure, *rest)))
    return found


def _voted(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Accuracy of the most frequent first attempt, over the dialogues of best of n."""
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
