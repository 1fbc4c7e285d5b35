"""Measured rates: the file, what counts of several, what clients are told, what a run reports."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.clients.convert import server_info_from_proto
from assay.kit.errors import ConfigError
from assay.kit.reliability import (
    ErrorRate,
    Reliability,
    error_rate,
    read_reliability,
    reliability_text,
)
from assay.reward_server.convert import info_to_proto
from assay.reward_server.registry import load_registry
from assay.reward_server.reliability import SHIPPED, load_reliability

REGISTRY = load_registry()
MATH = REGISTRY.verifier("math")
ONE = Reliability("gsm8k", error_rate(0, 50), None, "5", "ab" * 32, "labels")

counts = st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))
rates = st.none() | st.builds(lambda pair: error_rate(*pair), counts)
texts = st.text(min_size=1, max_size=20).filter(str.strip)
entries = st.builds(
    Reliability,
    st.from_regex("[a-z][a-z0-9-]{0,20}", fullmatch=True),
    rates,
    rates,
    texts,
    st.text("0123456789abcdef", min_size=64, max_size=64),
    texts,
)


@given(st.lists(st.tuples(texts, entries), max_size=4))
def test_a_file_holds_what_was_written(measured: list[tuple[str, Reliability]]) -> None:
    assert read_reliability(reliability_text(measured), "x") == measured


@given(entries)
def test_a_client_gets_what_the_server_has(one: Reliability) -> None:
    assert MATH is not None
    message = reward_pb2.ListVerifiersResponse(verifiers=[info_to_proto(MATH.spec, [one])])
    wire = reward_pb2.ListVerifiersResponse.FromString(message.SerializeToString())
    [info] = server_info_from_proto(wire).verifiers
    assert info.reliability == (one,)


def test_no_error_of_fifty_is_not_none_ever() -> None:
    rate = error_rate(0, 50)
    assert rate is not None
    assert (rate.value, rate.low) == (0, 0)
    assert rate.high == pytest.approx(1 - 0.025 ** (1 / 50))
    assert error_rate(0, 0) is None
    assert "(0 to 7.1; 50 responses)" in str(rate)


def test_another_version_is_said() -> None:
    assert "version" not in ONE.told("5")
    assert ONE.told("6").endswith("; version 5")
    assert replace(ONE, false_positive=None).told("5").startswith("not measured")


RATE = asdict(ErrorRate(0.1, 0.0, 0.2, 0.95, 10))
ENTRY = {"verifier": "math", **asdict(ONE)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"domain": "two words"}, "'domain' is 'two words'"),
        ({"data_digest": "abc"}, "64 hexadecimal digits"),
        ({"truth": " "}, "'truth' must be a text"),
        ({"more": 1}, "and no other"),
        ({"false_positive": {**RATE, "low": 0.2}}, "low <= value <= high"),
        ({"false_positive": {**RATE, "high": 2}}, "low <= value <= high"),
        ({"false_positive": {**RATE, "value": True}}, "low <= value <= high"),
        ({"false_positive": {**RATE, "confidence": 1}}, "a confidence between"),
        ({"false_positive": {**RATE, "responses": 1.5}}, "a whole number"),
        ({"false_positive": 0.1}, "null or have the keys"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(change: dict[str, Any], said: str) -> None:
    text = json.dumps({"format": 1, "measured": [ENTRY, {**ENTRY, **change}]})
    with pytest.raises(ConfigError, match=r"rates\.json, entry 2") as caught:
        read_reliability(text, "rates.json")
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1}', "[" * 100_000])
def test_what_is_no_such_file_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"rates\.json: "):
        read_reliability(text, "rates.json")


def test_what_ships_is_of_verifiers_that_there_are() -> None:
    shipped = read_reliability(SHIPPED.read_text(), SHIPPED.name)
    assert {name for name, _ in shipped} == {"math", "math-verify", "game24"}
    assert all(REGISTRY.get(name) is not None for name, _ in shipped)
    assert len({(name, one.domain) for name, one in shipped}) == len(shipped)


def test_a_file_of_the_operator_counts_before_what_ships(tmp_path: Path) -> None:
    file = tmp_path / "rates.json"
    ours = load_reliability(())["math"][0]
    mine = replace(ONE, domain=ours.domain)
    file.write_text(reliability_text([("math", mine), ("mine", ONE)]))
    found = load_reliability([file])
    assert mine in found["math"]
    assert ours not in found["math"]
    assert len(found["math"]) == len(load_reliability(())["math"])
    assert found["mine"] == (ONE,)
    with pytest.raises(ConfigError, match=r"absent\.json: cannot read"):
        load_reliability([tmp_path / "absent.json"])
