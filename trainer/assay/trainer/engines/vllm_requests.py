"""Requests to vLLM, in this process or on a server, and their checks."""

from __future__ import annotations

from typing import Any

from assay.kit.errors import ConfigError
from assay.trainer.engines.engine import EngineHost, OpenRequest
from assay.trainer.engines.seeded import uniform_rows

EXTRA = "assay"
"""Key of a request's `extra_args` for engines.vllm_draws."""
PROCESSOR = "assay.trainer.engines.vllm_draws:SeededDraws"


def logprobs_mode(*, own_draws: bool) -> str:
    """The setting of that name that gives log-probabilities of the distribution drawn from."""
    return "processed_logits" if own_draws else "processed_logprobs"


def parameters(row: OpenRequest, host: EngineHost, *, own_draws: bool) -> dict[str, Any]:
    """Arguments of vLLM's SamplingParams, as JSON can hold them.

    With `own_draws` engines.seeded draws. Else vLLM does, with a seed from the run's seed, the
    row's place and the tokens that the response has; a constant seed would repeat its noise.

    vLLM looks for stop texts in what it draws now; who hears its tokens looks too, since a text may
    begin in an earlier step.
    """
    sampling = row.sampling
    common: dict[str, Any] = {
        "max_tokens": row.room,
        "stop_token_ids": sorted(host.end_ids),
        "ignore_eos": True,
        "detokenize": bool(sampling.stops),
    }
    if sampling.stops:
        common |= {
            "stop": list(sampling.stops),
            "include_stop_str_in_output": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
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
    """Refuses rows that vLLM would not refuse itself.

    `context` is the most tokens of a prompt and its response; `own_draws` as for `parameters`.

    Raises:
        ValueError: its prompt holds ids that are no tokens of the model: vLLM would die of it.
        ConfigError: it does not fit: vLLM would cut it, at the policy's cost; or it wants draws
            that vLLM itself cannot make.
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
