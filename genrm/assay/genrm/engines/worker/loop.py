"""The worker's loop: takes what has arrived, reads a batch, writes a token of each row, answers.

Between any two forward passes it looks at what has arrived, so nothing waits for another request to
end, and requests that arrive together are read together.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Iterable
from typing import Any

import torch

from assay.genrm.engines.worker.adapters import AdapterError
from assay.genrm.engines.worker.jobs import (
    Logits,
    Maker,
    Sequence,
    WorkerJob,
    WriteJob,
    error_answer,
)
from assay.genrm.engines.worker.kv_cache import KvCache, KvSegment
from assay.genrm.engines.worker.network import Network, RowInput
from assay.genrm.engines.worker.prefixes import PrefixTree
from assay.genrm.engines.worker.reading import PLANNED, BatchLimits, Planned, plan
from assay.genrm.engines.worker.settings import WorkerSettings
from assay.genrm.engines.worker.vocabulary import FormTables
from assay.genrm.engines.worker.writing import Decode, Writer
from assay.kit.reasons import Reason

_FREE_TOKENS = {"cpu": 256, "cuda": 8192}
_NO_ADAPTER = "its adapter is not loaded, or has been replaced while it was asked; send it again"

_log = logging.getLogger(__name__)


class BatchLoop:
    """Serves requests, one thread."""

    def __init__(
        self,
        network: Network,
        settings: WorkerSettings,
        ends: set[int],
        decode: Decode,
        answer: Callable[[list[dict[str, Any]], tuple[int, int]], None],
        *,
        inbox: queue.SimpleQueue[dict[str, Any]] | None = None,
        tables: FormTables | None = None,
    ) -> None:
        """Starts without work.

        Args:
            network: the model.
            settings: its limits.
            ends: tokens that end a text.
            decode: text of tokens that stand after others.
            answer: sends answers, with the forward passes since the last and the rows in them.
            inbox: where messages arrive.
            tables: of forms, for a vocabulary that texts can be held to them in.
        """
        self.inbox = inbox or queue.SimpleQueue()
        self._network = network
        self._answer = answer
        self._limits = BatchLimits(
            settings.max_batch_tokens,
            settings.max_batch_items,
            free=_FREE_TOKENS[network.device.type],
        )
        self._tree = PrefixTree(settings.prefix_cache_tokens) if network.shape else None
        self._writer = Writer(network, self._limits, ends, decode)
        self._make = Maker(
            network.pad_token, settings.good_label, self._first, settings.step_scores, tables
        )
        self._waiting: list[Sequence] = []
        self._begun: dict[int, WorkerJob] = {}
        self._request_ids: dict[int, str] = {}
        self._joining: list[WriteJob] = []
        self._passes = self._rows = 0

    def run(self) -> None:
        """Serves for ever."""
        while True:
            self.turn()

    def turn(self) -> None:
        """Looks at what has arrived, waiting for it if there is nothing to do; then works once."""
        self._receive(wait=not self._waiting and not self._writer)
        if self._waiting:
            self._read()
        if self._writer:
            self._write()
        if self._tree is not None:
            waiting = self._waiting[: PLANNED * self._limits.items]
            sought = ((s.ids, s.reads[0], s.job.adapter) for s in waiting)
            self._tree.shrink(sought, self._limits.tokens)

    def _receive(self, *, wait: bool) -> None:
        while True:
            try:
                message = self.inbox.get(block=wait)
            except queue.Empty:
                return
            wait = False
            if "load" in message:
                self._load_adapter(message)
            if "unload" in message:
                self._unload_adapter(message)
            for body in message.get("ask", ()):
                job = self._make(body)
                self._begun[job.id] = job
                self._request_ids[job.id] = body.get("request_id", "")
                if job.adapter and job.adapter not in self._network.adapters:
                    self._finish([error_answer(job.id, Reason.ENGINE_FAILED, _NO_ADAPTER)])
                else:
                    self._waiting += job.sequences()
            if gone := set(message.get("cancel", ())) & self._begun.keys():
                self._forget(gone)
                self._writer.drop(gone)

    def _load_adapter(self, message: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"id": message["id"]}
        try:
            self._network.adapters.load(message["load"], message["folder"])
        except AdapterError as error:
            answer = error_answer(message["id"], Reason.ENGINE_FAILED, str(error))
        self._answer([answer], (0, 0))

    def _unload_adapter(self, message: dict[str, Any]) -> None:
        """Ends what goes through it first: without it a row would go through the base alone."""
        key = message["unload"]
        gone = [job for job in self._begun.values() if job.adapter == key]
        self._writer.drop({job.id for job in gone})
        self._finish([error_answer(job.id, Reason.ENGINE_FAILED, _NO_ADAPTER) for job in gone])
        if self._tree is not None:
            self._tree.forget(key)
        self._network.adapters.unload(key)
        self._answer([{"id": message["id"]}], (0, 0))

    def _forget(self, numbers: set[int]) -> None:
        for number in numbers:
            self._begun.pop(number, None)
            self._request_ids.pop(number, None)
        self._waiting = [s for s in self._waiting if s.job.id not in numbers]

    def _finish(self, answers: list[dict[str, Any]]) -> None:
        for answer in answers:
            answer["cached"] = self._begun[answer["id"]].cached or 0
        self._forget({answer["id"] for answer in answers})
        if answers:
            self._answer(answers, (self._passes, self._rows))
            self._passes = self._rows = 0

    def _ran(self, rows: int) -> None:
        self._passes += 1
        self._rows += rows

    # Reading.

    def _read(self) -> None:
        joining = 0

        def admit(sequence: Sequence) -> bool:
            nonlocal joining
            if not isinstance(sequence.job, WriteJob):
                return True
            if not self._writer.room(len(sequence.ids), joining):
                return False
            joining += 1
            return True

        batch = plan(self._waiting, self._tree, self._limits, admit)
        if batch:
            self._attempt(batch)

    def _attempt(self, batch: list[Planned]) -> None:
        """Reads a batch; where that fails, its halves, so that one request's failure is its own."""
        try:
            self._finish(self._read_batch(batch))
        except Exception as error:
            # The fault boundary: what a model raises becomes the fault of whom it concerns.
            if _fatal(error):
                raise
            if isinstance(error, torch.OutOfMemoryError):
                self._free()
            if len(batch) == 1:
                job = batch[0].sequence.job
                self._log_failure([job])
                self._finish([error_answer(job.id, Reason.ENGINE_FAILED, _failure(error))])
                return
            half = len(batch) // 2
            for part in (batch[:half], batch[half:]):
                if left := [p for p in part if p.sequence in self._waiting]:
                    self._attempt(left)

    def _read_batch(self, batch: list[Planned]) -> list[dict[str, Any]]:
        kv = self._loaded(batch)
        rows = [
            RowInput(
                p.match.length,
                p.sequence.ids[p.match.length :],
                p.sequence.reads,
                p.sequence.job.adapter,
            )
            for p in batch
        ]
        self._ran(len(rows))
        logits_NV = self._network.run(rows, kv)
        answers: dict[int, dict[str, Any]] = {}
        at = 0
        for index, planned in enumerate(batch):
            sequence = planned.sequence
            job = sequence.job
            self._waiting.remove(sequence)
            count = len(sequence.reads)
            values, at = Logits(logits_NV[at : at + count]), at + count
            if job.id in answers:
                continue
            if job.cached is None:
                job.cached = planned.match.length
            if made := job.take(sequence, values):
                answers[job.id] = {"id": job.id, **made}
            if "error" not in answers.get(job.id, {}) and kv is not None:
                self._keep(kv, index, sequence)
        return list(answers.values())

    def _loaded(self, batch: list[Planned]) -> KvCache | None:
        if self._network.shape is None:
            return None
        known = max(planned.match.length for planned in batch)
        kv = self._network.kv_cache(len(batch), known + max(planned.added for planned in batch))
        places: dict[tuple[int, int, int], tuple[list[int], KvSegment]] = {}
        for index, planned in enumerate(batch):
            start = 0
            for node, used in planned.match.path:
                segment = node.kept
                if not isinstance(segment, KvSegment):
                    raise TypeError("the tree keeps segments")
                if used < len(segment):
                    segment = KvSegment(segment.keys[:, :, :used], segment.values[:, :, :used])
                place = places.setdefault((id(node), start, used), ([], segment))
                place[0].append(index)
                start += used
        for (_, start, _), (indices, segment) in places.items():
            kv.load(indices, start, segment)
        return kv

    def _keep(self, kv: KvCache, index: int, sequence: Sequence) -> None:
        def cut(start: int, end: int) -> KvSegment:
            return kv.segment(index, start, end)

        if self._tree is not None:
            self._tree.store(sequence.ids, cut, sequence.job.adapter)
        job = sequence.job
        if isinstance(job, WriteJob) and self._joining and self._joining[-1] is job:
            self._joining.pop()
            self._writer.join(job, cut(0, len(sequence.ids)))

    def _first(self, job: WriteJob, _: Sequence, logits: Logits) -> dict[str, Any] | None:
        answer = self._writer.first(job, logits)
        if answer is None:
            self._joining.append(job)
        return answer

    # Writing.

    def _write(self) -> None:
        self._return(self._writer.crowded())
        self._ran(len(self._writer))
        try:
            answers = self._writer.step(self._store)
        except Exception as error:
            # As in `_attempt`: half of the rows give way, and are read anew.
            if _fatal(error):
                raise
            if isinstance(error, torch.OutOfMemoryError):
                self._free()
            left = self._writer.give_up((len(self._writer) + 1) // 2)
            if self._writer:
                self._return(left)
                return
            self._log_failure(left)
            answers = [error_answer(job.id, Reason.ENGINE_FAILED, _failure(error)) for job in left]
        self._finish(answers)

    def _log_failure(self, jobs: Iterable[WorkerJob]) -> None:
        ids = dict.fromkeys(self._request_ids.get(job.id, "") for job in jobs)
        _log.exception("a request failed", extra={"request_id": ",".join(filter(None, ids))})

    def _store(
        self, job: WriteJob, ids: tuple[int, ...], cut: Callable[[int, int], KvSegment]
    ) -> None:
        if self._tree is not None:
            self._tree.store(ids, cut, job.adapter)

    def _return(self, jobs: list[WriteJob]) -> None:
        for job in jobs:
            self._waiting += job.sequences()

    def _free(self) -> None:
        if self._tree is not None:
            self._tree.clear()
        if self._network.device.type == "cuda":
            torch.cuda.empty_cache()


def _fatal(error: Exception) -> bool:
    """After an error of CUDA other than a lack of memory, nothing on that device works any more."""
    return not isinstance(error, torch.OutOfMemoryError) and "CUDA error" in str(error)


def _failure(error: Exception) -> str:
    text = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
    if isinstance(error, torch.OutOfMemoryError):
        return "the device has too little memory for this request alone; lower context_tokens"
    return f"the model could not be run on this request: {text}"
