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

Differences from AReaL: a response has one version, which is not interrupted when weights arrive
(there it goes on under the new ones); and a batch is ordered as a whole.
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

from assay.rpc import tracing
from assay.rpc.errors import ConfigError
from assay.trainer.engines.types import Generator, Response
from assay.trainer.errors import OutageError
from assay.trainer.methods.asynchrony.settings import admits
from assay.trainer.rollouts.dynamic import Tally
from assay.trainer.rollouts.plain import group_from_plain, group_to_plain
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.rounds import Round
from assay.trainer.rollouts.types import Collected, Group, Ranks, ScoringRound
from assay.trainer.settings.sections import RolloutConfig


class Weights(Protocol):
    """What the generator answers with; see assay.trainer.methods.asynchrony.shadow."""

    def copied(self) -> Any:
        """The policy's weights as they are now."""
        ...

    def wear(self, weights: Any) -> None:
        """Answers with these from now on."""
        ...

    def stop(self) -> None:
        """Ends what is being answered."""
        ...


@dataclass(frozen=True, slots=True)
class Schedule:
    """Who draws what when.

    Attributes:
        steps: of the run.
        updates: optimizer steps of a step.
        max_staleness: eta; 0 draws nothing ahead.
        portion: prompts that are waited for together; divides those of a step.
    """

    steps: int
    updates: int
    max_staleness: int
    portion: int


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
    """

    def __init__(
        self, step: int, policy_step: int, rounds: Sequence[Round], clock: Callable[[], float]
    ) -> None:
        self.step = step
        self.policy_step = policy_step
        self.blocked_s = 0.0
        self.wait_s = 0.0
        self.rounds = list(rounds)
        self.drawn: Future[float] = Future()
        self._whole = [threading.Event() for _ in self.rounds]
        self._clock = clock
        self._parts: list[list[Group]] = []

    @classmethod
    def landed(cls, step: int, policy_step: int, groups: list[Group]) -> Flight:
        """One whose groups are known, as a checkpoint has it."""
        flight = cls(step, policy_step, [], time.perf_counter)
        flight._parts.append(groups)
        flight.drawn.set_result(0.0)
        return flight

    # -- in the thread ----------------------------------------------------------------------------

    def draw(self, generator: Generator) -> float:
        """Has all portions answered, as one batch; the seconds that it took."""
        share = len(self.rounds[0].requests)
        requests = [request for part in self.rounds for request in part.requests]

        def on_finished(place: int, response: Response) -> None:
            number, rest = divmod(place, share)
            self.rounds[number].take(rest, response)
            if self.rounds[number].whole:
                self._whole[number].set()

        began = self._clock()
        with tracing.span("generate", {"assay.items": len(requests)}):
            generator.generate(requests, on_finished)
        return self._clock() - began

    def end(self) -> None:
        """Nothing more is drawn of it; whoever waits need not."""
        for event in self._whole:
            event.set()

    # -- in the main thread -----------------------------------------------------------------------

    def failed(self) -> bool:
        """Whether it could not be drawn; waits for its responses."""
        return self.drawn.exception() is not None

    def parts(self) -> Iterator[list[Group]]:
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

    def _waited_for(self, number: int) -> list[Group]:
        part, began = self.rounds[number], self._clock()
        self._whole[number].wait()
        if not part.whole:
            self.drawn.result()
        drawn = self._clock()
        part.judged()
        self.blocked_s += drawn - began
        self.wait_s += self._clock() - drawn
        return part.groups(self.policy_step)

    def groups(self) -> list[Group]:
        """All of them, in the order of their draws."""
        return [group for part in self.parts() for group in part]


class BackgroundCollector:
    """Collects the groups of one step after another; a trainer.Source.

    Args:
        stream: of prompts; its cursor is moved by this collector only, and saved with it.
        generator: answers with `weights`.
        open_round: begins the judging of one portion.
        weights: of the policy.
        schedule: who draws what when.
        config: sizes of a step.
        ranks: the processes; their count divides `prompts_per_step`.
        clock: seconds.
    """

    def __init__(
        self,
        stream: PromptStream,
        generator: Generator,
        open_round: Callable[[], ScoringRound],
        *,
        weights: Weights,
        schedule: Schedule,
        config: RolloutConfig,
        ranks: Ranks,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stream = stream
        self._generator = generator
        self._open_round = open_round
        self._weights = weights
        self._schedule = schedule
        self._config = config
        self._ranks = ranks
        self._clock = clock
        self._flights: deque[Flight] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rollouts")
        self._broken = False

    def collect(self, policy_step: int) -> Collected:
        """The groups of the next step.

        Args:
            policy_step: optimizer steps that the policy has made.

        Raises:
            Exception: what drawing them raised.
            ConfigError: a prompt does not fit the policy's context.
        """
        flight = self.begin(policy_step)
        return self.finished(flight, policy_step)

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
        """What a step is given, once all of its groups are there."""
        groups = flight.groups()
        generate_s = flight.drawn.result()
        self._flights.popleft()
        tally = Tally()
        tally.add(groups)
        age = (policy_step - flight.policy_step) // self._schedule.updates
        return Collected(
            groups=deal(groups, self._ranks),
            judged=[rollout for group in groups for rollout in group],
            metrics={
                **tally.metrics(self._config.group_size),
                "rounds": 1.0,
                "surplus": 0.0,
                "stale_groups": float(len(groups) if age else 0),
                "generated_per_used": 1.0,
                "staleness": float(age),
            },
            generate_s=generate_s,
            wait_s=flight.wait_s,
            blocked_s=flight.blocked_s,
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, in plain containers; waits for it.

        Every process calls it: what was ordered is judged, and gathered.
        """
        saved: list[dict[str, Any]] = []
        stream = self._stream.state_dict()
        for flight in self._flights:
            if flight.failed():
                stream["cursor"] = flight.rounds[0].draws[0].number
                break
            try:
                groups = [group_to_plain(group) for group in flight.groups()]
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
                [group_from_plain(group, self._stream.draw) for group in one["groups"]],
            )
            for one in saved
        )

    def close(self) -> None:
        """Ends the thread, and what it draws. May be called twice."""
        self._weights.stop()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _order(self, step: int, policy_step: int) -> None:
        """Has the thread draw what the gate admits, with the weights as they are."""
        schedule, size = self._schedule, self._config.prompts_per_step * self._config.group_size
        weights: Any = None
        following = self._flights[-1].step + 1 if self._flights else step
        while following < schedule.steps and admits(
            following * size + 1,
            batch=size,
            version=step,
            max_staleness=schedule.max_staleness,
        ):
            if weights is None:
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
            )
            for start in range(0, len(draws), size)
        ]

    def _draw(self, flight: Flight, weights: Any) -> float:
        """In the thread. After a failure nothing is drawn: it would be out of order."""
        try:
            broken, self._broken = self._broken, True
            if broken:
                raise RuntimeError("the batch before it could not be drawn")
            self._weights.wear(weights)
            took = flight.draw(self._generator)
            self._broken = False
            return took
        finally:
            flight.end()
