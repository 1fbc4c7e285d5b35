"""What stands above and below a name: primes, stars, degree signs, subscripts."""

from __future__ import annotations

import re

from assay.math.cursor import Cursor
from assay.math.lexer import Unreadable
from assay.math.nodes import Constant, Mul, Node, Quantity, Symbol

_DEGREE = Constant("degree")
_SUBSCRIPTS = frozenset({"number", "name", "constant", "text", "function"})
_SUBSCRIPT_SIGNS = frozenset({"oplus", "*", "+", "-", "perp", "parallel"})
_MARKS = frozenset("*+-")
_ENDS_OF_MARKS = frozenset({")", "}", "]", ",", ";", "=", "<", ">", "<=", ">=", "in", "}set", "|"})

_SUM = re.compile(r"[A-Za-z0-9]+(?:\+[A-Za-z0-9]+)+")


class Scripts(Cursor):
    """The cursor with methods that read scripts and leave it behind them."""

    def opens_primes(self) -> bool:
        """Whether the exponent is primes, which then stand bare before the cursor."""
        at = self.position
        if self.tokens[at] == ("sign", "'"):
            return True
        size = 1 if self.tokens[at] == ("sign", "{") else 0
        while size and self.tokens[at + size] == ("sign", "'"):
            size += 1
        if size < 2 or self.tokens[at + size] != ("sign", "}"):
            return False
        del self.tokens[at + size], self.tokens[at]
        return True

    def takes_mark(self) -> str:
        """The star, plus or minus that is the whole exponent, with or without braces."""
        at = self.position
        braced = self.tokens[at] == ("sign", "{")
        mark, behind = self.tokens[at + braced], self.tokens[at + 1 + braced]
        if mark.kind != "sign" or mark.value not in _MARKS:
            return ""
        if braced and behind != ("sign", "}"):
            return ""
        if not braced and behind.kind != "end" and behind.value not in _ENDS_OF_MARKS:
            return ""
        self.position += 3 if braced else 1
        return mark.value

    def takes_degree(self) -> bool:
        """Whether a degree sign comes now, which is skipped."""
        size = self.degree_size(self.position)
        self.position += size
        return size > 0

    def degree_size(self, at: int) -> int:
        """Of how many tokens the degree sign there is; 0 where there is none."""
        if self.tokens[at] == ("sign", "circ"):
            return 1
        braced = [token.value for token in self.tokens[at : at + 3]] == ["{", "circ", "}"]
        return 3 if braced else 0

    def is_raised(self) -> bool:
        """Whether an exponent or a factorial comes now: those of a fraction are its own."""
        return self.sees("!") or (self.sees("^") and not self.degree_size(self.position + 1))

    def angle(self, value: Node) -> Node:
        """A value in degrees, of an angle or of a temperature."""
        kind, scale = self.tokens[self.position]
        if kind in ("name", "text") and scale in ("C", "F", "Celsius", "Fahrenheit"):
            self.position += 1
            return Quantity(value, f"deg{scale[0]}")
        return Mul((value, _DEGREE))

    def primed(self, base: Node) -> Symbol:
        """A name with the primes that come now."""
        primes = 0
        while self.takes("'"):
            primes += 1
        if not isinstance(base, Symbol):
            raise Unreadable("a prime behind something that is not a name")
        return Symbol(base.name + "'" * primes)

    def raw(self) -> str:
        """A subscript as text: one token, or what stands between braces."""
        token = self.tokens[self.position]
        self.position += 1
        if token != ("sign", "{"):
            if token.kind not in _SUBSCRIPTS and token.value not in _SUBSCRIPT_SIGNS:
                raise Unreadable("an empty subscript")
            return token.value.strip()
        parts: list[str] = []
        depth = 1
        macros = False  # of which braces are the arguments
        while True:
            token = self.tokens[self.position]
            if token.kind == "end":
                raise Unreadable("a brace is missing")
            self.position += 1
            depth += (token == ("sign", "{")) - (token == ("sign", "}"))
            if not depth:
                return _in_order("".join(parts))
            if macros or token not in (("sign", "{"), ("sign", "}")):
                parts.append(token.value.strip())
            macros = macros or token.kind == "macro"


def _in_order(subscript: str) -> str:
    """A sum of letters and numbers with its letters first: `2+i` as `i+2`."""
    if _SUM.fullmatch(subscript) is None:
        return subscript
    return "+".join(sorted(subscript.split("+"), key=lambda part: (part.isdigit(), part)))
