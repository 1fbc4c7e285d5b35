"""Engines, which run models: `base` is the interface, `transformers` the default."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from assay.genrm.engines.base import JudgeEngine
from assay.genrm.engines.config import EngineConfig

_ENGINES = {
    "transformers": ("assay.genrm.engines.transformers", "TransformersEngine"),
    "vllm": ("assay.genrm.engines.vllm", "VllmJudgeEngine"),
    "openai": ("assay.genrm.engines.openai", "OpenAIEngine"),
}


def load_engine(name: str, config: EngineConfig) -> JudgeEngine:
    """Makes the engine of a model, which `start` loads; `name` is how the service calls it.

    Raises:
        ConfigError: its settings are wrong.
    """
    module, kind = _ENGINES[config.engine]
    return cast("JudgeEngine", getattr(import_module(module), kind)(name, config))
