"""Counts of verdicts, faults and suspicions by verifier, and the metrics of the server.

Verifiers are counted by their registered name: an unknown name that a caller sent counts as none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from prometheus_client import Gauge
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from assay.kit.metrics import OTHER, FunctionCounter, ItemMetrics, TableCounter, TableHistogram
from assay.kit.runs.agreement import cohen_kappa
from assay.kit.runs.appeals import AppealTally, ErrorBounds, ErrorRates
from assay.kit.runs.drift import RiseWatch
from assay.reward_server.domain import Appeal, Fault, Judgement
from assay.reward_server.journal.writer import Journal
from assay.reward_server.pending import PendingScore
from assay.reward_server.profiles import Profile
from assay.reward_server.profiles.appeals import failed_appeal
from assay.reward_server.workers.codec import ScorePool

MAX_LABEL_VALUES = 100
"""Values of a caller's label that are counted by themselves: the first ones since the start."""
VALUES = (-1.0, -0.5, -0.1, 0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0, 2.0)
"""Upper bounds of the buckets of rewards: what is 0 or 1 is told from what is nearly so."""


class AppealCounts(Collector):
    """Counts appeals, and estimates from them how often the first verifiers err.

    Attributes:
        pairs: (profile, component, "called" or "drawn", first verdict, second verdict) -> items; a
            second verifier without an answer counts as "fault".
    """

    _labels = ("profile", "component", "kind", "bound")

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, ...]] = Counter()
        self._tallies: dict[tuple[str, str], tuple[str, AppealTally]] = {}

    def add(self, items: Sequence[PendingScore]) -> None:
        """Counts answered items of profiles; others are passed over."""
        for item in items:
            served, outcome = item.served, item.outcome
            if served is None or served.road != "composite" or item.item is None:
                continue
            rules = served.verifier.appeals if isinstance(served.verifier, Profile) else {}
            if not rules:
                continue
            appeal = failed_appeal(outcome) if isinstance(outcome, Fault) else outcome.appeal
            if appeal is None or appeal.component not in rules:
                continue
            self._note(served.spec.name, appeal)
            tally = self._tally(served.spec.name, served.spec.version, appeal.component)
            bound, second = rules[appeal.component].accepts_at, appeal.second
            tally.add(
                item.item.content() or b"",
                accepted=appeal.first.reward >= bound,
                probability=appeal.probability,
                asked=second is not None or isinstance(outcome, Fault),
                second=None if second is None else second.reward >= bound,
            )

    def rates(self) -> dict[tuple[str, str], ErrorRates]:
        """How often the first verifier of a (profile, component) errs."""
        return {name: tally.rates() for name, (_, tally) in tuple(self._tallies.items())}

    def describe(self) -> list[Metric]:
        """Name and meaning, without a sample."""
        return [self._family()]

    def collect(self) -> list[Metric]:
        """The rates of now."""
        family = self._family()
        for (profile, component), rates in self.rates().items():
            for kind in ("false_positive", "false_negative"):
                for bound, value in getattr(rates, kind)._asdict().items():
                    if value is not None:
                        family.add_metric(
                            (profile, component, kind.replace("_", "-"), bound), value
                        )
        return [family]

    def lines(self) -> list[str]:
        """The rates, a line for each component, for a log."""
        return [
            f"appeals of {component} of {profile}: {rates.asked} of {rates.served} items; its "
            f"verifier accepts {_percent(rates.false_positive)} of what the second rejects, and "
            f"rejects {_percent(rates.false_negative)} of what that accepts"
            for (profile, component), rates in self.rates().items()
        ]

    def _note(self, profile: str, appeal: Appeal) -> None:
        called = appeal.probability == 1.0 and not appeal.drawn
        if appeal.second is not None or appeal.drawn or called:
            why, first = "drawn" if appeal.drawn else "called", appeal.first.verdict
            second = "fault" if appeal.second is None else appeal.second.verdict
            self.pairs[profile, appeal.component, why, first, second] += 1

    def _tally(self, profile: str, version: str, component: str) -> AppealTally:
        """Of this version of a profile: another one's rates are others."""
        found = self._tallies.get((profile, component))
        if found is None or found[0] != version:
            found = self._tallies[profile, component] = (version, AppealTally())
        return found[1]

    def _family(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(
            "assay_reward_first_verifier_error_ratio",
            "Errors of a profile's first verifier by its appeals: a 95 % confidence sequence",
            labels=self._labels,
        )


def _percent(rate: ErrorBounds) -> str:
    value = "an unknown share" if rate.value is None else f"{100 * rate.value:.1f} %"
    return f"{value} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


class WatchedCanaries(Protocol):
    """What the canaries of a profile say."""

    @property
    def recent(self) -> Sequence[tuple[str, str]]:
        """The last known and given verdicts."""

    @property
    def watches(self) -> Mapping[str, RiseWatch]:
        """By what they watch."""

    @property
    def alarm(self) -> bool:
        """Whether something has changed."""


class RewardMetrics:
    """Counts judgements, and what every service counts.

    Args:
        labels: names of the callers' labels that items are counted by.

    Attributes:
        verdicts: (verifier, verdict) -> items.
        suspicions: (verifier, suspicion) -> items. Disagreeing tiers of `math` are one of them.
        items: the metrics that every service has.
        appeals: of profiles.
    """

    def __init__(self, labels: Sequence[str] = ()) -> None:
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.suspicions: Counter[tuple[str, str]] = Counter()
        self.items = ItemMetrics("reward", "verifier")
        self.appeals = AppealCounts()
        self._suspicious: Counter[tuple[str, ...]] = Counter()
        self._cached: Counter[tuple[str, ...]] = Counter()
        self._labelled: Counter[tuple[str, ...]] = Counter()
        self._known: dict[str, set[str]] = {name: set() for name in labels}
        self._values = TableHistogram(
            "assay_reward_value",
            "Rewards of judgements; a fault has none and is in none of the buckets",
            "verifier",
            VALUES,
        )
        self._sums: Counter[tuple[str, str]] = Counter()
        self._tables = [
            TableCounter(
                "assay_reward_given",
                "Rewards of judgements added up, without their sign: those above 0, those below",
                ("verifier", "sign"),
                self._sums,
            ),
            TableCounter(
                "assay_reward_judgements",
                "Items answered with a judgement",
                ("verifier", "verdict"),
                self.verdicts,
            ),
            TableCounter(
                "assay_reward_suspicious_judgements",
                "Judgements with a sign of gaming",
                ("verifier",),
                self._suspicious,
            ),
            TableCounter(
                "assay_reward_cache_hits",
                "Judgements that were computed for an equal item",
                ("verifier",),
                self._cached,
            ),
            TableCounter(
                "assay_reward_appeals",
                "Verdicts that a second verifier was asked about, for their kind or by chance",
                ("profile", "component", "why", "first", "second"),
                self.appeals.pairs,
            ),
            TableCounter(
                "assay_reward_labelled_items",
                "Items answered, by a label of --metric-labels: its first values, then other",
                ("label", "value", "outcome"),
                self._labelled,
            ),
        ]
        self._canaries: Counter[tuple[str, str]] = Counter()
        self._tables.append(
            TableCounter(
                "assay_reward_canaries",
                "Canaries: agreed or disagreed with their known verdict; fault; unasked (genrm had "
                "kept the answer); dropped (too much to do)",
                ("verifier", "fate"),
                self._canaries,
            )
        )
        self._agreement = Gauge(
            "assay_reward_canary_agreement",
            "Share of the last canaries that got their known verdict",
            ("verifier",),
            registry=None,
        )
        self._kappa = Gauge(
            "assay_reward_canary_kappa",
            "Cohen's kappa of known and given verdicts of the last canaries",
            ("verifier",),
            registry=None,
        )
        self._evidence = Gauge(
            "assay_reward_canary_evidence",
            "That more verdicts of canaries are wrong, or changed, than at reference; 1: an alarm",
            ("verifier", "what"),
            registry=None,
        )
        self._alarm = Gauge(
            "assay_reward_canary_alarm",
            "1 once a profile's canaries have shown a change; until it is read anew or a restart",
            ("verifier",),
            registry=None,
        )
        self._queued = Gauge(
            "assay_reward_queue_items", "Items that wait for a worker", registry=None
        )
        self._busy = Gauge(
            "assay_reward_workers_busy", "Workers that judge an item at this moment", registry=None
        )
        self._restarts = FunctionCounter(
            "assay_reward_worker_restarts",
            "Workers started in place of one that died, was killed or retired",
        )
        self._journal = FunctionCounter(
            "assay_reward_journal_entries",
            "Entries of the journal: written, dropped (too fast, or it is off), expired (too old)",
            "fate",
        )
        self._journal_on = Gauge(
            "assay_reward_journal_on",
            "1 while there is a journal and it writes, 0 when it has turned itself off",
            registry=None,
        )
        self._journal_queued = Gauge(
            "assay_reward_journal_queue_items", "Entries that wait to be written", registry=None
        )
        self._journal_bytes = Gauge(
            "assay_reward_journal_bytes", "Bytes of the journal's file and its log", registry=None
        )

    @property
    def collectors(self) -> list[Collector]:
        """The collectors to register."""
        pool = [self._queued, self._busy, self._restarts]
        journal = [
            self._journal,
            self._journal_on,
            self._journal_queued,
            self._journal_bytes,
        ]
        tables = [self._values, *self._tables, self.appeals]
        canaries = [self._agreement, self._kappa, self._evidence, self._alarm]
        return [*self.items.collectors, *tables, *canaries, *pool, *journal]

    def watch(self, pool: ScorePool) -> None:
        """Adds the metrics of a pool of workers."""
        self._queued.set_function(lambda: pool.queued)
        self._busy.set_function(lambda: pool.busy)
        self._restarts.function = lambda: pool.restarts

    def watch_journal(self, journal: Journal) -> None:
        """Adds the metrics of the journal."""
        self._journal.by["written"] = lambda: journal.state().written
        self._journal.by["dropped"] = lambda: journal.state().dropped
        self._journal.by["expired"] = lambda: journal.state().expired
        self._journal_on.set_function(lambda: float(not journal.state().trouble))
        self._journal_queued.set_function(lambda: journal.state().waiting)
        self._journal_bytes.set_function(journal.size_bytes)

    def judged(self, verifier: str, judgement: Judgement, *, from_cache: bool) -> None:
        """Counts a judgement."""
        self.verdicts[verifier, judgement.verdict] += 1
        reward = judgement.reward
        self._values.observe(reward, verifier)
        self._sums[verifier, "positive" if reward >= 0 else "negative"] += abs(reward)  # type: ignore[assignment]  # a Counter of floats
        if from_cache:
            self._cached[(verifier,)] += 1
        if judgement.suspicions:
            self._suspicious[(verifier,)] += 1
            for suspicion in judgement.suspicions:
                self.suspicions[verifier, suspicion] += 1

    def canary(self, verifier: str, fate: str) -> None:
        """Counts a canary: it is none of the items."""
        self._canaries[verifier, fate] += 1

    def canaries_seen(self, verifier: str, watch: WatchedCanaries) -> None:
        """Shows what the canaries of a profile say now."""
        self._alarm.labels(verifier).set(watch.alarm)
        if watch.recent:
            agreed = sum(known == given for known, given in watch.recent)
            self._agreement.labels(verifier).set(agreed / len(watch.recent))
            kappa = cohen_kappa(watch.recent)
            self._kappa.labels(verifier).set(math.nan if kappa is None else kappa)
        for what, one in watch.watches.items():
            self._evidence.labels(verifier, what).set(one.evidence)

    def canaries_gone(self, verifier: str) -> None:
        """Forgets a profile's canaries but their counts."""
        for gauge in (self._alarm, self._agreement, self._kappa, self._evidence):
            gauge.remove_by_labels({"verifier": verifier})

    def labelled(self, items: Sequence[PendingScore]) -> None:
        """Counts answered items by the labels that the operator chose."""
        for name, values in self._known.items():
            for item in items:
                value = item.labels.get(name)
                if value is None:
                    continue
                if value not in values:
                    if len(values) < MAX_LABEL_VALUES:
                        values.add(value)
                    else:
                        value = OTHER
                self._labelled[name, value, "fault" if item.faulted else "judgement"] += 1

    def lines(self) -> list[str]:
        """The counts, a line for each kind, for a log."""
        kinds = (
            ("verdicts", self.verdicts),
            ("faults", self.items.faults),
            ("suspicions", self.suspicions),
        )
        return [
            f"{kind}: "
            + ", ".join(f"{name} {what} {n}" for (name, what), n in counter.most_common())
            for kind, counter in kinds
            if counter
        ] + self.appeals.lines()
