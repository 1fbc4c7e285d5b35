"""Requests, and a random model that answers them, for tests of the generators."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import EngineHost, Sampler
from assay.trainer.engines.types import Draw, Request, Response, Sampling

VOCABULARY = 24
ENDS = frozenset({1, 2})


class NumberTokenizer:
    """Tokens are their numbers in letters; 0 to 2 are special."""

    pad_token_id = 0
    eos_token_id = 1

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        return "".join(chr(94 + i) for i in ids if i > 2 or not skip_special_tokens)

    def batch_decode(
        self, rows: Sequence[Sequence[int]], *, skip_special_tokens: bool
    ) -> list[str]:
        return [self.decode(ids, skip_special_tokens=skip_special_tokens) for ids in rows]


def random_model(
    *, seed: int = 0, dropout: float = 0.0, spread: float = 0.4, **settings: Any
) -> Any:
    """A Llama of two layers with `VOCABULARY` tokens whose distributions are far from even."""
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, head_dim=16, max_position_embeddings=128,
        tie_word_embeddings=False, pad_token_id=0, eos_token_id=1, bos_token_id=None,
        initializer_range=spread, attention_dropout=dropout, **settings,
    )  # fmt: skip
    load: Any = AutoModelForCausalLM.from_config
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    model = load(config)
    torch.set_rng_state(state)
    return model.train()


def make_requests(draws: int = 5, samples: int = 3, first: int = 0) -> list[Request]:
    """Prompts of one to five tokens."""
    return [
        Request(Draw(number, Problem(str(number), "", (), ""), prompt(number)), index)
        for number in range(first, first + draws)
        for index in range(samples)
    ]


def prompt(number: int) -> tuple[int, ...]:
    return tuple(3 + (number * 7 + 5 * n) % (VOCABULARY - 3) for n in range(1 + number % 5))


def opens(model: Any) -> Any:
    """What a generator opens the policy with."""

    def open_model() -> AbstractContextManager[Any]:
        return nullcontext(model)

    return open_model


def sampler(
    kind: Any, model: Any, *, seed: int = 0, end_ids: frozenset[int] = ENDS, **settings: Any
) -> Sampler:
    """An engine of a model, with one way to sample."""
    own = {"autocast", "dtype", "in_step", "version"}
    host = {"autocast": nullcontext, **{k: v for k, v in settings.items() if k in own}}
    sampling = {k: v for k, v in settings.items() if k not in own}
    return Sampler(
        kind(EngineHost(opens(model), NumberTokenizer(), seed, end_ids, **host)),
        Sampling(**{"max_new_tokens": 20, **sampling}),
    )


def ignore(_place: int, _response: Response) -> None:
    """An on_finished."""


@torch.no_grad()
def direct_logps(
    model: Any, request: Request, ids: Sequence[int], *, temperature: float = 1.0
) -> torch.Tensor:
    """(T, V) log-probabilities at each token of a response, by one forward pass without padding."""
    was_training = model.training
    model.eval()
    prompt_ids = request.draw.prompt_ids
    logits = model(input_ids=torch.tensor([[*prompt_ids, *ids]])).logits[0].float()
    model.train(was_training)
    return torch.log_softmax(logits[len(prompt_ids) - 1 : -1] / temperature, dim=-1)
