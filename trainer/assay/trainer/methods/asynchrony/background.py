"""Rollouts that one thread draws while the policy learns in another.

Weights after step max(0, b - eta) draw the batch of step b, the first that AReaL's gate (arXiv
2505.24298) admits, whatever the speed. A run repeats under its seed, also when resumed.

1. A step begins by copying its weights and ordering the batches that the gate now admits: it takes
   their draws and opens their scoring rounds. The thread draws batch after batch, each with its own
   weights, and has responses judged as they end.
2. The step then waits for its own batch and its judgements. The thread only generates; processes
   communicate in the main thread, in the same order.
3. Nothing is ordered beyond the run's last step. A run extended later orders the rest with its
   final weights, fresher than the gate asks.
4. A checkpoint waits for ordered batches and holds them, judged. After a failure, or an outage that
   was too long, it holds those before; the batch's own step raises it.
5. With `interrupt`, the thread takes each step's weights as it begins, between two forward passes.
   Open responses continue under them, tokens keep their log-probabilities. Which weights draw which
   token then depends on the clock.

A difference from AReaL: a batch is ordered as a whole.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from assay.kit import tracing
from assay.kit.errors import ConfigError
from assay.trainer.engines.arrivals import Arrivals, Asked
from assay.trainer.engines.engine import Id, Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.errors import OutageError
from assay.trainer.methods.asynchrony.settings import admits
from assay.trainer.rollouts.dynamic import Tally
from assay.trainer.rollouts.exchange import SINGLE, Talk
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.rounds import Round
from assay.trainer.rollouts.sharing import dealt, read_groups, saved_groups
from assay.trainer.rollouts.types import (
    Collected,
    KnownGroup,
    Ranks,
    ScoringRound,
    Then,
    nothing_more,
)
from assay.trainer.settings.sections import RolloutConfig


class Weights(Protocol):
    """The generator's weights; see assay.trainer.methods.asynchrony.shadow."""

    def copied(self) -> Any:
        """The policy's weights now."""
        ...

    def wear(self, weights: Any) -> None:
        """Generates with these from now on."""
        ...


class Drawing(Protocol):
    """What the other thread uses of an engine."""

    def between(self, act: Callable[[], None]) -> None:
        """From any thread: has `act` called after the current forward pass."""
        ...

    def update_weights(self) -> None:
        """Open responses continue under the current weights."""
        ...

    def stop(self) -> None:
        """From any thread: ends generation."""
        ...

    def close(self) -> None:
        """Frees its resources."""
        ...


@dataclass(frozen=True, slots=True)
class DrawSchedule:
    """When batches are drawn.

    Attributes:
        updates: optimizer steps of a step.
        max_staleness: eta; 0 draws nothing ahead.
        portion: prompts waited for together; the last of a step may be fewer.
        interrupt: whether open responses take the weights of each step.
    """

    steps: int
    updates: int
    max_staleness: int
    portion: int
    interrupt: bool = False


