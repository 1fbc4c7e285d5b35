"""`assay environments`: what is installed, what one offers, its proofs, an episode by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from assay.cli.environments.playing import turn_of, typed
from assay.cli.main import run
from assay.environments.record import read
from assay.environments.registry import environments
from assay.kit.errors import ConfigError

SUMS = '''
from dataclasses import dataclass
from assay.environments import Environment, Proof, ToolCall, ToolResult, tool
from assay.environments.environment import EpisodeFault
from assay.clients.types import Fault

@dataclass(frozen=True)
class SumSettings:
    """Of Sums.

    Attributes:
        most: the largest sum
            that is told.
        words: told before it.
    """

    most: int = 100
    words: str = ""

class Sums(Environment):
    """Sums of numbers. Small ones."""

    Settings = SumSettings

    def reset(self, row):
        self.total = row["total"]
        return row["prompt"]

    @tool
    def add(self, a: int, b: int) -> ToolResult:
        """Adds two numbers.

        Args:
            a: the first.
            b: the second.
        """
        return ToolResult(f"{self.settings.words}{min(a + b, self.settings.most)}", reward=0.125)

    @tool
    def broken(self) -> str:
        """Breaks."""
        raise OSError("no disk")

    def reward(self):
        return float(str(self.total) in self.last.answer)

    @classmethod
    def proofs(cls, settings):
        row = {"prompt": "1 + 2?", "total": 3}
        turns = [ToolCall("add", {"a": 1, "b": 2}), "3"]
        return [Proof(row, turns, reward=float(settings.most > 2))]

class Wrong(Sums):
    """Pays for nothing."""

    def reward(self):
        return 1.0

    @classmethod
    def proofs(cls, settings):
        return [Proof({"prompt": "", "total": 3}, ["4"], reward=0.0)]

class Bare(Sums):
    """Proves nothing."""

    @classmethod
    def proofs(cls, settings):
        return ()
'''
ROW = '{"prompt": "1 + 2?", "total": 3}'


@pytest.fixture
def sums(tmp_path: Path) -> str:
    path = tmp_path / "sums.py"
    path.write_text(SUMS)
    return f"{path}:"


def test_every_installed_environment_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["environments", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(environments())
    assert [row["summary"] for row in rows if row["tools"] is None] == []
    assert run(["environments", "list"]) == 0
    shown = capsys.readouterr().out
    for row in rows:
        assert f"{row['name']}: {row['summary']}" in shown


def test_one_is_shown_with_its_tools_and_settings(
    sums: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["environments", "show", sums + "Sums"]) == 0
    shown = capsys.readouterr().out
    assert "add: Adds two numbers." in shown
    assert "most (int, 100) the largest sum that is told." in shown
    assert run(["environments", "show", sums + "Sums", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tools"][0]["parameters"]["required"] == ["a", "b"]
    assert [one["default"] for one in told["settings"]] == [100, ""]
    assert run(["environments", "show", "pyhton"]) == 1
    assert "did you mean" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (["Sums"], 0, "ok     1: reward 1"),
        (["Sums", "--settings", "most=2"], 1, "FAILED 1"),
        (["Wrong"], 1, "FAILED 1: expected reward 0"),
        (["Bare"], 1, "has no proofs"),
        (["Sums", "--settings", "mots=2"], 1, "did you mean"),
        (["Sums", "--settings", "most"], 1, "has no value"),
    ],
)
def test_proofs_decide_the_exit_code(
    sums: str, asked: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = asked
    assert run(["environments", "check", sums + name, *options]) == code
    out, err = capsys.readouterr()
    assert said in out + err


def test_a_person_plays_an_episode(
    sums: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "record.json"
    lines = '/add a=1 b=2\n/add {"a": "x", "b": 1}\n/add {"a": \n/nothing\nit is 3\n'
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    options = ["--settings", "words=told ", "--record", str(record)]
    assert run(["environments", "play", sums + "Sums", "--row", ROW, *options]) == 0
    shown = capsys.readouterr().out
    assert "user: 1 + 2?" in shown
    assert "tool add: told 3" in shown
    assert "reward of the turn: 0.125" in shown
    assert "error: add: a: Input should be a valid integer" in shown
    assert "error: add: the arguments are no JSON" in shown
    assert "error: there is no tool 'nothing'; tools: add, broken" in shown
    assert "end: answered, 5 turns" in shown
    assert "reward 1, verdict correct" in shown
    back = read(json.loads(record.read_text()))
    assert [len(step.calls) for step in back.steps] == [1, 1, 1, 1, 0]


def test_a_file_plays_one_and_a_fault_is_the_exit_code(
    sums: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns, row = tmp_path / "turns.jsonl", tmp_path / "row.json"
    row.write_text(ROW)
    turns.write_text('[{"name": "add", "arguments": {"a": 1, "b": 1}}, {"name": "broken"}]\n"3"\n')
    asked = ["environments", "play", sums + "Sums", "--row", f"@{row}", "--turns", str(turns)]
    assert run(asked) == 1
    shown = capsys.readouterr().out
    assert "fault ENVIRONMENT_FAILED" in shown
    assert "no disk" in shown
    turns.write_text('\n{"name": "add", "arguments": {"a": 1, "b": 1}}\n')
    assert run(asked) == 0
    assert "end: abandoned, 1 turns" in capsys.readouterr().out
    assert run([*asked, "--max-turns", "1"]) == 0
    assert "end: turn-limit, 1 turns" in capsys.readouterr().out
    turns.write_text("7\n")
    assert run(asked) == 1
    assert "a turn is a text, a call" in capsys.readouterr().err
    for bad in ("[1]", "{", "@nowhere"):
        assert run(["environments", "play", sums + "Sums", "--row", bad]) == 1


def test_what_is_typed_becomes_a_turn() -> None:
    assert typed("hello").answer == "hello"
    assert typed("").void
    assert typed('/add a=1 b="two words" c=x').calls[0].arguments == {
        "a": 1, "b": "two words", "c": "x",
    }  # fmt: skip
    assert typed("/look").calls[0].arguments == {}
    for bad in (3, [3], [{"arguments": {}}], {"name": 3}):
        with pytest.raises(ConfigError):
            turn_of(bad)
