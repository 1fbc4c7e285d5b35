"""Rows for what a server lacks: the command says so before anything is judged, in one line."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli.commands.score import score
from assay.cli.scoring.rows import RowSource, check_routes, survey
from assay.clients import services
from assay.clients.convert import server_info_from_proto
from assay.clients.testing import FakeRewardServer, exact_info
from assay.clients.types import ServerInfo
from assay.kit.errors import ConfigError

PLAIN = {"response": "", "reference": "4", "verifier": "exact"}
CODE = {"response": "", "tests": ["assert f()"], "verifier": "code"}
SQL = {"response": "", "reference": {"query": "select 1"}, "task": "text-to-sql"}


def served(*names: str) -> ServerInfo:
    """A server with `exact`, and others that are described as it is."""
    from assay.api.reward.v1 import reward_pb2

    info = server_info_from_proto(reward_pb2.ListVerifiersResponse(verifiers=[exact_info()]))
    more = [dataclasses.replace(info.verifiers[0], name=name) for name in names]
    return dataclasses.replace(info, verifiers=(*info.verifiers, *more))


def refused(folder: Path, info: ServerInfo, *rows: dict[str, Any], here: bool = False) -> str:
    """What is said of the rows; empty for rows that can be judged."""
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = RowSource(path, "in.jsonl")
    try:
        check_routes(source, survey(source), info, started_here=here)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("row", "name", "service"),
    [
        (CODE, "code", "sandbox"),
        (SQL, "text-to-sql", "sandbox"),
        ({"response": "", "reference": "4", "verifier": "judge"}, "judge", "genrm"),
        ({"response": "", "reference": "4", "task": "prm"}, "prm", "genrm"),
    ],
)
def test_rows_for_a_service_that_is_not_there(
    tmp_path: Path, row: dict[str, Any], name: str, service: str
) -> None:
    said = refused(tmp_path, served(), PLAIN, row, row, row)
    assert said.startswith(f"in.jsonl:2: 3 rows ask for {name!r}; it needs the service {service}")
    assert "`assay up`" in said
    assert f"--{service}-target" in said
    assert "\n" not in said
    assert refused(tmp_path, served(name), PLAIN, {**row, "task": "", "verifier": name}) == ""


def test_where_the_sandbox_is_not_installed_it_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "installed_services", dict)
    said = refused(tmp_path, served(), CODE)
    assert "1 row asks for 'code'" in said
    assert "pip install ./sandbox" in said


def test_rows_for_an_extra_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {**PLAIN, "verifier": "math-verify"}
    assert refused(tmp_path, served("math-verify"), row, here=True) == ""
    monkeypatch.setattr(services, "find_spec", lambda _: None)
    said = refused(tmp_path, served("math-verify"), row, row, here=True)
    assert "2 rows ask for 'math-verify', and math_verify is not installed here" in said
    assert "pip install './plugins/verifiers_extra[math-verify]'" in said
    # Another machine's server may have it.
    assert refused(tmp_path, served("math-verify"), row) == ""
    # Where the plug-in itself is absent, the message names plug-in and extra.
    said = refused(tmp_path, served(), row)
    assert "it comes with assay-rl-verifiers-extra[math-verify]" in said


@pytest.mark.parametrize(
    ("rows", "wanted"), [([PLAIN], False), ([PLAIN, CODE], True), ([SQL], True)]
)
def test_a_sandbox_is_started_beside_rows_that_need_one(
    tmp_path: Path, rows: list[dict[str, Any]], wanted: bool
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert survey(RowSource(path, "in.jsonl")).asks_sandbox is wanted


def test_nothing_is_judged_and_nothing_is_written(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text(json.dumps(PLAIN) + "\n" + json.dumps(CODE) + "\n")
    with FakeRewardServer(verifiers=[exact_info()]) as server:
        flags = [str(path), "-o", str(out), "--target", server.address]
        with pytest.raises(
            ConfigError, match="1 row asks for 'code'; it needs the service sandbox"
        ):
            score.main(flags, standalone_mode=False)
        assert server.requests == []
    assert not out.exists()
