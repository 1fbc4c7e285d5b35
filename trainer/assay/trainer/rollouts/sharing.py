"""What processes exchange about rollouts: numbers of all, tokens of those that must move.

Tokens, log-probabilities and texts stay with the process that drew them; every process decides from
a row of numbers for each response: `share`. Only a response that another process trains on moves:
`dealt`. The first process gets what it writes: `at_first`.

Parcels are JSON and arrays; nothing is pickled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.clients import Component, Fault, Judgement, Result
from assay.trainer.engines.types import Draw, Request
from assay.trainer.rollouts.outages import given_up_by, outage_of, refuse_given_up
from assay.trainer.rollouts.pairs import ORDER_GAP, order_gap
from assay.trainer.rollouts.plain import (
    Plain,
    group_from_plain,
    group_to_plain,
    result_from_plain,
    result_to_plain,
    rollout_from_plain,
    rollout_to_plain,
)
from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.types import (
    Group,
    Known,
    KnownGroup,
    Place,
    Ranks,
    Remote,
    Rollout,
    place,
)

Facts = Callable[[Rollout], tuple[float, ...]]
"""Numbers of a rollout for every process; the same count for each rollout."""
_SIZE = 8


def no_facts(_rollout: Rollout) -> tuple[float, ...]:
    """None."""
    return ()


def share(
    mine: Sequence[Rollout],
    requests: Sequence[Request],
    ranks: Ranks,
    *,
    facts: Facts = no_facts,
    results: Iterable[Result] | None = None,
) -> list[Known]:
    """The rollouts of all processes: this one's whole, the others' as Remote.

    Args:
        mine: of this process.
        requests: of all processes' rollouts, in order.
        ranks: the processes.
        facts: further numbers of each.
        results: all that this process got; by default its rollouts'.

    Raises:
        OutageError: in one of the processes.
    """
    everything = [one for row in mine for one in row.results] if results is None else results
    numbers = [(row.policy_step, row.length, row.truncated, *facts(row)) for row in mine]
    told = _gathered([row.result for row in mine], numbers, everything, ranks)
    own = iter(mine)
    known: list[Known] = []
    for request, (holder, result, row) in zip(requests, told, strict=True):
        if holder == ranks.index:
            known.append(next(own))
        else:
            step, length, truncated, *more = row
            known.append(
                Remote(
                    request, result, int(step), int(length), bool(truncated), holder, tuple(more)
                )
            )
    return known


def share_results(mine: Sequence[Result], ranks: Ranks) -> list[Result]:
    """The results of all processes in order: rewards, verdicts, and reasons of faults.

    Raises:
        OutageError: in one of the processes.
    """
    return [result for _, result, _ in _gathered(mine, [()] * len(mine), mine, ranks)]


def _gathered(
    mine: Sequence[Result],
    numbers: Sequence[tuple[float, ...]],
    everything: Iterable[Result],
    ranks: Ranks,
) -> list[tuple[int, Result, Sequence[float]]]:
    """Each result of all processes: its holder, the result, and the numbers beside it.

    Names (verdicts, reasons) travel once each; a result is a row of numbers.
    """
    if ranks.count == 1:
        refuse_given_up(everything)
        return [(0, result, row) for result, row in zip(mine, numbers, strict=True)]
    kinds = list(dict.fromkeys(map(_kind, mine)))
    head = {
        "kinds": kinds,
        "outage": outage_of(everything),
        "width": len(numbers[0]) if numbers else 0,
    }
    heads = [json.loads(one) for one in ranks.exchange([_json(head)] * ranks.count)]
    over = given_up_by([one["outage"] for one in heads])
    if over is not None:
        raise over
    width = 4 + max(one["width"] for one in heads)
    rows = [
        (ranks.index, kinds.index(_kind(result)), *_numbers(result), *row)
        for result, row in zip(mine, numbers, strict=True)
    ]
    table = ranks.gather(np.array(rows, np.float64).reshape(len(rows), width)).tolist()
    return [
        (int(holder), _result(heads[int(holder)]["kinds"][int(kind)], reward, gap), row)
        for holder, kind, reward, gap, *row in table
    ]


def _kind(result: Result) -> tuple[str, str]:
    """The verdict, or the fault's reason and code."""
    fault, judgement = result.fault, result.judgement
    if fault is not None:
        return fault.reason, fault.code
    return "" if judgement is None else judgement.verdict, ""


def _numbers(result: Result) -> tuple[float, float]:
    """Reward and order gap; NaN where there is none."""
    judgement = result.judgement
    if judgement is None:
        return math.nan, math.nan
    gap = order_gap(judgement)
    return judgement.reward, math.nan if gap is None else gap


def _result(kind: Sequence[str], reward: float, gap: float) -> Result:
    name, code = kind
    if math.isnan(reward):
        return Result("", Fault(name, "the process that drew the response knows more", code))
    components = () if math.isnan(gap) else (Component(ORDER_GAP, gap, 0.0),)
    return Result("", Judgement(reward, name, components))


