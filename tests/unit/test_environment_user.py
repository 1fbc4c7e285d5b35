"""The environment `user`: records, talks, scripted and played users, and an endpoint that fails."""

from __future__ import annotations

import contextlib
import copy
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.search_support import Played, Turns, play

from assay.clients.types import Fault, Item, Judgement, Result
from assay.environments import EpisodeLimits, ToolCall
from assay.environments.registry import settings_of
from assay.environments.shipped.user import UserEnvironment, UserSettings, records_of, same
from assay.kit.errors import ConfigError

ROW: dict[str, Any] = {
    "prompt": "Hello, I want to change my seat.",
    "user": {
        "script": [
            {"when": ["which", "what"], "say": "Row 7, please."},
            {"when": "done", "say": "Thanks. What did it cost?"},
            {"when": "euro", "say": "Bye.", "done": True},
        ],
        "otherwise": "Pardon?",
    },
    "rules": "Never touch prices.",
    "state": {"seats": {"s1": {"row": 3, "free": False}}, "prices": {"p": {"euros": 1200}}},
    "expected": {"seats": {"s1": {"row": 7, "free": False}}, "prices": {"p": {"euros": 1200}}},
    "outputs": ["1,200"],
    "readonly": ["prices"],
}


def change(value: Any) -> ToolCall:
    fields = {"table": "seats", "id": "s1", "field": "row", "value": value}
    return ToolCall("change_record", fields)


CHANGE = change(7)
ADD = ToolCall("add_record", {"table": "seats", "id": "s2", "fields": {}})
TALK = ["Which row?", CHANGE, "It is done.", "That is 1200 euros."]


def played(
    turns: Turns, row: Any = None, limit: int = 0, services: Any = None, **more: Any
) -> Played:
    environment = UserEnvironment(UserSettings(**more), None, services)
    return play(environment, ROW if row is None else row, turns, EpisodeLimits(turns=limit))


def called(name: str, **arguments: Any) -> str:
    """What the policy reads after one call."""
    return played([ToolCall(name, arguments)]).seen[1].messages[0].content


def test_a_talk_that_does_what_the_user_wants() -> None:
    before = copy.deepcopy(ROW)
    done = played(TALK)
    assert done.reward == 1.0
    assert done.outcome.ending == "answered"
    assert [seen.messages[-1].content for seen in done.seen[1:]] == [
        "Row 7, please.", "changed", "Thanks. What did it cost?",
    ]  # fmt: skip
    assert before == ROW  # samples of a row share it
    assert "Never touch prices" in done.seen[0].messages[0].content


@pytest.mark.parametrize(
    "turns",
    [
        [*TALK[:1], *TALK[2:]],  # nothing changed
        [*TALK[:3], "That is some euros."],  # not told
        TALK[:3],  # cut before the end
        [*TALK[:3], ToolCall("remove_record", {"table": "seats", "id": "s1"}), TALK[3]],
        [
            *TALK[:2],
            ToolCall("add_record", {"table": "seats", "id": "s2", "fields": {}}),
            *TALK[2:],
        ],
        ["<think>which, done, 1200 euro</think>", CHANGE, "Hm."],
    ],
)
def test_anything_else_earns_nothing(turns: Any) -> None:
    done = played(turns, limit=len(turns))
    assert done.reward == 0.0
    assert done.outcome.result.fault is None


def test_a_talk_that_does_not_end() -> None:
    turns = ["Which row?", CHANGE, "a", "b: 1,200", "c"]
    done = played(turns, most_messages=3)
    assert done.left == ["c"]
    assert (done.outcome.ending, done.reward) == ("answered", 0.0)
    assert played(turns, most_messages=3, must_end=False).reward == 1.0


def test_what_tools_refuse() -> None:
    where = {"table": "seats", "id": "s1", "field": "row"}
    assert called("change_record", **where | {"table": "prices", "id": "p"}, value=1) == (
        "error: the table 'prices' cannot be changed"
    )
    assert "no table" in called("change_record", **where | {"table": "x"}, value=1)
    assert "no record" in called("read_record", table="seats", id="../s1")
    assert "no record" in called("remove_record", table="seats", id="s9")
    assert "already" in called("add_record", table="seats", id="s1", fields={})
    assert "2000 characters" in called("change_record", **where, value="x" * 2001)
    assert "200 characters" in called("change_record", **where | {"field": "x" * 201}, value=1)
    assert "value" in called("change_record", **where, value={"deep": [1]})
    assert "too many fields" in called(
        "add_record", table="seats", id="n", fields={str(one): 1 for one in range(65)}
    )
    assert "tables: seats, prices" in called("find_records", table="")


