"""Two real processes of one model: one is killed, and the other goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from assay.genrm.engines import load_engine
from assay.genrm.engines.base import (
    Choose,
    Chosen,
    EngineError,
    Prompt,
    PromptMessage,
    PromptPiece,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.replicas import ReplicatedEngine
from assay.genrm.engines.transformers import TransformersEngine
from assay.kit.errors import StartupError
from genrm_engine_support import Alone
from genrm_support import make_adapter, make_model

OPTIONS = ("A", "B")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("replicas") / "model")


def ask(number: int) -> Choose:
    text = f"Which one of {number}?"
    return Choose(Prompt((PromptMessage("user", (PromptPiece(text),)),)), OPTIONS)


def want(engine: TransformersEngine, alone: Alone, request: Choose) -> list[float]:
    assert engine._opened is not None
    encoder = engine._opened.encoder
    ids = encoder.encode(request.prompt)
    return [alone.logprob(ids, option) for option in encoder.encode_options(OPTIONS)]


@pytest.mark.slow
async def test_one_of_two_is_killed_and_its_items_alone_are_faults(
    folder: Path, tmp_path: Path
) -> None:
    config = EngineConfig(str(folder), device=("cpu", "cpu"), max_concurrent=4)
    made = load_engine("judge", config)
    assert isinstance(made, ReplicatedEngine)
    await made.start()
    try:
        await made.load_adapter("k", str(make_adapter(tmp_path / "adapter", folder)))
        first, second = made.engines
        assert isinstance(first, TransformersEngine)
        assert isinstance(second, TransformersEngine)
        pid = first.worker_pid or 0
        assert pid != second.worker_pid
        assert made.tally.ready == 2
        os.kill(pid, signal.SIGSTOP)  # so that nothing of it ends before the kill
        tasks = [asyncio.create_task(made.ask(ask(n))) for n in range(40)]
        while not (len(first._working) == 4 and len(first._waiting) == 16):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        faults = [one for one in outcomes if isinstance(one, EngineError)]
        assert [one.reason for one in faults] == ["ENGINE_DIED"] * 4
        assert all("died while it worked on this" in one.message for one in faults)
        alone = Alone(folder, "generative")
        for number, outcome in enumerate(outcomes):
            if isinstance(outcome, Chosen):
                expected = want(second, alone, ask(number))
                assert outcome.logprobs == pytest.approx(expected, abs=1e-4)
        assert sum(isinstance(one, Chosen) for one in outcomes) == 36
        async with asyncio.timeout(120):
            while made.tally.ready < 2:  # noqa: ASYNC110  # nothing tells when it is back
                await asyncio.sleep(0.05)
        assert made.tally.restarts == 1
        # The new process has the adapter too.
        plain, through = await asyncio.gather(first.ask(ask(1)), first.ask_with("k", ask(1)))
        also = await second.ask_with("k", ask(1))
        assert isinstance(plain, Chosen)
        assert isinstance(through, Chosen)
        assert isinstance(also, Chosen)
        assert through.logprobs != pytest.approx(plain.logprobs, abs=1e-3)
        assert through.logprobs == pytest.approx(also.logprobs, abs=1e-4)
    finally:
        await made.close()
    with pytest.raises(EngineError, match="shut down"):
        await made.ask(ask(1))


@pytest.mark.slow
async def test_all_of_them_are_killed_and_who_waits_gets_an_answer(folder: Path) -> None:
    made = load_engine("judge", EngineConfig(str(folder), replicas=2, max_concurrent=2))
    assert isinstance(made, ReplicatedEngine)
    await made.start()
    try:
        pids = [one.worker_pid or 0 for one in made.engines if isinstance(one, TransformersEngine)]
        assert len(set(pids)) == 2
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        tasks = [asyncio.create_task(made.ask(ask(n))) for n in range(12)]
        while sum(len(one._working) for one in made.engines) < 4:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        while made.tally.ready:  # noqa: ASYNC110  # nothing tells when their ends are seen
            await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(made.ask(ask(99))))
        async with asyncio.timeout(120):
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        faults = [one for one in outcomes if isinstance(one, EngineError)]
        assert len(faults) == 4
        assert sum(isinstance(one, Chosen) for one in outcomes) == 9
        assert made.tally.restarts >= 1
    finally:
        await made.close()


@pytest.mark.slow
async def test_a_process_never_comes_back_with_other_weights(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its revision is in every judgement, so other weights under it would be a lie."""
    from assay.genrm.engines import transformers

    monkeypatch.setattr(transformers, "_BACKOFF_S", (0.0,))
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    engine = load_engine("judge", EngineConfig(str(copy)))
    assert isinstance(engine, TransformersEngine)
    await engine.start()
    try:
        other = make_model(tmp_path / "other", seed=1)
        shutil.copy(other / "model.safetensors", copy / "model.safetensors")
        os.kill(engine.worker_pid or 0, signal.SIGKILL)
        async with asyncio.timeout(120):
            while engine._refusal is None:  # noqa: ASYNC110  # nothing tells when it gives up
                await asyncio.sleep(0.05)
        with pytest.raises(EngineError, match="holds other weights than those") as caught:
            await engine.ask(ask(1))
        assert caught.value.reason == "ENGINE_DIED"
    finally:
        await engine.close()


@pytest.mark.slow
async def test_a_device_that_is_not_there_is_named(folder: Path) -> None:
    engine = load_engine("judge", EngineConfig(str(folder), device=("cpu", "cuda:7")))
    with pytest.raises(StartupError, match="no CUDA device here"):
        await engine.start()
