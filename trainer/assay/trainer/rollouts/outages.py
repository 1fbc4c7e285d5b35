"""Outages: while the reward services are away, the step waits and keeps its responses.

1. UNREACHABLE, STARTING and DRAINING are outages, of the reward service or of one behind it. Other
   faults concern items, and stay.
2. Of items not judged in time one is asked again. If that meets an outage, all wait; if the service
   was never away, they are faults, DEADLINE_EXCEEDED.
3. In an outage one item at a time is asked, in turn. Once one is answered, all items without a
   judgement are asked again.
4. After `max_s`, or at an interrupt, the hold ends: the faults say so, and end the run.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Protocol, TypeVar

from assay.clients import Fault, Item, Result
from assay.clients.faults import make_fault
from assay.kit.errors import CallError, ConfigError
from assay.kit.reasons import Reason
from assay.kit.runs.progress import duration
from assay.trainer.errors import OutageError

AWAY = frozenset({Reason.UNREACHABLE, Reason.STARTING, Reason.DRAINING})
"""Reasons of faults that concern the service, not the item."""

_GIVEN_UP = "outage"
"""In a fault's metadata: why its hold ended, "over" or "interrupted"."""
_PROBE_S = 10.0
_FIRST_PAUSE_S = 0.25
_PAUSE_S = 5.0
_SLICE_S = 0.2
_SAY_EVERY_S = 60.0

T = TypeVar("T")
Places = list[int]


class Asks(Protocol):
    """Reaches the reward service; see `rollouts.scoring.BackgroundClient`."""

    def submit(self, items: Iterable[Item], *, timeout_s: float) -> Future[list[Result]]:
        """One result for each item, in order."""
        ...

    def submit_ready(self, timeout_s: float) -> Future[object]:
        """Whether the service answers; the future raises CallError where it does not."""
        ...