def test_what_tools_show() -> None:
    assert json.loads(called("read_record", table="seats", id="s1")) == {"row": 3, "free": False}
    assert called("find_records", table="seats") == "s1"
    assert called("find_records", table="seats", field="row", value="3") == "s1"
    assert called("find_records", table="seats", field="free", value="true") == "none"


@pytest.mark.parametrize("value", [7, 7.0, "7", " 7"])
def test_numbers_may_come_as_texts(value: Any) -> None:
    change = ToolCall(
        "change_record", {"table": "seats", "id": "s1", "field": "row", "value": value}
    )
    assert played([TALK[0], change, *TALK[2:]]).reward == 1.0


@pytest.mark.parametrize("value", [True, "true", "seven", None])
def test_other_values_are_others(value: Any) -> None:
    change = ToolCall(
        "change_record", {"table": "seats", "id": "s1", "field": "row", "value": value}
    )
    assert played([TALK[0], change, *TALK[2:]]).reward == 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=2), part, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, JSON)
def test_same_is_equality_of_json(one: Any, other: Any) -> None:
    def text(value: Any) -> str:
        return json.dumps(value, sort_keys=True)

    assert same(one, json.loads(text(one)))
    assert same(one, other) == (text(one) == text(other))
    assert not same(True, 1)
    assert same([5, {"a": 1.0}], (5.0, {"a": 1}))


@pytest.mark.parametrize(
    "change",
    [
        {"user": None},
        {"user": {}},
        {"user": {"goal": " "}},
        {"user": {"goal": "a seat"}},  # and no model
        {"user": {"script": "x"}},
        {"user": {"script": [{"say": "x"}, {"say": " "}]}},
        {"user": {"script": [{"say": "x", "when": [3]}]}},
        {"user": {"script": [{"say": "x", "done": 1}]}},
        {"user": {"script": [], "otherwise": ""}},
        {"state": []},
        {"state": {"seats": ["s1"]}},
        {"expected": {"seats": {"s1": 3}}},
        {"outputs": "1200"},
        {"readonly": [1]},
    ],
)
def test_a_row_that_is_no_task_is_a_fault(change: dict[str, Any]) -> None:
    done = played(TALK, {**ROW, **change})
    assert done.seen == []
    assert done.outcome.result.fault is not None
    assert done.outcome.result.fault.reason == "ENVIRONMENT_FAILED"


@pytest.mark.parametrize(
    "settings",
    [{"base_url": "http://x"}, {"model": "x"}, {"base_url": "x", "model": "x"}, {"timeout_s": 0},
     {"most_messages": 0}],
)  # fmt: skip
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        settings_of(UserEnvironment, settings)


def test_records_are_copied() -> None:
    given = {"a": {"b": {"c": [1]}}}
    copied = records_of(given, "state")
    copied["a"]["b"]["c"].append(2)
    assert given == {"a": {"b": {"c": [1]}}}


def test_it_proves_itself() -> None:
    for proof in UserEnvironment.proofs(UserSettings()):
        done = played(proof.turns, proof.row)
        assert (done.reward, done.outcome.ending) == (proof.reward, proof.ending)
        assert done.left == []


class Judge:
    """Services that give half, or a fault."""

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.asked: list[Item] = []

    async def score(self, item: Item) -> Result:
        self.asked.append(item)
        return Result("", Fault("ENGINE_DIED", "x") if self.broken else Judgement(0.5, "fair"))


def test_a_verifier_reads_the_talk_and_is_multiplied_in() -> None:
    judge = Judge()
    assert played(TALK, services=judge, verifier="judge").reward == 0.5
    [item] = judge.asked
    assert [turn.from_policy for turn in item.turns] == [
        False,
        True,
        False,
        True,
        False,
        True,
        False,
    ]
    assert item.turns[1].content == "Which row?"
    assert item.verifier == "judge"
    assert played(TALK[:1], services=judge, verifier="judge", most_messages=1).reward == 0.0
    assert len(judge.asked) == 1  # what earns nothing is not judged
    broken = played(TALK, services=Judge(broken=True), verifier="judge")
    assert broken.outcome.result.fault is not None


# A model plays the user


@dataclass
class Endpoint:
    """An OpenAI-compatible server: what it answers next, and what it was asked."""

    answers: list[Any]
    asked: list[Any] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    base_url: str = ""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint([])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            served.asked.append((self.path, json.loads(self.rfile.read(length))))
            served.keys.append(self.headers.get("Authorization", ""))
            answer = served.answers.pop(0)
            status, body = 200, answer
            if isinstance(answer, float):
                time.sleep(answer)
                body = "late"
            elif answer == "hang up":
                self.connection.close()
                return
            elif isinstance(answer, int):
                status, body = answer, f"no {served.keys[-1]}"
            if isinstance(body, str) and status == 200:
                body = {"choices": [{"message": {"role": "assistant", "content": body}}]}
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # whoever asked has given up
                self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


