"""The settings of one model, as a frozen value. A TOML file of models makes them; see `config`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from assay.genrm.engines.base import Forms, Splitting
from assay.kit.toml_config import STRICT

Scalar = str | int | float | bool
Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """One model: which, what runs it, and how much of it at once."""

    __pydantic_config__ = STRICT

    path: Annotated[str, Field(min_length=1)]
    """A folder, a hub name, `smollm2-135m-instruct` from PyPI, or the model's name on the openai
    server.
    """
    engine: Literal["transformers", "vllm", "openai"] = "transformers"
    head: Literal["auto", "generative", "scalar", "step"] = "auto"
    """What the model has on top. auto: by the architecture that its config.json names."""
    revision: str = ""
    """Of a hub model: commit, tag or branch. Else what to report instead of a hash of the weights.
    """
    trust_remote_code: bool = False
    """Run Python that comes with the model. Only for models whose authors you trust."""
    base: str = ""
    """transformers: `path` is a LoRA adapter that PEFT saved, over this other model of the file.

    What runs the base runs the adapter: of the settings only `revision`, `known`, `max_concurrent`,
    `error_threshold`, `splitting`, `reload` and `start_timeout_s` are its own.
    """
    device: str | tuple[str, ...] = "auto"
    """auto, cpu, cuda, or cuda:N; for the transformers engine also several, one replica on each."""
    replicas: Positive = 1
    """transformers: processes on each device, each with the weights; the least loaded is asked."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """auto: float32 on CPU, bfloat16 on CUDA."""
    quantization: Literal["none", "bnb-int8", "bnb-nf4", "torchao-int8"] = "none"
    """transformers: how weights are made smaller when they are loaded.

    bnb: by bitsandbytes; torchao: weights only, also on CPU. The package must be installed. A
    folder that is quantised already (GPTQ, AWQ, ...) says so itself, in its config.json.
    """
    context_tokens: NonNegative = 0
    """Most tokens of prompt and answer together; 0 for the model's own."""
    chat_template: str = ""
    """A Jinja file that replaces the tokenizer's."""
    known: str = ""
    """TOML file of `[[cases]]`, known answers of the field that it judges, for its self-test.

    Empty: the shipped ones, easy questions of every kind; "none": it is not tested.
    """
    structured: Forms = "again"
    """When votes and critiques are held to their form by structured decoding.

    again: those that cannot be read are written again so; always: from the start; never. An engine
    that cannot, or cannot say how much of the probability the verdicts had, never does.
    """
    reload: bool = False
    """Serve other weights as soon as `path`, a folder, holds some; see `assay.genrm.reloading`."""
    start_timeout_s: PositiveFloat = 600.0
    """For loading, or waiting for the server."""

    max_batch_tokens: Positive = 16384
    """transformers: tokens of one forward pass, padding and shared beginnings included."""
    max_batch_items: Positive = 128
    """transformers: sequences of one forward pass."""
    prefix_cache_tokens: NonNegative = 32768
    """transformers: tokens whose keys and values are kept between calls."""
    max_concurrent: Positive = 256
    """Requests at work at the same time."""

    step_layout: Literal["auto", "step-token", "step-end"] = "auto"
    """Where a step head is read.

    step-token: at a token after each step (Qwen2.5-Math-PRM); step-end: at each step's last token
    (`assay train-rm`); auto: step-token where `step_token` is set or the tokenizer knows <extra_0>.
    """
    step_token: str = ""
    good_label: NonNegative = 1
    """The label of a step head that means "right"."""
    error_threshold: Ratio = 0.5
    splitting: Splitting = "auto"
    """How a response is cut where the caller does not say. auto: at blank lines, else line breaks.
    """

    price_prompt: Price = 0.0
    """Money for a million tokens read, in the one currency of all prices and budgets."""
    price_cached: Price | None = None
    """The same of tokens that were reused; by default the price of those read."""
    price_completion: Price = 0.0
    """Money for a million tokens written."""
    price_second: Price = 0.0
    """Money for a second of the engine; requests that are at it together share it."""

    base_url: str = ""
    """openai: as http://127.0.0.1:8000/v1."""
    head_route: Literal["auto", "classify", "score"] = "auto"
    """openai: how a scalar head is asked.

    classify: the dialogue as the chat template writes it; score: prompt and response as a pair, as
    rerankers want it, by vLLM's /score; auto: classify, or score where only that is offered.
    """
    api_key_env: str = ""
    """openai: the environment variable that holds the key."""
    request_timeout_s: PositiveFloat = 120.0
    """openai: for one request."""
    vllm: dict[str, Scalar] = field(default_factory=dict)
    """vllm: further arguments of its engine, such as tensor_parallel_size = 2."""

    @property
    def places(self) -> tuple[str, ...]:
        """The device of each replica."""
        devices = (self.device,) if isinstance(self.device, str) else self.device
        return tuple(device for device in devices for _ in range(self.replicas))