class Flight:
    """The batch of one step, from its order to its groups.

    Args:
        step: from 0.
        policy_step: optimizer steps of the weights that draw it.
        rounds: its portions, in the order of their draws.

    Attributes:
        blocked_s: seconds that the main thread waited for responses.
        wait_s: seconds that it then waited for judgements.
        interruptions: how often it continued under newer weights.
    """

    def __init__(
        self, step: int, policy_step: int, rounds: Sequence[Round], clock: Callable[[], float]
    ) -> None:
        self.step = step
        self.policy_step = policy_step
        self.blocked_s = 0.0
        self.wait_s = 0.0
        self.interruptions = 0
        self.rounds = list(rounds)
        self.drawn: Future[float] = Future()
        self._whole = [threading.Event() for _ in self.rounds]
        self._clock = clock
        self._parts: list[list[KnownGroup]] = []

    @classmethod
    def landed(cls, step: int, policy_step: int, groups: list[KnownGroup]) -> Flight:
        """One with known groups, from a checkpoint."""
        flight = cls(step, policy_step, [], time.perf_counter)
        flight._parts.append(groups)
        flight.drawn.set_result(0.0)
        return flight

    # -- in the thread ----------------------------------------------------------------------------

    def draw(self, sampler: Sampler) -> float:
        """Generates all portions as one batch; the seconds that it took."""

        def heard(number: int, following: Asked) -> list[tuple[Id, Request]]:
            if self.rounds[number].whole:
                self._whole[number].set()
            return [((number, *next_), request) for next_, request in following]

        def follow(id_: Id, response: Response) -> list[tuple[Id, Request]]:
            number, *rest = id_
            return heard(number, self.rounds[number].follow(tuple(rest), response))

        began, arrivals = self._clock(), Arrivals()
        try:
            first = []
            for number, part in enumerate(self.rounds):
                part.expects(arrivals, partial(heard, number))
                first += heard(number, part.first())
            with tracing.span("generate", {"assay.items": len(first)}):
                sampler.serve(first, follow, arrivals)
        except BaseException:
            for part in self.rounds:
                part.release()
            raise
        return self._clock() - began

    def end(self) -> None:
        """Ends drawing, and whoever waits for it."""
        for event in self._whole:
            event.set()

    # -- in the main thread -----------------------------------------------------------------------

    def failed(self) -> bool:
        """Whether drawing failed; waits for its responses."""
        return self.drawn.exception() is not None

    def parts(self) -> Iterator[list[KnownGroup]]:
        """The groups of each portion, as soon as it is drawn and judged.

        Raises:
            Exception: what drawing it raised.
        """
        number = 0
        while number < max(len(self._parts), len(self.rounds)):
            if number == len(self._parts):
                self._parts.append(self._waited_for(number))
            yield self._parts[number]
            number += 1

    def _waited_for(self, number: int) -> list[KnownGroup]:
        part, began = self.rounds[number], self._clock()
        self._whole[number].wait()
        if not part.whole:
            self.drawn.result()
        drawn = self._clock()
        part.judged()
        self.blocked_s += drawn - began
        self.wait_s += self._clock() - drawn
        return part.groups(self.policy_step)

    def groups(self) -> list[KnownGroup]:
        """All groups, in the order of their draws."""
        return [group for part in self.parts() for group in part]


