"""The tokens of an episode that the policy does not draw: prompts, results, ends of turns.

The policy's tokens are never decoded and tokenised again. The chat template renders a conversation
with a mark as the policy's turn, and what follows the mark follows the policy's tokens: a template
that rewrites earlier turns, such as thoughts, does not apply to what was drawn.

What others wrote holds no control tokens: where a tool prints `<|im_end|>`, the tokens are those of
the words. The text of each such token is cut in two before the template renders it, and the halves
are tokenised apart; all else is tokenised as ever.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.environments.formats import Format
from assay.environments.formats.native import CALL_ID, NativeFormat
from assay.environments.types import EpisodeMessage, Reply
from assay.kit.errors import ConfigError
from assay.trainer.data.problems import adds_bos
from assay.trainer.engines.types import Tokenizer

_MARK = "ASSAY-POLICY-TURN"
_ASK = "ASSAY-USER-TURN"
_SYSTEM = "ASSAY-SYSTEM"
_CLOSES = (
    "</tool_call>",
    "<tool_call|>",
    "<end_function_call>",
    "<\uff5ctool▁calls▁end\uff5c>",
    "<\uff5ctool▁call▁end\uff5c>",
    "<|tool_calls_section_end|>",
    "</minimax:tool_call>",
    "</TOOLCALL>",
    "</tool_calls>",
    "<|END_ACTION|>",
    "<|action_end|>",
    "<|tool_call_end|>",
)
"""What ends the calls of a turn and is no end of the turn."""
_ALIKE = (("<|call|>", "<|return|>", "<|end|>"), ("<|eot_id|>", "<|eom_id|>"))
"""Ends of turns of which the policy's own stands for the template's."""
_THOUGHTS = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
)
_ANCHORS = (".", "a", ")", "1")
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_ID = re.compile(r"[A-Za-z0-9_\-]{1,64}")
Message = dict[str, Any]


class Rendering:
    """Turns messages into token ids for one tokenizer and one format; may be used by any thread.

    Args:
        tokenizer: of transformers; without a chat template messages stand one under the other.
        format: how calls are written.
        answer: a pattern that an answer has; empty: any text is one.

    Attributes:
        format: as given.
        stops: texts behind which a turn is over, for `Sampling.stops`.

    Raises:
        ConfigError: the chat template does not show the policy's turns.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        format: Format,  # noqa: A002
        *,
        answer: str = "",
    ) -> None:
        self.format = format
        self._answer = re.compile(answer)
        self.stops = format.stops
        self._tokenizer = tokenizer
        self._special = _special_texts(tokenizer)
        self._cuts = _cut_places(tokenizer, format.tags)
        self._prepends = _prepends(tokenizer)
        self._system = True
        self._end, self._thought = "", ""
        if tokenizer.chat_template is not None:
            self._probe()
        self._ends = self._end_ids()

    def begin(
        self, messages: Sequence[EpisodeMessage], tools: Sequence[Mapping[str, Any]]
    ) -> tuple[int, ...]:
        """A conversation's prompt, up to where the assistant begins.

        Args:
            messages: all that it begins with, at least one.
            tools: their schemas, {"type": "function", "function": {...}} each.

        Raises:
            ConfigError: the chat template refuses the messages.
        """
        given = [dict(tool) for tool in tools]
        told = self.format.system(given)
        said = list(self.format.shown(messages))
        if told and said and said[0].role == "system":
            said[0] = replace(said[0], content=f"{said[0].content}\n\n{told}")
        elif told:
            said.insert(0, EpisodeMessage("system", told))
        offered = given if self.format.offers else []
        text, cut = self._rendered(said, _contents(messages), tools=offered)
        bos = self._tokenizer.bos_token
        if bos and text.startswith(bos) and adds_bos(self._tokenizer):
            text = text.removeprefix(bos)
        first, *rest = text.split(cut)
        ids: list[int] = list(self._tokenizer(first)["input_ids"])
        for part in rest:
            ids += self._continued(part)
        return tuple(ids)

    def after(self, messages: Sequence[EpisodeMessage], last_ids: Sequence[int]) -> tuple[int, ...]:
        """What stands between the policy's turn and its next one.

        Args:
            messages: new ones, at least one.
            last_ids: the turn's tokens; an end of turn that they have is not repeated.

        Raises:
            ConfigError: the chat template refuses the messages.
        """
        said = self.format.shown(messages)
        number = 0
        while any(f"{_MARK}-{number}." in one.content for one in said):
            number += 1
        mark = f"{_MARK}-{number}."
        text, cut = self._rendered(said, _contents(messages), turn=mark)
        at = text.rfind(mark)
        if at < 0:
            raise ConfigError(
                "the tokenizer's chat template shows none of the policy's earlier turns; use a "
                "template for conversations of several turns"
            )
        behind = text[at + len(mark) :]
        if self.format.native and said[0].role == "tool":
            behind = behind[self._call_rest(said, mark) :]
        ids: list[int] = []
        for part in behind.split(cut):
            ids += self._continued(part)
        return tuple(ids[self._repeated(last_ids[-1], ids) :] if last_ids else ids)

    def read(self, ids: Sequence[int], *, truncated: bool = False) -> Reply:
        """What the policy's tokens of a turn say; see Format.read."""
        kept = list(ids)
        while kept and kept[-1] in self._ends:
            kept.pop()
        decode = self._tokenizer.decode
        reply = self.format.read(
            self._thought + str(decode(kept, skip_special_tokens=False)), truncated=truncated
        )
        answer = reply.answer
        if self._special is not None:
            answer = self._special.sub("", answer).strip()
        if not self._answer.search(answer):
            answer = ""
        return replace(
            reply,
            text=str(decode(list(ids), skip_special_tokens=True)),
            answer=answer,
            void=not reply.calls and not answer,
            tokens=len(ids),
        )

    def _rendered(
        self,
        messages: Sequence[EpisodeMessage],
        contents: Sequence[str],
        *,
        tools: Sequence[dict[str, Any]] = (),
        turn: str = "",
    ) -> tuple[str, str]:
        """The conversation's text, and the text that stands where it is to be cut.

        `contents` are what others wrote, in order; what the format puts around them stays whole.
        With `turn`, a mark, the messages follow the policy's marked turn.
        """
        cut = _unused([message.content for message in messages])
        waiting = deque(map(_whole, contents))
        said = [self._message(message, cut, waiting) for message in messages]
        if self._tokenizer.chat_template is None:
            text = "\n".join(message["content"] for message in said) + "\n"
            return (f"{turn}\n{text}" if turn else text), cut
        if turn:
            said = [{"role": "user", "content": "?"}, self._turn(messages, turn), *said]
        return self._templated(said, tools), cut

    def _message(self, message: EpisodeMessage, cut: str, waiting: deque[str]) -> Message:
        text = _whole(message.content)
        if message.role != "system":
            text = self._cut_in(text, cut, waiting)
        if isinstance(self.format, NativeFormat) and message.calls:
            calls = [
                (_plain_name(call.name), _plain_id(call.id), call.arguments or {})
                for call in message.calls
            ]
            return {**self.format.shape.message(calls), "content": text}
        said: Message = {"role": message.role, "content": text}
        if message.role == "tool":
            said |= {"name": _plain_name(message.name), "tool_call_id": _plain_id(message.call_id)}
        return said

    def _cut_in(self, text: str, cut: str, waiting: deque[str]) -> str:
        """The message's text with cuts in the parts that others wrote."""
        cuts = self._cuts
        if cuts is None:
            return text
        parts: list[str] = []
        start, doubtful = 0, False
        while waiting and (at := text.find(waiting[0], start)) >= 0:
            doubtful = doubtful or (
                text.find(waiting[0], at + 1) >= 0 and cuts.search(waiting[0]) is not None
            )
            end = at + len(waiting.popleft())
            parts += [text[start:at], cuts.sub(lambda found: found[0] + cut, text[at:end])]
            start = end
        if not parts or doubtful:  # where the format rewrites what it shows, all may be others'
            return cuts.sub(lambda found: found[0] + cut, text)
        return "".join([*parts, text[start:]])

    def _turn(self, messages: Sequence[EpisodeMessage], mark: str) -> Message:
        """The policy's turn before the messages: with calls where results follow."""
        results = [one for one in messages if one.role == "tool"]
        if not isinstance(self.format, NativeFormat) or not results or messages[0].role != "tool":
            return {"role": "assistant", "content": mark}
        return self.format.shape.message(
            [(_plain_name(one.name), _plain_id(one.call_id), {"x": mark}) for one in results]
        )

    def _templated(self, said: Sequence[Message], tools: Sequence[dict[str, Any]]) -> str:
        """The template's text; where it refuses, of the messages as it may take them."""
        plain = list(said) if self._system else _without_system(said)
        trouble: Exception | None = None
        for messages in (plain, _merged(plain), _merged(_without_system(said))):
            try:
                return self._apply(messages, tools)
            except Exception as error:  # noqa: BLE001  # whatever a template raises
                trouble = trouble or error
        roles = ", ".join(str(message["role"]) for message in said)
        raise ConfigError(
            f"the tokenizer's chat template refuses a conversation of {roles} ({trouble}); use the "
            "format tagged, or a template that takes it"
        ) from trouble

    def _apply(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] = (),
        *,
        generation: bool = True,
    ) -> str:
        text: str = self._tokenizer.apply_chat_template(
            list(messages),
            tools=list(tools) or None,
            tokenize=False,
            add_generation_prompt=generation,
        )
        return text

    def _probe(self) -> None:
        """Learns how the template ends a turn, opens a thought, and takes a system's message."""
        user = {"role": "user", "content": _ASK}
        begun = self._templated([user], ())
        tail = begun[begun.rfind(_ASK) + len(_ASK) :]
        self._thought = next(
            (opens for opens, closes in _THOUGHTS if tail.rfind(opens) > tail.rfind(closes)), ""
        )
        try:
            text = self._apply([{"role": "system", "content": _SYSTEM}, user])
            self._system = _SYSTEM in text
        except Exception:  # noqa: BLE001  # whatever a template raises
            self._system = False
        following = {"role": "user", "content": _ASK}
        text = self._templated([user, {"role": "assistant", "content": _MARK}, following], ())
        if _MARK not in text:
            raise ConfigError(
                "the tokenizer's chat template shows none of the policy's earlier turns; use a "
                "template for conversations of several turns"
            )
        found = self._special and self._special.match(text, text.rfind(_MARK) + len(_MARK))
        self._end = found[0] if found else ""

    def _call_rest(self, messages: Sequence[EpisodeMessage], mark: str) -> int:
        """How many characters the marked call still has behind the mark.

        Told by harmless messages, since those given may hold what ends a call.
        """
        text, _ = self._rendered([replace(one, content="0") for one in messages], (), turn=mark)
        behind = text[text.rfind(mark) + len(mark) :]
        for close in _CLOSES:
            if (at := behind.find(close)) >= 0:
                return at + len(close)
        found = self._special and self._special.search(behind)
        if not found:
            raise ConfigError(
                "nothing tells where the tokenizer's chat template ends a call of a tool; use the "
                "format tagged"
            )
        return found.start()

    def _end_ids(self) -> frozenset[int]:
        vocabulary = self._tokenizer.get_vocab()
        texts = [self._end, self._tokenizer.eos_token, *(one for group in _ALIKE for one in group)]
        return frozenset(vocabulary[text] for text in texts if text and text in vocabulary)

    def _repeated(self, last: int, ids: Sequence[int]) -> int:
        """How many tokens only repeat the end of turn that the policy's last token is."""
        if last not in self._ends:
            return 0
        name, *names = self._tokenizer.convert_ids_to_tokens([last, *ids[:4]])
        for place, (id_, other) in enumerate(zip(ids, names, strict=False)):
            if id_ == last or any(name in one and other in one for one in _ALIKE):
                return place + 1
            if self._tokenizer.decode([id_]).strip():
                break
        return 0

    def _continued(self, text: str) -> list[int]:
        """The tokens of a text that stands behind others."""
        if not text:
            return []
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if not self._prepends or (self._special and self._special.match(text)):
            return ids
        for anchor in _ANCHORS:
            before = self._tokenizer(anchor, add_special_tokens=False)["input_ids"]
            both = self._tokenizer(anchor + text, add_special_tokens=False)["input_ids"]
            if both[: len(before)] == before:
                return list(both[len(before) :])
        return ids


