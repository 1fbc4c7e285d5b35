"""From a prompt to token ids: trusted text with its special tokens, data without any.

The chat template is rendered with a mark for each piece of data, and cut at the marks. The trusted
parts between are tokenised with special tokens, the data by itself, so that it never yields an
added token of the vocabulary. A candidate's end-of-turn marker becomes punctuation and letters, and
prompts that begin alike begin with the same ids.

1. Token borders lie where pieces meet: a template must not count on a merge across them.
2. A chat template that trims or rewrites the content sees the mark instead of the data.
3. Thinking modes are switched off, and a thought that the template opens all the same is closed:
   verdicts are read where they begin. A prompt of ours that begins with a thought has one, in the
   words of the model's family. See `thoughts`.
4. A tokenizer without a chat template gets blocks, "role: text", and its usual special tokens.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from assay.genrm.engines import fitting, thoughts
from assay.genrm.engines.base import (
    Choose,
    EngineError,
    Prompt,
    PromptMessage,
    PromptPiece,
    RateDialogue,
    RateSteps,
    Request,
    Write,
)
from assay.kit.reasons import Reason

_MEMORY_TOKENS = 500_000
_CUT_ROUNDS = 24
_LEAST_KEPT_CHARS = 2
_ANCHOR_TOKENS = 4
_GUARDS = ("\n", "-", "9", "a")
_SWITCH = "/think"

Ids = tuple[int, ...]
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class StepLayout:
    """Where a step head is read: at this text after each step, or at each step's last token."""

    token: str | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """A request in tokens.

    Attributes:
        ids: the prompt.
        cut: cuttable pieces were shortened.
        options: of `Choose`: each option's ids, never empty.
        positions: of `RateSteps`: index of the token at which each step is read.
    """

    ids: Ids
    cut: bool = False
    options: tuple[Ids, ...] = ()
    positions: tuple[int, ...] = ()


