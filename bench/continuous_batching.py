"""The embedded engine's worker on transformers' continuous batching: the peer of `judge-batching`.

The same messages in, the same answers out as `BatchLoop`, for `choose` and `write`. transformers'
batch processor is driven a step a turn, without its thread; what it would sample is replaced. A row
of `choose` has its option's tokens forced and its logits read; a row of `write` draws by our
sampler, from its own seed. Read from transformers 5.19, whose parts it takes from inside.

What it needs to share a beginning, and does not come with it:

1. A gate. Requests that arrive together are read side by side, each whole, so whoever has a page in
   common with one that is being read waits until that is done.
2. A token more than is asked for. A request that ends in a step leaves none of the pages of that
   step behind (`mark_complete_blocks` returns for a finished one), so it is cancelled instead.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LogitsProcessorList
from transformers.generation.continuous_batching.cb_logits_processors import (
    ContinuousBatchingLogitsProcessor,
    ContinuousBatchingLogitsProcessorList,
)
from transformers.generation.continuous_batching.requests import RequestState

from assay.genrm.engines.worker.jobs import (
    NOT_FINITE,
    Logits,
    Maker,
    Sequence,
    WorkerJob,
    WriteJob,
    error_answer,
)
from assay.genrm.engines.worker.network import Network
from assay.genrm.engines.worker.sampling import next_tokens
from assay.genrm.engines.worker.settings import WorkerSettings

_PAGE_TOKENS = 16
_PASS_TOKENS = 512


class _Names(ContinuousBatchingLogitsProcessor):
    """Says whose logits a step gives."""

    supported_kwargs: ClassVar[dict[str, type]] = {}
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.names: list[str] = []

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        self.names = [future.state.request_id for future in requests_with_new_token]
        return torch.zeros(len(self.names), dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: torch.Tensor) -> Any:
        return scores


class _Row:
    """A sequence in the batch processor."""

    def __init__(self, sequence: Sequence, pages: list[int]) -> None:
        self.sequence = sequence
        self.job = sequence.job
        self.pages = pages
        self.logits: list[torch.Tensor] = []
        self.answer: dict[str, Any] | None = None


class ContinuousLoop:
    """Serves requests, one thread. See `BatchLoop`; `rows` go into a pass at most."""

    def __init__(
        self,
        network: Network,
        settings: WorkerSettings,
        ends: set[int],
        decode: Callable[[list[int], tuple[int, ...]], str],
        answer: Callable[[list[dict[str, Any]], tuple[int, int]], None],
        *,
        rows: int,
    ) -> None:
        self.inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._answer = answer
        self._ends = ends
        self._decode = decode
        self._make = Maker(network.pad_token, settings.good_label, lambda *_: None)
        self._waiting: list[Sequence] = []
        self._begun: dict[int, WorkerJob] = {}
        self._rows: dict[str, _Row] = {}
        self._coming: dict[int, str] = {}
        self._next = 0
        self._model = network._model  # noqa: SLF001  # the same weights, for both
        self._names = _Names()
        self._processor = self._new_processor(settings, rows)

    @property
    def cache_bytes(self) -> int:
        """Of its cache and its attention mask, which it holds from the start."""
        mask = self._processor.inputs_and_outputs.attention_mask or {}
        masks = sum(tensor.nbytes for tensor in mask.values())
        return int(self._processor.cache.cache_tensor.nbytes + masks)

    def turn(self) -> None:
        """Looks at what has arrived; then makes one step."""
        self._receive()
        self._admit()
        if self._rows and self._processor.prepare_next_batch():
            with torch.inference_mode():
                self._processor._generation_step(self._model)  # noqa: SLF001
            self._processor.update_batch()
            self._collect()

    def _new_processor(self, settings: WorkerSettings, rows: int) -> Any:
        tokens = settings.prefix_cache_tokens + settings.max_batch_tokens
        manager = self._model.init_continuous_batching(
            generation_config=GenerationConfig(do_sample=False, max_new_tokens=1, eos_token_id=-1),
            continuous_batching_config=ContinuousBatchingConfig(
                page_size=_PAGE_TOKENS,
                num_blocks=tokens // _PAGE_TOKENS,
                max_batch_tokens=_PASS_TOKENS,
                max_requests_per_batch=rows,
                seed=0,
            ),
        )
        manager.logit_processor = ContinuousBatchingLogitsProcessorList(
            LogitsProcessorList([self._names])
        )
        manager.logit_processor.tensors_required = 1
        processor = manager._create_batch_processor()  # noqa: SLF001
        processor.model_runner._sample = self._draw  # noqa: SLF001
        search = processor.cache.search_prefix_match

        def searched(name: str, ids: list[int]) -> int:
            found = int(search(name, ids))
            if name in self._rows and self._rows[name].job.cached is None:
                self._rows[name].job.cached = found
            return found

        processor.cache.search_prefix_match = searched
        return processor

    def _receive(self) -> None:
        while not self.inbox.empty():
            for body in self.inbox.get().get("ask", ()):
                job = self._make(body)
                self._begun[job.id] = job
                self._waiting += job.sequences()

    def _admit(self) -> None:
        """Hands over what shares no page with what is being read."""
        left = []
        for sequence in self._waiting:
            pages = _pages(sequence.ids)[self._known(sequence.ids) :]
            if any(page in self._coming for page in pages):
                left.append(sequence)
                continue
            name = str(self._next)
            self._next += 1
            self._rows[name] = _Row(sequence, pages)
            self._coming |= dict.fromkeys(pages, name)
            self._processor.scheduler.add_waiting_request(self._state(name, sequence))
        self._waiting = left

    def _known(self, ids: tuple[int, ...]) -> int:
        """Pages of a sequence that are there."""
        allocators = self._processor.cache.cache_allocators.values()
        return min(len(allocator.match_prefix_blocks(list(ids))) for allocator in allocators)

    def _state(self, name: str, sequence: Sequence) -> RequestState:
        job = sequence.job
        if isinstance(job, WriteJob):
            ends = sorted(self._ends)
            return RequestState(
                name, list(job.ids), max_new_tokens=job.max_tokens + 1, eos_token_id=ends
            )
        reads = len(sequence.reads)
        ids = list(sequence.ids[: len(sequence.ids) - reads + 1])
        return RequestState(name, ids, max_new_tokens=reads + 1, eos_token_id=-1)

    @torch.inference_mode()
    def _draw(self, scores: torch.Tensor, output_ids: torch.Tensor) -> None:
        """Stands in for the model runner's `_sample`."""
        logits_BV = scores[0]
        rows = [self._rows[name] for name in self._names.names]
        samplers = [row.job.sampler for row in rows if isinstance(row.job, WriteJob)]
        writing = [n for n, row in enumerate(rows) if isinstance(row.job, WriteJob)]
        drawn = dict(zip(writing, next_tokens(logits_BV[writing], samplers), strict=True))
        tokens = [
            self._write(row, drawn[n]) if n in drawn else _read(row, logits_BV[n])
            for n, row in enumerate(rows)
        ]
        output_ids[0, : len(tokens)].copy_(torch.tensor(tokens, dtype=torch.int32))

    def _write(self, row: _Row, token: int | None) -> int:
        job = row.job
        if token is None:
            row.answer = error_answer(job.id, *NOT_FINITE)
            return 0
        job.written.append(token)
        if token in self._ends or len(job.written) >= job.max_tokens:
            ended = token in self._ends
            text = self._decode(job.written[:-1] if ended else job.written, job.ids)
            finish = "stop" if ended else "length"
            row.answer = {"id": job.id, "text": text, "finish": finish}
            row.answer["completion"] = len(job.written)
        return token

    def _collect(self) -> None:
        answers = []
        for name in self._names.names:
            row = self._rows[name]
            for page in row.pages:  # read by now, and found from now on
                self._coming.pop(page, None)
            row.pages = []
            done = row.answer is not None
            if len(row.logits) == len(row.sequence.reads):
                done = True
                if made := row.job.take(row.sequence, Logits(torch.stack(row.logits))):
                    row.answer = {"id": row.job.id, **made}
            if done:
                self._leave(name)
            if row.answer is not None:
                row.answer["cached"] = self._begun.pop(row.job.id).cached or 0
                answers.append(row.answer)
        self._names.names = []
        if answers:
            self._answer(answers, (0, 0))

    def _leave(self, name: str) -> None:
        del self._rows[name]
        self._processor.scheduler.set_request_cancellation(name)


def _read(row: _Row, logits_V: torch.Tensor) -> int:
    """Keeps what is read of a row; the token of its option that comes next."""
    row.logits.append(logits_V.clone())
    at = len(row.sequence.ids) - len(row.sequence.reads) + len(row.logits)
    return row.sequence.ids[at] if at < len(row.sequence.ids) else 0


def _pages(ids: tuple[int, ...]) -> list[int]:
    """Whole pages, each with all that stands before it, as one number."""
    out: list[int] = []
    for start in range(0, len(ids) - _PAGE_TOKENS, _PAGE_TOKENS):
        out.append(hash((out[-1] if out else 0, ids[start : start + _PAGE_TOKENS])))
    return out
