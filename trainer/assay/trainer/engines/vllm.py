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
4. FIRE takes two calls, since TRL has one temperature for all tokens of a response and vLLM none
   above 2: the first asks for the likeliest tokens of each prompt, of which one is drawn here as
   rollouts.hf draws it; the second goes on behind it. How many go on differs between processes,
   which neither a server nor an engine over several GPUs would survive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from assay.trainer.engines.seeded import draw_first, uniform_rows
from assay.trainer.engines.types import FirstToken, OnFinished, Request, Response, Tokenizer
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.sections import RolloutConfig

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
        config: group size, how many responses at a time. Temperature and limits are TRL's.
        end_ids: tokens that end a response.
        engine: the trainer's VLLMGeneration, whose settings are exchanged for first tokens; None
            without `first`.
        seed: of the run, for first tokens.
        first: where first tokens come from; None for the policy's own distribution.
    """

    def __init__(
        self,
        single_turn: SingleTurn,
        tokenizer: Tokenizer,
        config: RolloutConfig,
        *,
        end_ids: frozenset[int],
        engine: Any = None,
        seed: int = 0,
        first: FirstToken | None = None,
    ) -> None:
        if first is not None and engine is None:
            raise ValueError("first tokens need the engine whose settings they exchange")
        self._first = first
        self._single_turn = single_turn
        self._tokenizer = tokenizer
        self._config = config
        self._end_ids = end_ids
        self._engine = engine
        self._seed = seed

    def generate(self, requests: Sequence[Request], on_finished: OnFinished) -> list[Response]:
        """One response for each request, in order; see engines.types.Generator.

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
        if self._first is not None:
            ids_BT, told_BT = self._fired(requests, self._first)
        else:
            prompts = [list(request.draw.prompt_ids) for request in requests]
            ids_BT, told_BT = self._asked(prompts, repeats(requests, self._config.group_size))
        for ids, told in zip(ids_BT, told_BT, strict=True):
            yield Response(
                ids=tuple(ids),
                text=self._tokenizer.decode(ids, skip_special_tokens=True),
                logprobs=None if told is None else tuple(told),
                truncated=ids[-1] not in self._end_ids,
            )

    def _asked(
        self, prompts: list[list[int]], times: int
    ) -> tuple[list[list[int]], list[list[float] | None]]:
        """Tokens and log-probabilities, where those are the trainer's; NaN for what is not told."""
        ids_BT, told_BT = self._single_turn(prompts, times)
        _check_answered(ids_BT, len(prompts))
        if self._config.top_k > 0 or self._config.top_p < 1 or told_BT is None:
            return ids_BT, [None] * len(ids_BT)
        return ids_BT, [
            [math.nan if value is None else value for value in told] for told in told_BT
        ]

    def _fired(
        self, requests: Sequence[Request], first: FirstToken
    ) -> tuple[list[list[int]], list[list[float] | None]]:
        """Tokens and log-probabilities, of first tokens in FIRE's distribution."""
        firsts_B, first_logps_B = self._firsts(requests, first)
        ids_BT = [[first] for first in firsts_B]
        told_BT: list[list[float] | None] = [[logp] for logp in first_logps_B]
        left = self._config.max_new_tokens - 1
        going = [n for n, first in enumerate(firsts_B) if left and first not in self._end_ids]
        if going:
            prompts = [[*requests[n].draw.prompt_ids, firsts_B[n]] for n in going]
            with exchanged(self._engine, max_completion_length=left):
                rest_BT, rest_told_BT = self._asked(prompts, 1)
            for n, rest, rest_told in zip(going, rest_BT, rest_told_BT, strict=True):
                ids_BT[n] += rest
                told_BT[n] = [first_logps_B[n], *(rest_told or [math.nan] * len(rest))]
        return ids_BT, told_BT

    def _firsts(
        self, requests: Sequence[Request], first: FirstToken
    ) -> tuple[list[int], list[float]]:
        """A first token for each request, and the log-probability that it was drawn with."""
        prompts = {request.draw.number: list(request.draw.prompt_ids) for request in requests}
        likeliest = self._likeliest(list(prompts.values()), first.top_k)
        heads = dict(zip(prompts, likeliest, strict=True))
        rows = [heads[request.draw.number] for request in requests]
        logps_BK = torch.tensor([[logp for _, logp in row] for row in rows])
        numbers_B1 = uniform_rows(self._seed, [(r.draw.number, r.index) for r in requests], 1)
        chosen_B, drawn_B = draw_first(
            logps_BK,
            torch.from_numpy(numbers_B1[:, 0].copy()),
            temperature=first.temperature,
            top_k=first.top_k,
        )
        ids = [row[place][0] for row, place in zip(rows, chosen_B.tolist(), strict=True)]
        return ids, drawn_B.tolist()

    def _likeliest(self, prompts: list[list[int]], count: int) -> list[list[tuple[int, float]]]:
        """The top_k likeliest first tokens of each prompt by id, with their log-probabilities."""
        engine, answers = self._engine, []
        generate = engine.generate

        def heard(*args: Any, **settings: Any) -> Any:
            answers.append(generate(*args, **settings))
            return answers[-1]

        with exchanged(
            engine,
            generate=heard,
            logprobs=count,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_completion_length=1,
        ):
            self._single_turn(prompts, 1)
        [(_, _, logps_BTK, ids_BTK)] = answers
        _check_answered(ids_BTK, len(prompts))
        found = []
        for (ids_K, *_), (logps_K, *_) in zip(ids_BTK, logps_BTK, strict=True):
            # the token that vLLM drew is told too, likely or not
            likely = sorted(zip(ids_K, logps_K, strict=True), key=lambda one: -one[1])[:count]
            found.append(sorted(likely))
        return found


def _check_answered(answers: Sequence[Sequence[object]], asked: int) -> None:
    """Raises TrainingStoppedError where not every prompt has an answer with tokens."""
    if len(answers) != asked or not all(answers):
        raise TrainingStoppedError(
            f"vLLM answered {sum(map(bool, answers))} of {asked} prompts; see its log"
        )


@contextmanager
def exchanged(engine: Any, **settings: Any) -> Iterator[None]:
    """Other settings of TRL's VLLMGeneration, which reads them at each call, until this is left."""
    kept = {name: getattr(engine, name) for name in settings}
    try:
        for name, value in settings.items():
            setattr(engine, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(engine, name, value)


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


def make_vllm(host: Any, config: Any) -> Any:
    """Being built."""
    raise NotImplementedError
