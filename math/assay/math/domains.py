r"""Sets of numbers by name: `\mathbb{R}^+`, `\mathbb{Z}_{\ge 0}`, "all real numbers except 0".

Real sets become the intervals that they are, so that they meet intervals and inequalities. Sets of
whole numbers keep a name, one for each: the positive (`\mathbb{N}^*`, `\mathbb{Z}^+`), those with
zero (`\mathbb{N}_0`). `\mathbb{N}` and `\mathbb{R}_+` stand for themselves, because authors
disagree about the zero.
"""

from __future__ import annotations

import re
from fractions import Fraction

from assay.math.nodes import (
    MINUS_ONE,
    Add,
    Call,
    Chain,
    Constant,
    Group,
    Mul,
    Node,
    Number,
    SetOperation,
    Symbol,
)
from assay.math.text import spoken

_LETTER = r"\\(?:mathbb|mathbf|Bbb|mathds)\s?(?:\{\s?([RZNQC])\s?\}|([RZNQC])(?![A-Za-z]))"
_RELATION = r"\\(?:ge|geq|geqslant|le|leq|leqslant|ne|neq|gt|lt)(?![a-z])|[<>]=?|!="
_MARK = (
    rf"(?:\s?\^\s?\{{?\s?(?P<upper>\+|-|\*|\\ast|\\times|\\star|(?:{_RELATION})\s?[01])\s?\}}?"
    rf"|\s?_\s?\{{?\s?(?P<lower>\+|-|\*|0|(?:{_RELATION})\s?[01])\s?\}}?){{1,2}}"
)
_MARKED = re.compile(rf"{_LETTER}(?P<marks>{_MARK})(?![A-Za-z0-9]\}})")
_ONE_MARK = re.compile(rf"(\^|_)\s?\{{?\s?(\+|-|\*|\\ast|\\times|\\star|0|(?:{_RELATION})\s?[01])")
_BOLD = re.compile(
    r"(?:(?<=\\in)|(?<=\\in\s)|^)\s?(?:\\(?:mathbf|mathrm|text|rm|bf)\s?\{\s?([RZNQC])\s?\}"
    r"|(?<=\s)([RZNQ])(?=\s?(?:$|[,;)}^_]|\\(?:\}|text|setminus|cup))))"
)
_MINUS = re.compile(r"(\\mathbb\s?\{\s?[RZNQC]\s?\})\s?-\s?(?=\\\{|\\mathbb)")
_UNBRACED = re.compile(r"\\mathbb\s([RZNQC])(?![A-Za-z])")
_LESS = {"le": "<=", "leq": "<=", "leqslant": "<=", "lt": "<", "ge": ">=", "geq": ">=",
         "geqslant": ">=", "gt": ">", "ne": "!=", "neq": "!="}  # fmt: skip
_REALS = {"+": "(0,\\infty)", "-": "(-\\infty,0)", "*": "(\\mathbb{R}\\setminus\\{0\\})",
          ">0": "(0,\\infty)", ">=0": "[0,\\infty)", "<0": "(-\\infty,0)", "<=0": "(-\\infty,0]",
          "!=0": "(\\mathbb{R}\\setminus\\{0\\})"}  # fmt: skip
_WHOLE = {("Z", "^+"): "Z+", ("Z", "_+"): "Z+", ("Z", ">0"): "Z+", ("Z", ">=1"): "Z+",
          ("N", "^+"): "Z+", ("N", "_+"): "Z+", ("N", "^*"): "Z+", ("N", "_*"): "Z+",
          ("N", ">0"): "Z+", ("N", ">=1"): "Z+", ("Z", ">=0"): "Z+0", ("N", ">=0"): "Z+0",
          ("N", "_0"): "Z+0", ("Z", "^-"): "Z-", ("Z", "_-"): "Z-", ("Z", "<0"): "Z-",
          ("Z", "!=0"): "Z!=0", ("Q", "^+"): "Q+", ("Q", "_+"): "Q+", ("Q", ">0"): "Q+",
          ("R", "_+"): "R_+", ("R", "_-"): "R_-", ("Q", "^*"): "Q!=0", ("Q", "!=0"): "Q!=0",
          ("C", "^*"): "C!=0", ("C", "!=0"): "C!=0", ("Z", "^*"): "Z^*"}  # fmt: skip

_KINDS = {"real": "R", "reals": "R", "integer": "Z", "integers": "Z", "whole": "Z+0",
          "natural": "N", "naturals": "N", "rational": "Q", "rationals": "Q", "complex": "C",
          "irrational": "R-Q"}  # fmt: skip
_INFINITY = Constant("infinity")
_SIGNS = {"": "", "positive": "+", "negative": "-", "nonnegative": "+0", "nonpositive": "-0",
          "nonzero": "!=0"}  # fmt: skip
