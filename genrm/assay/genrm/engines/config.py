"""The settings of one model, as a frozen value. A TOML file of models makes them; see `config`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from assay.genrm.engines.base import Splitting
from assay.kit.toml_config import STRICT

Scalar = str | int | float | bool
Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """One model: which, what runs it, and how much of it at once."""

    __pydantic_config__ = STRICT

    path: Annotated[str, Field(min_length=1)]
    """A folder, a hub name, or `smollm2-135m-instruct`, which comes from PyPI; with the engine
    openai, the model's name on that server."""
    engine: Literal["transformers", "vllm", "openai"] = "transformers"
    head: Literal["auto", "generative", "scalar", "step"] = "auto"
    """What the model has on top. auto: by the architecture that its config.json names."""
    revision: str = ""
    """Of a hub model: the commit, tag or branch to load. Otherwise what to report instead of a hash
    of the weights."""
    trust_remote_code: bool = False
    """Run Python that comes with the model. Only for models whose authors you trust."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """auto: float32 on CPU, bfloat16 on CUDA."""
    context_tokens: NonNegative = 0
    """Most tokens of prompt and answer together; 0 for the model's own."""
    chat_template: str = ""
    """A Jinja file that replaces the tokenizer's."""
    start_timeout_s: PositiveFloat = 600.0
    """Loading, or waiting for the server, may take so long."""

    max_batch_tokens: Positive = 16384
    """transformers: tokens of one forward pass, padding and shared beginnings counted."""
    max_batch_items: Positive = 128
    """transformers: sequences of one forward pass."""
    prefix_cache_tokens: NonNegative = 32768
    """transformers: tokens whose keys and values are kept between calls; 0 keeps none."""
    max_concurrent: Positive = 256
    """Requests at work at the same time; others wait."""

    step_layout: Literal["auto", "step-token", "step-end"] = "auto"
    """Where a step head is read: at a token that stands after each step (Qwen2.5-Math-PRM), or at
    each step's last token (what `assay train-rm` makes). auto: step-token where `step_token` is
    set, or the tokenizer knows <extra_0>."""
    step_token: str = ""
    good_label: NonNegative = 1
    """Which label of a step head means that the step is right."""
    error_threshold: Ratio = 0.5
    splitting: Splitting = "auto"
    """How a response is cut into steps where the caller does not say. auto: at blank lines, or at
    line breaks where there is no blank line. A model of code lines wants code-line."""

    base_url: str = ""
    """openai: as http://127.0.0.1:8000/v1."""
    api_key_env: str = ""
    """openai: the environment variable that holds the key."""
    request_timeout_s: PositiveFloat = 120.0
    """openai: for one request to the server."""
    vllm: dict[str, Scalar] = field(default_factory=dict)
    """vllm: further arguments of its engine, such as tensor_parallel_size = 2."""
