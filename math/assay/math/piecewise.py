r"""Functions in pieces: `\begin{cases} x & x \ge 0 \\ -x & \text{otherwise} \end{cases}`.

`read` finds the pieces in a normal form, as `Call("piecewise", (value, condition, ...))` in the
order in which they stand; a condition is a relation, or `Text` of words ("otherwise" for every word
that means it). `same` compares two of them as functions: where the conditions describe sets of one
real variable, on every stretch and at every point on which a piece of one meets a piece of the
other the values must agree, and both must be defined on the same set and agree with themselves
where their own pieces overlap. Other conditions (n even, n odd) are paired one by one.

Bounded: at most `MAX_PIECES` pieces, each with at most 16 intervals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from assay.math import realset
from assay.math.lexer import Unreadable
from assay.math.nodes import (
    MINUS_ONE,
    ONE,
    TWO,
    Add,
    Call,
    Chain,
    Group,
    Mul,
    Node,
    Pow,
    Symbol,
    Text,
    rebuilt,
    symbols,
)
from assay.math.notation import TEXT

MAX_PIECES = 12
_MAX_CHARS = 1_500
_MAX_PAIRS = 400
_OTHERWISE = Text("otherwise")
_CASES = re.compile(
    r"(?P<name>[^\\]{0,40}=)?\s?(?:\\\{|\\lbrace)?\s?"
    r"\\begin\s?\{(?P<kind>d?cases|array|aligned)\}(?P<columns>\{[^{}]{0,12}\})?(?P<rows>.*)"
    r"\\end\s?\{(?P=kind)\}\s?(?:\\\}|\\rbrace|\\right)?[.,\s]*",
    re.DOTALL,
)
_IF = r"(?:if|for|when|where|as|provided|provided that|for all|if and only if)"
_LEAD = re.compile(
    rf"(?:{TEXT}\s?\{{\s?,?\s?{_IF}\s?(?P<inside>[^{{}}]*)\}}|(?<![A-Za-z\\]){_IF}(?![A-Za-z]))",
    re.IGNORECASE,
)
_ELSE = re.compile(
    rf"(?:{TEXT}\s?\{{)?\s?,?\s?(?:otherwise|else|elsewhere|for all other \$?[a-z]\$?"
    r"|in all other cases|for other values(?: of \$?[a-z]\$?)?|all other cases|other)"
    r"\s?[.,;]?\s?\}?[.,;]?",
    re.IGNORECASE,
)
_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "!=", "!=": "="}
_EVERY_TEXT = re.compile(rf"{TEXT}\s?\{{([^{{}}]*)\}}")
_PARITY = re.compile(
    r"2\s?(?:\\mid|\||\\vert)\s?(?P<even>[a-zA-Z])"
    r"|2\s?\\(?:nmid|not\s?\\mid)\s?(?P<odd>[a-zA-Z])"
    r"|(?P<name>[a-zA-Z])\s?\\equiv\s?(?P<rest>[01])\s?"
    r"(?:\\pmod\s?(?:\{\s?2\s?\}|2)|\(\s?\\?(?:bmod|mod)\s?(?:\{\s?2\s?\}|2)\s?\))"
)
_JOINING = re.compile(rf"[,;]?\s?{TEXT}\s?\{{\s?and\s?\}}|[,;]?\s(?<!\\)and\s")
_FILLERS = re.compile(r"\b(?:is|are|an?|the|if|for|when|number|integer)\b|[.,;]")
_RELATION = re.compile(r"[<>=]|\\(?:leq?|geq?|lt|gt|neq?|in|leqslant|geqslant|equiv)(?![A-Za-z])")

Parse = Callable[[str], Node]
Match = Callable[[Node, Node], bool]


class Branch(NamedTuple):
    """A value and the condition under which it is the function's."""

    value: Node
    condition: Node


def read(form: str, parse: Parse) -> Node | None:
    """A function in pieces; None when the text is none.

    Args:
        form: a normal form.
        parse: reads a value or a condition.

    Raises:
        Unreadable: a value is not mathematics.
    """
    if len(form) > _MAX_CHARS:
        return None
    rows = _rows(form)
    if rows is None or not 2 <= len(rows[1]) <= MAX_PIECES:
        return None
    arguments: list[Node] = []
    for value, said in rows[1]:
        condition = _condition(said, parse)
        if not value or condition is None:
            return None
        arguments += [parse(value), condition]
    if any(isinstance(value, Text | Chain) for value in arguments[::2]):
        return None
    node = Call("piecewise", tuple(arguments))
    return Chain((parse(rows[0]), node), ("=",)) if rows[0] else node


def _rows(form: str) -> tuple[str, list[tuple[str, str]]] | None:
    """The name before `=`, and of each row the texts of its value and its condition."""
    cases = _CASES.fullmatch(form) if "\\begin" in form else None
    if cases is not None:
        name = (cases["name"] or "")[:-1].strip()
        rows = [row for row in cases["rows"].split("\\\\") if row.strip(" .,;")]
        return name, [_columns(row) for row in rows]
    if not _LEAD.search(form) or "\\begin" in form:
        return None
    name, equals, rest = form.partition("=")
    if not equals or not re.fullmatch(r"\s?[A-Za-z](?:\s?\([a-z]\))?\s?", name):
        name, rest = "", form
    pieces = re.split(rf"[,;]\s?(?:{TEXT}\s?\{{\s?(?:and|or)?\s?\}})?", rest)
    return name.strip(), [_columns(part) for piece in pieces for part in _joined(piece)]


