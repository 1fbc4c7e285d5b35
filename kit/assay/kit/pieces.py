"""The bytes that each token of a vocabulary stands for, so that ids are read without a tokenizer.

Byte-level BPE (GPT-2, Llama 3, Qwen) writes each byte as a character of GPT-2's table;
SentencePiece (Llama 2, Mistral, Gemma) writes a space as U+2581 and single bytes as `<0xAB>`. Of
any other kind a token's own text stands for it.

Limits: where a tokenizer makes up or strips text between tokens (WordPiece's spaces, the one
before a text in SentencePiece), the pieces are what the tokens hold.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

BYTE_LEVEL, SENTENCE_PIECE, PLAIN = "byte-level", "sentencepiece", "plain"
_SPACE = "\u2581"


@dataclass(frozen=True, slots=True)
class Pieces:
    """A vocabulary.

    Attributes:
        kind: "byte-level", "sentencepiece" or "plain".
        of: by id; None for an id that has no token.
        special: ids that are no text, such as the end's.
    """

    kind: str
    of: Sequence[bytes | None]
    special: frozenset[int]

    def texts(self, ids: Iterable[int]) -> list[str]:
        """Each token's text; joined, the bytes of all in UTF-8.

        A character over several tokens stands at the one that completes it; what is no UTF-8
        becomes U+FFFD. An id without a token is written `<|123|>`.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        found: list[str] = []
        for number in ids:
            piece = self.of[number] if 0 <= number < len(self.of) else None
            found.append(decoder.decode(f"<|{number}|>".encode() if piece is None else piece))
        if found:
            found[-1] += decoder.decode(b"", final=True)
        return found


def pieces_of(tokenizer: Any) -> Pieces | None:
    """The vocabulary of a tokenizer of transformers; None of one that does not tell its tokens."""
    try:
        tokens: list[str | None] = list(
            tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        )
        added = {int(number): token for number, token in tokenizer.added_tokens_decoder.items()}
    except (AttributeError, TypeError, NotImplementedError):
        return None
    special = {number for number, token in added.items() if token.special}
    kind = _kind(tokenizer, tokens)
    found: list[bytes | None] = []
    for number, text in enumerate(tokens):
        if number in added:
            found.append(_plain(str(added[number].content)))
        elif text is None:
            found.append(None)
        else:
            found.append(_READERS[kind](text))
    return Pieces(kind, found, frozenset(special | {*tokenizer.all_special_ids}))


def _kind(tokenizer: Any, tokens: Sequence[str | None]) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:  # one without a decoder of its own to read: SentencePiece's, or its own
        return SENTENCE_PIECE if any(text and text[0] == _SPACE for text in tokens) else PLAIN
    decoder = json.dumps(json.loads(backend.to_str()).get("decoder"))
    if "ByteLevel" in decoder:
        return BYTE_LEVEL
    return SENTENCE_PIECE if "\\u2581" in decoder else PLAIN


def _plain(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _level(text: str) -> bytes:
    table = _byte_of_character()
    if any(character not in table for character in text):
        return _plain(text)
    return bytes(table[character] for character in text)


def _piece(text: str) -> bytes:
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        return bytes([int(text[3:5], 16)])
    return _plain(text.replace(_SPACE, " "))


_READERS = {BYTE_LEVEL: _level, SENTENCE_PIECE: _piece, PLAIN: _plain}


@cache
def _byte_of_character() -> dict[str, int]:
    """GPT-2's table: printable bytes are themselves, the others characters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    return table | {chr(256 + number): byte for number, byte in enumerate(others)}
