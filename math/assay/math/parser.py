"""Lists, brackets, sets, relations and matrices: the whole answer as one tree."""

from __future__ import annotations

from assay.math import vocabulary
from assay.math.building import literal
from assay.math.expressions import ExpressionParser
from assay.math.lexer import Token, Unreadable, tokenise
from assay.math.nodes import (
    Call,
    Chain,
    Group,
    Matrix,
    Node,
    Quantity,
    SetOperation,
    Symbol,
    Text,
)

_LOGIC = {"land": "and", "lor": "or"}
_SEPARATORS = frozenset({",", ";", "and", "or", "newline", "land", "lor"})
_RELATIONS = (
    "=", "!=", "<", "<=", ">", ">=", "in", "notin", "subset", "approx", "equiv", "perp",
    "parallel", "to", "propto", "cong", "similar",
)  # fmt: skip
_ORDERS = ("=", "<", "<=", ">", ">=")
_SEPARATING_WORDS = {"and": "and", "or": "or", "&": "and"}
_SKIPPED_WORDS = frozenset({"approximately", "about", "around", "roughly", "approx", "equals"})
_CONDITION_WORDS = frozenset({"where", "for", "if", "when", "whenever", "such", "provided"})
_CLOSERS = {"(": (")", "]"), "[": ("]", ")"), "{": ("}",), "set{": ("}set",)}
_MATRICES = frozenset({"matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "array"})
_SYSTEMS = frozenset({"cases", "aligned", "align", "gathered", "gather", "split", "dcases"})
_UNIT_SIGNS = frozenset({"^", "/", "*", "-", "{", "}", "(", ")", "circ", "%", "'"})
MAX_UNIT_TOKENS = 24


def parse(form: str, *, thousands: bool = True, scientific: bool = True) -> Node:
    """The tree of a normal form.

    Raises:
        Unreadable: it is not mathematics that is known here.
        OverLimit: it passes a limit.
    """
    tokens = tokenise(form, thousands=thousands, scientific=scientific)
    return AnswerParser(tokens).answer()


class AnswerParser(ExpressionParser):
    """Reads a whole answer."""

    def answer(self) -> Node:
        """All tokens as one tree."""
        node = self._listed(self.sequence())
        match node:
            case Group(_, parts) | Call("builder", (_, Group(_, parts))):
                relations = all(isinstance(part, Chain) for part in parts)
            case _:
                relations = False
        if self._saw_logic and not relations:
            raise Unreadable("a formula of logic")
        if self.tokens[self.position].kind != "end":
            raise Unreadable(f"{self.tokens[self.position].value[:20]!r} is not expected")
        return node

    def _listed(self, rows: list[list[Node]], opening: str = "", closing: str = "") -> Node:
        """A group of rows of items; a bare single item is itself."""
        if len(rows) == 1:
            items = tuple(rows[0])
        elif all(len(row) == 1 for row in rows):
            items = tuple(row[0] for row in rows)
        elif opening == "[" and len({len(row) for row in rows}) == 1:
            return Matrix(tuple(map(tuple, rows)))
        else:
            items = tuple(Group("", tuple(row), "") if len(row) > 1 else row[0] for row in rows)
        if len(items) == 1 and not opening:
            return items[0]
        return Group(opening, items, closing, alternatives=self._saw_or and not opening)

    _saw_or = False
    _saw_logic = False

    def sequence(self, *closers: str) -> list[list[Node]]:
        """Rows, separated by semicolons, of items, separated by commas and words."""
        rows: list[list[Node]] = [[]]
        while True:
            if self._ends(closers):
                break
            rows[-1].append(self._item())
            separator = self._separator()
            if not separator:
                break
            if separator in (";", "newline") and not self._ends(closers):
                rows.append([])
        if not rows[-1]:
            raise Unreadable("nothing where an item is expected")
        return rows

    def _ends(self, closers: tuple[str, ...]) -> bool:
        token = self.tokens[self.position]
        return token.kind == "end" or (token.kind == "sign" and token.value in closers)

    def _separator(self) -> str:
        """Skips separators in a row, such as `, and`; the strongest one."""
        found = ""
        while True:
            kind, value = self.tokens[self.position]
            word = _SEPARATING_WORDS.get(value.strip(" ,.").lower()) if kind == "text" else value
            if kind not in ("sign", "text") or word not in _SEPARATORS:
                return found
            if value in _LOGIC:
                self._saw_logic = True
                word = _LOGIC[value]
            if word == found == ",":
                raise Unreadable("an empty item")
            self._saw_or = self._saw_or or word == "or"
            found = ";" if ";" in (word, found) else word
            self.position += 1

    def _item(self) -> Node:
        self.descend()
        while True:
            kind, value = self.tokens[self.position]
            skipped = kind == "text" and value.strip(" ,.").lower() in _SKIPPED_WORDS
            if not skipped and (kind, value) != ("sign", "approx"):
                break
            self.position += 1
        if self.tokens[self.position].kind == "text":
            node: Node = self._words()
        else:
            node = self._chain()
        self.ascend()
        return node

    def _words(self) -> Node:
        parts: list[str] = []
        while self.tokens[self.position].kind == "text":
            if self.tokens[self.position].value.strip(" ,.").lower() in _SEPARATING_WORDS:
                break
            parts.append(self.tokens[self.position].value)
            self.position += 1
        words = " ".join(parts)
        if parts == ["$"] or (parts and parts[0].strip() == "$"):
            return Quantity(self._operand(), "$")
        number = vocabulary.NUMBER_WORDS.get(words.strip(" .").lower())
        if number is None or self._depth > 1:  # inside brackets it repeats a number: 5 (five)
            return Text(words)
        return literal(str(number))

    # Relations and sets.

    def _chain(self) -> Node:
        operands = [self._operand()]
        operators: list[str] = []
        while True:
            operator = self._relation()
            if not operator:
                break
            operators.append(operator)
            operands.append(self._operand())
        if not operators:
            return operands[0]
        self.count()
        match operands[-1]:
            case Call("mod", arguments) if "equiv" in operators:
                operands[-1] = Call("modulo", arguments)
        return Chain(tuple(operands), tuple(operators))

    def _relation(self) -> str:
        if self.takes("not"):
            following = self.takes("=", "in")
            return {"=": "!=", "in": "notin"}.get(following, "")
        token = self.tokens[self.position]
        if token.kind == "text" and token.value.strip() == "in" and not self._unit_follows():
            self.position += 1
            return "in"
        return self.takes(*_RELATIONS)

    def _operand(self) -> Node:
        if self.tokens[self.position] == ("text", "$"):
            self.position += 1
            return Quantity(self._operand(), "$")
        node = self.sum()
        while self.sees("union", "intersection", "difference"):
            node = self._set_operation(node)
        if self.sees(":"):
            node = self._ratio(node)
        if self.tokens[self.position] == ("macro", "pmod"):
            self.position += 1
            node = Call("modulo", (node, self.argument()))
        elif self.opens_modulus():
            self.position += 2
            node = Call("modulo", (node, self.sum()))
            self.expect(")")
        if self._unit_follows():
            return Quantity(node, self._unit())
        return node

    def _set_operation(self, left: Node) -> Node:
        name = self.takes("union", "intersection", "difference")
        operands = [left, self.sum()]
        while name == "union" and self.takes(name):
            operands.append(self.sum())
        return SetOperation(name, tuple(operands))

    def _ratio(self, first: Node) -> Node:
        parts = [first]
        while self.takes(":"):
            parts.append(self.sum())
            while not isinstance(first, Symbol) and self.sees(
                "union", "intersection", "difference"
            ):
                parts[-1] = self._set_operation(parts[-1])
        return Call("ratio", tuple(parts))

    # Units.

    def _unit_follows(self) -> bool:
        kind, value = self.tokens[self.position]
        if kind == "sign" and value == "/":
            return self.tokens[self.position + 1].kind == "text"
        if kind != "text" or value.strip(" ,.").lower() in _SEPARATING_WORDS:
            return False
        if value.strip(" ,.(").lower().partition(" ")[0] in _CONDITION_WORDS:
            return False
        following = self.tokens[self.position + 1]
        return (
            value.strip() != "in" or following.kind == "end" or following.value in (",", "^", ";")
        )

    def _unit(self) -> str:
        parts: list[str] = []
        depth = 0
        while len(parts) < MAX_UNIT_TOKENS:
            kind, value = self.tokens[self.position]
            separates = kind == "text" and value.strip(" ,.").lower() in _SEPARATING_WORDS
            if kind == "sign":
                depth += (value in "({") - (value in ")}")
                if value not in _UNIT_SIGNS or depth < 0:
                    break
            elif separates or kind not in ("text", "name", "number", "constant"):
                break
            parts.append(value.strip())
            self.position += 1
        return " ".join(parts)

    # Brackets.

    def group(self, opening: str) -> Node:
        """What stands between brackets; single items in round, square and TeX brackets are bare."""
        if opening == "set{" and self.takes("}set"):
            return Symbol("emptyset")
        if opening == "set{" and self._is_builder():
            return self._builder()
        if opening == "{" and self.takes("}"):
            return Text("")
        saw_or, self._saw_or = self._saw_or, False
        rows = self.sequence(*_CLOSERS[opening])
        closing = self.takes(*_CLOSERS[opening])
        if not closing:
            raise Unreadable(f"{opening!r} is not closed")
        self._saw_or = saw_or
        return self._bracketed(opening, rows, closing)

    def _bracketed(self, opening: str, rows: list[list[Node]], closing: str) -> Node:
        if len(rows) == 1 and len(rows[0]) == 1 and opening != "set{":
            if (opening, closing) in (("(", "]"), ("[", ")")):
                raise Unreadable("an interval with one end")
            return rows[0][0]
        if opening == "{":
            return self._listed(rows)
        if opening == "set{":
            opening, closing = "{", "}"
        return self._listed(rows, opening, closing)

    def _is_builder(self) -> bool:
        values = [token.value for token in self.tokens[self.position : self.position + 8]]
        named = self.tokens[self.position].kind == "name"
        if named and values[1] in ("|", ":"):
            return True
        if named and values[1] == "in" and values[3:4] and values[3] in ("|", ":"):
            return True
        if values[0] == "(" and values[4] == ")" and values[5] in ("|", ":"):
            return True
        return self._has_condition()

    def _has_condition(self) -> bool:
        """Whether one bar or colon stands in this set, and a relation behind it."""
        marks = 0
        related = False
        for token in self.tokens[self.position : self.position + 60]:
            if token == ("sign", "}set"):
                break
            if token.kind == "sign":
                marks += token.value in ("|", ":")
                related = related or (marks == 1 and token.value in ("in", *_ORDERS))
        return marks == 1 and related

    def _builder(self) -> Node:
        self.bars = 1  # a bar ends the left side
        left = self.sum()
        if self.takes("in"):
            left = Chain((left, self.sum()), ("in",))
        self.bars = 0
        if not self.takes("|", ":"):
            raise Unreadable("a set without a condition")
        rows = self.sequence("}set")
        self.expect("}set")
        condition = self._listed(rows)
        return Call("builder", (left, condition))

    # Environments.

    def environment(self, name: str) -> Node:
        """A matrix, or a system of relations as a list."""
        if name == "array":
            self._skip_columns()
        if name in _MATRICES:
            rows = self._cells(name)
            if len({len(row) for row in rows}) != 1:
                raise Unreadable("rows of unequal length")
            return Matrix(tuple(map(tuple, rows)))
        if name == "vmatrix":
            return Call("det", (Matrix(tuple(map(tuple, self._cells(name)))),))
        if name in _SYSTEMS:
            return self._system(name)
        raise Unreadable(f"unknown environment {name[:20]}")

    def _skip_columns(self) -> None:
        if self.sees("{"):
            self.raw()

    def _cells(self, name: str) -> list[list[Node]]:
        rows: list[list[Node]] = [[]]
        while self.tokens[self.position] != ("macro", f"end{name}"):
            if self.takes("newline"):
                rows.append([])
                continue
            rows[-1].append(self._item())
            if not self.takes("&") and not self.sees("newline"):
                break
        if self.tokens[self.position] != ("macro", f"end{name}"):
            raise Unreadable("a matrix that is not closed")
        self.position += 1
        return [row for row in rows if row]

    def _system(self, name: str) -> Node:
        end = Token("macro", f"end{name}")
        if end not in self.tokens[self.position :]:
            raise Unreadable("an environment that is not closed")
        at = self.tokens.index(end, self.position)
        inner = self.tokens[self.position : at]
        kept = [token for token in inner if token != ("sign", "&")]
        self.tokens[self.position : at + 1] = [*kept, Token("sign", "}system")]
        rows = self.sequence("}system")
        self.expect("}system")
        return Group("", tuple(item for row in rows for item in row), "")
