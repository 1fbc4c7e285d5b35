"""Runs of `assay train-rm` on tiny models, and what the engine that serves them says."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from assay.genrm.domain import ChatMessage
from assay.trainer.recipes.reward_model import config as configs
from assay.trainer.records.folder import RunFolder


def train(config: configs.RmConfig, path: Path) -> dict[str, Any] | None:
    """Trains in a folder, a new one or one to continue, without a word; gives the report."""
    import torch
    from rich.console import Console

    from assay.kit.runs.environment import calm
    from assay.trainer.recipes.reward_model.run import run

    calm()
    torch.set_num_threads(1)
    where = RunFolder(path) if path.is_dir() else configs.RUNS.create(config, "judge", path)
    return run(config, where, Console(file=io.StringIO()))


def curve(path: Path) -> list[dict[str, Any]]:
    """Rows of metrics.jsonl without what the clock says."""
    from assay.kit.runs.records import read_rows

    return [
        {key: value for key, value in row.items() if key != "step_s"}
        for row in read_rows(path / "metrics.jsonl")
    ]


def served(path: Path, ask: Callable[[Any], Any]) -> Any:
    """What a run's model says in the engine that serves it."""
    from assay.genrm.engines import load_engine
    from assay.genrm.engines.config import EngineConfig

    async def go() -> Any:
        engine = load_engine("judge", EngineConfig(str(path / "model"), device="cpu"))
        await engine.start()
        try:
            return await drive(engine, ask(engine.info))
        finally:
            await engine.close()

    return asyncio.run(go())


async def drive(engine: Any, runs: Sequence[Any]) -> list[Any]:
    """Drives judges to their ends, all at the same time."""

    async def one(run: Any) -> Any:
        requests = next(run)
        while True:
            answers = await asyncio.gather(*(engine.ask(request) for request in requests))
            try:
                requests = run.send(tuple(answers))
            except StopIteration as end:
                return end.value

    return await asyncio.gather(*(one(run) for run in runs))


def chat(row: Any) -> tuple[ChatMessage, ...]:
    return tuple(ChatMessage(said.role, said.content) for said in row.prompt)