class BackgroundCollector:
    """Collects the groups of one step after another; a trainer.Source.

    Args:
        stream: only this collector moves its cursor, and saves it.
        open_round: begins the judging of one portion.
        engine: of the sampler; stopped and closed with this.
        ranks: their count divides `prompts_per_step`.
    """

    def __init__(
        self,
        stream: PromptStream,
        sampler: Sampler,
        open_round: Callable[[], ScoringRound],
        *,
        engine: Drawing,
        weights: Weights,
        schedule: DrawSchedule,
        config: RolloutConfig,
        ranks: Ranks,
        talk: Talk = SINGLE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._talk = talk
        self._stream = stream
        self._sampler = sampler
        self._open_round = open_round
        self._engine = engine
        self._weights = weights
        self._schedule = schedule
        self._config = config
        self._ranks = ranks
        self._clock = clock
        self._flights: deque[Flight] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rollouts")
        self._broken = False
        self._newest: tuple[int, Any] = (-1, None)
        self._worn = -1
        self._drawn_with = 0

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """See Source; where `then` raises, the next call gives the same groups.

        Raises:
            Exception: what drawing them raised.
        """
        flight = self.begin(policy_step)
        collected = self.finished(flight, policy_step)
        then(collected)
        self.landed()
        return collected

    def begin(self, policy_step: int) -> Flight:
        """Orders what the gate admits; the batch of the step that begins.

        Raises:
            ConfigError: a prompt does not fit the policy's context.
        """
        step = policy_step // self._schedule.updates
        self._order(step, policy_step)
        flight = self._flights[0]
        if flight.step != step:
            raise RuntimeError(f"step {step} was given the batch of step {flight.step}")
        return flight

    def finished(self, flight: Flight, policy_step: int) -> Collected:
        """A step's result, once all its groups are there; then call `landed`."""
        groups = flight.groups()
        generate_s = flight.drawn.result()
        tally = Tally()
        tally.add(groups)
        age = (policy_step - flight.policy_step) // self._schedule.updates
        return Collected(
            groups=dealt(groups, self._ranks),
            judged=[rollout for group in groups for rollout in group],
            metrics={
                **tally.metrics(self._config.group_size),
                "rounds": 1.0,
                "surplus": 0.0,
                "stale_groups": float(len(groups) if age else 0),
                "generated_per_used": 1.0,
                "staleness": float(age),
            }
            | ({"interruptions": float(flight.interruptions)} if self._schedule.interrupt else {}),
            generate_s=generate_s,
            wait_s=flight.wait_s,
            blocked_s=flight.blocked_s,
        )

    def landed(self) -> None:
        """The step has its groups."""
        self._flights.popleft()

    def state_dict(self) -> dict[str, Any]:
        """See Source; waits for ordered batches."""
        saved: list[dict[str, Any]] = []
        stream = self._stream.state_dict()
        for number, flight in enumerate(self._flights):
            # more than the gate admits between steps: those of a step that was left undone
            if number == self._schedule.max_staleness or flight.failed():
                stream["cursor"] = flight.rounds[0].draws[0].number
                break
            try:
                groups = saved_groups(flight.groups(), self._ranks)
            except OutageError:
                stream["cursor"] = flight.rounds[0].draws[0].number
                break
            flight.blocked_s = flight.wait_s = 0.0  # no step's: a checkpoint waited
            saved.append({"step": flight.step, "policy_step": flight.policy_step, "groups": groups})
        return {"stream": stream, "ahead": saved}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Source; raises ConfigError too where more was drawn ahead than is allowed."""
        saved = state.get("ahead")
        if saved is None or len(saved) > self._schedule.max_staleness:
            held = "no batches drawn ahead" if saved is None else f"{len(saved)} drawn ahead"
            raise ConfigError(
                f"the checkpoint holds {held}, this run has method.asynchrony.max_staleness = "
                f"{self._schedule.max_staleness}: resume with the method.asynchrony that it was "
                "made with, or start a new run"
            )
        self._stream.load_state_dict(state["stream"])
        self._flights = deque(
            Flight.landed(
                one["step"],
                one["policy_step"],
                read_groups(one["groups"], self._stream.draw, self._ranks, self._talk.facts),
            )
            for one in saved
        )

    def close(self) -> None:
        """Ends the thread and its drawing. May be called twice."""
        self._engine.stop()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._engine.close()

    def _order(self, step: int, policy_step: int) -> None:
        schedule, size = self._schedule, self._config.prompts_per_step * self._config.group_size
        weights: Any = None
        if schedule.interrupt:
            self._newest = policy_step, self._weights.copied()
            self._engine.between(self._take_newest)
        following = self._flights[-1].step + 1 if self._flights else step
        while following < schedule.steps and admits(
            following * size + 1,
            batch=size,
            version=step,
            max_staleness=schedule.max_staleness,
        ):
            if weights is None and not schedule.interrupt:
                weights = self._weights.copied()
            flight = Flight(following, policy_step, self._portions(), self._clock)
            here = contextvars.copy_context()  # the trace of the step that orders it
            flight.drawn = self._thread.submit(here.run, self._draw, flight, weights)
            self._flights.append(flight)
            following += 1

    def _portions(self) -> list[Round]:
        draws, size = self._stream.take(self._config.prompts_per_step), self._schedule.portion
        return [
            Round(
                draws[start : start + size],
                self._open_round(),
                self._ranks,
                self._config.group_size,
                self._talk,
            )
            for start in range(0, len(draws), size)
        ]

    def _draw(self, flight: Flight, weights: Any) -> float:
        """In the thread. Draws nothing after a failure, to keep the order."""
        try:
            broken, self._broken = self._broken, True
            if broken:
                raise RuntimeError("the batch before it could not be drawn")
            if self._schedule.interrupt:
                self._take_newest()
            else:
                self._weights.wear(weights)
            self._drawn_with = 1
            took = flight.draw(self._sampler)
            flight.interruptions = self._drawn_with - 1
            self._broken = False
            return took
        finally:
            flight.end()

    def _take_newest(self) -> None:
        """In the thread: takes the newest weights."""
        step, weights = self._newest
        if step > self._worn:
            self._weights.wear(weights)
            self._engine.update_weights()
            self._worn = step
            self._drawn_with += 1
