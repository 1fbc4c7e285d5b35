"""Requests in the worker: which sequences to read, where, and what to make of the logits.

    {"id", "kind": "choose", "ids", "options"}          -> {"id", "logprobs"}
    {"id", "kind": "write", "ids", "max_tokens", "temperature", "top_p", "seed", "stop", "form"}
                                            -> {"id", "text", "finish", "completion"}, "mass" too
                                               where there is a form (`forms.TextForm.parts`)
    {"id", "kind": "rate", "ids"}                       -> {"id", "logits"}
    {"id", "kind": "rate-steps", "ids", "positions"}    -> {"id", "probabilities"}

Requests have the call's "request_id", for logs, and may have an "adapter" that was loaded; answers
have "cached", the known tokens of the prompt, or {"id", "error": [reason, message]}.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from assay.genrm.engines.steps import chance
from assay.genrm.engines.worker.guiding import FormGuide
from assay.genrm.engines.worker.sampling import RowSampler
from assay.genrm.engines.worker.vocabulary import FormTables
from assay.kit.reasons import Reason

Ids = tuple[int, ...]
NOT_FINITE = (
    Reason.SCORE_NOT_FINITE,
    "the model's numbers are not finite; look at its weights, or use precision float32",
)


@dataclass(slots=True, eq=False)
class Sequence:
    """Tokens to read for a job.

    Attributes:
        job: whose.
        ids: the tokens.
        reads: positions at which logits are wanted, ascending.
    """

    job: WorkerJob
    ids: Ids
    reads: Ids


@dataclass(slots=True, eq=False)
class Logits:
    """Logits of one sequence: [N, V], row n at its n-th position."""

    values: torch.Tensor

    def finite(self) -> bool:
        """Whether each position has a distribution."""
        return bool(torch.logsumexp(self.values, -1).isfinite().all())


class WorkerJob(Protocol):
    """A request at work."""

    id: int
    adapter: str
    cached: int | None

    def sequences(self) -> list[Sequence]:
        """What to read first."""

    def take(self, sequence: Sequence, logits: Logits) -> dict[str, Any] | None:
        """Uses the logits; returns the answer once there is one."""


@dataclass(slots=True, eq=False)
class ChooseJob:
    """Log-probabilities of options, summed over their tokens."""

    id: int
    ids: Ids
    options: tuple[Ids, ...]
    adapter: str = ""
    cached: int | None = None
    _known: dict[Ids, float] = field(default_factory=dict)
    _waiting: dict[Ids, Sequence] = field(default_factory=dict)

    def sequences(self) -> list[Sequence]:
        """One for each different beginning of an option."""
        last = len(self.ids) - 1
        beginnings = {option[:-1] for option in self.options if len(option) > 1} or {()}
        for beginning in sorted(beginnings):
            reads = tuple(range(last, last + len(beginning) + 1))
            self._waiting[beginning] = Sequence(self, self.ids + beginning, reads)
        return list(self._waiting.values())

    def take(self, sequence: Sequence, logits: Logits) -> dict[str, Any] | None:
        """Adds up the options that the sequence holds."""
        if not logits.finite():
            return error_answer(self.id, *NOT_FINITE)
        logprobs_NV = torch.log_softmax(logits.values, -1)
        beginning = sequence.ids[len(self.ids) :]
        self._waiting.pop(beginning)
        for option in self.options:
            if option[:-1] == beginning[: len(option) - 1] and option not in self._known:
                rows = torch.arange(len(option), device=logprobs_NV.device)
                tokens = torch.tensor(option, device=logprobs_NV.device)
                total = float(logprobs_NV[rows, tokens].double().sum())
                self._known[option] = min(0.0, total)
        if self._waiting:
            return None
        return {"logprobs": [self._known[option] for option in self.options]}


@dataclass(slots=True, eq=False)
class WriteJob:
    """Text, token by token; writing.py goes on from here."""

    id: int
    ids: Ids
    max_tokens: int
    stop: tuple[str, ...]
    sampler: RowSampler
    guide: FormGuide | None
    start: Callable[[WriteJob, Sequence, Logits], dict[str, Any] | None]
    adapter: str = ""
    cached: int | None = None
    written: list[int] = field(default_factory=list)

    def sequences(self) -> list[Sequence]:
        """The prompt, and what was written before an interruption."""
        ids = (*self.ids, *self.written)
        return [Sequence(self, ids, (len(ids) - 1,))]

    def take(self, sequence: Sequence, logits: Logits) -> dict[str, Any] | None:
        """Samples a token, and the writer goes on."""
        return self.start(self, sequence, logits)


@dataclass(slots=True, eq=False)
class RateJob:
    """Logits of a head, read where transformers reads them: at the last token but padding."""

    id: int
    ids: Ids
    pad_token: int | None
    adapter: str = ""
    cached: int | None = None

    def sequences(self) -> list[Sequence]:
        """The dialogue."""
        last = len(self.ids) - 1
        while last > 0 and self.ids[last] == self.pad_token:
            last -= 1
        return [Sequence(self, self.ids, (last,))]

    def take(self, sequence: Sequence, logits: Logits) -> dict[str, Any] | None:
        """The logits as they are."""
        if not bool(logits.values.isfinite().all()):
            return error_answer(self.id, *NOT_FINITE)
        return {"logits": logits.values[0].tolist()}


@dataclass(slots=True, eq=False)
class RateStepsJob:
    """The chance that each step is right; see `steps.chance`."""

    id: int
    ids: Ids
    positions: Ids
    good_label: int
    scores: bool = False
    adapter: str = ""
    cached: int | None = None

    def sequences(self) -> list[Sequence]:
        """The dialogue, read at the steps."""
        return [Sequence(self, self.ids, self.positions)]

    def take(self, sequence: Sequence, logits: Logits) -> dict[str, Any] | None:
        """One chance for each step."""
        values_SV = logits.values
        if not bool(values_SV.isfinite().all()):
            return error_answer(self.id, *NOT_FINITE)
        chances = [chance(row, self.good_label, scores=self.scores) for row in values_SV.tolist()]
        return {"probabilities": chances}


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes jobs of the engine's messages."""

    pad_token: int | None
    good_label: int
    start: Callable[[WriteJob, Sequence, Logits], dict[str, Any] | None]
    scores: bool = False
    tables: FormTables | None = None

    def __call__(self, body: dict[str, Any]) -> WorkerJob:
        """The job of a message."""
        job = self._made(body)
        job.adapter = body.get("adapter", "")
        return job

    def _made(self, body: dict[str, Any]) -> WorkerJob:
        number, ids = int(body["id"]), tuple(body["ids"])
        match body["kind"]:
            case "choose":
                return ChooseJob(number, ids, tuple(tuple(option) for option in body["options"]))
            case "rate":
                return RateJob(number, ids, self.pad_token)
            case "rate-steps":
                positions = tuple(body["positions"])
                return RateStepsJob(number, ids, positions, self.good_label, self.scores)
            case _:
                numbers = random.Random(int(body["seed"]))  # noqa: S311  # sampling, not secrets
                sampler = RowSampler(float(body["temperature"]), float(body["top_p"]), numbers)
                stop, limit = tuple(body["stop"]), int(body["max_tokens"])
                guide = self._guide(body.get("form"), limit)
                return WriteJob(number, ids, limit, stop, sampler, guide, self.start)

    def _guide(self, form: list[Any] | None, max_tokens: int) -> FormGuide | None:
        if form is None:
            return None
        if self.tables is None:
            raise ValueError("a form for a vocabulary that has none")
        parts = tuple(tuple(part) if isinstance(part, list) else part for part in form)
        return FormGuide(self.tables.of(parts), max_tokens)


def error_answer(number: int, reason: str, message: str) -> dict[str, Any]:
    """The answer of a failed request."""
    return {"id": number, "error": [str(reason), message]}