def _joined(piece: str) -> list[str]:
    """A piece cut at each "and" behind which another piece stands, with its own "if"."""
    parts = _JOINING.split(piece)
    found = parts[:1]
    for part in parts[1:]:
        if _LEAD.search(part) and _LEAD.search(found[-1]):
            found.append(part)
        else:
            found[-1] = f"{found[-1]} \\text{{ and }} {part}"
    return found


def _columns(row: str) -> tuple[str, str]:
    """Value and condition of a row: at the `&`, at a word such as "if", or at a comma."""
    value, mark, said = row.partition("&")
    if not mark:
        lead = _LEAD.search(row) or _ELSE.search(row)
        if lead is not None:
            value, said = row[: lead.start()], row[lead.start() :]
        else:
            value, mark, said = row.rpartition(",")
    return value.strip(" ,;:."), said.replace("&", " ").strip(" ,;.")


def _condition(said: str, parse: Parse) -> Node | None:
    """A condition: a relation, several, `otherwise`, or words."""
    if not said:
        return None
    if _ELSE.fullmatch(said):
        return _OTHERWISE
    plain = _LEAD.sub(lambda match: f" {match['inside'] or ''} ", said, count=1).strip(" ,;.")
    parity = _PARITY.fullmatch(plain)
    if parity is not None:
        even = bool(parity["even"]) or parity["rest"] == "0"
        letter = parity["even"] or parity["odd"] or parity["name"]
        return Text(f"{letter.casefold()} {'even' if even else 'odd'}")
    if _RELATION.search(plain):
        try:
            node = parse(plain)
        except Unreadable:
            return None
        related = isinstance(node, Chain) or (
            isinstance(node, Group) and all(isinstance(item, Chain) for item in node.items)
        )
        return node if related else None
    words = _FILLERS.sub(" ", _EVERY_TEXT.sub(r" \1 ", plain))
    listed = " ".join(words.split()).casefold()
    return Text(listed) if re.search("[a-z]{3}", listed) and "\\" not in listed else None


# Comparison.


class _Stretch(NamedTuple):
    piece: realset.Piece
    value: Node


def pieces(node: Call) -> list[Branch]:
    """The pieces of a node that `read` built."""
    return [Branch(*pair) for pair in zip(node.arguments[::2], node.arguments[1::2], strict=True)]


def same(left: Call, right: Call, match: Match, evaluate: realset.Evaluate) -> bool | None:
    """Whether two functions in pieces are one; None where that cannot be told.

    Args:
        left: the reference.
        right: the answer.
        match: whether a node of the answer equals a node of the reference.
        evaluate: the value of a constant node; None where it has none.
    """
    ours, theirs = pieces(left), pieces(right)
    variables = {_variable(ours), _variable(theirs)}
    if len(variables) != 1:
        return False
    name = variables.pop()
    if isinstance(name, Symbol):
        one, other = _stretches(ours, evaluate), _stretches(theirs, evaluate)
        if one is not None and other is not None:
            return _agree(one, other, name.name, match)
    return _paired(ours, theirs, match)


def _variable(parts: Sequence[Branch]) -> Node | None:
    """What all relations are about; None for several things or words."""
    subjects = [realset.variable(part.condition) for part in parts if part.condition != _OTHERWISE]
    return subjects[0] if subjects and all(one == subjects[0] for one in subjects) else None


def _stretches(parts: Sequence[Branch], evaluate: realset.Evaluate) -> list[_Stretch] | None:
    """Intervals with values; None where a condition is no set of reals."""
    found: list[_Stretch] = []
    covered: realset.Pieces = []
    rest: list[Node] = []
    for value, condition in parts:
        if condition == _OTHERWISE:
            rest.append(value)
            continue
        intervals = realset.pieces(condition, evaluate)
        if intervals is None:
            return None
        covered += intervals
        found += [_Stretch(interval, value) for interval in intervals]
    if len(rest) > 1 or len(found) > 4 * MAX_PIECES:
        return None
    if rest:
        found += [_Stretch(gap, rest[0]) for gap in realset.complement(covered)]
    return found


def _agree(ours: list[_Stretch], theirs: list[_Stretch], name: str, match: Match) -> bool:
    """Whether both are defined on one set, and equal wherever any two stretches meet."""
    sets = [realset.merged([stretch.piece for stretch in side]) for side in (ours, theirs)]
    if not realset.equal(*sets) or len(ours) * len(theirs) > _MAX_PAIRS:
        return False
    pairs = [(one, two) for one in ours for two in theirs]
    pairs += [(one, two) for at, one in enumerate(ours) for two in ours[:at]]
    pairs += [(one, two) for at, one in enumerate(theirs) for two in theirs[:at]]
    for one, two in pairs:
        for shared in realset.intersection([one.piece], [two.piece]):
            values = (one.value, two.value)
            if shared.low_value == shared.high_value:
                point = shared.low
                values = (_at(one.value, name, point), _at(two.value, name, point))
            if not match(*values):
                return False
    return True


