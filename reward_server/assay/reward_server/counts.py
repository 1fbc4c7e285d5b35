"""Counts of verdicts, faults and suspicions by verifier, and the metrics of the server.

Verifiers are counted by their registered name: an unknown name that a caller sent counts as none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from prometheus_client import Gauge
from prometheus_client.registry import Collector

from assay.kit.metrics import OTHER, FunctionCounter, ItemMetrics, TableCounter, TableHistogram
from assay.kit.runs.agreement import cohen_kappa
from assay.kit.runs.drift import RiseWatch
from assay.reward_server.domain import Judgement
from assay.reward_server.journal.writer import Journal
from assay.reward_server.pending import PendingScore
from assay.reward_server.workers.codec import ScorePool

MAX_LABEL_VALUES = 100
"""Values of a caller's label that are counted by themselves: the first ones since the start."""
VALUES = (-1.0, -0.5, -0.1, 0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0, 2.0)
"""Upper bounds of the buckets of rewards: what is 0 or 1 is told from what is nearly so."""


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
    """

    def __init__(self, labels: Sequence[str] = ()) -> None:
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.suspicions: Counter[tuple[str, str]] = Counter()
        self.items = ItemMetrics("reward", "verifier")
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
        canaries = [self._agreement, self._kappa, self._evidence, self._alarm]
        return [*self.items.collectors, self._values, *self._tables, *canaries, *pool, *journal]

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
        ]
