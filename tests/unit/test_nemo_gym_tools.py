"""NeMo Gym's tools: what a cookie carries, and what a call that failed makes of the rollout."""

from __future__ import annotations

import contextlib
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from assay.clients.execution import Output
from assay.clients.sessions import CellEnd, CellError, CellResult, DisplayValue, SessionLost
from assay.compat import nemo_gym, nemo_gym_tools
from assay.compat.nemo_gym_tools import COOKIE, Seat, read_seat
from assay.kit.http.config import HttpConfig
from assay.kit.reasons import Reason
from assay.reward_server.http.front import RewardFront

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@given(TEXT, TEXT, TEXT, TEXT)
def test_a_cookie_is_read_as_it_was_set(session: str, replica: str, fault: str, why: str) -> None:
    seat = Seat(session, replica, fault, why)
    assert read_seat({COOKIE: seat.to_cookie()}) == seat
    assert seat.to_cookie().replace("-", "").replace("_", "").isalnum()


@given(st.text(max_size=40) | st.binary(max_size=30).map(lambda data: data.hex()))
def test_a_cookie_that_is_not_ours_is_a_new_rollout(text: str) -> None:
    assert read_seat({COOKIE: text}) == Seat()
    assert read_seat({}) == Seat()


class OneSession:
    """A client of sessions, and its one session, whose cells end as they are told."""

    id, replica = "s", "r"

    def __init__(self, *ends: CellResult | Exception) -> None:
        self.ends = list(ends)
        self.opened = self.closed = 0

    async def create(self, language: str, *, timeout_s: float) -> OneSession:
        assert (language, timeout_s > 0) == ("python", True)
        self.opened += 1
        return self

    async def attach(self, session_id: str, replica: str) -> OneSession:
        assert (session_id, replica) == ("s", "r")
        return self

    def detach(self) -> None: ...

    async def execute(self, code: str, **_: Any) -> CellResult:
        assert code == "1"
        ended = self.ends.pop(0)
        if isinstance(ended, Exception):
            raise ended
        return ended

    async def close(self) -> None:
        self.closed += 1


def rollout(sessions: OneSession) -> TestClient:
    """A caller with cookies, of the routes without a server around them."""

    class Open(RewardFront):
        def charged(self, items: int) -> Any:
            del items
            return contextlib.nullcontext()

    front = Open(
        cast("Any", None), cast("Any", None), HttpConfig(),
        mask_faults=True, sessions=cast("Any", sessions),
    )  # fmt: skip
    return TestClient(Starlette(routes=nemo_gym.routes(front)))


def called(client: TestClient, path: str = "/execute_python") -> Any:
    return client.post(path, json={"code": "1"})


def test_an_answer_has_the_words_of_each_environment() -> None:
    value = DisplayValue({"text/plain": b"'x'"})
    result = CellResult(CellEnd.COMPLETED, stdout=Output(b"out\n"), value=value, plain="x")
    error = CellError("E", "no", "T\nE: no\n")
    failed = CellResult(CellEnd.RAISED, stderr=Output(b"err\n"), error=error)
    client = rollout(OneSession(result, failed, result, failed))
    found = [called(client).json() for _ in range(2)]
    assert found[0] == {"success": True, "stdout": "out\n", "stderr": "",
                        "error_message": None, "result": "x"}  # fmt: skip
    assert (found[1]["success"], found[1]["error_message"]) == (False, "E: no")
    texts = [called(client, "/stateful_python_code_exec").text for _ in range(2)]
    assert texts == ["out\nx", "err\nT\nE: no\n"]


def test_a_fault_stays_with_the_rollout_until_its_row_has_failed() -> None:
    lost = SessionLost(Reason.SESSION_LOST, "gone")
    sessions = OneSession(CellResult(CellEnd.COMPLETED), lost)
    client = rollout(sessions)
    assert called(client).status_code == 200
    assert [called(client).json()["reason"] for _ in range(2)] == ["SESSION_LOST"] * 2
    row = client.post("/verify", json={"response": {"output": []}, "reward": 1.0}).json()
    assert (row["reward"], row["mask_sample"]) == (0.0, True)
    assert row["_ng_failure_judge_error"].startswith("SESSION_LOST")
    assert sessions.opened == sessions.closed == 1


def test_the_policys_wrong_call_is_no_fault() -> None:
    sessions = OneSession(CellResult(CellEnd.COMPLETED))
    client = rollout(sessions)
    for body in ({}, {"code": 1}, []):
        assert client.post("/execute_python", json=body).status_code == 400
    assert called(client).json()["success"] is True


def test_what_the_program_ends_is_told_and_begins_anew() -> None:
    over = CellResult(CellEnd.MEMORY_LIMIT, session_over=True)
    sessions = OneSession(over, CellResult(CellEnd.COMPLETED))
    client = rollout(sessions)
    assert "begins anew" in called(client).json()["error_message"]
    assert called(client).json()["success"] is True
    assert (sessions.opened, sessions.closed) == (2, 1)


def test_a_session_is_opened_where_the_row_has_our_tool() -> None:
    def opened(tools: object) -> int:
        sessions = OneSession()
        row = {"responses_create_params": {"input": "", "tools": tools}}
        assert rollout(sessions).post("/seed_session", json=row).status_code == 200
        return sessions.opened

    mine = [{"name": name} for name in sorted(nemo_gym_tools._TOOLS)]
    for tools, places in (
        (mine, 1),
        (mine[:1], 1),
        ([{"name": "x"}], 0),
        ([], 0),
        (None, 0),
        (7, 0),
    ):
        assert opened(tools) == places
