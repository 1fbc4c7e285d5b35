"""Laws of the shipped environments: zero sums, contexts, and what no agent may read."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.search_support import DOCUMENTS, RealVerifiers, corpus_file, play, play_async

from assay.environments import Observation, ToolCall
from assay.environments.shipped.answers import (
    cited_ids,
    in_a_row,
    overlap,
    tagged,
    without_tags,
    without_thoughts,
)
from assay.environments.shipped.corpus import open_corpus
from assay.environments.shipped.memory import CONTROL
from assay.environments.shipped.search import SearchEnvironment, SearchSettings
from assay.environments.shipped.self_play import (
    SearchSelfPlay,
    SelfPlaySettings,
    leaks,
    proposer_reward,
)
from assay.environments.shipped.spy import SpyGame, SpySettings, deal, payoffs

SECRET = "Quixotica Brandt"
ROW: dict[str, Any] = {
    "prompt": "Who is it that nobody wrote about?",
    "reference": [SECRET, "Q. Brandt"],
}
TAGS = [f"<{slash}{name}>" for name in (*CONTROL, "think", "clue", "vote") for slash in ("", "/")]
TEXTS = st.lists(
    st.sampled_from([*TAGS, "Paris", "the Seine", "d1", "[d2]", "\n\nPlayer 1: x", " ", "1", "2",
                     "why does anyone ask about a town on that river there"]),
    max_size=8,
).map("".join)  # fmt: skip
KEPT = st.builds(
    lambda name, text: f"<{name}>{text}</{name}>", st.sampled_from(["memory", "summary"]), TEXTS
)
CALLS = st.one_of(
    st.builds(
        lambda query, count, said: ToolCall("search", {"query": query, "count": count}, text=said),
        st.sampled_from(["Paris", "Seine sea", "zzz", " ", "Resal bridge"]),
        st.integers(-2, 20),
        st.one_of(TEXTS, KEPT),
    ),
    st.sampled_from(["d1", "d9", "[d2]", ""]).map(
        lambda one: ToolCall("open_document", {"id": one})
    ),
    st.just(ToolCall("nothing", "{")),
)
TURNS: Any = st.lists(
    st.one_of(TEXTS, KEPT, CALLS, st.lists(CALLS, min_size=1, max_size=3)), max_size=12
)
CORPUS = open_corpus(corpus_file(Path(tempfile.mkdtemp())))


def hides(text: str, *secrets: str) -> bool:
    return not any(secret.casefold() in text.casefold() for secret in secrets)


@given(TURNS, st.sampled_from(["history", "summary", "memory"]), st.booleans(), st.booleans())
def test_nobody_reads_the_reference_of_a_search(
    turns: Any, context: Any, is_cited: bool, is_checked: bool
) -> None:
    settings = SearchSettings(
        context=context, summary_turns=2, citations=0.5 * is_cited, completeness=float(is_checked)
    )
    played = play(SearchEnvironment(settings, CORPUS, RealVerifiers()), ROW, turns)
    assert hides(played.text(), *ROW["reference"])
    if played.outcome.ending.trusted:
        assert played.outcome.result.fault is None
        assert played.reward == 0.0  # nothing but the answer earns


@given(TURNS, st.sampled_from(["summary", "memory"]))
def test_a_new_context_has_the_question_and_no_history(turns: Any, context: Any) -> None:
    marked = [
        ToolCall(one.name, one.arguments, text=f"MARK{number} {one.text}")
        if isinstance(one, ToolCall)
        else one
        for number, one in enumerate(turns)
    ]
    settings = SearchSettings(context=context, summary_turns=2, memory_chars=60)
    played = play(SearchEnvironment(settings, CORPUS, RealVerifiers()), ROW, marked)
    seen: dict[str, list[Observation]] = {}
    for one in played.seen:
        seen.setdefault(one.context, []).append(one)
    for begun in (parts[0] for parts in seen.values()):
        system, user = begun.messages
        assert (system.role, user.role) == ("system", "user")
        assert ROW["prompt"] in user.content
        for tag in CONTROL:
            assert user.content.count(f"<{tag}>") == user.content.count(f"</{tag}>") <= 1
        assert len(user.content) < 60 + 200 + sum(len(one["text"]) + 40 for one in DOCUMENTS) * 8
        if context == "memory":
            assert user.content.count("MARK") <= 1  # in what it kept of its last turn, at most
    if context == "memory":
        assert all(len(parts) == 1 for parts in seen.values())


@given(TURNS, TEXTS)
def test_only_the_proposer_reads_the_answer(turns: Any, asked: str) -> None:
    settings = SelfPlaySettings(solvers=2, least_searches=1, least_words=3, proposer_turns=4)
    services = RealVerifiers()
    question = (
        f"<question>Who was at the sea {without_tags(asked, 'question', 'think')}?</question>"
    )
    begun: list[Any] = [
        ToolCall("search", {"query": "sea"}),
        question,
        f"<answer>{SECRET}</answer>",
    ]
    played = play(SearchSelfPlay(settings, CORPUS, services), ROW, [*begun, *turns])
    assert played.seen[3].agent == "solver#1"
    for seen in played.seen:
        if seen.agent != "proposer":
            assert hides("".join(one.content for one in seen.messages), *ROW["reference"])


@given(st.floats(0, 1), st.floats(-1, 1), st.floats(0, 2))
def test_the_proposers_reward(rate: float, left: float, right: float) -> None:
    assert proposer_reward(rate, "1-acc", left, right) == 1 - rate
    paid = proposer_reward(rate, "difficulty", left, right)
    assert (paid == 0) if rate in (0, 1) else (paid == 4 * (left + rate) * (right - rate))
    assert proposer_reward(rate, "difficulty", 0.0, 1.0) <= 1.0


@given(st.text(max_size=20), st.text(max_size=60), st.text(max_size=10))
def test_an_answer_as_it_stands_is_leaked(answer: str, before: str, after: str) -> None:
    if in_a_row(answer, answer):
        assert leaks(f"{before} {answer} {after}", answer)


# The game

GAMES = st.builds(
    SpySettings,
    players=st.integers(2, 6),
    rounds=st.integers(1, 2),
    phase=st.sampled_from(["clues", "votes", "both"]),
    beta=st.floats(0, 3),
    lam=st.floats(0, 3),
    breach=st.floats(0, 3),
)


@given(GAMES, st.integers(0, 50), st.data())
def test_payoffs_sum_to_zero(settings: SpySettings, seed: int, data: st.DataObject) -> None:
    seats = deal({"words": ["harp", "lute"], "seed": seed}, settings.players)
    numbers = st.integers(0, settings.players - 1)
    votes = data.draw(st.dictionaries(st.sampled_from(seats.civilians), numbers))
    breaches = data.draw(st.lists(numbers, max_size=4))
    earned = payoffs(seats, votes, settings, breaches)
    assert sum(earned) == pytest.approx(0, abs=1e-9)
    if settings.players > 2 and not breaches:
        all_right = payoffs(seats, dict.fromkeys(seats.civilians, seats.spy), settings)
        assert all_right[seats.spy] == -settings.beta <= earned[seats.spy] + 1e-9


@given(GAMES, st.integers(0, 20), st.lists(TEXTS, max_size=30))
def test_a_game_is_fair_and_keeps_its_secrets(
    settings: SpySettings, seed: int, turns: list[str]
) -> None:
    row = {"prompt": "", "words": ["harpsichord", "lutenist"], "seed": seed}
    clued = [f"<clue>{text}</clue><vote>{number % 7}</vote>" for number, text in enumerate(turns)]
    played = play(SpyGame(settings), row, clued)
    seats = deal(row, settings.players)
    both = {"harpsichord", "lutenist"}
    own = dict(zip(seats.agents, seats.words, strict=True))
    own |= {f"voter#{n}": seats.words[seat] for n, seat in enumerate(seats.civilians, start=1)}
    for seen in played.seen:
        text = "".join(one.content for one in seen.messages)
        if settings.players > 2 or seen.agent != "spy":
            assert hides(text, *(both - {own[seen.agent]}))
        said = [line for line in text.splitlines() if line.startswith("Player ")]
        assert len(said) <= settings.players * settings.rounds
        assert seen.tools == () or seen.agent != "voter"
    if played.left or len(played.episode.steps) == settings.players * settings.rounds + len(
        seats.civilians
    ):
        rewards = played.outcome.rewards
        assert set(rewards) == set(own)
        assert sum(rewards[one] for one in seats.agents) == pytest.approx(0, abs=1e-9)  # type: ignore[misc]
        voters = [rewards[one] for one in own if one.startswith("voter")]
        assert settings.phase != "clues" or voters == [0.0] * len(voters)
        assert settings.phase != "votes" or not any(rewards[one] for one in seats.agents)
    else:
        assert played.outcome.result.fault is not None


# Texts


@given(TEXTS)
def test_no_tag_survives(text: str) -> None:
    kept = without_tags(text, *CONTROL)
    assert not any(f"<{slash}{name}>" in kept for name in CONTROL for slash in ("", "/"))


@given(st.text(), st.sampled_from(["answer", "memory"]))
def test_what_was_tagged_is_read_back(text: str, name: str) -> None:
    wanted = text.strip() or None
    if f"{name}>" not in text:
        assert tagged(f"x <{name}>{text}</{name}> y", name) == wanted


@given(st.text(max_size=30), st.text(max_size=30))
def test_overlap_is_a_symmetric_share(one: str, other: str) -> None:
    score = overlap(one, other, "f1")
    assert 0 <= score <= 1
    assert score == overlap(other, one, "f1")
    assert overlap(one, one, "em") == 1.0


# The corpus


WORDS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=20), st.data())
def test_bm25_finds_a_planted_document(noise: list[list[str]], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(noise)))
    rows = [{"id": f"n{i}", "text": " ".join(f"w{one}" for one in words)}
            for i, words in enumerate(noise)]  # fmt: skip
    rows.insert(place, {"id": "planted", "text": "wa needle wb"})
    with tempfile.TemporaryDirectory() as folder:
        corpus = open_corpus(corpus_file(Path(folder), rows))
    assert corpus.find("needle", 5)[0].id == "planted"
    found = corpus.find("wa needle", len(rows))
    assert found[0].id == "planted"
    assert len({one.id for one in found}) == len(found)
    assert all("wa" in one.text.split() for one in found)


def test_many_episodes_search_at_once() -> None:
    async def all_of_them() -> list[Any]:
        turns: list[ToolCall | str] = [
            ToolCall("search", {"query": "Seine Paris"}),
            "<answer>Paris</answer>",
        ]
        row = {"prompt": "Which capital?", "reference": "Paris"}
        settings = SearchSettings(verifier="words", citations=0.0)
        made = (SearchEnvironment(settings, CORPUS) for _ in range(64))
        return await asyncio.gather(*(play_async(one, row, turns) for one in made))

    played = asyncio.run(all_of_them())
    assert [one.reward for one in played] == [1.0] * 64
    assert len({one.seen[1].messages[0].content for one in played}) == 1


@pytest.mark.parametrize(
    "text",
    ["<ans" * 9_000 + "<answer>" + "wer>" * 9_000, "<answer " * 9_000, "<" + " " * 50_000,
     "< " * 30_000, "[" * 50_000, "[a," * 20_000, "<think>" * 9_000, "a." * 30_000],
)  # fmt: skip
def test_hostile_texts_take_linear_time(text: str) -> None:
    began_s = time.process_time()
    kept = without_tags(text, *CONTROL)
    assert not any(f"<{slash}{name}>" in kept for name in CONTROL for slash in ("", "/"))
    tagged(text, "answer")
    cited_ids(text, {"d1"})
    without_thoughts(text)
    leaks(text, "aaaa aaab")
    assert time.process_time() - began_s < 5.0
