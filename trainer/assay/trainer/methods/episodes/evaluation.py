"""Episodes on held-out problems: the policy acts as in training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.trainer.core.evaluation import Evaluation, answer_of, answered, gathered, requests_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Sampler
from assay.trainer.methods.episodes.measures import episode_metrics
from assay.trainer.methods.episodes.talk import Episodes
from assay.trainer.rollouts.types import Ranks, Rollout, ScoringRound


def evaluate_episodes(
    problems: Sequence[Problem],
    sampler: Sampler,
    open_round: Callable[[], ScoringRound],
    encode: Callable[[Problem], Sequence[int]],
    episodes: Episodes,
    *,
    samples: int,
    ranks: Ranks,
    on_progress: Callable[[int], None] = lambda _done: None,
    on_rollouts: Callable[[Sequence[Rollout]], None] = lambda _mine: None,
) -> Evaluation:
    """Runs `samples` episodes of every problem; see core.evaluation.evaluate.

    Raises:
        OutageError: the reward services were away for too long.
    """
    if not problems:
        return Evaluation(())
    requests = requests_of(problems, encode, samples)
    mine = answered(
        requests, sampler, open_round(), samples=samples, ranks=ranks, talk=episodes,
        on_progress=on_progress,
    )  # fmt: skip
    on_rollouts(mine)
    whole = gathered(mine, requests, ranks)
    return Evaluation(tuple(map(answer_of, whole)), episode_metrics(whole))
