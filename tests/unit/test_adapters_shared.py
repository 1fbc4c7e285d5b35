"""What the adapters share: policies, rows of data sets, settings, one client for each process."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Component, Data, Fault, Item, Judgement, Result
from assay.clients.rows.tests import read_tests
from assay.clients.testing import FakeRewardServer, Knobs
from assay.clients.trainers.common.faults import (
    FaultError,
    FaultPolicy,
    judgement_of,
    raise_for_faults,
    read_policy,
    tell_faults,
)
from assay.clients.trainers.common.gym_rows import FAILED_OVER_HTTP, FAULTED, unsaid
from assay.clients.trainers.common.rows import RowReader, label_of, reference_of
from assay.clients.trainers.common.settings import (
    Settings,
    client_of,
    close_clients,
    read_settings,
)
from assay.clients.trainers.trl import Reporter
from assay.kit.errors import ConfigError

GOOD = Result("a", Judgement(0.5, "partly", (Component("style", 0.5, 1.0),)))
BAD = Result("b", Fault("QUEUE_FULL", "the queue is full"))


@pytest.fixture(autouse=True)
def no_clients_left() -> Iterator[None]:
    yield
    close_clients()


def test_a_fault_raises_what_travels_between_processes() -> None:
    assert judgement_of(GOOD).reward == 0.5
    with pytest.raises(FaultError, match="'b': QUEUE_FULL: the queue is full") as caught:
        raise_for_faults([GOOD, BAD])
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.item_id, copy.fault, str(copy)) == ("b", BAD.fault, str(caught.value))


OWN = st.dictionaries(
    st.sampled_from(["response", "expected_answer", "explanation", "instance_config"]),
    st.integers() | st.dictionaries(st.sampled_from(["seed", "n"]), st.integers(), max_size=2),
)
MARKS = {"_ng_failure_reason": "QUEUE_FULL", "_ng_failure_terminal": True, "mask_sample": True}


@given(OWN, st.sampled_from([FAULTED, FAILED_OVER_HTTP]))
def test_a_row_of_gym_keeps_nothing_of_an_earlier_verification(
    row: dict[str, Any], our: str
) -> None:
    assert unsaid(row) == row
    assert unsaid({**row, "reward": 1.0, "verdict": "fine", "extracted_answer": "4"}) == row
    failed = {**row, **MARKS, "reward": 0.0, "_ng_failure_class": our}
    if isinstance(row.get("instance_config"), dict):
        failed["instance_config"] = {**row["instance_config"], "mask_sample": True}
    assert unsaid(failed) == row
    others = {**row, **MARKS, "_ng_failure_class": "agent_failed"}
    assert unsaid(others) == others, "somebody else's failure is theirs to take back"


@given(st.text(max_size=8))
def test_a_policy_is_one_that_the_trainer_can_follow(text: str) -> None:
    allowed = (FaultPolicy.RAISE, FaultPolicy.MASK)
    if text in ("raise", "mask"):
        assert read_policy(text, allowed, "it") == text
    else:
        with pytest.raises(ConfigError, match="with it choose one of: raise, mask"):
            read_policy(text, allowed, "it")


def test_a_policy_that_only_others_can_follow_is_refused() -> None:
    with pytest.raises(ConfigError, match="'drop'"):
        read_policy("drop", [FaultPolicy.RAISE], "it")


def test_references_as_parquet_files_hold_them() -> None:
    assert reference_of(np.array(["a", "b"], dtype=object), "row 0") == ["a", "b"]
    assert reference_of(np.int64(4), "row 0") == "4"
    assert reference_of(np.str_("x"), "row 0") == "x"
    assert reference_of({"n": 1}, "row 0") == Item(reference={"n": 1}).reference
    assert reference_of(Data([1, 2]), "row 0") == Data([1, 2])
    assert reference_of(None, "row 0") is None
    with pytest.raises(ConfigError, match="of item 7 is True"):
        reference_of(np.bool_(True), "item 7")


def test_labels_that_are_json() -> None:
    assert label_of('["a", "b"]', "json", "row 0") == ["a", "b"]
    suite = label_of('{"inputs": ["1"], "outputs": ["2"]}', "tests", "row 0")
    assert suite == read_tests({"inputs": ["1"], "outputs": ["2"]})
    assert label_of(None, "tests", "row 0") is None
    for label, kind, text in [
        ("[", "json", "of row 0 is no JSON"),
        ('{"inputs": []}', "tests", "of row 0: "),
        ("x", "yaml", "choose one of: text, json, tests"),
    ]:
        with pytest.raises(ConfigError, match=text):
            label_of(label, kind, "row 0")


def test_rows_are_read_by_the_kind_of_their_references() -> None:
    reader = RowReader(verifier="code", reference_kind="tests")
    column = {"answer": ['{"inputs": ["1"], "outputs": ["2"]}']}
    [item] = reader.items(["p"], ["c"], None, column)
    assert item.reference == read_tests({"inputs": ["1"], "outputs": ["2"]})


def test_options_go_before_the_environment() -> None:
    around = {"ASSAY_TARGET": "a:1", "ASSAY_TASK": "math", "ASSAY_TIMEOUT_S": "5"}
    assert read_settings({}, around) == Settings("a:1", task="math", timeout_s=5.0)
    given_too = {"target": "b:2", "timeout_s": 9, "task": None, "reward_router_address": "x"}
    assert read_settings(given_too, around) == Settings("b:2", task="math", timeout_s=9.0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "set target or ASSAY_TARGET"),
        ({"target": "a:1", "timeout_s": "soon"}, "timeout_s is 'soon'"),
        ({"target": "a:1", "timeout_s": -1}, "positive number of seconds"),
    ],
)
def test_what_is_wrong_with_settings_is_said(options: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        read_settings(options, {})


def test_a_token_is_not_printed() -> None:
    assert "secret" not in repr(read_settings({"target": "a:1", "token": "secret"}, {}))


def test_a_certificate_wants_an_authority() -> None:
    settings = read_settings({"target": "a:1"}, {"ASSAY_CLIENT_CERT": "c.pem"})
    with pytest.raises(ConfigError, match="ASSAY_TLS_CA"):
        client_of(settings)


def test_one_client_for_equal_settings_on_any_loop_and_in_children() -> None:
    with FakeRewardServer(knobs=Knobs(fault_ids=frozenset({"1"}))) as server:
        settings = Settings(server.address, verifier="exact")
        client = client_of(settings)
        assert client_of(Settings(server.address, verifier="exact")) is client
        items = [Item("1", "1", "exact", id=str(n)) for n in range(2)]

        async def both() -> list[float | None]:
            one = asyncio.wrap_future(client.submit_one(items[0]))
            many = asyncio.wrap_future(client.submit(items))
            return [(await one).reward, *[result.reward for result in await many]]

        for _ in range(2):  # another event loop each time
            assert asyncio.run(both()) == [1.0, 1.0, None]
        child = os.fork()
        if child == 0:
            scored = client_of(settings).score_one(items[0]).reward
            os._exit(0 if scored == 1.0 else 1)
        assert os.waitpid(child, 0)[1] == 0
        close_clients()
        assert client_of(settings) is not client


def test_components_are_logged_by_name_and_absent_ones_are_none() -> None:
    metrics: dict[str, list[float]] = {}
    extras: dict[str, list[object]] = {}
    columns = {
        "log_metric": lambda name, value: metrics.setdefault(name, []).append(value),
        "log_extra": lambda name, values: extras.setdefault(name, []).extend(values),
    }
    reporter = Reporter("r")
    reporter.report([GOOD, BAD], columns)
    reporter.report([BAD], columns)
    assert metrics["r/component/style"] == [0.5]
    assert metrics["r/fault_ratio"] == [0.5, 1.0]
    assert extras["r_component_style"] == [0.5, None, None]


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


reasons = map("REASON_{}".format, itertools.count())


@given(st.lists(st.integers(0, 20), max_size=30))
def test_what_has_no_judgement_is_told_but_does_not_fill_the_log(sizes: list[int]) -> None:
    reason = next(reasons)  # a process counts each by itself
    told: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = told.append  # type: ignore[method-assign]
    logger = logging.getLogger("assay.clients.trainers.common.faults")
    logger.addHandler(handler)
    try:
        for size in sizes:
            tell_faults([GOOD, *[Result("b", Fault(reason, "why"))] * size])
    finally:
        logger.removeHandler(handler)
    assert (len(told) > 0) == (sum(sizes) > 0)
    assert len(told) <= sum(sizes).bit_length()
    assert all(f"{reason}: why" in record.getMessage() for record in told)


def test_a_missing_reference_names_the_columns_that_are_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader = RowReader(task="math")
    columns = {"solution": ["4"], "trainer_state": object()}
    said = reader.missing(columns, "reference_column=")
    assert said == (
        "the data has no column 'reference' or 'answer', but: solution; "
        "name it with reference_column="
    )
    assert reader.missing({"answer": ["4"]}, "reference_column=") == ""
    fault = Fault("MISSING_REFERENCE", "it needs one")
    tell_faults([Result("a", fault)] * 10_000, said)
    assert warned(caplog)[-1].endswith(f"MISSING_REFERENCE: {fault.message}; {said}")


@pytest.mark.parametrize("prompts", [["p"], ["p"] * 3])
def test_rows_that_are_not_as_many_as_completions_are_refused(prompts: list[str]) -> None:
    with pytest.raises(ConfigError, match=f"2 completions, but {len(prompts)} prompts"):
        RowReader(task="math").items(prompts, ["4", "5"], None, {"answer": ["4", "5"]})
    with pytest.raises(ConfigError, match=f"2 completions, but {len(prompts)} references"):
        RowReader(task="math").items(["p", "p"], ["4", "5"], None, {"answer": prompts})
