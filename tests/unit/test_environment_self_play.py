"""`search-self-play`: who earns what, which questions are refused, who sees what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.search_support import Played, RealVerifiers, Turns, corpus_file, find, play

from assay.environments import EpisodeLimits, ToolCall
from assay.environments.registry import settings_of
from assay.environments.shipped.corpus import Corpus
from assay.environments.shipped.self_play import (
    SearchSelfPlay,
    SelfPlaySettings,
    leaks,
    proposer_reward,
)
from assay.kit.errors import ConfigError

ROW = {"prompt": "Who was he?", "reference": ["Jean Resal"], "hint": "About bridges."}
ASKED = "Which engineer from Besancon made the bridge called Mirabeau over there"
QUESTION = f"<question>{ASKED}?</question>"
FINDS = [find("Mirabeau bridge", 1), find("engineer Besancon", 1)]
RIGHT, WRONG = "<answer>Jean Resal</answer>", "<answer>Eiffel</answer>"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Corpus]]:
    path = corpus_file(tmp_path_factory.mktemp("corpus"))
    with SearchSelfPlay.open(SelfPlaySettings(corpus=path)) as corpus:
        yield path, corpus


@pytest.fixture
def played(opened: tuple[str, Corpus]) -> Any:
    def act(turns: Turns, services: Any = None, limit: int = 0, **settings: Any) -> Played:
        given = SelfPlaySettings(**{"corpus": opened[0], "solvers": 2, **settings})
        environment = SearchSelfPlay(given, opened[1], services or RealVerifiers())
        return play(environment, ROW, turns, EpisodeLimits(turns=limit))

    return act


@pytest.mark.parametrize(
    ("rate", "kind", "left", "right", "reward"),
    [
        (0.0, "1-acc", 0.0, 1.0, 1.0),
        (0.2, "1-acc", 0.0, 1.0, 0.8),
        (1.0, "1-acc", 0.0, 1.0, 0.0),
        (0.0, "difficulty", 0.5, 1.0, 0.0),
        (0.2, "difficulty", 0.0, 1.0, 0.64),
        (0.5, "difficulty", 0.0, 1.0, 1.0),
        (0.4, "difficulty", 0.1, 0.9, 1.0),
        (1.0, "difficulty", 0.0, 2.0, 0.0),
    ],
)
def test_the_table_of_the_proposers_reward(
    rate: float, kind: Any, left: float, right: float, reward: float
) -> None:
    assert proposer_reward(rate, kind, left, right) == pytest.approx(reward)


@pytest.mark.parametrize(
    ("answers", "rewards"),
    [
        ((RIGHT, RIGHT), (0.0, 1.0, 1.0)),
        ((RIGHT, WRONG), (0.5, 1.0, 0.0)),
        ((WRONG, "I do not know."), (1.0, 0.0, 0.0)),
    ],
)
def test_who_earns_what(played: Any, answers: Any, rewards: Any) -> None:
    done = played([*FINDS, QUESTION, RIGHT, *answers])
    names = ("proposer", "solver#1", "solver#2")
    assert done.outcome.rewards == {"checker": 1.0, **dict(zip(names, rewards, strict=True))}
    assert done.reward == rewards[0]  # of the agent that spoke first
    assert done.outcome.ending == "answered"
    assert [seen.agent for seen in done.seen[2:]] == ["proposer", "checker", *names[1:]]


def test_difficulty_pays_for_what_some_can_answer(played: Any) -> None:
    turns = [*FINDS, QUESTION, RIGHT, RIGHT, WRONG]
    assert played(turns, proposer_reward="difficulty").outcome.rewards["proposer"] == 1.0
    turns[-2:] = [WRONG, WRONG]
    assert played(turns, proposer_reward="difficulty").outcome.rewards["proposer"] == 0.0


@pytest.mark.parametrize(
    ("finds", "question"),
    [
        (FINDS, "Which engineer? I will not say."),
        (FINDS, "<question>Who?</question>"),
        (FINDS, f"<question>{ASKED} {'x' * 1000}</question>"),
        (FINDS, "<question>Which engineer made the bridge called Mirabeau?</question>"),
        (FINDS, f"<question>{ASKED}, is it Jean Resal?</question>"),
        (FINDS, f"<question>{ASKED}, is it J-E-A-N  r.e.s.a.l?</question>"),
        (FINDS, f"<question>{ASKED}, is it Jean Résal?</question>"),
        (FINDS, f"<question>{ASKED}, is it Je\u200ban Re\u200bsal?</question>"),
        (FINDS[:1], QUESTION),
        ([FINDS[0], find("mirabeau Bridge", 1)], QUESTION),
        ([find("zzz"), find("yyy")], QUESTION),
    ],
)
def test_questions_that_are_refused(played: Any, finds: Any, question: str) -> None:
    done = played([*finds, question, RIGHT, RIGHT], format_penalty=-0.25)
    assert done.outcome.rewards == {"proposer": -0.25}
    assert done.outcome.trains
    assert done.left == [RIGHT, RIGHT]  # nobody was asked


def test_an_answer_in_a_search_is_refused_where_that_is_set(played: Any) -> None:
    turns = [find("Jean Resal", 1), FINDS[0], QUESTION, RIGHT, RIGHT, WRONG]
    assert played(turns).outcome.rewards["proposer"] == 0.5
    assert played(turns, answer_in_query=False).outcome.rewards == {"proposer": 0.0}


def test_the_proposer_reads_the_answer_and_no_question(played: Any) -> None:
    first = played([]).seen[0].messages[1].content
    assert "Jean Resal" in first
    assert "About bridges." in first
    assert "Who was he?" not in first


@pytest.mark.parametrize("reply", [WRONG, "I cannot say.", FINDS[0]])
def test_a_question_that_its_documents_do_not_answer_is_refused(played: Any, reply: Any) -> None:
    done = played([*FINDS, QUESTION, reply, RIGHT, RIGHT], format_penalty=-1.0)
    assert done.outcome.rewards == {"proposer": -1.0, "checker": 0.0}
    assert done.left == [RIGHT, RIGHT]


def test_the_checker_reads_what_the_proposer_was_shown_and_nothing_else(played: Any) -> None:
    asked = [find("Mirabeau", 1, "MY-THOUGHT"), FINDS[1], f"MY-REASON {QUESTION}"]
    done = played([*asked, RIGHT, RIGHT, RIGHT])
    text = done.seen[3].messages[1].content
    assert ASKED in text
    assert "[d4]" in text
    assert "[d5]" in text
    assert "[d1]" not in text
    assert done.seen[3].tools == ()
    rest = "\n".join(one.content for seen in done.seen[3:] for one in seen.messages)
    assert "MY-" not in rest


def test_solvers_know_nothing_of_one_another_and_not_the_answer(played: Any) -> None:
    opens = ToolCall("open_document", {"id": "d4"})
    turns = [*FINDS, QUESTION, RIGHT, find("Lyon", 1), opens, WRONG, opens, RIGHT]
    done = played(turns)
    assert done.outcome.rewards["solver#2"] == 1.0
    solving = [seen for seen in done.seen if seen.agent.startswith("solver")]
    assert [one.context for one in solving] == ["solver#1"] * 3 + ["solver#2"] * 2
    assert "no search showed" in solving[2].messages[0].content
    assert "no search showed" in solving[4].messages[0].content
    read = "\n".join(one.content for seen in solving for one in seen.messages)
    assert "Resal" not in read


def test_distractors_are_the_same_for_the_same_question(played: Any) -> None:
    turns = [*FINDS, QUESTION, RIGHT, RIGHT, RIGHT]
    first, again = (played(turns, distractors=2) for _ in range(2))
    text = first.seen[3].messages[1].content
    assert text == again.seen[3].messages[1].content
    assert text.count("\n[d") + text.startswith("[d") == 4
    assert played(turns, distractors=99).seen[3].messages[1].content.count("[d") == 5


def test_agents_that_use_up_their_turns_have_failed(played: Any) -> None:
    searches = [find(f"bridge {number}", 1) for number in range(9)]
    done = played([*searches, QUESTION], proposer_turns=3, format_penalty=-1.0)
    assert done.outcome.rewards == {"proposer": -1.0}
    assert len(done.episode.steps) == 3
    done = played([*FINDS, QUESTION, RIGHT, *searches[:2], RIGHT], solver_turns=2)
    assert done.outcome.rewards == {
        "proposer": 0.5, "checker": 1.0, "solver#1": 0.0, "solver#2": 1.0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "rewards"),
    [
        (2, {"proposer": -1.0}),
        (3, None),
        (4, None),
        (5, {"proposer": 1.0, "checker": 1.0, "solver#1": 0.0}),
        (6, {"proposer": 0.0, "checker": 1.0, "solver#1": 1.0}),
    ],
)
def test_the_episodes_own_limit(played: Any, limit: int, rewards: Any) -> None:
    turns = [*FINDS, QUESTION, RIGHT, find("Mirabeau", 1), RIGHT, RIGHT]
    done = played(turns, limit=limit, format_penalty=-1.0)
    if rewards is None:
        assert done.outcome.result.fault.reason == "EPISODE_CUT"
    else:
        assert done.outcome.rewards == rewards


def test_a_check_that_fails_is_a_fault_and_lets_no_question_pass(played: Any) -> None:
    done = played([*FINDS, QUESTION, RIGHT, RIGHT, RIGHT], RealVerifiers("search-qa"))
    assert done.outcome.result.fault.reason == "WORKER_DIED"
    assert done.left == [RIGHT, RIGHT]
    assert done.outcome.reward_of("proposer") is None


@pytest.mark.parametrize(
    ("question", "answer", "is_so"),
    [
        ("is the ion here", "ion", True),
        ("this question", "ion", False),
        ("from Paris on", "paris", True),
        ("the comparison", "Paris", False),
        ("com-Pa ris-on", "Paris", True),
        ("42 or 421", "42", True),
        ("it is 421", "42", False),
    ],
)
def test_leaks(question: str, answer: str, is_so: bool) -> None:
    assert leaks(question, answer) is is_so


@pytest.mark.parametrize(
    "settings",
    [{"solvers": 0}, {"proposer_reward": "x"}, {"proposer_turns": 2}, {"distractors": -1},
     {"measure": "x"}, {"open_chars": 0}],
)  # fmt: skip
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        settings_of(SearchSelfPlay, settings)


@pytest.mark.parametrize(
    "settings",
    [{}, {"proposer_reward": "difficulty", "solvers": 3}, {"answer_in_query": False},
     {"least_searches": 0, "least_words": 0, "format_penalty": -1.0}],
)  # fmt: skip
@pytest.mark.parametrize("verifier", ["words", "search-qa"])
def test_it_proves_itself(
    opened: tuple[str, Corpus], settings: dict[str, Any], verifier: str
) -> None:
    given = SelfPlaySettings(corpus=opened[0], verifier=verifier, **settings)
    for proof in SearchSelfPlay.proofs(given):
        services = RealVerifiers() if verifier != "words" else None
        done = play(SearchSelfPlay(given, opened[1], services), proof.row, proof.turns)
        assert done.outcome.ending == proof.ending
        assert done.reward == pytest.approx(proof.reward)
        assert done.left == []
