"""`judge-group`: the samples of one prompt against each other, or all against one anchor.

How. The items of a call that share a `group_id` are one group: their responses go to genrm
together, which shares their common beginning. Each response's reward is its mean chance, in [0, 1],
of beating those it was compared with, both orders averaged: the anchor where the items have one,
else every other response of the group (round-robin); 0.5 is parity. `swiss` compares each with at
most `rounds` others and works out its chances against the rest (docs/use/judges.md). Right answers,
where the items have any, are shown to the model. The items of a group must agree in prompt,
reference and parameters, and travel in one call.

A comparison past `max_order_gap`, or that moves with the letters of its verdicts by more than
`max_letter_gap`, does not count; where a response keeps fewer than half of its own, its group is a
fault. The component `letter-gap`, of weight 0, is the mean of a response's comparisons.

A blank response is not shown to the model. It gets the verdict `unparsed` and 0; in a round-robin
every response that is not blank beats it.

What a policy could game. As `judge`. A round-robin only ranks: a group of equally bad responses
earns 0.5 each.

Limits. One response an item, not several turns. A round-robin takes at most 64 responses a group
and asks about each pair; an anchor and `swiss` take 256. A response past the model's context is
compared by its ends, or is `overlong` by itself; with `overflow=refuse` it is the fault of every
item of its group. A comparison that cannot be read is left out; it is the group's fault where a
response keeps fewer than half of its own. Samples that a profile's gate stopped are left out too.

Source: Pairwise-RL, arXiv 2504.04950: the symmetric form of the advantage is this reward less 1/2.

Measured: its error is its model's; ranks follow from the pairs by arithmetic that laws check
(`tests/property/test_genrm_judges_laws.py`). Measure yours by `assay eval-judge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.clients.judging import AsyncJudgeClient, GroupItem, GroupRanking, JudgeSettings
from assay.clients.judging.types import RankingMode
from assay.clients.types import Fault as ClientFault
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNSUPPORTED_INPUT,
    Candidate,
    Component,
    Fault,
    Judgement,
    ParameterSpec,
    RemoteOutcome,
    RemoteVerifier,
    Unjudgeable,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers.judges import asking
from assay.reward_server.verifiers.judges.pairwise import MAX_ORDER_GAP

_VERDICTS = ("better", "worse")

_SPEC = VerifierSpec(
    name="judge-group",
    version="3",
    description="Samples of one prompt ranked by a model, against each other or against an anchor.",
    tasks=("judge-group",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=(*_VERDICTS, "unparsed", asking.OVERLONG),
    parameters=(
        ParameterSpec(
            "ranking",
            "string",
            "auto",
            "Against the anchor, each against each, or (swiss) each against some; auto: the anchor "
            "where there is one, else each against each.",
            allowed_values=("auto", "anchor", "round-robin", "swiss"),
        ),
        ParameterSpec(
            "rounds",
            "int",
            0,
            "With swiss: the most comparisons of each response, at least 2; 0: ceil(log2(n)) + 1 "
            "for n responses.",
            minimum=0,
            maximum=256,
        ),
        MAX_ORDER_GAP,
        *asking.judged_by("auto", "token-probability", "votes", "scalar-head"),
        asking.MAX_LETTER_GAP,
        asking.threshold("better"),
    ),
    deterministic=False,
    cacheable=False,
    needs_reference=False,
    needs_group=True,
    isolation="remote",
)

Ask = tuple[JudgeSettings, RankingMode, int, float | None]


class GroupVerifier(RemoteVerifier):
    """Has a model rank groups.

    Args:
        client: reaches genrm; closed with the verifier.
    """

    def __init__(self, client: AsyncJudgeClient) -> None:
        self._client = client

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """The one example that needs no model."""
        parameters = _SPEC.complete({})
        blank = VerifierItem(
            Candidate(" \n"), anchor="Hello.", group_id="one", parameters=parameters
        )
        return (VerifierExample(blank, "unparsed"),)

    async def judge_all(
        self, items: Sequence[VerifierItem], timeout_s: float
    ) -> list[RemoteOutcome]:
        """Ranks the groups of the items at the same time; see `RemoteVerifier.judge_all`."""
        groups: dict[str, list[int]] = {}
        for index, item in enumerate(items):
            groups.setdefault(item.group_id, []).append(index)
        found: dict[int, RemoteOutcome] = {}
        questions: dict[str, tuple[Ask, GroupItem]] = {}
        for name, indices in groups.items():
            members = [items[index] for index in indices]
            try:
                question = _question(members)
            except Unjudgeable as trouble:
                fault = RemoteOutcome(Fault(trouble.reason, trouble.message))
                found.update(dict.fromkeys(indices, fault))
                continue
            if question is None:
                found.update(zip(indices, rank(members, None), strict=True))
            else:
                questions[name] = question
        answers = await asking.ask(
            questions, lambda some, settings: self._send(some, settings, timeout_s)
        )
        for name, answer in answers.items():
            indices = groups[name]
            members = [items[index] for index in indices]
            found.update(zip(indices, _outcomes(members, answer), strict=True))
        return [found[index] for index in range(len(items))]

    async def _send(
        self, questions: list[GroupItem], settings: Ask, timeout_s: float
    ) -> Sequence[GroupRanking | ClientFault]:
        how, ranking, rounds, max_order_gap = settings
        return await self._client.judge_groups(
            questions,
            how,
            ranking=ranking,
            rounds=rounds,
            max_order_gap=max_order_gap,
            timeout_s=timeout_s,
        )

    async def close(self) -> None:
        """Closes the client."""
        await self._client.close()


def rank(members: Sequence[VerifierItem], ranking: GroupRanking | None) -> list[RemoteOutcome]:
    """The outcomes of a group's items. Pure.

    Args:
        members: the items of the group.
        ranking: of the responses that are not blank, in order; None where no model was needed.
    """
    blank = [not item.response().strip() for item in members]
    others = sum(blank) if _ranks_all(members) else 0
    asked = len(members) - sum(blank)
    least = asking.number(members[0].parameters, "threshold", 0.5)
    scores = iter(ranking.scores if ranking else [1.0] * asked)
    gaps = iter(ranking.order_gaps if ranking else [0.0] * asked)
    moved = iter((ranking.letter_gaps if ranking else ()) or [None] * asked)
    cut = iter((ranking.truncated if ranking else ()) or [False] * asked)
    outcomes = []
    for item, is_blank in zip(members, blank, strict=True):
        if is_blank:
            why = "the response is blank; it was not shown to the model"
            outcomes.append(RemoteOutcome(_least("unparsed", why)))
            continue
        compared = asked - 1 if others else 1
        score = (next(scores) * compared + others) / (compared + others)
        judgement = _judgement(score, (next(gaps), next(moved)), least, ranking)
        if next(cut) and asking.is_overlong(item):
            judgement = _least(asking.OVERLONG, asking.TOO_LONG)
        if ranking is not None:
            judgement = asking.with_spent(judgement, ranking.usage, 1 / asked)
        timings = ranking.timings if ranking else None
        outcomes.append(
            RemoteOutcome(judgement, timings.queue_s, timings.execution_s)
            if timings
            else RemoteOutcome(judgement)
        )
    return outcomes


def _judgement(
    score: float, gaps: tuple[float, float | None], least: float, ranking: GroupRanking | None
) -> Judgement:
    """Of a response; `gaps` are its mean order gap and mean letter gap."""
    gap, moved = gaps
    text = f"beats what it is held against with {score:.4g} (mean order gap {gap:.3g})"
    if ranking is None:
        text += "; the other responses are blank, no model was asked"
    else:
        text += f"; the whole group, {ranking.comparisons} comparisons"
        if ranking.comparisons_lost:
            text += f" of which {ranking.comparisons_lost} do not count"
        text += f", {asking.signature(ranking.judge, ranking.usage)}"
    return Judgement.composed(
        asking.graded(score, least, _VERDICTS),
        (
            Component("win-probability", score),
            Component("order-gap", gap, 0.0),
            *([] if moved is None else [Component("letter-gap", moved, 0.0)]),
            *(asking.measures(ranking) if ranking else ()),
        ),
        explanation=text,
    )


def _least(verdict: str, why: str) -> Judgement:
    return Judgement.composed(verdict, (Component("win-probability", 0.0),), explanation=why)


def _ranks_all(members: Sequence[VerifierItem]) -> bool:
    """Whether each is ranked among all others, and not by the anchor."""
    first = members[0]
    ranking = first.parameters["ranking"]
    return ranking in ("round-robin", "swiss") or (ranking == "auto" and first.anchor is None)


def _question(members: Sequence[VerifierItem]) -> tuple[Ask, GroupItem] | None:
    """The question about a group; None where its blank responses leave nothing to ask.

    Raises:
        Unjudgeable: the group cannot be ranked.
    """
    first = members[0]
    asking.refuse_data(first)
    for item in members[1:]:
        _check_alike(first, item)
    ranks_all = _ranks_all(members)
    anchor = "" if ranks_all else asking.anchor_of(first)
    truth = asking.ground_truth(first)
    texts = [text for item in members if (text := item.response()).strip()]
    if ranks_all and len(members) < 2:
        raise Unjudgeable(
            UNSUPPORTED_INPUT,
            f"the group {first.group_id[:80]!r} holds one item in this call: send whole groups in "
            "one call, or an anchor",
        )
    if not texts or (ranks_all and len(texts) < 2):
        return None
    gap = asking.number(first.parameters, "max_order_gap", 1.0)
    mode: RankingMode = "round-robin" if ranks_all else "anchor"
    rounds = int(asking.number(first.parameters, "rounds", 0))
    if first.parameters["ranking"] == "swiss":
        mode = "swiss"
    elif rounds:
        raise Unjudgeable(INVALID_PARAMETER, "rounds are of ranking=swiss; leave them out")
    settings = asking.judge_settings(first.parameters, first.run)
    question = GroupItem(asking.prompt_of(first), texts, anchor=anchor, ground_truth=truth)
    return (settings, mode, rounds, gap if gap < 1.0 else None), question


def _check_alike(one: VerifierItem, other: VerifierItem) -> None:
    held = [(item.references, item.anchor, item.data) for item in (one, other)]
    for what, same in (
        ("prompt", one.prompt == other.prompt),
        ("reference", held[0] == held[1]),
        ("parameters", one.parameters == other.parameters),
    ):
        if not same:
            raise Unjudgeable(
                UNSUPPORTED_INPUT,
                f"the items of the group {one.group_id[:80]!r} differ in their {what}: samples of "
                "one prompt share it",
            )


def _outcomes(
    members: Sequence[VerifierItem], found: GroupRanking | ClientFault
) -> list[RemoteOutcome]:
    if isinstance(found, ClientFault):
        return [RemoteOutcome(asking.fault_of(found))] * len(members)
    asked = sum(bool(item.response().strip()) for item in members)
    if len(found.scores) != asked or len(found.order_gaps) != asked:
        text = "genrm ranked another number of responses"
        return [RemoteOutcome(Fault("MISSING_RESULT", text))] * len(members)
    return rank(members, found)
