"""Draws that are generated together, judged, and gathered from all processes in order."""

from __future__ import annotations

from collections.abc import Sequence

from assay.trainer.engines.types import Draw, Request
from assay.trainer.rollouts.exchange import SINGLE, Exchange, Talk
from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.sharing import share
from assay.trainer.rollouts.types import KnownGroup, Ranks, ScoringRound


class Round(Exchange):
    """One round, or a part of it that is waited for by itself.

    Args:
        draws: of all processes, which share them equally.
        scoring: judges this process's responses.
        fillers: the last so many draws only fill up the processes' shares; they are not judged.

    Attributes:
        draws: without fillers.
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

    def groups(self, policy_step: int) -> list[KnownGroup]:
        """All groups of all processes, in the order of their draws; waits for their judgements.

        Every process calls it, in the same order of rounds.

        Raises:
            RuntimeError: samples still draw.
            OutageError: in one of the processes.
        """
        size = self._group_size
        requests = [Request(draw, index) for draw in self.draws for index in range(size)]
        mine = self.rollouts(policy_step)
        known = share(mine, requests, self._ranks, facts=self._talk.facts)
        return [tuple(known[n : n + size]) for n in range(0, len(known), size)]