_SAID = re.compile(
    r"(?:[a-z] (?:is|can be|may be|=) )?(?P<all>(?:the set of )?(?:all |any |every )?)(?:the )?"
    r"(?P<sign>(?:strictly )?positive |negative |non-? ?negative |non-? ?positive |non-? ?zero "
    r"|even |odd )?"
    r"(?P<kind>reals?|integers?|whole|naturals?|rationals?|complex|irrational)"
    r"(?P<plural> (?:numbers?|values?))?(?: (?:of |for )?[a-z])?"
)
_KIND = re.compile("real|integer|whole|natural|rational|complex")
_EXCEPT = re.compile(
    r",?\s(?:except|excluding|but|other than|not equal to|without)(?![a-z])(?: for| when)?"
)
_NOISE = re.compile(r"^[\s}]+|(?<![A-Za-z\\])[a-z]\s?=\s?|\\text\s?\{\s?$|[\s.]+$")


def rewritten(form: str) -> str:
    r"""The form with `\mathbb{R}^+` and its kin as intervals and named sets."""
    if "bf" in form or "rm" in form or "text" in form or "\\in " in form:
        form = _BOLD.sub(lambda match: f" \\mathbb{{{match[1] or match[2]}}}", form)
    form = _UNBRACED.sub(r"\\mathbb{\1}", form)
    return _MARKED.sub(_named, _MINUS.sub(r"\1 \\setminus ", form))


def _named(match: re.Match[str]) -> str:
    letter = match[1] or match[2]
    marks = {_mark(where, sign) for where, sign in _ONE_MARK.findall(match["marks"])}
    if marks in ({"^+", "_0"}, {"^*", "_+"}, {"^+", "_*"}):
        mark = ">=0" if "_0" in marks else ">0"
    elif len(marks) == 1:
        (mark,) = marks
    else:
        return match[0]
    plain = mark.lstrip("^") if letter == "R" else mark
    if letter == "R" and plain in _REALS:
        return f" {_REALS[plain]}"
    name = _WHOLE.get((letter, mark))
    return match[0] if name is None else f" \\mathbb{{{name}}}"


def _mark(where: str, sign: str) -> str:
    """`^+`, `_0`, or a relation such as `>=0`, wherever it stands."""
    if sign in ("\\ast", "\\star", "\\times"):
        sign = "*"
    if sign[0] == "\\" or sign[0] in "<>!":
        bound = sign[-1]
        name = sign[:-1].strip().lstrip("\\")
        return f"{_LESS.get(name, name)}{bound}"
    return f"{where}{sign}"


def said(form: str) -> tuple[Node, str] | None:
    """The set that a form in words names, and what it says to leave out; None if it names none."""
    if _KIND.search(form) is None:
        return None
    except_ = _EXCEPT.search(form)
    head = form if except_ is None else form[: except_.start()]
    match = _SAID.fullmatch(spoken(head))
    if match is None:
        return None
    kind = _KINDS[match["kind"]]
    plural = match["kind"].endswith("s") or (match["plural"] or "").endswith("s")
    if not plural and not match["all"]:
        return None
    sign = re.sub(r"non-? ?", "non", (match["sign"] or "").removeprefix("strictly ").strip())
    if sign in ("even", "odd"):
        return (_of_parity(sign), "") if kind == "Z" and except_ is None else None
    mark = _SIGNS[sign]
    node = _real(mark) if kind == "R" else Symbol(f"mathbb{_whole(kind, mark)}")
    rest = "" if except_ is None else _NOISE.sub("", form[except_.end() :]).strip()
    if rest.endswith("}") and rest.count("{") < rest.count("}"):
        rest = rest[:-1]
    return None if except_ is not None and not rest else (node, rest)


def _of_parity(parity: str) -> Node:
    """The even or the odd integers, as multiples of 2, and one more."""
    name = Symbol("n")
    double = Mul((Number(Fraction(2)), name))
    element = double if parity == "even" else Add((double, Number(Fraction(1))))
    return Call("builder", (element, Chain((name, Symbol("mathbbZ")), ("in",))))


def _whole(kind: str, sign: str) -> str:
    return "Z+" if kind in ("Z", "N", "Z+0") and sign == "+" else f"{kind}{sign}"


def _real(sign: str) -> Node:
    below, nought = Mul((MINUS_ONE, _INFINITY)), Number(Fraction(0))
    whole = Symbol("mathbbR")
    sets: dict[str, Node] = {
        "": whole,
        "+": Group("(", (nought, _INFINITY), ")"),
        "-": Group("(", (below, nought), ")"),
        "+0": Group("[", (nought, _INFINITY), ")"),
        "-0": Group("(", (below, nought), "]"),
        "!=0": SetOperation("difference", (whole, Group("{", (nought,), "}"))),
    }
    return sets[sign]
