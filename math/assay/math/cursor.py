"""A cursor over tokens, with the limits on nodes and nesting that bound every parser's work."""

from __future__ import annotations

from collections.abc import Sequence

from assay.math.lexer import OverLimit, Token, Unreadable

MAX_DEPTH = 64
MAX_NODES = 512
_END = Token("end", "")


class Cursor:
    """Tokens and a position; there are always four tokens more to look at."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = [*tokens, _END, _END, _END, _END]
        self.position = 0
        self._nodes = 0
        self._depth = 0

    def sees(self, *values: str) -> bool:
        """Whether the next token is one of these signs."""
        token = self.tokens[self.position]
        return token.kind == "sign" and token.value in values

    def takes(self, *values: str) -> str:
        """The next token's value when it is one of these signs; else the empty string."""
        token = self.tokens[self.position]
        if token.kind == "sign" and token.value in values:
            self.position += 1
            return token.value
        return ""

    def expect(self, value: str) -> None:
        """Skips a sign that must come now."""
        if not self.takes(value):
            raise Unreadable(f"{value!r} is missing")

    def count(self) -> None:
        """Counts one node.

        Raises:
            OverLimit: there are more than `MAX_NODES`.
        """
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise OverLimit(f"more than {MAX_NODES} parts")

    def descend(self) -> None:
        """Counts one level of nesting; `ascend` leaves it.

        Raises:
            OverLimit: it is nested deeper than `MAX_DEPTH`.
        """
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise OverLimit(f"nested deeper than {MAX_DEPTH}")

    def ascend(self) -> None:
        """Leaves one level of nesting."""
        self._depth -= 1
