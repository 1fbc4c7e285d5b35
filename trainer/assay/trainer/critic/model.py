"""Makes a critic of a policy, a reward model, a process reward model or a saved critic.

The result is a token classifier of transformers: the backbone, and a linear head with one output
(the value) or one for each class of returns. `from_pretrained` reads it again, and vLLM serves it.

Where the head comes from:

    the policy, a causal model    zeros: V is 0 at first, or the middle of the range of classes.
                                  Random weights would make the first advantages noise
    a reward model                its own head (VC-PPO, arXiv 2503.01491, and VAPO, arXiv
                                  2504.05118, start there). It was trained on whole dialogues, so
                                  its values of early tokens mean little before pre-training
    a process reward model        its own head; of two outputs, right less wrong, the log-odds that
                                  a step is right; of classes of scores as it is
    a saved critic                as it was

With classes of returns, a reward model gives its backbone and the head is zeros, unless it has as
many classes of scores from -1 to 1 itself (arXiv 2403.03950).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from assay.clients.judging.rendering import SCORE, STEP_OUTPUT
from assay.kit.errors import ConfigError
from assay.kit.pretrained import locate
from assay.trainer.critic.objective import is_classes, meaning, output_count
from assay.trainer.engines.models import LoadedPolicy, read_once
from assay.trainer.settings.objective import CriticConfig

MEANING = "value.json"

_Kind = Literal["critic", "reward", "process", "causal"]
_LOADERS: dict[_Kind, Any] = {
    "critic": AutoModelForTokenClassification,
    "reward": AutoModelForSequenceClassification,
    "process": AutoModelForTokenClassification,
    "causal": AutoModelForCausalLM,
}
_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    ImportError,
    RuntimeError,
    TypeError,
    SafetensorError,
)


def load_critic(
    config: CriticConfig,
    policy: LoadedPolicy,
    say: Callable[[str], None],
    *,
    gradient_checkpointing: bool = False,
) -> Any:
    """A critic on the policy's device, in its precision, all weights to be trained.

    Call it before the policy is sharded, which cannot be copied then. Of a policy with LoRA the
    weights beneath the adapters are taken. `say` gets one line before each long step.

    Raises:
        ConfigError: there is no such model, its tokens are other than the policy's, its outputs
            mean something else, or transformers has no token classifier of its kind.
    """
    if config.init == "policy":
        backbone: Any = _copy_of(policy.model).to(policy.dtype)
        head = _zero_head(backbone, config)
    else:
        backbone, head = _from_pretrained(config, policy, say)
    model = _assemble(backbone, head, policy)
    if gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model if read_once() else model.to(policy.device)


def check_meaning(folder: Path, config: CriticConfig) -> None:
    """Compares the meaning of a saved critic's outputs with the config.

    Raises:
        ConfigError: they differ, or the record cannot be read.
    """
    path = folder / MEANING
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"critic {folder}: {MEANING} cannot be read ({type(error).__name__}); save the critic "
            "anew, or set method.critic.init to another model"
        ) from error
    expected = meaning(config)
    if saved != expected:
        raise ConfigError(
            f"critic {folder} has values of {_words(saved)}, and method.critic.loss = "
            f'"{config.loss}" reads {_words(expected)}; set method.critic.loss, bins, '
            "value_min and value_max as they were, or another method.critic.init"
        )


def _words(saved: dict[str, Any]) -> str:
    if saved.get("head") != "classes":
        return "one output"
    return f"{saved.get('bins')} bins from {saved.get('value_min')} to {saved.get('value_max')}"


def head_of(model: Any) -> nn.Linear:
    """The linear layer of a classifier of transformers, under any name."""
    heads = [m for m in model.children() if isinstance(m, nn.Linear)]
    if len(heads) != 1:
        raise ConfigError(
            f"{type(model).__name__} has {len(heads)} linear heads, and a critic has one; set "
            "method.critic.init to another model"
        )
    return heads[0]


def _copy_of(model: Any) -> Any:
    if hasattr(model, "get_base_model"):  # PEFT puts its layers into the model itself
        return copy.deepcopy(model).unload().base_model
    return copy.deepcopy(model.base_model)


def _zero_head(backbone: Any, config: CriticConfig) -> nn.Linear:
    width = backbone.config.get_text_config().hidden_size
    head = nn.Linear(width, output_count(config))
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


def _assemble(backbone: Any, head: nn.Linear, policy: LoadedPolicy) -> Any:
    shape = backbone.config
    shape.num_labels = head.out_features
    shape.classifier_dropout = 0.0  # noise in a baseline is noise in the advantages
    shape.use_cache = False
    shape.tie_word_embeddings = False
    shape.pad_token_id = policy.tokenizer.pad_token_id
    try:
        with torch.device("meta"):  # its weights are replaced at once
            model: Any = AutoModelForTokenClassification.from_config(shape)
    except (ValueError, KeyError) as error:
        raise ConfigError(
            f"transformers has no token classifier of model type {shape.model_type!r}, which a "
            "critic is; set method.critic.init to another model, or "
            'method.critic.sharing = "trunk"'
        ) from error
    name = next(name for name, child in model.named_children() if child is head_of(model))
    setattr(model, model.base_model_prefix, backbone)
    setattr(model, name, head.to(device=backbone.device, dtype=backbone.dtype))
    return model.requires_grad_(True).train()


def _from_pretrained(
    config: CriticConfig, policy: LoadedPolicy, say: Callable[[str], None]
) -> tuple[Any, nn.Linear]:
    try:
        source = locate(config.init, say)
    except ConfigError as error:
        raise ConfigError(f"method.critic.init: {error}") from error
    if not Path(source).is_dir():
        say(f"fetching the critic {source} from the hub, unless it is cached")
    try:
        shape = AutoConfig.from_pretrained(source)
        kind = _kind_of(source, shape)
        if kind == "critic":
            check_meaning(Path(source), config)
        _check_vocabulary(config.init, source, shape, policy)
        model = _LOADERS[kind].from_pretrained(
            source,
            dtype=policy.dtype,
            attn_implementation=policy.model.config._attn_implementation,  # noqa: SLF001  # transformers has no other name for it
        )
    except _UNREADABLE as error:
        reason = next(
            (line for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        raise ConfigError(
            f"method.critic.init = {config.init!r} cannot be loaded: {reason.strip()[:200]}; "
            'check the name and the network, or use "policy"'
        ) from error
    return model.base_model, _head_from(model, kind, config, say)


def _kind_of(source: str, shape: Any) -> _Kind:
    if (Path(source) / MEANING).is_file():
        return "critic"
    for name in shape.architectures or ():
        if name.endswith("ForSequenceClassification"):
            return "reward"
        if name.endswith("ForTokenClassification"):
            return "process"
    return "causal"


def _head_from(
    model: Any, kind: _Kind, config: CriticConfig, say: Callable[[str], None]
) -> nn.Linear:
    if kind == "causal":
        return _zero_head(model.base_model, config)
    found = head_of(model)
    if kind == "critic":
        return found
    if is_classes(config):
        if _same_classes(model, found, config):
            return found
        say(
            f"the critic's head starts from zeros: {config.init} has no {config.bins} classes of "
            "returns"
        )
        return _zero_head(model.base_model, config)
    if found.out_features > (2 if kind == "process" else 1):
        raise ConfigError(
            f"method.critic.init = {config.init!r} has {found.out_features} outputs; a reward "
            "model has one, and a process reward model one or two"
        )
    return _one_output(found)


def _same_classes(model: Any, head: nn.Linear, config: CriticConfig) -> bool:
    """Whether a process reward model classifies scores as this critic does returns."""
    return (
        getattr(model.config, STEP_OUTPUT, "") == SCORE
        and head.out_features == config.bins
        and (config.value_min, config.value_max) == (-1.0, 1.0)
    )


@torch.no_grad()
def _one_output(found: nn.Linear) -> nn.Linear:
    """A head of one output; of two (wrong, right) their difference."""
    head = nn.Linear(found.in_features, 1)
    signs = torch.tensor(
        [1.0] if found.out_features == 1 else [-1.0, 1.0], device=found.weight.device
    )
    head.weight.copy_(signs.to(found.weight.dtype) @ found.weight)
    head.bias.zero_()
    if found.bias is not None:
        head.bias.copy_(signs.to(found.bias.dtype) @ found.bias)
    return head


def _check_vocabulary(name: str, source: str, shape: Any, policy: LoadedPolicy) -> None:
    own = policy.tokenizer.get_vocab()
    size = shape.get_text_config().vocab_size
    remedy = "; set method.critic.init to a model that reads the policy's tokens"
    if max(own.values()) >= size:
        raise ConfigError(
            f"method.critic.init = {name!r} knows {size} tokens, and the policy writes "
            f"{max(own.values()) + 1}{remedy}"
        )
    try:
        theirs = AutoTokenizer.from_pretrained(source).get_vocab()
    except _UNREADABLE:
        return  # no tokenizer beside it: the size is all that can be compared
    differing = [token for token, number in own.items() if theirs.get(token) != number]
    if differing:
        raise ConfigError(
            f"method.critic.init = {name!r} has another vocabulary than the policy: "
            f"{len(differing)} tokens differ, {differing[0]!r} among them{remedy}"
        )
