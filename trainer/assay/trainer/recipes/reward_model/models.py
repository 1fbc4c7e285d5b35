"""What is trained: a pretrained model with the head of its kind, or a tiny one from scratch.

A model can be cut to its first layers, and all but its last layers frozen, which turns hours into
minutes on a weak machine. A cut judge is much weaker than the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    LlamaConfig,
    PreTrainedTokenizerFast,
    set_seed,
)

from assay.kit.errors import ConfigError
from assay.trainer.engines.models import (
    Loaded,
    device_of,
    fetched,
    load_errors,
    require_padding,
    with_adapters,
)
from assay.trainer.recipes.reward_model.config import (
    CLASSES,
    TINY,
    Kind,
    MethodConfig,
    RmConfig,
    TinyConfig,
)

TINY_CONTEXT = 4096
_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_STACKS = ("layers", "h", "blocks", "layer")
_AUTO: dict[Kind, Any] = {
    "pairwise": AutoModelForCausalLM,
    "pointwise": AutoModelForCausalLM,
    "critique": AutoModelForCausalLM,
    "bradley-terry": AutoModelForSequenceClassification,
    "prm": AutoModelForTokenClassification,
}
# PEFT's tasks: with a head, which is made anew, the head learns whole beside the adapters
_TASKS: dict[Kind, str] = {
    "pairwise": "CAUSAL_LM",
    "pointwise": "CAUSAL_LM",
    "critique": "CAUSAL_LM",
    "bradley-terry": "SEQ_CLS",
    "prm": "TOKEN_CLS",
}
_ONE_OUTPUT: dict[str, Any] = {"num_labels": 1}
_HEAD: dict[Kind, dict[str, Any]] = {
    "pairwise": {},
    "pointwise": {},
    "critique": {},
    "bradley-terry": _ONE_OUTPUT,
    "prm": {"id2label": {0: "wrong", 1: "right"}, "label2id": {"wrong": 0, "right": 1}},
}


def load_learner(
    config: RmConfig,
    texts: Iterable[str],
    say: Callable[[str], None],
    *,
    tokenizer: Path | None = None,
) -> Loaded:
    """The model to train.

    `tiny` makes its tokenizer of `texts`, unless the folder `tokenizer` holds one.

    Raises:
        ConfigError: there is no such model, it cannot be loaded or cut, or CUDA is missing.
    """
    device = device_of(config.model)
    set_seed(config.run.seed)
    tiny = config.model.name == TINY
    learner = _tiny(config, texts, tokenizer) if tiny else _pretrained(config, say)
    learner.model.config.pad_token_id = learner.tokenizer.pad_token_id
    _freeze(learner.model, config.model.train_layers)
    model = learner.model
    if config.model.lora.rank:
        model = with_adapters(model, config.model.lora, _TASKS[config.method.kind])
        if config.model.gradient_checkpointing:
            model.enable_input_require_grads()
    model.to(device)
    wanted = config.model.precision
    mixed = wanted == "mixed" or (wanted == "auto" and device.type == "cuda")
    return Loaded(model, learner.tokenizer, mixed)


def merged(model: Any) -> Any:
    """The whole model, with low-rank adapters merged in float32 where there are some."""
    if not hasattr(model, "merge_and_unload"):
        return model
    return model.float().merge_and_unload()


def _pretrained(config: RmConfig, say: Callable[[str], None]) -> Loaded:
    name, kind = config.model.name, config.method.kind
    with load_errors(name, f" for {kind}"):
        source = fetched(name, say)
        tokenizer = AutoTokenizer.from_pretrained(source)
        shape = AutoConfig.from_pretrained(source, **_head(config.method))
        _keep_layers(shape, config.model.layers, name)
        model = _AUTO[kind].from_pretrained(
            source,
            config=shape,
            dtype=torch.bfloat16 if config.model.lora.base == "bfloat16" else torch.float32,
            ignore_mismatched_sizes=True,  # a head of another kind is made anew
        )
    require_padding(tokenizer, name)
    return Loaded(model, tokenizer)


def _keep_layers(shape: Any, count: int, name: str) -> None:
    """Cuts a model's configuration to its first layers; the other weights are not read."""
    if not count:
        return
    text = shape.get_text_config()
    if count > text.num_hidden_layers:
        raise ConfigError(
            f"model.layers = {count}, but {name} has {text.num_hidden_layers}; 0 keeps all"
        )
    text.num_hidden_layers = count
    if getattr(text, "layer_types", None):
        text.layer_types = text.layer_types[:count]


def _freeze(model: Any, count: int) -> None:
    """Trains only the last `count` layers, what follows them, and the head."""
    if not count:
        return
    base = model.base_model
    stack = next((getattr(base, name) for name in _STACKS if hasattr(base, name)), None)
    if stack is None or count > len(stack):
        there = "none that are known" if stack is None else str(len(stack))
        raise ConfigError(f"model.train_layers = {count}, but the layers are {there}; 0 trains all")
    inside = {id(weight) for weight in base.parameters()}
    for weight in model.parameters():  # a head that is tied to the embedding stays frozen
        weight.requires_grad = id(weight) not in inside
    for part in (*stack[-count:], *(m for n, m in base.named_children() if "norm" in n)):
        for weight in part.parameters():
            weight.requires_grad = True


def _head(method: MethodConfig) -> dict[str, Any]:
    if method.loss in CLASSES:
        return {"num_labels": method.bins}
    return _ONE_OUTPUT if method.loss == "regression" else _HEAD[method.kind]


def _tiny(config: RmConfig, texts: Iterable[str], made: Path | None) -> Loaded:
    if made is not None and made.is_dir():
        tokenizer = PreTrainedTokenizerFast.from_pretrained(made)
    else:
        tokenizer = make_tokenizer(texts, config.tiny.vocabulary)
    shape = tiny_shape(config.tiny, tokenizer, config.method)
    return Loaded(_AUTO[config.method.kind].from_config(shape, dtype=torch.float32), tokenizer)


def tiny_shape(tiny: TinyConfig, tokenizer: Any, method: MethodConfig) -> LlamaConfig:
    """The configuration of the model `tiny`."""
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=tiny.hidden,
        intermediate_size=3 * tiny.hidden,
        num_hidden_layers=tiny.layers,
        num_attention_heads=tiny.hidden // 32,
        num_key_value_heads=tiny.hidden // 32,
        head_dim=32,
        max_position_embeddings=TINY_CONTEXT,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        **_head(method),
    )


def make_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE made from texts, with a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=list(_SPECIALS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=_SPECIALS[0],
        eos_token=_SPECIALS[2],
        additional_special_tokens=list(_SPECIALS),
        chat_template=_CHAT_TEMPLATE,
        model_max_length=TINY_CONTEXT,
    )
