"""The embedded engine broken on purpose: dead workers, weights that are no numbers, bad folders."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from assay.genrm.engines import load_engine, transformers
from assay.genrm.engines.base import (
    Choose,
    Chosen,
    EngineError,
    Prompt,
    PromptMessage,
    PromptPiece,
    Write,
)
from assay.genrm.engines.config import EngineConfig
from assay.kit.errors import ConfigError, StartupError
from genrm_engine_support import Worker
from genrm_support import make_model

CHOOSE = Choose(Prompt((PromptMessage("user", (PromptPiece("Which one?"),)),)), ("A", "B"))
LONG = Write(CHOOSE.prompt, 3000, temperature=1.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("faults") / "model")


@pytest.mark.slow
async def test_a_killed_worker_costs_what_it_had_at_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = load_engine("judge", EngineConfig(str(folder), max_concurrent=2))
    assert isinstance(engine, transformers.TransformersEngine)
    await engine.start()
    try:
        before = await engine.ask(CHOOSE)
        first = engine.worker_pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)  # so that nothing ends before the kill
        at_work = [asyncio.create_task(engine.ask(LONG)) for _ in range(2)]
        queued = asyncio.create_task(engine.ask(CHOOSE))
        while not (len(engine._working) == 2 and engine._waiting):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        os.kill(first, signal.SIGKILL)
        for task in at_work:
            with pytest.raises(EngineError, match="died while it worked on this") as caught:
                await task
            assert caught.value.reason == "ENGINE_DIED"
        assert engine.worker_pid is None
        came = asyncio.create_task(engine.ask(CHOOSE))
        assert isinstance(before, Chosen)
        for waited in (await queued, await came):  # for the next worker
            assert isinstance(waited, Chosen)
            assert waited.logprobs == pytest.approx(before.logprobs, abs=1e-4)
        assert engine.worker_pid not in (None, first)
        assert engine.tally.restarts == 1
        engine._link._limits = dataclasses.replace(engine._link._limits, stop_s=0.2)
        os.kill(engine.worker_pid or 0, signal.SIGSTOP)
        working = asyncio.create_task(engine.ask(LONG))
        while not engine._working:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        tokenised = asyncio.create_task(engine.ask(LONG))
        while not engine._encoding._short._inside:  # noqa: ASYNC110
            await asyncio.sleep(0)
        fresh = asyncio.create_task(engine.ask(LONG))
        await asyncio.sleep(0)
    finally:
        await engine.close()
    for late in (working, tokenised, fresh, engine.ask(CHOOSE)):
        with pytest.raises(EngineError, match="shut down"):
            await late


@pytest.mark.slow
async def test_starts_that_fail_refuse_until_one_succeeds(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers, "_BACKOFF_S", (0.0, 0.0, 0.5))
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    engine = load_engine("judge", EngineConfig(str(copy)))
    assert isinstance(engine, transformers.TransformersEngine)
    await engine.start()
    try:
        (copy / "model.safetensors").rename(copy / "gone")
        os.kill(engine.worker_pid or 0, signal.SIGKILL)
        await asyncio.sleep(0)
        with pytest.raises(EngineError, match="3 starts failed since: model judge") as caught:
            await _until_refused(engine)
        assert caught.value.reason == "ENGINE_DIED"
        (copy / "gone").rename(copy / "model.safetensors")
        async with asyncio.timeout(90):
            while engine._refusal:  # noqa: ASYNC110  # nothing tells when it succeeds
                await asyncio.sleep(0.1)
        assert isinstance(await engine.ask(CHOOSE), Chosen)
    finally:
        await engine.close()


async def _until_refused(engine: transformers.TransformersEngine) -> None:
    while True:
        try:
            await engine.ask(CHOOSE)
        except EngineError as error:
            if "starts failed" in error.message:
                raise
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"head": "scalar"}, StartupError, r"lack 1 weights, such as score\.weight.*set head"),
        pytest.param({"device": "cuda"}, StartupError, "no CUDA device", marks=pytest.mark.slow),
        ({"start_timeout_s": 0.2}, StartupError, r"not ready within 0\.2 s"),
    ],
)
async def test_a_model_that_cannot_load_is_one_clear_line(
    folder: Path, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    engine = load_engine("judge", EngineConfig(str(folder), **settings))
    with pytest.raises(error, match=words) as caught:
        await engine.start()
    assert str(caught.value).startswith("model judge (")
    assert "\n" not in str(caught.value)
    await engine.close()


@pytest.mark.slow
async def test_a_worker_that_is_killed_while_loading(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = load_engine("judge", EngineConfig(str(folder)))
    assert isinstance(engine, transformers.TransformersEngine)
    links: list[Any] = []

    class Watched(transformers.ChildLink):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            links.append(self)

    monkeypatch.setattr(transformers, "ChildLink", Watched)
    starting = asyncio.create_task(engine.start())
    while not (links and links[0].pid):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    os.kill(links[0].pid, signal.SIGKILL)
    with pytest.raises(StartupError, match="killed by signal 9 while it was starting"):
        await starting
    await engine.close()


@pytest.mark.slow
async def test_a_label_that_the_head_lacks(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model", "step")
    engine = load_engine("prm", EngineConfig(str(folder), good_label=2))  # counted from 0
    with pytest.raises(ConfigError, match="good_label is 2, but the model has 2 labels"):
        await engine.start()


def test_weights_that_are_not_numbers_concern_who_meets_them(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    folder = make_model(tmp_path / "model")
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["model.embed_tokens.weight"][77] = torch.nan
    save_file(weights, path, metadata={"format": "pt"})
    worker = Worker(folder, "generative")
    assert worker.network.shape is not None
    sound = tuple(range(10, 50))
    plain = {"max_tokens": 5, "temperature": 1.0, "top_p": 1.0, "seed": 0, "stop": ()}
    jobs = [
        {"kind": kind, "ids": ids, "options": [[5], [6, 7]], **plain}
        for kind in ("choose", "write")
        for ids in (sound, (*sound, 77, 8), (*sound, 9), (77,), (*sound, 8))
    ]
    for answers in (worker.ask(jobs), worker.ask(jobs)):
        for job, answer in zip(jobs, answers, strict=True):
            if 77 in job["ids"]:
                assert answer["error"][0] == "SCORE_NOT_FINITE"
            else:
                assert "error" not in answer
    assert len(worker.loop._begun) == 0


def test_one_request_that_fails_does_not_take_the_batch_along(folder: Path) -> None:
    worker = Worker(folder, "generative")
    beyond = 10_000  # no such token: the embedding raises IndexError
    jobs = [
        {"kind": "choose", "ids": ids, "options": [[5], [6]]}
        for ids in [(10, 11), (12, beyond), (13,), (14, 15, 16)]
    ]
    answers = worker.ask(jobs)
    assert answers[1]["error"][0] == "ENGINE_FAILED"
    assert all("logprobs" in answers[n] for n in (0, 2, 3))


def test_a_device_without_memory_reads_fewer_at_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    worker = Worker(folder, "generative")
    run = worker.network.run

    def short(rows: Any, kv: Any) -> Any:
        if len(rows) > 2:
            raise torch.OutOfMemoryError("no more")
        return run(rows, kv)

    plain = {"max_tokens": 5, "temperature": 0.0, "top_p": 1.0, "seed": 0, "stop": ()}
    jobs = [{"kind": "write", "ids": (10 + n, 11), **plain} for n in range(7)]
    whole = worker.ask(jobs)
    worker.fresh()
    monkeypatch.setattr(worker.network, "run", short)
    assert [a["text"] for a in worker.ask(jobs)] == [a["text"] for a in whole]


def test_an_architecture_that_the_config_does_not_tell(tmp_path: Path, folder: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    config["architectures"] = ["LlamaModel"]
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ConfigError, match="set head"):
        asyncio.run(load_engine("judge", EngineConfig(str(copy))).start())


@pytest.mark.slow
async def test_a_chat_template_that_refuses_is_the_fault_of_what_it_refuses(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model")
    template = tmp_path / "picky.jinja"
    template.write_text(
        "{% for message in messages %}{% if 'forbidden' in message['content'] %}"
        "{{ raise_exception('not that word') }}{% endif %}{{ message['content'] }}{% endfor %}"
    )
    engine = load_engine("tiny", EngineConfig(str(folder), chat_template=str(template)))
    await engine.start()
    try:
        refused = Choose(
            Prompt((PromptMessage("user", (PromptPiece("a forbidden word"),)),)), ("A", "B")
        )
        answers = await asyncio.gather(
            engine.ask(CHOOSE), engine.ask(refused), return_exceptions=True
        )
        assert isinstance(answers[0], Chosen)
        assert isinstance(answers[1], EngineError)
        assert answers[1].reason == "INVALID_PARAMETER"
        assert "not that word" in answers[1].message
        assert isinstance(await engine.ask(CHOOSE), Chosen)
    finally:
        await engine.close()
