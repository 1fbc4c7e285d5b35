"""Requests in progress: asked, answered turn by turn, judged.

Generators report each turn as it ends and get the requests that follow; turns to be judged go to
the judges at once. What follows from a turn may become known later, in another thread, where a tool
answers first: meanwhile others are drawn. Single responses, dialogues, episodes, and samples that
continue in a later step share this code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from assay.clients import Result
from assay.trainer.engines.arrivals import Arrivals, Asked
from assay.trainer.engines.engine import Id, Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.rollouts.types import Rollout, ScoringRound, Unfinished

Next = Request | None
"""A sample's next request; None after its last."""


class Talk(Protocol):
    """What a sample is: one response, or several turns of the policy.

    Each sample is known by its first request: the very object, for one draw may be answered twice.

    Attributes:
        only: a problem cannot be answered by a single response instead, as a survey would.
    """

    only: ClassVar[bool] = False

    def begin(self, first: Request) -> Next | Future[Next]:
        """The request for the first turn, by default `first`; None where no turn is due at all."""
        return first

    def following(self, first: Request, responses: Sequence[Response]) -> Next | Future[Next]:
        """The request after `responses`, at least one turn; None after the last."""
        ...

    def release(self, first: Request) -> None:
        """Frees what a sample holds, wherever it is. Called once for each, and after `rollout`."""
        return  # a sample of plain values holds nothing

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


class Single(Talk):
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
        self._elsewhere: set[int] = set()
        self._submitted: list[tuple[int, int]] = []
        self._over = 0
        self._results: dict[tuple[int, int], Result] | None = None
        self.expects(Arrivals())

    def expects(
        self, arrivals: Arrivals, then: Callable[[Asked], Asked] = lambda asked: asked
    ) -> None:
        """Requests that become known in other threads go to `arrivals`, each through `then`."""
        self._arrivals, self._then = arrivals, then

    def answered_by(self, sampler: Sampler) -> None:
        """Has all samples answered; see Sampler.serve for what it raises."""
        arrivals = Arrivals()
        self.expects(arrivals)
        try:
            sampler.serve(self.first(), self.follow, arrivals)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Frees what the samples hold, wherever they are."""
        for request in self.requests:
            self._talk.release(request)

    def first(self) -> list[tuple[Id, Request]]:
        """The first requests, by (place, turn), as far as they are known at once.

        Raises:
            RuntimeError: a sample was whole before.
        """
        asked: list[tuple[Id, Request]] = []
        for place, request in enumerate(self.requests):
            responses = self._ended[place]
            following = (
                self._talk.following(request, responses) if responses else self._talk.begin(request)
            )
            if following is None and responses:
                raise RuntimeError(f"nothing follows in sample {place}")
            asked += self._now_or_later(place, following)
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
            or place in self._elsewhere
        ):
            raise RuntimeError(f"turn {id_} was not asked for, or was answered twice")
        first, responses = self.requests[place], self._ended[place]
        if not response.finished:
            self._begun[place] = response
            return self._stopped()
        responses.append(response)
        if place < self._asked and self._talk.judged(turn):
            self._submitted.append((place, turn))  # as if it had been drawn at once
            self._scoring.submit(Request(first.draw, first.index), response)
        return self._now_or_later(place, self._talk.following(first, responses))

    def _now_or_later(self, place: int, following: Next | Future[Next]) -> list[tuple[Id, Request]]:
        if not isinstance(following, Future):
            return self._asked_for(place, following)
        self._elsewhere.add(place)
        self._arrivals.expect(following, lambda: self._then(self._arrived(place, following)))
        return []

    def _arrived(self, place: int, following: Future[Next]) -> list[tuple[Id, Request]]:
        self._elsewhere.discard(place)
        return self._asked_for(place, following.result())

    def _asked_for(self, place: int, following: Next) -> list[tuple[Id, Request]]:
        """A sample's next turn; empty where it has none, or its window is over."""
        earlier, turn = self._earlier[place], len(self._ended[place])
        if following is None:
            self._whole.add(place)
            return self._stopped()
        left = self._window - self._transcript(place).tokens + earlier.tokens
        if turn < len(earlier.turns):
            following, left = replace(following, begun=earlier.turns[-1]), self._window
        if self._window and not left:
            return self._stopped()
        return [((place, turn), replace(following, window=left if self._window else 0))]

    def _stopped(self) -> list[tuple[Id, Request]]:
        """One more sample draws no more."""
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
        """The samples in order, where there is no window; see `judged`. Called once."""
        made = [
            self._talk.rollout(request, transcript.turns, transcript.results, policy_step)
            for request, transcript in zip(self.requests, self.transcripts(), strict=False)
        ]
        self.release()
        return made


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
    exchange.answered_by(sampler)
    return exchange.rollouts(policy_step)