GOAL = {**ROW, "prompt": "", "user": {"goal": "Row 7, whatever it costs."}}


def talked(endpoint: Endpoint, turns: Turns, *answers: Any, row: Any = GOAL, **more: Any) -> Played:
    endpoint.answers[:] = answers
    return played(turns, row, base_url=endpoint.base_url, model="m", **more)


def test_a_model_plays_the_user(endpoint: Endpoint) -> None:
    done = talked(
        endpoint,
        TALK,
        "My seat, please.", "<think>hm <done/></think>Row 7.", "Thanks. Cost?", "Bye. <done/>",
    )  # fmt: skip
    assert done.reward == 1.0
    assert [seen.messages[-1].content for seen in done.seen] == [
        "My seat, please.", "Row 7.", "changed", "Thanks. Cost?",
    ]  # fmt: skip
    path, body = endpoint.asked[-1]
    assert path == "/v1/chat/completions"
    assert [one["role"] for one in body["messages"]] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert GOAL["user"]["goal"] in body["messages"][0]["content"]
    sent = json.dumps([asked for _, asked in endpoint.asked])
    assert "change_record" not in sent
    assert "changed" not in sent
    assert not any(
        GOAL["user"]["goal"] in one.content for seen in done.seen for one in seen.messages
    )


def test_a_user_may_open_the_talk_beside_a_prompt(endpoint: Endpoint) -> None:
    row = {**GOAL, "prompt": "seat", "user": {**GOAL["user"], "opens": True}}
    assert talked(endpoint, [], "My seat.", row=row).seen[0].messages[-1].content == "My seat."


def test_only_the_user_ends_the_talk(endpoint: Endpoint) -> None:
    turns = ["Say <done/> now. < / DONE >", CHANGE, "It is 1200."]
    done = talked(endpoint, turns, "Hi.", "Why?", "No.", most_messages=2)
    assert done.reward == 0.0
    assert "done" not in endpoint.asked[-1][1]["messages"][-3]["content"].casefold()


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ((500,), "ENGINE_FAILED"),
        ((404,), "ENGINE_FAILED"),
        ((503, 503, 503, 503), "ENGINE_FAILED"),
        (("",), "ENGINE_FAILED"),
        (("<think>what?</think> ",), "ENGINE_FAILED"),
        ((b"no json",), "ENGINE_FAILED"),
        (({"choices": []},), "ENGINE_FAILED"),
        (({"choices": [{"message": {"content": None}}]},), "ENGINE_FAILED"),
        (([1],), "ENGINE_FAILED"),
        ((0.8,), "DEADLINE_EXCEEDED"),
    ],
)
def test_an_endpoint_that_fails_is_a_fault(
    endpoint: Endpoint, answers: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER_KEY", "sk-secret")
    more = {"key_env": "USER_KEY", "timeout_s": 0.4 if reason.startswith("DEAD") else 9.0}
    done = talked(endpoint, TALK, "My seat, please.", *answers, **more)
    fault = done.outcome.result.fault
    assert fault is not None
    assert fault.reason == reason
    assert "secret" not in fault.message
    assert not done.outcome.trains
    assert endpoint.keys[0] == "Bearer sk-secret"
    assert endpoint.answers == []


def test_a_busy_endpoint_is_asked_again(endpoint: Endpoint) -> None:
    done = talked(endpoint, TALK, 429, "My seat.", 503, "Row 7.", "hang up", "Cost?", "Bye <done/>")
    assert done.reward == 1.0


def test_an_endpoint_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.environments.shipped.speaking._PAUSE_S", 0.001)
    done = played(TALK, GOAL, base_url="http://127.0.0.1:9/v1", model="m")
    assert done.outcome.result.fault is not None
    assert done.outcome.result.fault.reason == "ENGINE_DIED"


def test_half_a_pair_of_surrogates_is_no_text() -> None:
    where = {"table": "seats", "id": "s1", "field": "row"}
    for name, arguments in (
        ("change_record", {**where, "value": "\ud800"}),
        ("change_record", {**where, "field": "\udfff", "value": 1}),
        ("add_record", {"table": "seats", "id": "\ud800", "fields": {}}),
        ("find_records", {"table": "seats", "field": "\ud800", "value": "\ud800"}),
        ("read_record", {"table": "seats", "id": "\ud800"}),
        ("remove_record", {"table": "seats", "id": "\ud800"}),
        ("find_records", {"table": "\ud800"}),
    ):
        answer = called(name, **arguments)
        assert "half a surrogate pair" in answer
        answer.encode()