def _contents(messages: Sequence[EpisodeMessage]) -> list[str]:
    """What others wrote of messages that the policy reads."""
    return [one.content for one in messages if one.role != "system" and one.content]


def _special_texts(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    """Finds the texts of special tokens."""
    texts = {str(one) for one in tokenizer.all_special_tokens}
    texts |= {str(one.content) for one in tokenizer.added_tokens_decoder.values() if one.special}
    texts = {text for text in texts if text.strip()}
    return _any_of(texts) if texts else None


def _cut_places(tokenizer: Tokenizer, tags: Sequence[str]) -> re.Pattern[str] | None:
    """Finds the first character of each control token's text, where others may stand in one."""
    source = str(tokenizer.chat_template or "")
    texts = set(tags)
    for one in tokenizer.added_tokens_decoder.values():
        text = str(one.content)
        if one.special or (text in source and text.strip(" \n\t") and not text.isalnum()):
            texts.add(text)
    texts |= {str(one) for one in tokenizer.all_special_tokens}
    alternatives = sorted({text for text in texts if len(text) > 1}, key=len, reverse=True)
    if not alternatives:
        return None
    ahead = "|".join(re.escape(text[1:]) for text in alternatives)
    firsts = "".join(sorted({re.escape(text[0]) for text in alternatives}))
    return re.compile(f"[{firsts}](?={ahead})")


def _any_of(texts: set[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))))


