"""The model: weights on a device, and one forward pass over rows of tokens.

The head is applied only at the positions that are read, so there is never a whole [B, T, V].

With plain or sliding-window attention rows go on from a KV cache. Other models (state-space layers,
encoders) read each row from its beginning, and write nothing. A comparison of both on a few tokens,
at the start, decides.

Shape suffixes as in kv_cache.py; V vocabulary or labels, N positions read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from assay.genrm.engines.worker.adapters import Adapters
from assay.genrm.engines.worker.kv_cache import KvCache, KvShape, Place, cache_of
from assay.genrm.engines.worker.settings import WorkerSettings
from assay.genrm.engines.worker.weights import LoadError, dtype_of, load

_CHUNK_TOKENS = 2048
_PROBE_TOKENS = 24


@dataclass(frozen=True, slots=True)
class RowInput:
    """A row's part of a forward pass.

    Attributes:
        start: tokens that the cache holds already.
        ids: tokens to add.
        reads: positions to read, counted from the row's first token, not below `start`.
        adapter: that it goes through; empty for none.
    """

    start: int
    ids: Sequence[int]
    reads: Sequence[int]
    adapter: str = ""


class Network:
    """A loaded model."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Loads it.

        Raises:
            LoadError: it cannot be loaded.
        """
        self.device = _device(settings.device)
        self.dtype = dtype_of(settings.precision, self.device)
        self._head = settings.head
        self._model = load(settings, self.dtype, self.device).eval()
        self.adapters = Adapters(self._model, settings.head)
        config = self._model.config.get_text_config()
        self.pad_token: int | None = config.pad_token_id
        if config.pad_token_id is None:
            config.pad_token_id = 0  # only so that batches are not refused; where to read is ours
        self._windows = _windows(config)
        self._picked: tuple[torch.Tensor, torch.Tensor] | None = None
        self._scores: torch.Tensor | None = None
        self._hooked = self._hook()
        self.shape = self._probe()

    @property
    def labels(self) -> int:
        """Of a classification head."""
        return int(self._model.config.num_labels)

    def end_tokens(self, tokenizer: Any) -> set[int]:
        """Tokens that end a text, by the generation settings and the tokenizer."""
        settings = getattr(self._model, "generation_config", None)
        named = getattr(settings, "eos_token_id", None)
        ends = {tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])}
        return {int(token) for token in ends if token is not None}

    def kv_cache(self, rows: int, tokens: int) -> KvCache:
        """Room for rows; only with a `shape`."""
        if self.shape is None:
            raise RuntimeError("this model keeps no keys and values")
        return KvCache(self.shape, rows, tokens, self.dtype, self.device)

    @torch.inference_mode()
    def run(self, rows: Sequence[RowInput], kv: KvCache | None) -> torch.Tensor:
        """One forward pass, in chunks where rows are long; logits of what is read: [N, V], float32.

        Rows stand in the order of `kv`, which holds their keys and values; None: all starts are 0.
        """
        longest = max(len(row.ids) for row in rows)
        step = longest if kv is None else min(longest, _CHUNK_TOKENS)
        found: dict[tuple[int, int], torch.Tensor] = {}
        for begin in range(0, longest, step):
            size = min(step, longest - begin)
            wanted = [
                (number, position - row.start - begin)
                for number, row in enumerate(rows)
                for position in row.reads
                if 0 <= position - row.start - begin < size
            ]
            tokens_BS = torch.tensor(
                [_padded(row.ids[begin : begin + size], size) for row in rows], device=self.device
            )
            logits = self._pass(rows, begin, tokens_BS, wanted, kv)
            for (number, offset), value in zip(wanted, logits, strict=False):
                found[number, rows[number].start + begin + offset] = value
        ordered = [found[number, at] for number, row in enumerate(rows) for at in row.reads]
        return torch.stack(ordered) if ordered else torch.zeros((0, 1))

    def _pass(
        self,
        rows: Sequence[RowInput],
        begin: int,
        tokens_BS: torch.Tensor,
        wanted: list[tuple[int, int]],
        kv: KvCache | None,
    ) -> torch.Tensor:
        picked = torch.tensor(wanted or [(0, 0)], device=self.device)
        self._picked = (picked[:, 0], picked[:, 1])
        self.adapters.rows([row.adapter for row in rows])
        arguments: dict[str, Any] = {"input_ids": tokens_BS}
        if kv is None:
            lengths = torch.tensor([len(row.ids) for row in rows], device=self.device)
            columns = torch.arange(tokens_BS.shape[1], device=self.device)
            arguments["attention_mask"] = (columns[None] < lengths[:, None]).long()
            if self._keeps:
                arguments["use_cache"] = False
        else:
            place = Place([row.start + begin for row in rows], tokens_BS.shape[1], self.device)
            arguments |= {
                "past_key_values": cache_of(kv, len(rows), place),
                "position_ids": place.positions_BS,
                "attention_mask": self._mask(place) if place.end > place.added else None,
                "use_cache": True,
            }
        logits = self._model(**arguments).logits
        if self._scores is not None:
            logits, self._scores = self._scores, None
        elif self._hooked:
            return logits[0].float()
        if logits.dim() == 2:  # one for a whole row
            return logits[self._picked[0]].float()
        return logits[self._picked].float()

    def _mask(self, place: Place) -> Any:
        masks = {kind: place.mask(window, self.dtype) for kind, window in self._windows.items()}
        return masks if len(masks) > 1 else next(iter(masks.values()))

    @property
    def _keeps(self) -> bool:
        return hasattr(self._model.config.get_text_config(), "use_cache")

    def _hook(self) -> bool:
        """Has the head applied only where it is read; returns whether it is a vocabulary's."""
        if self._head == "generative":
            head = self._model.get_output_embeddings()
            if head is not None:
                head.register_forward_pre_hook(self._pick)
            return head is not None
        score = getattr(self._model, "score", None)
        if self._head == "scalar" and isinstance(score, nn.Module):
            score.register_forward_hook(self._catch)
        return False

    def _pick(self, _: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._picked is None:
            return inputs
        return (inputs[0][self._picked][None], *inputs[1:])

    def _catch(self, _: nn.Module, __: tuple[Any, ...], scores_BSV: torch.Tensor) -> None:
        """Keeps the scores of all positions, before the model takes the last one's."""
        if scores_BSV.dim() == 3:
            self._scores = scores_BSV

    def _probe(self) -> KvShape | None:
        """The shape of keys and values, if going on from them gives what reading anew gives."""
        if self._windows is _UNKNOWN:
            return None
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        ids = [(7 * number + 3) % vocabulary for number in range(_PROBE_TOKENS)]
        if self.pad_token in ids:
            ids = [token if token != self.pad_token else (token + 1) % vocabulary for token in ids]
        last = len(ids) - 1
        anew = self.run([RowInput(0, ids, [last]), RowInput(0, ids[:-5], [last - 5])], None)
        try:
            self.shape = self._shape_of(ids[:2])
            kv = self.kv_cache(2, len(ids))
            self.run([RowInput(0, ids[:-3], []), RowInput(0, ids[:-8], [])], kv)
            rows = [
                RowInput(last - 2, ids[-3:], [last]),
                RowInput(last - 7, ids[-8:-5], [last - 5]),
            ]
            going_on = self.run(rows, kv)
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
            return None
        scale = 1e-3 if self.dtype == torch.float32 else 5e-2
        room = scale * (1 + float(anew.nan_to_num().abs().max()))
        same = torch.allclose(anew, going_on, rtol=0, atol=room, equal_nan=True)
        return self.shape if same else None

    @torch.inference_mode()
    def _shape_of(self, ids: list[int]) -> KvShape:
        self._picked = None
        tokens = torch.tensor([ids], device=self.device)
        cache = self._model(input_ids=tokens, use_cache=True).past_key_values
        self._scores = None
        sizes = {(layer.keys.shape[1:], layer.values.shape[1:]) for layer in cache.layers}
        ((keys, values),) = sizes  # ValueError where layers differ
        if keys[1] != len(ids) or keys[0] != values[0]:
            raise ValueError("keys and values are not one per token")
        return KvShape(len(cache.layers), keys[0], keys[2], values[2])


_UNKNOWN: dict[str, int | None] = {}


def _windows(config: Any) -> dict[str, int | None]:
    """By kind of layer how far back it looks, None for everything; `_UNKNOWN` if unheard of."""
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if not kinds:
        return {"full_attention": window}
    known = {"full_attention": None, "sliding_attention": window}
    return {kind: known[kind] for kind in kinds} if kinds <= known.keys() else _UNKNOWN


def _padded(ids: Sequence[int], size: int) -> list[int]:
    return [*ids, *([0] * (size - len(ids)))]


def _device(name: str) -> torch.device:
    available = torch.cuda.is_available()
    if name.startswith("cuda") and not available:
        raise LoadError('there is no CUDA device here; set device = "cpu", or "auto"')
    kind, _, index = name.partition(":")
    if index:
        count = torch.cuda.device_count()
        if int(index) >= count:
            raise LoadError(f"there is no {name} here; CUDA devices are 0 to {count - 1}")
        torch.cuda.set_device(int(index))
        return torch.device(kind, int(index))
    return torch.device("cuda" if available and name != "cpu" else "cpu")