def same_as_formula(
    parts: Call, formula: Node, match: Match, evaluate: realset.Evaluate
) -> bool | None:
    """Whether a function in pieces is a formula such as `|t - 7|`; None where that is unknown.

    It has to be defined for every real number, and to have the formula's values at both ends of
    each stretch. Inside, the variable is put as an expression that takes the stretch's values
    alone: on t < 7 as 7 - t^2.

    Args:
        parts: the function.
        formula: an expression in its variable alone.
        match: whether a value of the function equals one of the formula.
        evaluate: the value of a constant node; None where it has none.
    """
    branches = pieces(parts)
    name = _variable(branches)
    if not isinstance(name, Symbol) or symbols(formula) != {name.name}:
        return False
    stretches = _stretches(branches, evaluate)
    if stretches is None or not realset.equal(
        realset.merged([stretch.piece for stretch in stretches]), [realset.WHOLE]
    ):
        return None
    return all(
        match(_at(stretch.value, name.name, inside), _at(formula, name.name, inside))
        for stretch in stretches
        for inside in _places(stretch.piece, name)
    )


def _places(piece: realset.Piece, name: Symbol) -> list[Node]:
    """The ends of a stretch and what takes its values."""
    ends = ((piece.low, piece.low_value), (piece.high, piece.high_value))
    return [*(node for node, value in ends if math.isfinite(value)), _inside(piece, name)]


def _inside(piece: realset.Piece, name: Symbol) -> Node:
    """An expression in the variable whose values are those of a stretch, up to its ends."""
    square = Pow(name, TWO)
    if piece.low_value == piece.high_value:
        return piece.low
    if math.isinf(piece.low_value) and math.isinf(piece.high_value):
        return name
    if math.isinf(piece.low_value):
        return Add((piece.high, Mul((MINUS_ONE, square))))
    if math.isinf(piece.high_value):
        return Add((piece.low, square))
    share = Pow(Add((ONE, square)), MINUS_ONE)
    length = Add((piece.high, Mul((MINUS_ONE, piece.low))))
    return Add((piece.low, Mul((length, share))))


def _at(value: Node, name: str, point: Node) -> Node:
    return rebuilt(value, lambda part: point if part == Symbol(name) else part)


def _paired(ours: Sequence[Branch], theirs: Sequence[Branch], match: Match) -> bool:
    """Each piece with the one that has its condition; one that is left over stands for the rest."""
    if len(ours) != len(theirs):
        return False
    ours, theirs = _spelt_out(ours), _spelt_out(theirs)
    left = list(theirs)
    unmatched: list[Branch] = []
    for part in ours:
        found = [other for other in left if _same_condition(part.condition, other.condition, match)]
        if not found:
            unmatched.append(part)
            continue
        if not match(part.value, found[0].value):
            return False
        left.remove(found[0])
    if not unmatched:
        return True
    conditions = {unmatched[0].condition, left[0].condition}
    rest = len(unmatched) == 1 and _OTHERWISE in conditions
    said = [part.condition for part in (*ours, *theirs) if part.condition != _OTHERWISE]
    complete = {_parity(condition) for condition in said} >= {"even", "odd"} or any(
        _is_negation(one, other) for one in said for other in said
    )
    return rest and complete and len(ours) == 2 and match(unmatched[0].value, left[0].value)


def _spelt_out(parts: Sequence[Branch]) -> Sequence[Branch]:
    """Two pieces, for even numbers and otherwise, as for even and odd ones."""
    conditions = [part.condition for part in parts]
    parities = [condition for condition in conditions if _parity(condition)]
    if len(parts) != 2 or len(parities) != 1 or _OTHERWISE not in conditions:
        return parts
    said = parities[0]
    assert isinstance(said, Text)  # noqa: S101 - it has a parity
    swapped = {"even": "odd", "odd": "even"}[_parity(said)]
    other = Text(f"{said.words.removesuffix(_parity(said))}{swapped}")
    return [
        Branch(value, other if condition == _OTHERWISE else condition) for value, condition in parts
    ]


def _is_negation(one: Node, other: Node) -> bool:
    """Whether one relation holds just where the other does not."""
    match one, other:
        case Chain(operands, (operator,)), Chain(others, (further,)):
            return operands == others and _NEGATED.get(operator) == further
        case _:
            return False


def _same_condition(left: Node, right: Node, match: Match) -> bool:
    if isinstance(left, Text) or isinstance(right, Text):
        return left == right
    return symbols(left) == symbols(right) and match(left, right)


def _parity(condition: Node) -> str:
    """`even` or `odd` where that is all a condition in words says of a letter."""
    if not isinstance(condition, Text):
        return ""
    listed = condition.words.split()
    return listed[-1] if len(listed) <= 2 and listed[-1] in ("even", "odd") else ""
