"""Answers to problems for a selector, besides what the training draws.

Pre-PPO asks before the first draw; MMR1's sampling also every so many steps. The present policy
answers by regular sampling, and nothing of it trains. Draws have the numbers of an evaluation's, so
that the run's stay the same; every process gets the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.clients import Result
from assay.trainer.core.evaluation import answered, requests_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Sampler
from assay.trainer.rollouts.exchange import SINGLE, Talk
from assay.trainer.rollouts.prompts import PromptStream, seen_of
from assay.trainer.rollouts.sharing import share
from assay.trainer.rollouts.types import Ranks, ScoringRound
from assay.trainer.selection.types import Scorable


class Survey:
    """Gives a stream's selector the answers that it is due.

    `sampler` makes the sampler of a survey, which is asked for `batch_size` responses at a time;
    `open_round` begins to judge so many responses to each problem.
    """

    def __init__(
        self,
        stream: PromptStream,
        sampler: Callable[[], Sampler],
        open_round: Callable[[int], ScoringRound],
        encode: Callable[[Problem], Sequence[int]],
        *,
        ranks: Ranks,
        talk: Talk = SINGLE,
    ) -> None:
        self._talk = talk
        self._stream = stream
        self._sampler = sampler
        self._open_round = open_round
        self._encode = encode
        self._ranks = ranks

    @property
    def due(self) -> int:
        """How many problems the selector must learn about now."""
        selector = self._selector()
        return 0 if selector is None else len(selector.unscored)

    def __call__(self, on_progress: Callable[[int], None] = lambda _done: None) -> list[Result]:
        """Has the problems that are due answered and judged, and updates the selector.

        `on_progress` gets the number of problems answered, over all processes.

        Returns:
            Results of all responses, over all processes; empty where nothing is due.

        Raises:
            OutageError: the reward services were away for too long.
            ConfigError: nothing was judged, and the selector cannot choose without it.
        """
        selector = self._selector()
        if selector is None or not selector.unscored:
            return []
        places, samples = list(selector.unscored), selector.samples
        problems = [self._stream.problems[place] for place in places]
        requests = requests_of(problems, self._encode, samples)
        mine = answered(
            requests,
            self._sampler(),
            self._open_round(samples),
            samples=samples,
            ranks=self._ranks,
            talk=self._talk,
            whole=True,
            on_progress=on_progress,
        )
        whole = share(mine, requests, self._ranks)
        groups = [tuple(whole[n : n + samples]) for n in range(0, len(whole), samples)]
        selector.score(seen_of(groups, places, selector, self._ranks))
        return [one.result for one in whole]

    def _selector(self) -> Scorable | None:
        selector = self._stream.selector
        return selector if isinstance(selector, Scorable) else None
