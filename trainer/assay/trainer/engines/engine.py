"""Who generates, behind one interface; token ids in and out.

Requests are submitted, each with its own limit and random numbers, and handed over as they end, in
any order; meanwhile others may be submitted, aborted, and answered on under new weights. One thread
owns an engine: tokens are drawn only inside `poll`.

What the rollouts need is written here once: what is open, where a response that was begun goes on,
and what becomes of it when it ends. An engine of its own draws tokens for the open `OpenRequest`s.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from assay.trainer.engines.types import OnFinished, Request, Response, Sampling, Tokenizer

Id = tuple[int, ...]
"""Names a request among those that are open; where rows wait, the smaller goes first."""

OnEnded = Callable[[Id, Response], None]
"""Told of each response as it ends; quick; may submit and abort."""


class StoppedError(Exception):
    """The engine was told to answer nothing more."""


@dataclass(frozen=True, slots=True)
class EngineHost:
    """The policy, as an engine sees it.

    Attributes:
        model_context: opens it for generation: unwrapped, with its weights at hand. Where weights
            are sharded, every process opens it.
        version: grows when the weights change.
        tokenizer: with a pad token.
        seed: of the run.
        end_ids: tokens that end a response.
        autocast: the context in which the policy computes.
        dtype: that the weights are cast to where autocast does not reach; None leaves them.
        in_step: whether its weights are sharded, so that every process makes each forward pass.
        shared: of engines of one policy, what they keep in common.
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
        ids: drawn of it since it was submitted, as far as the engine has told.
        logprobs: of these; None where the engine does not tell.
    """

    id: Id
    request: Request
    sampling: Sampling
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] | None = field(default_factory=list)

    @property
    def begun(self) -> tuple[int, ...]:
        """What earlier steps drew of the response."""
        return self.request.begun.ids if self.request.begun is not None else ()

    @property
    def position(self) -> int:
        """The place in the response of the next token, from 0."""
        return len(self.begun) + len(self.ids)

    @property
    def seed_place(self) -> tuple[int, int, int]:
        """What fixes its random numbers; see engines.seeded.uniform_rows."""
        return self.request.draw.number, self.request.index, self.request.turn

    @property
    def input_ids(self) -> tuple[int, ...]:
        """What the policy reads before the next token: the prompt, and the response so far."""
        return (*self.request.draw.prompt_ids, *self.begun, *self.ids)

    @property
    def room(self) -> int:
        """How many tokens may be drawn now."""
        left = self.sampling.max_new_tokens - len(self.begun)
        if self.request.window:
            left = min(left, self.request.window)
        return left - len(self.ids)

    def add(self, ids: Sequence[int], logprobs: Sequence[float] | None) -> None:
        """Tokens were drawn.

        Args:
            ids: the next ones.
            logprobs: of these; None where the engine does not tell.
        """
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
        finished = ended or len(whole) >= self.sampling.max_new_tokens
        return Response(
            ids=whole,
            text=text,
            logprobs=told,
            truncated=finished and not ended,
            finished=finished,
        )


class Engine(ABC):
    """Generates for whoever submits.

    Attributes:
        sync_s: seconds that it took on new weights, so far.
        preemptions: times, so far, that a response gave up its place in the cache, and was read
            again later; None for an engine that does not count them.
    """

    preemptions: int | None = None

    def __init__(self, host: EngineHost) -> None:
        self.host = host
        self._open: dict[Id, OpenRequest] = {}
        self._between: deque[Callable[[], None]] = deque()
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
        """Whether requests are open; with sharded weights, on any process. All ask alike."""
        return bool(self._open)

    def poll(self, on_ended: OnEnded) -> None:
        """Draws until at least one open request has ended, or what `between` asked for was done.

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
        """From any thread: has `act` called in the engine's, after the forward pass that runs.

        Open requests go on after it, under the weights that are there then.
        """
        self._between.append(act)

    def stop(self) -> None:
        """From any thread: what is open ends with StoppedError out of `poll`."""
        self.between(_stopped)

    def abort(self, ids: Iterable[Id] | None = None) -> dict[Id, Response]:
        """Ends requests that are open, all by default; what is known of each, unfinished.

        An engine may know of less than was drawn; going on from there draws the same again.
        """
        asked = list(self._open) if ids is None else [id_ for id_ in ids if id_ in self._open]
        return {id_: self._open.pop(id_).response(ended=False) for id_ in asked}

    def update_weights(self) -> None:  # noqa: B027  # who reads the policy itself has nothing to do
        """From now on answers by the policy's weights as they are.

        What is open goes on under them, and nothing that was computed by others is used for it.
        Whoever wants it to end under the old ones polls until nothing is `busy`; or aborts it.
        """

    def close(self) -> None:
        """Gives back what it holds. May be called twice."""
        self.abort()

    def _end(self, rows: Sequence[tuple[OpenRequest, bool]], on_ended: OnEnded) -> None:
        """Hands rows over, each with whether its last token ends the response."""
        whole = [
            [*row.begun, *row.ids]
            for row, ended in rows
            if ended or len(row.begun) + len(row.ids) >= row.sampling.max_new_tokens
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
"""Told of each response as it ends; what is asked because of it."""


class Sampler:
    """An engine with one way to sample: what rollouts ask. A `Generator`."""

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

    def serve(self, first: Iterable[tuple[Id, Request]], follow: Follow) -> None:
        """Has requests answered, and those that follow from the answers, until none is open.

        Each goes its own way: what follows from one is asked while others are being answered.
        Where weights are sharded, every process calls it.

        Args:
            first: what is asked at the beginning.
            follow: never called from another thread.

        Raises:
            StoppedError: the engine was told to stop.
            TrainingStoppedError: see Engine.poll.
        """
        engine, sampling = self.engine, self.sampling

        def heard(id_: Id, response: Response) -> None:
            for following, request in follow(id_, response):
                engine.submit(following, request, sampling)

        began = time.perf_counter()
        engine.update_weights()
        engine.sync_s += time.perf_counter() - began
        try:
            for id_, request in first:
                engine.submit(id_, request, sampling)
            while engine.busy:
                engine.poll(heard)
        except BaseException:
            engine.abort()
            raise


def _stopped() -> None:
    raise StoppedError
