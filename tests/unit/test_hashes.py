"""constraints.sha256 lists what constraints.txt pins, and another content under a name is told."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from scripts import hashes
from scripts.hashes import (
    NOT_LISTED,
    WRONG,
    conclude,
    merged,
    pin_of,
    read_folder,
    read_hashes,
    read_pins,
    read_report,
    render,
)

ONE, TWO = "1" * 64, "2" * 64
WHEEL, SOURCE = "a_b-1.0-py3-none-any.whl", "c-2.tar.gz"
LISTED = {WHEEL: {ONE}, SOURCE: {TWO}}


def test_each_pin_is_listed_and_nothing_else(repository: Path) -> None:
    listed = read_hashes((repository / "constraints.sha256").read_text())
    pins = read_pins((repository / "constraints.txt").read_text())
    assert {pin_of(name) for name in listed} == pins, "run `make hashes`"
    assert render(listed) == (repository / "constraints.sha256").read_text()


@pytest.mark.parametrize(
    ("file", "name", "version"),
    [
        (WHEEL, "a-b", "1.0"),
        ("a.B_c-1.0rc1-1-cp311-abi3-linux_x86_64.whl", "a-b-c", "1.0rc1"),
        ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", "torch", "2.13.0"),
        ("antlr4-python3-runtime-4.13.2.tar.gz", "antlr4-python3-runtime", "4.13.2"),
        ("c-2.zip", "c", "2"),
        ("README", "", ""),
    ],
)
def test_a_file_tells_its_pin(file: str, name: str, version: str) -> None:
    assert pin_of(file) == (name, version)


@pytest.mark.parametrize("text", ["a", f"{ONE} {WHEEL}", f"{ONE}  a b", f"{ONE[1:]}  {WHEEL}", " "])
def test_a_line_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not SHA256"):
        read_hashes(text)


def test_a_name_may_have_several_hashes() -> None:
    several = {WHEEL: {ONE, TWO}}
    assert read_hashes(render(several)) == several
    assert conclude({WHEEL: {TWO}}, several, where_listed=False)[0] == 0


@pytest.mark.parametrize(
    ("found", "where_listed", "status", "says"),
    [
        (LISTED, False, 0, "2 archives are those"),
        ({WHEEL: {TWO}}, True, WRONG, f"{WHEEL} is not the file"),
        ({WHEEL: {ONE}, "torch-2+cpu-x.whl": {ONE}}, False, NOT_LISTED, "torch-2+cpu-x.whl"),
        ({WHEEL: {ONE}, "torch-2+cpu-x.whl": {ONE}}, True, 0, "1 archives are those"),
        ({"torch-2+cpu-x.whl": {ONE}, SOURCE: {ONE}}, True, WRONG, f"{SOURCE} is not the file"),
        ({WHEEL: {ONE}, "assay_api-0.1.0-py3-none-any.whl": {TWO}}, False, 0, "1 archives"),
    ],
)
def test_the_conclusion(found: hashes.Hashes, where_listed: bool, status: int, says: str) -> None:
    code, lines = conclude(found, LISTED, where_listed)
    assert code == status
    assert says in "\n".join(lines)


def test_the_list_follows_the_pins_and_never_takes_another_content() -> None:
    pins = {("a-b", "1.0"), ("d", "3")}
    fresh = {"d-3-py3-none-any.whl": {TWO}}
    elsewhere = {"a_b-1.0-cp311-cp311-macosx_11_0_arm64.whl": {TWO}}
    assert merged(LISTED | elsewhere, fresh, pins) == {WHEEL: {ONE}} | elsewhere | fresh
    with pytest.raises(ValueError, match=f"another content than is listed for {WHEEL}"):
        merged(LISTED, {WHEEL: {TWO}}, pins)
    with pytest.raises(ValueError, match="no hash for d==3"):
        merged(LISTED, {}, pins)


def report(*archives: tuple[str, str]) -> dict[str, Any]:
    told: list[dict[str, Any]] = [
        {"url": url, "archive_info": {"hashes": {"sha256": sha}}} for url, sha in archives
    ]
    told.append({"url": "file:///src/protos", "dir_info": {"editable": True}})
    return {"install": [{"download_info": one} for one in told]}


def test_a_report_of_pips_is_read() -> None:
    local = "file:///wheels/torch-2.13.0%2Bcpu-x.whl"
    found = report((f"https://index.example/a/{WHEEL}#sha256=0", ONE), (local, TWO))
    assert read_report(found) == {WHEEL: {ONE}, "torch-2.13.0+cpu-x.whl": {TWO}}
    assert read_report(found, indexed=True) == {WHEEL: {ONE}}


def test_the_command_compares_folders_and_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "notes.txt").write_text("no archive")
    assert hashes.main(["check", str(wheels)]) == WRONG
    assert "holds no archive" in capsys.readouterr().err
    (wheels / WHEEL).write_bytes(b"sound")
    digest = hashlib.sha256(b"sound").hexdigest()
    assert read_folder(wheels) == {WHEEL: {digest}}
    monkeypatch.setattr(hashes, "HASHES", tmp_path / "constraints.sha256")
    hashes.HASHES.write_text(f"{digest}  {WHEEL}\n")
    told = tmp_path / "report.json"
    told.write_text(json.dumps(report((f"https://index.example/{WHEEL}", digest))))
    assert hashes.main(["check", str(wheels)]) == hashes.main(["check", str(told)]) == 0
    (wheels / WHEEL).write_bytes(b"not sound")
    assert hashes.main(["check", str(wheels), "--where-listed"]) == WRONG
    assert "is not the file" in capsys.readouterr().err
    assert hashes.main(["check", str(tmp_path / "nothing")]) == WRONG
    assert hashes.main(["check"]) == 2
