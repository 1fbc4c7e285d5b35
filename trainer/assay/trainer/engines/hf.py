"""Generation by transformers' own `generate`, with sampling that a seed fixes.

One logits processor is added, the last of the chain: it draws each row's token with the row's own
random numbers (engines.seeded), notes its log-probability, delivers a response as soon as it is
complete, and leaves the drawn token as the only one that greedy decoding can take.

Differences from TRL 1.16's own path (GRPOTrainer._generate_single_turn):

1. A response depends on the run's seed, the draw and the sample's index, whatever its batch.
2. Log-probabilities come with the tokens, so that drift from the trainer's can be measured.
3. Dropout is off while the policy answers.
4. The model's own generation settings, such as a repetition penalty, are ignored: responses come
   from the distribution that the trainer computes with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.distributed.fsdp import FSDPModule
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Engine, EngineHost, OnEnded, OpenRequest
from assay.trainer.engines.seeded import drawn, not_numbers, uniform_rows
from assay.trainer.engines.stops import StopTexts, stop_texts
from assay.trainer.engines.types import Draw, Request, Sampling

_NOTHING = Problem("", "", (), "")


class HfEngine(Engine):
    """An Engine on `transformers`: waiting rows become a batch, which ends together.

    Where weights are sharded (FSDP, ZeRO-3 without gathering), every process polls as often as the
    others; `generate` keeps their forward passes in step, and an idle process answers a dummy row.
    """

    joins = False

    def anywhere(self, here: bool) -> bool:
        """See Engine."""
        if not self.host.in_step():
            return here
        everyone = [False] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(everyone, here)
        return any(everyone)

    def _draw(self, on_ended: OnEnded) -> None:
        rows = self._batch()
        with self.host.model_context() as model, torch.no_grad(), self.host.autocast():
            draws = HfDraws(
                rows,
                self.host,
                on_ended=lambda ended: self._end(ended, on_ended),
                device=model.device,
            )
            settings = self._settings(draws.most)
            input_ids, attention_mask = left_padded(
                [row.input_ids for row in rows], self.host.tokenizer.pad_token_id
            )
            with answering(model, settings):
                model.generate(
                    input_ids=input_ids.to(model.device),
                    attention_mask=attention_mask.to(model.device),
                    generation_config=settings,
                    logits_processor=LogitsProcessorList([draws]),
                    stopping_criteria=StoppingCriteriaList([AllComplete(draws, self._between)]),
                    synced_gpus=True if self.host.in_step() else None,
                )
        draws.keep()

    def _batch(self) -> list[OpenRequest]:
        if not self._open:  # others have rows, and sharded weights
            request = Request(Draw(0, _NOTHING, (self.host.tokenizer.pad_token_id,)), 0, window=1)
            return [OpenRequest((), request, Sampling(1))]
        sampling = next(iter(self._open.values())).sampling
        rows = [row for row in self._open.values() if row.sampling == sampling]
        return sorted(rows[: sampling.rows or len(rows)], key=lambda row: row.id)

    def _settings(self, new_tokens: int) -> GenerationConfig:
        return GenerationConfig(
            do_sample=False,
            max_new_tokens=new_tokens,
            pad_token_id=self.host.tokenizer.pad_token_id,
            eos_token_id=sorted(self.host.end_ids) or None,
            use_cache=True,
            disable_compile=True,
        )


class HfDraws(LogitsProcessor):
    """Draws the tokens of one batch of one sampling, and notices which rows are complete.

    `on_ended` is called with complete rows, each with whether its last token ends its response.

    Attributes:
        most: tokens that any row may have drawn now.
    """

    def __init__(
        self,
        rows: Sequence[OpenRequest],
        host: EngineHost,
        *,
        on_ended: Callable[[list[tuple[OpenRequest, bool]]], None],
        device: torch.device,
    ) -> None:
        self._rows = rows
        self._sampling = rows[0].sampling
        self._begins_B = torch.tensor([row.position == 0 for row in rows], device=device)
        self._room_B = np.array([row.room for row in rows])
        self.most = limit = int(self._room_B.max())
        numbers_BT = uniform_rows(
            host.seed,
            [row.seed_place for row in rows],
            limit,
            firsts=[row.position for row in rows],
        )
        self._uniforms_TB = torch.from_numpy(numbers_BT.T.copy()).to(device)
        self._end_ids = np.array(sorted(host.end_ids), dtype=np.int64)
        self._stops = stop_texts(host, self._sampling)
        self._on_ended = on_ended
        self._tokens_TB = np.zeros((limit, len(rows)), dtype=np.int64)
        self._logprobs_TB = np.zeros((limit, len(rows)), dtype=np.float32)
        self._unfinished_B = np.ones(len(rows), dtype=bool)
        self._length = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Draws a token for each row from `scores`, (B, V) logits, which it changes in place.

        Returns:
            `scores` with +inf at the drawn tokens.

        Raises:
            TrainingStoppedError: they are not numbers.
        """
        tokens_B, logprobs_B = drawn(
            scores,
            self._uniforms_TB[self._length],
            self._sampling,
            self._begins_B if self._length == 0 else None,
        )
        self._note(tokens_B.cpu().numpy(), logprobs_B.cpu().numpy())
        return scores.scatter_(1, tokens_B[:, None], float("inf"))

    def complete(self) -> torch.Tensor:
        """(B,) bool: rows that need no further token."""
        return torch.from_numpy(~self._unfinished_B)

    def keep(self) -> None:
        """Stores drawn tokens on the rows that did not end."""
        for place in np.flatnonzero(self._unfinished_B).tolist():
            self._rows[place].add(*self._drawn(place))

    def _note(self, tokens_B: np.ndarray, logprobs_B: np.ndarray) -> None:
        if not np.isfinite(logprobs_B).all():
            raise not_numbers()
        self._tokens_TB[self._length] = tokens_B
        self._logprobs_TB[self._length] = logprobs_B
        self._length += 1
        ended_B = (tokens_B[:, None] == self._end_ids).any(axis=1)
        if self._stops is not None:
            self._stop(ended_B, self._stops)
        done_B = self._unfinished_B & (ended_B | (self._length == self._room_B))
        self._unfinished_B &= ~done_B
        places = np.flatnonzero(done_B).tolist()
        for place in places:
            self._rows[place].add(*self._drawn(place))
        if places and self._rows[0].id:
            self._on_ended([(self._rows[place], bool(ended_B[place])) for place in places])

    def _stop(self, ended_B: np.ndarray, stops: StopTexts) -> None:
        """Marks open rows whose last token completes a stop text."""
        for place in np.flatnonzero(self._unfinished_B & ~ended_B).tolist():
            drawn_T = self._tokens_TB[: self._length, place]
            if stops.may_end(int(drawn_T[-1])):
                tail = drawn_T[-stops.window :].tolist()
                row = self._rows[place]
                before = [*row.begun, *row.ids] if len(tail) < stops.window else []
                ended_B[place] = stops.complete([*before, *tail])

    def _drawn(self, place: int) -> tuple[list[int], list[float]]:
        whole = slice(0, self._length), place
        return self._tokens_TB[whole].tolist(), self._logprobs_TB[whole].tolist()


