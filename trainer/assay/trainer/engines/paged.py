"""Generation by transformers' continuous batching: a paged cache, rows that leave when they end.

Read from transformers 5.19 (generation/continuous_batching). Its loop runs in a thread of its own
and delivers responses one by one. Sampling is ours, as in rollouts.hf: a response depends on the
run's seed, the draw and the sample's index, not on what else is in the batch. Two things of the
loop are replaced for that: its list of logits processors, by one that draws, and the model runner's
`_sample`, which would otherwise tell the log-probabilities of a distribution with a single token.

Differences from rollouts.hf:

1. A random number has 32 bits instead of 53, which is what a processor's argument can hold.
2. The loop's thread does not see autocast. Where the policy computes in mixed precision, its
   weights are cast for as long as it answers, all of them; autocast keeps norms in float32.
3. Weights that are sharded over processes are refused: their forward passes could not keep step.

It runs on CPU, for tests, with a cache as large as the requests need: attention reaches over the
pages of all rows there, so that rollouts.hf is faster. On CUDA with flash attention it has not been
run by us.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
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

from assay.rpc.errors import ConfigError
from assay.trainer.engines.continuing import answered, input_ids_of, room, with_texts
from assay.trainer.engines.hf import OnFinished, answering
from assay.trainer.engines.seeded import draw, draw_first, not_numbers, uniform_rows
from assay.trainer.engines.types import FirstToken, Request, Response, Tokenizer
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.sections import RolloutConfig

_POLL_S = 1.0
_CPU_PAGE_TOKENS = 32
_CPU_BATCH_TOKENS = 512


class PagedGenerator:
    """A Generator on continuous batching.

    Args:
        model_context: opens the policy for generation: unwrapped, with its weights at hand.
        tokenizer: with a pad token.
        config: temperature, limits, and how many responses at a time.
        seed: of the run.
        end_ids: tokens that end a response.
        dtype: what to cast the weights to while the policy answers; None leaves them.
        first: where first tokens come from; None for the policy's own distribution.
    """

    def __init__(
        self,
        model_context: Callable[[], AbstractContextManager[Any]],
        tokenizer: Tokenizer,
        config: RolloutConfig,
        *,
        seed: int,
        end_ids: frozenset[int],
        dtype: torch.dtype | None = None,
        first: FirstToken | None = None,
    ) -> None:
        self._first = first
        self._model_context = model_context
        self._tokenizer = tokenizer
        self._config = config
        self._seed = seed
        self._end_ids = end_ids
        self._dtype = dtype

    def generate(self, requests: Sequence[Request], on_finished: OnFinished) -> list[Response]:
        """One response for each request, in order; see engines.types.Generator.

        Raises:
            ConfigError: the weights are sharded over processes.
            TrainingStoppedError: the policy's logits are not numbers, or the loop ended early.
        """
        settings = GenerationConfig(
            do_sample=False,
            max_new_tokens=self._config.max_new_tokens,
            pad_token_id=self._tokenizer.pad_token_id,
            eos_token_id=sorted(self._end_ids) or -1,
        )
        with self._model_context() as opened:
            if isinstance(opened, FSDPModule):
                raise ConfigError(
                    'rollout.backend = "paged" needs all weights on each process, and they are '
                    'sharded; use "hf" or "vllm"'
                )
            with (
                answering(opened, settings),
                cast(opened, self._dtype),
                same_random_state(opened.device),
            ):
                model = opened.get_base_model() if hasattr(opened, "get_base_model") else opened
                return self._answers(model, settings, requests, on_finished)

    def _answers(
        self,
        model: Any,
        settings: GenerationConfig,
        requests: Sequence[Request],
        on_finished: OnFinished,
    ) -> list[Response]:
        draws = PagedDraws(requests, self._config, seed=self._seed, first=self._first)
        responses: dict[int, Response] = {}
        with serving(model, settings, draws, requests, self._config) as manager:
            for place, request in enumerate(requests):
                manager.add_request(
                    list(input_ids_of(request)),
                    request_id=str(place),
                    max_new_tokens=room(request, self._config.max_new_tokens),
                )
            while len(responses) < len(requests):
                output = manager.get_result(timeout=_POLL_S)
                if output is None:
                    _check_running(manager)
                elif output.error is not None:
                    raise _ended_early(output.error)
                else:
                    place = int(output.request_id)
                    responses[place] = self._response(requests[place], output)
                    on_finished(place, responses[place])
        return [responses[place] for place in range(len(requests))]

    def _response(self, request: Request, output: Any) -> Response:
        ids, logprobs = output.generated_tokens, output.logprobs
        if not all(map(math.isfinite, logprobs)):
            raise not_numbers()
        response = answered(
            request,
            ids,
            logprobs,
            ended=ids[-1] in self._end_ids,
            max_new_tokens=self._config.max_new_tokens,
        )
        [response] = with_texts(
            [response],
            lambda rows: [self._tokenizer.decode(row, skip_special_tokens=True) for row in rows],
        )
        return response


class PagedDraws(ContinuousBatchingLogitsProcessor):
    """Draws the next token of every row of a step, whichever rows those are.

    Args:
        requests: rows have their place in here, as text, for a name.
        config: temperature, top_k, top_p, max_new_tokens.
        seed: of the run.
        first: where first tokens come from; None for the policy's own distribution.
    """

    supported_kwargs: ClassVar[dict[str, type]] = {}  # type: ignore[misc]
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]

    def __init__(
        self,
        requests: Sequence[Request],
        config: RolloutConfig,
        *,
        seed: int,
        first: FirstToken | None = None,
    ) -> None:
        self._config = config
        self._first = first
        numbers_BT = uniform_rows(
            seed, [(r.draw.number, r.index, r.turn) for r in requests], config.max_new_tokens
        )
        self._words = {str(place): words_T for place, words_T in enumerate(_words(numbers_BT))}
        self._prompt_sizes = {str(p): len(r.draw.prompt_ids) for p, r in enumerate(requests)}
        self.firsts = FirstTokens(self) if first is not None else None

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Numbers for rows that only pad a step."""
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """The random number of each row's next token, by its position in the response."""
        words = [self._word(future.state) for future in requests_with_new_token]
        return torch.tensor(words, dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: torch.Tensor) -> Any:
        """Draws; what it drew is for `sample`, and `scores` are left as they are."""
        words_B = tensor_arg[: scores.shape[0]].long() & 0xFFFFFFFF
        numbers_B = (words_B.double() + 0.5) * 2.0**-32
        self._drawn = draw(
            scores,
            numbers_B,
            temperature=self._config.temperature,
            top_k=self._config.top_k,
            top_p=self._config.top_p,
        )
        if self.firsts is not None and self._first is not None:
            first_B = self.firsts.flags_B[: scores.shape[0]] > 0
            first = self._first
            fired = draw_first(scores, numbers_B, temperature=first.temperature, top_k=first.top_k)
            tokens_B, logprobs_B = self._drawn
            self._drawn = (
                torch.where(first_B, fired[0], tokens_B),
                torch.where(first_B, fired[1], logprobs_B),
            )
        return scores

    def sample(self, _scores: torch.Tensor, output_ids: torch.Tensor) -> None:
        """Stands in for the model runner's `_sample`: tokens, and the bits of log-probabilities."""
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

    def position(self, state: Any) -> int:
        """The place in its response of a row's next token; -1 for the loop's own rows."""
        size = self._prompt_sizes.get(state.request_id)
        return -1 if size is None else int(state.position_offset - size)


