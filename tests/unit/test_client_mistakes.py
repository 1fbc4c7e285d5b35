"""What a caller does wrong by mistake is said in words that mend it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.parameters import find_verifier
from assay.clients import ClientTls, Item, RewardClient
from assay.clients.testing import FakeRewardServer
from assay.clients.testing.report import Report
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean


def test_a_mapping_is_no_item() -> None:
    items = cast("Any", [Item("4", "4"), {"response": "4"}])
    with (
        RewardClient("127.0.0.1:1") as client,
        pytest.raises(TypeError, match=r"items\[1\] is a dict; pass Item"),
    ):
        client.score(items)


def test_files_of_tls_may_be_named_by_texts(tmp_path: Path) -> None:
    absent = str(tmp_path / "ca.pem")
    with (
        RewardClient("127.0.0.1:1", tls=ClientTls(ca_file=absent)) as client,
        pytest.raises(ConfigError, match=r"TLS CA file .*ca\.pem cannot be read"),
    ):
        client.score([Item("4", "4")])


def test_a_verifier_that_is_misspelt_is_suggested() -> None:
    with FakeRewardServer() as server, RewardClient(server.address) as client:
        info = client.list_verifiers()
    known = info.verifiers[0].name
    with pytest.raises(ConfigError, match=f"'{known}x'; did you mean '{known}'"):
        find_verifier(info, f"{known}x")


@given(st.sampled_from(["math", "math-dapo", "IFEval"]), st.text(max_size=200))
def test_a_name_is_suggested_only_where_one_is_near(name: str, text: str) -> None:
    known = ["math", "math-dapo", "IFEval"]
    assert did_you_mean(name + "s", known) == f"; did you mean {name!r}?"
    assert did_you_mean(name.swapcase(), known) == f"; did you mean {name!r}?"
    assert did_you_mean(text, []) == ""
    assert did_you_mean(text, known) in {"", *(f"; did you mean {one!r}?" for one in known)}


def test_checks_that_came_out_alike_are_one_line_of_a_report() -> None:
    report = Report("shout", "1")
    for number in range(40):
        report.add("hostile", f"text {number}", "raised KeyError" if number % 4 else "")
    report.add("hostile", "another", "timed out")
    assert str(report).splitlines() == [
        "shout 1: 10 checks passed, 31 failed",
        "  ok    hostile: text 0, text 4, text 8 and 7 more",
        "  FAIL  hostile: text 1, text 2, text 3 and 27 more: raised KeyError",
        "  FAIL  hostile: another: timed out",
    ]
    with pytest.raises(AssertionError, match="27 more: raised KeyError"):
        report.raise_for_failures()
