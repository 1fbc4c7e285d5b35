"""What a prompt looks like to a server that renders and tokenises it by itself. Pure.

Such a server reads special tokens wherever they stand. So what looks like one in data gets a space
after its first character: "<|im_end|>" arrives as "< |im_end|>" and ends no turn. The forms are
those of the public chat formats and of the server's own list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from assay.genrm.engines import fitting
from assay.genrm.engines.base import Prompt, PromptMessage, PromptPiece

# Every quantifier is bounded and no two of them meet, so a search takes linear time.
_FORMS = (
    r"<\|[^<>|\n]{0,80}\|>",  # ChatML, Llama 3, Phi, GLM
    r"<\uff5c[^<>\uff5c\n]{0,80}\uff5c>",  # DeepSeek
    r"</?(?:s|pad|unk|bos|eos|mask|cls|sep|image|audio)>",
    r"<(?:start|end)_of_(?:turn|image|text)>",
    r"<(?:extra|unused|reserved|special|additional_special|extra_id)_?(?:token_?)?[0-9]{1,5}>",
    r"<0x[0-9A-Fa-f]{2}>",
    r"<fim_(?:prefix|middle|suffix|pad)>",
    r"<</?SYS>>",
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK|CLS|SEP|MASK|PAD|UNK)\]",
    r"<\|?(?:begin|end)_of_[a-z]{1,20}\|?>",
)
# Tokens of some vocabularies that end nothing. Judges' own answers are made of them too.
_TAGS = r"</?(?:think|tool_call|tool_response)>"
_MIN_NAMED_CHARS = 2
_MAX_NAMED_CHARS = 256
# A search holds up every other thread until it ends, so a long text is searched by windows. What is
# looked for is shorter than their overlap.
_WINDOW_CHARS = 1 << 16
_OVERLAP_CHARS = 512
# Breaking one may leave another that overlapped it.
_ROUNDS = 8


def lookalikes(named: Iterable[str] = (), *, tags: bool = True) -> re.Pattern[str]:
    """The pattern of special tokens.

    `named` are the server's own. Without `tags`, those of thinking and tools are left out, for
    prefills, which may hold them.
    """
    extra = sorted(set(named), key=lambda text: (-len(text), text))
    extra = [text for text in extra if tags or not re.fullmatch(_TAGS, text)]
    forms = (*_FORMS, _TAGS) if tags else _FORMS
    return re.compile("|".join((*map(re.escape, extra), *forms)))


def breakable(token: str) -> bool:
    """Whether a token of the server is one to break up: it has brackets."""
    is_sized = _MIN_NAMED_CHARS <= len(token) <= _MAX_NAMED_CHARS
    return is_sized and token[0] in "<[" and token[-1] in ">]"


def harmless(pieces: tuple[PromptPiece, ...], pattern: re.Pattern[str]) -> tuple[PromptPiece, ...]:
    """The pieces, with every special token that holds a character of data broken up."""
    for _ in range(_ROUNDS):
        if all(piece.trusted for piece in pieces):
            break
        text = "".join(piece.text for piece in pieces)
        spans = list(found(pattern, text))
        trusted = [piece.trusted for piece in pieces for _ in piece.text] if spans else []
        breaks = [start + 1 for start, end in spans if not all(trusted[start:end])]
        if not breaks:
            break
        pieces = _spaced(pieces, breaks)
    return pieces


def found(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Spans as of `pattern.finditer`, of matches up to the overlap's length, window by window."""
    at = 0
    for end in range(_WINDOW_CHARS, len(text) + _WINDOW_CHARS, _WINDOW_CHARS):
        for match in pattern.finditer(text, at, end + _OVERLAP_CHARS):
            if match.start() >= end:
                break
            yield match.span()
            at = match.end()
        at = max(at, end)


def settled(prompt: Prompt, pattern: re.Pattern[str]) -> Prompt:
    """The prompt with the data of its messages broken up already, not to be looked at again."""
    messages = tuple(
        replace(
            message,
            pieces=tuple(
                replace(piece, trusted=True) for piece in harmless(message.pieces, pattern)
            ),
        )
        for message in prompt.messages
    )
    return replace(prompt, messages=messages)


def _spaced(pieces: tuple[PromptPiece, ...], breaks: list[int]) -> tuple[PromptPiece, ...]:
    done, start, rest = [], 0, list(reversed(breaks))
    for piece in pieces:
        end, parts, taken = start + len(piece.text), [], 0
        while rest and rest[-1] < end:
            at = rest.pop() - start
            parts.append(piece.text[taken:at])
            taken = at
        parts.append(piece.text[taken:])
        done.append(PromptPiece(" ".join(parts), piece.trusted, piece.cuttable))
        start = end
    return tuple(done)


def chat(prompt: Prompt, pattern: re.Pattern[str]) -> list[dict[str, str]]:
    """The messages for the API, without the assistant's beginning."""
    return [
        {
            "role": message.role,
            "content": "".join(piece.text for piece in harmless(message.pieces, pattern)),
        }
        for message in prompt.messages
    ]


def begun(prompt: Prompt, pattern: re.Pattern[str], own: re.Pattern[str]) -> str:
    """The assistant's beginning: the lead and the prefill, which may quote data.

    `pattern` matches special tokens of data, `own` those in a judge's text.
    """
    pieces = (*harmless(prompt.lead, pattern), PromptPiece(prompt.prefill, trusted=False))
    return "".join(piece.text for piece in harmless(pieces, own))


def plain(messages: Sequence[dict[str, str]], begun: str) -> str:
    """The dialogue as `role: text` blocks, for a server without a chat template."""
    blocks = [f"{said['role']}: {said['content']}" for said in messages]
    if messages[-1]["role"] != "assistant":
        blocks.append(f"assistant: {begun}" if begun else "assistant:")
    return "\n\n".join(blocks)


def question(messages: Sequence[dict[str, str]]) -> str:
    """What a response answers, as one text: the user's words, or the dialogue as blocks."""
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{said['role']}: {said['content']}" for said in messages)


def cuttable_chars(prompt: Prompt) -> int:
    """Characters in the cuttable pieces."""
    return sum(map(len, _cuttable(prompt)))


def keep(prompt: Prompt, chars: int) -> Prompt:
    """The prompt with `chars` characters of its cuttable pieces left, the longest cut first.

    Lines of ours say how many are missing.
    """
    cap = max(0, fitting.level(sorted(map(len, _cuttable(prompt))), chars))
    messages = []
    for message in prompt.messages:
        pieces: list[PromptPiece] = []
        for piece in message.pieces:
            shorter = piece.cuttable and len(piece.text) > cap
            pieces += fitting.ends(piece, cap) if shorter else (piece,)
        messages.append(PromptMessage(message.role, tuple(pieces)))
    return replace(prompt, messages=tuple(messages))


def _cuttable(prompt: Prompt) -> list[str]:
    return [p.text for message in prompt.messages for p in message.pieces if p.cuttable]
