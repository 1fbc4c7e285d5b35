"""Rows that are being written, one token of each in one forward pass.

A row joins when its prompt has been read and leaves when it ends. Where rows outgrow the batch's
tokens, the newest gives way and is read anew later; its random numbers go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from assay.genrm.engines.worker.guiding import FormGuide
from assay.genrm.engines.worker.jobs import NOT_FINITE, Logits, WriteJob, error_answer
from assay.genrm.engines.worker.kv_cache import KvCache, KvSegment
from assay.genrm.engines.worker.network import Network, RowInput
from assay.genrm.engines.worker.reading import BatchLimits
from assay.genrm.engines.worker.sampling import next_tokens

_ROOM_TOKENS = 64
_STOP_TOKENS = 4  # more than a text's bytes, so that a stop text is seen across token borders
Decode = Callable[[list[int], tuple[int, ...]], str]
Store = Callable[[WriteJob, tuple[int, ...], Callable[[int, int], KvSegment]], None]


@dataclass(slots=True, eq=False)
class Active:
    """A row: `known` of its tokens have keys and values; the last one written has none yet."""

    job: WriteJob
    known: int


class Writer:
    """The rows at work."""

    def __init__(self, network: Network, limits: BatchLimits, ends: Iterable[int], decode: Decode):
        """Starts without rows; the arguments are those of `BatchLoop`."""
        self._network = network
        self._limits = limits
        self._ends = frozenset(ends)
        self._decode = decode
        self._rows: list[Active] = []
        self._kv: KvCache | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def room(self, tokens: int, joining: int) -> bool:
        """Whether a row of so many tokens may join, after `joining` others."""
        rows = len(self._rows) + joining
        longest = max([tokens, *(row.known for row in self._rows)]) + _ROOM_TOKENS
        return not rows or (
            rows < self._limits.items and (rows + 1) * longest <= self._limits.tokens
        )

    def first(self, job: WriteJob, logits: Logits) -> dict[str, Any] | None:
        """Writes the first token; returns the answer if it is the last."""
        return self._add(job, _drawn(logits.values, [job])[0])

    def join(self, job: WriteJob, segment: KvSegment) -> None:
        """Takes up a job; the segment is its prompt's keys and values."""
        self._reserve(len(self._rows) + 1, len(segment) + 1)
        kv = self._kv
        if kv is None:
            raise RuntimeError("the rows have no cache")
        kv.clear(len(self._rows))
        kv.load([len(self._rows)], 0, segment)
        self._rows.append(Active(job, len(segment)))

    def step(self, store: Store) -> list[dict[str, Any]]:
        """Writes one token in each row; the answers of those that ended."""
        self._reserve(len(self._rows), max(row.known for row in self._rows) + 1)
        rows = [
            RowInput(row.known, row.job.written[-1:], (row.known,), row.job.adapter)
            for row in self._rows
        ]
        logits = self._network.run(rows, self._kv)
        tokens = _drawn(logits, [row.job for row in self._rows])
        answers = []
        for index in reversed(range(len(self._rows))):
            row = self._rows[index]
            row.known += 1
            if answer := self._add(row.job, tokens[index]):
                answers.append(answer)
                if "error" not in answer:
                    self._remember(index, store)
                self._leave(index)
        return answers

    def crowded(self) -> list[WriteJob]:
        """Jobs that must give way."""
        out = []
        while len(self._rows) > 1:
            longest = max(row.known for row in self._rows) + 1
            if len(self._rows) * longest <= self._limits.tokens:
                break
            out.append(self._rows[-1].job)
            self._leave(len(self._rows) - 1)
        return out

    def give_up(self, count: int) -> list[WriteJob]:
        """Removes the newest rows; returns their jobs."""
        out = []
        for _ in range(count):
            out.append(self._rows[-1].job)
            self._leave(len(self._rows) - 1)
        return out

    def drop(self, numbers: set[int]) -> None:
        """Removes the rows of these jobs."""
        for index in reversed(range(len(self._rows))):
            if self._rows[index].job.id in numbers:
                self._leave(index)

    def _add(self, job: WriteJob, token: int | None) -> dict[str, Any] | None:
        if token is None:
            return error_answer(job.id, *NOT_FINITE)
        job.written.append(token)
        if job.guide is not None:
            return self._guided(job, job.guide, token)
        if token in self._ends:
            return self._answer(job, "stop", self._text(job, job.written[:-1]))
        if (text := self._stopped(job)) is not None:
            return self._answer(job, "stop", text)
        if len(job.written) >= job.max_tokens:
            return self._answer(job, "length", self._text(job, job.written))
        return None

    def _guided(self, job: WriteJob, guide: FormGuide, token: int) -> dict[str, Any] | None:
        guide.advance(token)
        if not guide.done and len(job.written) < job.max_tokens:
            return None
        finish = "stop" if guide.done else "length"
        text = self._text(job, job.written)
        return {**self._answer(job, finish, text), "mass": guide.mass}

    def _stopped(self, job: WriteJob) -> str | None:
        if not job.stop:
            return None
        reach = max(len(stop.encode()) for stop in job.stop) + _STOP_TOKENS
        tail = self._decode(job.written[-reach:], ())
        if not any(stop in tail for stop in job.stop):
            return None
        text = self._text(job, job.written)
        found = [text.find(stop) for stop in job.stop if stop in text]
        return text[: min(found)] if found else None

    def _text(self, job: WriteJob, tokens: list[int]) -> str:
        return self._decode(tokens, job.ids)

    @staticmethod
    def _answer(job: WriteJob, finish: str, text: str) -> dict[str, Any]:
        return {"id": job.id, "text": text, "finish": finish, "completion": len(job.written)}

    def _reserve(self, rows: int, tokens: int) -> None:
        kv = self._kv
        if kv is not None and kv.rows >= rows and kv.tokens >= tokens:
            return
        old_rows, old_tokens = (kv.rows, kv.tokens) if kv else (0, 0)
        rows = old_rows if rows <= old_rows else max(rows, min(2 * old_rows, self._limits.items))
        if tokens > old_tokens:
            tokens += max(_ROOM_TOKENS, tokens // 4)
        new = self._network.kv_cache(rows, max(tokens, old_tokens))
        if kv is not None:
            kv.copy_into(new, old_rows)
        self._kv = new

    def _remember(self, index: int, store: Store) -> None:
        row, kv = self._rows[index], self._kv
        if kv is not None:
            ids = (*row.job.ids, *row.job.written)[: row.known]
            store(row.job, ids, lambda start, end: kv.segment(index, start, end))

    def _leave(self, index: int) -> None:
        """Takes a row out; the last one moves into its place."""
        last = len(self._rows) - 1
        if index != last and self._kv is not None:
            self._kv.move(last, index)
        self._rows[index] = self._rows[last]
        self._rows.pop()
        if not self._rows:
            self._kv = None


def _drawn(logits_BV: torch.Tensor, jobs: Sequence[WriteJob]) -> list[int | None]:
    """The next token of each row, of those that its form allows; None for logits not finite."""
    if any(job.guide is not None for job in jobs):
        rows = zip(logits_BV, jobs, strict=True)
        logits_BV = torch.stack(
            [
                logits_V if job.guide is None else job.guide.narrow(logits_V)
                for logits_V, job in rows
            ]
        )
    return next_tokens(logits_BV, [job.sampler for job in jobs])
