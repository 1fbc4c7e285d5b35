"""Generation by transformers' continuous batching: a paged cache, rows that leave when they end.

Read from transformers 5.19 (generation/continuous_batching). Its loop runs in a thread of its own
and delivers responses one by one. A response depends on the run's seed, the draw and the sample's
index, whatever the batch. Two things of the loop are replaced for that: its list of logits
processors, by one that draws, and the model runner's `_sample`, which would otherwise give the
log-probabilities of a distribution with a single token.

Differences from engines.hf:

1. A random number has 32 bits instead of 53, the size of a processor's argument.
2. The loop's thread does not see autocast. Where the policy computes in mixed precision, all its
   weights are cast while it answers; autocast keeps norms in float32.
3. Weights that are sharded over processes are refused: their forward passes could not keep step.

On CPU, for tests, its cache is as large as the requests need, and engines.hf is faster, since
attention reaches over the pages of all rows. We have not run it on CUDA with flash attention.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from torch.distributed.fsdp import FSDPModule
from transformers import ContinuousBatchingConfig, GenerationConfig, LogitsProcessorList
from transformers.generation.continuous_batching.cb_logits_processors import (
    ContinuousBatchingLogitsProcessor,
    ContinuousBatchingLogitsProcessorList,
)
from transformers.generation.continuous_batching.utils import WorkloadHints

from assay.kit.errors import ConfigError
from assay.trainer.engines.engine import Engine, EngineHost, Id, OnEnded, OpenRequest
from assay.trainer.engines.hf import answering
from assay.trainer.engines.seeded import drawn, not_numbers, uniform_rows
from assay.trainer.engines.stops import StopTexts, is_stopped, stop_texts
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.errors import TrainingStoppedError

_POLL_S = 0.1
_CPU_PAGE_TOKENS = 32
_CPU_BATCH_TOKENS = 512


class PagedEngine(Engine):
    """An Engine on continuous batching.

    The loop runs, and holds its cache, while requests of one sampling are open that fit in it.
    Tokens are known when a response ends: an aborted one is returned as it was submitted.

    Raises, out of `poll`:
        ConfigError: the weights are sharded over processes.
        TrainingStoppedError: the policy's logits are not numbers, or the loop ended early.
    """

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        self._loop: _Loop | None = None
        self.preemptions = 0
        self._version = host.version()

    def submit(self, id_: Id, request: Request, sampling: Sampling) -> None:
        """See Engine."""
        super().submit(id_, request, sampling)
        if self._loop is not None and self._loop.fits(self._open[id_]):
            self._loop.add(self._open[id_])

    def update_weights(self) -> None:
        """See Engine: the loop restarts, and so do the responses in it."""
        if self.host.version() != self._version:
            self._close_loop()
            self._version = self.host.version()

    def abort(self, ids: Iterable[Id] | None = None) -> dict[Id, Response]:
        """See Engine."""
        gone = super().abort(ids)
        if self._loop is not None:
            self._loop.cancel(gone)
        self._close_idle_loop()
        return gone

    def _draw(self, on_ended: OnEnded) -> None:
        if not self._open:
            return
        if self._loop is None:
            self._loop = self._new_loop()
        ended: list[tuple[OpenRequest, bool]] = []
        while not ended and not self._between:
            ended = self._loop.ended()
        self._end(ended, on_ended)
        self._close_idle_loop()

    def _new_loop(self) -> _Loop:
        sampling = next(iter(self._open.values())).sampling
        rows = [row for row in self._open.values() if row.sampling == sampling]
        return _Loop(self.host, sampling, rows, self._preempted)

    def _preempted(self, count: int) -> None:
        self.preemptions = (self.preemptions or 0) + count

    def _close_idle_loop(self) -> None:
        if self._loop is not None and not self._loop.rows:
            self._close_loop()

    def _close_loop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()


class _Loop:
    """Running continuous batching of one sampling.

    `preempted` is called in the loop's thread with the number of rows that lost their place in the
    cache.
    """

    def __init__(
        self,
        host: EngineHost,
        sampling: Sampling,
        rows: Sequence[OpenRequest],
        preempted: Callable[[int], None],
    ) -> None:
        self._host = host
        self._sampling = sampling
        self.rows: dict[str, OpenRequest] = {}
        self._cancelled: set[str] = set()
        self._numbers = itertools.count()
        self._draws = PagedDraws(sampling, seed=host.seed, stops=stop_texts(host, sampling))
        settings = GenerationConfig(
            do_sample=False,
            max_new_tokens=sampling.max_new_tokens,
            pad_token_id=host.tokenizer.pad_token_id,
            eos_token_id=sorted(host.end_ids) or -1,
        )
        self._stack = ExitStack()
        with ExitStack() as stack:  # closed at once where one of these fails
            opened = stack.enter_context(host.model_context())
            if isinstance(opened, FSDPModule):
                raise ConfigError(
                    'rollout.backend = "paged" needs all weights on each process, and they are '
                    'sharded; use "hf" or "vllm"'
                )
            stack.enter_context(torch.no_grad())
            stack.enter_context(answering(opened, settings))
            stack.enter_context(cast(opened, host.dtype))
            stack.enter_context(same_random_state(opened.device))
            model = opened.get_base_model() if hasattr(opened, "get_base_model") else opened
            cache = cache_config(model.device, rows)
            self._tokens = None if cache.num_blocks is None else cache.num_blocks * cache.page_size
            self._manager = stack.enter_context(
                serving(model, settings, cache, self._draws, _hints(rows), preempted=preempted)
            )
            self._stack = stack.pop_all()
        for row in rows:
            self.add(row)

    def fits(self, row: OpenRequest) -> bool:
        return row.sampling == self._sampling and (
            self._tokens is None or len(row.input_ids) + row.room < self._tokens
        )

    def add(self, row: OpenRequest) -> None:
        name = str(next(self._numbers))
        self._draws.add(name, row)
        self.rows[name] = row
        self._manager.add_request(list(row.input_ids), request_id=name, max_new_tokens=row.room)

    def cancel(self, ids: Collection[Id]) -> None:
        for name in [name for name, row in self.rows.items() if row.id in ids]:
            del self.rows[name]
            self._cancelled.add(name)
            self._manager.cancel_request(name)

    def ended(self) -> list[tuple[OpenRequest, bool]]:
        """Rows that ended by now, with whether their last token ended them; waits a little."""
        output = self._manager.get_result(timeout=_POLL_S)
        if output is None:
            _check_running(self._manager)
            return []
        if output.request_id in self._cancelled:
            return []
        if output.error is not None:
            raise _ended_early(output.error)
        ids, logprobs = output.generated_tokens, output.logprobs
        if not all(map(math.isfinite, logprobs)):
            raise not_numbers()
        row = self.rows.pop(output.request_id)
        row.add(ids, logprobs)
        return [(row, ids[-1] in self._host.end_ids or is_stopped(self._host, row))]

    def close(self) -> None:
        self._stack.close()


class PagedDraws(ContinuousBatchingLogitsProcessor):
    """Draws the next token of every row of a step.

    Args:
        sampling: of all rows.
        seed: of the run.
        stops: texts that end a row; None for none.
    """

    supported_kwargs: ClassVar[dict[str, type]] = {}  # type: ignore[misc]
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]

    def __init__(self, sampling: Sampling, *, seed: int, stops: StopTexts | None = None) -> None:
        self._sampling = sampling
        self._stops = stops
        self._seed = seed
        self._words: dict[str, np.ndarray] = {}
        self._prompt_sizes: dict[str, int] = {}
        self.firsts = FirstTokens(self) if sampling.first is not None else None

    def add(self, name: str, row: OpenRequest) -> None:
        """Registers a row; call it before the loop's own `add`."""
        count = self._sampling.max_new_tokens
        self._prompt_sizes[name] = len(row.request.draw.prompt_ids)
        self._words[name] = _words(uniform_rows(self._seed, [row.seed_place], count))[0]

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Numbers for rows that only pad a step."""
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """The random number of each row's next token, by its position in the response."""
        if self._stops is not None:
            for future in requests_with_new_token:
                self._watch(future.state, self._stops)
        words = [self._word(future.state) for future in requests_with_new_token]
        return torch.tensor(words, dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: torch.Tensor) -> Any:
        """Draws for `sample`; `scores` stay as they are."""
        words_B = tensor_arg[: scores.shape[0]].long() & 0xFFFFFFFF
        numbers_B = (words_B.double() + 0.5) * 2.0**-32
        first_B = None if self.firsts is None else self.firsts.flags_B[: scores.shape[0]] > 0
        self._drawn = drawn(scores, numbers_B, self._sampling, first_B)
        return scores

    def sample(self, _scores: torch.Tensor, output_ids: torch.Tensor) -> None:
        """Replaces the model runner's `_sample`: tokens, and the bits of log-probabilities."""
        tokens_B, logprobs_B = self._drawn
        output_ids[0, : tokens_B.shape[0]].copy_(tokens_B)
        output_ids[1, : tokens_B.shape[0]].copy_(logprobs_B.view(torch.int32))

    def _word(self, state: Any) -> int:
        # position_offset already counts what this step reads, also after an eviction, when the
        # response so far is read again as if it were part of the prompt
        words = self._words.get(state.request_id)
        if words is None:  # the loop's own, to warm up
            return 0
        # a step that the loop prepared before it knew that the row had ended
        return int(words[min(self.position(state), len(words) - 1)])

    def _watch(self, state: Any, stops: StopTexts) -> None:
        """Has the loop end a row behind a stop text as behind a token that ends it."""
        size = self._prompt_sizes.get(state.request_id)
        if size is not None and not isinstance(state._eos_token_ids, _Ends):  # noqa: SLF001
            state._eos_token_ids = _Ends(state, size, stops)  # noqa: SLF001

    def position(self, state: Any) -> int:
        """The place of a row's next token in its response; -1 for the loop's own rows."""
        size = self._prompt_sizes.get(state.request_id)
        return -1 if size is None else int(state.position_offset - size)


