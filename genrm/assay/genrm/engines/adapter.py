"""The engine of a LoRA adapter: the engine of its base, by another name and other weights.

The base's weights are in memory once. Requests of base and adapters are batched together, each row
through its own adapter, and what is kept of a prompt is kept for each adapter by itself.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path

from assay.genrm.engines import loading
from assay.genrm.engines.base import Answer, EngineError, EngineTally, ModelInfo, Request
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.replicas import Replica
from assay.kit.errors import ConfigError, StartupError
from assay.kit.reasons import Reason

_NUMBERS = itertools.count(1)


class AdapterEngine:
    """One adapter of a base that was started before. See `JudgeEngine`."""

    def __init__(self, name: str, config: EngineConfig, base: Replica) -> None:
        self._name = name
        self._config = config
        self._base = base
        self._key = ""
        self._info: ModelInfo | None = None

    @property
    def tally(self) -> EngineTally:
        """How many engines of its base answer; what they do counts for the base."""
        return EngineTally(ready=self._base.tally.ready)

    @property
    def info(self) -> ModelInfo:
        """The model; its revision is "base+adapter"."""
        if self._info is None:
            raise RuntimeError(f"model {self._name} was not started")
        return self._info

    async def start(self) -> None:
        """Loads the adapter; see `JudgeEngine`."""
        config = self._config
        folder = loading.settled(config.path)
        digest = await asyncio.to_thread(loading.fingerprint, Path(folder))
        base = self._base.info
        if base.capabilities.isdisjoint({"choose", "write"}):
            raise ConfigError(
                f"model {self._name}: adapters are served over language models; its base, model "
                f"{base.name}, is none"
            )
        key = f"adapter{next(_NUMBERS)}-{digest}"
        try:
            await self._base.load_adapter(key, folder)
        except StartupError as error:
            await self._base.unload_adapter(key)  # of those that have it
            raise StartupError(f"model {self._name}: {error}") from error
        self._key = key
        self._info = replace(
            base,
            name=self._name,
            revision=f"{base.revision}+{config.revision or digest}",
            error_threshold=config.error_threshold,
            splitting=config.splitting,
        )

    async def ask(self, request: Request) -> Answer:
        """Asks the base by this adapter; see `JudgeEngine`."""
        if not self._key:
            raise EngineError(Reason.ENGINE_DIED, f"model {self._name} is being shut down")
        return await self._base.ask_with(self._key, request)

    async def close(self) -> None:
        """Forgets the adapter; the base goes on. See `JudgeEngine`."""
        key, self._key = self._key, ""
        if key:
            await self._base.unload_adapter(key)