class Patience:
    """How long one process waits for outages, and what it shows meanwhile.

    Args:
        max_s: the longest hold, in seconds; 0 never holds.
        timeout_s: limit of one attempt to ask all again.

    Attributes:
        say: takes a line for people.
        aside: takes the text beside a progress bar; "" for nothing.
        interrupted: whether to end the hold.
        held_s: seconds of all holds so far.
    """

    def __init__(
        self,
        max_s: float,
        timeout_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.say: Callable[[str], None] = lambda _line: None
        self.aside: Callable[[str], None] = lambda _text: None
        self.interrupted: Callable[[], bool] = lambda: False
        self.held_s = 0.0
        self._max_s = max_s
        self._timeout_s = timeout_s
        self._clock = clock
        self._sleep = sleep
        self._since: float | None = None
        self._said_s = 0.0

    @property
    def max_s(self) -> float:
        """The longest hold, in seconds."""
        return self._max_s

    @property
    def holds(self) -> bool:
        """Whether it waits for outages at all."""
        return self._max_s > 0

    def settle(
        self,
        client: Asks,
        items: Sequence[Item],
        results: Sequence[Result],
        *,
        late: Iterable[int] = (),
        whole_groups: bool = False,
    ) -> list[Result]:
        """The results, after the items that an outage left without a judgement were asked again.

        `results` has one for each item; `late` are places of items not answered in time;
        `whole_groups` asks whole groups again, for verifiers that compare.
        """
        settled, waiting = list(results), list(late)
        if not self.holds:
            return settled
        away = self._away(items, settled, whole_groups)
        try:
            if waiting and not away:
                unit = _units(items, waiting, whole_groups)[0]
                answered = self._answered(client, [items[place] for place in unit]) is not None
                if answered or self.interrupted():
                    waiting = []
            if away or waiting:
                left = _whole(items, sorted({*away, *waiting}), whole_groups)
                return self._held(client, items, settled, left, whole_groups)
        except ConfigError:  # the client was closed
            return settled
        self._since = None
        return settled

    def _held(
        self,
        client: Asks,
        items: Sequence[Item],
        results: list[Result],
        left: Places,
        whole_groups: bool,
    ) -> list[Result]:
        began = self._clock()
        resumed = self._since is not None
        self._since = began if self._since is None else self._since
        count, turn, pause_s = len(left), 0, _FIRST_PAUSE_S
        if not resumed:
            self._said_s = began
            self.say(
                f"the reward services are away: {_why(results, left)}; the step is held with its "
                f"{count} unjudged responses, for at most {duration(self._max_s)} "
                "(reward.max_outage_s)"
            )
        try:
            while left:
                if self.interrupted() or self._clock() - self._since >= self._max_s:
                    self._give_up(results, left)
                    return results
                units = _units(items, left, whole_groups)
                unit = units[turn % len(units)]
                answers = self._answered(client, [items[place] for place in unit])
                if answers is None:
                    self._rest(pause_s)
                    pause_s, turn = min(2 * pause_s, _PAUSE_S), turn + 1
                    continue
                if _late(answers):
                    asked = left
                else:
                    _store(results, unit, answers)
                    asked = left = [place for place in left if place not in set(unit)]
                again = self._asked(client, [items[place] for place in asked], self._timeout_s)
                if again is not None:
                    _store(results, asked, again)
                    left = self._away(items, results, whole_groups)
        finally:
            self.held_s += self._clock() - began
            self.aside("")
        took_s, self._since = self._clock() - self._since, None
        self.say(
            f"the reward services are back after {took_s:.0f} s; {count} responses asked again"
        )
        return results

    def _away(self, items: Sequence[Item], results: Sequence[Result], whole_groups: bool) -> Places:
        found = [n for n, r in enumerate(results) if r.fault is not None and r.fault.reason in AWAY]
        return _whole(items, found, whole_groups)

    def _answered(self, client: Asks, items: Sequence[Item]) -> list[Result] | None:
        """Results of a few items; None where the services are away, or at an interrupt."""
        answers = self._asked(client, items, min(_PROBE_S, self._timeout_s))
        if answers is None or any(r.fault is not None and r.fault.reason in AWAY for r in answers):
            return None
        if _late(answers):
            try:
                self._waited(client.submit_ready(min(_PROBE_S, self._timeout_s)))
            except CallError:
                return None
        return answers

    def _asked(self, client: Asks, items: Sequence[Item], timeout_s: float) -> list[Result] | None:
        return self._waited(client.submit(items, timeout_s=timeout_s)) if items else []

    def _waited(self, future: Future[T]) -> T | None:
        """The future's result; None at an interrupt."""
        try:
            while not self.interrupted():
                try:
                    return future.result(_SLICE_S)
                except TimeoutError:
                    if future.done():
                        raise
                    self._tell()
        finally:
            future.cancel()
        return None

    def _rest(self, pause_s: float) -> None:
        ends_s = self._clock() + pause_s
        while (left_s := ends_s - self._clock()) > 0 and not self.interrupted():
            self._sleep(min(left_s, _SLICE_S))
            self._tell()

    def _tell(self) -> None:
        """Shows the state of the hold beside the bar, and sometimes as a line."""
        if self._since is None:
            return
        now = self._clock()
        so_far = f"{duration(now - self._since)} of at most {duration(self._max_s)}"
        self.aside(f"held {so_far}")
        if now - self._said_s >= _SAY_EVERY_S:
            self._said_s = now
            self.say(f"the reward services are still away, held {so_far}")

    def _give_up(self, results: list[Result], left: Places) -> None:
        interrupted, cause = self.interrupted(), _why(results, left)
        for place in left:
            results[place] = self.ended(results[place], cause, interrupted=interrupted)

    def ended(self, result: Result, cause: str, *, interrupted: bool) -> Result:
        """A result whose hold ended in vain: it ends the run."""
        why = (
            "the run was interrupted while it waited for them"
            if interrupted
            else f"longer than reward.max_outage_s = {self._max_s:g} allows"
        )
        fault = result.fault
        reason = Reason(fault.reason) if fault and fault.reason in AWAY else Reason.UNREACHABLE
        told = make_fault(reason, f"the reward services are away ({cause}), {why}")
        mark = {**told.metadata, _GIVEN_UP: "interrupted" if interrupted else "over"}
        return Result(result.id, dataclasses.replace(told, metadata=mark))


Outage = tuple[str, int, bool]
"""(message of a hold that ended, number of its results, whether the run was interrupted)."""


def outage_of(results: Iterable[Result]) -> Outage | None:
    """The ended hold among these results; None where there is none."""
    faults = [r.fault for r in results if r.fault is not None and _GIVEN_UP in r.fault.metadata]
    if not faults:
        return None
    interrupted = any(fault.metadata[_GIVEN_UP] == "interrupted" for fault in faults)
    return faults[0].message, len(faults), interrupted


def given_up_by(told: Iterable[Outage | None]) -> OutageError | None:
    """The error that ends the run where a hold ended, given the outages of all processes."""
    given = [one for one in told if one is not None]
    if not given:
        return None
    text = f"{given[0][0]}; {sum(count for _, count, _ in given)} responses have no judgement"
    return OutageError(text, interrupted=any(interrupted for *_, interrupted in given))


def given_up(results: Iterable[Result]) -> OutageError | None:
    """`given_up_by` for one process."""
    return given_up_by([outage_of(results)])


def refuse_given_up(results: Iterable[Result]) -> None:
    """For a run of one process.

    Raises:
        OutageError: a hold ended.
    """
    error = given_up(results)
    if error is not None:
        raise error


def _store(results: list[Result], places: Places, answers: Sequence[Result]) -> None:
    for place, result in zip(places, answers, strict=True):
        results[place] = dataclasses.replace(result, id=results[place].id)


def _late(results: Sequence[Result]) -> bool:
    return any(r.fault is not None and r.fault.reason == Reason.DEADLINE_EXCEEDED for r in results)


def _why(results: Sequence[Result], left: Places) -> str:
    """The message of the first outage among the faults."""
    faults = [fault for place in left if isinstance(fault := results[place].fault, Fault)]
    away = next((fault for fault in faults if fault.reason in AWAY), None)
    return away.message if away else "no answer within the time-out"


def _whole(items: Sequence[Item], places: Places, whole_groups: bool) -> Places:
    """The places, with all others of their groups."""
    if not whole_groups:
        return places
    groups = {items[place].group_id for place in places}
    return [place for place, item in enumerate(items) if item.group_id in groups]


def _units(items: Sequence[Item], places: Places, whole_groups: bool) -> list[Places]:
    if not whole_groups:
        return [[place] for place in places]
    groups: dict[str, Places] = {}
    for place in places:
        groups.setdefault(items[place].group_id, []).append(place)
    return list(groups.values())
