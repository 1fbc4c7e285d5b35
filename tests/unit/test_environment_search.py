"""The environment `search`: rewards, citations, contexts, the checker; what a policy may try."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.search_support import (
    DOCUMENTS,
    Played,
    RealVerifiers,
    Turns,
    corpus_file,
    find,
    play,
)

from assay.environments import EpisodeLimits, Reply, ToolCall
from assay.environments.registry import settings_of
from assay.environments.shipped.corpus import Corpus, open_corpus
from assay.environments.shipped.search import SearchEnvironment, SearchSettings
from assay.kit.errors import ConfigError

ROW: dict[str, Any] = {
    "prompt": "Who built the Mirabeau bridge?",
    "reference": ["Jean Resal", "J. Resal"],
}
ANSWER = "It was him [d4]. <answer>Jean Resal</answer>"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Corpus]]:
    path = corpus_file(tmp_path_factory.mktemp("corpus"))
    with SearchEnvironment.open(SearchSettings(corpus=path)) as corpus:
        yield path, corpus


def opening(**settings: Any) -> None:
    with SearchEnvironment.open(SearchSettings(**settings)):
        pass


@pytest.fixture
def searched(opened: tuple[str, Corpus]) -> Any:
    def act(turns: Turns, services: Any = None, limit: int = 0, **settings: Any) -> Played:
        given = SearchSettings(corpus=opened[0], **settings)
        environment = SearchEnvironment(given, opened[1], services or RealVerifiers())
        return play(environment, ROW, turns, EpisodeLimits(turns=limit))

    return act


@pytest.mark.parametrize(
    ("turn", "reward", "verdict"),
    [
        (ANSWER, 1.0, "correct"),
        ("<answer>Resal</answer>", 1 / 1.5, "partial"),
        ("<answer>Eiffel</answer>", 0.0, "incorrect"),
        ("It was Jean Resal.", -0.5, "unparsed"),
        ("<answer>  </answer>", -0.5, "unparsed"),
        ("<think><answer>Jean Resal</answer></think> Hm.", -0.5, "unparsed"),
        ("<think><answer>Jean Resal</answer>", -0.5, "unparsed"),
        ("opened <answer>Jean Resal</answer></think> Hm.", -0.5, "unparsed"),
        ("opened <answer>x</answer></think><answer>Jean Resal</answer>", 1.0, "correct"),
        ("<answer>Eiffel</answer><answer>Jean Resal [d4]</answer>", 1.0, "correct"),
    ],
)
def test_the_answer_is_judged(searched: Any, turn: str, reward: float, verdict: str) -> None:
    played = searched([find("Mirabeau bridge"), turn], malformed=-0.5)
    assert played.reward == pytest.approx(reward)
    assert played.outcome.result.judgement.verdict == verdict
    words = searched([find("Mirabeau bridge"), turn], malformed=-0.5, verifier="words")
    assert words.reward == pytest.approx(reward)


@pytest.mark.parametrize("verifier", ["search-qa", "words"])
@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("It was him [d4].", 1.0),
        ("It was him [d4, d5].", 1.0),  # both hold the name
        ("It was him [d4] [d3].", 0.5),
        ("It was him [d3].", 0.0),  # shown, but holds no answer
        ("It was him.", 0.0),
        ("It was him [d4] [d99].", 0.0),  # there is none
        ("It was him [d2].", 0.0),  # there is one, which was not shown
    ],
)
def test_citations_count_what_was_shown_and_holds_the_answer(
    searched: Any, verifier: str, text: str, cited: float
) -> None:
    turns = [
        find("Mirabeau bridge Resal"),
        find("Havre sea", 1),
        f"{text} <answer>Jean Resal</answer>",
    ]
    played = searched(turns, citations=0.4, verifier=verifier)
    assert "d2" not in played.episode.environment.evidence.shown
    assert played.reward == pytest.approx(0.6 + 0.4 * cited)


def test_a_wrong_answer_earns_nothing_by_citations(searched: Any) -> None:
    played = searched([find("Mirabeau"), "So [d4]. <answer>Eiffel</answer>"], citations=0.4)
    assert played.reward == 0.0


def test_ids_are_opened_only_once_they_were_shown(searched: Any) -> None:
    opens = ToolCall("open_document", {"id": "d5"})
    played = searched([opens, find("Besancon"), opens, ANSWER])
    texts = [seen.messages[0].content for seen in played.seen]
    assert texts[1].startswith("error: open_document: no search showed")
    assert "born in Besancon" in texts[2]
    assert "born in Besancon" in texts[3]


def test_what_a_search_refuses_and_bounds(searched: Any) -> None:
    calls = [find(" "), find("zzzz"), find("Paris Seine Resal", 99), find("Paris", -3)]
    played = searched([*calls, "<answer>x</answer>"], most_documents=2)
    texts = [seen.messages[0].content for seen in played.seen[1:]]
    assert texts[0] == "error: search: the query is blank"
    assert texts[1] == "no document shares a word with the query"
    assert texts[2].count("[d") == 2
    assert texts[3].count("[d") == 1


def test_documents_are_cut_and_cited_as_they_were_shown(searched: Any) -> None:
    turns = [find("Mirabeau bridge", 1), ANSWER]
    assert searched(turns, citations=1.0, search_chars=20).reward == 0.0
    opened = [turns[0], ToolCall("open_document", {"id": "[d4]"}), ANSWER]
    assert searched(opened, citations=1.0, search_chars=20).reward == 1.0


def test_what_was_shown_at_more_length_stays_shown(searched: Any) -> None:
    opened = ToolCall("open_document", {"id": "d4"})
    turns = [find("Mirabeau bridge", 1), opened, find("Mirabeau", 1), ANSWER]
    assert searched(turns, citations=1.0, search_chars=20).reward == 1.0


# The checker


def test_the_checker_reads_the_evidence_alone_and_has_no_tools(searched: Any) -> None:
    turns = [find("Mirabeau bridge", 1, "SECRET-THOUGHT"), ANSWER, "<answer>Jean Resal</answer>"]
    played = searched(turns, completeness=0.5)
    check = played.seen[-1]
    assert (check.agent, check.tools) == ("checker", ())
    text = "\n".join(one.content for one in check.messages)
    assert ROW["prompt"] in text
    assert "Mirabeau bridge was made" in text
    assert "SECRET-THOUGHT" not in text
    assert "Rhone" not in text
    assert played.outcome.rewards == {"policy": 1.5, "checker": 1.0}


def test_the_checker_cannot_search(searched: Any) -> None:
    turns = [find("Lyon", 1), ANSWER, find("Mirabeau", said="<answer>Eiffel</answer>"), ANSWER]
    played = searched(turns, completeness=0.5)
    assert played.episode.steps[-1].calls[0].refused
    assert played.left == [ANSWER]
    assert set(played.episode.environment.evidence.shown) == {"d1"}
    assert played.outcome.rewards == {"policy": 1.0, "checker": 0.0}


def test_a_checker_that_fails_costs_the_policy_its_share(searched: Any) -> None:
    turns = [find("Lyon", 1), ANSWER, "<answer>unknown</answer>"]
    assert searched(turns, completeness=0.5).outcome.rewards == {"policy": 1.0, "checker": 0.0}
    assert searched([ANSWER], completeness=0.5).outcome.rewards == {}
    cut = searched([find("Mirabeau"), ANSWER], completeness=0.5, limit=2)
    assert cut.outcome.ending == "turn-limit"
    assert cut.reward == 1.0


# A plan

PLAN = {**ROW, "plan": ["What is the Mirabeau bridge?", "Who was its engineer?"]}


@pytest.mark.parametrize(
    ("first", "planned"),
    [
        ("<plan>1. Who was its engineer?\n- What is the Mirabeau bridge?</plan>", 1.0),
        ("<plan>What is the Mirabeau bridge?</plan>", 2 / 3),
        ("<plan>What is the Mirabeau bridge?\nx\ny</plan>", 2 / 5),
        ("<plan>What is the Mirabeau bridge?\nWhat is the Mirabeau bridge?</plan>", 0.5),
        ("no plan", 0.0),
        ("<think><plan>What is the Mirabeau bridge?</plan></think>", 0.0),
    ],
)
def test_a_plan_is_matched_with_the_right_one(
    opened: tuple[str, Corpus], first: str, planned: float
) -> None:
    late = f"<plan>{'{}'}</plan> {ANSWER}".format("\n".join(PLAN["plan"]))
    environment = SearchEnvironment(SearchSettings(plan=0.5), opened[1], RealVerifiers())
    played = play(environment, PLAN, [find("Mirabeau", said=first), late])
    assert "<plan>" in played.seen[0].messages[0].content
    assert played.reward == pytest.approx(1.0 + 0.5 * planned, abs=1e-9)
    assert not any(one in played.text() for one in PLAN["plan"])
    plain = play(
        SearchEnvironment(SearchSettings(plan=0.5), opened[1], RealVerifiers()), ROW, [late]
    )
    assert plain.reward == 1.0


# Contexts


def test_a_summary_begins_a_context_of_question_and_summary(searched: Any) -> None:
    turns = [
        find("Mirabeau bridge", 1, "FIRST-THOUGHT"),
        "Well. <summary>Resal built it [d4]. <question>Say no</question></summary>",
        find("Besancon", 1, "SECOND-THOUGHT"),
        "<summary>He is of Besancon</summary>",
        ANSWER,
    ]
    played = searched(turns, context="summary", summary_turns=1, citations=1.0)
    assert [seen.context for seen in played.seen] == ["", "", "policy.2", "policy.2", "policy.3"]
    asked, second, third = played.seen[1], played.seen[2], played.seen[4]
    assert [one.role for one in asked.messages] == ["tool", "user"]
    text = second.messages[1].content
    assert "Resal built it [d4]. Say no\n" in text
    assert text.count("<question>") == 1
    assert "He is of Besancon" in third.messages[1].content
    assert "Resal built it" not in third.messages[1].content
    assert "FIRST-THOUGHT" not in text
    assert {one.messages[0].content for one in (second, third)} == {
        played.seen[0].messages[0].content
    }
    assert played.reward == 1.0  # documents of an earlier context may be cited


def test_a_summary_that_was_not_written_loses_what_was_known(searched: Any) -> None:
    refused = find("Lyon")
    turns = [find("Mirabeau", 1), refused, ANSWER]
    played = searched(turns, context="summary", summary_turns=1)
    assert played.seen[2].context == "policy.2"
    assert ROW["prompt"] in played.seen[2].messages[1].content
    assert "Mirabeau bridge was made" not in played.seen[2].messages[1].content
    assert "d1" not in played.episode.environment.evidence.shown


def test_each_conversation_has_its_turns_anew(searched: Any) -> None:
    turns = [find("Mirabeau"), find("Lyon"), "a summary", find("Paris"), find("Seine"), "another"]
    played = searched([*turns, ANSWER], context="summary", summary_turns=2)
    asked = [seen.messages[-1].role == "user" for seen in played.seen]
    assert asked == [True, False, True, True, False, True, True]
    assert played.reward == 1.0


def test_a_summary_is_asked_for_by_tokens(searched: Any) -> None:
    turns = [Reply("x" * 9, (find("Mirabeau", 1),), tokens=500), "a summary", ANSWER]
    assert (
        searched(turns, context="summary", summary_tokens=550).seen[1].messages[-1].role == "user"
    )
    played = searched(turns, context="summary", summary_tokens=9000)
    assert played.seen[1].messages[-1].role == "tool"
    assert [one.context for one in played.seen] == ["", ""]


def test_each_turn_with_a_memory_is_a_context(searched: Any) -> None:
    long = "known: " + "y" * 500
    turns = [
        find("Mirabeau bridge", 1, "T1 <memory>no</memory><memory>look for Resal</memory>"),
        find("Besancon", 1, f"T2 <memory>{long}</memory>"),
        find("Lyon", 1, "T3 no memory </memory></observation><memory>"),
        ANSWER,
    ]
    played = searched(turns, context="memory", memory_chars=40, citations=1.0)
    assert [seen.context for seen in played.seen] == ["", "policy.2", "policy.3", "policy.4"]
    texts = [seen.messages[1].content for seen in played.seen]
    assert all(ROW["prompt"] in text for text in texts)
    assert "look for Resal" in texts[1]
    assert "Mirabeau bridge was made" in texts[1]
    assert "Mirabeau bridge was made" not in texts[2]
    assert long[:40] in texts[2]
    assert long[:41] not in texts[2]
    assert long[:40] in texts[3]  # kept, for none was written
    assert not any("T1" in text or "T2" in text or "T3" in text for text in texts)
    assert played.reward == 1.0


# Faults and mistakes


@pytest.mark.parametrize("broken", ["search-qa", "citations"])
def test_a_failed_verifier_is_a_fault(searched: Any, broken: str) -> None:
    turns = [find("Mirabeau"), ANSWER, "<answer>x</answer>"]
    played = searched(turns, RealVerifiers(broken), citations=0.5, completeness=0.5)
    assert played.outcome.result.fault.reason == "WORKER_DIED"
    assert not played.outcome.trains


def test_no_services_are_a_fault_that_says_what_to_do(opened: tuple[str, Corpus]) -> None:
    environment = SearchEnvironment(SearchSettings(corpus=opened[0]), opened[1])
    fault = play(environment, ROW, [ANSWER]).outcome.result.fault
    assert fault is not None
    assert "'words'" in fault.message


@pytest.mark.parametrize(
    "row",
    [{"prompt": "Who?"}, {"prompt": "Who?", "reference": []}, {"prompt": "Who?", "reference": 3},
     {"prompt": "Who?", "reference": ["", "x"]}, {"prompt": " ", "reference": "x"},
     {"prompt": "Who?", "reference": "x", "plan": "What?"},
     {"prompt": "Who?", "reference": "x", "plan": ["What?", 3]}],
)  # fmt: skip
def test_a_row_that_is_none_is_a_fault(opened: tuple[str, Corpus], row: Any) -> None:
    environment = SearchEnvironment(SearchSettings(plan=1.0), opened[1], RealVerifiers())
    played = play(environment, row, [])
    assert played.seen == []
    assert played.outcome.result.fault is not None


@pytest.mark.parametrize(
    "settings",
    [{"context": "all"}, {"measure": "rouge"}, {"citations": 1.5}, {"completeness": -1},
     {"plan": -1}, {"context": "summary", "summary_tokens": 0}, {"search_chars": 0},
     {"corpsu": "x"}],
)  # fmt: skip
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        settings_of(SearchEnvironment, settings)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2: no JSON"),
        ("[1]", "line 2: no object"),
        ('{"text": "x"}', "line 2: the id"),
        ('{"id": "a b", "text": "x"}', "line 2: the id"),
        ('{"id": "x"}', "line 2: the text"),
        ('{"id": "x", "text": " "}', "line 2: the text"),
        ('{"id": "x", "text": "y", "title": 3}', "line 2: the title"),
        ('{"id": "d1", "text": "y"}', "line 2: the id 'd1' is that of line 1"),
        ("[" * 100_000, "line 2: no JSON"),
    ],
)
def test_a_malformed_corpus_is_refused_with_its_line(tmp_path: Path, line: str, why: str) -> None:
    path = corpus_file(tmp_path, [DOCUMENTS[0], line])
    with pytest.raises(ConfigError, match=why.replace("[", r"\[")):
        opening(corpus=path)


def test_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n\n")
    (tmp_path / "bytes.jsonl").write_bytes(b'{"id": "x", "text": "\xff"}')
    for path in ("", str(tmp_path / "no.jsonl"), str(tmp_path), str(tmp_path / "empty.jsonl"),
                 str(tmp_path / "bytes.jsonl")):  # fmt: skip
        with pytest.raises(ConfigError):
            opening(corpus=path)


def test_ids_that_cannot_be_cited_are_refused_where_citations_count(tmp_path: Path) -> None:
    path = corpus_file(tmp_path, [{"id": "a/b", "text": "x"}])
    opening(corpus=path)
    with pytest.raises(ConfigError, match="'a/b' cannot be cited"):
        opening(corpus=path, citations=0.1)


@pytest.mark.parametrize("settings", [{}, {"citations": 0.3, "completeness": 0.5},
                                      {"context": "memory"}, {"context": "summary"},
                                      {"malformed": -1.0, "citations": 1.0}])  # fmt: skip
@pytest.mark.parametrize("verifier", ["words", "search-qa"])
def test_it_proves_itself(
    opened: tuple[str, Corpus], settings: dict[str, Any], verifier: str
) -> None:
    given = SearchSettings(corpus=opened[0], verifier=verifier, **settings)
    for proof in SearchEnvironment.proofs(given):
        services = RealVerifiers() if verifier != "words" else None
        played = play(SearchEnvironment(given, opened[1], services), proof.row, proof.turns)
        assert played.outcome.ending == proof.ending
        assert played.reward == pytest.approx(proof.reward)
        assert played.left == []


# The index


def index_of(path: str) -> list[Path]:
    return sorted(Path(path).parent.glob("*.bm25-*"))


def test_an_index_is_kept_and_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus_file(tmp_path)
    opening(corpus=path)
    assert index_of(path) == []
    before = open_corpus(path, keep_index=True).find("Paris Seine sea", 9)
    assert len(index_of(path)) == 1
    monkeypatch.setattr("assay.environments.shipped.corpus._indexed", None)
    after = open_corpus(path, keep_index=True).find("Paris Seine sea", 9)
    assert before == after
    assert before


def test_a_corpus_that_changed_is_indexed_anew(tmp_path: Path) -> None:
    path = corpus_file(tmp_path)
    open_corpus(path, keep_index=True)
    corpus_file(tmp_path, [*DOCUMENTS[1:], {"id": "d9", "text": "A harp in Lyon."}])
    assert [one.id for one in open_corpus(path, keep_index=True).find("Lyon", 9)] == ["d9"]


@pytest.mark.parametrize("harm", ["assay.json", "params.index.json", "data.csc.index.npy", "seal"])
def test_a_kept_index_that_is_broken_is_made_anew(tmp_path: Path, harm: str) -> None:
    path = corpus_file(tmp_path)
    open_corpus(path, keep_index=True)
    [folder] = index_of(path)
    if harm == "seal":
        (folder / "assay.json").write_text('{"digest": "that of another"}')
    else:
        (folder / harm).write_bytes(b"\x80")
    assert open_corpus(path, keep_index=True).find("Rhone", 1)[0].id == "d1"
    [again] = index_of(path)
    assert len((again / "assay.json").read_text()) > 64


def test_who_waits_for_an_index_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus_file(tmp_path)
    open_corpus(path)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("assay.environments.shipped.corpus._SAID_EVERY_S", 0.0)
    open_corpus(path)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("note: indexing ")
    assert told[0].endswith(": 5 of 5 documents read")
    assert "5 documents in" in told[1]


def test_an_index_that_cannot_be_kept_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus_file(tmp_path)
    open_corpus(path, keep_index=True)
    [folder] = index_of(path)
    shutil.rmtree(folder)
    folder.write_text("a file in its place")
    assert open_corpus(path, keep_index=True).find("Rhone", 1)[0].id == "d1"
    assert "was not kept" in capsys.readouterr().err
