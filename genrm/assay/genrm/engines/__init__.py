"""Engines, which run models: `base` is the interface, `transformers` the default."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from assay.genrm.engines.base import JudgeEngine
from assay.genrm.engines.checking import check
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.replicas import ReplicatedEngine

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
    check(name, config)
    module, kind = _ENGINES[config.engine]
    make = getattr(import_module(module), kind)
    places = config.places
    if len(places) == 1:
        return cast("JudgeEngine", make(name, config))
    engines = [make(name, config, device=place, replicas=len(places)) for place in places]
    return ReplicatedEngine(name, engines)
