"""Generation by transformers' own `generate`, with sampling that a seed fixes.

What this adds to `generate` is one logits processor, the last of the chain: it draws each row's
token with the row's own random numbers (rollouts.seeded), notes its log-probability, hands a
response over as soon as it is complete, and leaves the drawn token as the only one that greedy
decoding can take.

Differences from TRL 1.16's own path (GRPOTrainer._generate_single_turn):

1. A response depends on the run's seed, the draw and the sample's index, not on its batch.
2. Log-probabilities come with the tokens, so that drift from the trainer's can be measured.
3. Dropout is off while the policy answers.
4. Nothing of the model's own generation settings applies, such as a repetition penalty: responses
   come from the distribution that the trainer computes with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.distributed.fsdp import FSDPModule
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from assay.trainer.engines.continuing import answered, input_ids_of, place_of, room, with_texts
from assay.trainer.engines.seeded import draw, draw_first, not_numbers, uniform_rows
from assay.trainer.engines.types import FirstToken, Request, Response, Tokenizer
from assay.trainer.settings.sections import RolloutConfig

OnFinished = Callable[[int, Response], None]


class HfGenerator:
    """A Generator on `transformers`.

    Where weights are sharded (FSDP, ZeRO-3 without gathering), every process must ask for equally
    many responses at a time; then `generate` keeps their forward passes in step.

    Args:
        model_context: opens the policy for generation: unwrapped, with its weights at hand.
        tokenizer: with a pad token.
        config: temperature, limits, and how many responses at a time.
        seed: of the run.
        end_ids: tokens that end a response.
        autocast: the context in which the policy computes.
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
        autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
        first: FirstToken | None = None,
    ) -> None:
        self._first = first
        self._model_context = model_context
        self._tokenizer = tokenizer
        self._config = config
        self._seed = seed
        self._end_ids = end_ids
        self._autocast = autocast

    def generate(self, requests: Sequence[Request], on_finished: OnFinished) -> list[Response]:
        """One response for each request, in order; see engines.types.Generator.

        Raises:
            TrainingStoppedError: the policy's logits are not numbers.
        """
        size = self._config.batch or len(requests)
        settings = self._settings(self._config.max_new_tokens)
        responses: list[Response] = []
        with (
            self._model_context() as model,
            answering(model, settings),
            torch.no_grad(),
            self._autocast(),
        ):
            for start in range(0, len(requests), size):
                batch = requests[start : start + size]
                responses += self._batch(model, batch, start, on_finished)
        return responses

    def _settings(self, new_tokens: int) -> GenerationConfig:
        return GenerationConfig(
            do_sample=False,
            max_new_tokens=new_tokens,
            pad_token_id=self._tokenizer.pad_token_id,
            eos_token_id=sorted(self._end_ids) or None,
            use_cache=True,
            disable_compile=True,
        )

    def _batch(
        self,
        model: Any,
        requests: Sequence[Request],
        start: int,
        on_finished: OnFinished,
    ) -> list[Response]:
        input_ids, attention_mask = left_padded(
            [input_ids_of(request) for request in requests], self._tokenizer.pad_token_id
        )
        device = model.device
        draws = SeededDraws(
            requests,
            self._config,
            seed=self._seed,
            end_ids=self._end_ids,
            decode=lambda rows: self._tokenizer.batch_decode(rows, skip_special_tokens=True),
            on_finished=lambda place, response: on_finished(start + place, response),
            device=device,
            first=self._first,
        )
        model.generate(
            input_ids=input_ids.to(device),
            attention_mask=attention_mask.to(device),
            generation_config=self._settings(draws.most),
            logits_processor=LogitsProcessorList([draws]),
            stopping_criteria=StoppingCriteriaList([AllComplete(draws)] if draws.uneven else []),
            synced_gpus=True if is_sharded(model) else None,
        )
        return draws.responses()


