"""Groups ranked from some of their comparisons: what must hold whatever the judge thinks."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.clients.judging.types import GroupRanking
from assay.genrm.domain import CandidateGroup, ResolvedJudgeSettings
from assay.genrm.engines.base import Answer, Request, Write, Written
from assay.genrm.judges import judge_group
from assay.genrm.judges.numbers import sigmoid
from assay.genrm.judges.strengths import PRIOR, joined_up, shares, strengths
from assay.genrm.judges.swiss import default_rounds, most_comparisons, neighbours, swiss
from assay.genrm.templates import load_templates
from genrm_judging_support import (
    GENERATIVE,
    QUESTION,
    TOKENS,
    WRITER,
    choosing,
    drive,
    moody,
    refused,
    text_of,
)

TEMPLATES = load_templates()
RESPONSES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60).filter(str.strip)
SEEDS = st.integers(0, 2**32)
WINS = st.floats(0, 1)


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, dict[tuple[int, int], float]]:
    """Some comparisons of up to eight responses."""
    count = draw(st.integers(2, 8))
    pairs = list(itertools.combinations(range(count), 2))
    made = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    return count, {pair: draw(WINS) for pair in made}


def ranked(texts: list[str], seed: int, rounds: int = 0, draw: int = 0) -> GroupRanking:
    asked = ResolvedJudgeSettings(seed=draw)
    run = judge_group(
        CandidateGroup(QUESTION, tuple(texts)), asked, GENERATIVE, TEMPLATES, "swiss", rounds=rounds
    )
    return drive(run, choosing(moody(seed)))[0]


def played(count: int, rounds: int, seed: int) -> list[list[tuple[int, int]]]:
    """The pairs of each turn, for results drawn at random."""
    dice = random.Random(seed)
    schedule = swiss(count, rounds)
    turns = [next(schedule)]
    try:
        while True:
            turns.append(schedule.send({pair: dice.random() for pair in turns[-1]}))
    except StopIteration:
        return turns


@given(tables())
def test_strengths_are_where_the_likelihood_has_no_slope(
    table: tuple[int, dict[tuple[int, int], float]],
) -> None:
    count, wins = table
    found = strengths(count, wins)
    slopes = [-PRIOR * one for one in found]
    for (one, two), win in wins.items():
        slope = win - sigmoid(found[one] - found[two])
        slopes[one] += slope
        slopes[two] -= slope
    assert slopes == pytest.approx([0.0] * count, abs=1e-8)
    turned = strengths(count, {pair: 1.0 - win for pair, win in wins.items()})
    assert turned == pytest.approx([-one for one in found], abs=1e-6)
    again = strengths(count, wins, [3.0] * count)
    assert again == pytest.approx(found, abs=1e-6)  # one maximum, wherever one begins


@given(tables(), st.integers(0, 7), WINS)
def test_who_wins_more_is_no_weaker(
    table: tuple[int, dict[tuple[int, int], float]], which: int, more: float
) -> None:
    count, wins = table
    pair = sorted(wins)[which % len(wins)]
    better = {**wins, pair: max(more, wins[pair])}
    before, after = strengths(count, wins), strengths(count, better)
    assert after[pair[0]] >= before[pair[0]] - 1e-8
    assert after[pair[1]] <= before[pair[1]] + 1e-8


@given(tables(), st.lists(st.integers(1, 3), min_size=8, max_size=8))
def test_shares_give_out_half_a_point_a_comparison(
    table: tuple[int, dict[tuple[int, int], float]], copies: list[int]
) -> None:
    count, wins = table
    scores = shares(copies[:count], wins, strengths(count, wins))
    total = math.fsum(score * own for score, own in zip(scores, copies, strict=False))
    assert total == pytest.approx(sum(copies[:count]) / 2, abs=1e-12)
    assert all(0.0 <= score <= 1.0 for score in scores)


@pytest.mark.parametrize("count", [*range(2, 24), 32, 33, 64])
@pytest.mark.parametrize("more", [0, 1, 4])
def test_a_schedule_keeps_its_word(count: int, more: int) -> None:
    rounds = default_rounds(count) + more
    turns = played(count, rounds, seed=count)
    pairs = [pair for turn in turns for pair in turn]
    assert all(one < two for one, two in pairs)
    assert len(set(pairs)) == len(pairs) <= most_comparisons(count, rounds)
    assert joined_up(count, dict.fromkeys(turns[0], 0.5))
    if most_comparisons(count, rounds) == count * (count - 1) // 2:
        assert len(turns) == 1
        assert len(pairs) == count * (count - 1) // 2
        return
    for turn in turns[1:]:
        assert max(Counter(one for pair in turn for one in pair).values()) == 1
    if 2 * rounds <= count:
        assert len(pairs) == most_comparisons(count, rounds)
        met = Counter(one for pair in pairs for one in pair)
        assert max(met.values()) - min(met.values()) <= (count % 2) * 2


@given(st.integers(1, 12), SEEDS)
def test_neighbours_have_not_met(count: int, seed: int) -> None:
    dice = random.Random(seed)
    pairs = list(itertools.combinations(range(count), 2))
    met = set(dice.sample(pairs, dice.randint(0, len(pairs))))
    order = dice.sample(range(count), count)
    made = neighbours(order, met)
    assert not met & set(made)
    assert len({one for pair in made for one in pair}) == 2 * len(made)


@settings(deadline=None, max_examples=40)
@given(st.lists(RESPONSES, min_size=2, max_size=9), SEEDS, SEEDS, st.randoms())
def test_the_order_of_a_group_changes_no_score(
    texts: list[str], seed: int, draw: int, dice: random.Random
) -> None:
    ranking = ranked(texts, seed, 2, draw)
    places = list(range(len(texts)))
    dice.shuffle(places)
    shuffled = ranked([texts[place] for place in places], seed, 2, draw)
    assert list(shuffled.scores) == [ranking.scores[place] for place in places]
    assert list(shuffled.order_gaps) == pytest.approx([ranking.order_gaps[p] for p in places])
    assert math.fsum(ranking.scores) == pytest.approx(len(texts) / 2, abs=1e-12)
    for one, text in enumerate(texts):  # equal texts, equal scores
        assert ranking.scores[one] == ranking.scores[texts.index(text)]
    assert ranking.comparisons <= most_comparisons(len(set(texts)), 2)


@settings(deadline=None, max_examples=40)
@given(st.lists(RESPONSES, min_size=2, max_size=6), SEEDS)
def test_enough_rounds_are_a_round_robin(texts: list[str], seed: int) -> None:
    item = CandidateGroup(QUESTION, tuple(texts))
    run = judge_group(item, ResolvedJudgeSettings(), GENERATIVE, TEMPLATES, "round-robin")
    robin = drive(run, choosing(moody(seed)))[0]
    swissed = ranked(texts, seed, len(texts))
    assert swissed.scores == pytest.approx(robin.scores, abs=1e-12)
    assert swissed.comparisons == robin.comparisons == math.comb(len(set(texts)), 2)


def test_strengths_that_are_there_are_found() -> None:
    """A judge that is Bradley and Terry's model itself, asked a third of the pairs."""
    dice = random.Random(5)
    true = [dice.gauss(0, 1) for _ in range(16)]
    chances = {
        (one, two): sigmoid(true[one] - true[two])
        for one, two in itertools.combinations(range(16), 2)
    }
    schedule = swiss(16, 5)
    pairs, asked = next(schedule), 0
    try:
        while True:
            asked += len(pairs)
            pairs = schedule.send({pair: chances[pair] for pair in pairs})
    except StopIteration as end:
        scores = shares([1] * 16, end.value, strengths(16, end.value))
    full = shares([1] * 16, chances, [0.0] * 16)
    assert asked == 40
    assert max(abs(a - b) for a, b in zip(scores, full, strict=True)) < 0.05
    turned = [(full[a] - full[b]) * (scores[a] - scores[b]) < 0 for a, b in chances]
    assert sum(turned) <= 3  # of 120 pairs, neighbours that are all but equal


