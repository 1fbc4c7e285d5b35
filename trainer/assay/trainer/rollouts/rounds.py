"""Some draws on their way: asked for, judged, made groups over all processes, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.trainer.engines.types import Draw, Request
from assay.trainer.rollouts.exchange import SINGLE, Exchange, Talk
from assay.trainer.rollouts.outages import refuse_given_up
from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.types import Group, Ranks, Rollout, ScoringRound


class Round(Exchange):
    """What is generated together, or a part of it that is waited for by itself.

    Args:
        draws: over all processes, which share them equally.
        scoring: judges this process's responses.
        ranks: the processes.
        group_size: samples of each draw.
        talk: what a sample is.
        fillers: so many of the last draws are there for the processes to have equally many; nobody
            judges their responses.

    Attributes:
        draws: as given, without fillers.
    """

    def __init__(
        self,
        draws: Sequence[Draw],
        scoring: ScoringRound,
        ranks: Ranks,
        group_size: int,
        talk: Talk = SINGLE,
        *,
        fillers: int = 0,
    ) -> None:
        self.draws = list(draws[: len(draws) - fillers])
        self._ranks = ranks
        self._group_size = group_size
        share = deal(draws, ranks)
        asked = min(max(0, len(self.draws) - ranks.index * len(share)), len(share))
        super().__init__(
            [Request(draw, index) for draw in share for index in range(group_size)],
            scoring,
            talk,
            asked=asked * group_size,
        )

    def groups(self, policy_step: int) -> list[Group]:
        """All groups over all processes, in the order of their draws; waits for their judgements.

        Every process calls it, in the same order of rounds.

        Args:
            policy_step: optimizer steps that the policy had made when it answered.

        Raises:
            RuntimeError: not all is said.
            OutageError: the services were away for too long, for one of the processes.
        """
        mine = self.rollouts(policy_step)
        told: list[Any] = [(one.response, one.result, one.turns) for one in mine]
        told, size = self._ranks.gather(told), self._group_size
        groups = [
            tuple(
                Rollout(Request(draw, index), response, result, policy_step, turns)
                for index, (response, result, turns) in enumerate(told[n * size : (n + 1) * size])
            )
            for n, draw in enumerate(self.draws)
        ]
        refuse_given_up(result for group in groups for one in group for result in one.results)
        return groups