def _prepends(tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer writes a space before a text (SentencePiece)."""
    ids = tokenizer("x", add_special_tokens=False)["input_ids"]
    tokens = tokenizer.convert_ids_to_tokens(ids)
    return bool(tokens) and str(tokens[0]).startswith("\u2581")


def _whole(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which no tokenizer takes."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain_name(name: str) -> str:
    """A tool's name as the policy wrote it, where it is one."""
    return name if _NAME.fullmatch(name) else "tool"


def _plain_id(id_: str) -> str:
    return id_ if _ID.fullmatch(id_) else CALL_ID


def _unused(texts: Sequence[str]) -> str:
    """A character that is in none of the texts."""
    return next(
        mark for mark in map(chr, range(0xE000, 0xF8FF)) if not any(mark in one for one in texts)
    )


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Messages of one role that follow one another become one."""
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else {}
        plain = "tool_calls" not in message and "tool_calls" not in last
        if last.get("role") == message["role"] and plain and message["role"] != "tool":
            merged[-1] = {**last, "content": f"{last['content']}\n\n{message['content']}"}
        else:
            merged.append(message)
    return merged


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """A system's messages become the user's."""
    return _merged(
        [
            {**message, "role": "user"} if message["role"] == "system" else message
            for message in messages
        ]
    )