class FirstTokens(ContinuousBatchingLogitsProcessor):
    """Says which rows of a step draw the first token of their response; stands before the draws."""

    supported_kwargs: ClassVar[dict[str, type]] = {}  # type: ignore[misc]
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]

    def __init__(self, draws: PagedDraws) -> None:
        self._position = draws.position
        self.flags_B = torch.zeros(0, dtype=torch.int32)

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Rows that only pad a step are no first ones."""
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """1 for rows whose next token is the first of their response."""
        flags = [int(self._position(future.state) == 0) for future in requests_with_new_token]
        return torch.tensor(flags, dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: torch.Tensor) -> Any:
        """Notes the flags for the draws of the same step."""
        self.flags_B = tensor_arg
        return scores


def _words(numbers: np.ndarray) -> np.ndarray:
    """The upper 32 bits of numbers in [0, 1), as the int32 that has these bits."""
    return (numbers * 2.0**32).astype(np.uint32).view(np.int32)


@contextmanager
def serving(
    model: Any,
    settings: GenerationConfig,
    draws: PagedDraws,
    requests: Sequence[Request],
    config: RolloutConfig,
) -> Iterator[Any]:
    """A running ContinuousBatchingManager that draws as told, stopped when this is left."""
    hints = WorkloadHints(
        max_prompt_length=max(len(input_ids_of(r)) for r in requests),
        max_generated_length=config.max_new_tokens,
        num_requests=config.batch or len(requests),
    )
    manager = model.init_continuous_batching(
        generation_config=settings,
        continuous_batching_config=cache_config(model.device, requests, config),
        workload_hints=hints,
    )
    processors = [draws] if draws.firsts is None else [draws.firsts, draws]
    ours = ContinuousBatchingLogitsProcessorList(LogitsProcessorList(processors))
    ours.tensors_required = len(processors)
    manager.logit_processor = ours
    try:
        manager.batch_processor = manager._create_batch_processor()  # noqa: SLF001
        manager.batch_processor.model_runner._sample = draws.sample  # noqa: SLF001
        manager.warmup()
        manager.start()
        yield manager
    finally:
        manager.stop(block=True, hard_stop=True)
        manager.destroy()


def cache_config(
    device: torch.device, requests: Sequence[Request], config: RolloutConfig
) -> ContinuousBatchingConfig:
    """Sizes of the cache: on CUDA what transformers makes of the free memory, else what suffices.

    Without this, a cache on CPU takes most of the machine's memory.
    """
    common: dict[str, Any] = {"return_logprobs": True, "seed": 0, "scheduler_type": "fifo"}
    if config.batch:
        common["max_requests_per_batch"] = config.batch
    if device.type == "cuda":
        return ContinuousBatchingConfig(**common)
    pages = sum(
        math.ceil((len(r.draw.prompt_ids) + config.max_new_tokens) / _CPU_PAGE_TOKENS) + 1
        for r in requests
    )
    return ContinuousBatchingConfig(
        page_size=_CPU_PAGE_TOKENS,
        num_blocks=pages,
        max_batch_tokens=max(_CPU_BATCH_TOKENS, len(requests)),
        **common,
    )


@contextmanager
def cast(model: Any, dtype: torch.dtype | None) -> Iterator[None]:
    """The model's weights in another precision, the very same ones afterwards."""
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
    """The random state as it was: the loop seeds it for a sampler that is not used here."""
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
