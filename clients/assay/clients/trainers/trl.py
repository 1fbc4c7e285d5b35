"""A reward function for TRL's trainers (1.16: GRPOTrainer, RLOOTrainer), by a reward server.

    reward = reward_function("127.0.0.1:50051", task="math")
    trainer = GRPOTrainer(model, reward_funcs=reward, train_dataset=rows, args=args)

A fault is None, of which TRL makes this:

1. As the *only* reward function: TRL leaves the row out of the group's mean and deviation and gives
it the advantage 0. Its tokens still count in the loss's denominator, and in the KL and entropy
terms, if any.
2. Beside *other* reward functions: TRL adds rewards with `nansum`, so that a fault counts as 0.
Compose rewards on the server (a profile) instead.
3. TRL never stops for faults; the function does, past `max_fault_ratio` (`assay/fault_ratio` is in
the log), and at its first call where no reward can come.
4. TRL averages a metric over the calls that logged it, so every call logs the count of each verdict
and reason ever seen, zeros included.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from assay.clients.reward import AsyncRewardClient, RewardClient, checked_labels
from assay.clients.trainers.common.contact import Addressee, meet, meet_awaited
from assay.clients.trainers.common.fault_ratio import MAX_FAULT_RATIO, read_ratio, settle
from assay.clients.trainers.common.faults import (
    FaultPolicy,
    explanation_of,
    kind_of,
    raise_for_faults,
    read_policy,
)
from assay.clients.trainers.common.labels import labels_of
from assay.clients.trainers.common.rows import Message, RowReader, text_of
from assay.clients.types import Item, Parameter, Result
from assay.kit.errors import ConfigError
from assay.kit.tls import ClientTls

__all__ = [
    "AsyncReward",
    "Reporter",
    "SyncReward",
    "reward_function",
    "sync_reward_function",
    "text_of",
]

_POLICIES = (FaultPolicy.MASK, FaultPolicy.RAISE)


@dataclass(slots=True)
class Reporter:
    """Logs the results of a batch by TRL's `log_metric` and `log_extra`, where it has them.

    `prefix` begins the names of metrics and columns.
    """

    prefix: str = "assay"
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _components: set[str] = field(default_factory=set)

    def report(self, results: Sequence[Result], columns: Mapping[str, Any]) -> None:
        """Logs counts of verdicts and reasons, mean scores of components, and all of it by row."""
        log_metric: Callable[[str, float], None] | None = columns.get("log_metric")
        log_extra: Callable[[str, list[Any]], None] | None = columns.get("log_extra")
        components = _components_of(results)
        self._components.update(components)
        if log_metric is not None and results:
            counts = Counter(kind_of(result) for result in results)
            self._seen.update(counts)
            for kind, name in sorted(self._seen):
                log_metric(f"{self.prefix}/{kind}/{name}", float(counts[kind, name]))
            faults = sum(count for (kind, _), count in counts.items() if kind == "fault")
            log_metric(f"{self.prefix}/fault_ratio", faults / len(results))
            for name, scores in components.items():
                found = [score for score in scores if score is not None]
                log_metric(f"{self.prefix}/component/{name}", sum(found) / len(found))
        if log_extra is not None:
            log_extra(f"{self.prefix}_verdict", [kind_of(result)[1] for result in results])
            log_extra(f"{self.prefix}_explanation", [explanation_of(result) for result in results])
            for name in sorted(self._components):
                absent: list[float | None] = [None] * len(results)
                log_extra(f"{self.prefix}_component_{name}", components.get(name, absent))


def _components_of(results: Sequence[Result]) -> dict[str, list[float | None]]:
    found: dict[str, list[float | None]] = {}
    for row, result in enumerate(results):
        for part in result.judgement.components if result.judgement else ():
            found.setdefault(part.name, [None] * len(results))[row] = part.score
    return found


Early = dict[int, tuple[Item, Future[Result]]]


@dataclass(slots=True)
class _RewardFunction:
    """A client, a reader of rows and a reporter, for both variants. Can be pickled.

    `early` holds what `assay.clients.trainers.trl_streaming` sent before TRL asked: by row, the
    item as `bare` has it, and its future result.
    """

    client: RewardClient | AsyncRewardClient
    reader: RowReader
    reporter: Reporter
    on_fault: FaultPolicy
    max_fault_ratio: float
    __name__: str
    early: Early = field(default_factory=dict)

    @property
    def whom(self) -> Addressee:
        return Addressee(self.client.target, self.reader.verifier, self.reader.task)

    def missing(self, columns: Mapping[str, Any]) -> str:
        return self.reader.missing(columns, "reference_column=")

    def rewards(self, results: Sequence[Result], columns: Mapping[str, Any]) -> list[float | None]:
        self.reporter.report(results, columns)
        settle(self.whom, self.max_fault_ratio, results, self.missing(columns))
        if self.on_fault is FaultPolicy.RAISE:
            raise_for_faults(results)
        return [result.reward for result in results]


def bare(item: Item) -> Item:
    """What is judged of an item by itself: all but its id, group and labels."""
    return dataclasses.replace(item, id="", group_id="", labels={})


class AsyncReward(_RewardFunction):
    """The awaited variant, made by `reward_function`.

    `inspect` takes it for a coroutine function, as TRL requires.
    """

    async def __call__(
        self,
        prompts: Sequence[str | Sequence[Message]],
        completions: Sequence[str | Sequence[Message]],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """The reward of each completion, in order; None for a fault."""
        items = self.reader.items(prompts, completions, completion_ids, columns)
        await meet_awaited(self.client, self.whom, items, self.missing(columns))
        if isinstance(self.client, AsyncRewardClient):
            return self.rewards(await self.client.score(items), columns)
        return self.rewards(await self._scored(self.client, items), columns)

    async def _scored(self, client: RewardClient, items: Sequence[Item]) -> list[Result]:
        """A result for each item; items sent early are not sent again."""
        early, self.early = self.early, {}
        sent: dict[int, Future[Result]] = {}
        for row, (item, result) in early.items():
            if row < len(items) and bare(items[row]) == item:
                sent[row] = result
            else:
                result.cancel()
        rest = [item for row, item in enumerate(items) if row not in sent]
        scored = await asyncio.wrap_future(client.submit(rest)) if rest else []
        found = iter(scored)
        results = []
        for row, item in enumerate(items):
            if row in sent:
                early_result = await asyncio.wrap_future(sent[row])
                results.append(dataclasses.replace(early_result, id=item.id))
            else:
                results.append(next(found))
        return results

    __code__ = __call__.__code__
    __defaults__ = __call__.__defaults__
    __kwdefaults__ = __call__.__kwdefaults__


class SyncReward(_RewardFunction):
    """The blocking variant, made by `sync_reward_function`."""

    def __call__(
        self,
        prompts: Sequence[str | Sequence[Message]],
        completions: Sequence[str | Sequence[Message]],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """The reward of each completion, in order; None for a fault."""
        if isinstance(self.client, AsyncRewardClient):
            raise ConfigError(
                "sync_reward_function takes a RewardClient or an address, not an AsyncRewardClient"
            )
        items = self.reader.items(prompts, completions, completion_ids, columns)
        meet(self.client, self.whom, items, self.missing(columns))
        return self.rewards(self.client.score(items), columns)


def reward_function(
    client_or_target: RewardClient | AsyncRewardClient | str,
    *,
    verifier: str = "",
    task: str = "",
    reference_column: str = "",
    parameters: Mapping[str, Parameter] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str = "assay",
    on_fault: str = FaultPolicy.MASK,
    max_fault_ratio: float = MAX_FAULT_RATIO,
    reference: str = "text",
    timeout_s: float = 60.0,
    tls: ClientTls | None = None,
    token: str | None = None,
) -> AsyncReward:
    """A reward function for TRL that is awaited, so that several run at the same time.

    It takes plain and conversational completions, and reads the columns `verifier`, `task` and
    `parameters` (a mapping for each row) where they exist. Where TRL has them, `log_metric` gets
    `NAME/verdict/...`, `NAME/fault/...`, `NAME/fault_ratio` and `NAME/component/...` (means);
    `log_extra` gets the columns `NAME_verdict`, `NAME_explanation` and one for each component. The
    function can be pickled, unless an `AsyncRewardClient` is passed.

    Args:
        client_or_target: an address, "host:port", or a client. An `AsyncRewardClient` must not have
            been used on another loop.
        verifier: empty: the column `verifier`, or by task.
        task: empty: the column `task`.
        reference_column: empty: "reference", or else "answer".
        parameters: of every row.
        labels: of every item, beside its step and data ("run": ...); they change no reward.
        name: the function's `__name__`, under which TRL logs it.
        on_fault: "mask": a fault is None. "raise": a `FaultError` ends the training.
        max_fault_ratio: past it the training ends (`assay.clients.trainers.common.fault_ratio`).
        reference: the content of the reference column; see
            `assay.clients.trainers.common.rows.label_of`.
        timeout_s: of one batch, for an address.
        tls: for an address.
        token: for an address.

    Raises:
        ConfigError: The address is empty, or TRL cannot follow the policy. When called: a reference
            column is missing or holds no references.
        FaultError: When called: a fault, and the policy is "raise".
        FirstContactError: When first called: no server there can judge the rows.
        TooManyFaultsError: When called: past `max_fault_ratio`.
    """
    policy = read_policy(on_fault, _POLICIES, "TRL")
    client = _client(client_or_target, timeout_s, tls, token)
    reader = RowReader(
        verifier,
        task,
        reference_column,
        dict(parameters or {}),
        reference_kind=reference,
        labels=_labels(labels),
    )
    return AsyncReward(client, reader, Reporter(name), policy, read_ratio(max_fault_ratio), name)


def sync_reward_function(
    client_or_target: RewardClient | str,
    *,
    verifier: str = "",
    task: str = "",
    reference_column: str = "",
    parameters: Mapping[str, Parameter] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str = "assay",
    on_fault: str = FaultPolicy.MASK,
    max_fault_ratio: float = MAX_FAULT_RATIO,
    reference: str = "text",
    timeout_s: float = 60.0,
    tls: ClientTls | None = None,
    token: str | None = None,
) -> SyncReward:
    """As `reward_function`, but called instead of awaited.

    Raises:
        ConfigError: As `reward_function`.
    """
    policy = read_policy(on_fault, _POLICIES, "TRL")
    client = _client(client_or_target, timeout_s, tls, token)
    reader = RowReader(
        verifier,
        task,
        reference_column,
        dict(parameters or {}),
        reference_kind=reference,
        labels=_labels(labels),
    )
    return SyncReward(client, reader, Reporter(name), policy, read_ratio(max_fault_ratio), name)


def _labels(given: Mapping[str, str] | None) -> dict[str, str]:
    return {**labels_of(trainer="trl"), **checked_labels(given)}


def _client(
    client_or_target: RewardClient | AsyncRewardClient | str,
    timeout_s: float,
    tls: ClientTls | None,
    token: str | None,
) -> RewardClient | AsyncRewardClient:
    if isinstance(client_or_target, str):
        return RewardClient(client_or_target, timeout_s=timeout_s, tls=tls, token=token)
    return client_or_target
