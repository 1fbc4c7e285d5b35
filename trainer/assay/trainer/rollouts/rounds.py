"""Some draws on their way: asked for, answered one response after another, judged, made groups.

Whoever generates reports each response here as it ends, and it goes to the judges at once. Groups
are made when all is there, over all processes, in the order of the draws.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.clients import Result
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.rollouts.outages import refuse_given_up
from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.types import Group, Ranks, Rollout, ScoringRound

# What one process tells the others of a response; the rest they know.
_Told = tuple[Response, Result]


class Round:
    """What is generated together, or a part of it that is waited for by itself.

    Responses may be taken in one thread and groups asked for in another, one after the other.

    Args:
        draws: over all processes, which share them equally.
        scoring: judges this process's responses.
        ranks: the processes.
        group_size: samples of each draw.
        fillers: so many of the last draws are there for the processes to have equally many; nobody
            judges their responses.

    Attributes:
        draws: as given, without fillers.
        requests: of this process, group after group.
    """

    def __init__(
        self,
        draws: Sequence[Draw],
        scoring: ScoringRound,
        ranks: Ranks,
        group_size: int,
        *,
        fillers: int = 0,
    ) -> None:
        self.draws = list(draws[: len(draws) - fillers])
        share = deal(draws, ranks)
        self.requests = [Request(draw, index) for draw in share for index in range(group_size)]
        asked = max(0, len(self.draws) - ranks.index * len(share))
        self._asked = min(asked, len(share)) * group_size
        self._scoring = scoring
        self._ranks = ranks
        self._group_size = group_size
        self._responses: dict[int, Response] = {}
        self._told: list[_Told] | None = None

    def take(self, place: int, response: Response) -> None:
        """A response is complete: it goes to the judges.

        Args:
            place: of its request.
            response: the answer.

        Raises:
            RuntimeError: that request has been answered, or is none of these.
        """
        if place in self._responses or not 0 <= place < len(self.requests):
            raise RuntimeError(
                f"request {place} of {len(self.requests)} is unknown, or was answered twice"
            )
        self._responses[place] = response
        if place < self._asked:
            self._scoring.submit(self.requests[place], response)

    @property
    def whole(self) -> bool:
        """Whether every request of this process is answered."""
        return len(self._responses) == len(self.requests)

    def judged(self) -> None:
        """Waits until this process's responses are judged. May be called twice.

        Raises:
            RuntimeError: the round is not whole.
        """
        if not self.whole:
            raise RuntimeError(
                f"{len(self._responses)} of {len(self.requests)} requests were answered; each is "
                "due once"
            )
        if self._told is None:
            submitted = [place for place in self._responses if place < self._asked]
            results = dict(zip(submitted, self._scoring.results(), strict=True))
            self._told = [(self._responses[place], results[place]) for place in range(self._asked)]

    def groups(self, policy_step: int) -> list[Group]:
        """All groups over all processes, in the order of their draws; waits for their judgements.

        Every process calls it, in the same order of rounds.

        Args:
            policy_step: optimizer steps that the policy had made when it answered.

        Raises:
            RuntimeError: the round is not whole.
            OutageError: the services were away for too long, for one of the processes.
        """
        self.judged()
        told, size = self._ranks.gather(self._told or []), self._group_size
        refuse_given_up(result for _, result in told)
        return [
            tuple(
                Rollout(Request(draw, index), response, result, policy_step)
                for index, (response, result) in enumerate(told[n * size : (n + 1) * size])
            )
            for n, draw in enumerate(self.draws)
        ]
