"""What the judges have done so far, for Prometheus, by model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import Collector

from assay.clients.judging.rubrics import CriterionResult, RubricJudgement
from assay.clients.judging.types import (
    GroupRanking,
    ModelJudgement,
    PairJudgement,
    StepScores,
)
from assay.genrm.engines.base import Answer, JudgeEngine, TokenCounts
from assay.genrm.self_verification import DialogueScores
from assay.kit.batch.coroutines import CoroutinePool
from assay.kit.metrics import OTHER, UNKNOWN, FunctionCounter, ItemMetrics

KINDS: dict[type, str] = {
    ModelJudgement: "response",
    PairJudgement: "pair",
    GroupRanking: "group",
    RubricJudgement: "rubric",
    StepScores: "steps",
    DialogueScores: "dialogue",
}


MAX_RUNS = 100
"""Runs that are counted by themselves: the first ones since the start."""


class JudgeMetrics:
    """Counts results and what engines answered.

    items = judgements + faults + abandoned + those in progress. An item that asks no model counts
    for the model "unknown". `by_run`: cost is counted by the callers' runs, too.
    """

    def __init__(self, *, by_run: bool = False) -> None:
        self.items = ItemMetrics("genrm", "model")
        self._judgements = Counter(
            "assay_genrm_judgements",
            "Items answered with a judgement: response, pair, group, rubric, steps, dialogue",
            ("model", "kind"),
            registry=None,
        )
        self._mass = Histogram(
            "assay_genrm_verdict_mass",
            "Share of the model's probability that the verdicts of a judgement held",
            ("model",),
            buckets=(0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0),
            registry=None,
        )
        self._disagreement = Histogram(
            "assay_genrm_disagreement",
            "How far the models of an ensemble are apart in a judgement, from 0 to 1; model is the "
            "first of them",
            ("model",),
            buckets=(0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0),
            registry=None,
        )
        self._criteria = Counter(
            "assay_genrm_criteria",
            "Criteria of judged rubrics: read, unread (a fault), unasked (the gate was settled)",
            ("model", "outcome"),
            registry=None,
        )
        self._letter_gap = Histogram(
            "assay_genrm_letter_gap",
            "How far a judgement moved when the letters of its verdicts changed sides",
            ("model",),
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0),
            registry=None,
        )
        self._answers = Counter(
            "assay_genrm_engine_answers", "Answers of a model's engine", ("model",), registry=None
        )
        self._tokens = Counter(
            "assay_genrm_tokens",
            "Tokens of engine answers: prompt, cached (a part of prompt), completion",
            ("model", "kind"),
            registry=None,
        )
        self._runs: dict[str, None] = {}
        self._by_run = by_run
        self.shared_answers = Counter(
            "assay_genrm_shared_answers",
            "Requests that calls may share: hit (kept), joined (in flight), miss (asked)",
            ("model", "result"),
            registry=None,
        )
        self._tenant_tokens = Counter(
            "assay_genrm_tenant_tokens",
            "Tokens of a tenant's engine answers: prompt, cached (a part of prompt), completion",
            ("tenant", "model", "kind"),
            registry=None,
        )
        self._tenant_seconds = Counter(
            "assay_genrm_tenant_engine_seconds",
            "Engine time of a tenant's requests; those at it together share it",
            ("tenant", "model"),
            registry=None,
        )
        self._tenant_cost = Counter(
            "assay_genrm_tenant_cost",
            "What a tenant's requests cost, in the currency of the prices",
            ("tenant", "model"),
            registry=None,
        )
        self._run_cost = Counter(
            "assay_genrm_run_cost",
            "What a run's requests cost, with --metric-labels run: the first 100 runs, then other",
            ("run",),
            registry=None,
        )
        self._queued = Gauge(
            "assay_genrm_queue_items", "Items that wait for a model", ("model",), registry=None
        )
        self._replicas = Gauge(
            "assay_genrm_replicas", "Engines of a model that answer", ("model",), registry=None
        )
        self._passes = FunctionCounter(
            "assay_genrm_batches",
            "Forward passes of a model of the embedded engine",
            "model",
        )
        self._rows = FunctionCounter(
            "assay_genrm_batch_rows", "Sequences in those forward passes, added up", "model"
        )
        self._restarts = FunctionCounter(
            "assay_genrm_worker_restarts", "Engines started in place of one that died", "model"
        )

    @property
    def collectors(self) -> list[Collector]:
        """To be registered."""
        own = [self._judgements, self._mass, self._letter_gap, self._answers, self._tokens]
        own += [self._queued, self._replicas, self._disagreement, self._criteria]
        own += [self.shared_answers, self._tenant_tokens, self._tenant_seconds]
        own += [self._tenant_cost, self._run_cost]
        return [*self.items.collectors, *own, self._passes, self._rows, self._restarts]

    def watch(self, model: str, pool: CoroutinePool, engine: JudgeEngine | None) -> None:
        """Reads pool and engine at each scrape; the model "" stands for runs that ask nobody."""
        self._queued.labels(model or UNKNOWN).set_function(lambda: pool.queued)
        if engine is not None:
            self._replicas.labels(model).set_function(lambda: engine.tally.ready)
            for counter, name in (
                (self._passes, "batches"),
                (self._rows, "rows"),
                (self._restarts, "restarts"),
            ):
                # An engine in place of another goes on with its counts.
                before = counter.by[model]() if model in counter.by else 0
                counter.by[model] = partial(_count, before, engine, name)

    def answered(self, model: str, answer: Answer) -> None:
        """Counts an answer of a model's engine."""
        self._answers.labels(model).inc()
        for kind, count in _kinds(answer.tokens):
            self._tokens.labels(model, kind).inc(count)

    def shared(self, model: str, result: str) -> None:
        """Counts a request that could be shared: "hit", "joined" or "miss"."""
        self.shared_answers.labels(model, result).inc()

    def paid(
        self,
        model: str,
        tenant: str,
        run: str,
        tokens: TokenCounts | None,
        *,
        engine_s: float,
        cost: float,
    ) -> None:
        """Counts what a request took of a model; None tokens where it has no answer."""
        for kind, count in _kinds(tokens) if tokens is not None else ():
            self._tenant_tokens.labels(tenant, model, kind).inc(count)
        self._tenant_seconds.labels(tenant, model).inc(engine_s)
        self._tenant_cost.labels(tenant, model).inc(cost)
        if self._by_run and run:
            if len(self._runs) < MAX_RUNS:
                self._runs.setdefault(run)
            self._run_cost.labels(run if run in self._runs else OTHER).inc(cost)

    def judged(self, model: str, kind: str, mass: float | None, letter_gap: float | None) -> None:
        """Counts an item answered with a judgement; `model` is empty where nobody was asked.

        `mass` is the share that its verdicts held and `letter_gap` how far they moved with their
        letters, if these are known.
        """
        self._judgements.labels(model or UNKNOWN, kind).inc()
        if mass is not None:
            self._mass.labels(model).observe(mass)
        if letter_gap is not None:
            self._letter_gap.labels(model).observe(letter_gap)

    def disagreed(self, model: str, how_far: float | None) -> None:
        """Counts how far an ensemble's models are apart; None where one judged."""
        if how_far is not None:
            self._disagreement.labels(model).observe(how_far)

    def criteria(self, model: str, results: Iterable[CriterionResult]) -> None:
        """Counts what came of a rubric's criteria."""
        for one in results:
            outcome = "unasked" if one.fault is None else "unread"
            outcome = outcome if one.score is None else "read"
            self._criteria.labels(model, outcome).inc()


def _count(before: float, engine: JudgeEngine, name: str) -> float:
    return before + float(getattr(engine.tally, name))


def _kinds(tokens: TokenCounts) -> tuple[tuple[str, int], ...]:
    return (
        ("prompt", tokens.prompt),
        ("cached", tokens.cached),
        ("completion", tokens.completion),
    )
