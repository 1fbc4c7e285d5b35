"""Requests on their way: asked, answered turn by turn, judged.

Whoever generates reports each turn here as it ends, and is told what follows from it; what is to be
judged goes to the judges at once. Written once for responses of one turn and for dialogues, and for
whatever collects them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from assay.clients import Result
from assay.trainer.engines.engine import Id, Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.rollouts.types import Rollout, ScoringRound


class Talk(Protocol):
    """What a sample is: one response, or several turns of the policy."""

    def following(self, first: Request, said: Sequence[Response]) -> Request | None:
        """The request for the turn after those that were said; None where all is said.

        Args:
            first: the request for the first turn.
            said: the turns so far, at least one.
        """
        ...

    def judged(self, turn: int) -> bool:
        """Whether the turn of this number, from 0, goes to the judges."""
        ...

    def rollout(
        self,
        first: Request,
        said: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        """The sample as a whole.

        Args:
            first: the request for the first turn.
            said: all turns.
            results: of those that were judged, by their number.
            policy_step: optimizer steps that the policy had made.
        """
        ...


class Single:
    """A sample of one turn."""

    def following(self, first: Request, said: Sequence[Response]) -> Request | None:
        """See Talk."""
        del first, said
        return None

    def judged(self, turn: int) -> bool:
        """See Talk."""
        del turn
        return True

    def rollout(
        self,
        first: Request,
        said: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        """See Talk."""
        return Rollout(first, said[0], results[0], policy_step)


SINGLE = Single()


class Exchange:
    """Samples that are asked for together, and waited for together.

    Turns may be taken in one thread and rollouts asked for in another, one after the other.

    Args:
        requests: for first turns.
        scoring: judges; a round that nothing was submitted to, which is ended here.
        talk: what a sample is.
        asked: so many of the requests are; nobody judges what the others, fillers, are answered.
            None for all.
        on_progress: called with the number of samples in which all is said.

    Attributes:
        requests: as given.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        scoring: ScoringRound,
        talk: Talk = SINGLE,
        *,
        asked: int | None = None,
        on_progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self.requests = list(requests)
        self._scoring = scoring
        self._talk = talk
        self._asked = len(self.requests) if asked is None else asked
        self._on_progress = on_progress
        self._said: list[list[Response]] = [[] for _ in self.requests]
        self._submitted: list[tuple[int, int]] = []
        self._over = 0
        self._results: dict[tuple[int, int], Result] | None = None

    def first(self) -> list[tuple[Id, Request]]:
        """What is asked at the beginning, by (place, turn)."""
        return [((place, 0), request) for place, request in enumerate(self.requests)]

    def follow(self, id_: Id, response: Response) -> list[tuple[Id, Request]]:
        """A turn has ended: it goes to the judges where it is judged.

        Returns:
            The sample's next turn; empty where it has none.

        Raises:
            RuntimeError: that turn was answered before, or not asked for.
        """
        place, turn = id_
        if not 0 <= place < len(self.requests) or turn != len(self._said[place]):
            raise RuntimeError(f"turn {id_} was not asked for, or was answered twice")
        said = self._said[place]
        said.append(response)
        if place < self._asked and self._talk.judged(turn):
            self._submitted.append((place, turn))
            first = self.requests[place]  # as if it had been drawn at once
            self._scoring.submit(Request(first.draw, first.index), response)
        following = self._talk.following(self.requests[place], said)
        if following is not None:
            return [((place, turn + 1), following)]
        self._over += 1
        self._on_progress(self._over)
        return []

    @property
    def whole(self) -> bool:
        """Whether all is said."""
        return self._over == len(self.requests)

    def judged(self) -> None:
        """Waits until all is judged. May be called twice.

        Raises:
            RuntimeError: not all is said.
        """
        if not self.whole:
            raise RuntimeError(
                f"{self._over} of {len(self.requests)} requests were answered; each is due once"
            )
        if self._results is None:
            results = self._scoring.results()
            self._results = dict(zip(self._submitted, results, strict=True))

    def rollouts(self, policy_step: int) -> list[Rollout]:
        """The samples that were asked for, in order; waits until they are judged.

        Args:
            policy_step: optimizer steps that the policy had made.

        Raises:
            RuntimeError: not all is said.
        """
        self.judged()
        of: list[dict[int, Result]] = [{} for _ in self.requests]
        for (place, turn), result in (self._results or {}).items():
            of[place][turn] = result
        whole = zip(self.requests, self._said, of, strict=True)
        return [self._talk.rollout(*one, policy_step) for one in [*whole][: self._asked]]


def held(
    sampler: Sampler,
    requests: Sequence[Request],
    scoring: ScoringRound,
    talk: Talk = SINGLE,
    *,
    policy_step: int = 0,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> list[Rollout]:
    """Samples, asked for, judged and waited for; see Exchange."""
    exchange = Exchange(requests, scoring, talk, on_progress=on_progress)
    sampler.serve(exchange.first(), exchange.follow)
    return exchange.rollouts(policy_step)
