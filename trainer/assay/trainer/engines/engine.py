"""The interface of engines of generation; token ids in and out.

Requests are submitted, each with its own limit and random numbers, and delivered as they end, in
any order; meanwhile others may be submitted, aborted, and continued under new weights. One thread
owns an engine: tokens are drawn only inside `poll`.

The base class tracks open requests, continues responses that were begun, and delivers ended ones;
an engine draws tokens for the open `OpenRequest`s.

`Sampler.serve` may also wait for `Arrivals`: requests that follow from work in other threads, such
as the tools of an episode, which run while the engine draws for others.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from assay.trainer.engines.arrivals import Arrivals
from assay.trainer.engines.arrivals import Id as Id  # noqa: PLC0414
from assay.trainer.engines.types import OnFinished, Request, Response, Sampling, Tokenizer

_REST_S = 0.05
OnEnded = Callable[[Id, Response], None]
"""Called with each response as it ends; must be quick; may submit and abort."""


class StoppedError(Exception):
    """`Engine.stop` was called."""


@dataclass(frozen=True, slots=True)
class EngineHost:
    """The policy, as an engine sees it.

    Attributes:
        model_context: opens it for generation: unwrapped, with its weights at hand. Where weights
            are sharded, every process opens it.
        version: grows when the weights change.
        tokenizer: with a pad token.
        dtype: of the weights where autocast does not reach; None leaves them.
        in_step: whether its weights are sharded, so that every process makes each forward pass.
        shared: state that engines of one policy have in common.
    """

    model_context: Callable[[], AbstractContextManager[Any]]
    tokenizer: Tokenizer
    seed: int
    end_ids: frozenset[int]
    autocast: Callable[[], AbstractContextManager[Any]]
    version: Callable[[], int] = lambda: 0
    dtype: Any = None
    in_step: Callable[[], bool] = lambda: False
    shared: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class OpenRequest:
    """A request that is open.

    Attributes:
        ids: drawn since it was submitted, as far as known.
        logprobs: of these; None where the engine gives none.
    """

    id: Id
    request: Request
    sampling: Sampling
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] | None = field(default_factory=list)

    @property
    def begun(self) -> tuple[int, ...]:
        """Tokens of the response from earlier steps."""
        return self.request.begun.ids if self.request.begun is not None else ()

    @property
    def position(self) -> int:
        """The place of the next token in the response, from 0."""
        return len(self.begun) + len(self.ids)

    @property
    def seed_place(self) -> tuple[int, int, int]:
        """The key of its random numbers; see engines.seeded.uniform_rows."""
        return self.request.draw.number, self.request.index, self.request.turn

    @property
    def input_ids(self) -> tuple[int, ...]:
        """The prompt and the response so far."""
        return (*self.request.draw.prompt_ids, *self.begun, *self.ids)

    @property
    def most(self) -> int:
        """How many tokens the whole response may have."""
        most = self.sampling.max_new_tokens
        return min(most, self.request.most) if self.request.most else most

    @property
    def room(self) -> int:
        """How many tokens may be drawn now."""
        left = self.most - len(self.begun)
        if self.request.window:
            left = min(left, self.request.window)
        return left - len(self.ids)

    def add(self, ids: Sequence[int], logprobs: Sequence[float] | None) -> None:
        """Adds drawn tokens; `logprobs` is None where the engine gives none."""
        self.ids += ids
        if logprobs is None:
            self.logprobs = None
        elif self.logprobs is not None:
            self.logprobs += logprobs

    def response(self, *, ended: bool, text: str = "") -> Response:
        """The response so far; `ended` where its last token ends it."""
        begun = self.request.begun
        known = begun.logprobs if begun is not None else ()
        told = None if known is None or self.logprobs is None else (*known, *self.logprobs)
        whole = (*self.begun, *self.ids)
        finished = ended or len(whole) >= self.most
        return Response(
            ids=whole,
            text=text,
            logprobs=told,
            truncated=finished and not ended,
            finished=finished,
        )


class Engine(ABC):
    """Generates responses to submitted requests.

    Attributes:
        sync_s: seconds of taking on new weights, so far.
        preemptions: responses, so far, that lost their place in the cache and were read again
            later; None for an engine that does not count them.
        joins: whether a request that comes while others are drawn joins them. Else it waits for
            their end, and `poll` does not leave early for its sake.
    """

    joins: ClassVar[bool] = True
    preemptions: int | None = None

    def __init__(self, host: EngineHost) -> None:
        self.host = host
        self._open: dict[Id, OpenRequest] = {}
        self._between: deque[Callable[[], None]] = deque()
        self._news = threading.Event()
        self.sync_s = 0.0

    def submit(self, id_: Id, request: Request, sampling: Sampling) -> None:
        """Asks for a response; returns at once.

        Raises:
            ValueError: a request of that id is open, or this one has nothing to read or to draw.
        """
        row = OpenRequest(id_, request, sampling)
        if id_ in self._open:
            raise ValueError(f"request {id_} is open")
        if not row.input_ids or row.room < 1:
            raise ValueError(f"request {id_} has nothing to read, or its response is finished")
        self._open[id_] = row

    @property
    def busy(self) -> bool:
        """Whether requests are open; with sharded weights, on any process, and all must ask."""
        return self.anywhere(bool(self._open))

    def anywhere(self, here: bool) -> bool:
        """Whether it is so here; with sharded weights, on any process, and all must ask."""
        return here

    def poll(self, on_ended: OnEnded) -> None:
        """Draws until at least one open request has ended, or the calls of `between` are made.

        Raises:
            TrainingStoppedError: the engine broke, or the policy's logits are not numbers. Requests
                stay open, with what is known of them: `abort` them.
        """
        if self._between:
            while self._between:
                self._between.popleft()()
            return
        self._draw(on_ended)

    @abstractmethod
    def _draw(self, on_ended: OnEnded) -> None:
        """`poll`; leaves early, nothing lost, when `_between` fills."""

    def between(self, act: Callable[[], None]) -> None:
        """From any thread: calls `act` in the engine's thread, after the present forward pass.

        Open requests go on after it, under the weights of then.
        """
        self._between.append(act)
        self._news.set()

    def wake(self) -> None:
        """From any thread: a request is due; `rest` ends, and `poll` where the request can join."""
        if self.joins:
            self.between(_nothing)
        else:
            self._news.set()

    def rest(self) -> None:
        """Waits for `wake` or `between`, and makes its calls.

        With sharded weights it returns after a moment, for all processes must go on asking whether
        another one is `busy`.
        """
        self._news.wait(_REST_S if self.host.in_step() else None)
        self._news.clear()
        while self._between:
            self._between.popleft()()

    def stop(self) -> None:
        """From any thread: has `poll` raise StoppedError."""
        self.between(_stopped)

    def abort(self, ids: Iterable[Id] | None = None) -> dict[Id, Response]:
        """Ends open requests, all by default; returns what is known of each, unfinished.

        An engine may know of less than was drawn; going on from there draws the same again.
        """
        asked = list(self._open) if ids is None else [id_ for id_ in ids if id_ in self._open]
        return {id_: self._open.pop(id_).response(ended=False) for id_ in asked}

    def update_weights(self) -> None:  # noqa: B027  # who reads the policy itself has nothing to do
        """Takes on the policy's present weights.

        Open requests go on under them, and cached results of the old ones are dropped. To end them
        under the old weights, poll until nothing is `busy`, or abort.
        """

    def close(self) -> None:
        """Frees resources. May be called twice."""
        self.abort()

    def _end(self, rows: Sequence[tuple[OpenRequest, bool]], on_ended: OnEnded) -> None:
        """Delivers rows, each with whether its last token ends the response."""
        whole = [
            [*row.begun, *row.ids]
            for row, ended in rows
            if ended or len(row.begun) + len(row.ids) >= row.most
        ]
        decode = self.host.tokenizer.batch_decode
        texts = iter(decode(whole, skip_special_tokens=True) if whole else ())
        for row, _ in rows:
            del self._open[row.id]
        for row, ended in rows:
            response = row.response(ended=ended)
            if response.finished:
                response = row.response(ended=ended, text=next(texts))
            on_ended(row.id, response)


Follow = Callable[[Id, Response], Iterable[tuple[Id, Request]]]
"""Called with each response as it ends; returns the requests that follow."""


class Sampler:
    """An engine with one sampling, as rollouts use it. A `Generator`."""

    def __init__(self, engine: Engine, sampling: Sampling) -> None:
        self.engine = engine
        self.sampling = sampling

    def generate(self, requests: Sequence[Request], on_finished: OnFinished) -> list[Response]:
        """One response for each request, in order; see Generator."""
        responses: dict[int, Response] = {}

        def heard(id_: Id, response: Response) -> Iterable[tuple[Id, Request]]:
            responses[id_[0]] = response
            on_finished(id_[0], response)
            return ()

        self.serve([((place,), request) for place, request in enumerate(requests)], heard)
        return [responses[place] for place in range(len(requests))]

    def serve(
        self,
        first: Iterable[tuple[Id, Request]],
        follow: Follow,
        arrivals: Arrivals | None = None,
    ) -> None:
        """Answers requests, and those that follow from the answers, until none is open.

        What follows from one is asked while others are being answered. `arrivals` are more of
        them, which other threads announce; it waits for all that are outstanding. Where weights
        are sharded, every process calls it, all with arrivals or none. `follow` runs in the
        caller's thread.

        Raises:
            StoppedError: the engine was stopped.
            TrainingStoppedError: see Engine.poll.
        """
        engine, sampling = self.engine, self.sampling

        def heard(id_: Id, response: Response) -> None:
            for following, request in follow(id_, response):
                engine.submit(following, request, sampling)

        began = time.perf_counter()
        engine.update_weights()
        engine.sync_s += time.perf_counter() - began
        due = arrivals or Arrivals()
        due.wakes(engine.wake)
        try:
            for id_, request in first:
                engine.submit(id_, request, sampling)
            while True:
                for id_, request in due.taken():
                    engine.submit(id_, request, sampling)
                if engine.busy:
                    engine.poll(heard)
                elif arrivals is None or not engine.anywhere(bool(due.outstanding)):
                    break
                else:
                    engine.rest()
        except BaseException:
            engine.abort()
            raise
        finally:
            due.wakes(_nothing)


def _nothing() -> None:
    pass


def _stopped() -> None:
    raise StoppedError
