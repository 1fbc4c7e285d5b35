"""Users played by a real, tiny model behind a real HTTP server, which fails in all its ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.genrm_support import make_model
from tests.openai_support import TinyServer, serving
from tests.search_support import Played, play

from assay.environments.shipped.user import UserEnvironment, UserSettings

ROW: dict[str, Any] = {
    "prompt": "Hello.",
    "user": {"goal": "A seat in row 7."},
    "state": {"seats": {"s1": {"row": 3}}},
}
KEY = "sk-of-the-server"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TinyServer, str]]:
    folder = tmp_path_factory.mktemp("models") / "causal"
    server = TinyServer(make_model(folder, "causal"), style="chat-only", key=KEY, retry_after="0")
    with serving(server) as url:
        yield server, url


@pytest.fixture
def talked(tiny: tuple[TinyServer, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    server, url = tiny
    monkeypatch.setattr("assay.environments.shipped.speaking._PAUSE_S", 0.01)

    def act(*faults: Any, key: str = KEY, timeout_s: float = 30.0) -> Played:
        monkeypatch.setenv("USER_KEY", key)
        server.faults[:] = faults
        server.asked.clear()
        settings = UserSettings(
            base_url=url if url.endswith("/v1") else f"{url}/v1",
            model="tiny",
            key_env="USER_KEY",
            temperature=0.0,
            max_tokens=6,
            most_messages=3,
            timeout_s=timeout_s,
        )
        return play(UserEnvironment(settings), ROW, ["Where?", "Which row?", "So?", "Well?"])

    return act


def test_a_real_model_plays_the_user(tiny: tuple[TinyServer, str], talked: Any) -> None:
    done = talked()
    assert done.outcome.result.fault is None
    assert done.left == ["Well?"] or done.episode.environment.talk[-1].by_user
    lines = [line.text for line in done.episode.environment.talk if line.by_user]
    assert len(lines) >= 2
    assert [seen.messages[-1].content for seen in done.seen[1:]] == lines[1 : len(done.seen)]
    first = tiny[0].asked[0][1]["messages"]
    assert [one["role"] for one in first] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("faults", [("429",), ("503", "503"), ("reset",), ("cut",)])
def test_what_passes_is_asked_again(talked: Any, faults: Any) -> None:
    assert talked(*faults).outcome.result.fault is None


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        (("500",), "ENGINE_FAILED"),
        (("html",), "ENGINE_FAILED"),
        (("503",) * 4, "ENGINE_FAILED"),
        (("reset",) * 4, "ENGINE_DIED"),
        (("hang",), "DEADLINE_EXCEEDED"),
    ],
)
def test_a_server_that_fails_is_a_fault(talked: Any, faults: Any, reason: str) -> None:
    done = talked(*faults, timeout_s=0.5 if faults == ("hang",) else 30.0)
    assert done.outcome.result.fault is not None
    assert done.outcome.result.fault.reason == reason
    assert KEY not in done.outcome.result.fault.message
    assert not done.outcome.trains


def test_a_wrong_key_is_a_fault_that_does_not_tell_it(talked: Any) -> None:
    fault = talked(key="sk-wrong").outcome.result.fault
    assert fault.reason == "ENGINE_FAILED"
    assert "401" in fault.message
    assert "sk-wrong" not in fault.message
