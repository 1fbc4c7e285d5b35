"""Requests in progress: asked, answered turn by turn, judged.

Generators report each turn as it ends and get the requests that follow; turns to be judged go to
the judges at once. Single responses, dialogues, and samples that continue in a later step share
this code.
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
        """The request after `responses`, at least one turn; None after the last."""
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
        """The whole sample; `results` are of the judged turns, by number."""
        ...

    def unfinished(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Unfinished:
        """The sample so far, at least one turn begun; the last may be unfinished. See `rollout`."""
        ...

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        """Numbers of a whole sample that every process gets; the same count for each sample."""
        ...


class Single:
    """A sample of one turn."""

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        """See Talk."""
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
    """A sample's turns and results so far.

    Attributes:
        turns: the policy's, in order; the last may be unfinished.
        results: of the judged turns, by number from 0.
        whole: nothing follows.
    """

    turns: tuple[Response, ...] = ()
    results: Mapping[int, Result] = field(default_factory=dict)
    whole: bool = False

    @property
    def tokens(self) -> int:
        """Tokens that the policy drew."""
        return sum(len(turn.ids) for turn in self.turns)


class Exchange:
    """Samples that are asked for and waited for together.

    One thread may report turns and another ask for rollouts, one after the other.

    Args:
        requests: for first turns.
        scoring: a round without submissions, which is ended here.
        asked: the first so many requests are judged, the rest are fillers; None for all.
        earlier: each request's unfinished transcript of earlier steps.
        window: most tokens that each sample draws over its turns, then it waits; 0 for no limit.
        on_progress: called with the number of samples that draw no more.
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
        """The first requests, by (place, turn).

        Raises:
            RuntimeError: a sample was whole before.
        """
        asked: list[tuple[Id, Request]] = []
        for place, (request, earlier) in enumerate(zip(self.requests, self._earlier, strict=True)):
            responses = self._ended[place]
            following = self._talk.following(request, responses) if responses else request
            if following is None:
                raise RuntimeError(f"nothing follows in sample {place}")
            if len(responses) < len(earlier.turns):
                following = replace(following, begun=earlier.turns[-1])
            asked.append(((place, len(responses)), replace(following, window=self._window)))
        return asked

    def follow(self, id_: Id, response: Response) -> list[tuple[Id, Request]]:
        """Reports the end of a turn, or of the sample's window; a turn to be judged is sent.

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
        """A sample's transcript without this step's results."""
        begun = self._begun.get(place)
        turns = (*self._ended[place], *([] if begun is None else [begun]))
        return Transcript(turns, self._earlier[place].results, place in self._whole)

    @property
    def whole(self) -> bool:
        """Whether every sample has stopped drawing."""
        return self._over == len(self.requests)

    def judged(self) -> None:
        """Waits for all judgements. May be called twice.

        Raises:
            RuntimeError: samples still draw.
        """
        if not self.whole:
            raise RuntimeError(
                f"{self._over} of {len(self.requests)} requests were answered; each is due once"
            )
        if self._results is None:
            results = self._scoring.results()
            self._results = dict(zip(self._submitted, results, strict=True))

    def transcripts(self) -> list[Transcript]:
        """The samples' transcripts in order, earlier steps included; see `judged`."""
        self.judged()
        of: list[dict[int, Result]] = [dict(earlier.results) for earlier in self._earlier]
        for (place, turn), result in (self._results or {}).items():
            of[place][turn] = result
        return [replace(self._transcript(place), results=of[place]) for place in range(self._asked)]

    def rollouts(self, policy_step: int) -> list[Rollout]:
        """The samples in order, where there is no window; see `judged`."""
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
    """Asks for samples, has them judged and waits for them; see Exchange."""
    exchange = Exchange(requests, scoring, talk, on_progress=on_progress)
    sampler.serve(exchange.first(), exchange.follow)
    return exchange.rollouts(policy_step)
