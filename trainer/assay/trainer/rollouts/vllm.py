"""Generation by vLLM through TRL's machinery, in this process (colocate) or on a server.

Read from TRL 1.16 (GRPOTrainer._generate_single_turn, generation/vllm_generation.py). TRL syncs the
weights when the trainer's global step has moved since the last time, and with LoRA it merges the
adapters into the weights that it sends. vLLM answers a whole call at once, so responses finish
together; `rollout.batch` splits a round, so that what is there can be judged meanwhile, at the
price of a tail that does not fill the engine for each part.

Different from rollouts.hf:

1. Responses come from vLLM's own random stream: they depend on their batch, and a resumed run
   answers differently. A seed per response would need settings per request, which TRL has not.
2. Colocated, vLLM tells log-probabilities after temperature, top-k and top-p. With top-k or top-p
   these are not the trainer's, so none are passed on; then drift is not measured. A server does
   the same if it was started with `--logprobs-mode processed_logprobs`, and must be where
   rollout.temperature is not 1.
3. A server keeps processes in step: each must ask for equally many responses at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from assay.trainer.config import RolloutConfig
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.rollouts.hf import OnFinished
from assay.trainer.rollouts.types import Request, Response, Tokenizer

SingleTurn = Callable[
    [list[list[int]], int], tuple[list[list[int]], list[list[float | None]] | None]
]
"""Prompts, of which so many in a row are the same, to tokens and log-probabilities."""


class VllmGenerator:
    """A Generator on TRL's vLLM modes.

    Args:
        single_turn: `lambda prompts, repeats: trainer._generate_single_turn(prompts, None, {},
            repeats)` of a trainer with use_vllm.
        tokenizer: of the policy.
        config: group size, and how many responses at a time. Temperature and limits are TRL's.
        end_ids: tokens that end a response.
    """

    def __init__(
        self,
        single_turn: SingleTurn,
        tokenizer: Tokenizer,
        config: RolloutConfig,
        *,
        end_ids: frozenset[int],
    ) -> None:
        self._single_turn = single_turn
        self._tokenizer = tokenizer
        self._config = config
        self._end_ids = end_ids

    def generate(self, requests: Sequence[Request], on_finished: OnFinished) -> list[Response]:
        """One response for each request, in order; see rollouts.types.Generator.

        Raises:
            TrainingStoppedError: vLLM did not answer each request.
        """
        group = self._config.group_size
        # parts hold whole groups, of which a server reads the prompt once
        size = math.ceil(self._config.batch / group) * group or len(requests)
        responses: list[Response] = []
        for start in range(0, len(requests), size):
            part = requests[start : start + size]
            for place, response in enumerate(self._answers(part), start):
                responses.append(response)
                on_finished(place, response)
        return responses

    def _answers(self, requests: Sequence[Request]) -> Iterator[Response]:
        prompts = [list(request.draw.prompt_ids) for request in requests]
        ids_BT, logprobs_BT = self._single_turn(prompts, repeats(requests, self._config.group_size))
        if len(ids_BT) != len(requests) or not all(ids_BT):
            raise TrainingStoppedError(
                f"vLLM answered {sum(map(bool, ids_BT))} of {len(requests)} prompts; see its log"
            )
        filtered = self._config.top_k > 0 or self._config.top_p < 1
        told_BT = [None] * len(ids_BT) if filtered or logprobs_BT is None else logprobs_BT
        for ids, told in zip(ids_BT, told_BT, strict=True):
            yield Response(
                ids=tuple(ids),
                text=self._tokenizer.decode(ids, skip_special_tokens=True),
                logprobs=None
                if told is None
                else tuple(math.nan if value is None else value for value in told),
                truncated=ids[-1] not in self._end_ids,
            )


def repeats(requests: Sequence[Request], group_size: int) -> int:
    """`group_size` where every so many requests in a row share their draw, else 1.

    TRL's server mode reads one prompt of so many in a row and answers it that many times.
    """
    if len(requests) % group_size:
        return 1
    starts = range(0, len(requests), group_size)
    whole = all(
        len({request.draw.number for request in requests[start : start + group_size]}) == 1
        for start in starts
    )
    return group_size if whole else 1


def keep_base_weights(vllm_generation: Any) -> None:
    """Makes TRL's weight sync leave a PEFT model exactly as it was.

    To send merged weights, TRL adds the adapters to the base weights and takes them off again,
    which rounds: by 2^-9 of a weight each time in bfloat16, and it adds up over a run.

    Args:
        vllm_generation: the VLLMGeneration of a trainer; its `sync_weights` is replaced.
    """
    sync = vllm_generation.sync_weights

    def exact_sync() -> None:
        with base_weights_kept(vllm_generation.model):
            sync()

    vllm_generation.sync_weights = exact_sync


@contextmanager
def base_weights_kept(model: Any) -> Iterator[None]:
    """The base weights that adapters are merged into, as they were when this is left.

    Args:
        model: of PEFT; any other is left alone.
    """
    kept = [
        (parameter, parameter.data.clone())
        for name, parameter in model.named_parameters()
        if ".base_layer." in name
    ]
    try:
        yield
    finally:
        for parameter, data in kept:
            if parameter.data.shape == data.shape:  # else gathered for the sync, and now sharded
                parameter.data.copy_(data)
