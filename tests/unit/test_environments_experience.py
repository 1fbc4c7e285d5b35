"""Notes of experience: their edits and file, and a group that teaches a policy without weights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.search_support import RealVerifiers, corpus_file, find, play

from assay.environments.experience import (
    MOST_NOTES,
    ExperienceNotes,
    JudgedAttempt,
    NoEdits,
    attempt_of,
    learn,
    notes_of,
)
from assay.environments.shipped.search import SearchEnvironment, SearchSettings
from assay.kit.errors import ConfigError

GROUP = [JudgedAttempt("guessed", 0.0), JudgedAttempt("searched", 1.0)]


class Writer:
    """Writes what it was given, in order."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked: list[Sequence[Mapping[str, str]]] = []

    async def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        self.asked.append(messages)
        return self.texts.pop(0)


def learned(library: ExperienceNotes, groups: Any, *texts: str) -> tuple[ExperienceNotes, Writer]:
    writer = Writer(*texts)
    return asyncio.run(learn(library, groups, writer)), writer


def test_edits_make_versions() -> None:
    first = ExperienceNotes().edited([{"add": "Search  first."}, {"add": "Cite."}])
    assert (first.version, dict(first.notes)) == (1, {"n1": "Search first.", "n2": "Cite."})
    second = first.edited([{"remove": "n1"}, {"change": "n2", "to": "Cite once."}, {"add": "x"}])
    assert dict(second.notes) == {"n2": "Cite once.", "n3": "x"}
    assert second.history == (ExperienceNotes().notes, first.notes)
    assert second.edited([{"remove": "n3"}]).edited([{"add": "y"}]).notes["n4"] == "y"
    assert first.edited([]) is first
    assert "- Cite once." in second.prompt
    assert ExperienceNotes().prompt == ""


@pytest.mark.parametrize(
    "edits",
    [
        ["x"], [{}], [{"add": 3}], [{"add": " "}], [{"add": "x" * 401}], [{"remove": "n9"}],
        [{"change": "n1"}], [{"change": "n9", "to": "x"}], [{"add": "x", "remove": "n1"}],
        [{"remove": "n1"}, {"remove": "n1"}], [{"add": "x"}] * MOST_NOTES,
    ],
)  # fmt: skip
def test_edits_that_are_none_change_nothing(edits: Any) -> None:
    library = ExperienceNotes().edited([{"add": "Search first."}])
    with pytest.raises(NoEdits):
        library.edited(edits)


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9).filter(str.strip)


@given(st.lists(st.lists(st.one_of(
    st.builds(lambda text: {"add": text}, TEXTS),
    st.builds(lambda n: {"remove": f"n{n}"}, st.integers(1, 9)),
    st.builds(lambda n, text: {"change": f"n{n}", "to": text}, st.integers(1, 9), TEXTS),
), max_size=3), max_size=6))  # fmt: skip
def test_versions_count_and_no_id_comes_back(steps: list[list[dict[str, str]]]) -> None:
    library, gone = ExperienceNotes(), set()
    for edits in steps:
        try:
            after = library.edited(edits)
        except NoEdits:
            continue
        gone |= set(library.notes) - set(after.notes)
        assert not gone & set(after.notes)
        assert after.version - library.version == (after.notes != library.notes)
        library = after
    assert library.version == len(library.history)


def test_a_file_of_notes(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    assert ExperienceNotes.load(path) == ExperienceNotes()
    assert notes_of("") == notes_of(str(path)) == ""
    library = ExperienceNotes().edited([{"add": "Søk."}]).edited([{"add": "Cite."}])
    library.save(path)
    assert ExperienceNotes.load(path) == library
    assert notes_of(str(path)) == library.prompt
    library.edited([{"remove": "n2"}]).save(path)
    assert "Cite" not in notes_of(str(path))
    assert [one.name for one in tmp_path.iterdir()] == ["notes.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "notes": {"n1": 3}, "last": 1}'])
def test_a_file_that_holds_no_notes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="holds no notes"):
        ExperienceNotes.load(path)


def test_a_group_of_equal_rewards_says_nothing() -> None:
    library, writer = learned(ExperienceNotes(), [[GROUP[0], GROUP[0]], [GROUP[1]], []])
    assert library == ExperienceNotes()
    assert writer.asked == []


def test_a_group_is_read_best_first_with_the_notes() -> None:
    before = ExperienceNotes().edited([{"add": "Old note."}])
    library, writer = learned(before, [GROUP], 'So: [{"add": "Search first."}]')
    assert list(library.notes.values()) == ["Old note.", "Search first."]
    task, attempts = (one["content"] for one in writer.asked[0])
    assert "n1: Old note." in task
    assert attempts.index("searched") < attempts.index("guessed")


def test_what_is_no_edit_is_asked_once_more() -> None:
    library, writer = learned(ExperienceNotes(), [GROUP], "I think", '[{"add": "x"}]')
    assert library.version == 1
    assert "no list of edits" in writer.asked[1][-1]["content"]
    library, writer = learned(ExperienceNotes(), [GROUP], "I think", '[{"remove": "n1"}]')
    assert library == ExperienceNotes()
    assert len(writer.asked) == 2


def test_notes_teach_a_policy_without_weights(tmp_path: Path) -> None:
    # The policy guesses unless its notes say to search; the writer says what the better one did.
    notes = tmp_path / "notes.json"
    settings = SearchSettings(corpus=corpus_file(tmp_path), experience=str(notes))
    row = {"prompt": "Who built the Mirabeau bridge?", "reference": "Jean Resal"}

    async def write(messages: Sequence[Mapping[str, str]]) -> str:
        best = messages[1]["content"].split("=====")[0]
        assert "Jean Resal" in best
        return json.dumps([{"add": "Search before you answer."}]) if "1896" in best else "[]"

    with SearchEnvironment.open(settings) as corpus:

        def attempt(searches: bool) -> tuple[JudgedAttempt, str]:
            environment = SearchEnvironment(settings, corpus, RealVerifiers())
            guess = ["<answer>Eiffel</answer>"]
            right = [find("Mirabeau"), "<answer>Jean Resal</answer>"]
            played = play(environment, row, right if searches else guess)
            made = attempt_of(played.episode, played.outcome)
            assert made is not None
            return made, played.seen[0].messages[0].content

        before = [attempt(searches=number == 3) for number in range(4)]
        assert sum(one.reward for one, _ in before) == 1.0
        group = [one for one, _ in before]
        asyncio.run(learn(ExperienceNotes.load(notes), [group], write)).save(notes)
        _, system = attempt(searches=False)
        assert "Search before you answer." in system
        after = [attempt(searches="Search before" in system) for _ in range(4)]
        assert sum(one.reward for one, _ in after) == 4.0


def test_an_episode_that_broke_is_in_no_group(tmp_path: Path) -> None:
    settings = SearchSettings(corpus=corpus_file(tmp_path))
    row = {"prompt": "Who?", "reference": "x"}
    with SearchEnvironment.open(settings) as corpus:
        environment = SearchEnvironment(settings, corpus, RealVerifiers("search-qa"))
        played = play(environment, row, ["<answer>x</answer>"])
    assert attempt_of(played.episode, played.outcome) is None
