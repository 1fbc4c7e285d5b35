"""A server of models that fails in every way that servers fail."""

from __future__ import annotations

import asyncio
import logging

import pytest

from assay.genrm.engines import load_engine
from assay.genrm.engines.base import (
    Choose,
    EngineError,
    Prompt,
    PromptMessage,
    PromptPiece,
    RateDialogue,
    Write,
)
from assay.genrm.engines.config import EngineConfig
from assay.kit.errors import StartupError
from genrm_support import make_model
from openai_support import TinyServer, serving

ASK = Choose(
    Prompt((PromptMessage("user", (PromptPiece("Which?"),)),), "The verdict:"), (" A", " B")
)
SAY = Write(ASK.prompt, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
async def pair(folder):
    """An engine that has started, and its server."""
    tiny = TinyServer(folder)
    with serving(tiny) as url:
        config = EngineConfig(path="tiny", engine="openai", base_url=url, request_timeout_s=3.0)
        engine = load_engine("judge", config)
        await engine.start()
        yield engine, tiny
        await engine.close()


async def error(engine, request=ASK) -> EngineError:
    with pytest.raises(EngineError) as raised:
        await engine.ask(request)
    return raised.value


@pytest.mark.parametrize("fault", ["429", "503"])
async def test_a_busy_server_is_asked_again(pair, fault):
    engine, tiny = pair
    expected = await engine.ask(ASK)
    tiny.faults = [fault, fault]
    assert (await engine.ask(ASK)).logprobs == expected.logprobs
    assert not tiny.faults


async def test_a_server_that_says_when_is_waited_for_or_given_up(pair):
    engine, tiny = pair
    tiny.retry_after = "0"
    tiny.faults = ["429"] * 5
    await engine.ask(SAY)
    assert not tiny.faults
    tiny.retry_after = "3600"
    tiny.faults = ["429"]
    found = await error(engine)
    assert found.reason == "ENGINE_FAILED"
    assert "busy" in found.message


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("500", "ENGINE_FAILED"),
        ("html", "ENGINE_FAILED"),
        ("no-logprobs", "ENGINE_FAILED"),
        ("nan", "SCORE_NOT_FINITE"),
        ("401", "ENGINE_FAILED"),
    ],
)
async def test_an_answer_that_is_none_is_a_fault(pair, fault, reason):
    engine, tiny = pair
    tiny.faults = [fault]
    assert (await error(engine)).reason == reason
    assert not tiny.faults
    await engine.ask(ASK)


@pytest.mark.parametrize("fault", ["reset", "cut"])
async def test_a_lost_connection_is_tried_again_and_then_dead(pair, fault):
    engine, tiny = pair
    tiny.faults = [fault, fault]
    await engine.ask(ASK)
    assert not tiny.faults
    tiny.faults = [fault] * 4
    assert (await error(engine)).reason == "ENGINE_DIED"
    assert not tiny.faults


async def test_a_server_that_hangs_is_given_up_in_time(pair):
    engine, tiny = pair
    tiny.faults = ["hang"]
    found = await error(engine, SAY)
    assert found.reason == "ENGINE_FAILED"
    assert "3 s" in found.message


async def test_one_fault_in_a_batch_is_one_fault(pair):
    engine, tiny = pair
    tiny.faults = ["500", "nan"]
    results = await asyncio.gather(*(engine.ask(ASK) for _ in range(6)), return_exceptions=True)
    reasons = sorted(r.reason for r in results if isinstance(r, EngineError))
    assert reasons == ["ENGINE_FAILED", "SCORE_NOT_FINITE"]


async def test_a_server_that_goes_away_and_comes_back(folder):
    tiny = TinyServer(folder)
    with serving(tiny) as url:
        port = int(url.split(":")[2].split("/")[0])
        engine = load_engine("judge", EngineConfig(path="tiny", engine="openai", base_url=url))
        await engine.start()
        before = await engine.ask(ASK)
    # What served the open connections is there still: make it drop them.
    tiny.faults = ["reset"] * 3
    assert (await error(engine)).reason == "ENGINE_DIED"
    with serving(tiny, port):
        tiny.faults = []
        assert (await engine.ask(ASK)).logprobs == before.logprobs
    await engine.close()


async def test_a_server_that_is_not_there_ends_the_start():
    config = EngineConfig(
        path="tiny", engine="openai", base_url="http://127.0.0.1:9/v1", start_timeout_s=0.3
    )
    with pytest.raises(StartupError, match=r"model judge: no server answers at .*:9/v1"):
        await load_engine("judge", config).start()


async def test_the_start_waits_for_the_server(folder):
    tiny = TinyServer(folder)
    with serving(tiny) as url:
        port = int(url.split(":")[2].split("/")[0])
    engine = load_engine("judge", EngineConfig(path="tiny", engine="openai", base_url=url))
    start = asyncio.create_task(engine.start())
    await asyncio.sleep(0.2)
    assert not start.done()
    with serving(tiny, port):
        await start
    await engine.close()


async def test_the_key_is_sent_and_never_said(folder, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("ASSAY_TEST_KEY", "very-secret-key")
    tiny = TinyServer(folder, key="very-secret-key")
    with serving(tiny) as url:
        config = EngineConfig(
            path="tiny", engine="openai", base_url=url, api_key_env="ASSAY_TEST_KEY"
        )
        engine = load_engine("judge", config)
        await engine.start()
        assert set(tiny.keys) == {"Bearer very-secret-key"}
        tiny.faults = ["500"]
        found = await error(engine)
        assert "***" in found.message
        await engine.close()
    assert "very-secret-key" not in found.message + caplog.text + repr(config)


async def test_a_wrong_key_ends_the_start(folder):
    tiny = TinyServer(folder, key="another")
    with serving(tiny) as url:
        config = EngineConfig(path="tiny", engine="openai", base_url=url)
        with pytest.raises(StartupError, match="api_key_env"):
            await load_engine("judge", config).start()


async def test_a_head_that_is_not_finite_is_a_fault(tmp_path):
    tiny = TinyServer(make_model(tmp_path, "scalar"), "scalar")
    with serving(tiny) as url:
        engine = load_engine("judge", EngineConfig(path="tiny", engine="openai", base_url=url))
        await engine.start()
        tiny.faults = ["nan"]
        dialogue = Prompt(
            (
                PromptMessage("user", (PromptPiece("?"),)),
                PromptMessage("assistant", (PromptPiece("B"),)),
            )
        )
        assert (await error(engine, RateDialogue(dialogue))).reason == "SCORE_NOT_FINITE"
        await engine.ask(RateDialogue(dialogue))
        await engine.close()
