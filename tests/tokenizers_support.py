"""Tokenizers of the families in use, made here in a moment: each with its own way to write text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

TEXTS = [
    "The quick brown fox jumps over the lazy dog.\nIt's 3.5 times as fast, isn't it?",
    "Let x = 4; then x + 1 = 5.\n\nStep 2: so the answer is \\boxed{5}.",
    "Café, naïve, Straße, e\u0301 and n\u0303; \u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\U0001f600 \U0001f469\u200d\U0001f680 \U0001f1e8\U0001f1ed \u0645\u0631\u062d \u05e9",
    "def f(a):\n    return a  # twice\n\tdone",
]
_SPECIAL = ["<pad>", "<end>", "<think>"]


def _fast(core: Any, **settings: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    make: Any = PreTrainedTokenizerFast
    core.add_special_tokens(_SPECIAL)
    return make(tokenizer_object=core, pad_token="<pad>", eos_token="<end>", **settings)


@cache
def byte_level() -> Any:
    """Byte-level BPE (GPT-2, Llama 3, Qwen): a character beyond ASCII may take several tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=_SPECIAL,
        show_progress=False,
    )
    core.train_from_iterator(TEXTS, trainer)
    return _fast(core)


@cache
def characters() -> Any:
    """One token for each printable ASCII character."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = [*_SPECIAL, "<unk>", "\n", *map(chr, range(32, 127))]
    core = Tokenizer(
        models.WordLevel({token: n for n, token in enumerate(vocabulary)}, unk_token="<unk>")
    )
    core.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    core.decoder = decoders.Fuse()
    return _fast(core, unk_token="<unk>")


@cache
def metaspace() -> Any:
    """Unigram with SentencePiece's spaces (T5, XLM-R): the first leading space is not written."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.Unigram())
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=220, special_tokens=["<unk>", *_SPECIAL], unk_token="<unk>", show_progress=False
    )
    core.train_from_iterator(TEXTS * 4, trainer)
    return _fast(core, unk_token="<unk>")


@cache
def byte_fallback() -> Any:
    """BPE with SentencePiece's spaces and bytes for what it does not know (Llama 2, Mistral).

    A run of bytes that is no text as a whole is written as one replacement character for each.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers

    pieces = [*_SPECIAL, "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    pieces += [chr(n) for n in range(33, 127)] + ["\u00e9", "\u4f60"]
    vocabulary = {piece: n for n, piece in enumerate(pieces)}
    merges = []
    for one, two in [("t", "h"), ("th", "e"), ("\u2581", "the"), ("\u2581", "x"), ("\u2581", "=")]:
        merges.append((one, two))
        vocabulary[one + two] = len(vocabulary)
    core = Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    core.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return _fast(core, unk_token="<unk>")


@cache
def word_piece() -> Any:
    """WordPiece (BERT): spaces between words are made up, and cleaned away before punctuation."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.WordPiece(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece(cleanup=True)
    trainer = trainers.WordPieceTrainer(
        vocab_size=260, special_tokens=["<unk>", *_SPECIAL], show_progress=False
    )
    core.train_from_iterator(TEXTS * 4, trainer)
    return _fast(core, unk_token="<unk>", clean_up_tokenization_spaces=True)


FAMILIES: dict[str, Callable[[], Any]] = {
    "byte-level": byte_level,
    "characters": characters,
    "metaspace": metaspace,
    "byte-fallback": byte_fallback,
    "word-piece": word_piece,
}