class _Ends(frozenset[int]):
    """The tokens that end a row at present: those that always do, and who completes a stop text.

    Args:
        state: of the row, whose tokens of before an eviction are in its initial ones.
        size: of the prompt.
        stops: texts that end it.
    """

    def __new__(cls, state: Any, _size: int, _stops: StopTexts) -> _Ends:
        return super().__new__(cls, state._eos_token_ids)  # noqa: SLF001

    def __init__(self, state: Any, size: int, stops: StopTexts) -> None:
        self._state, self._size, self._stops = state, size, stops

    def __contains__(self, token: object) -> bool:
        if super().__contains__(token) or not isinstance(token, int):
            return super().__contains__(token)
        if not self._stops.may_end(token):
            return False
        state = self._state
        before = state.generated_tokens[-self._stops.window :]
        if len(before) < self._stops.window:
            before = [*state.initial_tokens[self._size :], *before]
        return self._stops.complete([*before, token])


class FirstTokens(ContinuousBatchingLogitsProcessor):
    """Marks rows that draw the first token of their response; stands before the draws."""

    supported_kwargs: ClassVar[dict[str, type]] = {}  # type: ignore[misc]
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]

    def __init__(self, draws: PagedDraws) -> None:
        self._position = draws.position
        self.flags_B = torch.zeros(0, dtype=torch.int32)

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Marks rows that only pad a step as no first ones."""
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """1 for rows whose next token is the first of their response."""
        flags = [int(self._position(future.state) == 0) for future in requests_with_new_token]
        return torch.tensor(flags, dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: torch.Tensor) -> Any:
        """Keeps the flags for the draws of the same step."""
        self.flags_B = tensor_arg
        return scores


def _words(numbers: np.ndarray) -> np.ndarray:
    """The upper 32 bits of numbers in [0, 1), as an int32 of these bits."""
    return (numbers * 2.0**32).astype(np.uint32).view(np.int32)


@contextmanager
def serving(
    model: Any,
    settings: GenerationConfig,
    cache: ContinuousBatchingConfig,
    draws: PagedDraws,
    hints: WorkloadHints,
    *,
    preempted: Callable[[int], None],
) -> Iterator[Any]:
    """A running ContinuousBatchingManager with our draws, stopped at the end of the block.

    `preempted` is called with the number of rows that lost their place in the cache.
    """
    manager = model.init_continuous_batching(
        generation_config=settings, continuous_batching_config=cache, workload_hints=hints
    )
    processors = [draws] if draws.firsts is None else [draws.firsts, draws]
    ours = ContinuousBatchingLogitsProcessorList(LogitsProcessorList(processors))
    ours.tensors_required = len(processors)
    manager.logit_processor = ours
    try:
        manager.batch_processor = manager._create_batch_processor()  # noqa: SLF001
        manager.batch_processor.model_runner._sample = draws.sample  # noqa: SLF001
        count_preemptions(manager.batch_processor.offloading_manager, preempted)
        manager.warmup()
        manager.start()
        yield manager
    finally:
        manager.stop(block=True, hard_stop=True)
        manager.destroy()


def count_preemptions(offloading: Any, preempted: Callable[[int], None]) -> None:
    """Has `preempted` called with the number of rows each time that the loop evicts some."""
    offload = offloading.offload_requests

    def counted() -> bool:
        before = len(offloading.scheduler.active_requests)
        done: bool = offload()
        if gone := before - len(offloading.scheduler.active_requests):
            preempted(gone)
        return done

    offloading.offload_requests = counted


def _hints(rows: Sequence[OpenRequest]) -> WorkloadHints:
    return WorkloadHints(
        max_prompt_length=max(len(row.input_ids) for row in rows),
        max_generated_length=rows[0].sampling.max_new_tokens,
        num_requests=rows[0].sampling.rows or len(rows),
    )


def cache_config(device: torch.device, rows: Sequence[OpenRequest]) -> ContinuousBatchingConfig:
    """Sizes of the cache: on CUDA transformers' choice by free memory, else what suffices.

    Without this, a cache on CPU takes most of the machine's memory.
    """
    common: dict[str, Any] = {"return_logprobs": True, "seed": 0, "scheduler_type": "fifo"}
    if rows[0].sampling.rows:
        common["max_requests_per_batch"] = rows[0].sampling.rows
    if device.type == "cuda":
        return ContinuousBatchingConfig(**common)
    return ContinuousBatchingConfig(
        page_size=_CPU_PAGE_TOKENS,
        num_blocks=sum(map(_size, rows)),
        max_batch_tokens=max(_CPU_BATCH_TOKENS, len(rows)),
        **common,
    )


def _size(row: OpenRequest) -> int:
    return math.ceil((len(row.input_ids) + row.room) / _CPU_PAGE_TOKENS) + 1


@contextmanager
def cast(model: Any, dtype: torch.dtype | None) -> Iterator[None]:
    """The model's weights in another precision; the original tensors return at the end."""
    kept = [] if dtype is None else [(p, p.data) for p in model.parameters()]
    try:
        for parameter, data in kept:
            parameter.data = data.to(dtype)
        yield
    finally:
        for parameter, data in kept:
            parameter.data = data


@contextmanager
def same_random_state(device: torch.device) -> Iterator[None]:
    """Restores the random state, which the loop seeds for its own sampler."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


def _check_running(manager: Any) -> None:
    if not manager.is_running():
        raise _ended_early(manager.background_thread_status.fatal_error)


def _ended_early(error: object) -> TrainingStoppedError:
    return TrainingStoppedError(
        f"transformers' continuous batching ended early: {error}; lower rollout.batch, or use "
        'rollout.backend = "hf"'
    )


def make_paged(host: EngineHost, config: object) -> PagedEngine:
    """Makes the engine."""
    del config
    return PagedEngine(host)
