"""Rollouts that one thread draws while the policy learns in another.

Which weights draw which batch is fixed, and does not depend on how fast anything is: the batch of
step b is drawn by the weights after step max(0, b - eta), the first that AReaL's gate (arXiv
2505.24298) admits it with. A run repeats under its seed, and a resumed one goes on as it would
have.

1. At the beginning of a step its weights are copied, and the batches that the gate now admits are
   ordered: their draws are taken from the stream, their scoring rounds opened. A thread draws one
   batch after another, each with the weights it was ordered with, and sends every response to the
   judges as it ends.
2. The step then takes the batch that is its own: it waits for the responses, and for their
   judgements. Nothing but generation happens in the thread; all that processes tell one another
   they tell in the main thread, in the same order.
3. Nothing is ordered for steps that the run does not have. A run that is made longer after its end
   orders what is missing with the weights it has, fresher ones than the gate asks for.
4. A checkpoint waits for what was ordered and holds it, judged. Where drawing failed, or the reward
   services were away for too long, it holds what came before; the failure is raised by the step
   whose batch it was.

5. With `interrupt`, the thread takes on the weights of each step as it begins, between two forward
   passes: what is being drawn goes on under them, from what it has, and every token keeps the
   log-probability that it was drawn with. How far a response had come by then is the clock's doing.

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
from typing import Any, Protocol

from assay.kit import tracing
from assay.kit.errors import ConfigError
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
    """What the generator answers with; see assay.trainer.methods.asynchrony.shadow."""

    def copied(self) -> Any:
        """The policy's weights as they are now."""
        ...

    def wear(self, weights: Any) -> None:
        """Answers with these from now on."""
        ...


class Drawing(Protocol):
    """Of an engine, what is done from another thread, and how it ends."""

    def between(self, act: Callable[[], None]) -> None:
        """From any thread: has `act` called after the forward pass that runs."""
        ...

    def update_weights(self) -> None:
        """What is open goes on under the weights as they are."""
        ...

    def stop(self) -> None:
        """From any thread: nothing more is answered."""
        ...

    def close(self) -> None:
        """Gives back what it holds."""
        ...


@dataclass(frozen=True, slots=True)
class DrawSchedule:
    """Who draws what when.

    Attributes:
        steps: of the run.
        updates: optimizer steps of a step.
        max_staleness: eta; 0 draws nothing ahead.
        portion: prompts that are waited for together; the last of a step may be fewer.
        interrupt: whether responses under way go on under the weights of a step that begins.
    """

    steps: int
    updates: int
    max_staleness: int
    portion: int
    interrupt: bool = False


class Flight:
    """The batch of one step, from its order to its groups.

    Args:
        step: whose batch it is, from 0.
        policy_step: optimizer steps that the weights had made with which it is drawn.
        rounds: its portions, in the order of their draws.
        clock: seconds.

    Attributes:
        step: as given.
        policy_step: as given.
        blocked_s: seconds that the main thread waited for responses.
        wait_s: seconds that it waited for judgements after that.
        interruptions: how often it went on under newer weights.
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
        """One whose groups are known, as a checkpoint has it."""
        flight = cls(step, policy_step, [], time.perf_counter)
        flight._parts.append(groups)
        flight.drawn.set_result(0.0)
        return flight

    # -- in the thread ----------------------------------------------------------------------------

    def draw(self, sampler: Sampler) -> float:
        """Has all portions answered, as one batch; the seconds that it took."""
        first = [
            ((number, *id_), request)
            for number, part in enumerate(self.rounds)
            for id_, request in part.first()
        ]

        def follow(id_: Id, response: Response) -> list[tuple[Id, Request]]:
            number, *rest = id_
            part = self.rounds[number]
            following = part.follow(tuple(rest), response)
            if part.whole:
                self._whole[number].set()
            return [((number, *next_), request) for next_, request in following]

        began = self._clock()
        with tracing.span("generate", {"assay.items": len(first)}):
            sampler.serve(first, follow)
        return self._clock() - began

    def end(self) -> None:
        """Nothing more is drawn of it; whoever waits need not."""
        for event in self._whole:
            event.set()

    # -- in the main thread -----------------------------------------------------------------------

    def failed(self) -> bool:
        """Whether it could not be drawn; waits for its responses."""
        return self.drawn.exception() is not None

    def parts(self) -> Iterator[list[KnownGroup]]:
        """The groups of one portion after another, each as soon as it is drawn and judged.

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
        """All of them, in the order of their draws."""
        return [group for part in self.parts() for group in part]


class BackgroundCollector:
    """Collects the groups of one step after another; a trainer.Source.

    Args:
        stream: of prompts; its cursor is moved by this collector only, and saved with it.
        sampler: answers with `weights`.
        open_round: begins the judging of one portion.
        engine: of the sampler; stopped and closed with this.
        weights: of the policy.
        schedule: who draws what when.
        config: sizes of a step.
        ranks: the processes; their count divides `prompts_per_step`.
        talk: what a sample is.
        clock: seconds.
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
        """The groups of the next step.

        Args:
            policy_step: optimizer steps that the policy has made.
            then: called with them; where it raises, they are those of the next call again.

        Raises:
            Exception: what drawing them raised.
            ConfigError: a prompt does not fit the policy's context.
        """
        flight = self.begin(policy_step)
        collected = self.finished(flight, policy_step)
        then(collected)
        self.landed()
        return collected

    def begin(self, policy_step: int) -> Flight:
        """Orders what the gate admits; the batch of the step that begins, drawn or not.

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
        """What a step is given, once all of its groups are there; `landed` says that it was."""
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
        """Everything that the next step depends on, in plain containers; waits for it.

        Every process calls it; the first is given all groups, the others none.
        """
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
        """Goes on where a collector with the same data was.

        Raises:
            ConfigError: the data is not the same, or more was drawn ahead than is allowed here.
        """
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
        """Ends the thread, and what it draws. May be called twice."""
        self._engine.stop()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._engine.close()

    def _order(self, step: int, policy_step: int) -> None:
        """Has the thread draw what the gate admits, with the weights as they are."""
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
        """The next batch of the stream, its scoring opened."""
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
        """In the thread. After a failure nothing is drawn: it would be out of order."""
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
        """In the thread: goes on under the newest weights, unless it has them."""
        step, weights = self._newest
        if step > self._worn:
            self._weights.wear(weights)
            self._engine.update_weights()
            self._worn = step
            self._drawn_with += 1
