"""`assay journal`: each command on a real file."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import io
import json
import time
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from assay.kit.errors import ConfigError
from assay.reward_server.domain import Appeal, Hearing
from assay.reward_server.journal.command import journal
from assay.reward_server.journal.rejudge import RejudgeTally
from journal_support import LATE, SPANNED, filled, judgement, settled


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("journal") / "verdicts.sqlite"
    offers = [
        [
            settled("a", judgement(0.0, "incorrect"), response="it is 41"),
            settled("b", SPANNED, response="first\nsecond \x1b[31mred\u202e"),
            settled("c", LATE, response="slow 100% sure"),
        ],
        [settled("a", verifier="math", response="it is 41")],
    ]
    asyncio.run(filled(path, offers))
    return path


def invoke(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(journal, [str(a) for a in arguments], standalone_mode=False)
    if isinstance(result.exception, ConfigError):
        raise result.exception
    return result


def test_tail_prints_a_line_for_each_and_obeys_no_control_character(path: Path) -> None:
    lines = invoke("tail", path).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert "fault ITEM_TIMEOUT" in lines[2]
    assert "\x1b" not in lines[1]
    assert "\u202e" not in lines[1]
    assert "\\u001b[31mred" in lines[1]
    assert len(invoke("tail", path, "-n", "1").stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--verifier", "exact"], [1, 2, 3]),
        (["--verdict", "incorrect"], [1]),
        (["--fault", "ITEM_TIMEOUT"], [3]),
        (["--only", "faults"], [3]),
        (["--only", "judgements", "--verifier", "exact"], [1, 2]),
        (["--text", "IT IS"], [1, 4]),
        (["--text", "100% s"], [3]),
        (["--text", "1__%"], []),
        (["--suspicion", "several-boxed-answers"], [2]),
        (["--least-reward", "0.5", "--most-reward", "0.5"], [2]),
        (["--item", "a", "--since", "1h"], [1, 4]),
        (["--since", "2999-01-01"], []),
    ],
)
def test_search_finds(path: Path, options: list[str], found: list[int]) -> None:
    result = invoke("search", path, "--json", *options)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == found
    assert (result.return_value == 1 or result.exit_code == 1) == (not found)


def test_show_prints_all_of_one(path: Path) -> None:
    text = invoke("show", path, "2").stdout
    for part in (
        "half of it",
        "several-boxed-answers",
        "[0:2] step 1",
        "What is 6 * 7?",
        "answer: 42",
    ):
        assert part in text, part
    assert "\x1b" not in text
    with pytest.raises(ConfigError, match="has no entry 99"):
        invoke("show", path, "99")


def test_export_writes_each_entry_once_and_overwrites_nothing(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    assert "3 entries" in invoke("export", path, "-o", target, "--verifier", "exact").stdout
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert rows[1]["spans"] == [[0, 2, 1.0, "step", 0], [2, 5, 0.0, "step", 0]]
    assert rows[1]["components"] == [{"name": "match", "score": 0.5, "weight": 1.0}]
    assert isinstance(invoke("export", path, "-o", target).exception, FileExistsError)
    assert len(invoke("export", path).stdout.splitlines()) == 4


def test_stats_and_compare_count(path: Path) -> None:
    stats = invoke("stats", path).stdout
    assert stats.startswith("4 entries")
    assert "exact: 2 judged, mean reward 0.25, 1 faults" in stats
    text = invoke("compare", path, "exact", "math").stdout
    assert "1 items that both judged, 0 without" in text
    assert "exact incorrect, math correct: 1" in text
    with pytest.raises(ConfigError, match="no item that 'exact' and 'judge' both saw"):
        invoke("compare", path, "exact", "judge")
    with pytest.raises(ConfigError, match="two different"):
        invoke("compare", path, "exact", "exact")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--since", "yesterday"], "neither like 15m"),
        (["--verdict", "correct", "--only", "faults"], "a fault has no verdict"),
        (["--fault", "X", "--only", "judgements"], "leave nothing"),
    ],
)
def test_options_that_make_no_sense_are_refused(path: Path, options: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        invoke("search", path, *options)


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with pytest.raises(ConfigError, match="no such file"):
        invoke("stats", notes)
    notes.write_text("not a data base at all, only words" * 50)
    with pytest.raises(ConfigError, match="cannot be read as a journal"):
        invoke("stats", notes)


def test_follow_prints_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    asyncio.run(filled(path, [[settled("old")]]))
    naps = 0

    def sleep(_: float) -> None:
        nonlocal naps
        naps += 1
        if naps == 1:
            asyncio.run(filled(path, [[settled("new", response="just came")]]))
        elif naps == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("assay.reward_server.journal.command.time.sleep", sleep)
    result = invoke("tail", path, "-n", "0", "--follow")
    assert result.stdout.count("just came") == 1
    assert len(result.stdout.splitlines()) == 1


def test_since_counts_back_from_now(path: Path) -> None:
    assert len(invoke("search", path, "--since", "1d").stdout.splitlines()) == 4
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 3600))
    assert "no entry" in invoke("search", path, "--since", soon).stderr


def test_the_command_is_installed_with_the_server(repository: Path) -> None:
    project = tomllib.loads((repository / "reward_server" / "pyproject.toml").read_text())
    module, _, name = project["project"]["entry-points"]["assay.commands"]["journal"].partition(":")
    assert getattr(importlib.import_module(module), name) is journal
    assert set(journal.commands) == {
        "tail", "search", "show", "export", "stats", "compare", "serve", "rejudge", "backup"
    }  # fmt: skip
    page = (repository / "docs" / "operate" / "journal.md").read_text(encoding="utf-8")
    assert all(f"assay journal {command} FILE" in page for command in journal.commands)


def test_both_verdicts_of_an_appeal_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "appeals.sqlite"
    first, second = Hearing("match", "1", "incorrect", 0.0), Hearing("judge", "3", "correct", 1.0)
    appeal = Appeal("answer", first, second, drawn=False, probability=1.0)
    upheld = dataclasses.replace(appeal, second=first, drawn=True, probability=0.05)
    offers = [settled("a", judgement(appeal=appeal)), settled("b", judgement(0.0, "incorrect"))]
    offers.append(settled("c", judgement(0.0, "incorrect", appeal=upheld)))
    asyncio.run(filled(path, [offers]))
    lines = invoke("search", path, "--appeal", "any").stdout.splitlines()
    assert ["(first incorrect)" in line for line in lines] == [True, True]
    [line] = invoke("search", path, "--appeal", "changed", "--json").stdout.splitlines()
    assert json.loads(line)["appeal"] == dataclasses.asdict(appeal)
    whole = invoke("show", path, "1").stdout
    assert "appeal: first match 1: incorrect 0" in whole
    assert "appeal: second judge 3: correct 1" in whole
    assert "appeal: of answer, its verdict is appealed, chance 1" in whole
    assert "drawn, chance 0.05" in invoke("show", path, "3").stdout
    with pytest.raises(ConfigError, match="a fault has no appeal"):
        invoke("search", path, "--appeal", "any", "--only", "faults")


def test_rejudging_shows_what_an_appeal_overruled() -> None:
    first, second = Hearing("match", "1", "incorrect", 0.0), Hearing("judge", "3", "correct", 1.0)
    appeal = dataclasses.asdict(Appeal("answer", first, second, drawn=False, probability=1.0))
    tally = RejudgeTally("math")
    line = {"id": 1, "reward": 0.0, "verdict": "incorrect", "fault": None, "explanation": ""}
    recorded = {"reward": 1.0, "verdict": "correct", "fault": None, "appeal": appeal}
    tally.add(line | {f"input_{name}": value for name, value in recorded.items()})
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(tally.report())
    assert "correct 1 (first incorrect)" in console.export_text()