class SeededDraws(LogitsProcessor):
    """Draws the tokens of one batch and notices which rows are complete.

    Args:
        requests: the batch's rows.
        config: temperature, top_k, top_p, max_new_tokens.
        seed: of the run.
        end_ids: tokens that end a response.
        decode: tokens of several rows to texts.
        on_finished: called once a row with its place in the batch and its response.
        device: where the logits are.
        first: where first tokens come from; None for the policy's own distribution.

    Attributes:
        most: tokens that any row may have drawn now.
        uneven: whether some may have fewer, so that they are complete before the last pass.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        config: RolloutConfig,
        *,
        seed: int,
        end_ids: frozenset[int],
        decode: Callable[[list[list[int]]], list[str]],
        on_finished: OnFinished,
        device: torch.device,
        first: FirstToken | None = None,
    ) -> None:
        self._first = first
        begins = [place_of(request) == 0 for request in requests]
        self._begins_B = torch.tensor(begins, device=device)
        self._room_B = np.array([room(request, config.max_new_tokens) for request in requests])
        self.most = limit = int(self._room_B.max())
        self.uneven = bool((self._room_B < limit).any())
        numbers_BT = uniform_rows(
            seed,
            [(request.draw.number, request.index, request.turn) for request in requests],
            limit,
            firsts=[place_of(request) for request in requests],
        )
        self._uniforms_TB = torch.from_numpy(numbers_BT.T.copy()).to(device)
        self._requests = requests
        self._config = config
        self._end_ids = np.array(sorted(end_ids), dtype=np.int64)
        self._decode = decode
        self._on_finished = on_finished
        self._tokens_TB = np.zeros((limit, len(requests)), dtype=np.int64)
        self._logprobs_TB = np.zeros((limit, len(requests)), dtype=np.float32)
        self._responses: list[Response | None] = [None] * len(requests)
        self._unfinished_B = np.ones(len(requests), dtype=bool)
        self._length = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Draws a token for each row.

        Args:
            input_ids: (B, length so far); not used.
            scores: (B, V) logits, a copy that is ours to change.

        Returns:
            `scores` with +inf at the drawn tokens.

        Raises:
            TrainingStoppedError: they are not numbers.
        """
        numbers_B, first = self._uniforms_TB[self._length], self._first
        tokens_B, logprobs_B = draw(
            scores,
            numbers_B,
            temperature=self._config.temperature,
            top_k=self._config.top_k,
            top_p=self._config.top_p,
        )
        if first is not None and self._length == 0:
            firsts_B, first_logps_B = draw_first(
                scores, numbers_B, temperature=first.temperature, top_k=first.top_k
            )
            tokens_B = torch.where(self._begins_B, firsts_B, tokens_B)
            logprobs_B = torch.where(self._begins_B, first_logps_B, logprobs_B)
        self._note(tokens_B.cpu().numpy(), logprobs_B.cpu().numpy())
        return scores.scatter_(1, tokens_B[:, None], float("inf"))

    def complete(self) -> torch.Tensor:
        """(B,) bool: rows that need no further token."""
        return torch.from_numpy(~self._unfinished_B)

    def responses(self) -> list[Response]:
        """All rows' responses, after `generate` has ended."""
        return [response for response in self._responses if response is not None]

    def _note(self, tokens_B: np.ndarray, logprobs_B: np.ndarray) -> None:
        if not np.isfinite(logprobs_B).all():
            raise not_numbers()
        self._tokens_TB[self._length] = tokens_B
        self._logprobs_TB[self._length] = logprobs_B
        self._length += 1
        ended_B = (tokens_B[:, None] == self._end_ids).any(axis=1)
        done_B = self._unfinished_B & (ended_B | (self._length == self._room_B))
        self._unfinished_B &= ~done_B
        if done_B.any():
            self._finish(np.flatnonzero(done_B), ended_B)

    def _finish(self, rows: NDArray[np.intp], ended_B: NDArray[np.bool_]) -> None:
        tokens = self._tokens_TB[: self._length, rows].T.tolist()
        logprobs = self._logprobs_TB[: self._length, rows].T.tolist()
        ended, limit = ended_B[rows].tolist(), self._config.max_new_tokens
        places = rows.tolist()
        answers = [
            answered(self._requests[row], ids, told, ended=end, max_new_tokens=limit)
            for row, ids, told, end in zip(places, tokens, logprobs, ended, strict=True)
        ]
        for row, response in zip(places, with_texts(answers, self._decode), strict=True):
            self._responses[row] = response
            self._on_finished(row, response)


class AllComplete(StoppingCriteria):
    """Ends a row when its draws are complete, which may be before the batch's limit."""

    def __init__(self, draws: SeededDraws) -> None:
        self._draws = draws

    def __call__(
        self, input_ids: torch.Tensor, scores: torch.Tensor | None, **_kwargs: Any
    ) -> torch.Tensor:
        """(B,) bool."""
        return self._draws.complete().to(input_ids.device)


def left_padded(prompts: Sequence[Sequence[int]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Prompts of any lengths as one batch that ends where the responses begin.

    Args:
        prompts: token ids; at least one prompt, each with at least one token.
        pad_id: fills the left.

    Returns:
        input_ids and attention_mask, both (B, longest prompt) int64.
    """
    width = max(len(prompt) for prompt in prompts)
    rows = [[pad_id] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    masks = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(rows), torch.tensor(masks)


@contextmanager
def answering(model: Any, settings: GenerationConfig) -> Iterator[None]:
    """Dropout off and the model's own generation settings set aside, for as long as this is open.

    Args:
        model: of transformers, or PEFT around one.
        settings: stand in for the model's own.
    """
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
    """FSDP2 over several processes, which `generate` does not notice by itself."""
    return (
        isinstance(model, FSDPModule)
        and torch.distributed.is_initialized()
        and torch.distributed.get_world_size() > 1
    )
