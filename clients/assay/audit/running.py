"""An audit from rows to findings: asks a grader through a function, within a budget."""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from assay.audit.dress import DRESSES, Dress, dresses_read, told_dress
from assay.audit.probes import AuditRow, Execute, Probe, ProbeClass, Prober, Ruling, Scale, Subject

CHUNK = 128
_CALIBRATED_ROWS = 40
_MOSTLY = 0.5
_OFTEN_ROWS, _OFTEN_SHARE = 3, 0.03
_PLAIN_KINDS = frozenset((
    "right-answer", "given-right", "given-wrong", "other-row", "off-by-one", "another-choice",
    "opposite", "another-word", "program", "mutant",
))  # fmt: skip
"""Classes whose responses give one answer of the right sort: who reads any reads these."""
Ask = Callable[[Sequence[Probe]], Sequence[Ruling]]


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """How an audit goes.

    Attributes:
        scale: which rewards accept. None: what right answers get says how high it is.
        share: of the way from the lowest to the highest reward, from which on one accepts.
        calls, seconds: at most so many of the grader, altogether.
        tolerance: how far a number may be off and be right, relative to the right one.
        form: of an answer that the grader reads, beside those that the audit knows.
        words, lengths: texts and numbers of the grader's own source.
        execute: runs programs of Python in a sandbox. None: there is none.
        seed: of all that is drawn.
    """

    scale: Scale | None = None
    share: float = 0.5
    calls: int = 100_000
    seconds: float = 600.0
    tolerance: float = 0.0
    form: Dress | None = None
    words: Sequence[str] = ()
    lengths: Sequence[int] = ()
    execute: Execute | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """A probe and what was said of it."""

    probe: Probe
    said: Ruling


@dataclass(slots=True)
class Findings:
    """What an audit found.

    Attributes:
        rows: those that were asked about.
        scale: which rewards accepted.
        dresses: how well right answers are paid in each form, 0 to 1.
        worn: the names of those that the engines used.
        is_read: whether some right answer was accepted in some form, where there was one to ask.
        classes: of all engines, by name, with the engine's name.
        judged: all that was asked.
        cut: the engines that the budget cut short.
    """

    rows: Sequence[AuditRow]
    scale: Scale = field(default_factory=Scale)
    dresses: dict[str, float] = field(default_factory=dict)
    worn: tuple[str, ...] = ()
    is_read: bool = True
    classes: dict[str, tuple[str, ProbeClass]] = field(default_factory=dict)
    judged: list[Judged] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def of(self, kind: str) -> list[Judged]:
        """What was asked of a class."""
        return [one for one in self.judged if one.probe.kind == kind]

    @property
    def holes(self) -> list[Judged]:
        """What was accepted and must not be, without what is only a warning."""
        accepted = [
            one
            for one in self.judged
            if one.probe.wants == "refuse"
            and self.classes[one.probe.kind][1].severity == "hole"
            and self.scale.accepts(one.said)
        ]
        often = self._often()
        return [
            one
            for one in accepted
            if not self._is_likely(one) or (one.probe.kind, one.probe.note) in often
        ]

    def _is_likely(self, one: Judged) -> bool:
        return self.classes[one.probe.kind][1].likely

    def _often(self) -> set[tuple[str, str]]:
        """The rules of which too many rows' probes are accepted for a chance."""
        said = [one for one in self.judged if one.said.reward is not None and self._is_likely(one)]
        asked = _rows_of(said)
        hits = _rows_of(one for one in said if self.scale.accepts(one.said))
        return {
            rule
            for rule, rows in hits.items()
            if len(rows) >= max(_OFTEN_ROWS, _OFTEN_SHARE * len(asked[rule]))
        }

    @property
    def fault_share(self) -> float:
        """The share of faults where one answer is given as the grader reads it best; 1 of none."""
        plain = [one for one in self.judged if self._is_plain(one.probe)] or self.judged
        faults = sum(one.said.reward is None for one in plain)
        return faults / len(plain) if plain else 1.0

    @property
    def could_run(self) -> bool:
        """Whether the grader judged most of what it should be able to read, and reads an answer."""
        return (
            self.is_read
            and self.fault_share <= _MOSTLY
            and any(one.said.reward is not None for one in self.judged)
        )

    @property
    def exit_code(self) -> int:
        """1: a hole; 2: it could not be run; 0: neither."""
        if self.holes:
            return 1
        return 0 if self.could_run else 2

    def _is_plain(self, probe: Probe) -> bool:
        return probe.kind in _PLAIN_KINDS and probe.dress in ("", *self.worn[:1])


