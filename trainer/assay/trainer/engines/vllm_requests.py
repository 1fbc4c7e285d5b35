"""What vLLM is asked, in this process or on a server, and whether it can be."""

from __future__ import annotations

from typing import Any

from assay.kit.errors import ConfigError
from assay.trainer.engines.engine import EngineHost, OpenRequest
from assay.trainer.engines.seeded import uniform_rows

EXTRA = "assay"
"""Under this name a request's `extra_args` hold what engines.vllm_draws needs."""
PROCESSOR = "assay.trainer.engines.vllm_draws:SeededDraws"


def logprobs_mode(*, own_draws: bool) -> str:
    """The setting of that name: what it tells must be of what was drawn from."""
    return "processed_logits" if own_draws else "processed_logprobs"


def parameters(row: OpenRequest, host: EngineHost, *, own_draws: bool) -> dict[str, Any]:
    """What vLLM's SamplingParams are made of, as JSON can hold it.

    Args:
        row: to be drawn.
        host: seed of the run, and the tokens that end a response.
        own_draws: by engines.seeded; else by vLLM with a seed, which follows from the run's seed,
            the row's place and the tokens that the response has: with one seed again, vLLM would
            draw with the same noise again.
    """
    sampling = row.sampling
    common: dict[str, Any] = {
        "max_tokens": row.room,
        "stop_token_ids": sorted(host.end_ids),
        "ignore_eos": True,
        "detokenize": False,
    }
    if own_draws:
        first = sampling.first
        asked = {
            "seed": str(host.seed),  # may have more than 64 bits
            "place": list(row.seed_place),
            "position": row.position,
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "first": None if first is None else [first.temperature, first.top_k],
        }
        return {**common, "temperature": 0.0, "logprobs": 0, "extra_args": {EXTRA: asked}}
    number = uniform_rows(host.seed, [row.seed_place], 1, firsts=[row.position])[0, 0]
    return {
        **common,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "seed": int(number * 2.0**53),
        "logprobs": None if sampling.filters else 0,
    }


def check(row: OpenRequest, *, vocabulary: int, context: int, own_draws: bool) -> None:
    """Whether vLLM can be asked for a row; what it would not notice itself is refused here.

    Args:
        row: about to be asked.
        vocabulary: tokens of the model.
        context: most tokens of a prompt and its response.
        own_draws: see `parameters`.

    Raises:
        ValueError: its prompt holds ids that are no tokens of the model: vLLM would die of it.
        ConfigError: it does not fit: vLLM would cut it, and the policy be blamed for it; or it
            wants draws that vLLM itself cannot make.
    """
    ids = row.input_ids
    if min(ids) < 0 or max(ids) >= vocabulary:
        wrong = min(ids) if min(ids) < 0 else max(ids)
        raise ValueError(
            f"request {row.id} holds token {wrong}, and the model has tokens 0 to "
            f"{vocabulary - 1}; its tokenizer belongs to another model"
        )
    if len(ids) + row.room > context:
        raise ConfigError(
            f"a prompt of {len(ids)} tokens and {row.room} more do not fit into the {context} that "
            "vLLM has; raise rollout.vllm.max_model_length or lower rollout.max_new_tokens"
        )
    temperature = row.sampling.temperature
    if not own_draws and temperature and not 0.01 <= temperature <= 2:
        raise ConfigError(
            f"vLLM itself draws at temperatures of 0.01 to 2, and {temperature:g} is asked for; "
            'set rollout.vllm.draws = "run"'
        )
    if row.sampling.first is not None and not own_draws:
        raise ConfigError(
            "first tokens of a distribution of their own need draws of Assay's own; set "
            'rollout.vllm.draws = "run"'
        )
