"""The engine that asks a server: start, bounds, and what may be asked."""

from __future__ import annotations

import asyncio
import os
from urllib.parse import urlsplit

from assay.genrm.engines.base import (
    Answer,
    Capability,
    Choose,
    EngineError,
    EngineTally,
    ModelInfo,
    RateDialogue,
    RateSteps,
    Request,
    Write,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.encoding import LONG_CHARS, chars_of
from assay.genrm.engines.openai.asking import ServerClient
from assay.genrm.engines.openai.fitting import fitted
from assay.genrm.engines.openai.offer import Offer, look
from assay.genrm.engines.openai.transport import HttpTransport
from assay.kit.errors import ConfigError, StartupError
from assay.kit.reasons import Reason

_WAIT_S = 0.5


class OpenAIEngine:
    """A model on a server; see the package."""

    def __init__(self, name: str, config: EngineConfig) -> None:
        self.tally = EngineTally()
        self._name = name
        self._config = config
        self._transport: HttpTransport | None = None
        self._server: ServerClient | None = None
        self._info: ModelInfo | None = None
        self._slots = asyncio.Semaphore(config.max_concurrent)

    @property
    def info(self) -> ModelInfo:
        """See `JudgeEngine`."""
        if self._info is None:
            raise RuntimeError("the engine has not started")
        return self._info

    async def start(self) -> None:
        """See `JudgeEngine`: waits for the server and asks what it can do."""
        config = self._config
        self._transport = HttpTransport(
            root(self._name, config),
            _key(self._name, config),
            config.request_timeout_s,
            config.max_concurrent,
        )
        try:
            offer = await self._meet(self._transport)
        except BaseException:
            await self.close()
            raise
        sizes = (offer.context_tokens, config.context_tokens)
        context = min((size for size in sizes if size), default=0)
        self._server = ServerClient(self._transport, config, offer, context)
        self._info = ModelInfo(
            name=self._name,
            engine="openai",
            revision=config.revision or f"unversioned:{config.path}",
            capabilities=offer.capabilities,
            context_tokens=context,
            deterministic=offer.continues,
            error_threshold=config.error_threshold,
            splitting=config.splitting,
            forms=config.structured if offer.forms else "never",
        )

    async def _meet(self, transport: HttpTransport) -> Offer:
        limit_s = self._config.start_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._wait(transport)
        except TimeoutError:
            raise StartupError(
                f"model {self._name}: no server answers at {self._config.base_url} in "
                f"{limit_s:g} s: start it, or correct base_url"
            ) from None
        except EngineError as error:
            raise StartupError(f"model {self._name}: {error.message}") from error
        except (StartupError, ConfigError) as error:
            raise type(error)(f"model {self._name}: {error}") from error

    async def _wait(self, transport: HttpTransport) -> Offer:
        while True:
            try:
                return await look(transport, self._config)
            except EngineError as error:
                if error.reason != Reason.ENGINE_DIED:
                    raise
                await asyncio.sleep(_WAIT_S)

    async def ask(self, request: Request) -> Answer:
        """See `JudgeEngine`. The server may come back: a later request asks it anew."""
        if self._server is None:
            raise EngineError(Reason.ENGINE_DIED, f"model {self._name} is closed")
        async with self._slots:
            return await self._answer(self._server, request)

    async def _answer(self, server: ServerClient, request: Request) -> Answer:
        prompt, context = request.prompt, self.info.context_tokens
        if chars_of(request) > LONG_CHARS:
            prompt = await asyncio.to_thread(server.settle, prompt)
        match request:
            case Choose():
                self._can("choose")
                return await fitted(
                    prompt,
                    request.keep_ends,
                    1,
                    lambda p, cut: server.choose(p, request, cut),
                    context,
                )
            case Write():
                self._can("write")
                return await fitted(
                    prompt,
                    request.keep_ends,
                    request.max_tokens,
                    lambda p, cut: server.write(p, request, cut),
                    context,
                )
            case RateDialogue():
                self._can("rate")
                return await fitted(prompt, request.keep_ends, 0, server.rate, context)
            case RateSteps():
                self._can("rate-steps")
                return await fitted(
                    prompt, False, 0, lambda p, _: server.rate_steps(p, request.steps)
                )

    def _can(self, capability: Capability) -> None:
        if capability not in self.info.capabilities:
            raise EngineError(
                Reason.INVALID_PARAMETER,
                f"model {self._name} cannot answer {capability!r}: its server offers "
                f"{', '.join(sorted(self.info.capabilities))}",
            )

    async def close(self) -> None:
        """See `JudgeEngine`: closes the connections; the server goes on."""
        self._server = None
        if self._transport is not None:
            await self._transport.close()


def root(name: str, config: EngineConfig) -> str:
    """The server's address without /v1.

    Raises:
        ConfigError: base_url is not an address.
    """
    parts = urlsplit(config.base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"model {name}: base_url is {config.base_url!r}; give the server's address, as "
            "http://127.0.0.1:8000/v1"
        )
    if parts.username or parts.password:
        raise ConfigError(f"model {name}: base_url holds a password; use api_key_env")
    return config.base_url.rstrip("/").removesuffix("/v1")


def _key(name: str, config: EngineConfig) -> str:
    if not config.api_key_env:
        return ""
    key = os.environ.get(config.api_key_env, "").strip()
    if not key:
        raise ConfigError(
            f"model {name}: the environment has no {config.api_key_env}; set it to the API key"
        )
    return key
