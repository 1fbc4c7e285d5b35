"""The bytes of each token, and which tokens a form allows: a small own structured decoding.

A form becomes a table of bytes (state, byte -> state), built from its parts, which are
deterministic. All tokens are walked through it at once, so that one state's allowed tokens take
milliseconds once and nothing afterwards. Special tokens are never allowed: a text ends where its
form does.

Covered: byte-level vocabularies (GPT-2, Llama 3, Qwen, ...) and those of SentencePiece with bytes
to fall back on. Any other says None, and the model is held to no form.

Shape suffixes: S states, T tokens, L bytes of a token.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch

from assay.genrm.engines.forms import Part
from assay.kit.pieces import PLAIN, pieces_of

_LONGEST_BYTES = 48
"""Longer tokens (runs of space) are not used under a form."""
_FEW = 512
_KEPT_STATES = 4096
_KEPT_WHOLE = 128
_KEPT_FORMS = 16
_SAMPLES = (
    "Step 12: correct\nVerdict: wrong",
    " A",
    "<answer>1</answer>",
    "gr\u00fcn, \u6b63\u786e",
)
_NEWLINE = 10
_NEEDED = (_NEWLINE, *range(32, 127))
"""With a token for each of these, any form in English can be written."""


class TokenBytes:
    """The vocabulary as bytes: [T, L] with lengths, ordered by first byte."""

    def __init__(
        self, tokens: Sequence[bytes | None], encode: Callable[[str], Sequence[int]] | None = None
    ) -> None:
        """`encode` gives the tokenizer's own tokens of a text; None: any spelling will do."""
        self.of = tuple(tokens)
        self._encode = encode
        by_first: dict[int, list[int]] = {}
        for number, text in enumerate(tokens):
            if text and len(text) <= _LONGEST_BYTES:
                by_first.setdefault(text[0], []).append(number)
        # The longest first, so that those with a byte at some place are the first of all.
        self._buckets = {
            first: _Bucket(sorted(numbers, key=lambda n: -len(tokens[n] or b"")), tokens)
            for first, numbers in by_first.items()
        }

    def walk(self, table_SB: torch.Tensor, state: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The tokens that do not leave the table from a state, and where each ends."""
        live = (table_SB[state] < len(table_SB) - 1).nonzero().flatten().tolist()
        found = [self._buckets[first].walk(table_SB, state) for first in live if first in self]
        if not found:
            return torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)
        return torch.cat([ids for ids, _ in found]), torch.cat([ends for _, ends in found])

    def __contains__(self, first: int) -> bool:
        return first in self._buckets

    def spelled(self, option: str) -> tuple[int, ...]:
        """The tokenizer's own tokens of a text; none where their bytes are not the text's."""
        ids = tuple(self._encode(option)) if self._encode else ()
        said = b"".join(self.of[token] or b"" for token in ids)
        return ids if said == option.encode() else ()


class _Bucket:
    """Tokens that begin with the same byte."""

    def __init__(self, numbers: list[int], tokens: Sequence[bytes | None]) -> None:
        texts = [tokens[number] or b"" for number in numbers]
        width = len(texts[0])
        padded = b"".join(text.ljust(width, b"\0") for text in texts)
        self._ids = torch.tensor(numbers)
        self._bytes_TL = torch.frombuffer(bytearray(padded), dtype=torch.uint8).view(-1, width)
        self._counts = [sum(len(text) > at for text in texts) for at in range(width)]

    def walk(self, table_SB: torch.Tensor, state: int) -> tuple[torch.Tensor, torch.Tensor]:
        ends = torch.full((len(self._ids),), state)
        for at, count in enumerate(self._counts):
            ends[:count] = table_SB[ends[:count], self._bytes_TL[:count, at].long()]
        fine = ends < len(table_SB) - 1
        return self._ids[fine], ends[fine]


class FormTable:
    """A form as states over bytes; the last row is the dead end.

    Fixed text is written in the longest tokens that there are, as a tokenizer would, and none of
    them reaches into a verdict: so its share is measured where it begins. A verdict is written in
    the tokenizer's own tokens, as `Choose` asks about it.

    Attributes:
        final: the state in which the text is complete.
        verdicts: the states within a verdict.
        free: the states within a free line.
        left: by state, the fewest bytes to the end.
    """

    def __init__(self, parts: Sequence[Part], tokens: TokenBytes) -> None:
        self._tokens = tokens
        self._rows: list[dict[int, int]] = [{}]
        self._then = [0]  # by state, where the next part begins
        self.final = 0
        self.verdicts: set[int] = set()
        self._spelled: dict[int, set[int]] = {}  # by state within a verdict, what may come next
        self.free: set[int] = set()
        entries = [self.final]
        for part in reversed(parts):
            entries.append(self._entry(part, entries[-1]))
        self.start = entries[-1]
        self.left = self._distances()
        self._table_SB = self._table()
        self._allowed: OrderedDict[tuple[int, bool], torch.Tensor] = OrderedDict()
        self._needed = {self.final: 0}
        for entry in entries[1:]:
            self._needed[entry] = self._tokens_of(entry) + self._needed[self._then[entry]]

    def needs(self, state: int) -> int:
        """Tokens that suffice to the end."""
        if state in self._needed:
            return self._needed[state]
        then = self._then[state]
        return self.left[state] - self.left[then] + self._needed[then]

    def allowed(self, state: int, hurry: bool) -> torch.Tensor:
        """Ids of the tokens that may come next; with `hurry` a free line must end."""
        key = (state, hurry and state in self.free)
        if key in self._allowed:
            self._allowed.move_to_end(key)
            return self._allowed[key]
        ids, ends = self._tokens.walk(self._table_SB, state)
        if state in self._spelled:
            ids = torch.tensor(sorted(self._spelled[state]))
        elif state not in self.verdicts and (state not in self.free or key[1]):
            ids = ids[self._longest(state, ends)]
        self._allowed[key] = ids
        whole = sum(len(one) > _FEW for one in self._allowed.values())
        while len(self._allowed) > _KEPT_STATES or (whole > _KEPT_WHOLE and len(self._allowed) > 1):
            _, dropped = self._allowed.popitem(last=False)
            whole -= len(dropped) > _FEW
        return ids

    def _longest(self, state: int, ends: torch.Tensor) -> torch.Tensor:
        """Which tokens go farthest in fixed text; of a line those that bring it to its end."""
        if not len(ends):
            return ends
        left = torch.tensor(self.left)[ends]
        if state in self.free and self.left[state] > self.left[self._then[state]] + 1:
            return left == self.left[state] - 1  # the first character of a line
        fixed = self._then[state] if state in self.free else state
        inside = (left >= self.left[self._then[fixed]]) & (left < self.left[state])
        nearest = left[inside].min() if bool(inside.any()) else left.min()
        return left == nearest

    def _tokens_of(self, entry: int) -> int:
        """Tokens that suffice for the part that begins at a state."""
        if entry in self.free:
            return 2
        if entry in self.verdicts:
            return self.left[entry] - self.left[self._then[entry]]
        state, count = entry, 0
        while state != self._then[entry]:
            ids = self.allowed(state, hurry=False)
            if not len(ids):
                return self.left[entry]
            state, count = self.path(state, int(ids[0]))[-1], count + 1
        return count

    def path(self, state: int, token: int) -> list[int]:
        """The states from `state` on, byte by byte, through a token that is allowed."""
        states = [state]
        for byte in self._tokens.of[token] or b"":
            states.append(self._rows[states[-1]][byte])
        return states

    def _entry(self, part: Part, then: int) -> int:
        if part is None:
            return self._line(then)
        if isinstance(part, tuple):
            root = self._options([option.encode() for option in part], then)
            self._spell(part, root)
            return root
        state = then
        for byte in reversed(part.encode()):
            state = self._add({byte: state}, then)
        return state

    def _line(self, then: int) -> int:
        inside = self._add({}, then)
        self._rows[inside] = {byte: inside for byte in range(256) if byte != _NEWLINE}
        self._rows[inside][_NEWLINE] = self._rows[then][_NEWLINE]
        first = self._add({byte: inside for byte in range(256) if byte != _NEWLINE}, then)
        self.free |= {inside, first}
        return first

    def _options(self, options: list[bytes], then: int) -> int:
        """A tree of the options; every state of it is within a verdict."""
        row: dict[int, int] = {}
        for first in dict.fromkeys(option[0] for option in options):
            rest = [option[1:] for option in options if option[0] == first]
            row[first] = then if rest == [b""] else self._options(rest, then)
        state = self._add(row, then)
        self.verdicts.add(state)
        return state

    def _spell(self, options: Sequence[str], root: int) -> None:
        """Notes the tokenizer's own tokens of each option, where all have some."""
        spelled = [self._tokens.spelled(option) for option in options]
        for ids in spelled if all(spelled) else ():
            state = root
            for token in ids:
                self._spelled.setdefault(state, set()).add(token)
                state = self.path(state, token)[-1]

    def _add(self, row: dict[int, int], then: int) -> int:
        self._rows.append(row)
        self._then.append(then)
        return len(self._rows) - 1

    def _distances(self) -> list[int]:
        """Rows are made from the end on, so one pass in their order finds them, lines aside."""
        left = [0] * len(self._rows)
        for state, row in enumerate(self._rows[1:], start=1):
            nearest = min(left[then] for byte, then in row.items() if then < state)
            left[state] = 1 + nearest
        return [*left, 0]

    def _table(self) -> torch.Tensor:
        dead = len(self._rows)
        table_SB = torch.full((dead + 1, 256), dead)
        for state, row in enumerate(self._rows):
            table_SB[state, list(row)] = torch.tensor(list(row.values()), dtype=torch.long)
        return table_SB


class FormTables:
    """The tables of the latest forms, for one vocabulary."""

    def __init__(self, tokens: TokenBytes) -> None:
        self._tokens = tokens
        self._tables: OrderedDict[tuple[Part, ...], FormTable] = OrderedDict()

    def of(self, parts: tuple[Part, ...]) -> FormTable:
        """The table of a form."""
        if parts not in self._tables:
            self._tables[parts] = FormTable(parts, self._tokens)
            while len(self._tables) > _KEPT_FORMS:
                self._tables.popitem(last=False)
        self._tables.move_to_end(parts)
        return self._tables[parts]


def token_bytes(
    tokenizer: Any, encode: Callable[[str], Sequence[int]] | None = None
) -> TokenBytes | None:
    """What each token adds to a text; None where the vocabulary is of another kind.

    `encode` gives the tokens of an option, as it is asked about; by default the tokenizer's.
    """
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        return None
    pieces = pieces_of(tokenizer)
    if pieces is None or pieces.kind == PLAIN:
        return None
    found = [None if number in pieces.special else piece for number, piece in enumerate(pieces.of)]
    if not {bytes([byte]) for byte in _NEEDED} <= set(found):
        return None
    tokens = TokenBytes(found, encode or (lambda text: _ids(tokenizer, text)))
    return tokens if all(_says(tokenizer, tokens, sample) for sample in _SAMPLES) else None


def _says(tokenizer: Any, tokens: TokenBytes, text: str) -> bool:
    ids = _ids(tokenizer, text)
    parts = [tokens.of[token] for token in ids]
    return None not in parts and b"".join(part or b"" for part in parts).lstrip(b" ") == (
        text.lstrip(" ").encode()
    )


def _ids(tokenizer: Any, text: str) -> Sequence[int]:
    found: Sequence[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return found
