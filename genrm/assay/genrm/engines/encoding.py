"""Makes tokens of requests beside the event loop: short ones in one thread, long ones in another.

So the tokens of a response of megabytes cost its own caller time and nobody else's. Requests of one
turn of the event loop are made into tokens together, and their callers go on in one turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from assay.genrm.engines.base import EngineError, RateSteps, Request
from assay.genrm.engines.fitting import pieces_of
from assay.genrm.engines.prompts import Encoded, PromptEncoder
from assay.kit.reasons import Reason

LONG_CHARS = 1 << 16
"""A request of more characters is a long one: some 16,000 tokens, 20 ms."""

_log = logging.getLogger(__name__)


class _Pending:
    def __init__(self, request: Request, future: asyncio.Future[Encoded]) -> None:
        self.request = request
        self.future = future
        self.made: Encoded | EngineError = Encoded(())


class _Lane:
    """One thread and its encoder, made by the thread where the first request needs it."""

    def __init__(self, name: str, encoder: Callable[[], PromptEncoder], model: Encoding) -> None:
        self._model = model
        self._make = encoder
        self._encoder: PromptEncoder | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._fresh: list[_Pending] = []
        self._inside: list[_Pending] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, pending: _Pending) -> None:
        self._fresh.append(pending)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self, error: EngineError) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        for pending in (*self._inside, *self._fresh):
            if not pending.future.done():
                pending.future.set_exception(error)
        self._fresh, self._inside = [], []
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._fresh:
            self._inside = [one for one in self._fresh if not one.future.done()]
            self._fresh = []
            await loop.run_in_executor(self._thread, self._work, self._inside)
            for pending in self._inside:
                if pending.future.done():
                    continue
                if isinstance(pending.made, EngineError):
                    pending.future.set_exception(pending.made)
                else:
                    pending.future.set_result(pending.made)
            self._inside = []
        self._task = None

    def _work(self, requests: list[_Pending]) -> None:
        if self._encoder is None:
            self._encoder = self._make()
        for pending in requests:
            if not pending.future.done():
                pending.made = self._model.encode_now(self._encoder, pending.request)


class Encoding:
    """Tokens of requests of one model. Belongs to the event loop that it is made in.

    Args:
        what: the model, for messages.
        encoder: makes tokens, and belongs to this object now.
        context_tokens: of prompt and answer together.
    """

    def __init__(self, what: str, encoder: PromptEncoder, context_tokens: int) -> None:
        self._what = what
        self._context = context_tokens
        self._closed: EngineError | None = None
        self._short = _Lane("encode", lambda: encoder, self)
        self._long = _Lane("encode-long", encoder.twin, self)

    async def encode(self, request: Request) -> Encoded:
        """The request in tokens, fitted into the context.

        Raises:
            EngineError: CONTEXT_TOO_LONG, INVALID_PARAMETER for what cannot be rendered,
                ENGINE_FAILED where the model's own template or tokenizer breaks, or of `close`.
        """
        if self._closed is not None:
            raise self._closed
        future: asyncio.Future[Encoded] = asyncio.get_running_loop().create_future()
        lane = self._long if chars_of(request) > LONG_CHARS else self._short
        lane.put(_Pending(request, future))
        return await future

    async def close(self, error: EngineError) -> None:
        """Ends the threads; whoever waits gets the error."""
        self._closed = error
        await self._short.close(error)
        await self._long.close(error)

    def encode_now(self, encoder: PromptEncoder, request: Request) -> Encoded | EngineError:
        """The tokens, or why there are none; in a thread."""
        try:
            return encoder.encode_request(request, self._context)
        except EngineError as error:
            return error
        except Exception as error:  # noqa: BLE001  # a model's own template and tokenizer
            _log.exception("%s: a prompt cannot be made into tokens", self._what)
            text = (str(error) or type(error).__name__).splitlines()[0][:300]
            return EngineError(
                Reason.ENGINE_FAILED,
                f"the chat template or tokenizer of {self._what} refuses the prompt: {text}",
            )


def chars_of(request: Request) -> int:
    """Characters of the prompt, and of the steps."""
    count = sum(len(piece.text) for piece in pieces_of(request.prompt))
    return count + sum(map(len, request.steps)) if isinstance(request, RateSteps) else count