TEXTS = [f"answer number {index}" for index in range(8)]


def unreadable_about(*bad: str):
    """A judge by votes that says nothing of use where all of these are before it."""

    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        text = text_of(request.prompt)
        lost = bool(bad) and all(f"\n{one}\n" in text for one in bad)
        return Written("who knows" if lost else " A", "stop", TOKENS)

    return answer


def by_votes(ranking: str, rounds: int = 0):
    asked = ResolvedJudgeSettings("preference@1", scoring="votes", votes=1)
    item = CandidateGroup(QUESTION, tuple(TEXTS))
    return judge_group(item, asked, WRITER, TEMPLATES, ranking, rounds=rounds)


@pytest.mark.parametrize(("ranking", "rounds"), [("swiss", 4), ("round-robin", 0)])
def test_a_lost_comparison_is_left_out(ranking: str, rounds: int) -> None:
    ran, _ = drive(by_votes(ranking, rounds), unreadable_about())
    assert ran.comparisons_lost == 0
    lost = Counter[int]()
    for one, two in itertools.combinations(TEXTS, 2):
        found, _ = drive(by_votes(ranking, rounds), unreadable_about(one, two))
        lost[found.comparisons_lost] += 1
        assert len(found.scores) == 8
        if ranking == "swiss":
            assert math.fsum(found.scores) == pytest.approx(4.0, abs=1e-12)
    assert lost == ({1: 16, 0: 12} if ranking == "swiss" else {1: 28})


@pytest.mark.parametrize(("ranking", "rounds"), [("swiss", 4), ("round-robin", 0)])
def test_who_cannot_be_compared_is_a_fault(ranking: str, rounds: int) -> None:
    fault = refused(by_votes(ranking, rounds), unreadable_about(TEXTS[3]))
    assert (fault.reason, fault.metadata["raw_text"]) == ("JUDGE_UNPARSED", "who knows")


def test_halves_that_nothing_joins_are_a_fault() -> None:
    """Two halves that cannot be held against each other have no common scale."""

    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        text = text_of(request.prompt)
        seen = [index for index, one in enumerate(TEXTS) if f"\n{one}\n" in text]
        crossed = (seen[0] < 4) != (seen[-1] < 4)
        return Written("who knows" if crossed else " A", "stop", TOKENS)

    reasons = set()
    for seed in range(20):
        asked = ResolvedJudgeSettings("preference@1", scoring="votes", votes=1, seed=seed)
        item = CandidateGroup(QUESTION, tuple(TEXTS))
        run = judge_group(item, asked, WRITER, TEMPLATES, "swiss", rounds=3)
        reasons.add(refused(run, answer).reason)
    assert reasons == {"JUDGE_UNPARSED"}
