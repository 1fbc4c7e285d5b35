"""A model's weights on a device: its class, its quantisation, and what its files lack."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch

from assay.genrm.engines.worker.settings import WorkerSettings

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class LoadError(Exception):
    """The model cannot be loaded; the text says why, in one line."""


def dtype_of(name: str, device: torch.device) -> torch.dtype:
    """Of the weights; "auto" is bfloat16 on CUDA, else float32."""
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return _DTYPES[name]


def load(settings: WorkerSettings, dtype: torch.dtype, device: torch.device) -> Any:
    """The model with its weights on a device.

    Raises:
        LoadError: it cannot be loaded.
    """
    kind = _kind(settings)
    arguments = {**settings.arguments, "dtype": dtype, "output_loading_info": True}
    arguments |= _quantised(settings, device)
    try:
        model, report = kind.from_pretrained(
            settings.location, attn_implementation="sdpa", **arguments
        )
    except ValueError as error:
        if "scaled_dot_product_attention" not in str(error):
            raise
        model, report = kind.from_pretrained(
            settings.location, attn_implementation="eager", **arguments
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise LoadError(
            f"its files lack {len(missing)} weights, such as {missing[0]}, so it has no "
            f"{settings.head} head of its own; set head to what it has, or give another folder"
        )
    return model if getattr(model, "hf_quantizer", None) is not None else model.to(device)


def _quantised(settings: WorkerSettings, device: torch.device) -> dict[str, Any]:
    """What `from_pretrained` is told of quantisation.

    Raises:
        LoadError: the package that does it is not here, or not for this device.
    """
    own = getattr(_hf_config(settings), "quantization_config", None)
    if own and settings.quantization != "none":
        raise LoadError(
            f"it is quantised already, by {_method(own)}; leave quantization out, or give a folder "
            "of whole weights"
        )
    config: Any = None
    match settings.quantization:
        case "bnb-int8" | "bnb-nf4":
            _need("bitsandbytes", settings)
            from transformers import BitsAndBytesConfig  # noqa: PLC0415

            four = settings.quantization == "bnb-nf4"
            config = BitsAndBytesConfig(
                load_in_8bit=not four,
                load_in_4bit=four,
                bnb_4bit_quant_type="nf4",
                bnb_4bit_compute_dtype=dtype_of(settings.precision, device),
            )
        case "torchao-int8":
            _need("torchao", settings)
            from torchao.quantization import Int8WeightOnlyConfig  # noqa: PLC0415
            from transformers import TorchAoConfig  # noqa: PLC0415

            config = TorchAoConfig(Int8WeightOnlyConfig())
    if config is not None:
        return {"quantization_config": config, "device_map": {"": str(device)}}
    return {"device_map": {"": str(device)}} if own else {}


def _method(own: Any) -> str:
    said = own.get("quant_method") if isinstance(own, dict) else getattr(own, "quant_method", "")
    return str(said or "a method that it does not name")


def _need(package: str, settings: WorkerSettings) -> None:
    if find_spec(package) is None:
        raise LoadError(
            f"quantization {settings.quantization!r} needs the package {package}, which is not "
            f"installed; pip install {package}, or leave quantization out"
        )


def _kind(settings: WorkerSettings) -> Any:
    from transformers import (  # noqa: PLC0415  # each takes its time
        AutoModel,
        AutoModelForCausalLM,
        AutoModelForSequenceClassification,
        AutoModelForTokenClassification,
    )

    if settings.head == "generative":
        return AutoModelForCausalLM
    if settings.head == "scalar":
        return AutoModelForSequenceClassification
    names = [str(name) for name in _hf_config(settings).architectures or ()]
    if "Qwen2ForProcessRewardModel" in names:
        from assay.genrm.engines.worker.qwen import (  # noqa: PLC0415
            Qwen2ForProcessRewardModel,
        )

        return Qwen2ForProcessRewardModel
    if any(name.endswith("ForProcessRewardModel") for name in names):
        return AutoModel
    return AutoModelForTokenClassification


def _hf_config(settings: WorkerSettings) -> Any:
    from transformers import AutoConfig  # noqa: PLC0415  # takes its time

    return AutoConfig.from_pretrained(settings.location, **settings.arguments)
