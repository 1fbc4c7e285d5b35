"""LoRA adapters over one model, whose weights are loaded once; each row goes through its own.

PEFT puts them in and computes them: a row's adapter is named to each of its layers, as for its
batches of several adapters. An adapter may do nothing to the base, for other rows read that: what
would (biases, modules saved whole, weights made from the base's, DoRA) is refused.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import Any

from torch import nn

BASE = "__base__"  # PEFT's name for no adapter
_NAMES = """
alpha_pattern auto_mapping base_model_name_or_path corda_config eva_config exclude_modules
fan_in_fan_out inference_mode init_lora_weights layers_pattern layers_to_transform loftq_config
lora_alpha lora_bias lora_dropout peft_type peft_version r rank_pattern revision runtime_config
target_modules task_type use_rslora
"""
_FREE = frozenset(_NAMES.split())
"""Settings of an adapter that leave the base as it is."""
_STARTS = (True, False, "gaussian")
_OWN = re.compile(r"\.lora_(?:embedding_)?[AB](?:\.weight|\.bias)?$")


class AdapterError(Exception):
    """The adapter cannot be served; why, in one line."""


class Adapters:
    """The adapters of a model, by key."""

    def __init__(self, model: Any, head: str) -> None:
        self._model = model
        self._head = head
        self._keys: set[str] = set()
        self._hooked: set[int] = set()
        self._rows: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def rows(self, keys: list[str]) -> None:
        """Says which adapter each row of the next pass goes through; "" for none."""
        self._rows = [key or BASE for key in keys]

    def load(self, key: str, folder: str) -> None:
        """Loads a folder of PEFT's.

        Raises:
            AdapterError: it is not of this model, or changes more than its own rows.
        """
        config = self._checked(folder)
        try:
            report = self._put_in(key, folder, config)
            self._hook(key, report)
        except AdapterError:
            self._remove(key)
            raise
        except Exception as error:
            # Files of others: whatever they make PEFT raise means that they cannot be used.
            self._remove(key)
            raise AdapterError(f"PEFT cannot load it: {_line(error)}") from error
        self._keys.add(key)

    def unload(self, key: str) -> None:
        """Forgets an adapter."""
        if key in self._keys:
            self._keys.discard(key)
            self._remove(key)

    def _checked(self, folder: str) -> Any:
        if self._head != "generative":
            raise AdapterError(f"adapters are served over language models, not a {self._head} head")
        try:
            from peft import LoraConfig, PeftConfig  # noqa: PLC0415  # with adapters only
        except ImportError as error:
            raise AdapterError(
                "PEFT is not installed; pip install 'assay-rl-genrm[lora]' brings it"
            ) from error
        try:
            config = PeftConfig.from_pretrained(folder)
        except Exception as error:
            raise AdapterError(f"PEFT cannot read its settings: {_line(error)}") from error
        if not isinstance(config, LoraConfig):
            raise AdapterError(f"it is {config.peft_type}, and LoRA is what is served")
        usual = LoraConfig()
        for field in dataclasses.fields(LoraConfig):
            value = getattr(config, field.name)
            if field.name not in _FREE and value != getattr(usual, field.name) and value:
                raise AdapterError(
                    f"{field.name} = {value!r:.60} would touch the base, or needs it alone; merge "
                    "it into a model of its own"
                )
        if config.init_lora_weights not in _STARTS:
            raise AdapterError(
                f"init_lora_weights = {config.init_lora_weights!r:.40} is made from the base's "
                "weights; convert it to plain LoRA"
            )
        return config

    def _put_in(self, key: str, folder: str, config: Any) -> Any:
        """Adds an adapter's layers and weights; what PEFT says of names that do not fit."""
        from peft.functional import (  # noqa: PLC0415  # with adapters only
            inject_adapter_in_model,
            set_peft_model_state_dict,
        )
        from peft.utils import load_peft_weights  # noqa: PLC0415

        weights = load_peft_weights(folder, device=str(self._model.device))
        if strange := next((name for name in weights if not _OWN.search(name)), ""):
            raise AdapterError(f"it brings a weight that is the base's: {strange:.100}")
        # Found out before anything is put in: a head that is wrapped once stays so.
        if any(f".{self._head_name()}.lora_" in f".{name}" for name in weights):
            raise AdapterError("it changes the output embeddings, which are read apart")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found a `peft_config`", UserWarning)
            inject_adapter_in_model(config, self._model, key)
        self._model.eval()  # the new layers
        self._model.requires_grad_(False)
        return set_peft_model_state_dict(self._model, weights, adapter_name=key)

    def _hook(self, key: str, report: Any) -> None:
        """Has layers asked by row, and holds the adapter to the model's modules."""
        from peft.tuners.lora import LoraLayer  # noqa: PLC0415  # with adapters only

        missing = [name for name in report.missing_keys if f".{key}." in name]
        if names := [*missing, *report.unexpected_keys]:
            raise AdapterError(f"it does not fit this model: {names[0]:.100}")
        found = False
        for module in self._model.modules():
            if not isinstance(module, LoraLayer) or not isinstance(module, nn.Module):
                continue
            if key in module.lora_A or key in module.lora_embedding_A:
                found = True
            if id(module) not in self._hooked:
                self._hooked.add(id(module))
                module.register_forward_pre_hook(self._name_rows, with_kwargs=True)
        if not found:
            raise AdapterError("it does not fit this model: none of its modules is there")

    def _head_name(self) -> str:
        head = self._model.get_output_embeddings()
        return next((name for name, one in self._model.named_modules() if one is head), "lm_head")

    def _name_rows(
        self, _: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return inputs, {**named, "adapter_names": self._rows}

    def _remove(self, key: str) -> None:
        configs = getattr(self._model, "peft_config", None) or {}
        if configs.pop(key, None) is None:
            return
        from peft.functional import delete_adapter  # noqa: PLC0415  # with adapters only

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of which one is active: rows say that
            delete_adapter(self._model, key, prefix="lora_")


def _line(error: BaseException) -> str:
    return " ".join((str(error).strip() or type(error).__name__).split())[:200]
