"""Rewards that are win probabilities, and the samples of a group judged in pairs.

Pairwise-RL (arXiv 2504.04950); the forms are derivations, its text was not at hand. The judge
behind the reward service judges each pair in both orders (`judge-pairwise`).

Sample i is compared with each other sample j of its prompt, once for both: w_ji = 1 - w_ij. Its
reward is the mean over its judged pairs.

1. A pair without a judgement, such as one with a large order gap, leaves both means. A sample
   without a judged pair is a fault.
2. Equal samples are at parity by symmetry and are not asked about.
3. A blank sample is never the one to beat.
4. The service's `judge-group` ranks a whole group, and faults it as a whole. Both agree where all
   is judged.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assay.clients import Component, Fault, Judgement, Result
from assay.clients.faults import make_fault
from assay.clients.types import Item
from assay.kit.reasons import Reason
from assay.trainer.engines.types import Request, Response
from assay.trainer.rollouts.scoring import StreamingRound

ABSTAINED = "abstained"
ORDER_GAP = "order-gap"
_PARITY = 0.5
Pair = tuple[int, int]
"""Places of the candidate and of the sample to beat."""


def as_win(result: Result) -> Result:
    """The result where it is a win probability; a fault otherwise, or where the judge abstains."""
    judgement = result.judgement
    if judgement is None:
        return result
    if judgement.verdict == ABSTAINED:
        why = judgement.explanation or "the judge abstained"
        fault = make_fault(Reason.ORDER_GAP, why)
    elif not 0 <= judgement.reward <= 1:
        fault = make_fault(
            Reason.INTERNAL,
            f"{judgement.verifier}: a reward of {judgement.reward:g} is no chance of winning; name "
            "a judge of pairs as reward.verifier, or a profile that leaves its reward as it is",
        )
    else:
        return result
    return dataclasses.replace(result, outcome=fault)


def pairs_of(texts: Sequence[str]) -> tuple[list[Pair], list[Pair]]:
    """The pairs of a group: those to ask about, and those at parity by symmetry. Pure.

    Each pair of places is in one of the lists, once. In a pair to ask about the second is not
    blank.
    """
    asked: list[Pair] = []
    equal: list[Pair] = []
    for one in range(len(texts)):
        for two in range(one + 1, len(texts)):
            if texts[one].strip() == texts[two].strip():
                equal.append((one, two))
            else:
                asked.append((one, two) if texts[two].strip() else (two, one))
    return asked, equal


def fold(count: int, asked: Mapping[Pair, Result], equal: Sequence[Pair]) -> list[Result]:
    """A result for each sample of a group: the mean over its judged pairs. Pure.

    Args:
        count: samples of the group, at least 2.
        asked: the result of each pair asked about, from the first one's side.
        equal: pairs at parity.

    Returns:
        By place; `id` is empty. Components: the win probability, and with weight 0 the mean order
        gap of the pairs asked about and the number of judged pairs.
    """
    wins: list[list[float]] = [[] for _ in range(count)]
    gaps: list[list[float]] = [[] for _ in range(count)]
    faults: list[list[Fault]] = [[] for _ in range(count)]
    execution_s, judge = 0.0, ("", "")
    for one, two in equal:
        wins[one].append(_PARITY)
        wins[two].append(_PARITY)
    for (one, two), answer in asked.items():
        result = as_win(answer)
        execution_s = max(execution_s, result.execution_s)
        judgement, fault = result.judgement, result.fault
        if judgement is not None:
            judge = (judgement.verifier, judgement.version)
            wins[one].append(judgement.reward)
            wins[two].append(1 - judgement.reward)
            gap = order_gap(judgement)
            if gap is not None:
                gaps[one].append(gap)
                gaps[two].append(gap)
        elif fault is not None:
            faults[one].append(fault)
            faults[two].append(fault)
    return [
        Result("", _settled(wins[place], gaps[place], faults[place], judge), 0.0, execution_s)
        for place in range(count)
    ]


def order_gap(judgement: Judgement) -> float | None:
    """By how much the two orders of a pair differ; None where the judge does not say."""
    return next((part.score for part in judgement.components if part.name == ORDER_GAP), None)


def _settled(
    wins: Sequence[float], gaps: Sequence[float], faults: Sequence[Fault], judge: tuple[str, str]
) -> Judgement | Fault:
    if not wins:
        [(reason, times)] = Counter(fault.reason for fault in faults).most_common(1)
        first = next(fault for fault in faults if fault.reason == reason)
        text = f"none of its {len(faults)} pairs was judged; {times} of them: {first.message}"
        return dataclasses.replace(first, message=text)
    win = math.fsum(wins) / len(wins)
    components = [Component("win-probability", win, 1.0)]
    if gaps:
        components.append(Component(ORDER_GAP, math.fsum(gaps) / len(gaps), 0.0))
    components.append(Component("pairs", float(len(wins)), 0.0))
    text = f"beats the others of its group with {win:.4g}, over {len(wins)} pairs"
    if faults:
        text += f"; {len(faults)} more were not judged"
    return Judgement(
        reward=win,
        verdict="better" if win >= _PARITY else "worse",
        components=tuple(components),
        explanation=text,
        verifier=judge[0],
        version=judge[1],
    )


@dataclass(slots=True)
class _Group:
    places: list[int]
    members: list[tuple[Request, Response]]


class PairsRound:
    """A ScoringRound that compares the samples of each draw, once all of them are there.

    Args:
        inner: carries the pairs.
        item_of: the item for a response and the text to beat.
        group_size: samples of each draw, at least 2.
    """

    def __init__(
        self,
        inner: StreamingRound,
        item_of: Callable[[Request, Response, str], Item],
        *,
        group_size: int,
    ) -> None:
        self._inner = inner
        self._item_of = item_of
        self._group_size = group_size
        self._gathering: dict[int, _Group] = {}
        self._whole: list[tuple[_Group, list[Pair], list[Pair]]] = []
        self._submitted = 0

    def submit(self, request: Request, response: Response) -> None:
        """Takes one response; the last of a group sends its pairs."""
        group = self._gathering.setdefault(request.draw.number, _Group([], []))
        group.places.append(self._submitted)
        group.members.append((request, response))
        self._submitted += 1
        if len(group.members) == self._group_size:
            self._send(self._gathering.pop(request.draw.number))

    def results(self) -> list[Result]:
        """See ScoringRound."""
        found: dict[int, Result] = {}
        for group in self._gathering.values():
            text = f"the group was not whole: {len(group.places)} of {self._group_size} responses"
            cut = Result("", make_fault(Reason.CANCELLED, text))
            found.update(dict.fromkeys(group.places, cut))
        self._gathering.clear()
        answers = iter(self._inner.results())
        for group, asked, equal in self._whole:
            folded = fold(len(group.places), {pair: next(answers) for pair in asked}, equal)
            found.update(zip(group.places, folded, strict=True))
        return [dataclasses.replace(found[n], id=str(n)) for n in range(self._submitted)]

    def close(self) -> None:
        """Gives up what is not judged yet. May be called twice."""
        self._inner.close()

    def _send(self, group: _Group) -> None:
        # of one order, whatever the order in which the responses were finished
        by_index = sorted(range(len(group.members)), key=lambda n: group.members[n][0].index)
        group = _Group([group.places[n] for n in by_index], [group.members[n] for n in by_index])
        texts = [response.text for _, response in group.members]
        asked, equal = pairs_of(texts)
        self._whole.append((group, asked, equal))
        for one, two in asked:
            request, response = group.members[one]
            self._inner.submit_item(self._item_of(request, response, texts[two]))
