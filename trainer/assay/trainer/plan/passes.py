"""What passes through a model keep in memory, counted without memory.

A model is made of its configuration, of tensors that have shapes and no numbers (torch's
FakeTensor), and computes as in training: autograd frees what it would free. Counted are bytes of
storages that live at the same time.

Attention is counted as torch's fused kernel for CPUs, which keeps what those of CUDA keep: queries,
keys, values, output, and a number for each query and head.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoModelForCausalLM, AutoModelForTokenClassification
from trl.trainer.utils import add_fused_lm_head

from assay.trainer.settings.sections import LoraConfig


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes of a model and of its passes on one device, unsharded.

    Attributes:
        weights: of all weights.
        trained: of those that learn, hence of their gradients.
        parameters: how many learn.
        largest: of the largest layer, which FSDP2 gathers at a time.
        forward: peak of a forward pass beside weights and gradients.
        backward: peak of the backward pass.
    """

    weights: int
    trained: int
    parameters: int
    largest: int
    forward: int
    backward: int

    @property
    def update(self) -> int:
        """Peak of both passes."""
        return max(self.forward, self.backward)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Bytes of generation.

    Attributes:
        cache_token: of keys and values of one token of one row.
        prefill: peak of reading the prompts beside the weights, without the cache.
    """

    cache_token: int
    prefill: int


C = TypeVar("C", Kept, Drawn)


class _Living(TorchDispatchMode):
    """Counts bytes of living storages that are made in it, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._seen: set[weakref.ref[Any]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self._note(leaf.untyped_storage())
        return out

    def _note(self, storage: Any) -> None:
        size = storage.nbytes()
        reference = weakref.ref(storage)
        if not size or reference in self._seen:
            return

        def gone(ended: Any) -> None:
            self._seen.discard(ended)
            self.now -= size

        self._seen.add(weakref.ref(storage, gone))
        self.now += size
        self.most = max(self.most, self.now)


def kept(
    shape: Any,
    *,
    rows: int,
    prompt: int,
    response: int,
    dtype: torch.dtype,
    mixed: bool,
    lora: LoraConfig,
    checkpointing: bool,
    outputs: int = 0,
) -> Kept:
    """Counts the update on a micro-batch of `rows`, for `prompt` and `response` tokens each.

    `shape` is a configuration of transformers, whose attention is counted. `mixed` weights compute
    in bfloat16; LoRA of rank 0 is none; `checkpointing` computes layers again in the backward pass.
    `outputs` are those of a critic's head; 0 counts the policy, with log-probabilities and
    entropies.
    """

    def counted(shape: Any) -> Kept:
        with _faked() as living:
            model = _made(shape, dtype, outputs)
            if lora.rank:
                _adapt(model, lora)
            if checkpointing:
                model.gradient_checkpointing_enable({"use_reentrant": False})
                if lora.rank:
                    model.enable_input_require_grads()
            model.train()
            learning = [weight for weight in model.parameters() if weight.requires_grad]
            for weight in learning:
                weight.grad = torch.empty_like(weight)
            weights, trained = _bytes(list(model.parameters())), _bytes(learning)
            before = living.most = living.now
            total = _forward(model, rows, prompt, response, mixed=mixed, outputs=outputs)
            forward = living.most - before
            living.most = living.now
            total.backward()
            layers = [_bytes(list(module.parameters())) for module in _layers(model)]
            return Kept(
                weights=weights,
                trained=trained,
                parameters=sum(weight.numel() for weight in learning),
                largest=max(layers, default=weights),
                forward=forward,
                backward=living.most - before,
            )

    return _by_layers(shape, counted)


def drawn(shape: Any, *, rows: int, prompt: int, dtype: torch.dtype, mixed: bool) -> Drawn:
    """Counts the reading of `rows` prompts, and what a token leaves in the cache."""

    def counted(shape: Any) -> Drawn:
        with _faked() as living, torch.no_grad():
            model = _made(shape, dtype, 0).eval()
            before = living.now
            living.most = before
            ids = torch.zeros(rows, prompt, dtype=torch.long)
            with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
                out = model(
                    input_ids=ids,
                    attention_mask=torch.ones_like(ids),
                    use_cache=True,
                    logits_to_keep=1,
                )
            held = out.past_key_values
            cache = _bytes([t for layer in held.layers for t in (layer.keys, layer.values)])
            return Drawn(cache // (rows * prompt), max(living.most - before - cache, 0))

    return _by_layers(shape, counted)


def _by_layers(shape: Any, counted: Callable[[Any], C]) -> C:
    """Counts a model by two of few layers, where all of its layers are alike.

    Each layer adds the same to every sum, and to the peak of either pass.
    """
    text = shape.get_text_config()
    many, few = text.num_hidden_layers, 3
    kinds = getattr(text, "layer_types", None) or ()
    with torch.device("meta"):
        sizes = {_bytes(list(m.parameters())) for m in _layers(_made(shape, torch.float32, 0))}
    if many <= few or text is not shape or len(sizes) > 1 or len(set(kinds)) > 1:
        return counted(shape)
    two, three = (counted(_with_layers(shape, layers)) for layers in (few - 1, few))
    grown: C = replace(
        three,
        **{
            item.name: b if item.name == "largest" else b + (b - a) * (many - few)
            for item in fields(three)
            for a, b in [(getattr(two, item.name), getattr(three, item.name))]
        },
    )
    return grown


def _with_layers(shape: Any, layers: int) -> Any:
    changed = {**shape.to_dict(), "num_hidden_layers": layers}
    if changed.get("layer_types"):
        changed["layer_types"] = changed["layer_types"][:layers]
    made = type(shape).from_dict(changed)
    made._attn_implementation = shape._attn_implementation  # noqa: SLF001  # theirs
    return made


def _forward(
    model: Any, rows: int, prompt: int, response: int, *, mixed: bool, outputs: int
) -> torch.Tensor:
    ids = torch.zeros(rows, prompt + response, dtype=torch.long)
    mask = torch.ones_like(ids)
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        if outputs:
            total = model(input_ids=ids, attention_mask=mask).logits[:, -response:].float().sum()
        else:
            labels = torch.cat([torch.full((rows, prompt), -100), ids[:, prompt:]], dim=1)
            out = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
            total = (out.log_probs + out.entropy).sum()
    return total


def _made(shape: Any, dtype: torch.dtype, outputs: int) -> Any:
    if outputs:
        named = {"label2id", "id2label", "num_labels"}
        told = {key: value for key, value in shape.to_dict().items() if key not in named}
        told |= {"num_labels": outputs, "tie_word_embeddings": False}
        own = type(shape).from_dict(told)
        own._attn_implementation = shape._attn_implementation  # noqa: SLF001  # theirs
        model: Any = AutoModelForTokenClassification.from_config(own, dtype=dtype)
        return model
    model = AutoModelForCausalLM.from_config(shape, dtype=dtype)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    return model


class _Adapted(torch.nn.Module):
    """A linear layer with a low-rank adapter, as PEFT computes it; PEFT cannot make one here."""

    def __init__(self, base: Any, rank: int) -> None:
        super().__init__()
        self.base = base
        self.down = torch.nn.Linear(base.in_features, rank, bias=False)
        self.up = torch.nn.Linear(rank, base.out_features, bias=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        out = self.base(inputs)
        return (out + self.up(self.down(inputs.to(self.down.weight.dtype)))).to(out.dtype)


def _adapt(model: Any, lora: LoraConfig) -> None:
    model.requires_grad_(requires_grad=False)
    head = model.get_output_embeddings()
    chosen = [
        (name, layer)
        for name, layer in model.named_modules()
        if isinstance(layer, torch.nn.Linear)
        and layer is not head
        and (not lora.target_modules or name.rpartition(".")[2] in lora.target_modules)
    ]
    for name, layer in chosen:
        model.set_submodule(name, _Adapted(layer, lora.rank))


def _layers(model: Any) -> list[Any]:
    kinds = set(getattr(model, "_no_split_modules", None) or ())
    return [module for module in model.modules() if type(module).__name__ in kinds]


def _bytes(tensors: list[Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@contextmanager
def _faked() -> Iterator[_Living]:
    """Tensors made within have no memory."""
    with FakeTensorMode(allow_non_fake_inputs=True), _Living() as living:
        yield living
