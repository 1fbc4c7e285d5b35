"""Whether the settings of a model go together; what its engine does not read is refused."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from assay.genrm.engines.config import EngineConfig
from assay.kit.errors import ConfigError

_DEVICE = re.compile(r"auto|cpu|cuda(?::[0-9]{1,3})?")
_NAMES = """
path base revision known max_concurrent error_threshold splitting reload start_timeout_s
"""
_OWN = frozenset(_NAMES.split())
"""What an adapter has of its own."""
_NO_PLACES = {
    "vllm": "vLLM takes the devices of CUDA_VISIBLE_DEVICES; set vllm = { data_parallel_size = N }",
    "openai": "its server decides where it runs",
}


def check(name: str, config: EngineConfig) -> None:
    """Refuses settings that contradict one another.

    Raises:
        ConfigError: naming the setting and what to do.
    """
    for device in config.places:
        if not _DEVICE.fullmatch(device):
            raise ConfigError(
                f"model {name}: device {device[:40]!r} is none of auto, cpu, cuda, cuda:N"
            )
    if not config.places:
        raise ConfigError(f"model {name}: device is an empty list; name one, or leave it out")
    if config.engine != "transformers":
        _check_elsewhere(name, config)
    if config.engine != "openai" and config.head_route != "auto":
        raise ConfigError(f"model {name}: head_route is for the openai engine; leave it out")
    if config.reload:
        _check_reload(name, config)
    if config.base:
        _check_adapter(name, config)


def _check_elsewhere(name: str, config: EngineConfig) -> None:
    if len(config.places) > 1 or (config.engine == "vllm" and ":" in config.places[0]):
        raise ConfigError(
            f"model {name}: several devices, replicas and cuda:N are for the transformers engine; "
            f"{_NO_PLACES[config.engine]}"
        )
    if config.quantization != "none":
        raise ConfigError(
            f"model {name}: quantization is for the transformers engine; vLLM takes "
            'vllm = { quantization = "..." }, and a server its own settings'
        )


def _check_reload(name: str, config: EngineConfig) -> None:
    if config.engine == "openai" or not Path(config.path).is_dir():
        raise ConfigError(
            f"model {name}: reload is for a folder of weights that this service loads; "
            f"{config.path[:80]!r} is none"
        )
    if config.revision:
        raise ConfigError(
            f"model {name}: with reload judgements name the hash of the weights that they came "
            "from; leave revision out"
        )


def _check_adapter(name: str, config: EngineConfig) -> None:
    for field in dataclasses.fields(EngineConfig):
        if field.name in _OWN:
            continue
        default = EngineConfig(config.path)
        if getattr(config, field.name) != getattr(default, field.name):
            raise ConfigError(
                f"model {name}: {field.name} is that of its base, model {config.base}; set it there"
            )
    if not (Path(config.path) / "adapter_config.json").is_file():
        raise ConfigError(
            f"model {name}: {config.path} holds no adapter_config.json; with base, path is a "
            "folder that PEFT's save_pretrained wrote, or that assay train leaves as adapter/"
        )