class AllComplete(StoppingCriteria):
    """Ends a row when its draws are complete, and all rows when `between` has calls."""

    def __init__(self, draws: HfDraws, between: Sized) -> None:
        self._draws = draws
        self._between = between

    def __call__(
        self, input_ids: torch.Tensor, scores: torch.Tensor | None, **_kwargs: Any
    ) -> torch.Tensor:
        """(B,) bool: rows that end."""
        complete_B = self._draws.complete().to(input_ids.device)
        return torch.ones_like(complete_B) if len(self._between) else complete_B


def left_padded(prompts: Sequence[Sequence[int]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Prompts as input_ids and attention_mask, both (B, longest) int64, padded on the left.

    There must be a prompt, and each must have a token.
    """
    width = max(len(prompt) for prompt in prompts)
    rows = [[pad_id] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    masks = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(rows), torch.tensor(masks)


@contextmanager
def answering(model: Any, settings: GenerationConfig) -> Iterator[None]:
    """Dropout off, and `settings` in place of the model's own, inside the block."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    own = base.generation_config
    training = [module for module in model.modules() if module.training]
    base.generation_config = settings
    model.eval()
    try:
        yield
    finally:
        base.generation_config = own
        for module in training:
            module.training = True


def is_sharded(model: Any) -> bool:
    """Whether FSDP2 shards the model over several processes, which `generate` does not notice."""
    return (
        isinstance(model, FSDPModule)
        and torch.distributed.is_initialized()
        and torch.distributed.get_world_size() > 1
    )


def make_hf(host: EngineHost, config: object) -> HfEngine:
    """Makes the engine."""
    del config
    return HfEngine(host)
