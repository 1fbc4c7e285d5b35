"""The verbs of the scripts that write a file from the code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import written

MARKS = ("<!-- begin -->\n", "<!-- end -->\n")
TEXT = st.text(alphabet="ab\n", max_size=12)


@given(TEXT, TEXT, TEXT, TEXT)
def test_what_is_between_the_marks_is_replaced_and_nothing_else(
    before: str, old: str, new: str, after: str
) -> None:
    begin, end = MARKS
    document = f"{before}{begin}{old}{end}{after}"
    replaced = written.between(document, MARKS, new, "x.md")
    assert replaced == f"{before}{begin}\n{new}\n{end}{after}"
    assert written.between(replaced, MARKS, new, "x.md") == replaced


def test_check_names_what_differs_and_write_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(written, "ROOT", tmp_path)
    (tmp_path / "same.md").write_text("a")
    (tmp_path / "other.md").write_text("b")
    texts = {"same.md": "a", "other.md": "c", "made/new.md": "d"}

    def run(*arguments: str) -> int:
        wanted = {tmp_path / name: text for name, text in texts.items()}
        return written.run("How.", "the code", lambda: wanted, list(arguments))

    assert run("check") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["other.md", "made/new.md"]
    assert "differs from the code: run `" in lines[0]
    assert (tmp_path / "other.md").read_text() == "b"
    assert run("write") == 0
    assert {name: (tmp_path / name).read_text() for name in texts} == texts
    assert run("check") == 0
    for arguments in ((), ("look",), ("check", "write")):
        assert run(*arguments) == 2
        assert capsys.readouterr().err == "How.\n"