class ProbeAsker:
    """Asks in chunks, keeps to the budget, and knows what was asked before.

    Args:
        ask: says of probes what the grader says.
        known: what it said before, by the probe's key.
        keep: gets each new answer.
        step: is told after each chunk how many answers there are, faults among them included.
    """

    def __init__(
        self,
        ask: Ask,
        plan: AuditPlan,
        *,
        known: Mapping[str, Ruling] | None = None,
        keep: Callable[[Probe, Ruling], None] = lambda _probe, _said: None,
        step: Callable[[int, int], None] = lambda _done, _faults: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._known = dict(known or {})
        self._keep = keep
        self._step = step
        self._clock = clock
        self._until = clock() + plan.seconds
        self.left = plan.calls
        self._done = self._faults = 0

    def seconds_left(self) -> float:
        """Until the budget's time is up."""
        return self._until - self._clock()

    def answers(self, probes: Sequence[Probe], until_s: float = -math.inf) -> list[Ruling]:
        """What is said of the first of the probes: all of them where calls and time suffice.

        It stops where fewer than `until_s` seconds are left.
        """
        found: list[Ruling] = []
        for start in range(0, len(probes), CHUNK):
            chunk = probes[start : start + min(CHUNK, self.left)]
            if not chunk or (self.seconds_left() <= max(0.0, until_s) and found):
                break
            said = self._chunk(chunk)
            self.left -= len(chunk)
            self._done += len(chunk)
            self._faults += sum(one.reward is None for one in said)
            self._step(self._done, self._faults)
            found += said
        return found

    def _chunk(self, chunk: Sequence[Probe]) -> list[Ruling]:
        keys = [probe.key for probe in chunk]
        new = [one for one in zip(chunk, keys, strict=True) if one[1] not in self._known]
        said = self._ask([probe for probe, _ in new]) if new else ()
        asked = {key: ruling for (_, key), ruling in zip(new, said, strict=True)}
        for probe, key in new:
            if key not in self._known:
                self._known[key] = asked[key]
                self._keep(probe, asked[key])
        return [self._known[key] for key in keys]


def carry_out(
    rows: Sequence[AuditRow], probers: Sequence[Prober], asker: ProbeAsker, plan: AuditPlan
) -> Findings:
    """Finds the forms that the grader reads, then lets each engine ask.

    Each engine may use an even part of the calls and of the time that are left.
    """
    found = Findings(rows)
    began = asker.seconds_left()
    told = plan.form or told_dress([row.prompt for row in rows])
    best = _calibrate(rows, asker, plan, found, told)
    found.scale = plan.scale or _scale(best, plan.share)
    found.dresses = _shares(found)
    judged = [one.said for one in found.judged if one.said.reward is not None]
    found.is_read = not judged or any(map(found.scale.accepts, judged))
    dresses = dresses_read(found.dresses, told=told)
    found.worn = tuple(dress.name for dress in dresses)
    subject = Subject(
        rows,
        dresses,
        frozenset(name for name, paid in found.dresses.items() if paid > 0),
        found.scale,
        plan.words,
        plan.lengths,
        plan.tolerance,
        execute=plan.execute,
        seed=plan.seed,
    )
    found.judged.clear()
    for number, prober in enumerate(probers):
        for one in prober.classes:
            found.classes[one.name] = (prober.name, one)
        left = len(probers) - number
        share = replace(subject, calls=asker.left // left)
        until_s = asker.seconds_left() * (left - 1) / left
        _let_ask(prober, share, asker, until_s, found)
    found.seconds = began - asker.seconds_left()
    return found


def _rows_of(judged: Iterable[Judged]) -> dict[tuple[str, str], set[int]]:
    """The rows of each rule: a class and a note."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for one in judged:
        found[one.probe.kind, one.probe.note].add(one.probe.row)
    return found


def _let_ask(
    prober: Prober, subject: Subject, asker: ProbeAsker, until_s: float, found: Findings
) -> None:
    """Runs one engine until it has no more to ask, or its part of the budget is spent."""
    asking = prober.ask(subject)
    spent = 0
    try:
        probes = next(asking)
        while True:
            allowed = probes[: max(0, subject.calls - spent)]
            said = asker.answers(allowed, until_s)
            spent += len(said)
            found.judged += [Judged(a, b) for a, b in zip(probes, said, strict=False)]
            if len(said) < len(probes):
                found.cut.append(prober.name)
                asking.close()
                return
            probes = asking.send(said)
    except StopIteration:
        return


def _calibrate(
    rows: Sequence[AuditRow],
    asker: ProbeAsker,
    plan: AuditPlan,
    found: Findings,
    told: Dress | None,
) -> list[float]:
    """Asks for right answers in every form; the best reward of each row."""
    dresses = (*DRESSES, told) if told else DRESSES
    known = [place for place, row in enumerate(rows) if row.truth.texts and row.tests is None]
    Subject(rows, (), seed=plan.seed).draws("calibration").shuffle(known)
    known = known[: min(_CALIBRATED_ROWS, max(1, asker.left // (4 * len(dresses))))]
    probes = [
        Probe(row, "calibration", dress.wear(rows[row].truth.text), "accept", "", dress.name)
        for row in known
        for dress in dresses
    ]
    probes += [
        Probe(place, "calibration", right, "accept")
        for place, row in enumerate(rows[:_CALIBRATED_ROWS])
        for right in row.right[:1]
    ]
    best: dict[int, list[float]] = defaultdict(list)
    for probe, said in zip(probes, asker.answers(probes), strict=False):
        found.judged.append(Judged(probe, said))
        if said.reward is not None:
            best[probe.row].append(said.reward)
    return [max(rewards) for rewards in best.values()]


def _scale(best: Sequence[float], share: float) -> Scale:
    """From 0 to what right answers get, and at least to 1."""
    high = statistics.median(best) if best else 1.0
    return Scale(0.0, max(1.0, high), share)


def _shares(found: Findings) -> dict[str, float]:
    """How well right answers are paid in each form: 0 to 1, where one that is refused is 0."""
    counts: dict[str, list[float]] = defaultdict(list)
    low, high = found.scale.low, found.scale.high
    for one in found.judged:
        if one.probe.dress:
            paid = one.said.reward if found.scale.accepts(one.said) else None
            share = 0.0 if paid is None else min(1.0, (paid - low) / (high - low))
            counts[one.probe.dress].append(share)
    return {name: sum(paid) / len(paid) for name, paid in counts.items()}


def rows_by_use(rows: Sequence[AuditRow]) -> Iterator[tuple[str, int]]:
    """How many rows there are of each sort of answer, the most first."""
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts["program" if row.tests is not None else row.truth.sort] += 1
    yield from sorted(counts.items(), key=lambda one: -one[1])
