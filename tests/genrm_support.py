"""Small real models with known weights: a byte-level tokenizer and a Llama of two layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

Kind = Literal["causal", "scalar", "step"]

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<extra_0>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_WORDS = (
    "the answer is correct wrong step response question which better A B yes no because so it and",
    "0123456789 + - * / = ( ) Let us check each line of the solution. Therefore the final verdict:",
)


def make_tokenizer() -> Any:
    """A byte-level BPE: any text goes in and comes out; special tokens are single ones."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.train_from_iterator(
        _WORDS,
        trainers.BpeTrainer(
            vocab_size=512,
            special_tokens=list(SPECIALS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        additional_special_tokens=list(SPECIALS),
        chat_template=CHAT_TEMPLATE,
        model_max_length=4096,
    )


def make_model(
    folder: Path,
    kind: Kind = "causal",
    *,
    seed: int = 0,
    hidden: int = 64,
    layers: int = 2,
    labels: int | None = None,
    context: int = 4096,
) -> Path:
    """Saves a model with random weights, wide enough spread that its opinions differ.

    Args:
        folder: where to save; made.
        kind: what is on top: a language model's head (not tied), one logit for a dialogue, or
            two for each token.
        seed: of the weights.
        hidden: width.
        layers: depth.
        labels: of the head; by default 1 for scalar and 2 for step.
        context: most positions.
    """
    import torch
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        LlamaForSequenceClassification,
        LlamaForTokenClassification,
    )

    tokenizer = make_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=context,
        initializer_range=0.2,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        num_labels=labels or (1 if kind == "scalar" else 2),
    )
    classes = {
        "causal": LlamaForCausalLM,
        "scalar": LlamaForSequenceClassification,
        "step": LlamaForTokenClassification,
    }
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = classes[kind](config)
    torch.random.set_rng_state(state)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_adapter(folder: Path, base: Path, *, seed: int = 0, **settings: Any) -> Path:
    """Saves a LoRA adapter with random weights of both its halves, as PEFT does.

    Args:
        folder: where to save.
        base: a causal model.
        seed: of the weights.
        settings: of LoraConfig.
    """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    plain = {"r": 4, "target_modules": ["q_proj", "v_proj", "up_proj"], "init_lora_weights": False}
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    config = LoraConfig(task_type="CAUSAL_LM", **(plain | settings))
    get_peft_model(AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(folder)
    torch.random.set_rng_state(state)
    return folder
