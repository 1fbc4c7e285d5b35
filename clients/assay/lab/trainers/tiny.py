"""A tokenizer and an untrained model of some thousand weights, for one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.lab.steps import Groups

_PAD, _END, _UNKNOWN = "<pad>", "<end>", "<unk>"


def tiny_tokenizer() -> Any:
    """One token a printable ASCII character; its chat template sets one message after another."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = [_PAD, _END, _UNKNOWN, "\n", *map(chr, range(32, 127))]
    core = Tokenizer(
        models.WordLevel({token: n for n, token in enumerate(vocabulary)}, unk_token=_UNKNOWN)
    )
    core.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    core.decoder = decoders.Fuse()
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(
        tokenizer_object=core,
        pad_token=_PAD,
        eos_token=_END,
        unk_token=_UNKNOWN,
        padding_side="left",
    )
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return tokenizer


def tiny_policy(tokenizer: Any) -> Any:
    """A Llama of one layer in float32, the same at every call."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, head_dim=32, max_position_embeddings=256,
        tie_word_embeddings=False, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    load: Any = AutoModelForCausalLM.from_config
    return load(settings)


def gradient_of(model: Any, loss: Any) -> list[float]:
    """The gradient of a loss, all weights one after the other."""
    model.zero_grad()
    loss.backward()
    weights = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return [value for grad in weights for value in grad.flatten().tolist()]


def in_pairs(groups: Groups) -> Groups:
    """Groups of one row with that row twice: two equal rows have nothing to compare, either."""
    return [(group[0], group[0]) if len(group) == 1 else group for group in groups]


def first_of_pairs(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch of such groups with each row once."""
    return {
        name: value[::2] if getattr(value, "ndim", 0) else value for name, value in batch.items()
    }


def joined(parts: Sequence[dict[str, Any]], pads: dict[str, int], sums: Sequence[str]) -> Any:
    """Batches of rows as one: columns of tokens padded at the end by `pads`, `sums` added."""
    import torch

    whole: dict[str, Any] = {}
    for name, first in parts[0].items():
        columns = [part[name] for part in parts]
        if name in sums:
            whole[name] = sum(columns)
        elif isinstance(first, torch.Tensor) and first.dim() == 2:  # (B, T)
            widest = max(column.shape[1] for column in columns)
            fill = pads.get(name, 0)
            wide = [
                torch.nn.functional.pad(one, (0, widest - one.shape[1]), value=fill)
                for one in columns
            ]
            whole[name] = torch.cat(wide)
        elif isinstance(first, torch.Tensor) and first.dim():
            whole[name] = torch.cat(columns)
        else:
            whole[name] = first
    return whole
