"""Requests on their way: asked, answered turn by turn, judged.

Whoever generates reports each turn here as it ends, and is told what follows from it; what is to be
judged goes to the judges at once. Written once for responses of one turn and for dialogues, for
samples that are drawn whole and for those that go on in a later step, and for whatever collects
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from assay.clients import Result
from assay.trainer.engines.engine import Id, Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.rollouts.types import Rollout, ScoringRound, Unfinished


class Talk(Protocol):
    """What a sample is: one response, or several turns of the policy."""

    def following(self, first: Request, responses: Sequence[Response]) -> Request | None:
        """The request for the turn after those that were said; None where all is said.

        Args:
            first: the request for the first turn.
            responses: the turns so far, at least one.
        """
        ...

    def judged(self, turn: int) -> bool:
        """Whether the turn of this number, from 0, goes to the judges."""
        ...

    def rollout(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        """The sample as a whole.

        Args:
            first: the request for the first turn.
            responses: all turns.
            results: of those that were judged, by their number.
            policy_step: optimizer steps that the policy had made.
        """
        ...

    def unfinished(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Unfinished:
        """The sample as far as it is.

        Args:
            first: the request for the first turn.
            responses: the turns that were begun, at least one; the last may be unfinished.
            results: of those that were judged, by their number.
            policy_step: optimizer steps that the policy had made.
        """
        ...

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        """Numbers of a whole sample that every process is told, as many of each; see Remote."""
        ...


class Single:
    """A sample of one turn."""

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        """See Talk: nothing."""
        del rollout
        return ()

    def following(self, first: Request, responses: Sequence[Response]) -> Request | None:
        """See Talk."""
        del first, responses
        return None

    def judged(self, turn: int) -> bool:
        """See Talk."""
        del turn
        return True

    def rollout(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        """See Talk."""
        return Rollout(first, responses[0], results[0], policy_step)

    def unfinished(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Unfinished:
        """See Talk."""
        del results
        return Unfinished(first, responses[0], policy_step)


SINGLE = Single()


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said of a sample.

    Attributes:
        turns: of the policy, in order; the last may be unfinished.
        results: of those that were judged, by their number from 0.
        whole: nothing follows.
    """

    turns: tuple[Response, ...] = ()
    results: Mapping[int, Result] = field(default_factory=dict)
    whole: bool = False

    @property
    def tokens(self) -> int:
        """That the policy drew."""
        return sum(len(turn.ids) for turn in self.turns)


class Exchange:
    """Samples that are asked for together, and waited for together.

    Turns may be taken in one thread and rollouts asked for in another, one after the other.

    Args:
        requests: for first turns.
        scoring: judges; a round that nothing was submitted to, which is ended here.
        talk: what a sample is.
        asked: so many of the requests are; nobody judges what the others, fillers, are answered.
            None for all.
        earlier: of each request, what was said before, not whole; None for nothing.
        window: most tokens that each sample draws, over its turns; 0 for as many as it needs. One
            that has drawn them waits, whether its turn has ended or not.
        on_progress: called with the number of samples that draw no more.

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
        earlier: Sequence[Transcript] | None = None,
        window: int = 0,
        on_progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self.requests = list(requests)
        self._scoring = scoring
        self._talk = talk
        self._asked = len(self.requests) if asked is None else asked
        self._window = window
        self._on_progress = on_progress
        self._earlier = list(earlier or [Transcript()] * len(self.requests))
        self._ended = [[turn for turn in one.turns if turn.finished] for one in self._earlier]
        self._begun: dict[int, Response] = {}
        self._whole: set[int] = set()
        self._submitted: list[tuple[int, int]] = []
        self._over = 0
        self._results: dict[tuple[int, int], Result] | None = None

    def first(self) -> list[tuple[Id, Request]]:
        """What is asked at the beginning, by (place, turn).

        Raises:
            RuntimeError: all was said of a sample before.
        """
        asked: list[tuple[Id, Request]] = []
        for place, (request, earlier) in enumerate(zip(self.requests, self._earlier, strict=True)):
            responses = self._ended[place]
            following = self._talk.following(request, responses) if responses else request
            if following is None:
                raise RuntimeError(f"all was said of sample {place}")
            if len(responses) < len(earlier.turns):
                following = replace(following, begun=earlier.turns[-1])
            asked.append(((place, len(responses)), replace(following, window=self._window)))
        return asked

    def follow(self, id_: Id, response: Response) -> list[tuple[Id, Request]]:
        """A turn has ended, or the sample's window: what is judged goes to the judges.

        Returns:
            The sample's next turn; empty where it has none, or waits.

        Raises:
            RuntimeError: that turn was answered before, or not asked for.
        """
        place, turn = id_
        if (
            not 0 <= place < len(self.requests)
            or turn != len(self._ended[place])
            or place in self._begun
        ):
            raise RuntimeError(f"turn {id_} was not asked for, or was answered twice")
        first, responses = self.requests[place], self._ended[place]
        following = None
        if response.finished:
            responses.append(response)
            if place < self._asked and self._talk.judged(turn):
                self._submitted.append((place, turn))  # as if it had been drawn at once
                self._scoring.submit(Request(first.draw, first.index), response)
            following = self._talk.following(first, responses)
            if following is None:
                self._whole.add(place)
        else:
            self._begun[place] = response
        left = self._window - self._transcript(place).tokens + self._earlier[place].tokens
        if following is not None and (left or not self._window):
            return [((place, turn + 1), replace(following, window=left if self._window else 0))]
        self._over += 1
        self._on_progress(self._over)
        return []

    def _transcript(self, place: int) -> Transcript:
        """Of a sample, without results of now."""
        begun = self._begun.get(place)
        turns = (*self._ended[place], *([] if begun is None else [begun]))
        return Transcript(turns, self._earlier[place].results, place in self._whole)

    @property
    def whole(self) -> bool:
        """Whether no sample draws on."""
        return self._over == len(self.requests)

    def judged(self) -> None:
        """Waits until all is judged. May be called twice.

        Raises:
            RuntimeError: samples draw on.
        """
        if not self.whole:
            raise RuntimeError(
                f"{self._over} of {len(self.requests)} requests were answered; each is due once"
            )
        if self._results is None:
            results = self._scoring.results()
            self._results = dict(zip(self._submitted, results, strict=True))

    def transcripts(self) -> list[Transcript]:
        """Of the samples that were asked for, in order, with what earlier steps said and found.

        Waits until all is judged.

        Raises:
            RuntimeError: samples draw on.
        """
        self.judged()
        of: list[dict[int, Result]] = [dict(earlier.results) for earlier in self._earlier]
        for (place, turn), result in (self._results or {}).items():
            of[place][turn] = result
        return [replace(self._transcript(place), results=of[place]) for place in range(self._asked)]

    def rollouts(self, policy_step: int) -> list[Rollout]:
        """The samples that were asked for, in order, without a window; waits until all is judged.

        Args:
            policy_step: optimizer steps that the policy had made.

        Raises:
            RuntimeError: samples draw on.
        """
        return [
            self._talk.rollout(request, transcript.turns, transcript.results, policy_step)
            for request, transcript in zip(self.requests, self.transcripts(), strict=False)
        ]


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