def with_refused(
    judged: Sequence[Known], refused: Mapping[Place, Result], ranks: Ranks
) -> list[Known]:
    """All rollouts, with the faults that each process found in its training share."""
    told = [[*where, result_to_plain(result)] for where, result in refused.items()]
    faults = {
        (number, index): result_from_plain(plain)
        for one in ranks.exchange([_json(told)] * ranks.count)
        for number, index, plain in json.loads(one)
    }
    if not faults:
        return list(judged)
    return [replace(one, result=faults.get(place(one), one.result)) for one in judged]


def holder_of(one: Known, ranks: Ranks) -> int:
    """The process that has it whole."""
    return ranks.index if isinstance(one, Rollout) else one.holder


def dealt(groups: Sequence[KnownGroup], ranks: Ranks) -> list[Group]:
    """This process's share of groups, whole, fetched where others hold them; see ranks.deal.

    Raises:
        ValueError: the groups cannot be shared out equally.
    """
    own = deal(groups, ranks)
    came = _sent([(one, n // len(own)) for n, group in enumerate(groups) for one in group], ranks)
    return [_whole(group, came) for group in own]


def at_first(groups: Sequence[KnownGroup], ranks: Ranks) -> list[Group]:
    """The groups, whole, in the first process; none in the others."""
    came = _sent([(one, 0) for group in groups for one in group], ranks)
    return [] if ranks.index else [_whole(group, came) for group in groups]


def spread(groups: Iterable[Group], ranks: Ranks, facts: Facts = no_facts) -> list[KnownGroup]:
    """Distributes groups that every process has: each stays whole in one of them."""
    return [
        group
        if n % ranks.count == ranks.index
        else tuple(_remote(one, n % ranks.count, facts) for one in group)
        for n, group in enumerate(groups)
    ]


def saved_groups(groups: Sequence[KnownGroup], ranks: Ranks) -> list[Plain]:
    """Groups for a checkpoint in the first process; none in the others."""
    return [group_to_plain(group) for group in at_first(groups, ranks)]


def read_groups(
    saved: Iterable[Mapping[str, Any]],
    draw: Callable[[int], Draw],
    ranks: Ranks,
    facts: Facts = no_facts,
) -> list[KnownGroup]:
    """Inverse of `saved_groups`, for any number of processes."""
    return spread((group_from_plain(one, draw) for one in saved), ranks, facts)


def _remote(rollout: Rollout, holder: int, facts: Facts) -> Remote:
    return Remote(
        rollout.request,
        _result(_kind(rollout.result), *_numbers(rollout.result)),
        rollout.policy_step,
        rollout.length,
        rollout.truncated,
        holder,
        facts(rollout),
    )


def _whole(group: KnownGroup, came: Iterator[Rollout]) -> Group:
    return tuple(one if isinstance(one, Rollout) else next(came) for one in group)


def _sent(wanted: Sequence[tuple[Known, int]], ranks: Ranks) -> Iterator[Rollout]:
    """The remote rollouts that this process wants, in order.

    `wanted` pairs each rollout with the process that wants it, the same on every process.
    """
    away = [(one, to) for one, to in wanted if holder_of(one, ranks) != to]
    if not away:
        return iter(())
    leaving: list[list[Rollout]] = [[] for _ in range(ranks.count)]
    for one, to in away:
        if isinstance(one, Rollout):
            leaving[to].append(one)
    draws = {one.request.draw.number: one.request.draw for one, _ in away}
    came = [
        iter(unpack(one, draws.__getitem__)) for one in ranks.exchange(list(map(pack, leaving)))
    ]
    return (
        next(came[one.holder]) for one, to in away if to == ranks.index and isinstance(one, Remote)
    )


def pack(rollouts: Sequence[Rollout]) -> bytes:
    """Rollouts for another process."""
    if not rollouts:
        return b""
    told, ids, logprobs = [], [], []
    for rollout in rollouts:
        plain = rollout_to_plain(rollout)
        response = plain["response"]
        ids.append(np.array(response["ids"], np.int64))
        logprobs.append(np.array(response["logprobs"] or (), np.float64))
        response |= {"ids": len(ids[-1]), "logprobs": response["logprobs"] and len(logprobs[-1])}
        told.append({"draw": rollout.request.draw.number, **plain})
    head = _json(told)
    parts = (len(head).to_bytes(_SIZE, "big"), head, *(one.tobytes() for one in (*ids, *logprobs)))
    return b"".join(parts)


def unpack(parcel: bytes, draw: Callable[[int], Draw]) -> list[Rollout]:
    """Inverse of `pack`; `draw` gives the draw of a number."""
    if not parcel:
        return []
    at = _SIZE + int.from_bytes(parcel[:_SIZE], "big")
    told = json.loads(parcel[_SIZE:at])
    for name, kind in (("ids", np.int64), ("logprobs", np.float64)):
        for plain in told:
            size = plain["response"][name]
            if size is not None:
                plain["response"][name] = np.frombuffer(parcel, kind, size, at).tolist()
                at += 8 * size
    return [rollout_from_plain(plain, draw(plain["draw"])) for plain in told]


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
