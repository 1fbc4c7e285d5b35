"""An engine that answers from a script: rollouts without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from assay.trainer.engines.engine import Engine, EngineHost, Id, OnEnded, OpenRequest
from assay.trainer.engines.stops import is_stopped
from assay.trainer.engines.types import Request, Response, Tokenizer


class ScriptedEngine(Engine):
    """Draws one token of every open request at a time, each from its script.

    Args:
        script: gives a request's whole response, whatever its window.
        tokenizer: turns tokens into texts; without one, a response has the script's text.
        slots: most requests that are drawn at a time; 0 for all.

    Attributes:
        passes: for each pass, the ids of the requests that got a token.
        asked: every request, in the order of submission.
    """

    def __init__(
        self,
        script: Callable[[Request], Response],
        *,
        tokenizer: Tokenizer = None,
        slots: int = 0,
    ) -> None:
        self._script = script
        self._slots = slots
        self._reads = tokenizer is not None
        self.passes: list[list[Id]] = []
        self.asked: list[Request] = []
        super().__init__(
            EngineHost(nullcontext, tokenizer or _NoText(), 0, frozenset(), nullcontext)
        )

    def submit(self, id_: Id, request: Request, sampling: Any) -> None:
        """See Engine."""
        super().submit(id_, request, sampling)
        self.asked.append(request)

    def _draw(self, on_ended: OnEnded) -> None:
        ended: list[tuple[OpenRequest, bool]] = []
        while self._open and not ended and not self._between:
            rows = sorted(self._open.values(), key=lambda row: row.id)
            rows = rows[: self._slots or len(rows)]
            self.passes.append([row.id for row in rows])
            for row in rows:
                said, at = self._script(row.request), row.position
                row.add(said.ids[at : at + 1], said.logprobs and said.logprobs[at : at + 1])
                over = row.position == len(said.ids)
                stopped = self._reads and is_stopped(self.host, row)
                if over or stopped or not row.room:
                    ended.append((row, stopped or (over and not said.truncated)))
        texts = {row.id: self._script(row.request).text for row, _ in ended}
        spoken = isinstance(self.host.tokenizer, _NoText)
        self._end(
            ended,
            lambda id_, response: on_ended(
                id_, _with_text(response, texts[id_]) if spoken else response
            ),
        )


class _NoText:
    pad_token_id = 0

    def batch_decode(self, rows: Sequence[Sequence[int]], **_: Any) -> list[str]:
        return [""] * len(rows)


def _with_text(response: Response, text: str) -> Response:
    return replace(response, text=text) if response.finished else response
