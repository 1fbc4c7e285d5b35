"""What runs a model. `base` is the interface; `load_engine` makes the engine of a configuration.

base           the interface: four requests, four answers
config         the settings of one model
prompts        prompts to token ids, fitted into the context; with fitting
loading        a model's files, head, tokenizer, revision
transformers   runs the model in a process of its own, see worker; the default
vllm           runs it in vLLM
openai         asks a server that speaks the OpenAI protocol
"""

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
    """Makes the engine of a model; `start` loads it.

    Args:
        name: as the service calls the model.
        config: its settings.

    Raises:
        ConfigError: its settings are wrong.
    """
    module, kind = _ENGINES[config.engine]
    return cast("JudgeEngine", getattr(import_module(module), kind)(name, config))
