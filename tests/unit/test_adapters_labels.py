"""The labels of the adapters' items: what their trainers tell, and what the environment adds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.reward import RewardClient
from assay.clients.testing import FakeRewardServer
from assay.clients.trainers import areal, openrlhf, slime
from assay.clients.trainers.common.labels import labels_of, labels_of_row
from assay.clients.trainers.common.rows import RowReader
from assay.clients.trainers.common.scoring import score
from assay.clients.trainers.common.settings import Settings, close_clients, read_settings
from assay.clients.trainers.common.single import read_item
from assay.clients.trainers.common.verl_rows import item_of, read_options
from assay.clients.trainers.trl import bare, sync_reward_function
from assay.clients.trainers.trl_streaming import _Rows
from assay.kit.errors import ConfigError
from assay.kit.labels import trouble_of

SETTINGS = Settings(target="127.0.0.1:1", verifier="exact")
NAMES = st.sampled_from(["run", "step", "data"])


@given(st.dictionaries(NAMES, st.none() | st.integers() | st.text(max_size=400)))
def test_what_an_adapter_tells_is_always_within_the_bounds(known: dict[str, Any]) -> None:
    labels = labels_of(**known)
    assert trouble_of(labels) == ""
    assert labels.keys() == {name for name, value in known.items() if value not in (None, "")}


def test_the_columns_of_a_row_tell_its_data_and_the_trainers_state_its_step() -> None:
    columns = {"data_source": ["gsm8k", None, 3], "trainer_state": SimpleNamespace(global_step=0)}
    found = [labels_of_row(columns, row) for row in range(3)]
    assert found == [{"data": "gsm8k", "step": "0"}, {"step": "0"}, {"step": "0"}]
    assert labels_of_row({"dataset": "no list", "trainer_state": None}, 0) == {}
    reader = RowReader("exact", labels={"trainer": "t", "data": "mine"})
    [item] = reader.items(["?"], ["42"], None, {"dataset": ["theirs"]})
    assert item.labels == {"trainer": "t", "data": "mine"}, "the adapter's own go before"


def test_each_adapter_says_whose_item_it_is() -> None:
    options = read_options({"target": "127.0.0.1:1"})
    sample = SimpleNamespace(
        metadata={"data_source": "aime"}, label="42", index=0, response="42", prompt="?",
        group_index=None, response_length=1, status=None,
    )  # fmt: skip
    assert [dict(item.labels) for item in (
        item_of(options, "gsm8k", "42", "42", None, step=7),
        slime.item_of(SETTINGS, sample, "0"),
        *openrlhf.items_of(SETTINGS, ["?42"], ["?"], ["42"]),
        areal._item(SETTINGS, "?", "42", [1], {"answer": "42", "data_source": "math"}),
        read_item(SETTINGS, "?", "42", {"answer": "42"}, trainer="inspect", model=None),
    )] == [
        {"trainer": "verl", "data": "gsm8k", "step": "7"},
        {"trainer": "slime", "data": "aime"},
        {"trainer": "openrlhf"},
        {"trainer": "areal", "data": "math"},
        {"trainer": "inspect"},
    ]  # fmt: skip


def test_trl_tells_its_step_and_takes_labels() -> None:
    with FakeRewardServer() as server:
        reward = sync_reward_function(server.address, verifier="exact", labels={"run": "a"})
        columns = {"answer": ["42"], "trainer_state": SimpleNamespace(global_step=3)}
        assert reward(["?"], ["42"], **columns) == [1.0]
        [[item]] = server.requests
        assert isinstance(reward.client, RewardClient)
        reward.client.close()
    assert dict(item.labels) == {"trainer": "trl", "run": "a", "step": "3"}
    with pytest.raises(ConfigError, match="a label has the name 'a b'"):
        sync_reward_function("127.0.0.1:1", labels={"a b": "x"})


def test_an_item_that_was_sent_early_is_known_again_whatever_its_labels() -> None:
    sent = []

    class Client:
        def list_verifiers(self) -> Any:
            return SimpleNamespace(find=lambda *_: SimpleNamespace(needs_group=False))

        def submit_one(self, item: Any) -> str:
            sent.append(item)
            return "future"

    early: dict[int, Any] = {}
    reader = RowReader("exact", labels={"trainer": "trl"})
    reward: Any = SimpleNamespace(early=early, reader=reader)
    decode = SimpleNamespace(batch_decode=lambda *_, **__: ["42"])
    state = SimpleNamespace(global_step=5)
    trainer = SimpleNamespace(processing_class=decode, state=state, eos_token_ids=[0])
    client: Any = Client()
    rows = _Rows(reward, client, trainer, [{"prompt": "?", "answer": "42"}])
    rows._send(0, [1])
    assert dict(sent[0].labels) == {"trainer": "trl", "step": "5"}
    [item] = reader.items(["?"], ["42"], [[1]], {"answer": ["42"]})
    assert bare(item) == early[0][0]


def test_the_environment_labels_every_item(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeRewardServer() as server:
        for name, value in (("TARGET", server.address), ("VERIFIER", "exact"),
                            ("LABELS", "run=dapo-3, model=a=b")):  # fmt: skip
            monkeypatch.setenv(f"ASSAY_{name}", value)
        settings = read_settings()
        [result] = score(settings, [read_item(settings, "?", "42", {"answer": "42"}, trainer="t")])
        close_clients()
        [[item]] = server.requests
    wanted = {"run": "dapo-3", "model": "a=b", "trainer": "t"}
    assert dict(item.labels) == dict(result.labels) == wanted
    monkeypatch.setenv("ASSAY_LABELS", "run")
    with pytest.raises(ConfigError, match=r"ASSAY_LABELS.* 'run' has no '='; write NAME=VALUE"):
        score(read_settings(), [])