class PromptEncoder:
    """Makes token ids of prompts, for one tokenizer of transformers. Not thread-safe."""

    def __init__(
        self, tokenizer: Any, *, chat_template: str = "", layout: StepLayout | None = None
    ) -> None:
        """Reads the vocabulary; a chat_template (Jinja) replaces the tokenizer's."""
        self._tokenizer = tokenizer
        self._template: str = chat_template or getattr(tokenizer, "chat_template", None) or ""
        self._layout = layout
        self._mark = layout.token if layout else None
        added = dict(tokenizer.added_tokens_decoder)
        self._added = frozenset(int(number) for number in added)
        contents = sorted({str(token.content) for token in added.values()} - {""}, key=len)
        self._looks = re.compile("|".join(map(re.escape, reversed(contents))) or r"(?!)")
        self._kept = {
            int(number): str(token.content)
            for number, token in added.items()
            if token.special and str(token.content) in thoughts.MARKS
        }
        self._data: _Memory[Ids] = _Memory(len)
        self._parts: _Memory[tuple[Ids, ...]] = _Memory(lambda parts: sum(map(len, parts)))
        # Tokenizers of the SentencePiece family put a space before whatever they are given. Behind
        # another character they do not: one that the text does not merge with.
        guards = {text: self._ids(text, special=False) for text in _GUARDS}
        spaced = self._ids("\na", special=False) != guards["\n"] + self._ids("a", special=False)
        self._guards = guards if spaced else {}
        self._before, self._behind = self._around()

    def twin(self) -> PromptEncoder:
        """Another one that makes the same tokens, for another thread."""
        tokenizer = copy.deepcopy(self._tokenizer)
        return PromptEncoder(tokenizer, chat_template=self._template, layout=self._layout)

    def encode_request(self, request: Request, context_tokens: int) -> Encoded:
        """Any request, fitted into the context.

        Raises:
            EngineError: CONTEXT_TOO_LONG, or INVALID_PARAMETER for what cannot be rendered.
        """
        if isinstance(request, RateSteps):
            chars = sum(map(len, request.steps))
            if chars > fitting.CHARS_PER_TOKEN * context_tokens:
                raise _too_long(chars // fitting.CHARS_PER_TOKEN, context_tokens)
            ids, positions = self.encode_steps(request.prompt, request.steps)
            if len(ids) > context_tokens:
                others = len(self.encode(request.prompt))
                raise _too_long(len(ids), context_tokens, others)
            return Encoded(ids, positions=positions)
        limit = context_tokens
        options: tuple[Ids, ...] = ()
        closed = isinstance(request, RateDialogue)
        if isinstance(request, Choose):
            options = self.encode_options(request.options)
            limit -= max(map(len, options))
        elif isinstance(request, Write):
            limit -= request.max_tokens
        prompt, cut = self.fit(request.prompt, limit, request.keep_ends, closed=closed)
        return Encoded(self.encode(prompt, closed=closed), cut, options)

    def encode(self, prompt: Prompt, *, closed: bool = False) -> Ids:
        """Token ids of a prompt.

        `closed`, for a head over the whole dialogue: a tokenizer without a chat template ends it as
        it ends any text.

        Raises:
            EngineError: INVALID_PARAMETER, the chat template refuses the messages.
        """
        return self._assemble(prompt, closed)[0]

    def encode_data(self, text: str) -> Ids:
        """Ids of data, never an added token of the vocabulary."""
        return self._data.get(text, lambda: self._plain(text))

    def encode_options(self, options: Sequence[str]) -> tuple[Ids, ...]:
        """Ids of each option of `Choose`, as it stands.

        Raises:
            EngineError: INVALID_PARAMETER, an option is empty, or two are the same.
        """
        encoded = tuple(self.encode_data(option) for option in options)
        if len(encoded) < 2 or not all(encoded) or len(set(encoded)) < len(encoded):
            raise EngineError(
                Reason.INVALID_PARAMETER,
                f"the options {list(options)!r} are not at least two different texts to this "
                "tokenizer",
            )
        return encoded

    def encode_steps(self, prompt: Prompt, steps: Sequence[str]) -> tuple[Ids, Ids]:
        """The dialogue with the response, and the index of the token at which each step is read.

        With a step token, line breaks at a step's end are left out, as on Qwen2.5-Math-PRM's model
        card (arXiv 2501.07301).

        Raises:
            EngineError: INVALID_PARAMETER, there is no step, or one without a token.
        """
        pieces: list[PromptPiece] = []
        for step in steps:
            text = (step.rstrip("\r\n") or step) if self._mark else step
            pieces.append(PromptPiece(text, trusted=False))
            if self._mark:
                pieces.append(PromptPiece(self._mark))
        if not steps or not all(self.encode_data(p.text) for p in pieces if not p.trusted):
            raise EngineError(
                Reason.INVALID_PARAMETER,
                "a response to be scored by steps needs at least one step, and each step a token",
            )
        whole = Prompt((*prompt.messages, PromptMessage("assistant", tuple(pieces))))
        ids, borders = self._assemble(whole, closed=True)
        borders = borders[-len(steps) :]
        if not self._mark:
            return ids, tuple(border - 1 for border in borders)
        mark = self._inside(self._mark, special=True)
        if any(ids[border : border + len(mark)] != mark for border in borders):
            raise EngineError(
                Reason.INVALID_PARAMETER,
                f"the model's tokenizer or chat template does not keep the step token "
                f"{self._mark!r}; set step_token or chat_template",
            )
        return ids, tuple(border + len(mark) - 1 for border in borders)

    def fit(
        self, prompt: Prompt, limit: int, keep_ends: bool, *, closed: bool = False
    ) -> tuple[Prompt, bool]:
        """The prompt in at most `limit` tokens, and whether it was cut.

        Cuttable pieces lose their middles, the longest first, down to a common length; a line says
        how many characters are missing. A prompt of more than 16 characters for each token of the
        limit is not counted first: that takes time, and it does not fit.

        Raises:
            EngineError: CONTEXT_TOO_LONG, it cannot be made to fit.
        """
        pieces = fitting.pieces_of(prompt)
        cuttable = [piece for piece in pieces if piece.cuttable]
        most = fitting.CHARS_PER_TOKEN * max(limit, 0)
        given = sum(len(piece.text) for piece in pieces)
        is_vast = given > most
        least = max(limit + 1, given // fitting.CHARS_PER_TOKEN)
        others = given - sum(len(one.text) for one in cuttable)
        if is_vast and others > most:
            raise _too_long(least, limit)
        tokens = least if is_vast else len(self.encode(prompt, closed=closed))
        if tokens <= limit:
            return prompt, False
        if not keep_ends or not cuttable:
            others = len(self.encode(fitting.without(prompt), closed=closed))
            raise _too_long(tokens, limit, others if cuttable else None)
        lengths = sorted(self._size(piece, limit) for piece in cuttable)
        ours = len(self.encode(fitting.without(prompt), closed=closed))
        cap = fitting.level(lengths, limit - ours)
        for _ in range(_CUT_ROUNDS):
            if cap < 1:
                break
            shorter = self._cut(prompt, cap)
            over = len(self.encode(shorter, closed=closed)) - limit
            if over <= 0:
                return shorter, True
            cap -= -(-over // len(lengths))
        raise _too_long(tokens, limit)

    def decode(self, ids: Sequence[int], after: Sequence[int] = ()) -> str:
        """Text of tokens that stand after others.

        Without special tokens but those that tell thought from answer (`thoughts.MARKS`).
        """
        if not self._guards or not after:
            return self._text(ids)
        before = list(after[-_ANCHOR_TOKENS:])
        return self._text([*before, *ids])[len(self._text(before)) :]

    def told(self, text: str, ids: Sequence[int], after: Sequence[int]) -> str:
        """An engine's text of tokens, with the tags of thoughts that it left out as special.

        `text` may end before the tokens do, at a stop text.
        """
        if self._kept.keys().isdisjoint(ids):
            return text
        whole = self.decode(ids, after)
        missing = len(self._decoded(ids)) - len(text)
        return whole[: len(whole) - missing] if missing > 0 else whole

    def _text(self, ids: Sequence[int]) -> str:
        if self._kept.keys().isdisjoint(ids):
            return self._decoded(ids)
        runs = itertools.groupby(ids, lambda token: self._kept.get(token, ""))
        return "".join(
            mark * len(run) if mark else self._decoded(run)
            for mark, run in ((mark, list(run)) for mark, run in runs)
        )

    def _decoded(self, ids: Sequence[int]) -> str:
        return str(
            self._tokenizer.decode(
                list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    def _ids(self, text: str, *, special: bool) -> Ids:
        encoded = self._tokenizer(
            text, add_special_tokens=False, split_special_tokens=not special, verbose=False
        )
        return tuple(encoded["input_ids"])

    def _inside(self, text: str, *, special: bool) -> Ids:
        for guard, known in self._guards.items():
            ids = self._ids(guard + text, special=special)
            if ids[: len(known)] == known:
                return ids[len(known) :]
        return self._ids(text, special=special)

    def _plain(self, text: str) -> Ids:
        """Ids of data; text that yields an added token all the same is broken in two."""
        if not text:
            return ()
        ids = self._inside(text, special=False)
        if self._added.isdisjoint(ids):
            return ids
        parts = fitting.broken(self._looks, text)
        ids = tuple(token for part in parts for token in self._inside(part, special=False))
        return tuple(token for token in ids if token not in self._added)

    def _around(self) -> tuple[Ids, Ids]:
        bare = self._ids("a", special=True)
        full = tuple(self._tokenizer("a")["input_ids"])
        for start in range(len(full) - len(bare) + 1):
            if full[start : start + len(bare)] == bare:
                return full[:start], full[start + len(bare) :]
        return (), ()

    def _assemble(self, prompt: Prompt, closed: bool) -> tuple[Ids, Ids]:
        texts = [piece.text for piece in fitting.pieces_of(prompt) if not piece.trusted]
        parts = self._parts.get(
            (fitting.skeleton(prompt), closed), lambda: self._render(prompt, len(texts), closed)
        )
        ids, borders = list(parts[0]), []
        for text, part in zip(texts, parts[1:], strict=True):
            ids += self.encode_data(text)
            borders.append(len(ids))
            ids += part
        return tuple(ids), tuple(borders)

    def _render(self, prompt: Prompt, count: int, closed: bool) -> tuple[Ids, ...]:
        """Ids of the trusted parts, around `count` pieces of data."""
        mark = fitting.mark_for(prompt, self._template)
        numbers = itertools.count()

        def marked(pieces: Iterable[PromptPiece]) -> str:
            return "".join(p.text if p.trusted else mark.format(next(numbers)) for p in pieces)

        # Some templates read "/think" as a switch and take it out of the messages, tags included.
        shield = mark.format("s")
        messages = [
            {"role": m.role, "content": marked(m.pieces).replace(_SWITCH, shield)}
            for m in prompt.messages
        ]
        begun = marked(prompt.lead) + prompt.prefill
        text = self._rendered(messages, begun)
        if messages and messages[-1]["role"] == "assistant":
            text += begun
        else:
            text = thoughts.continued(text, begun, self._template)
        text = text.replace(shield, _SWITCH)
        texts = re.split(mark.format(r"(\d+)"), text)
        if [int(found) for found in texts[1::2]] != list(range(count)):
            raise EngineError(
                Reason.INVALID_PARAMETER,
                "the model's chat template drops, repeats or moves parts of the messages; give the "
                "model another one (chat_template)",
            )
        parts = [self._inside(part, special=True) if part else () for part in texts[0::2]]
        parts[0] = self._ids(texts[0], special=True) if texts[0] else ()
        if not self._template:
            parts[0] = self._before + parts[0]
            parts[-1] += self._behind if closed else ()
        return tuple(parts)

    def _rendered(self, messages: list[dict[str, str]], begun: str) -> str:
        """The messages as text, open for the assistant unless its message is last."""
        answered = bool(messages) and messages[-1]["role"] == "assistant"
        if not self._template:
            blocks = [f"{message['role']}: {message['content']}" for message in messages]
            return "\n\n".join(blocks if answered else [*blocks, "assistant: "])
        try:
            return self._apply(messages, answered, begun)
        except Exception as error:
            # What a chat template raises is its own affair; many refuse a system message.
            merged = fitting.without_system(messages)
            if merged != messages:
                return self._rendered(merged, begun)
            message = (str(error) or type(error).__name__).splitlines()[0][:200]
            raise EngineError(
                Reason.INVALID_PARAMETER,
                f"the model's chat template refuses these messages: {message}",
            ) from error

    def _apply(self, messages: list[dict[str, str]], answered: bool, begun: str) -> str:
        text = self._tokenizer.apply_chat_template(
            messages,
            chat_template=self._template,
            tokenize=False,
            add_generation_prompt=not answered,
            **thoughts.switches(begun),
        )
        return str(text)

    def _cut(self, prompt: Prompt, cap: int) -> Prompt:
        messages = []
        for message in prompt.messages:
            pieces: list[PromptPiece] = []
            for piece in message.pieces:
                pieces += self._shortened(piece, cap) if piece.cuttable else (piece,)
            messages.append(replace(message, pieces=tuple(pieces)))
        return replace(prompt, messages=tuple(messages))

    def _shortened(self, piece: PromptPiece, cap: int) -> tuple[PromptPiece, ...]:
        tokens = self._size(piece, cap)
        if tokens <= cap:
            return (piece,)
        kept = len(piece.text) * cap // tokens
        parts = fitting.ends(piece, kept)
        for _ in range(_CUT_ROUNDS):
            size = sum(map(self._size, parts))
            if size <= cap or kept <= _LEAST_KEPT_CHARS:
                break
            kept = max(_LEAST_KEPT_CHARS, min(kept - 1, kept * cap // size))
            parts = fitting.ends(piece, kept)
        return parts

    def _size(self, piece: PromptPiece, cap: int | None = None) -> int:
        """Its tokens; of a text far beyond `cap` at least so many, without counting them."""
        if cap is not None and len(piece.text) > fitting.CHARS_PER_TOKEN * max(cap, 1):
            return len(piece.text) // fitting.CHARS_PER_TOKEN + 1
        if piece.trusted:
            return len(self._inside(piece.text, special=True))
        return len(self.encode_data(piece.text))


class _Memory(Generic[V]):
    """The latest values, up to a number of tokens."""

    def __init__(self, weight: Callable[[V], int]) -> None:
        self._weight = weight
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._total = 0

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        value = self._values[key] = make()
        self._total += self._weight(value) + 1
        while self._total > _MEMORY_TOKENS and len(self._values) > 1:
            _, oldest = self._values.popitem(last=False)
            self._total -= self._weight(oldest) + 1
        return value


def _too_long(tokens: int, limit: int, others: int | None = None) -> EngineError:
    """`others` are the tokens of all but the candidate, where it has some."""
    facts = {"prompt_tokens": str(tokens), "limit_tokens": str(max(limit, 0))}
    if others is not None:
        facts["others_tokens"] = str(others)
    return EngineError(
        Reason.CONTEXT_TOO_LONG,
        f"the prompt takes {tokens} tokens, and the model has room for {max(limit, 0)}; shorten "
        "it, allow the candidate to be cut (keep-ends), or give the model more context_tokens",
        facts,
    )
